"""The fast step: a rule captured once, and run in place over blocks that fit the cache.

The plain step makes an array for every operation of the rule. Where nobody listens, the rule is
elementwise and the arrays are NumPy's, its captured form gives the same bits and needs no memory
but a few blocks; who runs it, NumPy or a machine loop, `optlab.plan.executors` decides. What cannot
be captured (a branch on a value, an own function that is not element by element) runs as it is
written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from optlab.optimizer.params.flat import FlatParameters, Span
from optlab.optimizer.rule.declaration import is_built_in
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.apply_rule import scalars_of
from optlab.plan import BlockPlan, CaptureRefusedError, capture_blocks, sizes
from optlab.plan.executors import Executor, executor_of
from optlab.plan.threads import on_all_cores, over_all_cores, run_pieces

#: So many forms of one rule are kept; a rule that has more of them runs as it is written.
_MOST_FORMS = 64
#: So many blocks are one job of a thread: handing out takes as long as an operation on a block.
_BLOCKS_A_JOB = 4
#: Below so many elements a rule runs as it is written: its operations cost less than the way here.
SMALL = 8192
#: What every optimizer has; what else its rule reads of itself may change from step to step.
_ENGINE_ATTRIBUTES = {
    "settings", "schedule", "name", "_common", "groups", "key", "plans", "refused", "skipped",
    "warned", "elementwise_verified",
}  # fmt: skip


#: What a class declares; the engine reads it.
_DECLARED = {"hyperparameters", "slots", "ranges", "__annotations__"}


class FusedUpdate(NamedTuple):
    """A run of parameters that a captured rule will update in place."""

    arena: FlatParameters
    span: Span
    plan: BlockPlan
    numbers: list[float]
    gradients: Sequence[Any]

    @property
    def needs_all_cores(self) -> bool:
        """Whether all cores share it: several passes over it, and many blocks."""
        return bool(self.plan.afters) and self.size >= sizes.LARGE

    @property
    def size(self) -> int:
        """How many elements it updates."""
        bounds: list[int] = self.arena.bounds
        return bounds[self.span.last] - bounds[self.span.first]

    def jobs(self, executor: Executor) -> Iterator[Callable[[], None]]:
        """Give its work in parts that may be done in any order."""
        pieces = _split(self.arena, self.span, self.gradients, executor.block)
        if self.plan.afters:  # a norm is added up in order
            yield partial(run_pieces, executor, self.numbers, pieces)
            return
        update = executor.phase(0, executor.prepare(*self.numbers))
        count = max(1, _BLOCKS_A_JOB * sizes.BLOCK // executor.block)
        while some := list(islice(pieces, count)):
            yield partial(_update_all, update, some)

    def run_on_all_cores(self, executor: Executor) -> None:
        """Do its work, every core a share of each phase."""
        pieces = _split(self.arena, self.span, self.gradients, executor.block)
        run_pieces(executor, self.numbers, pieces, over_all_cores)


def prepare_fused(
    optimizer: UpdateRule,
    arena: FlatParameters,
    span: Span,
    gradients: Sequence[Any],
    rate: float,
    factor: Any = None,
) -> FusedUpdate | None:
    """Prepare to update the parameters of a run in place; None where only the plain step will do.

    Nothing is written yet, and nothing that `run_fused` does can fail for the values it meets.
    """
    if arena.bounds[span.last] - arena.bounds[span.first] < SMALL:
        return None
    values, gradients = arena.values, gradients[span.first : span.last]
    if (
        optimizer.kind == "matrix"
        or optimizer.draws
        or not optimizer.elementwise_verified
        or type(values) is not np.ndarray
        or values.dtype.itemsize < 4
        or not {"warn", "ignore"}.issuperset(np.geterr().values())
        or not {np.ndarray}.issuperset(map(type, gradients))
        or not {values.dtype, arena.flat.dtype}.issuperset([g.dtype for g in gradients])
    ):
        return None
    h = span.h
    h.learning_rate = rate * span.multiplier
    scalars = scalars_of(optimizer, span.t, h)
    clip = None if factor is None else float(factor)
    plan = _plan_for(optimizer, arena, span, scalars, clip)
    if plan is None:
        return None
    if not optimizer.built_in and not (
        plan.repeats()  # what it reads of the notebook may have changed
        and _matches_capture(optimizer, arena, span, plan, gradients, scalars, clip)
    ):
        _refuse(optimizer, arena, "it does something else than when it was captured")
        return None
    written = [one.values for group in optimizer.groups for one in group.arenas]
    owners = {id(array) for one in written for array in (one, one.base)}

    def is_written(g: Any) -> bool:
        """Say whether it is the memory of a parameter, written over before it is read."""
        if g.base is None and id(g) not in owners:
            return False  # memory of its own
        return any(np.may_share_memory(g, one) for one in written)

    gradients = [g.copy() if is_written(g) else g for g in gradients]
    numbers = [
        h.learning_rate,
        *([] if clip is None else [clip]),
        *(x for x in scalars.values() if type(x) is float),
    ]
    return FusedUpdate(arena, span, plan, numbers, gradients)


def run_fused(optimizer: UpdateRule, passes: list[FusedUpdate]) -> None:
    """Update in place what has been prepared; warnings come when the whole step is written."""
    for arena in {id(one.arena): one.arena for one in passes}.values():
        arena.make_slots_writable()
    name = type(optimizer).__name__
    faults: set[str] = set()
    wanted: dict[str, Any] = dict(np.geterr())
    told = {name for name, how in wanted.items() if how == "warn"}
    heard: Any = {name: "call" if name in told else "ignore" for name in wanted}
    run_by = [(one, executor_of(one.plan, one.size)) for one in passes]
    together = [(one, executor) for one, executor in run_by if not one.needs_all_cores]
    jobs = (job for one, executor in together for job in one.jobs(executor))
    with np.errstate(**heard, call=lambda kind, _: faults.add(kind)):
        on_all_cores(jobs, sum(one.size for one, _ in together))
        for one, executor in run_by:
            if one.needs_all_cores:
                one.run_on_all_cores(executor)
        for arena, span, *_ in passes:
            if arena.master is not None:
                place = slice(arena.bounds[span.first], arena.bounds[span.last])
                arena.flat[place] = arena.master[place]
    for arena, span, *_ in passes:
        arena.t[span.first : span.last] = [span.t] * (span.last - span.first)
        arena.mark_written(span.first, span.last, f"{name}.step()")
    for fault in sorted(faults):
        message = f"{fault} encountered in {name}.update"
        warnings.warn(message, RuntimeWarning, stacklevel=5)


def _plan_for(
    optimizer: UpdateRule,
    arena: FlatParameters,
    span: Span,
    scalars: dict[str, Any],
    clip: float | None,
) -> BlockPlan | None:
    """Give the captured form of the rule for these settings, or None if there is none."""
    h, regularizer = span.h, span.regularizer
    static = tuple((name, x) for name, x in scalars.items() if type(x) is not float)
    fixed = tuple((name, x) for name, x in vars(h).items() if name != "learning_rate")
    decay = regularizer and (type(regularizer), *sorted(vars(regularizer).items()))
    key = (arena.values.dtype, static, fixed, decay, tuple(arena.slots), clip is None)
    plans: dict[Any, BlockPlan | None] = optimizer.plans
    try:
        if key in plans:
            return plans[key]
    except TypeError:
        return _refuse(optimizer, arena, "it has a setting that cannot be a key of a dict")
    if len(plans) >= _MOST_FORMS:
        return _refuse(optimizer, arena, f"it has more than {_MOST_FORMS} forms")
    plans[key] = None
    if changeable := _mutable_attributes(optimizer):
        # To capture a rule is to call it: what it counts would be counted once more.
        return _refuse(optimizer, arena, f"it may change its {changeable[0]!r}")
    try:
        plans[key] = _capture(optimizer, arena, span, scalars, clip)
    except CaptureRefusedError as error:
        return _refuse(optimizer, arena, str(error))
    except Exception as error:  # noqa: BLE001  # the plain step will say it in its own words
        return _refuse(optimizer, arena, f"when captured, {type(error).__name__}: {error}")
    return plans[key]


def _refuse(optimizer: UpdateRule, arena: FlatParameters, why: str) -> BlockPlan | None:
    """Keep why a rule runs as it is written, for `Optimizer.execution`; give None."""
    optimizer.refused[arena.values.dtype] = why
    return None


def _capture(
    optimizer: UpdateRule,
    arena: FlatParameters,
    span: Span,
    scalars: dict[str, Any],
    clip: float | None,
) -> BlockPlan:
    rule, read = _observed_copy(optimizer)
    names = list(arena.slots)
    static = {name: x for name, x in scalars.items() if type(x) is not float}
    moving = {name: x for name, x in scalars.items() if type(x) is float}

    def step(arrays: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
        numbers = dict(numbers)
        h = _FixedHyperParameters(**vars(span.h) | {"learning_rate": numbers.pop("learning_rate")})
        p, g = arrays["parameter"], arrays["gradient"]
        if clip is not None:
            g = g * numbers.pop("clip")
        if span.regularizer is not None:
            g = span.regularizer.add_to(g, p)
        slots = Slots(**{name: arrays[f"slot_{name}"] for name in names})
        new, made, *terms = rule.update(p, g, slots, h, Scalars(**static | numbers))
        if len(terms) > 1 or read:
            raise CaptureRefusedError("what the rule returns, or reads of itself, is not fixed.")
        if made.keys() != set(names):
            raise CaptureRefusedError("the slots are not those of the class.")
        return {"parameter": new, **{f"slot_{name}": made[name] for name in names}}

    example = np.ones(2, arena.values.dtype)
    arrays = {"parameter": example, "gradient": example}
    arrays |= {f"slot_{name}": np.ones(2, arena.slots[name].dtype) for name in names}
    first = {"learning_rate": span.h.learning_rate} | ({} if clip is None else {"clip": clip})
    return capture_blocks(step, arrays, first | moving)


class _FixedHyperParameters(HyperParameters):
    """Settings for a capture: one that is a function could give something else every time."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if callable(value) and not name.startswith("_"):
            raise CaptureRefusedError(f"{name} is a function.")
        return value


def _observed_copy(optimizer: UpdateRule) -> tuple[Any, set[str]]:
    """Give a copy of an optimizer, and the set of what its rule reads of it that may change.

    A copy, so that what a rule counts on itself is not counted when it is captured.
    """
    cls = type(optimizer)
    own = set(vars(optimizer)) - _ENGINE_ATTRIBUTES
    read: set[str] = set()

    def ask(self: Any, name: str) -> Any:
        if name in own:
            read.add(name)
        return object.__getattribute__(self, name)

    twin: Any = object.__new__(type(cls.__name__, (cls,), {"__getattribute__": ask}))
    object.__getattribute__(twin, "__dict__").update(vars(optimizer))
    return twin, read


def _mutable_attributes(optimizer: UpdateRule) -> list[str]:
    """Name what a user's rule may change without setting it, such as a list that it counts in."""
    own = {name: value for name, value in vars(optimizer).items() if name not in _ENGINE_ATTRIBUTES}
    for one in type(optimizer).__mro__[:-1]:
        if not is_built_in(one):
            own |= {name: value for name, value in vars(one).items() if name not in _DECLARED}
    kinds = (list, dict, set, bytearray, np.ndarray)
    return [name for name, value in own.items() if isinstance(value, kinds)]


def _matches_capture(
    optimizer: UpdateRule,
    arena: FlatParameters,
    span: Span,
    plan: BlockPlan,
    gradients: Sequence[Any],
    scalars: dict[str, Any],
    clip: float | None,
) -> bool:
    """Say whether a user's rule gives what was captured, by two elements.

    It may ask for the type of a setting, say, which a capture answers in another way.
    """
    few = slice(arena.bounds[span.first], arena.bounds[span.first] + 2)
    p = arena.values[few].copy()
    g = gradients[0].reshape(-1)[:2].astype(p.dtype)
    if len(plan.runs) > 1 or len(g) != len(p):
        return True  # norms are of the whole
    before = {name: array[few].copy() for name, array in arena.slots.items()}
    used = g if clip is None else g * np.asarray(clip, g.dtype)
    if span.regularizer is not None:
        used = span.regularizer.add_to(used, p)
    numbers = [span.h.learning_rate, *([] if clip is None else [clip])]
    numbers += [x for x in scalars.values() if type(x) is float]
    with np.errstate(all="ignore"):
        slots = Slots(**{name: array.copy() for name, array in before.items()})
        new, made, *_ = optimizer.update(p.copy(), used, slots, span.h, Scalars(**scalars))
        run_pieces(plan, numbers, [[p, g, *before.values()]])
    return np.array_equal(new, p, equal_nan=True) and all(
        np.array_equal(made[name], array, equal_nan=True) for name, array in before.items()
    )


def _split(
    arena: FlatParameters, span: Span, gradients: Sequence[Any], longest: int
) -> Iterator[list[Any]]:
    """Cut a run into blocks; the gradients of small parameters are laid side by side."""
    slots = [arena.slots[name] for name in arena.slots]
    values, bounds, block = arena.values, arena.bounds, sizes.BLOCK
    start = bounds[span.first]
    small: list[Any] = []
    together = 0
    for number, g in zip(range(span.first, span.last), gradients, strict=True):
        flat = g.reshape(-1)
        if together + flat.size <= block:
            small.append(flat)
            together += flat.size
            continue
        if small:
            yield _block(values, _concatenated(small), slots, start)
            start += together
            small, together = [], 0
        if flat.size <= block // 2:
            small, together = [flat], flat.size
            continue
        for offset in range(0, flat.size, longest):
            yield _block(values, flat[offset : offset + longest], slots, start + offset)
        start = bounds[number + 1]
    if small:
        yield _block(values, _concatenated(small), slots, start)


def _update_all(update: Callable[[list[Any]], Any], pieces: list[list[Any]]) -> None:
    for piece in pieces:
        update(piece)


def _concatenated(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _block(values: Any, g: Any, slots: list[Any], start: int) -> list[Any]:
    g = g.astype(values.dtype, copy=False)  # of 16 bits, for a float32 copy
    if g.size == values.size:
        return [values, g, *slots]
    span = slice(start, start + g.size)
    return [values[span], g, *[slot[span] for slot in slots]]
