"""Scores over seeds as bands, beside the performance profiles of the times to target."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import (
    Axis,
    Band,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Rule,
    Scene,
    Text,
    end_marker,
    entries,
    pen_of,
)
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import escaped
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_number, join_names
from optlab.viz.style.theme import Style

WIDTH, HEIGHT = 900, 460
By = Literal["gradients", "seconds"]


@layout.documented
def fair_comparison(
    result: Any, *, problem: str | None = None, budget: int | None = None, by: By = "gradients",
    tuning: bool = False, width: int = WIDTH, height: int = HEIGHT,
) -> go.Figure:  # fmt: skip
    """Draw the scores of a fair comparison as bands over seeds, and performance profiles.

    A line is the median of the seeds, its band reaches from the lowest to the highest. Hollow marks
    are the ends of runs with lower budgets. The performance profiles beside it (Dolan and More
    2002) are over all problems and seeds: the share on which an optimizer reaches the target at no
    more than so many times the cost of the best one. Where a problem states no target, the last
    scores stand there.

    Parameters
    ----------
    result : FairComparison
        The result of `optlab.compare` with seeds, budgets or trials, or on a recipe.
    problem : str, optional
        The problem of the bands; by default the first.
    budget : int, optional
        By default the largest.
    by : {"gradients", "seconds"}
        The cost in the profiles.
    tuning : bool
        Whether the profiles count the trials, too.

    Examples
    --------
    >>> import optlab as ol
    >>> rules = {"SGD": ol.optimizer.SGD(0.5), "Adam": ol.optimizer.Adam(0.05)}
    >>> fair = ol.compare(ol.lab.recipe("moons"), rules, steps=50, seeds=2)
    >>> fair_comparison(fair).layout.title.text
    '<b>Two moons, 2-32-32-2</b>'
    """
    return draw(_scene(result, problem, budget, by, tuning, width, height))


@layout.documented
def fair_comparison_png(
    result: Any, *, problem: str | None = None, budget: int | None = None, by: By = "gradients",
    tuning: bool = False, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0,
) -> bytes:  # fmt: skip
    r"""Draw the scores of a fair comparison, and performance profiles, as a PNG image.

    Parameters
    ----------
    result, problem, budget, by, tuning
        As for `fair_comparison`.

    Examples
    --------
    >>> import optlab as ol
    >>> rules = {"SGD": ol.optimizer.SGD(0.5), "Adam": ol.optimizer.Adam(0.05)}
    >>> fair = ol.compare(ol.lab.recipe("moons"), rules, steps=20, seeds=2)
    >>> fair_comparison_png(fair)[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(result, problem, budget, by, tuning, width, height), scale)


def styles_of(result: Any) -> dict[str, Style]:
    """Return the style of each optimizer, by its rule where its name is one."""
    return theme.assign_styles({name: name for name in result.optimizers})


def conditions(result: Any) -> str:
    """Return what was the same for all, and what tuning took."""
    seeds = f"{len(result.seeds)} seeds" if len(result.seeds) > 1 else f"Seed {result.seeds[0]}"
    if not result.trials:
        return f"{seeds}; settings as given, not tuned."
    costs = [f"{name} {result.tuning_cost(name, by='seconds'):.3g} s" for name in result.optimizers]
    return (
        f"{seeds}. Settings: the best of {result.trials} for each, tried for "
        f"{result.trial_steps:,} gradients on examples split off, with another seed. Tuning took: "
        f"{', '.join(costs)}."
    )


def _scene(
    result: Any, problem: str | None, budget: int | None, by: By, tuning: bool, width: int,
    height: int,
) -> Scene:  # fmt: skip
    refuse_runs(
        result,
        "fair_comparison",
        "its bands are over seeds. Give ol.compare(problem, optimizers, seeds=5).",
        has="problems",
    )
    of, most = result._place(problem, budget)
    what, styles = result.problems[of], styles_of(result)
    targets = all(one.target is not None for one in result.problems.values())
    # Of an interrupted comparison, there may be nothing yet that all have run.
    targets = targets and any(
        all((of, name, most, seed) in result.runs for name in styles)
        for of in result.problems for seed in result.seeds
    )  # fmt: skip
    page = layout.page(
        width, height, names=list(styles), note=conditions(result), shares=[1.15, 1],
        rooms=[66, 16], headed=True,
    )  # fmt: skip
    panels = [_bands(result, of, most, styles)]
    panels.append(_profiles(result, most, by, tuning, styles) if targets
                  else _ends(result, of, most, styles))  # fmt: skip
    return Scene(page, what.title, _headline(result, of, most), panels, entries(styles))


def _headline(result: Any, of: str, most: int) -> str:
    """Return who ends best, and whether ranges tell it from the next."""
    what = result.problems[of]
    known = {name: result.scores(name, of, most) for name in result.optimizers}
    known = {
        name: scores for name, scores in known.items() if len(scores) and np.isfinite(scores).all()
    }
    if not known:
        return f"{most:,} gradients: every run ended early."
    order = sorted(known, key=lambda name: float(np.median(known[name])), reverse=what.higher)
    best = order[0]
    said = f"{most:,} gradients: {best} ends at {format_number(float(np.median(known[best])))}"
    near = [
        name for name in order[1:]
        if known[name].max() >= known[best].min() and known[name].min() <= known[best].max()
    ]  # fmt: skip
    if len(order) > 1 and len(result.seeds) > 1:
        said += (
            f"; the ranges of {join_names(near, 40)} overlap with it" if near
            else "; no other range overlaps with it"
        )  # fmt: skip
    return f"{said}."


def _bands(result: Any, of: str, most: int, styles: dict[str, Style]) -> Panel:
    what = result.problems[of]
    bands: list[Mark] = []
    lines: list[Mark] = []
    values: list[Floats] = []
    for name, style in styles.items():
        band = result.band(name, of, most)
        hover = f"<b>{escaped(name)}</b> after %{{x:,d}} gradients<br>median %{{y:.4g}}"
        if len(band.gradients):
            x = band.gradients.astype(float)
            values += [band.low, band.high]
            if len(result.seeds) > 1:
                bands.append(Band(x, band.low, band.high, style.color, group=name))
            lines += [
                Line(x, band.middle, pen_of(style), hover, group=name),
                Points(x[-1:], band.middle[-1:], end_marker(style), group=name, clip=False),
            ]
        for lower in (one for one in result.budgets if one < most):
            scores = result.scores(name, of, lower)
            if np.isfinite(scores).any():
                middle = float(np.nanmedian(scores))
                values.append(np.array([middle]))
                lines.append(
                    Points([float(lower)], [middle], end_marker(style, hollow=True),
                           f"<b>{escaped(name)}</b>, a budget of {lower:,}<br>median %{{y:.4g}}",
                           group=name)
                )  # fmt: skip
    axis, logarithmic = _axis(values, what.higher, what.target)
    marks = bands + lines
    if what.target is not None:
        marks.insert(0, Rule("y", what.target, Pen(theme.QUIET, 1.2, (5, 4)), below=True))
        marks.append(
            Text(float(most), what.target, f"target {what.target:g}", theme.QUIET,
                 theme.FONT_SMALL, "right", "bottom", (-2, 3))
        )  # fmt: skip
    heading = what.measure[:1].upper() + what.measure[1:]
    heading = heading if len(heading) <= 34 else "Score"
    return Panel(
        Axis(0.0, float(most), name="gradients", whole=True, count=4), axis, marks, heading,
        "log scale" if logarithmic else "",
    )  # fmt: skip


def _axis(values: list[Floats], higher: bool, target: float | None) -> tuple[Axis, bool]:
    known = np.concatenate([v[np.isfinite(v)] for v in values] or [np.zeros(0)])
    if target is not None:
        known = np.append(known, target)
    if not len(known):
        return Axis(0.0, 1.0, grid=True), False
    if not higher:
        positive = known[known > 0]
        if len(positive) and known.max() > 20 * positive.min():
            low, high = np.log10([max(positive.min(), 1e-18 * known.max()), known.max()])
            room = 0.05 * float(high - low)
            return Axis(float(low) - room, float(high) + room, "log", grid=True), True
    low, high = float(known.min()), float(known.max())
    if higher and len(known) > 4:  # what the first steps do is not worth half of the picture
        low = min(float(np.quantile(known, 0.15)), float(target if target is not None else high))
    room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return Axis(low - room, high + room, grid=True), False


def _profiles(
    result: Any, budget: int, by: By, tuning: bool, styles: dict[str, Style]
) -> Panel:  # fmt: skip
    found = result.profile(by, budget, tuning)
    last = max(float(found.factors[-1]) * 1.15, 1.3)
    marks: list[Mark] = []
    for name, style in styles.items():
        share = found.shares[name]
        # Right-continuous steps: up at the factor, then across.
        x = np.append(np.repeat(found.factors, 2)[1:], last)
        y = np.repeat(share, 2)
        hover = f"<b>{escaped(name)}</b>: %{{y:.0%}} within %{{x:.3g}} times the best"
        marks += [
            Line(x, y, pen_of(style), hover, group=name),
            Points([last], [float(share[-1])], end_marker(style), group=name, clip=False),
        ]
    counted = {"gradients": "gradients", "seconds": "seconds"}[by]
    said = f"{counted} to target, over the best" + (", tuning included" if tuning else "")
    ticks = [(k / 4, f"{25 * k} %") for k in range(5)]
    return Panel(
        Axis(0.0, float(np.log10(last)), "log", name="factor"),
        Axis(-0.02, 1.04, ticks=ticks, grid=True), marks,
        f"Share of {found.problems} runs", said,
    )  # fmt: skip


def _ends(result: Any, of: str, most: int, styles: dict[str, Style]) -> Panel:
    """Return the last scores of each optimizer, where no target gives times."""
    what = result.problems[of]
    marks: list[Mark] = []
    values: list[Floats] = []
    for row, (name, style) in enumerate(styles.items()):
        scores = result.scores(name, of, most)
        known = scores[np.isfinite(scores)]
        values.append(known)
        if len(known):
            marks += [
                Line([float(known.min()), float(known.max())], [row, row], Pen(style.color, 2.0),
                     group=name),
                Points(known, np.full(len(known), float(row)),
                       Marker(style.marker, 5, theme.PAPER, style.color, 1.2),
                       f"<b>{escaped(name)}</b> %{{x:.4g}}", group=name),
                Points([float(np.median(known))], [float(row)], end_marker(style), group=name),
            ]  # fmt: skip
    axis, _ = _axis(values, what.higher, None)
    names = [(float(row), name) for row, name in enumerate(styles)]
    return Panel(axis, Axis(len(names) - 0.5, -0.5, ticks=names, loud=True), marks, "Last scores",
                 "median, and every seed", frame="below")  # fmt: skip
