"""Kernels of several steps: neighboring operations of a plan as one compiled function.

Where arrays are small, a call takes longer than what it computes: NumPy adds 1,024 floats in 60 ns,
and takes 900 to be asked. So the operations of a plan between two products become one function of
fixed memory: it is called without arguments, in a tenth of a microsecond. Elementwise operations on
one shape are one loop, with intermediate values in registers (see `optlab.plan.numba_codegen` for
the operations that have NumPy's bits, and for how it is known); sums, extremes and picked elements
are loops of their own, in the order of NumPy's additions.

**Floating-point errors.** A kernel returns whether a value is not finite, or an index outside its
bounds. What it has computed is not used then: the plan runs again by NumPy, which reports what
there is to report. So a kernel reads and writes nothing but the memory of the plan.

**Verification.** Before a kernel is used, it runs on other memory with special values, and has to
give the bits of the same steps by NumPy. So it is also known that sums are added in NumPy's order.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from optlab.backend.arrays import owner_of
from optlab.plan.kernel_steps import (
    Bounded,
    Elementwise,
    Finite,
    LargestOfRows,
    Picked,
    Step,
    SumOfAll,
    SumOfRows,
    TakenRows,
    by_numpy,
)
from optlab.plan.numba_cache import Kernel, kernel_of
from optlab.plan.numba_codegen import Lines, NoLoopError, Number
from optlab.plan.numba_fusion import joined_axes
from optlab.plan.numba_kernels import peculiar, same_bits
from optlab.plan.plan import Place

#: The memory of arrays of these dtypes, as numba calls it.
_KINDS = {np.dtype(kind): kind for kind in ("float32", "float64", "int32", "int64")}
_KINDS[np.dtype(bool)] = "uint8"
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
_BOOL = np.dtype(bool)

#: NumPy adds up to so many neighbors in eight partial sums, and longer runs in halves.
_PAIRWISE = 128
#: The longest run that a kernel sums: each part of it is a loop in the source.
_LONGEST_SUM = 8 * _PAIRWISE
#: Pairs of arrays in one loop whose memory may overlap: LLVM compares no more of them.
_MOST_PAIRS = 8
#: Runs on special values, and how many have to be without a value that is not finite.
_TRIALS, _FEWEST = 12, 2


def _sum_starts_negative() -> bool:
    return bool(np.signbit(np.add.reduce(np.array([-0.0, -0.0]))))


_START = "-0.0" if _sum_starts_negative() else "0.0"


class _Literals(Lines):
    """Instructions with their numbers as literals: a kernel belongs to one plan."""

    def _number(self, number: Number) -> str:
        value = float(number.dtype.type(float(number.constant)))
        if math.isnan(value):
            raise NoLoopError
        if math.isinf(value):
            return f"{number.dtype}({'-' * (value < 0)}np.inf)"
        return f"{number.dtype}({value!r})"


class StepKernel:
    """Steps on fixed memory, compiled as one function; NumPy's bits.

    Parameters
    ----------
    steps : sequence of Step
        In order. A place is written once; its memory may be that of an earlier one.
    arrays : dict of Place to array
        The memory of all places: contiguous, of float32, float64, bool or integers.
    stored : set of Place
        The results that others read. The rest may stay in registers.

    Attributes
    ----------
    source : str
    kernel : Kernel

    Raises
    ------
    NoLoopError
        If a step has no loop with NumPy's bits.

    Examples
    --------
    >>> from optlab.plan.plan import Instruction
    >>> x, wide, y = map(Place, range(3))
    >>> float32 = np.dtype("float32")
    >>> twice = Instruction("mul", np.multiply, (x, 2.0), (), wide, (2, 3), float32)
    >>> positive = Instruction("maximum", np.maximum, (wide, 0), (), y, (2, 3), float32)
    >>> memory = {place: np.empty((2, 3), float32) for place in (x, wide, y)}
    >>> print(StepKernel([Elementwise(twice), Elementwise(positive)], memory, {y}).source)
    def kernel(t):
        a0 = carray(t[0], (1, 1, 6), np.float32)
        a1 = carray(t[1], (1, 1, 6), np.float32)
        fault = False
        for i in range(1):
            for j in range(1):
                for k in range(6):
                    v0 = a0[0, 0, k]
                    v1 = v0 * float32(2.0)
                    v2 = (v1 if (v1 > float32(0.0)) | (v1 != v1) else float32(0.0))
                    fault |= not (abs(v1) < float32(np.inf))
                    a1[i, j, k] = v2
        return 1 if fault else 0
    <BLANKLINE>
    """

    def __init__(self, steps: Sequence[Step], arrays: dict[Place, Any], stored: set[Place]) -> None:
        self.steps = list(steps)
        used = {p for step in steps for p in step.reads} | {
            step.result for step in steps if step.result is not None
        }
        self.arrays = {p: arrays[p] for p in sorted(used)}
        self._stored = stored
        self._views: dict[Any, str] = {}
        self._heads: list[str] = []
        #: The position in its table of each address that the kernel uses, and a place there.
        self._slots: dict[int, tuple[int, Place]] = {}
        self._lines: list[str] = []
        self._write()
        self.source = "\n".join([
            "def kernel(t):",
            *(f"    {line}" for line in [*self._heads, "fault = False", *self._lines]),
            "    return 1 if fault else 0",
        ]) + "\n"  # fmt: skip
        self.kernel: Kernel = kernel_of(self.source, ["void**"])
        self._verified: bool | None = None

    # Source -------------------------------------------------------------------------------------

    def _write(self) -> None:
        waiting: list[Elementwise] = []
        for number, step in enumerate(self.steps):
            if isinstance(step, Elementwise):
                if waiting and not self._fit(waiting, step, number):
                    self._loop(waiting, number)
                    waiting = []
                waiting.append(step)
                continue
            if waiting:
                self._loop(waiting, number)
                waiting = []
            self._single(step)
        if waiting:
            self._loop(waiting, len(self.steps))

    def _shape(self, step: Elementwise) -> tuple[int, ...]:
        return self.arrays[step.result].shape  # type: ignore[no-any-return]

    def _fit(self, waiting: list[Elementwise], step: Elementwise, number: int) -> bool:
        """Return whether a step may join a loop."""
        if self._shape(waiting[0]) != self._shape(step):
            return False
        both = [*waiting, step]
        made = {one.result for one in both}
        if self._collide(both, number + 1):
            return False
        for place in step.reads:
            if place in made and self.arrays[place].shape != self._shape(step):
                return False
        stored = len(self._kept(both, number + 1))
        given = len({p for one in both for p in one.reads} - made)
        return stored * (stored - 1) // 2 + stored * given <= _MOST_PAIRS

    def _collide(self, steps: list[Elementwise], after: int) -> bool:
        """Return whether an element of a loop reads what another one has written."""
        made = {one.result for one in steps}
        for place in {p for one in steps for p in one.reads} - made:
            array = self.arrays[place]
            for other in self._kept(steps, after):
                result = self.arrays[other]
                same = array.shape == result.shape and _start(array) == _start(result)
                if not same and _overlap(array, result):
                    return True
        return False

    def _kept(self, steps: list[Elementwise], after: int) -> list[Place]:
        """Return the results of a loop that are read after it."""
        later = {p for step in self.steps[after:] for p in step.reads} | self._stored
        return [step.result for step in steps if step.result in later]

    def _view(self, place: Place, shape: Any) -> str:
        """Return the name of the memory of a place, in some shape."""
        array = self.arrays[place]
        # One name for one memory: LLVM finds no order of reads and writes between two pointers.
        key = _start(array), array.dtype, shape
        name = self._views.get(key)
        if name is None:
            if array.dtype not in _KINDS or not (array.flags.c_contiguous and array.flags.aligned):
                raise NoLoopError
            slot = self._slots.setdefault(key[0], (len(self._slots), place))[0]
            name = self._views[key] = f"a{len(self._views)}"
            self._heads.append(f"{name} = carray(t[{slot}], {shape}, np.{_KINDS[array.dtype]})")
        return name

    def _loop(self, steps: list[Elementwise], after: int) -> None:
        """Write elementwise operations as one loop."""
        shape = self._shape(steps[0])
        made = {step.result for step in steps}
        given = list(dict.fromkeys(p for step in steps for p in step.reads if p not in made))
        kept = self._kept(steps, after)
        if not math.prod(shape) or self._collide(steps, after):
            raise NoLoopError
        axes = joined_axes(shape, [self.arrays[p].shape for p in given])
        dtypes = {p: self.arrays[p].dtype for p in (*given, *made)}
        if any(dtype not in (*_FLOATS, _BOOL) for dtype in dtypes.values()):
            raise NoLoopError
        lines = _Literals(dtypes, {})
        lines.write([step.instruction for step in steps])
        outside: list[str] = []
        inside: list[str] = []
        for place, spans in zip(given, axes.spans, strict=True):
            lengths = tuple(n if there else 1 for n, there in zip(axes.lengths, spans, strict=True))
            at = ", ".join(x if there else "0" for x, there in zip("ijk", spans, strict=True))
            value = f"{self._view(place, lengths)}[{at}]"
            if dtypes[place] == _BOOL:
                value += " != 0"
            (inside if spans[2] else outside).append(f"v{place.number} = {value}")
            if dtypes[place] in _FLOATS and place not in lines.shown:
                (inside if spans[2] else outside).append(_check(f"v{place.number}", dtypes[place]))
        inside += [*lines.lines, *lines.checks()]
        for place in kept:
            value = f"v{place.number}"
            if dtypes[place] == _BOOL:
                value = f"1 if {value} else 0"
            inside.append(f"{self._view(place, axes.lengths)}[i, j, k] = {value}")
        outer, middle, inner = axes.lengths
        self._lines += [
            f"for i in range({outer}):",
            f"    for j in range({middle}):",
            *(f"        {line}" for line in outside),
            f"        for k in range({inner}):",
            *(f"            {line}" for line in inside),
        ]

    def _single(self, step: Step) -> None:
        """Write a step that is a loop of its own."""
        x = self.arrays[step.reads[0]]
        shape, dtype = x.shape, x.dtype
        result = self.arrays.get(step.result) if step.result is not None else None
        if not x.size:
            raise NoLoopError
        if result is not None and any(_overlap(result, self.arrays[p]) for p in step.reads):
            raise NoLoopError
        if isinstance(step, Bounded):
            if dtype not in _INTEGERS or result is None or result.dtype != dtype:
                raise NoLoopError
            a, b = self._view(step.x, x.size), self._view(step.result, x.size)
            self._lines += [
                f"for k in range({x.size}):",
                f"    inside = (0 <= {a}[k]) & ({a}[k] < {step.size})",
                "    fault |= not inside",
                f"    {b}[k] = {a}[k] if inside else 0",
            ]
            return
        if dtype not in _FLOATS:
            raise NoLoopError
        if isinstance(step, Finite):
            a = self._view(step.x, x.size)
            self._lines += [f"for k in range({x.size}):", f"    {_check(f'{a}[k]', dtype)}"]
            return
        assert result is not None
        if result.dtype != dtype:
            raise NoLoopError
        if isinstance(step, SumOfAll):
            self._sum_of_all(step, x, dtype)
            return
        if len(shape) != 2:
            raise NoLoopError
        rows, columns = shape
        a = self._view(step.reads[0], shape)
        if isinstance(step, SumOfRows):
            if columns < 2:
                raise NoLoopError  # NumPy adds a column as a vector
            b = self._view(step.result, columns)
            self._lines += [
                f"for k in range({columns}):",
                f"    {b}[k] = {dtype}({_START}) + {a}[0, k]",
                f"for i in range(1, {rows}):",
                f"    for k in range({columns}):",
                f"        {b}[k] += {a}[i, k]",
                f"for k in range({columns}):",
                f"    {_check(f'{b}[k]', dtype)}",
            ]
        elif isinstance(step, LargestOfRows):
            b = self._view(step.result, rows)
            # Of zeros of both signs NumPy's choice depends on its loop.
            self._lines += [
                f"for i in range({rows}):",
                f"    largest = {a}[i, 0]",
                f"    for k in range({columns}):",
                f"        value = {a}[i, k]",
                f"        {_check('value', dtype)}",
                "        largest = value if value > largest else largest",
                f"    {b}[i] = largest",
                f"    fault |= largest == {dtype}(0.0)",
            ]
        else:
            index = self.arrays[step.reads[1]]
            if index.dtype not in _INTEGERS or index.ndim != 1:
                raise NoLoopError
            n = self._view(step.reads[1], len(index))
            if isinstance(step, Picked):
                if len(index) != rows:
                    raise NoLoopError
                b = self._view(step.result, rows)
                self._lines += [
                    f"for i in range({rows}):",
                    f"    inside = (0 <= {n}[i]) & ({n}[i] < {columns})",
                    "    fault |= not inside",
                    f"    {b}[i] = {a}[i, {n}[i] if inside else 0]",
                ]
            else:
                b = self._view(step.result, (len(index), columns))
                self._lines += [
                    f"for i in range({len(index)}):",
                    f"    inside = (0 <= {n}[i]) & ({n}[i] < {rows})",
                    "    fault |= not inside",
                    f"    row = {n}[i] if inside else 0",
                    f"    for k in range({columns}):",
                    f"        {b}[i, k] = {a}[row, k]",
                ]

    def _sum_of_all(self, step: SumOfAll, x: Any, dtype: Any) -> None:
        if x.ndim != 1 or len(x) > _LONGEST_SUM:
            raise NoLoopError
        a, b = self._view(step.x, len(x)), self._view(step.result, 1)
        parts: list[str] = []
        total = self._pairwise(a, 0, len(x), dtype, parts)
        self._lines += [*parts, f"{b}[0] = {dtype}({_START}) + {total}", _check(f"{b}[0]", dtype)]

    def _pairwise(self, a: str, start: int, count: int, dtype: Any, lines: list[str]) -> str:
        """Write the sum of neighbors as NumPy adds them; return it as an expression."""
        if count > _PAIRWISE:
            half = count // 2
            half -= half % 8
            one = self._pairwise(a, start, half, dtype, lines)
            other = self._pairwise(a, start + half, count - half, dtype, lines)
            return f"({one} + {other})"
        name = f"s{start}"
        if count < 8:
            lines.append(f"{name} = {dtype}({_START})")
            lines.append(f"for k in range({count}):")
            lines.append(f"    {name} += {a}[{start} + k]")
            return name
        whole = count - count % 8
        parts = [f"r{start}_{i}" for i in range(8)]
        lines += [f"{part} = {a}[{start + i}]" for i, part in enumerate(parts)]
        lines.append(f"for k in range(8, {whole}, 8):")
        lines += [f"    {part} += {a}[{start + i} + k]" for i, part in enumerate(parts)]
        r = parts
        lines.append(
            f"{name} = (({r[0]} + {r[1]}) + ({r[2]} + {r[3]})) + "
            f"(({r[4]} + {r[5]}) + ({r[6]} + {r[7]}))"
        )
        if count > whole:
            lines.append(f"for k in range({whole}, {count}):")
            lines.append(f"    {name} += {a}[{start} + k]")
        return name

    # Compilation --------------------------------------------------------------------------------

    @property
    def problem(self) -> str:
        """Why it cannot be compiled, if so."""
        return self.kernel.problem

    def look_up(self) -> bool:
        """Return whether it is compiled; load it if the cache has it."""
        return self.kernel.look_up()

    def request(self) -> None:
        """Let a child process compile it."""
        self.kernel.request()

    def compile(self) -> None:
        """Compile it now."""
        self.kernel.compile()

    def bind(self, fault: Any) -> Callable[[], Any]:
        """Return a function without arguments that runs the compiled kernel on its memory.

        Parameters
        ----------
        fault : buffer of 8 bytes
            Where it writes whether a value is not finite: 1 or 0.
        """
        return self._bound(self.arrays, fault)

    def _bound(self, memory: dict[Place, Any], fault: Any) -> Callable[[], Any]:
        function: Any = self.kernel.function
        arrays = [memory[place] for _, place in self._slots.values()]
        table = (ctypes.c_void_p * len(arrays))(*map(_start, arrays))
        run = partial(function, (ctypes.c_char * 0).from_buffer(fault), None, table)
        run.memory = arrays  # type: ignore[attr-defined]  # which stays alive with it
        return run

    # Verification -------------------------------------------------------------------------------

    def agrees(self) -> bool:
        """Return whether the compiled kernel gives NumPy's bits for special values."""
        if self._verified is None:
            self._verified = self._compared()
        return self._verified

    def _compared(self) -> bool:
        draw = np.random.default_rng(0)
        done = 0
        for trial in range(_TRIALS):
            ours, theirs = self._other_memory(), self._other_memory()
            for place in self._outside():
                values = self._example(draw, place, trial)
                ours[place][...] = theirs[place][...] = values
            fault = bytearray(8)
            self._bound(ours, fault)()
            if any(fault):
                continue
            with np.errstate(all="ignore"):
                for step in self.steps:
                    by_numpy(step, theirs)
            for place in self._stored & self.arrays.keys():
                x, y = ours[place], theirs[place]
                same = same_bits(x, y) if x.dtype in _FLOATS else np.array_equal(x, y)
                if not same and self._lasts(place):
                    return False
            done += 1
        return done >= _FEWEST

    def _lasts(self, place: Place) -> bool:
        """Return whether no later step writes to the memory of a result."""
        made = [step.result for step in self.steps]
        later = made[made.index(place) + 1 :] if place in made else made
        array = self.arrays[place]
        return not any(p is not None and _overlap(self.arrays[p], array) for p in later)

    def _outside(self) -> list[Place]:
        """Return what the kernel reads that it has not computed."""
        made: set[Any] = set()
        found: dict[Place, None] = {}
        for step in self.steps:
            found |= dict.fromkeys(p for p in step.reads if p not in made)
            made.add(step.result)
        return list(found)

    def _other_memory(self) -> dict[Place, Any]:
        """Return arrays that overlap as those of the kernel do."""
        owners: dict[int, Any] = {}
        found = {}
        for place, array in self.arrays.items():
            owner = owner_of(array)
            if not isinstance(owner, np.ndarray):
                owner = array
            start = _start(array) - _start(owner)
            if id(owner) not in owners:
                owners[id(owner)] = np.zeros(owner.nbytes + 64, np.uint8)
            memory = owners[id(owner)]
            shift = -_start(memory) % 64  # aligned, whatever NumPy gives
            found[place] = np.ndarray(array.shape, array.dtype, memory, start + shift)
        return found

    def _example(self, draw: np.random.Generator, place: Place, trial: int) -> Any:
        """Return values of a place that the kernel reads."""
        array = self.arrays[place]
        if array.dtype == _BOOL:
            return draw.random(array.shape) < 0.5
        if array.dtype in _INTEGERS:
            ends = [
                self.arrays[step.x].shape[isinstance(step, Picked)]
                for step in self.steps
                if isinstance(step, (Picked, TakenRows)) and step.chosen == place
            ]
            ends += [s.size for s in self.steps if isinstance(s, Bounded) and s.x == place]
            return draw.integers(0, min(ends, default=2), array.shape)
        if trial % 3 == 0:
            values = draw.standard_normal(array.shape).astype(array.dtype)
        else:
            values = peculiar(draw, array.dtype, array.size).reshape(array.shape)
            values = np.where(abs(values) < 1e12, values, array.dtype.type(1.5))
            values[(values != 0) & (abs(values) < 1e-12)] = 0.25
        return abs(values) if trial % 2 else values

    def __repr__(self) -> str:
        return f"<StepKernel of {len(self.steps)} steps>"


def _check(value: str, dtype: Any) -> str:
    return f"fault |= not (abs({value}) < {dtype}(np.inf))"


def _start(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _overlap(a: Any, b: Any) -> bool:
    return bool(np.may_share_memory(a, b))
