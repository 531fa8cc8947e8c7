"""The static image of the explorer, drawn by matplotlib from the same model."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.panels import curves_panel, map_panel
from optlab.viz.backends.scene import (
    Axis,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Scene,
    end_marker,
    entries,
    pen_of,
)
from optlab.viz.comparison.image import race_png
from optlab.viz.comparison.page import race_page
from optlab.viz.explorer.apart_image import apart_png
from optlab.viz.explorer.curve import curve_view
from optlab.viz.explorer.model import Model
from optlab.viz.explorer.presets import PLACES
from optlab.viz.explorer.runs import Runs
from optlab.viz.landscapes.plane import landscape_png
from optlab.viz.style import theme
from optlab.viz.style.geometry import clip_line, simplify
from optlab.viz.style.text import race_headline
from optlab.viz.views.curve_view import loss_view
from optlab.viz.views.map_view import MapView, map_view, styles_of

_BOLD, _DOT = 3.0, 6.0  # pixels, of averaged weights
_ACROSS, _DOT_APART = 600, 9  # pixels: approximate width of a map, and least distance of dots


def explorer_png(model: Model, width: int = 1300) -> bytes:
    """Draw the current state of a model as a PNG image: paths and losses, or one step."""
    height = round(width * 0.5)
    if model.network:
        plane = getattr(model.problem, "landscape", None)
        if plane is not None:
            return landscape_png(plane, width=width, height=height)
        return race_png(model.problem, width=width, height=height)
    if model.state.view == "apart":
        return apart_png(model, width, height)
    race = as_comparison(model)
    page = race_page(race, width, height)
    first, second = page.panels
    if len(model.start) == 1:
        drawn = _curve(model)
    else:
        jumps, places = as_comparison(model, jumps=True), PLACES.get(model.state.problem, ())
        view = map_view(race.problem, jumps, first.width, first.height, places)
        drawn = map_panel(with_averaged_paths(view, model))
    losses = curves_panel(loss_view(race, second.width, second.height))
    title, legend = race.problem.title, entries(styles_of(race))
    # The sentence of an example stands here, too, while it is true of what is drawn.
    claim, true = model.claim or ("", False)
    headline = claim if true else race_headline(race)
    return draw_png(Scene(page, title, headline, [drawn, losses], legend))


def as_comparison(model: Model, *, jumps: bool = False) -> Any:
    """Return the display of a model as a `ComparisonLike`, which the figures can draw.

    With `jumps`, a path contains the weights before LookAhead pulled them back, too.
    """
    traces, final = {}, {}
    for entry in model.state.optimizers:
        runs, i = model.runs[entry.name], model.rate_index(entry.name)
        assert runs.point is not None
        stopped = int(runs.stopped[i])
        taken = model.state.steps if stopped < 0 else stopped
        path, order = runs.point[i, : taken + 1], np.arange(taken + 1)
        if jumps and "synchronised" in runs.terms:
            order = np.repeat(order, np.append(1, 1 + _synchronised(runs, i, taken)))
            path = path[order]
            before = np.flatnonzero(np.diff(order) == 0)
            path[before] = runs.terms["fast"][i, order[before] - 1]
        around = {name: value for name, value in entry.around.items() if name != "kind"}
        if around:
            outer = "class" if entry.around["kind"] == "LookAhead" else "average"
            around |= {outer: entry.around["kind"], "inner_optimizer": entry.kind}
        traces[entry.name] = SimpleNamespace(
            name=entry.name,
            step=np.arange(1, taken + 1),
            loss=runs.loss[i, order[:-1]],
            taken=order.astype(np.float64),
            learning_rate=np.full(taken, runs.rates[i]),
            parameters={"point": path},
            settings={"class": entry.kind, "learning_rate": runs.rates[i]} | around,
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
        styles=model.styles,
    )


def _synchronised(runs: Runs, i: int, taken: int) -> NDArray[np.bool_]:
    """Return for each step whether LookAhead synchronized fast and slow weights."""
    found: NDArray[np.bool_] = runs.terms["synchronised"][i, :taken, 0] > 0
    return found


def with_averaged_paths(view: MapView, model: Model) -> MapView:
    """Add the paths of slow weights, with a dot at each synchronization, and of averages."""
    paths, said = [], set()
    pixel = view.box.width / _ACROSS
    for path in view.paths:
        paths.append(path)
        runs, i = model.runs[path.name], model.rate_index(path.name)
        slow = "slow" in runs.terms
        if not slow and "average" not in runs.terms:
            continue
        assert runs.point is not None
        stopped = int(runs.stopped[i])
        taken = model.state.steps if stopped < 0 else stopped
        follow = runs.terms["slow" if slow else "average"][i, :taken]
        if slow:
            follow = follow[_synchronised(runs, i, taken)]
        follow = np.concatenate([runs.point[i, :1], follow])
        x, y = simplify(*clip_line(follow[:, 0], follow[:, 1], view.box), 0.4 * pixel)
        seen = view.box.holds(follow[:, 0], follow[:, 1])
        apart = np.hypot(*np.diff(follow[seen], axis=0, prepend=np.inf).T) > _DOT_APART * pixel
        paths.append(
            replace(
                path,
                style=replace(path.style, dash=()),
                x=x,
                y=y,
                step_x=follow[seen, 0],
                step_y=follow[seen, 1],
                dotted=apart & slow,
                end=None,
                leaves=None,
                width=_BOLD,
                dot=_DOT,
            )
        )
        said.add("slow weights" if slow else "averages")
    if not said:
        return view
    note = f"{view.note}; bold: {', '.join(sorted(said))}"
    return replace(view, paths=tuple(paths), note=note)


def _curve(model: Model) -> Panel:
    """Return a problem of one variable: its curve, with the points visited."""
    surface_map = model.surface_map
    box, curve = surface_map.box, surface_map.curve
    assert curve is not None
    marks: list[Mark] = [Line(curve[:, 0], curve[:, 1], Pen(theme.QUIET))]
    for name, runs in model.runs.items():
        i, style = model.rate_index(name), model.styles[name]
        assert runs.point is not None
        x, y = runs.point[i, :, 0], runs.loss[i]
        seen = box.holds(x, y)
        pen = pen_of(style, 1.4)
        marks.append(Line(np.where(seen, x, np.nan), np.where(seen, y, np.nan), pen))
        visited = np.flatnonzero(seen)
        if len(visited):
            last = visited[-1:]
            marks.append(Points(x[last], y[last], end_marker(style), clip=False))
    lowest = np.array(curve_view(model.problem).marked).reshape(-1, 2)
    if len(lowest):
        star = Marker("star", theme.MINIMUM_SIZE, theme.INK, theme.PAPER, 1)
        marks.append(Points(lowest[:, 0], lowest[:, 1], star))
    across, up = Axis(box.x_low, box.x_high, name="x"), Axis(box.y_low, box.y_high, name="loss")
    return Panel(across, up, marks, "Curve", surface_map.note)
