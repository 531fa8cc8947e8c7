"""LookAhead and averages: the weights that move, and those that follow, as figure and twin."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from optlab.viz import layout
from optlab.viz.matplotlib_panels import draw_curves as draw_static_curves
from optlab.viz.matplotlib_panels import draw_map as draw_static_map
from optlab.viz.matplotlib_parts import as_png, blank_figure, panel_axes, write_page
from optlab.viz.plotly_panels import draw_curves, draw_map
from optlab.viz.plotly_parts import add_entries, empty_figure
from optlab.viz.views import styles_of
from optlab.viz.weights import AVERAGE, LOOKAHEAD, Picture, picture_of


def lookahead(
    trace: Any, *, note: str = "", width: int = layout.WIDTH, height: int = layout.HEIGHT
) -> go.Figure:
    """Draw a run of LookAhead: fast weights, slow weights, and where they synchronised.

    On a surface of two coordinates: both paths over the map, the fast one thin, with its jumps
    back, the slow one bold, with a dot at each synchronisation; beside it the losses of both.
    Elsewhere: the loss over the steps, and how far the fast weights are ahead of the slow ones.

    Parameters
    ----------
    trace : Trace
        A recorded run of a `LookAhead`: ``race["name"]`` of a comparison brings its map along.
    note : str
        More to say under the figure: how rate, alpha and k were chosen.
    width, height : int
        Size in pixels.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError, ValueError
        If it is no trace, or nothing of a LookAhead was recorded in it.

    Examples
    --------
    >>> import optlab as ol
    >>> slow = ol.optimizer.LookAhead(ol.optimizer.SGD(2e-4), alpha=0.5, k=5)
    >>> race = ol.compare("rosenbrock", {"LookAhead": slow}, steps=20)
    >>> lookahead(race["LookAhead"]).layout.title.text
    '<b>LookAhead around SGD on Rosenbrock valley</b>'
    """
    return _figure(picture_of(trace, LOOKAHEAD, note, width, height))


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
    width, height : int
        Size in pixels, as of the interactive figure.
    scale : float
        Pixels of the image for each of these: 2 for print and for fine screens.

    Returns
    -------
    bytes
        The file's content.

    Examples
    --------
    >>> import optlab as ol
    >>> slow = ol.optimizer.LookAhead(ol.optimizer.SGD(2e-4))
    >>> lookahead_png(ol.compare("rosenbrock", {"slow": slow}, steps=20)["slow"])[:4]
    b'\x89PNG'
    """
    return _png(picture_of(trace, LOOKAHEAD, note, width, height), scale)


def averages(
    trace: Any, *, note: str = "", width: int = layout.WIDTH, height: int = layout.HEIGHT
) -> go.Figure:
    """Draw a run whose weights are averaged: the weights, and the average that `apply` would give.

    On a surface of two coordinates: both paths over the map, the average bold; beside it the losses
    of both. Elsewhere: the loss over the steps, and how far the weights are from their average.

    Parameters
    ----------
    trace : Trace
        A recorded run of ``ExponentialMovingAverage.around(...)`` or ``ModelAverage.around(...)``.
    note : str
        More to say under the figure: how rate and decay were chosen.
    width, height : int
        Size in pixels.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError, ValueError
        If it is no trace, or no average was recorded in it.

    Examples
    --------
    >>> import optlab as ol
    >>> EMA = ol.optimizer.ExponentialMovingAverage
    >>> smooth = EMA.around(ol.optimizer.SGD(2e-4), decay=0.9)
    >>> figure = averages(ol.compare("rosenbrock", {"EMA": smooth}, steps=20)["EMA"])
    >>> figure.layout.title.text
    '<b>ExponentialMovingAverage around SGD on Rosenbrock valley</b>'
    """
    return _figure(picture_of(trace, AVERAGE, note, width, height))


def averages_png(
    trace: Any,
    *,
    note: str = "",
    width: int = layout.WIDTH,
    height: int = layout.HEIGHT,
    scale: float = 1.0,
) -> bytes:
    """Draw a run whose weights are averaged as a PNG image; arguments as of `lookahead_png`."""
    return _png(picture_of(trace, AVERAGE, note, width, height), scale)


def _figure(picture: Picture) -> go.Figure:
    page = picture.page
    figure = empty_figure(page, picture.title, picture.headline)
    add_entries(figure, styles_of(picture.pair))
    if picture.land is not None:
        draw_map(figure, picture.land, page, 0)
    for at, view in enumerate(picture.curves, picture.land is not None):
        draw_curves(figure, view, page, at)
    return figure


def _png(picture: Picture, scale: float) -> bytes:
    page = picture.page
    figure = blank_figure(page.width, page.height)
    write_page(figure, page, picture.title, picture.headline, styles_of(picture.pair))
    if picture.land is not None:
        draw_static_map(panel_axes(figure, page, 0), picture.land)
    for at, view in enumerate(picture.curves, picture.land is not None):
        draw_static_curves(panel_axes(figure, page, at), view)
    return as_png(figure, scale)
