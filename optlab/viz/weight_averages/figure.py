"""LookAhead and averages: moving weights and averaged weights, as figures and static images."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.panels import curves_panel, map_panel
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Scene, entries
from optlab.viz.style import layout
from optlab.viz.views.map_view import styles_of
from optlab.viz.weight_averages.view import AVERAGE, LOOKAHEAD, AverageView, average_view


@layout.documented
def lookahead(
    trace: Any, *, note: str = "", width: int = layout.WIDTH, height: int = layout.HEIGHT
) -> go.Figure:
    """Draw a run of LookAhead: fast weights, slow weights, and their synchronizations.

    On a surface of two coordinates: both paths over the map, the fast one thin, with its jumps
    back, the slow one bold, with a dot at each synchronization; beside it the losses of both.
    Otherwise: the loss over the steps, and the distance of the fast weights from the slow ones.

    Parameters
    ----------
    trace : Trace
        A recorded run of a `LookAhead`; ``race["name"]`` of a comparison includes its map.
    note : str
        Further text under the figure, such as how rate, alpha and k were chosen.

    Raises
    ------
    TypeError, ValueError
        If it is not a trace, or no LookAhead was recorded in it.

    Examples
    --------
    >>> import optlab as ol
    >>> slow = ol.optimizer.LookAhead(ol.optimizer.SGD(2e-4), alpha=0.5, k=5)
    >>> race = ol.compare("rosenbrock", {"LookAhead": slow}, steps=20)
    >>> lookahead(race["LookAhead"]).layout.title.text
    '<b>LookAhead around SGD on Rosenbrock valley</b>'
    """
    return draw(_scene(average_view(trace, LOOKAHEAD, note, width, height)))


@layout.documented
def lookahead_png(
    trace: Any,
    *,
    note: str = "",
    width: int = layout.WIDTH,
    height: int = layout.HEIGHT,
    scale: float = 1.0,
) -> bytes:
    r"""Draw a run of LookAhead as a PNG image.

    Parameters
    ----------
    trace, note
        As for `lookahead`.

    Examples
    --------
    >>> import optlab as ol
    >>> slow = ol.optimizer.LookAhead(ol.optimizer.SGD(2e-4))
    >>> lookahead_png(ol.compare("rosenbrock", {"slow": slow}, steps=20)["slow"])[:4]
    b'\x89PNG'
    """
    view = average_view(trace, LOOKAHEAD, note, width, height)
    return draw_png(_scene(view), scale)


@layout.documented
def averages(
    trace: Any, *, note: str = "", width: int = layout.WIDTH, height: int = layout.HEIGHT
) -> go.Figure:
    """Draw a run with averaged weights: the weights, and the average that `apply` would set.

    On a surface of two coordinates: both paths over the map, the average bold; beside it the losses
    of both. Otherwise: the loss over the steps, and the distance of the weights from their average.

    Parameters
    ----------
    trace : Trace
        A recorded run of ``ExponentialMovingAverage.around(...)`` or ``ModelAverage.around(...)``.
    note : str
        Further text under the figure, such as how rate and decay were chosen.

    Raises
    ------
    TypeError, ValueError
        If it is not a trace, or no average was recorded in it.

    Examples
    --------
    >>> import optlab as ol
    >>> EMA = ol.optimizer.ExponentialMovingAverage
    >>> smooth = EMA.around(ol.optimizer.SGD(2e-4), decay=0.9)
    >>> figure = averages(ol.compare("rosenbrock", {"EMA": smooth}, steps=20)["EMA"])
    >>> figure.layout.title.text
    '<b>ExponentialMovingAverage around SGD on Rosenbrock valley</b>'
    """
    return draw(_scene(average_view(trace, AVERAGE, note, width, height)))


def averages_png(
    trace: Any,
    *,
    note: str = "",
    width: int = layout.WIDTH,
    height: int = layout.HEIGHT,
    scale: float = 1.0,
) -> bytes:
    """Draw a run with averaged weights as a PNG image; arguments as for `lookahead_png`."""
    view = average_view(trace, AVERAGE, note, width, height)
    return draw_png(_scene(view), scale)


def _scene(view: AverageView) -> Scene:
    panels = [] if view.surface is None else [map_panel(view.surface)]
    panels += [curves_panel(curves) for curves in view.curves]
    return Scene(view.page, view.title, view.headline, panels, entries(styles_of(view.pair)))
