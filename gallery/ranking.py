"""Ranking of all optimizers on the same network with the same number of gradients.

The network classifies the handwritten digits of scikit-learn. The learning rate of each optimizer
is chosen by the same procedure: each rate of a ladder is trained for some steps on four fifths of
the training digits and judged by its loss on the last fifth; if the best rate is at an end of the
ladder, rates are added there. The digits held out for the race take no part in the search. All
optimizers then race on all training digits, from three starts, with the same number of gradients.

Run it with ``python gallery/ranking.py``: it takes some minutes and writes ranking.png and
ranking.md, the table, beside this file.
"""

from __future__ import annotations

import inspect
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import optlab as ol
from optlab.lab.evaluation_budget import run_updates
from optlab.optimizer.wrappers import Wrapper

SEARCH_STEPS, SEARCH_SEEDS, WIDEN = 200, (100, 101), 6
STEPS, SEEDS, ROUNDS = 500, (0, 1, 2), 5
BATCH, WHOLE = 32, 1437


class Contestant(NamedTuple):
    """An optimizer in the race."""

    make: Callable[[float], Any]  # from a learning rate to a template
    batch: int = BATCH


def rule(name: str, batch: int = BATCH, **settings: Any) -> Contestant:
    """Return a class of the package as a contestant, with settings beside the learning rate."""
    cls = getattr(ol.optimizer, name)
    return Contestant(lambda rate: cls(rate, **settings), batch)


#: Settings beside the learning rate of classes without a default, or with an uninformative one.
SETTINGS: dict[str, dict[str, Any]] = {
    "ASGD": {"batch_num": 10},
    "LBFGS": {"line_search_fn": "strong_wolfe"},
    "LarsMomentum": {"momentum": 0.9},
}
#: Settings of averages: the defaults are for runs of many thousand steps.
AVERAGES: dict[str, dict[str, Any]] = {
    "ExponentialMovingAverage": {"decay": 0.98},
    "ModelAverage": {
        "average_window_rate": 0.15, "min_average_window": 10, "max_average_window": 100,
    },
}  # fmt: skip
SHORT = {"ExponentialMovingAverage": "EMA"}
#: Beyond the classes: variants with their own names, rules on the batches that they are made for,
#: and wrappers around rules that also race without them.
VARIANTS = {
    "AMSGrad": rule("Adam", amsgrad=True),
    "Nesterov": rule("Momentum", use_nesterov=True),
    "LBFGS, all digits": rule("LBFGS", WHOLE, **SETTINGS["LBFGS"]),
    "Rprop, all digits": rule("Rprop", WHOLE),
    **{
        f"{SHORT.get(average, average)}, {inner}": Contestant(
            lambda r, average=average, inner=inner: getattr(ol.optimizer, average).around(
                getattr(ol.optimizer, inner)(r), **AVERAGES[average]
            )
        )
        for average in AVERAGES
        for inner in ("Adam", "SGD")
    },
    "LookAhead, Adam": Contestant(lambda r: ol.optimizer.LookAhead(ol.optimizer.Adam(r))),
    "LookAhead, SGD": Contestant(lambda r: ol.optimizer.LookAhead(ol.optimizer.SGD(r))),
}


def contestants() -> dict[str, Contestant]:
    """Return every update rule that runs on one rank, and the variants."""
    found = {}
    for name in ol.optimizer.__all__:
        value = getattr(ol.optimizer, name)
        is_rule = inspect.isclass(value) and issubclass(value, ol.optimizer.Optimizer)
        if is_rule and value is not ol.optimizer.Optimizer and not is_elsewhere(value):
            found[name] = rule(name, **SETTINGS.get(name, {}))
    return dict(sorted((found | VARIANTS).items(), key=lambda item: item[0].lower()))


def is_elsewhere(cls: Any) -> bool:
    """Return whether a class has no row of its own.

    A wrapper has no learning rate of its own, and DGCMomentum needs several ranks.
    """
    return issubclass(cls, (Wrapper, ol.optimizer.DGCMomentum))


def choose(
    names: Iterable[str] | None = None,
    rates: Iterable[float] = ol.lab.LADDER,
    steps: int = SEARCH_STEPS,
    widen: int = WIDEN,
) -> dict[str, ol.lab.RateSearch]:
    """Choose the learning rate of each optimizer by the same procedure."""
    known, ladder, chosen = contestants(), list(rates), {}
    for name in names or known:
        chosen[name] = ol.lab.best_rate(
            ol.problems.digits_mlp(batch_size=known[name].batch),
            known[name].make,
            ladder,
            steps=steps,
            seeds=SEARCH_SEEDS,
            widen=widen,
        )
        print(f"{name}: {chosen[name]!r}", flush=True)
    return chosen


class Row(NamedTuple):
    """Results of one optimizer over the seeds."""

    name: str
    rate: float
    loss: list[float]  # on all training data
    accuracy: list[float]  # on the held-out digits
    evaluations: int
    updates: list[int]
    milliseconds: float  # per evaluation, with its share of the update
    slots: float  # bytes per parameter

    @property
    def mean_accuracy(self) -> float:
        """The mean accuracy over the seeds."""
        return statistics.fmean(self.accuracy)

    @property
    def mean_loss(self) -> float:
        """The mean loss over the seeds."""
        return statistics.fmean(self.loss)


def race(
    rates: Mapping[str, float],
    steps: int = STEPS,
    seeds: Iterable[int] = SEEDS,
    rounds: int = ROUNDS,
) -> list[Row]:
    """Run the race with these learning rates; return rows by held-out accuracy, the best first."""
    known = contestants()
    runs: dict[str, list[Any]] = {name: [] for name in rates}
    for batch in sorted({known[name].batch for name in rates}):
        racing = {n: known[n].make(rate) for n, rate in rates.items() if known[n].batch == batch}
        for seed in seeds:
            problem = ol.problems.digits_mlp(batch_size=batch)
            run = ol.compare(problem, racing, steps=steps, seed=seed)
            for name in racing:
                runs[name].append(run)
    costs = measure({name: (known[name], rate) for name, rate in rates.items()}, rounds)
    rows = [
        Row(
            name,
            rate,
            [run.final_loss[name] for run in runs[name]],
            [run.accuracy[name] for run in runs[name]],
            steps,
            [len(run[name]) for run in runs[name]],
            *costs[name],
        )
        for name, rate in rates.items()
    ]
    return sorted(rows, key=lambda row: (-row.mean_accuracy, row.mean_loss))


def measure(
    racing: Mapping[str, tuple[Contestant, float]], rounds: int
) -> dict[str, tuple[float, float]]:
    """Return milliseconds per evaluation, without recording, and bytes of slots per parameter.

    The optimizers take turns, so that other load on the machine affects all alike.
    """
    times: dict[str, list[float]] = {name: [] for name in racing}
    slots: dict[str, float] = {}
    for _ in range(rounds):
        for name, (contestant, rate) in racing.items():
            run = ol.problems.digits_mlp(batch_size=contestant.batch).run()
            optimizer = contestant.make(rate).bind(run.parameters)
            spend(run_updates(optimizer, run, 25, []))  # rules are captured in the first steps
            begin = time.perf_counter()
            spend(run_updates(optimizer, run, 50, []))
            times[name].append(1000 * (time.perf_counter() - begin) / 50)
            size = sum(parameter.size for parameter in run.parameters)
            slots[name] = sum(sizes(optimizer.state_dict())) / size
    return {name: (min(times[name]), slots[name]) for name in racing}


def spend(steps: Iterator[Any]) -> None:
    """Exhaust an iterator."""
    for _ in steps:
        pass


def sizes(state: Any) -> Iterator[int]:
    """Yield the bytes of all tensors in a state."""
    if isinstance(state, Mapping):
        state = list(state.values())
    if isinstance(state, (list, tuple)):
        for value in state:
            yield from sizes(value)
    elif isinstance(state, (ol.Tensor, np.ndarray)):
        yield state.size * state.dtype.itemsize


def describe_ladder(search: Any) -> str:
    """Describe the range of the ladder, and whether the rate is at an end of it."""
    low, high = search.rates[0], search.rates[-1]
    widened = low < ol.lab.LADDER[0] or high > ol.lab.LADDER[-1]
    words = f"{low:g} to {high:g}" + (", widened" if widened else "")
    return words + (f", at the {search.end} end" if search.end else "")


def conditions(rows: list[Row], chosen: Mapping[str, Any]) -> str:
    """Describe the conditions of the race, and how the learning rates were chosen."""
    search = chosen[rows[0].name]
    return f"""\
{rows[0].evaluations:,} gradients of {BATCH} digits each (of all {WHOLE:,} where the name says \
so). Dots are means of {len(rows[0].loss)} seeds, lines their range; one digit is 0.28 points.
Rates: the lowest loss on a fifth of the training digits, split off, after {search.steps} \
gradients with {len(search.seeds)} other seeds, on a ladder of
1-2-5 steps from {ol.lab.LADDER[0]:g} to {ol.lab.LADDER[-1]:g}, widened where the best stood at \
its end. All other settings are the defaults, or stand in the table."""


HEADS = (
    "", "optimizer", "rate", "of the ladder", "validation loss", "training loss",
    "held-out accuracy", "gradients", "updates", "ms", "slot bytes",
)  # fmt: skip


def table(rows: list[Row], chosen: Mapping[str, Any]) -> str:
    """Format the ranking as a page of Markdown."""
    search = chosen[rows[0].name]
    settings = "; ".join(
        f"{name} with " + ", ".join(f"`{key}={value!r}`" for key, value in values.items())
        for name, values in SETTINGS.items()
    )
    seeds = " and ".join(map(str, search.seeds))
    averages = "; ".join(
        f"{SHORT.get(name, name)} has "
        + ", ".join(f"`{key}={value!r}`" for key, value in values.items())
        for name, values in AVERAGES.items()
    )
    page = f"""\
# Every optimizer on the digits network

Made by [ranking.py](ranking.py). Each optimizer evaluates {rows[0].evaluations:,} gradients of \
{BATCH} digits each (a line search pays for all that it evaluates) to train a network of 64-64-10 \
units. Losses and accuracies are means over {len(rows[0].loss)} seeds, with the range in brackets. \
360 digits are held out, so one digit is 0.28 points: neighbours in this table differ by no more \
than chance.

How each rate was chosen: every rate of a ladder of 1-2-5 steps from {ol.lab.LADDER[0]:g} to \
{ol.lab.LADDER[-1]:g} was trained for {search.steps} gradients on four fifths of the training \
digits, with the seeds {seeds}, which do not race; the lowest loss on the last fifth won. Where \
the winner stood at an end of the ladder, up to {WIDEN} rungs were added until it did not. The \
digits held out took no part in it. Settings other than the rate are the defaults, except: \
{settings}; Nesterov is Momentum with `use_nesterov=True`, AMSGrad is Adam with `amsgrad=True`; \
LookAhead synchronises every 5 steps, halfway; \
{averages}. Averages are judged by the accuracy of the averaged weights, while the training loss \
is that of the weights that are trained.

LBFGS and Rprop are made for whole batches: what they learn from one gradient about the next is \
spoiled by the noise of small ones (LBFGS fits each batch and forgets the others; the rates of \
Rprop grow until its few mistakes cost dearly, so that the loss is high although most digits are \
read). They race a second time with gradients of all {WHOLE:,} digits, each of which is 45 times \
the arithmetic.

| {" | ".join(HEADS)} |
| ---: | --- | ---: | --- | {" | ".join(["---:"] * (len(HEADS) - 4))} |
"""
    for place, row in enumerate(rows, 1):
        found = chosen[row.name]
        low, high = 100 * min(row.accuracy), 100 * max(row.accuracy)
        cells = (
            f"{place}",
            row.name,
            f"{row.rate:g}",
            describe_ladder(found),
            f"{found.best_loss:.3f}",
            f"{row.mean_loss:.2g}",
            f"{100 * row.mean_accuracy:.1f} % ({low:.1f} to {high:.1f})",
            f"{row.evaluations}",
            f"{round(statistics.fmean(row.updates))}",
            f"{row.milliseconds:.2f}",
            f"{row.slots:.3g}",
        )
        page += f"| {' | '.join(cells)} |\n"
    return f"""{page}
*ms*: milliseconds a gradient with its share of the update, on one core of the machine that wrote \
this (the least of {ROUNDS} turns). *slot bytes*: what the optimizer remembers, in bytes a \
parameter (4 are one float32), after 75 gradients: the history of LBFGS goes on growing.
"""


NAMES, RATES, ACCURACY, LOSS = 14, 214, (238, 330), (596, 286)  # left or right end, and widths
LINE, TOP, FOOT, WIDTH = 23, 108, 112, 900


def draw(rows: list[Row], chosen: Mapping[str, Any], folder: Path) -> Path:
    """Plot the ranking: a dot for the mean over the seeds, a line for the range."""
    from matplotlib.figure import Figure

    from optlab.viz.backends.matplotlib.draw import add_heading
    from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, as_png, font
    from optlab.viz.style import theme

    styles = theme.assign_styles({name: name for name in contestants()})
    height = TOP + LINE * len(rows) + FOOT
    figure = Figure(figsize=(WIDTH / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)

    def write(x: float, y: float, text: str, size: float, **options: Any) -> None:
        weight = options.pop("weight", "normal")
        options = {"color": theme.INK, "va": "center_baseline"} | options
        place = x / WIDTH, 1 - y / height
        figure.text(*place, text, fontproperties=font(size, weight), **options)

    write(NAMES, 28, "Every optimizer on the digits network", theme.FONT_TITLE, weight="bold")
    best, last = rows[0], rows[-1]
    headline = (
        f"Ranked by accuracy on 360 digits held out: {best.name} reads "
        f"{100 * best.mean_accuracy:.1f} % of them, {last.name} {100 * last.mean_accuracy:.1f} %."
    )
    write(NAMES, 52, headline, theme.FONT_TEXT, color=theme.QUIET)
    write(RATES, TOP - 16, "rate", theme.FONT_SMALL, color=theme.QUIET, ha="right")
    for at, row in enumerate(rows):
        y = TOP + LINE * (at + 0.5)
        write(NAMES, y, row.name, theme.FONT_TEXT)
        write(RATES, y, f"{row.rate:g}", theme.FONT_TEXT, color=theme.QUIET, ha="right")
    for at, line in enumerate(conditions(rows, chosen).splitlines()):
        write(NAMES, height - 58 + 18 * at, line, theme.FONT_SMALL, color=theme.QUIET)

    pens = [styles[row.name] for row in rows]
    accuracies = [[100 * value for value in row.accuracy] for row in rows]
    for (left, width), heading, note, values in (
        (ACCURACY, "Held-out accuracy", "in %", accuracies),
        (LOSS, "Training loss", "log scale", [row.loss for row in rows]),
    ):
        place = (left / WIDTH, FOOT / height, width / WIDTH, LINE * len(rows) / height)
        axes = figure.add_axes(place)
        axes.set(xscale="log" if note == "log scale" else "linear", yticks=[])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        dots(axes, values, pens)
        add_heading(axes, heading, note)
    picture = folder / "ranking.png"
    picture.write_bytes(as_png(figure, 2))
    return picture


def dots(axes: Any, values: list[list[float]], styles: list[Any]) -> None:
    """Plot one row per optimizer: the range of its values, and their mean."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    from optlab.viz.backends.matplotlib.image import PIXEL, font, marker_pen
    from optlab.viz.style import theme

    for at, (row, style) in enumerate(zip(values, styles, strict=True)):
        axes.axhline(at, color=theme.RULE, linewidth=PIXEL, zorder=1)
        axes.plot([min(row), max(row)], [at, at], zorder=3, color=style.color, linewidth=2 * PIXEL)
        pen = marker_pen(style.marker, theme.END_SIZE - 1, style.color, theme.PAPER, 1.2)
        axes.plot([statistics.fmean(row)], [at], zorder=4, **pen)
    axes.xaxis.grid(True, color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", length=0, pad=4)
    axes.set_facecolor(theme.PAPER)
    for label in axes.get_xticklabels():
        label.set(fontproperties=font(theme.FONT_SMALL), color=theme.QUIET)
    axes.spines["bottom"].set(color=theme.FRAME, linewidth=PIXEL)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def write(rows: list[Row], chosen: Mapping[str, Any], folder: Path) -> Path:
    """Write the image and the table into `folder`; return the image's path."""
    (folder / "ranking.md").write_text(table(rows, chosen), encoding="utf-8")
    return draw(rows, chosen, folder)


def main(folder: Path) -> Path:
    """Choose the rates, run the race, write image and table; return the image's path."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # matrices this small are slower on several cores
        chosen = choose()
        rows = race({name: search.rate for name, search in chosen.items()})
    return write(rows, chosen, folder)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
