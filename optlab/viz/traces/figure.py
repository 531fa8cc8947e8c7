"""Recorded quantities over the steps, and influences of past gradients: figures and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.panels import curves_panel
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Scene, entries
from optlab.viz.style import layout
from optlab.viz.style.labels import labeled_trace
from optlab.viz.style.results import one_trace, traces_of
from optlab.viz.traces.view import Curve, TraceView, page_of, trace_view


@layout.documented
def series(
    traces: Any,
    quantities: str | Sequence[str] | None = None,
    *,
    parameter: str | None = None,
    axis: str | None = None,
    note: str = "",
    width: int = 850,
    height: int = 400,
) -> go.Figure:
    """Draw recorded quantities over the steps, of one run or of several beside each other.

    Parameters
    ----------
    traces : Trace, list or dict of Trace, or Comparison
        What ``ol.record`` or ``trace.fork`` gave, or all runs of ``ol.compare``.
    quantities : str or list of str, optional
        Names that ``trace[name]`` takes, such as "loss", "norm of gradient", "sharpness"; each has
        a panel. By default the loss and the norm of the gradient.
    parameter : str, optional
        Only this parameter, of quantities that each parameter has.
    axis : {"linear", "log"}, optional
        Scale of the axes of values; by default "log" for positive values that spread widely.
    note : str
        Further text under the figure.

    Raises
    ------
    TypeError, ValueError
        If something is no trace, or a trace lacks a quantity; the message says what to record.

    Examples
    --------
    >>> import optlab as ol
    >>> race = ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=20)
    >>> what_if = race["Adam"].fork(10, learning_rate=0.01)
    >>> figure = series([race["Adam"], what_if], "loss")
    >>> figure.layout.title.text
    '<b>Loss of 2 runs</b>'
    """
    named = traces_of(traces, "series")
    chosen = _quantities(named, quantities)
    return draw(trace_scene(trace_view(named, chosen, parameter, axis, note, width, height)))


def series_png(
    traces: Any,
    quantities: str | Sequence[str] | None = None,
    *,
    parameter: str | None = None,
    axis: str | None = None,
    note: str = "",
    width: int = 850,
    height: int = 400,
    scale: float = 1.0,
) -> bytes:
    r"""Draw recorded quantities over the steps as a PNG image; arguments as for `series`.

    Examples
    --------
    >>> import optlab as ol
    >>> race = ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=20)
    >>> series_png(race, "loss")[:4]
    b'\x89PNG'
    """
    named = traces_of(traces, "series_png")
    chosen = _quantities(named, quantities)
    view = trace_view(named, chosen, parameter, axis, note, width, height)
    return draw_png(trace_scene(view), scale)


def _quantities(named: dict[str, Any], given: str | Sequence[str] | None) -> list[str]:
    """Return the chosen quantities, or those that every run has."""
    if given is not None:
        return [given] if isinstance(given, str) else list(given)
    found = ["loss"]
    counts = [len(trace.norms.get("gradient", ())) for trace in named.values()]
    if all(0 < count <= 8 for count in counts):
        found.append("norm of gradient")
    return found


@layout.documented
def influence(
    trace: Any,
    step: int | None = None,
    direction: Any = None,
    *,
    parameter: str | None = None,
    note: str = "",
    width: int = 720,
    height: int = 400,
) -> go.Figure:
    """Draw how much each past gradient is in the update of a step: a curve for each element.

    Parameters
    ----------
    trace : Trace
    step : int, optional
        By default the last recorded one.
    direction : array, optional
        As for ``trace.influence``.
    parameter : str, optional
        Which parameter; needed if there are several.
    note : str
        Further text under the figure.

    Raises
    ------
    TypeError, ValueError
        If it is no trace, `parameter` is missing or unknown, or the trace lacks what is needed.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0], name="w")
    >>> optimizer = ol.optimizer.Momentum(0.1, parameters=[w])
    >>> with ol.record(optimizer) as trace:
    ...     for _ in range(10):
    ...         optimizer.clear_grad()
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    >>> influence(trace, 10).layout.title.text
    '<b>Influence of past gradients on the update of step 10</b>'
    """
    return draw(
        trace_scene(_influence_view(trace, step, direction, parameter, note, width, height))
    )


def influence_png(
    trace: Any,
    step: int | None = None,
    direction: Any = None,
    *,
    parameter: str | None = None,
    note: str = "",
    width: int = 720,
    height: int = 400,
    scale: float = 1.0,
) -> bytes:
    """Draw influences of past gradients as a PNG image; arguments as for `influence`."""
    view = _influence_view(trace, step, direction, parameter, note, width, height)
    return draw_png(trace_scene(view), scale)


#: Elements of a parameter that have curves.
_MOST_ELEMENTS = 8


def _influence_view(
    trace: Any,
    step: int | None,
    direction: Any,
    parameter: str | None,
    note: str,
    width: int,
    height: int,
) -> TraceView:
    trace = one_trace(trace, "influence")
    name = labeled_trace(trace).name
    found = dict(trace.influence(step, direction).items())
    if parameter is None and len(found) > 1:
        raise ValueError(f"choose parameter=... out of {', '.join(found)}.")
    chosen = next(iter(found)) if parameter is None else parameter
    if chosen not in found:
        raise ValueError(f"there is no parameter {chosen!r}; there is {', '.join(found)}.")
    step = len(found[chosen])
    rows = found[chosen].reshape(step, -1)
    more = rows.shape[1] - _MOST_ELEMENTS
    if more > 0:
        note = f"{note} {more} further elements are not drawn.".strip()
    x = np.arange(1, step + 1, dtype=np.float64)
    curves: dict[str, Curve] = {
        f"{chosen}[{k}]" if rows.shape[1] > 1 else chosen: (x, rows[:, k])
        for k in range(min(rows.shape[1], _MOST_ELEMENTS))
    }
    title = f"Influence of past gradients on the update of step {step}"
    headline = f"{name}: derivative of the update by the gradient of each step"
    panel = "derivative by the gradient of a step"
    return page_of({panel: curves}, "linear", title, headline, note, (), width, height)


def trace_scene(view: TraceView) -> Scene:
    """Return the scene of curves over the steps."""
    panels = [curves_panel(panel) for panel in view.panels]
    return Scene(view.page, view.title, view.headline, panels, entries(view.entries))
