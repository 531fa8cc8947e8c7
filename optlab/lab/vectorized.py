"""Vectorized runs on surfaces: many rates or starts in one pass over arrays.

The members are rows. The surface is evaluated for all of them at once, element by element, and the
update rule, which is plain NumPy too, gets rates with one row per member. Every member goes through
the same arithmetic as a separate run, and so ends with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.lab.problems.surface import Noise, Surface
from optlab.optimizer import Optimizer
from optlab.optimizer.regularizer import with_decay
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.optimizer.step.member_program import MemberProgram
from optlab.optimizer.wrappers import Wrapper, free_name, layers_of
from optlab.plan import Plan


class NotOnePassError(TypeError):
    """A problem or rule that cannot handle many members at once; they have to run separately."""


class EnsembleRun:
    """The results of vectorized runs: arrays with one row per member and one column per step.

    Attributes
    ----------
    loss : array, shape (members, steps + 1)
        Before each step, and after the last.
    point : array, shape (members, steps + 1, dimension)
    gradient : array, shape (members, steps, dimension)
    slots, terms : dict of str to array, shape (members, steps, dimension)
    stopped : array of int, shape (members,)
        The step at which the loss was no longer finite, or -1. Later columns of the row are NaN.
    """

    def __init__(self, members: int, steps: int, dimension: int) -> None:
        self.loss = np.full((members, steps + 1), np.nan)
        self.point = np.full((members, steps + 1, dimension), np.nan)
        self.gradient = np.full((members, steps, dimension), np.nan)
        #: The weights after the rule, before any wrapper.
        self.moved = np.full((members, steps, dimension), np.nan)
        self.slots: dict[str, np.ndarray] = {}
        self.terms: dict[str, np.ndarray] = {}
        self.stopped = np.full(members, -1)

    def keep(self, where: dict[str, np.ndarray], name: str, step: int, rows: np.ndarray) -> None:
        """Write one step of a slot or term."""
        if name not in where:
            where[name] = np.full(self.gradient.shape, np.nan)
        where[name][:, step] = rows


def evaluate(
    surface: Surface, points: np.ndarray, plan: Plan | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return values and gradients at many points, one per row.

    Raises
    ------
    NotOnePassError
        If the function does not work on arrays, element by element.
    """
    columns = [np.ascontiguousarray(column) for column in points.T]
    plan = plan or surface.plan
    compute = surface.differentiate if plan is None else plan.replay
    try:
        value, *gradient = compute(*columns)
    except Exception as error:
        raise NotOnePassError(f"{surface.title} takes one point at a time: {error}") from error
    return _column(value, len(points)), np.stack([_column(g, len(points)) for g in gradient], 1)


def _column(x: Any, n: int) -> np.ndarray:
    """Return one number per member; a constant derivative comes as one number."""
    x = np.asarray(x, dtype=float)
    if x.shape not in ((), (n,)):
        raise NotOnePassError(f"an array of shape {x.shape} came back for {n} members")
    return np.broadcast_to(x, (n,))


def check_elementwise(surface: Surface, points: np.ndarray) -> None:
    """Check that evaluating many points at once equals evaluating each, to the bit.

    Raises
    ------
    NotOnePassError
        If it does not: the function mixes its points (a mean, a sort) or branches on them.
    """
    if surface.plan is not None:
        return
    values, gradients = evaluate(surface, points)
    for i in np.unique(np.linspace(0, len(points) - 1, 32).astype(int)):
        value, *gradient = surface.differentiate(*points[i])
        same = np.array_equal([values[i], *gradients[i]], [value, *gradient], equal_nan=True)
        if not same:
            raise NotOnePassError(f"{surface.title} gives other numbers for arrays than for points")


def run_ensemble(
    surface: Surface, optimizers: list[Optimizer], starts: np.ndarray, steps: int, seed: int
) -> EnsembleRun:
    """Run one member for each optimizer and start (rows of the same number), in one pass.

    The optimizers are templates of one class whose settings differ only in numbers.

    Raises
    ------
    NotOnePassError
        If the rule is not elementwise, or branches on a setting that differs.
    """
    optimizers, layers = _unwrap(optimizers)
    first = optimizers[0]
    if type(first).kind != "elementwise":
        raise NotOnePassError(f"{type(first).__name__} needs each parameter by itself")
    if first.draws or any(callable(value) for value in first.settings.values()):
        raise NotOnePassError(f"{type(first).__name__} asks for each parameter by itself")
    if any(optimizer.schedule is not None for optimizer in optimizers):
        raise NotOnePassError("a schedule changes the rate from step to step")
    members, dimension = starts.shape
    run = EnsembleRun(members, steps, dimension)
    settings = _Settings(optimizers)
    noise = surface.noise_of(seed)
    regularizer, clip = first.decay_and_clip
    if regularizer is not None or clip is not None:
        raise NotOnePassError("weight_decay and grad_clip are applied run by run")
    start_slots: dict[str, Any] = first.slots_for(settings.h)
    slots_before = {name: np.full_like(starts, x, float) for name, x in start_slots.items()}
    with np.errstate(all="ignore"):
        check_elementwise(surface, starts.astype(float))

    def parts(step: int) -> tuple[HyperParameters, Scalars]:
        return settings.h, settings.scalars(step + 1)

    try:
        _take_steps(surface, None, first, layers, slots_before, starts, noise, parts, run)
    except (ValueError, TypeError) as error:
        raise NotOnePassError(f"{type(first).__name__}: {error}") from error
    with np.errstate(all="ignore"):
        _check_surface(surface, run)
        _check_rule(first, settings, slots_before, run)
    _blank_after_stop(run)
    return run


def _take_steps(
    surface: Surface,
    plan: Plan | None,
    rule: Optimizer,
    layers: list[Wrapper],
    slots: dict[str, Any],
    starts: np.ndarray,
    noise: Noise | None,
    parts: Callable[[int], tuple[HyperParameters, Scalars]],
    run: EnsembleRun,
) -> None:
    """Take all steps of all members, as rows, and keep what each has done.

    `parts` gives hyper-parameters and scalars of a step from 0.
    """
    p = starts.astype(float)
    steps = run.gradient.shape[1]
    after_step = [layer.over_rows(p) for layer in layers]
    averages = next((i for i in reversed(range(len(layers))) if "average" in vars(layers[i])), None)
    alive = np.ones(len(p), dtype=bool)
    regularizer, _ = rule.decay_and_clip
    evaluated = p
    with np.errstate(all="ignore"):
        for step in range(steps):
            value, g = evaluate(surface, p, plan)
            run.loss[:, step], run.point[:, step] = value, p
            lost = alive & ~np.isfinite(value)
            run.stopped[lost] = step
            alive &= ~lost
            if not alive.any():
                break
            if noise is not None:
                g = g + noise.at(step)
            for array in (p, g, *slots.values()):
                array.setflags(write=False)
            h, c = parts(step)
            decayed, decay = with_decay(regularizer, g, p, rule.separate_decay)
            if decay is not None:
                c.decay = decay
            result = rule.update(p, decayed, Slots(**slots), h, c)
            p, slots = result[0], result[1]
            run.gradient[:, step] = g
            shown = dict(slots)
            terms = dict(result[2]) if len(result) > 2 else {}
            if regularizer is not None:
                terms = {"used_gradient": decayed} | terms  # as a recording has it
            run.moved[:, step] = evaluated = p
            for i, after in enumerate(after_step):
                p, more, more_terms = after(p)
                evaluated = (
                    more["average"] if i == averages else p if averages is None else evaluated
                )
                shown |= {free_name(name, shown): rows for name, rows in more.items()}
                terms |= {free_name(name, terms): rows for name, rows in more_terms.items()}
            for name, rows in shown.items():
                run.keep(run.slots, name, step, rows)
            for name, rows in terms.items():
                run.keep(run.terms, name, step, rows)
        else:
            value, _ = evaluate(surface, evaluated, plan)
            run.loss[:, steps], run.point[:, steps] = value, p
            run.stopped[alive & ~np.isfinite(value)] = steps


def replay(
    surface: Surface, plan: Plan, made: MemberProgram, starts: np.ndarray, steps: int, seed: int
) -> EnsembleRun:
    """Return what the members of a program do at every step: the numbers of the loop, to the bit.

    Parameters
    ----------
    surface : Surface
    plan : Plan
        Its value and gradient.
    made : MemberProgram
    starts : array, shape (members, dimension)
    steps, seed : int
    """
    members, dimension = starts.shape
    run = EnsembleRun(members, steps, dimension)
    noise = surface.noise_of(seed)
    settings = {**made.rule.settings, **made.varying}

    def parts(step: int) -> tuple[HyperParameters, Scalars]:
        h = HyperParameters(**{**settings, "learning_rate": made.rate_at(step)})
        return h, Scalars(**made.scalars_at(step))

    slots = made.start_slots(starts)
    _take_steps(surface, plan, made.rule, list(made.layers), slots, starts, noise, parts, run)
    _blank_after_stop(run)
    return run


def _unwrap(optimizers: list[Optimizer]) -> tuple[list[Optimizer], list[Wrapper]]:
    """Return the optimizers without their wrappers, and the wrappers, which must be the same."""
    peeled = [layers_of(optimizer) for optimizer in optimizers]
    layers = peeled[0][1]
    alike = [(type(layer), layer.own_settings) for layer in layers]
    for _, others in peeled:
        if [(type(layer), layer.own_settings) for layer in others] != alike:
            raise NotOnePassError("the wrappers around the optimizers differ")
    if any(callable(value) for _, own in alike for value in own.values()):
        raise NotOnePassError("a wrapper asks a function what to do, once for each run")
    return [inner for inner, _ in peeled], layers


def _sample_indices(count: int, most: int) -> np.ndarray:
    """Return up to `most` indices below `count`, the first and the last included."""
    evenly = np.linspace(0, count - 1, min(count, most)).astype(int)
    return np.array(list(dict.fromkeys(evenly.tolist())))  # `np.unique` would load `numpy.ma`


def _check_surface(surface: Surface, run: EnsembleRun) -> None:
    """Check points of the run one by one, to the bit: a function may use all points at once."""
    compute = surface.differentiate if surface.plan is None else surface.plan.replay
    members, columns = run.loss.shape
    for number, i in enumerate(_sample_indices(members, 32)):
        ends = columns - 1 if run.stopped[i] < 0 else run.stopped[i]  # the last may be of averages
        if ends < 1:
            continue
        k = _sample_indices(ends, 32)[::-1][number % min(ends, 32)]
        try:
            value, *_ = compute(*run.point[i, k])
        except Exception as error:
            raise NotOnePassError(f"{surface.title} takes one point at a time: {error}") from error
        if not np.array_equal(value, run.loss[i, k], equal_nan=True):
            raise NotOnePassError(f"{surface.title} gives other numbers for arrays than for points")


def _check_rule(
    rule: Optimizer, settings: _Settings, start: dict[str, Any], run: EnsembleRun
) -> None:
    """Check the rule member by member, to the bit: one that takes a norm mixes its members."""
    members, steps, _ = run.gradient.shape
    for i in _sample_indices(members, 32):
        h = settings.each[settings.row[i]]
        for k in _sample_indices(steps if run.stopped[i] < 0 else run.stopped[i], 3):
            before = start if not k else {name: a[:, k - 1] for name, a in run.slots.items()}
            slots = Slots(**{name: array[i] for name, array in before.items()})
            p, g, c = run.point[i, k], run.gradient[i, k], Scalars(**rule.scalars(int(k) + 1, h))
            new, made = rule.update(p, g, slots, h, c)[:2]
            same = np.array_equal(new, run.moved[i, k], equal_nan=True) and all(
                np.array_equal(array, run.slots[name][i, k], equal_nan=True)
                for name, array in made.items()
            )
            if not same:
                raise NotOnePassError(
                    f"{type(rule).__name__} mixes the members; its kind is not elementwise"
                )


def _blank_after_stop(run: EnsembleRun) -> None:
    """Set NaN after the first loss that is not finite, where a separate run would end."""
    for i in np.flatnonzero(run.stopped >= 0):
        k = run.stopped[i]
        run.loss[i, k + 1 :] = np.nan
        run.point[i, k + 1 :] = np.nan
        run.gradient[i, k:] = np.nan
        for arrays in (run.slots, run.terms):
            for array in arrays.values():
                array[i, k:] = np.nan


class _Settings:
    """The hyper-parameters of all members, as a rule reads them."""

    def __init__(self, optimizers: list[Optimizer]) -> None:
        self.rule = optimizers[0]
        combinations = [
            tuple(tuple(v) if isinstance(v, list) else v for v in o.settings.values())
            for o in optimizers
        ]
        #: The distinct combinations; `row` is the index of each member's.
        self.distinct = list(dict.fromkeys(combinations))
        places = {combination: i for i, combination in enumerate(self.distinct)}
        self.row = np.array([places[combination] for combination in combinations])
        names = list(optimizers[0].settings)
        self.each = [HyperParameters(**dict(zip(names, c, strict=True))) for c in self.distinct]
        self.h = HyperParameters(
            **{name: self._spread([getattr(h, name) for h in self.each]) for name in names}
        )

    def _spread(self, values: list[Any]) -> Any:
        """Return one value if all agree, else one row per member."""
        if all(value == values[0] for value in values):
            return values[0]
        if not isinstance(values[0], float):  # it selects a form of the rule, or its slots
            raise NotOnePassError("a setting that is not a number with a point differs")
        return np.array(values, dtype=float)[self.row, None]

    def scalars(self, t: int) -> Scalars:
        """Return the scalars of step t, computed member by member in Python floats."""
        each = [self.rule.scalars(t, h) for h in self.each]
        if any(not math.isfinite(x) for scalars in each for x in scalars.values()):
            raise NotOnePassError("a scalar of the rule is not finite")
        return Scalars(
            **{name: self._spread([scalars[name] for scalars in each]) for name in each[0]}
        )
