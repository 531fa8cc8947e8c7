"""Fused updates: a rule captured once, and run in place over blocks that fit the cache.

The unfused step makes an array for every operation of the rule. Without listeners, with arrays of
NumPy and a rule that is no matrix rule, the captured form gives the same bits and needs memory for
a few blocks only; `optlab.plan.executors` chooses whether NumPy or a numba loop runs it. A rule
that cannot be captured (a branch on a value, a function that is not elementwise) runs unfused.
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

#: The most captured forms of one rule; a rule that has more of them runs unfused.
_MOST_FORMS = 64
#: Blocks in one job of a thread: to hand out a job takes as long as an operation on a block.
_BLOCKS_A_JOB = 4
#: Below so many elements a rule runs unfused: its operations cost less than the fused overhead.
SMALL = 8192
#: Attributes of every optimizer; others that a rule reads may change from step to step.
_ENGINE_ATTRIBUTES = {
    "settings", "schedule", "name", "_common", "groups", "key", "plans", "refused", "skipped",
    "warned", "elementwise_verified",
}  # fmt: skip


#: Class attributes that the engine reads, not the rule.
_DECLARED = {"hyperparameters", "slots", "ranges", "__annotations__"}


class FusedUpdate(NamedTuple):
    """A span of parameters that a captured rule will update in place."""

    params: FlatParameters
    span: Span
    plan: BlockPlan
    numbers: list[float]
    gradients: Sequence[Any]

    @property
    def needs_all_cores(self) -> bool:
        """Whether all cores share it: it has several phases and many blocks."""
        return bool(self.plan.afters) and self.size >= sizes.LARGE

    @property
    def size(self) -> int:
        """The number of elements."""
        bounds: list[int] = self.params.bounds
        return bounds[self.span.last] - bounds[self.span.first]

    def jobs(self, executor: Executor) -> Iterator[Callable[[], None]]:
        """Yield the work in parts that may be done in any order."""
        pieces = _split(self.params, self.span, self.gradients, executor.block)
        if self.plan.afters:  # a norm is summed in order
            yield partial(run_pieces, executor, self.numbers, pieces)
            return
        update = executor.phase(0, executor.prepare(*self.numbers))
        count = max(1, _BLOCKS_A_JOB * sizes.BLOCK // executor.block)
        while some := list(islice(pieces, count)):
            yield partial(_update_all, update, some)

    def run_on_all_cores(self, executor: Executor) -> None:
        """Do the work, each phase on all cores."""
        pieces = _split(self.params, self.span, self.gradients, executor.block)
        run_pieces(executor, self.numbers, pieces, over_all_cores)


def prepare_fused(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    gradients: Sequence[Any],
    rate: float,
    factor: Any = None,
) -> FusedUpdate | None:
    """Prepare the fused update of a span; return None if it has to run unfused.

    Nothing is written yet, and `run_fused` cannot fail, whatever the values are.
    """
    if params.bounds[span.last] - params.bounds[span.first] < SMALL:
        return None
    values, gradients = params.values, gradients[span.first : span.last]
    if (
        optimizer.kind == "matrix"
        or optimizer.draws
        or not optimizer.elementwise_verified
        or type(values) is not np.ndarray
        or values.dtype.itemsize < 4
        or not {"warn", "ignore"}.issuperset(np.geterr().values())
        or not {np.ndarray}.issuperset(map(type, gradients))
        or not {values.dtype, params.flat.dtype}.issuperset([g.dtype for g in gradients])
    ):
        return None
    h = span.h
    h.learning_rate = rate * span.multiplier
    scalars = scalars_of(optimizer, span.t, h)
    clip = None if factor is None else float(factor)
    plan = _plan_for(optimizer, params, span, scalars, clip)
    if plan is None:
        return None
    if not optimizer.built_in and not (
        plan.repeats()  # global values that it reads may have changed
        and _matches_capture(optimizer, params, span, plan, gradients, scalars, clip)
    ):
        _refuse(optimizer, params, "it does something else than when it was captured")
        return None
    written = [one.values for group in optimizer.groups for one in group.arenas]
    owners = {id(array) for one in written for array in (one, one.base)}

    def is_written(g: Any) -> bool:
        """Return whether it is memory of a parameter, overwritten before it would be read."""
        if g.base is None and id(g) not in owners:
            return False
        return any(np.may_share_memory(g, one) for one in written)

    gradients = [g.copy() if is_written(g) else g for g in gradients]
    return FusedUpdate(params, span, plan, _numbers(h.learning_rate, clip, scalars), gradients)


def run_fused(optimizer: UpdateRule, updates: list[FusedUpdate]) -> None:
    """Run fused updates; warn of floating-point errors when the whole step is written."""
    for params in {id(one.params): one.params for one in updates}.values():
        params.make_slots_writable()
    name = type(optimizer).__name__
    faults: set[str] = set()
    actions: Any = {
        kind: "call" if how == "warn" else "ignore" for kind, how in np.geterr().items()
    }
    executors = [(one, executor_of(one.plan, one.size)) for one in updates]
    parallel = [(one, executor) for one, executor in executors if not one.needs_all_cores]
    jobs = (job for one, executor in parallel for job in one.jobs(executor))
    with np.errstate(**actions, call=lambda kind, _: faults.add(kind)):
        on_all_cores(jobs, sum(one.size for one, _ in parallel))
        for one, executor in executors:
            if one.needs_all_cores:
                one.run_on_all_cores(executor)
        for params, span, *_ in updates:
            if params.master is not None:
                place = slice(params.bounds[span.first], params.bounds[span.last])
                params.flat[place] = params.master[place]
    for params, span, *_ in updates:
        params.t[span.first : span.last] = [span.t] * (span.last - span.first)
        params.mark_written(span.first, span.last, f"{name}.step()")
    for fault in sorted(faults):
        message = f"{fault} encountered in {name}.update"
        warnings.warn(message, RuntimeWarning, stacklevel=5)


def _plan_for(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    scalars: dict[str, Any],
    clip: float | None,
) -> BlockPlan | None:
    """Return the captured form of the rule for these settings, or None."""
    h, regularizer = span.h, span.regularizer
    static = tuple((name, x) for name, x in scalars.items() if type(x) is not float)
    fixed = tuple((name, x) for name, x in vars(h).items() if name != "learning_rate")
    decay = regularizer and (type(regularizer), *sorted(vars(regularizer).items()))
    key = (params.values.dtype, static, fixed, decay, tuple(params.slots), clip is None)
    plans: dict[Any, BlockPlan | None] = optimizer.plans
    try:
        if key in plans:
            return plans[key]
    except TypeError:
        return _refuse(optimizer, params, "it has a setting that cannot be a key of a dict")
    if len(plans) >= _MOST_FORMS:
        return _refuse(optimizer, params, f"it has more than {_MOST_FORMS} forms")
    plans[key] = None
    if changeable := _mutable_attributes(optimizer):
        # Capture calls the rule, so that a count of calls would be off by one.
        return _refuse(optimizer, params, f"it may change its {changeable[0]!r}")
    try:
        plans[key] = _capture(optimizer, params, span, scalars, clip)
    except CaptureRefusedError as error:
        return _refuse(optimizer, params, str(error))
    except Exception as error:  # noqa: BLE001  # the unfused step raises it again
        return _refuse(optimizer, params, f"when captured, {type(error).__name__}: {error}")
    return plans[key]


def _refuse(optimizer: UpdateRule, params: FlatParameters, why: str) -> BlockPlan | None:
    """Record why a rule runs unfused, for `Optimizer.execution`, and return None."""
    optimizer.refused[params.values.dtype] = why
    return None


def _capture(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    scalars: dict[str, Any],
    clip: float | None,
) -> BlockPlan:
    """Capture clip by a factor, decay and rule as one plan."""
    rule, read = _observed_copy(optimizer)
    names = list(params.slots)
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

    example = np.ones(2, params.values.dtype)
    arrays = {"parameter": example, "gradient": example}
    arrays |= {f"slot_{name}": np.ones(2, params.slots[name].dtype) for name in names}
    first = {"learning_rate": span.h.learning_rate} | ({} if clip is None else {"clip": clip})
    return capture_blocks(step, arrays, first | moving)


class _FixedHyperParameters(HyperParameters):
    """Hyper-parameters for a capture; a function is refused, as its results may differ."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if callable(value) and not name.startswith("_"):
            raise CaptureRefusedError(f"{name} is a function.")
        return value


def _observed_copy(optimizer: UpdateRule) -> tuple[Any, set[str]]:
    """Return a copy of an optimizer, and the set of its own attributes that the rule reads.

    The copy takes what a rule writes to itself while it is captured.
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
    """Name the attributes of a user's rule that it may change in place, such as a list."""
    own = {name: value for name, value in vars(optimizer).items() if name not in _ENGINE_ATTRIBUTES}
    for one in type(optimizer).__mro__[:-1]:
        if not is_built_in(one):
            own |= {name: value for name, value in vars(one).items() if name not in _DECLARED}
    kinds = (list, dict, set, bytearray, np.ndarray)
    return [name for name, value in own.items() if isinstance(value, kinds)]


def _numbers(rate: float, clip: float | None, scalars: dict[str, Any]) -> list[float]:
    """Return the numbers that a captured form takes in each step."""
    factor = [] if clip is None else [clip]
    return [rate, *factor, *(x for x in scalars.values() if type(x) is float)]


def _matches_capture(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    plan: BlockPlan,
    gradients: Sequence[Any],
    scalars: dict[str, Any],
    clip: float | None,
) -> bool:
    """Return whether a user's rule and its captured form agree on two elements.

    They may not where a rule asks for the type of a setting, which differs in a capture.
    """
    few = slice(params.bounds[span.first], params.bounds[span.first] + 2)
    p = params.values[few].copy()
    g = gradients[0].reshape(-1)[:2].astype(p.dtype)
    if len(plan.runs) > 1 or len(g) != len(p):
        return True  # norms are over all elements
    before = {name: array[few].copy() for name, array in params.slots.items()}
    used = g if clip is None else g * np.asarray(clip, g.dtype)
    if span.regularizer is not None:
        used = span.regularizer.add_to(used, p)
    numbers = _numbers(span.h.learning_rate, clip, scalars)
    with np.errstate(all="ignore"):
        slots = Slots(**{name: array.copy() for name, array in before.items()})
        new, made, *_ = optimizer.update(p.copy(), used, slots, span.h, Scalars(**scalars))
        run_pieces(plan, numbers, [[p, g, *before.values()]])
    return np.array_equal(new, p, equal_nan=True) and all(
        np.array_equal(made[name], array, equal_nan=True) for name, array in before.items()
    )


def _split(
    params: FlatParameters, span: Span, gradients: Sequence[Any], longest: int
) -> Iterator[list[Any]]:
    """Yield a span in blocks; the gradients of small parameters are concatenated."""
    slots = [params.slots[name] for name in params.slots]
    values, bounds, block = params.values, params.bounds, sizes.BLOCK
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
    g = g.astype(values.dtype, copy=False)  # 16 bits to float32, with multi_precision
    if g.size == values.size:
        return [values, g, *slots]
    span = slice(start, start + g.size)
    return [values[span], g, *[slot[span] for slot in slots]]
