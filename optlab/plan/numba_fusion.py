"""Fused groups: elementwise instructions of a plan as one loop over all elements.

NumPy passes over memory once per operation; `fuse` makes one loop of a group of them, with
intermediate values in registers. It gives NumPy's bits, and leaves NumPy what it would not: see
`optlab.plan.numba_kernels` for the operations, and for floating-point errors. The loop is compiled
by numba in a child process when it pays off; until then, and wherever it may not run, NumPy does
the same operations.

Operands broadcast: each input spans the axes of the results, or has length 1 along some of them.
Neighboring axes that all inputs treat alike count as one, and up to three remain: a loop over two
outer axes, and one over the innermost, which is vectorized. So it takes rows, columns, scalars, and
a value per channel of images.

**Verification.** Before a loop is used, its results for special values are compared with NumPy's,
as those of updates are.

**Floating-point errors.** Results are written chunk by chunk, once they are known to be finite. At
the first chunk that is not, the loop stops, and NumPy does the rest and reports what there is to
report. So a result may be written over an input of the same shape.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from optlab.plan import sizes
from optlab.plan.blocks import UFUNCS
from optlab.plan.executors import is_compiled, may_use_loops
from optlab.plan.numba_cache import Kernel, kernel_of
from optlab.plan.numba_codegen import CHUNK, STRIDE, Lines, NoLoopError, Number
from optlab.plan.numba_kernels import peculiar, same_bits
from optlab.plan.plan import Instruction, Place, needed
from optlab.plan.threads import on_all_cores

_KINDS = {np.dtype(kind): kind for kind in ("float32", "float64", "bool")}
_BOOL = np.dtype(bool)
_memory: Any = (ctypes.c_char * 0).from_buffer

#: Instead of numbers that depend on the call.
_UNKNOWN: Any = object()

#: The type of an input: shape and dtype, or Python's `float` as dtype for a number.
Signature = tuple[tuple[int, ...], Any]


class Axes(NamedTuple):
    """The common shape of the results as at most three axes, and which of them inputs span."""

    lengths: tuple[int, int, int]
    spans: list[tuple[bool, bool, bool]]


class Fused:
    """A group of elementwise instructions as one function of arrays; made by `fuse`.

    Attributes
    ----------
    source : str
        The loop, in the subset of Python that numba compiles.
    shape : tuple of int
        Of all results.
    operations : int
        On each element.
    kernel : Kernel
        The compiled loop, or what is known of it.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        inputs: Mapping[Place, Signature],
        outputs: Sequence[Place],
    ) -> None:
        self.inputs, self.outputs = dict(inputs), list(outputs)
        dtypes = {place: dtype for place, (_, dtype) in inputs.items()}
        shapes = {place: shape for place, (shape, _) in inputs.items()}
        dtypes |= {step.result: step.dtype for step in instructions}
        shapes |= {step.result: step.shape for step in instructions}
        self.shape = shapes[outputs[0]]
        self.dtypes = [dtypes[place] for place in outputs]
        if any(shapes[place] != self.shape for place in outputs) or not math.prod(self.shape):
            raise NoLoopError
        self._places = [place for place in inputs if dtypes[place] is not float]
        lines = Lines(
            dtypes, {place: i for i, place in enumerate(inputs) if dtypes[place] is float}
        )
        lines.write(instructions)
        arrays = [(shapes[place], dtypes[place]) for place in self._places]
        if any(dtype not in _KINDS for _, dtype in arrays) or set(self.dtypes) - _KINDS.keys():
            raise NoLoopError
        self.axes = joined_axes(self.shape, [shape for shape, _ in arrays])
        self._work = len(instructions) * math.prod(self.shape)
        self.operations = len(instructions)
        self._numbers = list(lines.numbers)
        #: They are cast once where they are constants, which takes half of the time of a call.
        self._constants: Any = (
            _cast(self._numbers, []) if all(n.place is None for n in self._numbers) else _UNKNOWN
        )
        self._kept = list(dict.fromkeys(self.dtypes))
        self._kept_size = STRIDE * max(map(self.dtypes.count, self._kept))
        self.source = self._written(lines)
        kinds = [f"{_KINDS[dtype]}*" for _, dtype in arrays]
        kinds += [f"{_KINDS[dtype]}*" for dtype in (*self.dtypes, *self._kept)]
        self.kernel: Kernel = kernel_of(
            self.source,
            [*["int64"] * 6, *kinds, *(str(number.dtype) for number in self._numbers)],
        )
        self._by_numpy = _numpy_function(instructions, list(inputs), self.outputs)
        self._worked = 0
        #: Whether the loop runs; None if it never will.
        self._ready: bool | None = False

    def _written(self, lines: Lines) -> str:
        """Return the source of the loop."""
        spans = dict(zip(self._places, self.axes.spans, strict=True))
        dtypes = lines.dtypes
        x = [f"x{place.number}" for place in self._places]
        y = [f"y{i}" for i in range(len(self.outputs))]
        kept = {kind: f"kept_{_KINDS[kind]}" for kind in self._kept}
        parameters = [*("first", "last", "middle", "inner", "low", "high")]
        parameters += [f"p_{name}" for name in (*x, *y, *kept.values())]
        parameters += lines.numbers.values()
        text = [f"def kernel({', '.join(parameters)}):"]
        text += [f"    {name} = carray(p_{name}, {self._kept_size})" for name in kept.values()]
        text += [f"    {name} = carray(p_{name}, last * middle * inner)" for name in (*x, *y)]
        text += [
            "    for i in range(first, last):",
            "        for j in range(middle):",
            "            row = (i * middle + j) * inner",
            f"            for start in range(low, high, {CHUNK}):",
            f"                stop = min(start + {CHUNK}, high)",
        ]
        element, whole = [], []
        for place, name in zip(self._places, x, strict=True):
            outer, middle, inner = spans[place]
            offset = {
                (True, True): "(i * middle + j)", (True, False): "i", (False, True): "j",
            }.get((outer, middle), "0")  # fmt: skip
            value = f"{name}_[k]" if inner else f"{name}[{offset}]"
            if dtypes[place] == _BOOL:
                value += " != 0"
            if inner:
                begin = f"{offset} * inner + " if offset != "0" else ""
                whole.append(f"{name}_ = {name}[{begin}start:{begin}stop]")
                element.append(f"v{place.number} = {value}")
            else:
                whole.append(f"v{place.number} = {value}")
        seen: dict[Any, int] = {}
        stores, copies = [], []
        for name, place, dtype in zip(y, self.outputs, self.dtypes, strict=True):
            at = STRIDE * seen.get(dtype, 0)
            seen[dtype] = seen.get(dtype, 0) + 1
            whole.append(f"t_{name} = {kept[dtype]}[{at}:{at + CHUNK}]")
            whole.append(f"{name}_ = {name}[row + start:row + stop]")
            value = f"v{place.number}"
            if dtype == _BOOL:
                value = f"1 if {value} else 0"
            stores.append(f"t_{name}[k] = {value}")
            copies += ["for k in range(stop - start):", f"    {name}_[k] = t_{name}[k]"]
        body = [*element, *lines.lines, *lines.checks(), *stores]
        text += [f"                {line}" for line in [*whole, "fault = False"]]
        text += ["                for k in range(stop - start):"]
        text += [f"                    {line}" for line in body]
        text += ["                if fault:", "                    return row + start"]
        text += [f"                {line}" for line in copies]
        return "\n".join([*text, "    return -1"]) + "\n"

    def compile(self) -> None:
        """Compile the loop now, or load it from the cache.

        Raises
        ------
        Exception
            Any error of numba.
        """
        self.kernel.compile()
        self._ready = self._agrees() or None

    @property
    def ready(self) -> bool:
        """Whether the loop is compiled."""
        return bool(self._ready)

    def __call__(self, *arrays: Any, out: Sequence[Any] | None = None) -> list[Any]:
        """Return the results for new inputs.

        Parameters
        ----------
        arrays
            The inputs in order, of the shapes and dtypes that the group was made for.
        out : sequence of numpy.ndarray, optional
            Where the results are written; a result may replace an input of its shape, and no other
            input. Made if not given.
        """
        if out is None:
            out = [np.empty(self.shape, dtype) for dtype in self.dtypes]
        job = self.bind(*arrays, out=out) if self._may_run() else None
        if job is None:
            self._run_numpy(arrays, out)
        else:
            job()
        return list(out)

    def _may_run(self) -> bool:
        """Return whether the loop runs now, and see to it that it is compiled."""
        if self._ready is None or not may_use_loops():
            return False
        if not self._ready:
            self._worked += self._work
            self._ready = is_compiled(self.kernel, self._worked)
            if self._ready:
                self._ready = self._agrees() or None
        return bool(self._ready)

    def _agrees(self) -> bool:
        """Return whether the loop gives NumPy's bits for special values, on a few elements."""
        function = self.kernel.function
        assert function is not None
        a, b, c = self.axes.lengths
        lengths = min(a, 2), min(b, 2), min(c, CHUNK + 37)
        draw = np.random.default_rng(0)
        for _ in range(8):  # NumPy takes over where a result is not finite
            spans = iter(self.axes.spans)
            arrays: list[Any] = []
            for _, dtype in self.inputs.values():
                if dtype is float:
                    arrays.append(0.5)
                    continue
                shape = [n if there else 1 for n, there in zip(lengths, next(spans), strict=True)]
                values = peculiar(draw, dtype, math.prod(shape)).reshape(shape)
                arrays.append(values > 0 if dtype == _BOOL else values)
            given = [_memory(x) for x in arrays if type(x) is np.ndarray]
            numbers = _cast(self._numbers, arrays)
            if numbers is None:
                return True  # the loop is not used with such numbers
            out = [np.empty(lengths, dtype) for dtype in self.dtypes]
            pointers = [*given, *map(_memory, out)]
            with np.errstate(all="ignore"):
                self._part(
                    function, pointers, numbers, arrays, out, lengths, 0, lengths[0], 0, lengths[2]
                )()
                expected = self._by_numpy(*arrays)
            if not all(
                same_bits(x, np.broadcast_to(y, x.shape))
                for x, y in zip(out, expected, strict=True)
            ):
                return False
        return True

    def _run_numpy(self, arrays: Sequence[Any], out: Sequence[Any]) -> None:
        for target, value in zip(out, self._by_numpy(*arrays), strict=True):
            np.copyto(target, value)

    def bind(self, *arrays: Any, out: Sequence[Any]) -> Callable[[], None] | None:
        """Return a function that runs the compiled loop on these arrays, as often as it is called.

        So a plan whose buffers stay the same looks up their addresses once. Numbers among the
        inputs are those of now. None if the loop cannot run on them: not contiguous, not aligned,
        of other shapes or dtypes, numbers that are not finite, or the loop is not compiled.
        """
        function = self.kernel.function
        if function is None or not self._ready:
            return None
        given = dict(zip(self.inputs, arrays, strict=True))
        pointers = []
        for place, (shape, dtype) in self.inputs.items():
            if dtype is not float:
                array = given[place]
                if (
                    type(array) is not np.ndarray
                    or array.shape != shape
                    or array.dtype != dtype
                    or not (array.flags.c_contiguous and array.flags.aligned)
                ):
                    return None
                pointers.append(_pointer(array))
        for target, dtype in zip(out, self.dtypes, strict=True):
            if target.shape != self.shape or target.dtype != dtype or not target.flags.carray:
                return None
            pointers.append(_memory(target))
        numbers = self._constants
        if numbers is _UNKNOWN:
            numbers = _cast(self._numbers, arrays)
        if numbers is None:
            return None
        outer, middle, inner = self.axes.lengths
        part = partial(self._part, function, pointers, numbers, arrays, out, self.axes.lengths)
        count = outer * middle * inner
        if count < sizes.LARGE:
            return part(0, outer, 0, inner)
        length = inner if outer == 1 else outer
        parts = min(length, -(-count // (2 * sizes.BLOCK)))
        bounds = [length * i // parts for i in range(parts + 1)]
        if outer == 1:
            # Whole lines of the cache: two threads never write to one.
            bounds = [min(-(-bound // 64) * 64, length) for bound in bounds]
        jobs = [
            part(0, 1, a, b) if outer == 1 else part(a, b, 0, inner) for a, b in pairwise(bounds)
        ]
        return partial(on_all_cores, jobs, count)

    def _part(
        self, function: Callable[..., int], pointers: list[Any], numbers: list[float],
        arrays: Sequence[Any], out: Sequence[Any], lengths: tuple[int, int, int],
        first: int, last: int, low: int, high: int,
    ) -> Callable[[], None]:  # fmt: skip
        """Return the loop over a part of the outer or the inner axis."""
        _, middle, inner = lengths
        kept = [_memory(np.empty(self._kept_size, dtype)) for dtype in self._kept]
        stopped = ctypes.c_int64()
        bounds = (first, last, middle, inner, low, high)
        call = partial(function, ctypes.byref(stopped), None, *bounds, *pointers, *kept, *numbers)

        def run() -> None:
            call()
            if stopped.value >= 0:
                row, start = divmod(stopped.value, inner)
                i, j = divmod(row, middle)
                # What is left: of this row, of the rows beside it, and of all others.
                self._run_slices(arrays, out, lengths, i, i + 1, j, j + 1, start, high)
                self._run_slices(arrays, out, lengths, i, i + 1, j + 1, middle, low, high)
                self._run_slices(arrays, out, lengths, i + 1, last, 0, middle, low, high)

        return run

    def _run_slices(
        self, arrays: Sequence[Any], out: Sequence[Any], lengths: tuple[int, int, int], *bounds: int
    ) -> None:
        """Let NumPy do a part of the elements."""
        parts = [slice(*bounds[at : at + 2]) for at in (0, 2, 4)]
        if any(part.start >= part.stop for part in parts):
            return
        spans = iter(self.axes.spans)
        given = []
        for array, (_, dtype) in zip(arrays, self.inputs.values(), strict=True):
            if dtype is not float:
                span = next(spans)
                shape = [n if there else 1 for n, there in zip(lengths, span, strict=True)]
                cut = [
                    part if there else slice(None) for part, there in zip(parts, span, strict=True)
                ]
                array = array.reshape(shape)[tuple(cut)]
            given.append(array)
        targets = [array.reshape(lengths)[tuple(parts)] for array in out]
        self._run_numpy(given, targets)

    def __repr__(self) -> str:
        return f"<Fused group of shape {self.shape}, {'' if self._ready else 'not '}compiled>"


def fuse(
    instructions: Sequence[Instruction],
    inputs: Mapping[Place, Signature],
    outputs: Sequence[Place],
) -> Fused | None:
    """Make one function of a group of elementwise instructions.

    Parameters
    ----------
    instructions : sequence of Instruction
        In order.
    inputs : mapping of Place to (shape, dtype)
        The values that they read, in the order of the function's arguments: arrays of float32,
        float64 or bool whose shapes broadcast, and Python's numbers, with dtype `float`.
    outputs : sequence of Place
        Results of instructions, all of one shape.

    Returns
    -------
    Fused or None
        None if an operation would not have NumPy's bits (`exp`, sums), or the shapes are too mixed.

    Examples
    --------
    >>> from optlab.plan.plan import Instruction, Place
    >>> x, bias, wide, result = map(Place, range(4))
    >>> float32 = np.dtype("float32")
    >>> group = fuse(
    ...     [
    ...         Instruction("add", None, (x, bias), (), wide, (2, 3), float32),
    ...         Instruction("maximum", np.maximum, (wide, 0.0), (), result, (2, 3), float32),
    ...     ],
    ...     {x: ((2, 3), float32), bias: ((3,), float32)},
    ...     [result],
    ... )
    >>> group(np.ones((2, 3), np.float32), np.array([-2, 0, 2], np.float32))[0].tolist()
    [[0.0, 1.0, 3.0], [0.0, 1.0, 3.0]]
    """
    steps = needed(instructions, tuple(outputs))
    if not steps or not {step.result for step in steps}.issuperset(outputs):
        return None
    try:
        return Fused(steps, inputs, outputs)
    except NoLoopError:
        return None


def joined_axes(shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> Axes:
    """Join the axes that all inputs treat alike.

    Raises
    ------
    NoLoopError
        If more than three remain.

    Examples
    --------
    >>> axes = joined_axes((8, 3, 5, 5), [(8, 3, 5, 5), (3, 1, 1)])
    >>> axes.lengths, axes.spans
    ((8, 3, 25), [(True, True, True), (False, True, False)])
    """
    lengths: list[int] = []
    spans: list[tuple[bool, ...]] = []
    full = [(1,) * (len(shape) - len(one)) + one for one in shapes]
    for axis, length in enumerate(shape):
        if any(one[axis] not in (1, length) for one in full):
            raise NoLoopError
        if length == 1:
            continue
        spanned = tuple(one[axis] == length for one in full)
        if spans and spans[-1] == spanned:
            lengths[-1] *= length
        else:
            lengths.append(length)
            spans.append(spanned)
    if len(lengths) > 3:
        raise NoLoopError
    if not lengths:  # a single element
        lengths, spans = [1], [(True,) * len(full)]
    while len(lengths) < 3:  # (1, 1, c), or (a, 1, c)
        lengths.insert(len(lengths) - 1, 1)
        spans.insert(len(spans) - 1, (False,) * len(full))
    a, b, c = lengths
    return Axes((a, b, c), [(one[0], one[1], one[2]) for one in zip(*spans, strict=True)])


def _pointer(array: Any) -> Any:
    """Return the memory of an array, which lives as long as the pointer."""
    return _memory(array) if array.flags.writeable else array.ctypes


def _cast(numbers: Sequence[Number], arguments: Sequence[Any]) -> list[float] | None:
    """Return constants and numbers, cast to the dtypes they meet; None if one is not finite."""
    with np.errstate(all="ignore"):
        found = [
            float(
                one.dtype.type(
                    float(one.constant) if one.place is None else float(arguments[one.place])
                )
            )
            for one in numbers
        ]
    return found if all(map(math.isfinite, found)) else None


def _numpy_function(
    instructions: Sequence[Instruction], inputs: Sequence[Place], outputs: Sequence[Place]
) -> Callable[..., Any]:
    """Return the function that does the instructions by NumPy."""
    scope: dict[str, Any] = {}
    lines = [f"def run({', '.join(f'v{place.number}' for place in inputs)}):"]
    for number, step in enumerate(instructions):
        scope[f"f{number}"] = step.function or UFUNCS[step.name]
        words = []
        for at, value in enumerate(step.arguments):
            if isinstance(value, Place):
                words.append(f"v{value.number}")
            else:
                scope[f"c{number}_{at}"] = value
                words.append(f"c{number}_{at}")
        lines.append(f"    v{step.result.number} = f{number}({', '.join(words)})")
    lines.append(f"    return [{', '.join(f'v{place.number}' for place in outputs)}]")
    exec(compile("\n".join(lines), "<optlab fused group>", "exec"), scope)
    return scope["run"]  # type: ignore[no-any-return]
