"""Fused updates: a rule captured once, and run in place over blocks that fit the cache.

The unfused step makes an array for every operation of the rule. Without listeners, with arrays of
NumPy and a rule that is no matrix rule, the captured form gives the same bits and needs memory for
a few blocks only; `optlab.plan.executors` chooses whether NumPy or a numba loop runs it. On a GPU
an elementwise rule is one kernel (`optlab.plan.cuda.kernels`). A rule that cannot be captured (a
branch on a value, a function that is not elementwise) runs unfused.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from optlab.backend.ensemble import EnsembleArray
from optlab.backend.user_frames import stack_level_outside
from optlab.optimizer.params.flat import FlatParameters, Span
from optlab.optimizer.regularizer import with_decay
from optlab.optimizer.rule.declaration import is_built_in
from optlab.optimizer.rule.members import PerMember, read_members
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.apply_rule import scalars_of
from optlab.plan import BlockPlan, CaptureError, capture_blocks, sizes
from optlab.plan.blocks import RunsBlock
from optlab.plan.cuda.kernels import CupyKernels, has_kernels, kernels_of
from optlab.plan.executors import Executor, executor_of
from optlab.plan.members.blocks import MemberBlocks
from optlab.plan.progress import Blocks
from optlab.plan.threads import on_all_cores, over_all_cores, run_pieces
from optlab.plan.undisturbed import undisturbed

#: The most captured forms of one rule; a rule that has more of them runs unfused.
_MOST_FORMS = 64
#: Blocks in one job of a thread: to hand out a job takes as long as an operation on a block.
_BLOCKS_A_JOB = 4
#: Below so many elements a rule runs unfused: its operations cost less than the fused overhead.
SMALL = 8192
#: Of scalars of a step that may be others in the next; the rest chooses the form of a rule.
_MOVING = (float, PerMember)
#: Attributes of every optimizer; others that a rule reads may change from step to step.
_ENGINE_ATTRIBUTES = {
    "settings", "schedule", "name", "_common", "groups", "key", "plans", "refused", "skipped",
    "unfinished", "warned", "elementwise_verified", "bound_step", "steps_until_bound",
}  # fmt: skip


#: Class attributes that the engine reads, not the rule.
_DECLARED = {"hyperparameters", "slots", "ranges", "__annotations__"}


class FusedUpdate(NamedTuple):
    """A span of parameters that a captured rule will update in place."""

    params: FlatParameters
    span: Span
    plan: BlockPlan
    numbers: list[Any]
    gradients: Sequence[Any]

    @property
    def needs_all_cores(self) -> bool:
        """Whether all cores share it: it has several phases and many blocks."""
        return bool(self.plan.afters) and self.size >= sizes.LARGE

    @property
    def size(self) -> int:
        """The number of elements, of all members of an ensemble."""
        bounds: list[int] = self.params.bounds
        members = getattr(self.params.values, "member_count", 1)
        return (bounds[self.span.last] - bounds[self.span.first]) * int(members)

    def executor(self) -> Executor:
        """Return what runs it: NumPy or machine loops, a kernel on a GPU, rows of an ensemble."""
        values = self.params.values
        if type(values) is np.ndarray:
            return executor_of(self.plan, self.size)
        if type(values) is EnsembleArray:
            if self.plan.rows is None:
                self.plan.rows = MemberBlocks(self.plan, values.dtype)
            return executor_of(self.plan.rows, self.size)
        return kernels_of(self.plan, values) or executor_of(self.plan, self.size)

    def pieces(self, executor: Executor) -> Iterator[list[Any]]:
        """Yield the arrays of each block."""
        if type(self.params.values) is EnsembleArray:
            params = self.params
            dtype = params.values.dtype
            arrays = [one.members for one in (params.values, *params.slots.values())]
            gradients = [g.members.astype(dtype, copy=False) for g in self.gradients]
            start: int = params.bounds[self.span.first]
            tiles: Iterator[list[Any]] = executor.tiles(arrays, gradients, start)  # type: ignore[attr-defined]
            return tiles
        return _split(self.params, self.span, self.gradients, executor.block)

    def jobs(
        self, executor: Executor, done: dict[Any, Any], blocks: Blocks
    ) -> Iterator[Callable[[], None]]:
        """Yield the work in parts that may be done in any order, and record what is done."""
        pieces = self.pieces(executor)
        if self.plan.afters:  # a norm is summed in order
            yield partial(run_pieces, executor, self.numbers, pieces, done=done)
            return
        update = executor.phase(0, executor.prepare(*self.numbers))
        count = max(1, _BLOCKS_A_JOB * sizes.BLOCK // executor.block)
        first = 0
        while some := list(islice(pieces, count)):
            blocks.expect(first + len(some))
            yield partial(_update_all, update, some, first, blocks)
            first += len(some)

    def run_on_all_cores(self, executor: Executor, done: dict[Any, Any]) -> None:
        """Do the work, each phase on all cores."""
        run_pieces(executor, self.numbers, self.pieces(executor), over_all_cores, done)


def prepare_fused(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    gradients: Sequence[Any],
    rate: float,
    factor: Any = None,
) -> FusedUpdate | None:
    """Prepare the fused update of a span; return None if it has to run unfused.

    Nothing is written yet, and the pass cannot fail, whatever the values are.
    """
    values = params.values
    kind = type(values)
    if kind is np.ndarray:
        if params.bounds[span.last] - params.bounds[span.first] < SMALL:
            return None
    elif not (optimizer.built_in and optimizer.not_finite == "pass") or not (
        has_kernels(values) or _are_rows(optimizer, values, gradients)
    ):
        return None
    gradients = gradients[span.first : span.last]
    if (
        optimizer.kind == "matrix"
        or optimizer.draws
        or not optimizer.elementwise_verified
        or values.dtype.itemsize < 4
        or not {"warn", "ignore"}.issuperset(np.geterr().values())
        or not {kind}.issuperset(map(type, gradients))
        or not {values.dtype, params.flat.dtype}.issuperset([g.dtype for g in gradients])
    ):
        return None
    h = span.h
    h.__dict__["learning_rate"] = rate * span.multiplier
    scalars = scalars_of(optimizer, span.t, h)
    clip: Any = None
    if factor is not None:
        clip = read_members(factor) if kind is EnsembleArray else None
        clip = float(factor) if clip is None else clip
    plan = plan_for(optimizer, params, span, scalars, clip)
    if plan is None:
        return None
    if kind is EnsembleArray:
        if plan.afters:
            return None
    elif kind is not np.ndarray and kernels_of(plan, values) is None:
        return None
    if not optimizer.built_in and not (
        plan.repeats()  # global values that it reads may have changed
        and _matches_capture(optimizer, params, span, plan, gradients, scalars, clip)
    ):
        _refuse(optimizer, params, "it does something else than when it was captured")
        return None
    written = [_memory(one.values) for group in optimizer.groups for one in group.arenas]
    owners = {id(array) for one in written for array in (one, one.base)}

    def is_written(g: Any) -> bool:
        """Return whether it is memory of a parameter, overwritten before it would be read."""
        g = _memory(g)
        if g.base is None and id(g) not in owners:
            return False
        return any(np.may_share_memory(g, one) for one in written)

    gradients = [g.copy() if is_written(g) else g for g in gradients]
    numbers = _numbers(h, clip, scalars)
    return FusedUpdate(params, span, plan, numbers, gradients)


def _are_rows(optimizer: UpdateRule, values: Any, gradients: Sequence[Any]) -> bool:
    """Return whether parameters are an ensemble whose members are updated as rows of blocks."""
    if type(values) is not EnsembleArray or optimizer.kind != "elementwise":
        return False
    shape = values.members.shape
    return math.prod(shape) >= SMALL and all(
        type(one) is EnsembleArray
        and type(one.members) is np.ndarray
        and (one.level, one.member_count) == (values.level, shape[0])
        for one in (values, *(g for g in gradients if g is not None))
    )


def _memory(array: Any) -> Any:
    return array.members if type(array) is EnsembleArray else array


class FusedPass:
    """The fused updates of one step, written in place.

    After an exception `run` goes on where it was. A pass over many elements runs in another thread,
    where no signal interrupts it.
    """

    def __init__(self, optimizer: UpdateRule, updates: list[FusedUpdate]) -> None:
        self.name = type(optimizer).__name__
        self.updates = updates
        self.size = sum([one.size for one in updates])
        self.executors = [one.executor() for one in updates]
        self.on_device = any(isinstance(one, CupyKernels) for one in self.executors)
        #: What is done of each update: of its phases if it has several, or of its blocks.
        self._done: list[tuple[dict[Any, Any], Blocks]] = [({}, Blocks()) for _ in updates]
        self._faults: dict[str, int] = {}

    def run(self) -> None:
        """Write all updates."""
        if self.size < sizes.LARGE or self.on_device:  # whose stream is that of this thread
            self._run(self._run_blocks)
        else:
            undisturbed(partial(self._run, self._run_on_all_cores))

    def _run(self, write: Callable[[], None]) -> None:
        """Write in this way, then what belongs to it."""
        for one in self.updates:
            one.params.make_slots_writable()
        actions: Any = {
            kind: "call" if how == "warn" else "ignore" for kind, how in np.geterr().items()
        }
        # NumPy calls it in the middle of an operation: a function in C, which no signal interrupts.
        with np.errstate(**actions, call=self._faults.setdefault):
            write()
            for params, span, *_ in self.updates:
                if params.master is not None:
                    place = slice(params.bounds[span.first], params.bounds[span.last])
                    params.flat[place] = params.master[place]
        for params, span, *_ in self.updates:
            params.t[span.first : span.last] = [span.t] * (span.last - span.first)
            params.mark_written(span.first, span.last, f"{self.name}.step()")

    def _run_blocks(self) -> None:
        """Write one block after another."""
        for one, executor, (done, blocks) in zip(
            self.updates, self.executors, self._done, strict=True
        ):
            if one.plan.afters:
                run_pieces(executor, one.numbers, one.pieces(executor), done=done)
                continue
            update = executor.phase(0, executor.prepare(*one.numbers))
            for number, piece in enumerate(one.pieces(executor)):
                blocks.expect(number + 1)
                blocks.run(number, update, piece)

    def _run_on_all_cores(self) -> None:
        work = list(zip(self.updates, self.executors, self._done, strict=True))
        shared = [entry for entry in work if not entry[0].needs_all_cores]
        jobs = (job for one, executor, done in shared for job in one.jobs(executor, *done))
        on_all_cores(jobs, sum(one.size for one, *_ in shared))
        for one, executor, done in work:
            if one.needs_all_cores:
                one.run_on_all_cores(executor, done[0])

    def warn(self) -> None:
        """Warn of floating-point errors, once the whole step is written."""
        for fault in sorted(self._faults):
            message = f"{fault} encountered in {self.name}.update"
            warnings.warn(message, RuntimeWarning, stacklevel=stack_level_outside("optlab"))


def plan_for(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    scalars: dict[str, Any],
    clip: Any,
    with_terms: bool = False,
) -> BlockPlan | None:
    """Return the captured form of the rule for these settings, or None.

    With terms the plan writes these, too: it has an array ``term_NAME`` for each.
    """
    h, regularizer = span.h, span.regularizer
    static = tuple((name, x) for name, x in scalars.items() if type(x) not in _MOVING)
    # Of settings with a value for each member, the names.
    fixed = tuple(
        (name, PerMember if type(x) is PerMember else x)
        for name, x in vars(h).items()
        if name != "learning_rate"
    )
    decay = regularizer and (type(regularizer), *sorted(vars(regularizer).items()))
    key = (params.values.dtype, static, fixed, decay, tuple(params.slots), clip is None, with_terms)
    plans: dict[Any, BlockPlan | None] = optimizer.plans
    try:
        if key in plans:
            return plans[key]
    except TypeError:
        return _refuse(optimizer, params, "it has a setting that cannot be a key of a dict")
    if len(plans) >= _MOST_FORMS:
        return _refuse(optimizer, params, f"it has more than {_MOST_FORMS} forms")
    try:
        plans[key] = None
        if changeable := mutable_attributes(optimizer):
            # Capture calls the rule, so that a count of calls would be off by one.
            return _refuse(optimizer, params, f"it may change its {changeable[0]!r}")
        plans[key] = _capture(optimizer, params, span, scalars, clip, with_terms)
    except CaptureError as error:
        return None if with_terms else _refuse(optimizer, params, str(error))
    except Exception as error:  # noqa: BLE001  # the unfused step raises it again
        if with_terms:
            return None  # a term alone: the step without it stays fused
        return _refuse(optimizer, params, f"when captured, {type(error).__name__}: {error}")
    except BaseException:
        plans.pop(key, None)  # an interrupt says nothing of the rule
        raise
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
    clip: Any,
    with_terms: bool,
) -> BlockPlan:
    """Capture clip by a factor, decay and rule as one plan."""
    rule, read = observed_copy(optimizer)
    names = list(params.slots)
    static = {name: x for name, x in scalars.items() if type(x) not in _MOVING}

    def step(arrays: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
        settings, moving = (
            {name[2:]: x for name, x in numbers.items() if name.startswith(kind)}
            for kind in ("h.", "c.")
        )
        h = FixedHyperParameters(**vars(span.h) | settings)
        p, g = arrays["parameter"], arrays["gradient"]
        if clip is not None:
            g = g * numbers["clip"]
        g, decay = with_decay(span.regularizer, g, p, optimizer.separate_decay)
        slots = Slots(**{name: arrays[f"slot_{name}"] for name in names})
        c = Scalars(**static | moving)
        if decay is not None:
            c.decay = decay
        new, made, *terms = rule.update(p, g, slots, h, c)
        if len(terms) > 1 or read:
            raise CaptureError("what the rule returns, or reads of itself, is not fixed.")
        if made.keys() != set(names):
            raise CaptureError("the slots are not those of the class.")
        found = {"parameter": new, **{f"slot_{name}": made[name] for name in names}}
        if with_terms and terms:
            found |= {f"term_{name}": x for name, x in terms[0].items()}
        return found

    example = np.ones(2, params.values.dtype)
    arrays = {"parameter": example, "gradient": example}
    arrays |= {f"slot_{name}": np.ones(2, params.slots[name].dtype) for name in names}
    numbers = {
        name: x.values[0] if type(x) is PerMember else x
        for name, x in _named_numbers(span.h, clip, scalars).items()
    }
    if with_terms:
        with np.errstate(all="ignore"):
            made = step(dict(arrays), dict(numbers))
        for name in made.keys() - arrays.keys():
            if np.shape(made[name]) != example.shape:
                raise CaptureError(f"{name} is no array beside the parameter.")
        arrays |= {name: x for name, x in made.items() if name not in arrays}
    return capture_blocks(step, arrays, numbers)


class FixedHyperParameters(HyperParameters):
    """Hyper-parameters for a capture; a function is refused, as its results may differ."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if callable(value) and not name.startswith("_"):
            raise CaptureError(f"{name} is a function.")
        return value


def observed_copy(optimizer: UpdateRule) -> tuple[Any, set[str]]:
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


def mutable_attributes(optimizer: UpdateRule) -> list[str]:
    """Name the attributes of a user's rule that it may change in place, such as a list."""
    own = {name: value for name, value in vars(optimizer).items() if name not in _ENGINE_ATTRIBUTES}
    for one in type(optimizer).__mro__[:-1]:
        if not is_built_in(one):
            own |= {name: value for name, value in vars(one).items() if name not in _DECLARED}
    kinds = (list, dict, set, bytearray, np.ndarray)
    return [name for name, value in own.items() if isinstance(value, kinds)]


def _named_numbers(h: HyperParameters, clip: Any, scalars: dict[str, Any]) -> dict[str, Any]:
    """Return what may differ from step to step, or from member to member of an ensemble."""
    found = {"h.learning_rate": vars(h)["learning_rate"]}
    found |= {f"h.{name}": x for name, x in vars(h).items() if type(x) is PerMember}
    if clip is not None:
        found["clip"] = clip
    return found | {f"c.{name}": x for name, x in scalars.items() if type(x) in _MOVING}


def _numbers(h: HyperParameters, clip: Any, scalars: dict[str, Any]) -> list[Any]:
    """Return the numbers that a captured form takes in each step; a list has one a member."""
    named = _named_numbers(h, clip, scalars)
    return [x.values if type(x) is PerMember else x for x in named.values()]


def _matches_capture(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    plan: BlockPlan,
    gradients: Sequence[Any],
    scalars: dict[str, Any],
    clip: Any,
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
    used, decay = with_decay(span.regularizer, used, p, optimizer.separate_decay)
    c = Scalars(**scalars)
    if decay is not None:
        c.decay = decay
    numbers = _numbers(span.h, clip, scalars)
    with np.errstate(all="ignore"):
        slots = Slots(**{name: array.copy() for name, array in before.items()})
        new, made, *_ = optimizer.update(p.copy(), used, slots, span.h, c)
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


def _update_all(update: RunsBlock, pieces: list[list[Any]], first: int, blocks: Blocks) -> None:
    for number, piece in enumerate(pieces, first):
        blocks.run(number, update, piece)


def _concatenated(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _block(values: Any, g: Any, slots: list[Any], start: int) -> list[Any]:
    g = g.astype(values.dtype, copy=False)  # 16 bits to float32, with multi_precision
    if g.size == values.size:
        return [values, g, *slots]
    span = slice(start, start + g.size)
    return [values[span], g, *[slot[span] for slot in slots]]
