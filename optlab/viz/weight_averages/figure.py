"""LookAhead and averages: moving weights and averaged weights, as figures and static images."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.panels import draw_curves as draw_static_curves
from optlab.viz.backends.matplotlib.panels import draw_map as draw_static_map
from optlab.viz.backends.matplotlib.parts import as_png, blank_figure, panel_axes, write_page
from optlab.viz.backends.plotly.panels import draw_curves, draw_map
from optlab.viz.backends.plotly.parts import add_entries, empty_figure
from optlab.viz.style import layout
from optlab.viz.style.labels import labeled_trace
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
    return _figure(average_view(labeled_trace(trace, markup=True), LOOKAHEAD, note, width, height))


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
    return _png(average_view(labeled_trace(trace), LOOKAHEAD, note, width, height), scale)


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
    return _figure(average_view(labeled_trace(trace, markup=True), AVERAGE, note, width, height))


def averages_png(
    trace: Any,
    *,
    note: str = "",
    width: int = layout.WIDTH,
    height: int = layout.HEIGHT,
    scale: float = 1.0,
) -> bytes:
    """Draw a run with averaged weights as a PNG image; arguments as for `lookahead_png`."""
    return _png(average_view(labeled_trace(trace), AVERAGE, note, width, height), scale)


def _figure(view: AverageView) -> go.Figure:
    page = view.page
    figure = empty_figure(page, view.title, view.headline)
    add_entries(figure, styles_of(view.pair))
    if view.surface is not None:
        draw_map(figure, view.surface, page, 0)
    for at, curves in enumerate(view.curves, view.surface is not None):
        draw_curves(figure, curves, page, at)
    return figure


def _png(view: AverageView, scale: float) -> bytes:
    page = view.page
    figure = blank_figure(page.width, page.height)
    write_page(figure, page, view.title, view.headline, styles_of(view.pair))
    if view.surface is not None:
        draw_static_map(panel_axes(figure, page, 0), view.surface)
    for at, curves in enumerate(view.curves, view.surface is not None):
        draw_static_curves(panel_axes(figure, page, at), curves)
    return as_png(figure, scale)
