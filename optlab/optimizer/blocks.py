"""The fast step: a rule captured once, and run in place over blocks that fit the cache.

The plain step makes an array for every operation of the rule. Where nobody listens, the rule is
elementwise and the arrays are NumPy's, its captured form gives the same bits and needs no memory
but a few blocks. What cannot be captured (a branch on a value, an own function that is not element
by element) runs as it is written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optlab.optimizer.application import scalars_of
from optlab.optimizer.arena import Arena, Run
from optlab.optimizer.values import HyperParameters, Scalars, Slots
from optlab.plan import BlockPlan, CaptureRefusedError, capture_blocks, sizes
from optlab.plan.threads import on_all_cores, run_pieces

if TYPE_CHECKING:
    from optlab.optimizer.optimizer import Optimizer

#: So many forms of one rule are kept; a rule that has more of them runs as it is written.
_MOST_FORMS = 64
#: Below so many elements a rule runs as it is written: its operations cost less than the way here.
SMALL = 8192
_DEFAULT_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


class Pass(NamedTuple):
    """A run of parameters that a captured rule will update in place."""

    arena: Arena
    run: Run
    plan: BlockPlan
    numbers: list[float]
    gradients: Sequence[Any]

    @property
    def size(self) -> int:
        """How many elements it updates."""
        bounds: list[int] = self.arena.bounds
        return bounds[self.run.last] - bounds[self.run.first]

    def jobs(self) -> Iterator[Callable[[], None]]:
        """Give its work in parts that may be done in any order."""
        pieces = _pieces(self.arena, self.run, self.gradients)
        if len(self.plan.runs) > 1:  # a norm is added up in order
            yield partial(run_pieces, self.plan, self.numbers, pieces)
        else:
            for piece in pieces:
                yield partial(run_pieces, self.plan, self.numbers, [piece])


def fast_pass(
    optimizer: Optimizer,
    arena: Arena,
    run: Run,
    gradients: Sequence[Any],
    rate: float,
    factor: Any = None,
) -> Pass | None:
    """Prepare to update the parameters of a run in place; None where only the plain step will do.

    Nothing is written yet, and nothing that `take_passes` does can fail for the values it meets.
    """
    values = arena.values
    if (
        arena.bounds[run.last] - arena.bounds[run.first] < SMALL
        or optimizer.kind == "matrix"
        or optimizer.draws
        or type(values) is not np.ndarray
        or values.dtype.itemsize < 4
        or np.geterr() != _DEFAULT_ERRORS
        or any(type(g) is not np.ndarray or g.dtype != values.dtype for g in gradients)
    ):
        return None
    h = run.h
    h.learning_rate = rate * run.multiplier
    scalars = scalars_of(optimizer, run.t, h)
    clip = None if factor is None else float(factor)
    plan = _plan_for(optimizer, arena, run, scalars, clip)
    if plan is None:
        return None
    numbers = [
        h.learning_rate,
        *([] if clip is None else [clip]),
        *(x for x in scalars.values() if type(x) is float),
    ]
    return Pass(arena, run, plan, numbers, gradients)


def take_passes(optimizer: Optimizer, passes: list[Pass]) -> None:
    """Update in place what has been prepared."""
    for arena in {id(one.arena): one.arena for one in passes}.values():
        for name, array in arena.slots.items():
            if not array.flags.writeable:  # listeners, or a state, may hold it
                arena.slots[name] = array.copy()
    name = type(optimizer).__name__
    faults: set[str] = set()
    jobs = (job for one in passes for job in one.jobs())
    with np.errstate(all="call", under="ignore", call=lambda kind, _: faults.add(kind)):
        on_all_cores(jobs, sum(one.size for one in passes))
    for arena, run, *_ in passes:
        if arena.master is not None:
            span = slice(arena.bounds[run.first], arena.bounds[run.last])
            arena.flat[span] = arena.master[span]
        arena.t[run.first : run.last] = [run.t] * (run.last - run.first)
        arena.was_written(run.first, run.last, f"{name}.step()")
    for fault in sorted(faults):
        message = f"{fault} encountered in {name}.update"
        warnings.warn(message, RuntimeWarning, stacklevel=4)


def _plan_for(
    optimizer: Optimizer, arena: Arena, run: Run, scalars: dict[str, Any], clip: float | None
) -> BlockPlan | None:
    """Give the captured form of the rule for these settings, or None if there is none."""
    h, regularizer = run.h, run.regularizer
    static = tuple((name, x) for name, x in scalars.items() if type(x) is not float)
    fixed = tuple((name, x) for name, x in vars(h).items() if name != "learning_rate")
    decay = regularizer and (type(regularizer), regularizer.coeff)
    key = (arena.values.dtype, static, fixed, decay, tuple(arena.slots), clip is None)
    plans: dict[Any, BlockPlan | None] = optimizer.plans
    try:
        if key in plans:
            return plans[key]
    except TypeError:  # a setting that cannot be a key
        return None
    if len(plans) >= _MOST_FORMS:
        return None
    plan = None
    with suppress(Exception):  # whatever it is, the plain step will say it in its own words
        plan = _captured(optimizer, arena, run, scalars, clip)
    plans[key] = plan
    return plan


def _captured(
    optimizer: Optimizer, arena: Arena, run: Run, scalars: dict[str, Any], clip: float | None
) -> BlockPlan:
    names = list(arena.slots)
    static = {name: x for name, x in scalars.items() if type(x) is not float}
    moving = {name: x for name, x in scalars.items() if type(x) is float}

    def step(arrays: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
        numbers = dict(numbers)
        h = HyperParameters(**vars(run.h) | {"learning_rate": numbers.pop("learning_rate")})
        p, g = arrays["parameter"], arrays["gradient"]
        if clip is not None:
            g = g * numbers.pop("clip")
        if run.regularizer is not None:
            g = run.regularizer.add_to(g, p)
        slots = Slots(**{name: arrays[f"slot_{name}"] for name in names})
        new, made, *_ = optimizer.update(p, g, slots, h, Scalars(**static | numbers))
        if made.keys() != set(names):
            raise CaptureRefusedError("the slots are not those of the class.")
        return {"parameter": new, **{f"slot_{name}": made[name] for name in names}}

    example = np.ones(2, arena.values.dtype)
    arrays = {"parameter": example, "gradient": example}
    arrays |= {f"slot_{name}": np.ones(2, arena.slots[name].dtype) for name in names}
    first = {"learning_rate": run.h.learning_rate} | ({} if clip is None else {"clip": clip})
    return capture_blocks(step, arrays, first | moving)


def _pieces(arena: Arena, run: Run, gradients: Sequence[Any]) -> Iterator[list[Any]]:
    """Cut a run into blocks; the gradients of small parameters are laid side by side."""
    slots = [arena.slots[name] for name in arena.slots]
    values, bounds, block = arena.values, arena.bounds, sizes.BLOCK
    start = bounds[run.first]
    small: list[Any] = []
    together = 0
    for number, g in zip(range(run.first, run.last), gradients, strict=True):
        flat = g.reshape(-1)
        if together + flat.size <= block:
            small.append(flat)
            together += flat.size
            continue
        if small:
            yield _piece(values, _joined(small), slots, start)
            start += together
            small, together = [], 0
        if flat.size <= block // 2:
            small, together = [flat], flat.size
            continue
        for offset in range(0, flat.size, block):
            yield _piece(values, flat[offset : offset + block], slots, start + offset)
        start = bounds[number + 1]
    if small:
        yield _piece(values, _joined(small), slots, start)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _piece(values: Any, g: Any, slots: list[Any], start: int) -> list[Any]:
    if g.size == values.size:
        return [values, g, *slots]
    span = slice(start, start + g.size)
    return [values[span], g, *[slot[span] for slot in slots]]
