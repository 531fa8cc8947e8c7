"""The explorer's PNG twin, drawn by matplotlib from the same model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from optlab.viz import theme
from optlab.viz.explorer.model import Model
from optlab.viz.matplotlib_panels import draw_curves, draw_map, end_marker
from optlab.viz.matplotlib_parts import (
    PIXEL,
    add_heading,
    blank,
    draw_page,
    line_pen,
    panel_axes,
    put_mark,
    style_ticks,
)
from optlab.viz.pages import race_page
from optlab.viz.pictures import as_png, race_png
from optlab.viz.series import loss_view
from optlab.viz.views import Mark, map_view


def picture(model: Model, width: int = 1300) -> bytes:
    """Draw the paths and losses of a model's present state as a PNG image."""
    height = round(width * 0.5)
    if model.network:
        return race_png(model.problem, width=width, height=height)
    race = as_comparison(model)
    page = race_page(race, width, height)
    figure = blank(width, height)
    draw_page(figure, page, race)
    first, second = page.panels
    if len(model.start) == 1:
        _draw_curve(panel_axes(figure, page, 0), model)
    else:
        draw_map(
            panel_axes(figure, page, 0), map_view(race.problem, race, first.width, first.height)
        )
    draw_curves(panel_axes(figure, page, 1), loss_view(race, second.width, second.height))
    return as_png(figure, 1.0)


def as_comparison(model: Model) -> Any:
    """Give what a model shows as a comparison, which the house's figures can draw."""
    traces, final = {}, {}
    for entry in model.state.optimizers:
        runs, i = model.runs[entry.name], model.rate_index(entry.name)
        assert runs.point is not None
        stopped = int(runs.stopped[i])
        taken = model.state.steps if stopped < 0 else stopped
        traces[entry.name] = SimpleNamespace(
            name=entry.name,
            step=np.arange(1, taken + 1),
            loss=runs.loss[i, :taken],
            learning_rate=np.full(taken, runs.rates[i]),
            parameters={"point": runs.point[i, : taken + 1]},
            settings={"class": entry.kind, "learning_rate": runs.rates[i]},
            stopped=runs.why[i] or None,
        )
        final[entry.name] = float(runs.loss[i, taken])
    return SimpleNamespace(
        problem=model.problem,
        traces=traces,
        steps=model.state.steps,
        seed=model.state.seed,
        final_loss=final,
        accuracy={},
    )


def _draw_curve(axes: Axes, model: Model) -> None:
    """Draw a problem of one variable: its curve, with the points that were visited."""
    land = model.land
    assert land.curve is not None
    axes.set(xlim=(land.box.x_low, land.box.x_high), ylim=(land.box.y_low, land.box.y_high))
    style_ticks(axes, "x", "loss")
    add_heading(axes, "Curve", land.note)
    axes.plot(*land.curve.T, color=theme.QUIET, linewidth=2 * PIXEL)
    for at, (name, runs) in enumerate(model.runs.items()):
        i, style = model.rate_index(name), model.styles[name]
        assert runs.point is not None
        x, y = runs.point[i, :, 0], runs.loss[i]
        seen = land.box.holds(x, y)
        axes.plot(np.where(seen, x, np.nan), np.where(seen, y, np.nan), **line_pen(style, 1.4))
        visited = np.flatnonzero(seen)
        if len(visited):
            mark = Mark(float(x[visited[-1]]), float(y[visited[-1]]), "", None)
            put_mark(axes, mark, style.color, 5 + 0.3 * at, **end_marker(style))
