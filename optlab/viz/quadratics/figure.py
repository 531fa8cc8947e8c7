"""The modes of a closed form over the steps: predicted lines, computed dots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.lab.quadratics import closed_form
from optlab.optimizer import SGD, Momentum
from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Axis, Line, Mark, Marker, Panel, Pen, Points, Scene, Text
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats, spread
from optlab.viz.style.results import are_runs, one_trace
from optlab.viz.style.text import format_number

WIDTH, HEIGHT = 760, 400
_LOWEST = 1e-14
_RULES: dict[Any, Any] = {"SGD": SGD, "Momentum": Momentum}
_MOST_DOTS = 60


@layout.documented
def modes(result: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw what gradient descent or momentum does along each eigenvector of a quadratic.

    Parameters
    ----------
    result : ClosedForm, Trace or Comparison
        The result of `optlab.lab.closed_form`; or a run of SGD or Momentum on a quadratic in a
        comparison, for which it is computed.

    Examples
    --------
    >>> import optlab as ol
    >>> predicted = ol.lab.closed_form("valley", ol.optimizer.Momentum(0.02, 0.9))
    >>> modes(predicted).layout.title.text
    '<b>Momentum on Straight valley, curvature 36 : 1, by its eigenvectors</b>'
    """
    return draw(_scene(result, width, height))


@layout.documented
def modes_png(
    result: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the modes of a closed form as a PNG image.

    Parameters
    ----------
    result : ClosedForm
        As for `modes`.

    Examples
    --------
    >>> import optlab as ol
    >>> modes_png(ol.lab.closed_form("booth", ol.optimizer.SGD(0.05)))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(result, width, height), scale)


def _closed_form(given: Any) -> Any:
    """Return the closed form of a run.

    Raises
    ------
    TypeError, ValueError
        If something else was given, or the trace lacks what the formula needs.
    """
    if not are_runs(given):
        if not hasattr(given, "modes"):
            raise TypeError(
                "modes takes what ol.lab.closed_form(problem, optimizer) gave, or a run of SGD or "
                f"Momentum on a quadratic; got {type(given).__name__}."
            )
        return given
    trace = one_trace(given, "modes", lambda run: run.settings.get("class") in _RULES)
    kind = trace.settings.get("class")
    if kind not in _RULES:
        raise ValueError(
            f"the formula needs SGD or Momentum; the trace {trace.name!r} is of {kind}."
        )
    if trace.problem is None or trace.origin is None or trace.optimizer is None:
        raise ValueError(
            "the formula needs problem, start and optimizer of the run, which the trace "
            f"{trace.name!r} does not know: only runs of ol.compare do, until they are saved. Give "
            "ol.lab.closed_form(problem, optimizer, start)."
        )
    if trace.optimizer.schedule is not None or trace.optimizer.decay_and_clip != (None, None):
        raise ValueError(
            f"the formula needs one learning rate, and {kind} without weight_decay and grad_clip; "
            f"the trace {trace.name!r} is of {trace.optimizer!r}."
        )
    settings = {name: x for name, x in trace.settings.items() if name != "class"}
    optimizer = _RULES[kind](**settings)
    return closed_form(trace.problem, optimizer, trace.origin[0], len(trace))


def _scene(result: Any, width: int, height: int) -> Scene:
    result = _closed_form(result)
    path = result.computed()
    distances = np.abs((path - result.minimum) @ result.axes)
    count, last = len(result.curvatures), len(result.modes) - 1
    styles = [*theme.assign_styles({str(i): "" for i in range(count)}).values()]
    dots = np.unique(np.linspace(0, len(path) - 1, min(_MOST_DOTS, len(path))).round().astype(int))
    predicted = [_log(np.abs(result.modes[:, i])) for i in range(count)]
    labels = [
        f"curvature {format_number(float(curve))}: × {format_number(float(factor))}, {kind}"
        for curve, factor, kind in zip(
            result.curvatures, result.convergence, result.kinds, strict=True
        )
    ]
    longest = max(layout.text_width(label, theme.FONT_TEXT) for label in labels)
    page = layout.page(
        width, height, names=[], note="", shares=[1], rooms=[longest + 6], headed=True
    )
    low, high = float(np.min(predicted)), float(np.max(predicted))
    room = 0.06 * (high - low) or 1.0
    low, high = low - room, high + room
    gap = 18 * (high - low) / page.panels[0].height
    marks: list[Mark] = []
    places = spread([float(line[-1]) for line in predicted], gap, low, high)
    for i, (line, label, place) in enumerate(zip(predicted, labels, places, strict=True)):
        color = theme.area_colors()[i]
        dot = Marker("circle", 5, color)
        marks += [
            Line(
                np.arange(last + 1.0),
                line,
                Pen(color, dash=styles[i].dash),
                f"{label}<br>step %{{x}}",
            ),
            Points(dots.astype(float), _log(distances[dots, i]), dot, clip=False),
            Text(last, place, label, color, across="left", shift=(6, 0)),
        ]
    limit = format_number(result.stability_limit)
    rate = format_number(float(result.optimizer.settings["learning_rate"]))
    said = f"Rate {rate}; above {limit} it diverges. "
    said += f"Formula and optimizer differ by at most {format_number(result.difference, 2)}."
    apart = max(1, math.ceil((high - low) / 7))
    decades = range(math.ceil(low), math.floor(high) + 1, apart)
    return Scene(
        page,
        f"{type(result.optimizer).__name__} on {result.problem.title}, by its eigenvectors",
        said,
        [
            Panel(
                Axis(0.0, last, count=8, whole=True),
                Axis(low, high, ticks=[(float(e), f"1e{e}") for e in decades], grid=True),
                marks, "Distance along each axis",
                "log scale, over the steps; line: the formula, dots: the optimizer",
            )
        ],
    )  # fmt: skip


def _log(distance: Floats) -> Floats:
    with np.errstate(all="ignore"):
        found: Floats = np.log10(np.clip(distance, _LOWEST, 1e300))
    return np.nan_to_num(found, nan=300.0)
