"""Basins of attraction, as a figure and as their static image."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.panels import list_panel
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Axis, HeatMap, Mark, Marker, Panel, Points, Scene
from optlab.viz.style import layout, theme
from optlab.viz.sweeps.attraction_view import AttractionView, attraction_view

WIDTH, HEIGHT = 860, 500
_ROWS = 10
_STAR = 13.0


@layout.documented
def basins(found: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw which minimum each start reaches, paler where it takes longer.

    Parameters
    ----------
    found : Basins
        The result of `optlab.basins`.

    Examples
    --------
    >>> import optlab as ol
    >>> figure = basins(ol.basins("himmelblau", ol.optimizer.SGD(0.01), grid=10, steps=50))
    >>> figure.layout.title.text
    '<b>Where SGD ends on Himmelblau</b>'
    """
    return draw(_scene(attraction_view(found, width, height)))


@layout.documented
def basins_png(
    found: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw basins of attraction as a PNG image.

    Parameters
    ----------
    found : Basins
        The result of `optlab.basins`.

    Examples
    --------
    >>> import optlab as ol
    >>> basins_png(ol.basins("booth", ol.optimizer.SGD(0.01), grid=10, steps=50))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(attraction_view(found, width, height)), scale)


def _scene(view: AttractionView) -> Scene:
    count = len(view.colors)
    star = Marker("star", _STAR if len(view.minima) <= 20 else 7.0, theme.PAPER, theme.INK, 1.2)
    hover = "from x %{x:.3g}" + (", y %{y:.3g}" if view.flat else "") + "<br>%{text}"
    starts: Mark
    if view.flat:
        up = Axis(*_span(view.y), name="y")
        starts = HeatMap(
            view.x, view.y, view.codes, -0.5, count - 0.5, view.colors, hover=hover, tips=view.tips
        )
    else:
        margin = 0.06 * float(np.ptp(view.y))
        up = Axis(float(view.y.min()) - margin, float(view.y.max()) + margin, name="f")
        faces = [view.colors[code] for code in view.codes.tolist()]
        dot = Marker("circle", 5, theme.INK)
        starts = Points(view.x, view.y, dot, hover, tips=view.tips, faces=faces)
    minima = Points(view.minima[:, 0], view.minima[:, 1], star, "minimum<br>%{x:.4g}, %{y:.4g}")
    frame: Any = {"frame": "box" if view.flat else "open", "equal": view.flat}
    rows = [(row.text, row.said, row.part, theme.Area(row.color, "")) for row in view.rows]
    return Scene(view.page, view.title, view.headline, [
        Panel(Axis(*_span(view.x), name="x"), up, [starts, minima], "Starts", view.note, **frame),
        list_panel(rows, _ROWS, 0.55, "Where they end", "share, median steps"),
    ])  # fmt: skip


def _span(values: Any) -> tuple[float, float]:
    half = (values[-1] - values[0]) / (len(values) - 1) / 2
    return float(values[0] - half), float(values[-1] + half)
