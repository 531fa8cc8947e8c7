"""Runs of one optimizer at all rates of the ladder, as one ensemble if possible."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from optlab.lab.compare import RaceWarning, run_race
from optlab.lab.problems.surface import Surface
from optlab.lab.sweep import LADDER
from optlab.lab.vectorized import NotOnePassError, run_ensemble
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import Wrapper, layers_of
from optlab.viz.protocols import ComparisonLike, TraceLike
from optlab.viz.style.geometry import Floats
from optlab.viz.style.text import why_stopped

TINY = 1e-12
"""Added before the logarithm, so that a run that reaches the minimum has a finite criterion."""


@dataclass
class Runs:
    """One optimizer at all rates of its ladder, one row per rate.

    Attributes
    ----------
    template : Optimizer
    rates : tuple of float
    point : array (rates, steps + 1, dimension) or None
        None for networks.
    loss : array (rates, steps + 1)
        Before every step and after the last; for networks, of the mini-batch of each step.
    gradient, update : arrays (rates, steps, dimension)
        For networks, their norms as one column.
    slots, terms : dict of str to array
        In the shape of `gradient`.
    initial : dict of str to float
        Values of the slots before the first step.
    stopped : array of int
        The step at which a run ended, or -1.
    why : list of str
        How it ended, in short; "" if it did not.
    """

    template: Optimizer
    rates: tuple[float, ...]
    point: Floats | None
    loss: Floats
    gradient: Floats
    update: Floats
    slots: dict[str, Floats]
    terms: dict[str, Floats]
    initial: dict[str, float]
    stopped: np.ndarray
    why: list[str]

    def paid(self) -> list[list[int]]:
        """Return for each rate how many steps moved the point, and after how many gradients."""
        if self.point is None:
            return [[self.loss.shape[1] - 1] * 2 for _ in self.rates]
        with np.errstate(all="ignore"):
            moved = (self.point[:, 1:] != self.point[:, :-1]).any(axis=2)
        moved &= np.isfinite(self.point[:, 1:]).all(axis=2)
        last = moved.shape[1] - np.argmax(moved[:, ::-1], axis=1)
        return [[int(n), int(k) if n else 0] for n, k in zip(moved.sum(axis=1), last, strict=True)]

    def criterion(self, floor: float) -> Floats:
        """Compute the mean of log10(loss - floor + 1e-12) for each rate; lower is better."""
        with np.errstate(all="ignore"):
            mean = np.log10(np.maximum(self.loss - floor, 0) + TINY).mean(axis=1)
        return np.where((self.stopped >= 0) | ~np.isfinite(mean), np.inf, mean)


def best_of(criterion: Floats, stopped: np.ndarray) -> int:
    """Return the index of the best rate; if every run diverged, that of the longest run.

    Examples
    --------
    >>> best_of(np.array([2.0, 1.0, np.inf]), np.array([-1, -1, 7]))
    1
    >>> best_of(np.array([np.inf, np.inf]), np.array([9, 7]))
    0
    """
    if np.isfinite(criterion).any():
        return int(np.argmin(criterion))
    return int(np.argmax(stopped))


def with_rate(template: Optimizer, rate: float) -> Optimizer:
    """Return a copy of a template with another rate."""
    fresh = copy.copy(template)
    if isinstance(template, Wrapper) and isinstance(fresh, Wrapper):
        fresh.inner_optimizer = with_rate(template.inner_optimizer, rate)
        return fresh
    fresh.settings = {**template.settings, "learning_rate": rate}
    return fresh


def ladder_with(rate: float | None) -> tuple[float, ...]:
    """Return the ladder, with an extra rate inserted in order."""
    return LADDER if rate is None or rate in LADDER else tuple(sorted({*LADDER, rate}))


def rung(rate: float, by: int = 0) -> float:
    """Return the rate `by` rungs away on the endless ladder of 1, 2 and 5 times powers of ten.

    Examples
    --------
    >>> rung(1.0, 1), rung(0.0001, -1), rung(0.5, 0)
    (2.0, 5e-05, 0.5)
    """
    digit, power = f"{rate:.0e}".split("e")
    place = (1, 2, 5).index(int(digit)) + 3 * int(power) + by
    return float(f"{(1, 2, 5)[place % 3]}e{place // 3}")


def joined_runs(first: Runs, second: Runs) -> Runs:
    """Return the runs of two ladders of one optimizer as one, in the order of their rates."""
    rates = np.array(first.rates + second.rates)
    order = np.argsort(rates, kind="stable")

    def both(a: Floats, b: Floats) -> Floats:
        together: Floats = np.concatenate([a, b])[order]
        return together

    why = [*first.why, *second.why]
    assert first.point is not None
    assert second.point is not None
    return Runs(
        template=first.template,
        rates=tuple(rates[order].tolist()),
        point=both(first.point, second.point),
        loss=both(first.loss, second.loss),
        gradient=both(first.gradient, second.gradient),
        update=both(first.update, second.update),
        slots={name: both(rows, second.slots[name]) for name, rows in first.slots.items()},
        terms={name: both(rows, second.terms[name]) for name, rows in first.terms.items()},
        initial=first.initial,
        stopped=both(first.stopped, second.stopped),
        why=[why[i] for i in order],
    )


LAST_BIT = 2.0**-52
"""Start and rate of a run are changed by this part of themselves to see what rounding does."""
STABLE = 1e-10
"""The distance within which runs that differ in the last bit have to stay."""


def sensitive_from(runs: Runs, i: int, again: Runs, at: int = 0) -> int:
    """Return the step from which a second run is elsewhere than the first; -1 if there is none.

    Parameters
    ----------
    runs : Runs
    i : int
        Index of the rate.
    again : Runs
        The second run, whose start and rate differ in the last bit.
    at : int
        Index of its rate.
    """
    assert runs.point is not None
    assert again.point is not None
    path, other = runs.point[i], again.point[at]
    ends = [
        len(path) - 1 if stop < 0 else int(stop) for stop in (runs.stopped[i], again.stopped[at])
    ]
    last = min(ends)
    with np.errstate(all="ignore"):
        size = np.maximum(1.0, np.abs(path[:last]))
        apart = ~(np.abs(path[:last] - other[:last]) <= STABLE * size)
    steps = np.flatnonzero(apart.any(axis=1))
    if len(steps):
        return int(steps[0])
    return -1 if ends[0] == ends[1] else last


NEARBY = 1.01
"""A rate is compared with those so many times as high and as low."""
ALIKE = 0.1
"""The part of the length of a path within which paths of nearby rates have to end."""
STEADINESS = {"lastBit": LAST_BIT, "stable": STABLE, "nearby": NEARBY, "alike": ALIKE}
"""When a path is no chance, as pages have it."""


def ends_alike(runs: Runs, i: int, *nearby: Runs) -> bool:
    """Return whether runs of nearby rates end where a run ends.

    Parameters
    ----------
    runs : Runs
    i : int
        Index of the rate.
    *nearby : Runs
        From the same start, at rates a little higher or lower.
    """
    assert runs.point is not None
    if runs.stopped[i] >= 0 or any((near.stopped >= 0).any() for near in nearby):
        return False
    path = runs.point[i]
    with np.errstate(all="ignore"):
        extent = np.abs(path - path[0]).max()
        found = [near.point[:, -1] for near in nearby if near.point is not None]
        apart = np.abs(np.concatenate(found) - path[-1]).max()
    return bool(apart <= ALIKE * extent)


@dataclass(frozen=True)
class Nearby:
    """What runs beside a run tell of it: whether its path is one of chance.

    Attributes
    ----------
    alike : bool
        Whether runs at rates a little higher and lower end where it ends.
    sensitive : int
        The step from which a change in the last bit leads elsewhere, or -1.
    """

    alike: bool
    sensitive: int


def leaves_view(runs: Runs, domain: Sequence[tuple[float, float]]) -> np.ndarray:
    """Return for each rate whether its path leaves a domain by more than half of its width."""
    assert runs.point is not None
    low, high = np.array(domain).T
    room = 0.5 * (high - low)
    with np.errstate(invalid="ignore"):
        outside = (runs.point < low - room) | (runs.point > high + room)
    found: np.ndarray = outside.any(axis=(1, 2))
    return found


def run_ladder(
    surface: Surface,
    template: Optimizer,
    rates: Sequence[float],
    start: Any,
    steps: int,
    seed: int,
) -> Runs:
    """Run an optimizer at all rates of a ladder, as one ensemble if problem and rule allow it.

    The start is one point, or one for each rate.
    """
    points = np.atleast_2d(np.asarray(start, dtype=np.float64))
    starts = np.tile(points, (len(rates) // len(points), 1))
    try:
        return _run_at_once(surface, template, rates, starts, steps, seed)
    except NotOnePassError:
        members = [with_rate(template, rate) for rate in rates]
        return _run_sequentially(surface, template, members, points, steps, seed)


def run_ladder_and_nearby(
    surface: Surface,
    template: Optimizer,
    rates: Sequence[float],
    start: Sequence[float],
    steps: int,
    seed: int,
) -> tuple[Runs, dict[float, Nearby]]:
    """Run a ladder, and for each rate four runs that tell whether its path is one of chance.

    These are a hundredth of the rate higher and lower, and with start and rate changed in the last
    bit. As further members of one ensemble they cost next to nothing; where there is no ensemble,
    the dict is empty. Of these runs only what they tell is kept.
    """
    ends = (1.0, 1.0, 1.0 + LAST_BIT, 1.0 - LAST_BIT)
    changed = [
        [rate * NEARBY for rate in rates],
        [rate / NEARBY for rate in rates],
        *([rate * factor for rate in rates] for factor in ends[2:]),
    ]
    first = np.asarray(start, dtype=np.float64)
    starts = np.concatenate([np.tile(first * f, (len(rates), 1)) for f in (1.0, *ends)])
    every = [rate for row in (list(rates), *changed) for rate in row]
    try:
        together = _run_at_once(surface, template, every, starts, steps, seed)
    except NotOnePassError:
        return run_ladder(surface, template, rates, start, steps, seed), {}
    runs, *others = (_some_runs(together, k * len(rates), len(rates)) for k in range(5))
    return _copied(runs), {
        rate: Nearby(
            ends_alike(runs, i, *(_some_runs(near, i, 1) for near in others[:2])),
            first_of(sensitive_from(runs, i, again, i) for again in others[2:]),
        )
        for i, rate in enumerate(rates)
    }


def first_of(steps: Iterable[int]) -> int:
    """Return the first of several steps, of which -1 is none.

    Examples
    --------
    >>> first_of([-1, 7, 5]), first_of([-1, -1])
    (5, -1)
    """
    return min((step for step in steps if step >= 0), default=-1)


def _some_runs(runs: Runs, first: int, count: int) -> Runs:
    rows = slice(first, first + count)
    assert runs.point is not None
    return replace(
        runs,
        rates=runs.rates[rows],
        point=runs.point[rows],
        loss=runs.loss[rows],
        gradient=runs.gradient[rows],
        update=runs.update[rows],
        slots={name: array[rows] for name, array in runs.slots.items()},
        terms={name: array[rows] for name, array in runs.terms.items()},
        stopped=runs.stopped[rows],
        why=runs.why[rows],
    )


def _copied(runs: Runs) -> Runs:
    """Return runs that do not hold the larger arrays of which theirs are parts."""
    assert runs.point is not None
    return replace(
        runs,
        point=runs.point.copy(),
        loss=runs.loss.copy(),
        gradient=runs.gradient.copy(),
        update=runs.update.copy(),
        slots={name: array.copy() for name, array in runs.slots.items()},
        terms={name: array.copy() for name, array in runs.terms.items()},
        stopped=runs.stopped.copy(),
    )


def _run_at_once(
    surface: Surface,
    template: Optimizer,
    rates: Sequence[float],
    starts: Floats,
    steps: int,
    seed: int,
) -> Runs:
    members = [with_rate(template, rate) for rate in rates]
    run = run_ensemble(surface, members, starts, steps, seed)
    update, initial = run.terms.get("update"), initial_slots(template)
    slots, others = _split_slots(run.slots, initial)
    return Runs(
        template=template,
        rates=tuple(rates),
        point=run.point,
        loss=run.loss,
        gradient=run.gradient,
        update=_differences(run.point) if update is None else update,
        slots=slots,
        terms={name: rows for name, rows in {**run.terms, **others}.items() if name != "update"},
        initial=initial,
        stopped=run.stopped,
        why=[f"diverged at step {k}" if k >= 0 else "" for k in run.stopped.tolist()],
    )


def initial_slots(template: Optimizer) -> dict[str, float]:
    """Return the initial values of the slots of the rule, without those of wrappers."""
    template, _ = layers_of(template)
    return dict(template.slots_for(SimpleNamespace(**template.settings)))


def _split_slots(
    slots: Mapping[str, Floats], initial: Mapping[str, float]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Split slots into those of the rule and those of wrappers, which are shown as terms."""
    own = {name: rows for name, rows in slots.items() if name in initial}
    return own, {name: rows for name, rows in slots.items() if name not in initial}


def _differences(point: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.diff(point, axis=1)


def _run_sequentially(
    surface: Surface,
    template: Optimizer,
    members: list[Optimizer],
    points: Floats,
    steps: int,
    seed: int,
) -> Runs:
    entries = {f"{place}": member for place, member in enumerate(members)}
    groups = [entries] if len(points) == 1 else [{name: one} for name, one in entries.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RaceWarning)  # the rows show which run ended, and why
        races = [
            run_race(surface, group, start=tuple(point), steps=steps, seed=seed)
            for group, point in zip(groups, points.tolist(), strict=True)
        ]
    rates = [member.settings["learning_rate"] for member in members]
    pieces = [runs_of_trace(race, name, template, steps) for race in races for name in race.traces]
    return Runs(
        template=template,
        rates=tuple(rates),
        point=np.concatenate([runs.point for runs in pieces]),
        loss=np.concatenate([runs.loss for runs in pieces]),
        gradient=np.concatenate([runs.gradient for runs in pieces]),
        update=np.concatenate([runs.update for runs in pieces]),
        slots=_concatenate_dicts([runs.slots for runs in pieces]),
        terms=_concatenate_dicts([runs.terms for runs in pieces]),
        initial=initial_slots(template),
        stopped=np.concatenate([runs.stopped for runs in pieces]),
        why=[runs.why[0] for runs in pieces],
    )


def _concatenate_dicts(each: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    names = dict.fromkeys(name for one in each for name in one)
    blank = np.full_like(next(iter(each[0].values())), np.nan) if each[0] else None
    return {name: np.concatenate([one.get(name, blank) for one in each]) for name in names}


def runs_of_trace(race: ComparisonLike, name: str, template: Optimizer, steps: int) -> Runs:
    """Return one recorded run as a ladder of one rate; steps after an early end are NaN."""
    trace: Any = race.traces[name]
    rate = float(trace.settings["learning_rate"])
    network = race.problem.kind == "network"
    values = np.asarray(trace.loss, dtype=np.float64)
    loss = np.full((1, steps + 1), np.nan)
    loss[0, : len(values)] = values
    if not network and len(values) <= steps:
        loss[0, len(values)] = race.final_loss[name]

    def rows(arrays: Mapping[str, Any], length: int = steps) -> Floats:
        if network:
            total = np.sqrt(sum(np.asarray(a, dtype=np.float64) ** 2 for a in arrays.values()))
            found = total.reshape(len(total), 1)
        else:
            [array] = arrays.values()
            found = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
        full = np.full((1, length, found.shape[1]), np.nan)
        full[0, : min(len(found), length)] = found[:length]
        return full

    if network:
        kinds = {k: rows(a) for k, a in trace.norms.items() if k not in ("parameter", "gradient")}
        slots = {k: a for k, a in kinds.items() if k in initial_slots(template)}
        terms = {k: a for k, a in kinds.items() if k not in slots}
        gradient, point = rows(trace.norms["gradient"]), None
    else:
        recorded = {k: rows(a) for k, a in trace.slots.items()}
        slots, others = _split_slots(recorded, initial_slots(template))
        terms = {**{k: rows(a) for k, a in trace.terms.items()}, **others}
        gradient, point = rows(trace.gradients), rows(trace.parameters, steps + 1)
    update = terms.pop("update", None)
    if update is None:
        update = np.full_like(gradient, np.nan) if point is None else _differences(point)
    counts = np.asarray(getattr(race, "evaluations", {}).get(name, ()))
    if point is not None and getattr(template, "needs_closure", False) and not trace.stopped:
        return _by_evaluations(template, rate, counts, trace, loss, point, gradient, slots, terms)
    return Runs(
        template=template,
        rates=(rate,),
        point=point,
        loss=loss,
        gradient=gradient,
        update=update,
        slots=slots,
        terms=terms,
        initial=initial_slots(template),
        stopped=np.array([_stop_step(trace, steps)]),
        why=[why_stopped(trace) or ""],
    )


def _by_evaluations(
    template: Optimizer,
    rate: float,
    counts: np.ndarray,
    trace: Any,
    loss: Floats,
    point: Floats,
    gradient: Floats,
    slots: dict[str, Floats],
    terms: dict[str, Floats],
) -> Runs:
    """Return a run of fewer updates than gradients with one column a gradient, as all others have.

    The point waits while the line search evaluates, and where the run has converged.
    """
    steps = gradient.shape[1]
    columns = np.arange(steps + 1)
    taken = np.searchsorted(counts, columns, side="right")
    moved = np.minimum(taken[:-1], max(len(counts) - 1, 0))
    held = np.maximum(taken[1:] - 1, 0)
    point = point[:, taken]
    return Runs(
        template=template,
        rates=(rate,),
        point=point,
        loss=loss[:, taken],
        gradient=gradient[:, moved],
        update=_differences(point),
        slots={name: rows[:, held] for name, rows in slots.items()},
        terms={name: rows[:, held] for name, rows in terms.items()},
        initial=initial_slots(template),
        stopped=np.array([-1]),
        why=[""],
    )


def _stop_step(trace: TraceLike, steps: int) -> int:
    return -1 if trace.stopped is None else min(len(trace.loss), steps)


def lowest_loss(all_runs: Sequence[Runs]) -> float:
    """Return the lowest finite loss of all runs."""
    together = np.concatenate([runs.loss.ravel() for runs in all_runs])
    finite = together[np.isfinite(together)]
    return float(finite.min()) if len(finite) else math.nan
