"""What a figure says in words: its title, the line under it, and the summary that replaces it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optlab.backend.sizes import in_words
from optlab.viz.results import ComparisonLike, TraceLike

_MOST_LETTERS = 70  # of names in a headline


def number(value: float, digits: int = 3) -> str:
    """Write a number so that it is read at a glance.

    Examples
    --------
    >>> number(0.00000123), number(1234.5), number(-0.35), number(float("inf"))
    ('1.23e-6', '1230', '−0.35', 'infinite')
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


def percent(value: float) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> percent(0.9722)
    '97.2 %'
    """
    return f"{100 * value:.1f} %"


def times(ratio: float) -> str:
    """Write how many times one thing is another.

    Examples
    --------
    >>> times(2834.0), times(1.31), times(3e12)
    ('2,830 times', '1.31 times', '3e12 times')
    """
    if not 1e5 > ratio >= 1000:
        return f"{number(ratio)} times"
    return f"{int(float(f'{ratio:.2e}')):,} times"


def amount(count: float) -> str:
    """Write a number of bytes, as tables do.

    Examples
    --------
    >>> amount(98.4 * 2**20), amount(12 * 2**10), amount(104.44 * 2**20)
    ('98.4 MiB', '12 KiB', '104.44 MiB')
    """
    return in_words(round(count))


def optimizer_class(trace: TraceLike) -> str:
    """Return the class of the optimizer behind a trace; its name where no class was recorded."""
    return str(trace.settings.get("class", trace.name))


def why_stopped(trace: TraceLike) -> str | None:
    """Return the short form of why a run ended: "diverged at step 12"."""
    return None if trace.stopped is None else str(trace.stopped).split(":")[0].strip()


def point(coordinates: Any) -> str:
    """Write a point.

    Examples
    --------
    >>> point((-0.35, 1.75))
    '(−0.35, 1.75)'
    """
    return "(" + ", ".join(number(float(c)) for c in np.ravel(coordinates)) + ")"


def start_of(comparison: ComparisonLike) -> Any | None:
    """Return where a race on a surface started: the first point, which all traces share."""
    for trace in comparison.traces.values():
        path = trace.parameters.get("point")
        if path is not None and len(path):
            return np.asarray(path[0], dtype=np.float64)
    return None


def rate(trace: TraceLike) -> str:
    """Write the learning rate of a run, and how it changed if it did."""
    used = np.asarray(trace.learning_rate, dtype=np.float64)
    if len(used) and used.min() != used.max():
        return f"{number(used[0])} → {number(used[-1])}"
    given = trace.settings.get("learning_rate", used[0] if len(used) else None)
    if isinstance(given, (int, float, np.number)):
        return number(float(given), digits=6)
    return "not recorded" if given is None else str(given)


_OF_WRAPPERS = (
    "alpha", "k", "decay", "thres_steps",
    "average_window_rate", "min_average_window", "max_average_window",
)  # fmt: skip


def wrapper_settings(trace: TraceLike, names: Sequence[str] = _OF_WRAPPERS) -> str:
    """Write the settings that a wrapper adds to the optimizer in it: "alpha 0.5, k 5"."""
    shown = []
    for name in names:
        if name in trace.settings:
            value = trace.settings[name]
            plain = isinstance(value, (int, float))
            shown.append(f"{name} {number(float(value), 6) if plain else repr(value)}")
    return ", ".join(shown)


def _kind(trace: TraceLike) -> str:
    """Say which optimizer ran, and around which: "LookAhead around Adam, alpha 0.5, k 5"."""
    inner = trace.settings.get("inner_optimizer")
    if inner is None:
        return optimizer_class(trace)
    outer = trace.settings.get("average", optimizer_class(trace))
    return ", ".join(filter(None, [f"{outer} around {inner}", wrapper_settings(trace)]))


def conditions(comparison: ComparisonLike) -> str:
    """Say under which conditions the race was run: the line that stands under the figure.

    It also says what the pictures cannot show: that nothing but the optimizer differed.
    """
    rates = []
    for name, trace in comparison.traces.items():
        kind = _kind(trace)
        rates.append(f"{name}{f' ({kind})' if kind != name else ''} {rate(trace)}")
    start = start_of(comparison) if comparison.problem.kind == "surface" else None
    if len(rates) == 1:
        return (
            f"{comparison.steps} steps{f' from {point(start)}' if start is not None else ''}, "
            f"seed {comparison.seed}. Learning rate: {rates[0]}."
        )
    return (
        f"Same start{f' {point(start)}' if start is not None else ''}, "
        f"same {comparison.steps} steps, same seed ({comparison.seed}). "
        f"Learning rates: {', '.join(rates)}."
    )


def _finished(comparison: ComparisonLike, measured: Mapping[str, float]) -> dict[str, float]:
    """Return the finite measurements of the runs that were not stopped."""
    return {
        name: float(measured[name])
        for name, trace in comparison.traces.items()
        if trace.stopped is None and math.isfinite(measured.get(name, math.nan))
    }


def joined(names: Sequence[str], most: int = 10_000) -> str:
    """Write names as a sentence has them: all, or as many as `most` letters hold.

    Examples
    --------
    >>> joined(["Adam", "SGD", "Lion"]), joined(["Adam", "SGD", "Lion", "SAM"], most=12)
    ('Adam, SGD and Lion', 'Adam, SGD and 2 more')
    """
    said = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    if len(said) <= most or len(names) == 1:
        return said
    shown = [names[0]]
    for name in names[1:-1]:
        if len(", ".join([*shown, name])) > most:
            break
        shown.append(name)
    return f"{', '.join(shown)} and {len(names) - len(shown)} more"


def minimum_of(comparison: ComparisonLike) -> float | None:
    """Return the loss at the minimum, where it is known and no run undercuts it."""
    if comparison.problem.kind != "surface" or comparison.problem.minimum_value is None:
        return None
    known = float(comparison.problem.minimum_value)
    lowest = min(_finished(comparison, comparison.final_loss).values(), default=math.inf)
    return known if lowest >= known - 1e-9 * max(1.0, abs(known)) else None


def loss_text(comparison: ComparisonLike, value: float) -> str:
    """Write a loss so that small differences show: above the minimum, unless that is zero."""
    minimum = minimum_of(comparison)
    if not minimum:
        return f"loss {number(value)}"
    if value <= minimum:
        return f"loss {number(minimum)}, the known minimum"
    return f"loss {number(value - minimum)} above the minimum {number(minimum)}"


def headline(comparison: ComparisonLike) -> str:
    """Say in one sentence who won.

    By held-out accuracy where the problem has one, else by the loss after the last step; runs that
    were stopped cannot win.
    """
    accuracy = _finished(comparison, comparison.accuracy)
    measured = accuracy or _finished(comparison, comparison.final_loss)
    after = f"After {comparison.steps} steps"
    if not measured:
        return "No run finished."
    if len(measured) == 1 and len(comparison.traces) == 1:
        [(name, value)] = measured.items()
        if accuracy:
            return f"{after} {name} has held-out accuracy {percent(value)}."
        return f"{after} {name} is at {loss_text(comparison, value)}."
    best = max(measured.values()) if accuracy else min(measured.values())
    first = [name for name, value in measured.items() if value == best]
    verb = "has" if len(first) == 1 else "have"
    if accuracy:
        named = joined(first, _MOST_LETTERS)
        return f"{after} {named} {verb} the best held-out accuracy, {percent(best)}."
    verb = "is" if len(first) == 1 else "are"
    return (
        f"{after} {joined(first, _MOST_LETTERS)} {verb} lowest, at {loss_text(comparison, best)}."
    )


def _runner_up(comparison: ComparisonLike) -> str | None:
    """Say who came second, and by how much."""
    accuracy = _finished(comparison, comparison.accuracy)
    measured = accuracy or _finished(comparison, comparison.final_loss)
    order = sorted(measured, key=lambda name: measured[name], reverse=bool(accuracy))
    others = [name for name in order if measured[name] != measured[order[0]]]
    if not others:
        return None
    best, second = measured[order[0]], measured[others[0]]
    if accuracy:
        points = f"{round(100 * best, 1) - round(100 * second, 1):.1f}"  # of what is written
        return f"{others[0]} is next, at {percent(second)} ({points} percentage points lower)."
    minimum = minimum_of(comparison) or 0.0
    if best > minimum:
        gap = f"{times((second - minimum) / (best - minimum))} the winner's"
    else:
        gap = f"{number(second - best)} more than the winner's"
    return f"{others[0]} is next, at {loss_text(comparison, second)}, {gap}."


def summary(comparison: ComparisonLike) -> str:
    """Say in words what the figure shows: who won, by how much, and who did not finish.

    For those who cannot see the figure, and for places that cannot show one.
    """
    said = [f"{comparison.problem.title}.", headline(comparison)]
    said += filter(None, [_runner_up(comparison)])
    for name, trace in comparison.traces.items():
        if trace.stopped is not None:
            said.append(f"{name} {str(trace.stopped).rstrip('.')}.")
    said.append(conditions(comparison))
    return " ".join(said)
