"""Machine loops: the phases of a block plan as loops over single elements, compiled by numba.

NumPy passes over a block once per operation; a machine loop passes over it once, with intermediate
values in registers. This needs the extra ``fast``. A loop does the operations of the plan in their
order, each rounded as NumPy rounds it, so it gives NumPy's bits: sums, products, quotients, roots
and choices do; a function such as `exp`, whose last bit differs between libraries, does not, and a
phase with one stays with NumPy (`loop_of` in `optlab.plan.loop_source` decides).

**Floating-point errors.** NumPy reports overflow, division by zero and invalid operations. A
machine loop checks whether a result is not finite, which is all that these can lead to. It keeps
the old values of some hundred elements until it has checked; if a result is not finite it restores
them, and NumPy processes these elements and reports the errors. So the warnings are NumPy's own.

**Verification.** Before a loop is used, its results for special values of floating point are
compared with NumPy's. If a bit differs on some machine, NumPy continues there.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from optlab.plan.blocks import BlockPlan
from optlab.plan.loop_source import CHUNK, Loop, loop_of
from optlab.plan.scratch import scratch

#: At most this many adjacent faulty chunks are recomputed at once.
_TOGETHER = 32
_COUNTS = (np.dtype(np.int64),)

_lock = threading.Lock()
#: Compiled functions by their source and argument dtypes.
_functions: dict[tuple[str, tuple[Any, ...]], Callable[..., int]] = {}


class MachineLoops:
    """Runs a block plan like the plan itself, by machine loops in the phases that have one.

    Attributes
    ----------
    plan : BlockPlan
    prepare, afters : callable, list of callable
        The plan's.
    loops : list of Loop or None
        One per phase; None is left to NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.plan import capture_blocks
    >>> example = np.ones(2, np.float32)
    >>> step = lambda a, n: {"p": a["p"] - n["rate"] * a["g"]}
    >>> plan = capture_blocks(step, {"p": example, "g": example}, {"rate": 0.1})
    >>> loops = MachineLoops(plan)
    >>> print(loops.loops[0].body)
    v3 = n0 * v1
    v4 = v0 - v3
    """

    def __init__(self, plan: BlockPlan) -> None:
        self.plan = plan
        self.prepare, self.afters = plan.prepare, plan.afters
        self.loops = [loop_of(plan, number) for number in range(len(plan.phases))]
        self._compiled: dict[int, Callable[..., int]] = {}
        self._checked: set[int] = set()

    def __bool__(self) -> bool:
        """Return whether any phase has a loop."""
        return any(self.loops)

    @property
    def block(self) -> int:
        """The number of elements of a block: large, but that of the plan if it has reductions."""
        return self.plan.block if self.afters else 4 * self.plan.block

    def compile(self) -> None:
        """Compile the loops, which takes about half a second for each."""
        for number, loop in enumerate(self.loops):
            if loop is not None:
                self._compiled[number] = _compiled(loop)

    def phase(self, number: int, prepared: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """Return the function that runs a phase on each block, as `BlockPlan.phase` does."""
        loop = self.loops[number]
        numbers = None if loop is None else loop.cast(prepared)
        if loop is None or numbers is None:
            return self.plan.phase(number, prepared)
        block = self._block(number, loop, numbers, prepared)
        with _lock:
            if number not in self._checked:
                if not _same(self.plan, block, self.plan.phase(number, prepared)):
                    self.loops[number] = None
                self._checked.add(number)
        return self.plan.phase(number, prepared) if self.loops[number] is None else block

    def _block(
        self, number: int, loop: Loop, numbers: list[Any], prepared: Sequence[Any]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        plan, run, by_numpy = self.plan, self.plan.runs[number], self.plan.phase(number, prepared)
        function = self._compiled[number]

        def block(arrays: Sequence[Any]) -> list[Any]:
            size = len(arrays[0])
            held = [*arrays, *scratch(plan.kept, size)] if plan.kept else arrays
            written = [held[place] for place in loop.written]
            if not all(map(_is_plain, written)):
                return by_numpy(arrays)
            read = [
                x if _is_plain(x) else np.require(x, None, ["C", "A"])
                for x in [held[place] for place in loop.read]
            ]
            (faulty,) = scratch(_COUNTS, size // CHUNK + 1, "faulty")
            count = function(*read, *written, faulty, *numbers)
            for span in _spans(faulty[:count].tolist()):
                again = [array[span] for array in held]
                run(*again, *scratch(plan.scratch, len(again[0]), "again"), *prepared)
            return plan.parts(number, held)

        return block


def _is_plain(array: Any) -> bool:
    return bool(array.flags.c_contiguous and array.flags.aligned)


def _spans(starts: list[int]) -> Iterator[slice]:
    """Yield chunks as slices; adjacent chunks are merged, up to a limit."""
    place = 0
    while place < len(starts):
        first, count = starts[place], 1
        while count < _TOGETHER and starts[place + count : place + count + 1] == [
            first + count * CHUNK
        ]:
            count += 1
        yield slice(first, first + count * CHUNK)
        place += count


def _compiled(loop: Loop) -> Callable[..., int]:
    """Compile a loop, or return a compiled one with the same source."""
    import numba

    if getattr(numba.config, "DISABLE_JIT", False):
        raise RuntimeError("NUMBA_DISABLE_JIT is set")
    dtypes = (*loop.read_dtypes, *loop.written_dtypes, *(one.dtype for one in loop.numbers))
    key = (loop.source, dtypes)
    with _lock:
        if key not in _functions:
            scope: dict[str, Any] = {"np": np, "float32": np.float32, "float64": np.float64}
            exec(compile(loop.source, "<optlab machine loop>", "exec"), scope)

            def array(dtype: Any, readonly: bool) -> Any:
                kind = numba.from_dtype(dtype)
                return numba.types.Array(kind, 1, "C", readonly=readonly)

            signature = numba.int64(
                *(array(dtype, True) for dtype in loop.read_dtypes),
                *(array(dtype, False) for dtype in loop.written_dtypes),
                array(np.dtype(np.int64), False),
                *(numba.from_dtype(dtype) for _, _, dtype in loop.numbers),
            )
            # No contraction and no reordering, for NumPy's bits.
            make = numba.njit(
                [signature], nogil=True, fastmath=False, error_model="numpy", boundscheck=False
            )
            _functions[key] = make(scope["loop"])
        return _functions[key]


def _same(plan: BlockPlan, one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Return whether two implementations of a phase give the same bits on special values."""
    draw = np.random.default_rng(0)
    size = 16 * CHUNK + 37
    found = []
    blocks = [_peculiar(draw, plan.dtypes[p], size) for p in plan.phases[0].inputs]
    for way in (one, other):
        arrays = [array.copy() for array in blocks]
        with np.errstate(all="ignore"):
            parts = way(arrays)
        found.append([*arrays, *map(np.asarray, parts)])
    return all(same_bits(a, b) for a, b in zip(*found, strict=True))


def _peculiar(draw: np.random.Generator, dtype: Any, size: int) -> Any:
    """Return numbers of all magnitudes, with chunks that are positive or not, finite or not."""
    limits = np.finfo(dtype if np.dtype(dtype).kind == "f" else np.float32)
    finite = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, limits.tiny, limits.smallest_subnormal, limits.eps]
    wild = [*finite, limits.max, limits.min, np.inf, -np.inf, np.nan]
    values = draw.standard_normal(size) * 10.0 ** draw.integers(-6, 4, size)
    few = draw.random(size) < 0.25
    values[few] = draw.choice(finite, size)[few]
    for start in range(0, size, CHUNK):
        chunk = values[start : start + CHUNK]
        if draw.random() < 0.125:
            chunk[:] = np.where(
                draw.random(len(chunk)) < 0.25, draw.choice(wild, len(chunk)), chunk
            )
        if draw.random() < 0.75:
            np.abs(chunk, out=chunk)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def same_bits(a: Any, b: Any) -> bool:
    """Return whether floats are the same to the bit, NaN payloads aside.

    Examples
    --------
    >>> same_bits(np.array([0.0, np.nan]), np.array([0.0, np.nan]))
    True
    >>> same_bits(np.array([0.0]), np.array([-0.0]))
    False
    """
    return a.dtype == b.dtype and bool(
        np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))))
    )


def machine_loops_of(plan: BlockPlan) -> MachineLoops | None:
    """Compile the loops of a plan; None if numba can compile nothing."""
    loops = MachineLoops(plan)
    if not loops:
        return None
    try:
        loops.compile()
    except Exception as error:  # noqa: BLE001 - any error of numba; the step continues without it
        first_line = next(iter(str(error).strip().splitlines()), "")
        warnings.warn(
            f"numba could not compile an update ({type(error).__name__}: {first_line}); NumPy goes "
            'on with it. optlab.plan.use_executor("numpy") asks numba no more.',
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return loops
