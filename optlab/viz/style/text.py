"""Text of the figures: numbers, headlines, the note under a figure, and the text alternative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optlab.backend.memory.sizes import in_words
from optlab.backend.text import and_list
from optlab.viz.protocols import ComparisonLike, TraceLike
from optlab.viz.style.labels import labeled
from optlab.viz.style.results import comparison_of

_MOST_LETTERS = 70  # of names in a headline


def format_number(value: float, digits: int = 3) -> str:
    """Format a number with a few significant digits.

    Examples
    --------
    >>> [format_number(value) for value in (0.00000123, 1234.5, -0.35, float("inf"))]
    ['1.23e-6', '1230', '−0.35', 'infinite']
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if -4 <= exponent <= 4:
        text = f"{round(value, digits - 1 - exponent):.{max(0, digits - 1 - exponent)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"
    return "−" + text[1:] if text.startswith("-") else text


def format_percent(value: float) -> str:
    """Format a fraction in percent.

    Examples
    --------
    >>> format_percent(0.9722)
    '97.2 %'
    """
    return f"{100 * value:.1f} %"


def format_ratio(ratio: float) -> str:
    """Format the ratio of two values.

    Examples
    --------
    >>> format_ratio(2834.0), format_ratio(1.31), format_ratio(3e12)
    ('2,830 times', '1.31 times', '3e12 times')
    """
    if not 1e5 > ratio >= 1000:
        return f"{format_number(ratio)} times"
    return f"{int(float(f'{ratio:.2e}')):,} times"


def format_bytes(count: float) -> str:
    """Format a number of bytes as the tables do.

    Examples
    --------
    >>> format_bytes(98.4 * 2**20), format_bytes(12 * 2**10), format_bytes(104.44 * 2**20)
    ('98.4 MiB', '12 KiB', '104.44 MiB')
    """
    return in_words(round(count))


def optimizer_class(trace: TraceLike) -> str:
    """Return the optimizer class of a trace, or its name if no class was recorded."""
    return str(trace.settings.get("class", trace.name))


def why_stopped(trace: TraceLike) -> str | None:
    """Return why a run ended early in short form, such as "diverged at step 12"."""
    return None if trace.stopped is None else str(trace.stopped).split(":")[0].strip()


def format_point(coordinates: Any) -> str:
    """Format the coordinates of a point; of a long vector the first ones.

    Examples
    --------
    >>> format_point((-0.35, 1.75)), format_point(np.ones(100))
    ('(−0.35, 1.75)', '(1, 1, 1, ..., 100 numbers)')
    """
    values = np.ravel(coordinates)
    shown = values if len(values) <= 4 else values[:3]
    words = [format_number(float(c)) for c in shown]
    words += [] if len(shown) == len(values) else ["...", f"{len(values)} numbers"]
    return f"({', '.join(words)})"


def start_of(comparison: ComparisonLike) -> Any | None:
    """Return the start of a race on a surface: the first point, which all traces share."""
    for trace in comparison.traces.values():
        path = trace.parameters.get("point")
        if path is not None and len(path):
            return np.asarray(path[0], dtype=np.float64)
    return None


def format_rate(trace: TraceLike) -> str:
    """Format the learning rate of a run, as first → last if it changed."""
    used = np.asarray(trace.learning_rate, dtype=np.float64)
    if len(used) and used.min() != used.max():
        return f"{format_number(used[0])} → {format_number(used[-1])}"
    given = trace.settings.get("learning_rate", used[0] if len(used) else None)
    if isinstance(given, (int, float, np.number)):
        return format_number(float(given), digits=6)
    return "not recorded" if given is None else str(given)


_OF_WRAPPERS = (
    "alpha", "k", "decay", "thres_steps",
    "average_window_rate", "min_average_window", "max_average_window",
)  # fmt: skip


def wrapper_settings(trace: TraceLike, names: Sequence[str] = _OF_WRAPPERS) -> str:
    """Format the settings that a wrapper adds to its optimizer, such as "alpha 0.5, k 5"."""
    shown = []
    for name in names:
        if name in trace.settings:
            value = trace.settings[name]
            numeric = isinstance(value, (int, float))
            shown.append(f"{name} {format_number(float(value), 6) if numeric else repr(value)}")
    return ", ".join(shown)


def _kind(trace: TraceLike) -> str:
    """Return the optimizer and its wrapper: "LookAhead around Adam, alpha 0.5, k 5"."""
    inner = trace.settings.get("inner_optimizer")
    if inner is None:
        return optimizer_class(trace)
    outer = trace.settings.get("average", optimizer_class(trace))
    return ", ".join(filter(None, [f"{outer} around {inner}", wrapper_settings(trace)]))


def steps_text(count: int) -> str:
    """Return a number of steps as text.

    Examples
    --------
    >>> steps_text(1), steps_text(300)
    ('1 step', '300 steps')
    """
    return f"{count} step{'' if count == 1 else 's'}"


def race_conditions(comparison: ComparisonLike) -> str:
    """Return the conditions of a race, for the note under its figure.

    The note also states what a picture cannot show: that only the optimizers differed.
    """
    rates = []
    for name, trace in comparison.traces.items():
        kind = _kind(trace)
        rates.append(f"{name}{f' ({kind})' if kind != name else ''} {format_rate(trace)}")
    start = start_of(comparison) if comparison.problem.kind == "surface" else None
    if getattr(comparison, "apart", False):
        return f"Recorded apart: starts, steps and seeds may differ. Rates: {', '.join(rates)}."
    seed = "" if comparison.seed is None else f", seed {comparison.seed}"
    if len(rates) == 1:
        origin = "" if start is None else f" from {format_point(start)}"
        return f"{steps_text(comparison.steps)}{origin}{seed}. Learning rate: {rates[0]}."
    return (
        f"Same start{f' {format_point(start)}' if start is not None else ''}, "
        f"same {steps_text(comparison.steps)}, same seed ({comparison.seed}). "
        f"Learning rates: {', '.join(rates)}."
    )


def _finished(comparison: ComparisonLike, measured: Mapping[str, float]) -> dict[str, float]:
    """Return the finite measurements of the runs that did not stop early."""
    return {
        name: float(measured[name])
        for name, trace in comparison.traces.items()
        if trace.stopped is None and math.isfinite(measured.get(name, math.nan))
    }


def join_names(names: Sequence[str], most: int = 10_000) -> str:
    """Join names for a sentence: all of them, or as many as fit into `most` letters.

    Examples
    --------
    >>> join_names(["Adam", "SGD", "Lion"]), join_names(["Adam", "SGD", "Lion", "SAM"], most=12)
    ('Adam, SGD and Lion', 'Adam, SGD and 2 more')
    """
    said = and_list(names)
    if len(said) <= most or len(names) == 1:
        return said
    shown = [names[0]]
    for name in names[1:-1]:
        if len(", ".join([*shown, name])) > most:
            break
        shown.append(name)
    return f"{', '.join(shown)} and {len(names) - len(shown)} more"


def minimum_of(comparison: ComparisonLike) -> float | None:
    """Return the known loss at the minimum; None if it is unknown or a run undercuts it."""
    if comparison.problem.kind != "surface" or comparison.problem.minimum_value is None:
        return None
    known = float(comparison.problem.minimum_value)
    lowest = min(_finished(comparison, comparison.final_loss).values(), default=math.inf)
    return known if lowest >= known - 1e-9 * max(1.0, abs(known)) else None


def loss_text(comparison: ComparisonLike, value: float) -> str:
    """Format a loss, relative to a minimum that is not zero so that small differences show."""
    minimum = minimum_of(comparison)
    if not minimum:
        return f"loss {format_number(value)}"
    if value <= minimum:
        return f"loss {format_number(minimum)}, the known minimum"
    return f"loss {format_number(value - minimum)} above the minimum {format_number(minimum)}"


def race_headline(comparison: ComparisonLike) -> str:
    """Return one sentence that names the winner.

    Runs are ranked by held-out accuracy if the problem has one, else by the loss after the last
    step; runs that stopped early cannot win.
    """
    accuracy = _finished(comparison, comparison.accuracy)
    measured = accuracy or _finished(comparison, comparison.final_loss)
    after = f"After {steps_text(comparison.steps)}"
    if getattr(comparison, "apart", False):
        after = "At the end of each run"
    if not measured:
        return "No run finished."
    if len(measured) == 1 and len(comparison.traces) == 1:
        [(name, value)] = measured.items()
        if accuracy:
            return f"{after} {name} has held-out accuracy {format_percent(value)}."
        return f"{after} {name} is at {loss_text(comparison, value)}."
    best = max(measured.values()) if accuracy else min(measured.values())
    first = [name for name, value in measured.items() if value == best]
    names = join_names(first, _MOST_LETTERS)
    if accuracy:
        verb = "has" if len(first) == 1 else "have"
        return f"{after} {names} {verb} the best held-out accuracy, {format_percent(best)}."
    verb = "is" if len(first) == 1 else "are"
    return f"{after} {names} {verb} lowest, at {loss_text(comparison, best)}."


def _runner_up(comparison: ComparisonLike) -> str | None:
    """Return a sentence that names the runner-up and its distance; None if there is none."""
    accuracy = _finished(comparison, comparison.accuracy)
    measured = accuracy or _finished(comparison, comparison.final_loss)
    order = sorted(measured, key=lambda name: measured[name], reverse=bool(accuracy))
    others = [name for name in order if measured[name] != measured[order[0]]]
    if not others:
        return None
    best, second = measured[order[0]], measured[others[0]]
    if accuracy:
        points = f"{round(100 * best, 1) - round(100 * second, 1):.1f}"  # of the rounded values
        value = format_percent(second)
        return f"{others[0]} is next, at {value} ({points} percentage points lower)."
    minimum = minimum_of(comparison) or 0.0
    if best > minimum:
        gap = f"{format_ratio((second - minimum) / (best - minimum))} the winner's"
    else:
        gap = f"{format_number(second - best)} more than the winner's"
    return f"{others[0]} is next, at {loss_text(comparison, second)}, {gap}."


def summary(comparison: ComparisonLike) -> str:
    """Describe a race in words: the winner, the margin, the runs that did not finish.

    The text alternative of the figure, for screen readers and for terminals.
    """
    comparison = labeled(comparison_of(comparison, "summary"))
    said = [f"{comparison.problem.title}.", race_headline(comparison)]
    said += filter(None, [_runner_up(comparison)])
    for name, trace in comparison.traces.items():
        if trace.stopped is not None:
            said.append(f"{name} {str(trace.stopped).rstrip('.')}.")
    said.append(race_conditions(comparison))
    return " ".join(said)
