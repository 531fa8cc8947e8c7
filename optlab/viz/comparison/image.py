"""Static images of races, drawn by matplotlib from the same views as the figures.

A saved notebook shows them where no JavaScript runs: on a code host, in a PDF, in print. They use
no pyplot and set every font and color, so that a user's settings and open windows have no effect
and are not affected.
"""

from __future__ import annotations

from optlab.viz.backends.matplotlib.panels import draw_accuracies, draw_curves, draw_map
from optlab.viz.backends.matplotlib.parts import as_png, blank_figure, draw_page, panel_axes
from optlab.viz.comparison.page import curves_page, race_page
from optlab.viz.protocols import ComparisonLike
from optlab.viz.style import layout
from optlab.viz.style.labels import labeled
from optlab.viz.views.curve_view import accuracy_view, loss_view
from optlab.viz.views.map_view import has_map, map_view


@layout.documented
def race_png(
    comparison: ComparisonLike,
    *,
    width: int = layout.WIDTH,
    height: int = layout.HEIGHT,
    scale: float = 1.0,
) -> bytes:
    r"""Draw a race as a PNG image.

    Parameters
    ----------
    comparison : Comparison
        The result of `optlab.compare`.

    Examples
    --------
    >>> import optlab as ol
    >>> race_png(ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=20))[:4]
    b'\x89PNG'
    """
    comparison = labeled(comparison)
    accuracies = accuracy_view(comparison)
    no_map = not has_map(comparison.problem)
    alone = no_map and accuracies is None
    page = (curves_page if alone else race_page)(comparison, width, height)
    figure = blank_figure(page.width, page.height)
    draw_page(figure, page, comparison)
    first = page.panels[0]
    if no_map:
        draw_curves(panel_axes(figure, page, 0), loss_view(comparison, first.width, first.height))
        if accuracies is not None:
            draw_accuracies(panel_axes(figure, page, 1), accuracies)
    else:
        beside = page.panels[1]
        view = map_view(comparison.problem, comparison, first.width, first.height)
        draw_map(panel_axes(figure, page, 0), view)
        draw_curves(panel_axes(figure, page, 1), loss_view(comparison, beside.width, beside.height))
    return as_png(figure, scale)
