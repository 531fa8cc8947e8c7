"""Interactive figures of a race: map, loss curves, accuracies.

A figure contains its data and has a fixed size: it needs no kernel once drawn. A click on a name in
the legend hides the path and the curve of an optimizer; hovering over a path shows its steps.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from optlab.viz.backends.plotly.panels import draw_accuracies, draw_curves, draw_map
from optlab.viz.backends.plotly.parts import CONFIG, add_legend, empty_figure
from optlab.viz.comparison.page import curves_page, map_page, race_page
from optlab.viz.protocols import ComparisonLike, ProblemLike
from optlab.viz.style import layout
from optlab.viz.style.labels import labeled, labeled_problem
from optlab.viz.style.text import race_headline
from optlab.viz.views.curve_view import accuracy_view, loss_view
from optlab.viz.views.map_view import has_map, map_view

__all__ = ["CONFIG", "loss_curves", "race", "surface_map"]


@layout.documented
def race(
    comparison: ComparisonLike, *, width: int = layout.WIDTH, height: int = layout.HEIGHT
) -> go.Figure:
    """Draw a race.

    On a surface: the paths over the map, and the losses over the steps. For a network, which has
    too many parameters for a map: the losses and the held-out accuracies. For a function of one
    variable: the losses.

    Parameters
    ----------
    comparison : Comparison
        The result of `optlab.compare`.
    width, height : int
        Size in pixels; many runs make the figure taller.

    Examples
    --------
    >>> import optlab as ol
    >>> comparison = ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=20)
    >>> race(comparison).layout.width
    1000
    """
    comparison = labeled(comparison, markup=True)
    if comparison.problem.kind == "network":
        return _network_race(comparison, width, height)
    if not has_map(comparison.problem):
        return _loss_curves(comparison, width, height)
    page = race_page(comparison, width, height)
    figure = empty_figure(page, comparison.problem.title, race_headline(comparison))
    add_legend(figure, comparison)
    place, beside = page.panels
    draw_map(figure, map_view(comparison.problem, comparison, place.width, place.height), page, 0)
    draw_curves(figure, loss_view(comparison, beside.width, beside.height), page, 1)
    return figure


@layout.documented
def surface_map(result: Any, *, width: int = 720, height: int = layout.HEIGHT) -> go.Figure:
    """Draw the map of a surface, with the paths of a race if one is given.

    Parameters
    ----------
    result : Comparison or problem
        A race on a surface of two coordinates, or the surface alone.

    Examples
    --------
    >>> import optlab as ol
    >>> figure = surface_map(ol.problems.rosenbrock)
    >>> figure.layout.yaxis.scaleanchor  # equal scales: angles are true
    'x'
    """
    comparison: ComparisonLike | None = None
    if hasattr(result, "traces"):
        comparison = result = labeled(result, markup=True)
    problem: ProblemLike = (
        labeled_problem(result, markup=True) if comparison is None else result.problem
    )
    page = map_page(comparison, width, height)
    headline = "" if comparison is None else race_headline(comparison)
    figure = empty_figure(page, problem.title, headline)
    if comparison is not None:
        add_legend(figure, comparison)
    [panel] = page.panels
    draw_map(figure, map_view(problem, comparison, panel.width, panel.height), page, 0)
    return figure


@layout.documented
def loss_curves(
    comparison: ComparisonLike, *, width: int = 720, height: int = layout.HEIGHT
) -> go.Figure:
    """Draw the losses of a race over its steps.

    Parameters
    ----------
    comparison : Comparison
        The result of `optlab.compare`.

    Examples
    --------
    >>> import optlab as ol
    >>> comparison = ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=20)
    >>> loss_curves(comparison).layout.yaxis.type
    'log'
    """
    return _loss_curves(labeled(comparison, markup=True), width, height)


def _loss_curves(comparison: ComparisonLike, width: int, height: int) -> go.Figure:
    page = curves_page(comparison, width, height)
    figure = empty_figure(page, comparison.problem.title, race_headline(comparison))
    add_legend(figure, comparison)
    [panel] = page.panels
    draw_curves(figure, loss_view(comparison, panel.width, panel.height), page, 0)
    return figure


def _network_race(comparison: ComparisonLike, width: int, height: int) -> go.Figure:
    accuracies = accuracy_view(comparison)
    if accuracies is None:
        return _loss_curves(comparison, width, height)
    page = race_page(comparison, width, height)
    figure = empty_figure(page, comparison.problem.title, race_headline(comparison))
    add_legend(figure, comparison)
    curves = page.panels[0]
    draw_curves(figure, loss_view(comparison, curves.width, curves.height), page, 0)
    draw_accuracies(figure, accuracies, page, 1)
    return figure
