"""What tuning costs: the score of every trial, and its seconds beside those of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import (
    Axis,
    Bars,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Scene,
    Text,
    end_marker,
    entries,
)
from optlab.viz.fair_comparisons.figure import styles_of
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import escaped
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.theme import Style

WIDTH, HEIGHT = 900, 440


@layout.documented
def tuning(
    result: Any, *, problem: str | None = None, setting: str = "learning_rate", width: int = WIDTH,
    height: int = HEIGHT,
) -> go.Figure:  # fmt: skip
    """Draw the trials of a fair comparison, and what they cost beside one run.

    Parameters
    ----------
    result : FairComparison
        The result of `optlab.compare` with trials.
    problem : str, optional
        By default the first.
    setting : str
        What the trials are drawn over.

    Raises
    ------
    ValueError
        If nothing was tuned, or not this setting.

    Examples
    --------
    >>> import optlab as ol
    >>> rules = {"SGD": ol.optimizer.SGD, "Adam": ol.optimizer.Adam}
    >>> fair = ol.compare(ol.lab.recipe("moons"), rules, steps=50, trials=4)
    >>> tuning(fair).layout.title.text
    '<b>What tuning found, and what it cost</b>'
    """
    return draw(_scene(result, problem, setting, width, height))


@layout.documented
def tuning_png(
    result: Any, *, problem: str | None = None, setting: str = "learning_rate", width: int = WIDTH,
    height: int = HEIGHT, scale: float = 1.0,
) -> bytes:  # fmt: skip
    r"""Draw the trials of a fair comparison, and what they cost, as a PNG image.

    Parameters
    ----------
    result, problem, setting
        As for `tuning`.

    Examples
    --------
    >>> import optlab as ol
    >>> rules = {"SGD": ol.optimizer.SGD, "Adam": ol.optimizer.Adam}
    >>> fair = ol.compare(ol.lab.recipe("moons"), rules, steps=20, trials=3)
    >>> tuning_png(fair)[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(result, problem, setting, width, height), scale)


def _scene(result: Any, problem: str | None, setting: str, width: int, height: int) -> Scene:
    needs = "a run has no trials. Give ol.compare(problem, optimizers, trials=8)."
    refuse_runs(result, "tuning", needs, has="trials")
    of, _ = result._place(problem, None)
    if not result.trials:
        raise ValueError("nothing was tuned: give ol.compare trials=8.")
    styles = styles_of(result)
    trials = {
        name: [t for (p, n, _), t in result.tried.items() if (p, n) == (of, name)]
        for name in result.optimizers
    }
    numbers = [t.settings.get(setting) for row in trials.values() for t in row]
    if not any(isinstance(value, (int, float)) for value in numbers):
        tuned = ", ".join(
            dict.fromkeys(s for row in trials.values() for t in row for s in t.settings)
        )
        raise ValueError(f"no trial has a number {setting!r}; tuned were {tuned}.")
    longest = max(layout.text_width(name, theme.FONT_TEXT) for name in styles)
    seeds = f"{len(result.seeds)} seeds" if len(result.seeds) > 1 else "one seed"
    note = (
        f"{result.trials} trials for each optimizer, {result.trial_steps:,} gradients each, judged "
        "on examples split off, with a seed that is not compared. Large marks: what was chosen."
    )
    page = layout.page(
        width, height, names=list(styles), note=note, shares=[1.2, 1], rooms=[70 + longest, 70],
        headed=True,
    )  # fmt: skip
    panels = [_trials(result, of, setting, trials, styles), _costs(result, of, seeds, styles)]
    what = result.problems[of]
    return Scene(page, "What tuning found, and what it cost", f"{what.title}.", panels,
                 entries(styles))  # fmt: skip


def _trials(
    result: Any, of: str, setting: str, trials: dict[str, list[Any]], styles: dict[str, Style]
) -> Panel:
    what = result.problems[of]
    marks: list[Mark] = []
    values: list[Floats] = []
    places: list[Floats] = []
    ended = 0
    for name, row in trials.items():
        style = styles[name]
        pairs = [(t.settings[setting], t.run.score) for t in row
                 if isinstance(t.settings.get(setting), (int, float))]  # fmt: skip
        ended += sum(not np.isfinite(score) for _, score in pairs)
        kept = np.array([pair for pair in pairs if np.isfinite(pair[1])], float).reshape(-1, 2)
        kept = kept[np.argsort(kept[:, 0])]
        if not len(kept):
            continue
        places.append(kept[:, 0])
        values.append(kept[:, 1])
        hover = f"<b>{escaped(name)}</b>, {escaped(setting)} %{{x:.3g}}<br>%{{y:.4g}}"
        if len(row[0].settings) == 1:  # of several settings, points of one line differ in others
            marks.append(Line(kept[:, 0], kept[:, 1], Pen(style.color, 1.0, style.dash, 0.55),
                              group=name))  # fmt: skip
        marks.append(
            Points(kept[:, 0], kept[:, 1], Marker(style.marker, 5, style.color), hover, group=name)
        )
        chosen = result.settings[of, name]
        at = next((t.run.score for t in row if t.settings == chosen), np.nan)
        if np.isfinite(at):
            marks.append(Points([chosen[setting]], [at], end_marker(style, size=11), group=name))
    x = np.log10(np.concatenate(places)) if places else np.array([-4.0, 0.0])
    room = 0.06 * float(np.ptp(x)) or 0.5
    y = np.concatenate(values) if values else np.array([0.0, 1.0])
    logarithmic = not what.higher and y.min() > 0 and y.max() > 20 * y.min()
    bounds = np.log10([y.min(), y.max()]) if logarithmic else np.array([y.min(), y.max()])
    high = 0.08 * float(np.ptp(bounds)) or 0.1
    words = setting.replace("_", " ")
    said = f"over the {words}" + (", log scale" if logarithmic else "")
    said += f"; {ended} diverged" if ended else ""
    heading = what.measure[:1].upper() + what.measure[1:] if len(what.measure) < 34 else "Score"
    return Panel(
        Axis(float(x.min()) - room, float(x.max()) + room, "log"),
        Axis(float(bounds[0]) - high, float(bounds[1]) + high, "log" if logarithmic else "linear",
             grid=True), marks, heading, said,
    )  # fmt: skip


def _costs(result: Any, of: str, seeds: str, styles: dict[str, Style]) -> Panel:
    """Return bars: seconds of tuning, and paler behind them those of all runs compared."""
    marks: list[Mark] = []
    most = 0.0
    for row, (name, style) in enumerate(styles.items()):
        tuned = result.tuning_cost(name, of, "seconds")
        trained = sum(
            run.seconds for (p, n, budget, _), run in result.runs.items()
            if (p, n, budget) == (of, name, result.budgets[-1])
        )  # fmt: skip
        most = max(most, tuned, trained)
        pale = theme.Area(theme.paled(style.color, 0.6), "")
        marks += [
            Bars([tuned], [row - 0.19], 0.3, [theme.Area(style.color, "")]),
            Bars([trained], [row + 0.19], 0.3, [pale]),
            Text(tuned, row - 0.19, f"{tuned:.3g} s", theme.INK, theme.FONT_SMALL, "left",
                 shift=(4, 0)),
            Text(trained, row + 0.19, f"{trained:.3g} s", theme.QUIET, theme.FONT_SMALL, "left",
                 shift=(4, 0)),
        ]  # fmt: skip
    names = [(float(row), name) for row, name in enumerate(styles)]
    return Panel(
        Axis(0.0, most or 1.0, numbers=False), Axis(len(names) - 0.5, -0.5, ticks=names, loud=True),
        marks, "Seconds of tuning", f"pale: of the runs, {seeds}", frame="left",
    )  # fmt: skip
