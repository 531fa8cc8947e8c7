"""Machine loops: the phases of a block plan as loops over single elements, compiled by numba.

NumPy passes over a block once per operation; a machine loop passes over it once, with intermediate
values in registers. This needs numba (the extra ``lab`` or ``fast``). A loop does the operations of
the plan in their order, each rounded as NumPy rounds it, so it gives NumPy's bits: sums, products,
quotients, roots and choices do; a function such as `exp`, whose last bit differs between libraries,
does not, and a phase with one stays with NumPy (`loop_of` in `optlab.plan.numba_codegen` decides).

**Floating-point errors.** NumPy reports overflow, division by zero and invalid operations. A
machine loop checks whether a result is not finite, which is all that these can lead to. It keeps
the old values of some hundred elements until it has checked; if a result is not finite it restores
them, and NumPy processes these elements and reports the errors. So the warnings are NumPy's own.

**Verification.** Before a loop is used, its results for special values of floating point are
compared with NumPy's. If a bit differs on some machine, NumPy continues there.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optlab.plan.blocks import BlockPlan, RunsBlock
from optlab.plan.numba_cache import kernel_of
from optlab.plan.numba_codegen import CHUNK, Loop, loop_of
from optlab.plan.progress import Progress
from optlab.plan.scratch import scratch

#: At most this many adjacent faulty chunks are recomputed at once.
_TOGETHER = 32
COUNTS = (np.dtype(np.int64),)

#: The memory of an array, which stays alive with it, as a pointer for functions of C. Of the ways
#: to get one it is the fastest: 0.2 us, where `array.ctypes.data` takes 1.7.
memory_of: Any = (ctypes.c_char * 0).from_buffer

_lock = threading.Lock()


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
        self.kernels = {
            number: kernel_of(loop.source, loop.parameters)
            for number, loop in enumerate(self.loops)
            if loop is not None
        }
        self._checked: set[int] = set()

    def __bool__(self) -> bool:
        """Return whether any phase has a loop."""
        return any(self.loops)

    @property
    def block(self) -> int:
        """The number of elements of a block: large, but that of the plan if it has reductions."""
        return self.plan.block if self.afters else 4 * self.plan.block

    @property
    def problem(self) -> str:
        """Why a loop cannot be compiled, if so."""
        return next((kernel.problem for kernel in self.kernels.values() if kernel.problem), "")

    def look_up(self) -> bool:
        """Return whether all loops are compiled; load those that the cache has."""
        found = [kernel.look_up() for kernel in self.kernels.values()]
        return all(found)

    def request(self) -> None:
        """Let a child process compile what the cache lacks."""
        for kernel in self.kernels.values():
            kernel.request()

    def compile(self) -> None:
        """Compile the loops now, which takes about half a second for each."""
        for kernel in self.kernels.values():
            kernel.compile()

    def phase(self, number: int, prepared: Sequence[Any]) -> RunsBlock:
        """Return the function that runs a phase on each block, as `BlockPlan.phase` does."""
        loop = self.loops[number]
        numbers = None if loop is None else loop.cast(prepared)
        if loop is None or numbers is None:
            return self.plan.phase(number, prepared)
        block = self._block(number, loop, numbers, prepared)
        by_numpy = self.plan.phase(number, prepared)
        if not self.is_verified(number, lambda: gives_same_bits(self.plan, block, by_numpy)):
            return by_numpy
        return block

    def is_verified(self, number: int, verify: Callable[[], bool]) -> bool:
        """Return whether the loop of a phase gives NumPy's bits; verify it once."""
        with _lock:
            if number not in self._checked:
                if not verify():
                    self.loops[number] = None
                self._checked.add(number)
        return self.loops[number] is not None

    def _block(
        self, number: int, loop: Loop, numbers: list[Any], prepared: Sequence[Any]
    ) -> RunsBlock:
        plan, calls, by_numpy = (
            self.plan,
            self.plan.calls[number],
            self.plan.phase(number, prepared),
        )
        function = self.kernels[number].function
        assert function is not None
        reads, writes = loop.read, loop.written
        sizes = [loop.old_size * dtype.itemsize for dtype in loop.old_dtypes]
        old_offsets, old_bytes = [sum(sizes[:i]) for i in range(len(sizes))], sum(sizes)

        def block(arrays: Sequence[Any], progress: Progress | None = None) -> list[Any]:
            progress = progress or Progress()
            size = len(arrays[0])
            held = arrays
            if plan.kept:
                held = [*arrays, *progress.do([(scratch, plan.kept, size)])[0]]
            memory = []
            for place in reads:
                array = held[place]
                flags = array.flags
                if not (flags.c_contiguous and flags.aligned and flags.writeable):
                    array = np.require(array, None, ["C", "A", "W"])
                memory.append(memory_of(array))
            for place in writes:
                array = held[place]
                if not array.flags.carray:
                    return by_numpy(arrays, progress)
                memory.append(memory_of(array))
            first = 8 * (size // CHUNK + 2)  # bytes for the count and places of faulty chunks
            (faulty,) = scratch(COUNTS, (first + old_bytes) // 8, "machine loops")
            memory.append(memory_of(faulty, 8))
            for offset in old_offsets:
                memory.append(memory_of(faulty, first + offset))
            _, count, faulty = progress.do(
                [
                    (function, memory_of(faulty), None, size, *memory, *numbers),
                    (faulty.item, 0),
                    # That of the call above, also if this is made again after an exception.
                    (np.asarray, faulty),
                ]
            )
            if count:
                for span in progress.do([(spans, faulty[1 : count + 1].tolist())])[0]:
                    again = [array[span] for array in held]
                    memory = scratch(plan.scratch, len(again[0]), "again")
                    progress.do(calls(*again, *memory, *prepared))
            return progress.do(plan.reductions(number, held)) if self.afters else []

        return block


def spans(starts: list[int]) -> list[slice]:
    """Return chunks as slices; adjacent chunks are merged, up to a limit."""
    found = []
    place = 0
    while place < len(starts):
        first, count = starts[place], 1
        while count < _TOGETHER and starts[place + count : place + count + 1] == [
            first + count * CHUNK
        ]:
            count += 1
        found.append(slice(first, first + count * CHUNK))
        place += count
    return found


def gives_same_bits(
    plan: BlockPlan,
    one: Callable[..., Any],
    other: Callable[..., Any],
    arranged: Callable[[list[Any]], Any] = list,
) -> bool:
    """Return whether two implementations of a phase give the same bits on special values.

    Parameters
    ----------
    plan : BlockPlan
    one, other : callable
    arranged : callable, optional
        Makes a block of copies of the arrays.
    """
    draw = np.random.default_rng(0)
    size = 16 * CHUNK + 37
    found = []
    blocks = [peculiar(draw, plan.dtypes[p], size) for p in plan.phases[0].inputs]
    for way in (one, other):
        arrays = arranged([array.copy() for array in blocks])
        with np.errstate(all="ignore"):
            parts = way(arrays)
        found.append([*arrays, *map(np.asarray, parts)])
    return all(same_bits(a, b) for a, b in zip(*found, strict=True))


def peculiar(draw: np.random.Generator, dtype: Any, size: int) -> Any:
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
    """Compile the loops of a plan now, or load them from the cache; None if it has none."""
    loops = MachineLoops(plan)
    if not loops:
        return None
    loops.compile()
    return loops
