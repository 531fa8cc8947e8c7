"""Interactive figures of a race: map, loss curves, accuracies.

A figure contains its data and has a fixed size: it needs no kernel once drawn. A click on a name in
the legend hides the path and the curve of an optimizer; hovering over a path shows its steps.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from optlab.viz.backends.panels import accuracies_panel, curves_panel, map_panel
from optlab.viz.backends.plotly.draw import CONFIG, draw
from optlab.viz.backends.scene import Panel, Scene, entries
from optlab.viz.comparison.page import curves_page, map_page, race_page
from optlab.viz.protocols import ComparisonLike, ProblemLike
from optlab.viz.style import layout
from optlab.viz.style.labels import labeled, labeled_problem
from optlab.viz.style.layout import Page
from optlab.viz.style.results import (
    check_paths,
    comparison_of,
    is_comparison,
    is_trace,
    traces_of,
)
from optlab.viz.style.text import race_headline
from optlab.viz.views.curve_view import accuracy_view, loss_view
from optlab.viz.views.map_view import has_map, map_view, styles_of

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
    return draw(race_scene(comparison, width, height))


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
    if is_comparison(result):
        comparison = labeled(result)
    elif is_trace(result) or isinstance(result, (dict, list, tuple)):
        check_paths(traces_of(result, "surface_map"), "surface_map")
        comparison = labeled(comparison_of(result, "surface_map"))
    elif isinstance(result, type) or not (hasattr(result, "title") and hasattr(result, "kind")):
        kind = result.__name__ if isinstance(result, type) else type(result).__name__
        raise TypeError(
            "surface_map draws a surface of two coordinates, such as ol.problems.rosenbrock or "
            f"ol.problems.Surface(f), or a race on one, what ol.compare gave; got {kind}."
        )
    problem: ProblemLike = labeled_problem(result) if comparison is None else comparison.problem
    page = map_page(comparison, width, height)
    [panel] = page.panels
    surface = map_panel(map_view(problem, comparison, panel.width, panel.height))
    if comparison is None:
        return draw(Scene(page, problem.title, "", [surface]))
    return draw(_scene(comparison, page, [surface]))


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
    return draw(_losses(labeled(comparison_of(comparison, "loss_curves")), width, height))


def race_scene(comparison: ComparisonLike, width: int, height: int) -> Scene:
    """Return the scene of a race."""
    comparison = labeled(comparison_of(comparison, "race"))
    accuracies = accuracy_view(comparison)
    on_map = has_map(comparison.problem)
    if not on_map and accuracies is None:
        return _losses(comparison, width, height)
    page = race_page(comparison, width, height)
    first, second = page.panels
    if on_map:
        surface = map_view(comparison.problem, comparison, first.width, first.height)
        losses = curves_panel(loss_view(comparison, second.width, second.height))
        return _scene(comparison, page, [map_panel(surface), losses])
    assert accuracies is not None
    losses = curves_panel(loss_view(comparison, first.width, first.height))
    return _scene(comparison, page, [losses, accuracies_panel(accuracies)])


def _losses(comparison: ComparisonLike, width: int, height: int) -> Scene:
    page = curves_page(comparison, width, height)
    [panel] = page.panels
    losses = loss_view(comparison, panel.width, panel.height)
    return _scene(comparison, page, [curves_panel(losses)])


def _scene(comparison: ComparisonLike, page: Page, panels: list[Panel]) -> Scene:
    title, headline = comparison.problem.title, race_headline(comparison)
    return Scene(page, title, headline, panels, entries(styles_of(comparison)))
