"""Plans in JavaScript: operations on small arrays, written out element by element."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.autograd.rules.manipulation.indexing import scatter
from optlab.plan.javascript.operations import (
    BOOL,
    FLOAT,
    Atom,
    function_of,
    is_elementwise,
    kind_of,
    literal,
    options_of,
    unwritten,
)
from optlab.plan.javascript.writer import Lines
from optlab.plan.plan import Instruction, Joined, Place, Plan
from optlab.plan.tracer import CaptureError

#: The most operations on single numbers that are written out; a page with more is no page.
MOST_OPERATIONS = 5000

#: Functions that move elements, and compute nothing.
_MOVES: set[Any] = {
    operator.getitem, np.reshape, np.transpose, np.ravel, np.squeeze, np.expand_dims,
    np.broadcast_to, np.stack, np.concatenate, np.hstack, np.vstack, np.flip, np.roll, np.moveaxis,
    np.swapaxes, np.atleast_1d, np.atleast_2d, np.tile, np.repeat, np.take, np.copy, np.diagonal,
    np.rot90, np.flipud, np.fliplr, np.column_stack, np.permute_dims, np.matrix_transpose,
    np.append,
}  # fmt: skip

_SUMS = (np.sum, np.add.reduce)
_EXTREMES = {
    np.max: np.maximum, np.amax: np.maximum, np.maximum.reduce: np.maximum,
    np.min: np.minimum, np.amin: np.minimum, np.minimum.reduce: np.minimum,
    np.prod: np.multiply, np.multiply.reduce: np.multiply,
    np.any: np.logical_or, np.all: np.logical_and,
    np.logical_or.reduce: np.logical_or, np.logical_and.reduce: np.logical_and,
}  # fmt: skip
_CUMULATIVE = {
    np.cumsum: np.add, np.add.accumulate: np.add, np.cumprod: np.multiply,
    np.multiply.accumulate: np.multiply,
}  # fmt: skip
_PRODUCTS = (np.matmul, np.dot, np.vdot, np.inner)


def atoms(value: Any) -> Any:
    """Return a constant as an array of literals."""
    value = np.asarray(value)
    found = np.empty(value.shape, object)
    for i in np.ndindex(value.shape):
        found[i] = literal(value[i])
    return found


def variables(name: str, shape: tuple[int, ...], kind: str = FLOAT) -> Any:
    """Return an input of a function: a number, or the elements of an array in C order."""
    found = np.empty(shape, object)
    for number, i in enumerate(np.ndindex(shape)):
        found[i] = Atom(f"{name}[{number}]" if shape else name, kind)
    return found


def unrolled(plan: Plan, inputs: Sequence[Any]) -> tuple[Lines, list[Any]]:
    """Write out the instructions of a plan for inputs given as arrays of atoms.

    Returns
    -------
    lines : Lines
    outputs : list of arrays of atoms

    Raises
    ------
    CaptureError
        If an instruction has no JavaScript.
    """
    writer = _Unrolling(dict(enumerate(inputs)))
    for step in plan.instructions:
        writer.write(step)
        if len(writer.lines) > MOST_OPERATIONS:
            raise CaptureError(
                f"with arrays of shape {step.shape} this plan has more than {MOST_OPERATIONS} "
                "operations on single numbers, which is too much for a page: use fewer elements."
            )
    return writer.lines, [writer.value(x) for x in plan.outputs]


class _Unrolling:
    """The values of a plan as arrays of atoms."""

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values
        self.lines = Lines()

    def value(self, x: Any) -> Any:
        """Return an argument as an array of atoms."""
        return self.values[x.number] if isinstance(x, Place) else atoms(x)

    def write(self, step: Instruction) -> None:
        """Write an instruction."""
        function = function_of(step)
        if is_elementwise(step):
            found = self._elementwise(step)
        elif function in _MOVES:
            found = self._moved(step, function)
        elif function is scatter:
            found = self._scattered(step)
        elif function in _PRODUCTS:
            found = self._product(step)
        elif function is np.full_like and not isinstance(step.arguments[1], Place):
            found = atoms(np.full(step.shape, step.arguments[1], step.dtype))
        else:
            found = self._reduced(step, function)
        if found.shape != step.shape:
            raise unwritten(step, f"with a result of shape {step.shape}")
        self.values[step.result.number] = found

    # Element by element -------------------------------------------------------------------------

    def _elementwise(self, step: Instruction) -> Any:
        if function_of(step) is np.astype:
            arguments = [self.value(step.arguments[0])]
            keywords: dict[str, Any] = {}
        else:
            arguments = [self.value(x) for x in step.arguments]
            keywords = {k: self.value(x) for k, x in options_of(step).items()}
        parts: Any = np.broadcast_arrays(*arguments, *keywords.values())
        found = np.empty(parts[0].shape, object)
        n = len(arguments)
        for i in np.ndindex(found.shape):
            named = {k: part[i] for k, part in zip(keywords, parts[n:], strict=True)}
            found[i] = self.lines.write(_name(step, i), step, [x[i] for x in parts[:n]], named)
        return found

    def apply(self, ufunc: Any, step: Instruction, name: str, *operands: Atom) -> Atom:
        """Write a function of single numbers that is part of an instruction."""
        one = step._replace(name=ufunc.__name__, function=ufunc, shape=())
        return self.lines.write(name, one, list(operands), {})

    # Moves --------------------------------------------------------------------------------------

    def _moved(self, step: Instruction, function: Any) -> Any:
        def given(x: Any) -> Any:
            if isinstance(x, Place):
                return self.values[x.number]
            if isinstance(x, Joined):
                return [given(part) for part in x]
            return x

        arguments = [given(step.arguments[0])]
        for x in step.arguments[1:]:
            if function in (np.append,):
                x = given(x)
            elif isinstance(x, (Place, Joined)):
                raise unwritten(step, "at an index that is computed")
            arguments.append(x)
        keywords = dict(step.keywords)
        if any(isinstance(x, Place) for x in keywords.values()):
            raise unwritten(step, "with an option that is computed")
        first = arguments[0]
        arguments[0] = _as_atoms(first) if isinstance(first, list) else _as_array(first)
        found = function(*arguments, **keywords)
        if isinstance(found, np.ndarray):
            return found
        single = np.empty((), object)
        single[()] = found
        return single

    def _scattered(self, step: Instruction) -> Any:
        x, index, shape = step.arguments
        given = self.value(x)
        rows = np.arange(int(np.prod(shape))).reshape(shape)[index]
        found = atoms(np.zeros(int(np.prod(shape))))
        parts: Any = np.broadcast_to(given, np.shape(rows))
        seen: set[int] = set()
        for i in np.ndindex(np.shape(rows)):
            place = int(rows[i])
            if place in seen:  # a later element of the same place is added
                name = f"{_name(step, i)}_sum"
                found[place] = self.apply(np.add, step, name, found[place], parts[i])
            else:
                found[place] = parts[i]
            seen.add(place)
        return found.reshape(shape)

    # Sums, products, extremes -------------------------------------------------------------------

    def _product(self, step: Instruction) -> Any:
        a, b = (self.value(x) for x in step.arguments)
        if step.keywords or not a.shape or not b.shape:
            raise unwritten(step, "with options, or of a single number")
        function = function_of(step)
        if function in (np.inner, np.vdot) and (a.ndim, b.ndim) != (1, 1):
            raise unwritten(step, "of matrices")
        if (a.ndim > 2 or b.ndim > 2) or (a.shape[-1] != b.shape[0]):
            raise unwritten(step, "of stacks of matrices")
        left = a if a.ndim == 2 else a[None]
        right = b if b.ndim == 2 else b[:, None]
        found = np.empty((left.shape[0], right.shape[1]), object)
        for i, j in np.ndindex(found.shape):
            parts = [
                self.apply(np.multiply, step, f"{_name(step, (i, j))}_{k}", x, y)
                for k, (x, y) in enumerate(zip(left[i], right[:, j], strict=True))
            ]
            found[i, j] = self._chain(np.add, step, f"{_name(step, (i, j))}_sum", parts)
        return found.reshape(step.shape)

    def _reduced(self, step: Instruction, function: Any) -> Any:
        options = dict(step.keywords)
        names: tuple[str, ...] = ("axis", "dtype", "out", "keepdims", "initial", "where")
        if function in (np.var, np.std):
            names = ("axis", "dtype", "out", "ddof", "keepdims")
        options |= dict(zip(names, step.arguments[1:], strict=False))
        options = {k: x for k, x in options.items() if x is not None and x is not np._NoValue}
        axis = options.pop("axis", None)
        keepdims = bool(options.pop("keepdims", False))
        ddof = options.pop("ddof", 0)
        options.pop("dtype", None)
        if function in (np.add.reduce, np.multiply.reduce) and axis is None:
            given = dict(step.keywords)
            axis = None if "axis" in given or len(step.arguments) > 1 else 0
        if options:
            raise unwritten(step, f"with the option {next(iter(options))}")
        x = self.value(step.arguments[0])
        if function in _CUMULATIVE:
            return self._accumulated(step, _CUMULATIVE[function], x, axis)
        if function in _SUMS or function is np.count_nonzero:
            return self._over(step, x, axis, keepdims, self._sum)
        if function in _EXTREMES:
            ufunc = _EXTREMES[function]

            def extreme(step: Instruction, name: str, parts: list[Atom], pairwise: bool) -> Atom:
                return self._chain(ufunc, step, name, parts)

            return self._over(step, x, axis, keepdims, extreme)
        if function is np.mean:
            return self._over(step, x, axis, keepdims, self._mean)
        if function in (np.var, np.std):

            def spread(step: Instruction, name: str, parts: list[Atom], pairwise: bool) -> Atom:
                return self._variance(step, name, parts, pairwise, ddof, function is np.std)

            return self._over(step, x, axis, keepdims, spread)
        raise unwritten(step)

    def _over(
        self, step: Instruction, x: Any, axis: Any, keepdims: bool, reduce: Callable[..., Atom]
    ) -> Any:
        """Reduce over axes: NumPy sums neighbors in memory pairwise, others one after another."""
        axes = range(x.ndim) if axis is None else np.atleast_1d(axis) % max(x.ndim, 1)
        axes = tuple(sorted(int(k) for k in axes))
        long = [k for k in range(x.ndim) if x.shape[k] > 1]
        reduced = [k for k in long if k in axes]
        pairwise = bool(reduced == long or (reduced and reduced == long[-len(reduced) :]))
        if not pairwise and len(reduced) > 1:
            raise unwritten(step, f"over the axes {axes}")
        kept = [k for k in range(x.ndim) if k not in axes]
        rows = x.transpose([*kept, *axes]).reshape([*(x.shape[k] for k in kept), -1])
        found = np.empty(rows.shape[:-1], object)
        for i in np.ndindex(found.shape):
            found[i] = reduce(step, _name(step, i), list(rows[i]), pairwise)
        if keepdims:
            found = found.reshape([1 if k in axes else n for k, n in enumerate(x.shape)])
        return found

    def _sum(self, step: Instruction, name: str, parts: list[Atom], pairwise: bool) -> Atom:
        """Sum as NumPy does it: up to 7 in order, up to 128 by eight accumulators, more halved."""
        kind = kind_of(step.dtype, step.name)
        numbers = [Atom(f"Number({x.text})", kind) if x.kind == BOOL else x for x in parts]
        zero = literal(0.0 if kind == FLOAT else 0)
        if not pairwise or len(numbers) < 8 or kind != FLOAT:
            return self._chain(np.add, step, name, [zero, *numbers])
        total = self._pairwise(step, f"{name}_all", numbers)
        return self.apply(np.add, step, name, zero, total)  # -0 becomes 0

    def _pairwise(self, step: Instruction, name: str, parts: list[Atom]) -> Atom:
        n = len(parts)
        if n > 128:
            half = n // 2 - n // 2 % 8
            left = self._pairwise(step, f"{name}_l", parts[:half])
            return self.apply(
                np.add, step, name, left, self._pairwise(step, f"{name}_r", parts[half:])
            )
        full = n - n % 8
        sums = [self._chain(np.add, step, f"{name}_{k}", parts[k:full:8]) for k in range(min(8, n))]
        while len(sums) > 1:
            label = f"{name}_{'abcd'[len(sums) // 4]}"
            sums = [
                self.apply(np.add, step, f"{label}{k}", sums[k], sums[k + 1])
                for k in range(0, len(sums), 2)
            ]
        return self._chain(np.add, step, name, [*sums, *parts[full:]])

    def _mean(self, step: Instruction, name: str, parts: list[Atom], pairwise: bool) -> Atom:
        total = self._sum(step, f"{name}_sum", parts, pairwise)
        return self.apply(np.divide, step, name, total, literal(float(len(parts))))

    def _variance(
        self, step: Instruction, name: str, parts: list[Atom], pairwise: bool, ddof: Any,
        root: bool,
    ) -> Atom:  # fmt: skip
        mean = self._mean(step, f"{name}_mean", parts, pairwise)
        squares = []
        for k, x in enumerate(parts):
            d = self.apply(np.subtract, step, f"{name}_d{k}", x, mean)
            squares.append(self.apply(np.multiply, step, f"{name}_s{k}", d, d))
        total = self._sum(step, f"{name}_squares", squares, pairwise)
        count = literal(float(max(len(parts) - ddof, 0)))
        found = self.apply(np.divide, step, f"{name}_var" if root else name, total, count)
        return self.apply(np.sqrt, step, name, found) if root else found

    def _accumulated(self, step: Instruction, ufunc: Any, x: Any, axis: Any) -> Any:
        if axis is None:
            x, axis = x.reshape(-1), 0
        found = x.copy()
        rows = np.moveaxis(found, axis, 0)
        for k in range(1, len(rows)):
            for i in np.ndindex(rows.shape[1:]):
                at = (k, *i)
                rows[at] = self.apply(ufunc, step, _name(step, at), rows[(k - 1, *i)], rows[at])
        return found

    def _chain(self, ufunc: Any, step: Instruction, name: str, parts: Sequence[Atom]) -> Atom:
        """Combine numbers from the left to the right."""
        if ufunc is np.add and len(parts) > 1 and all(x.kind != BOOL for x in parts):
            return self.lines.assign(
                name, Atom(" + ".join(x.text for x in parts), kind_of(step.dtype, step.name))
            )
        first, *rest = parts
        for k, x in enumerate(rest):
            first = self.apply(ufunc, step, f"{name}_{k}" if k < len(rest) - 1 else name, first, x)
        return first


def _name(step: Instruction, index: tuple[int, ...]) -> str:
    """Return the variable of an element of a result."""
    return "_".join(map(str, [f"v{step.result.number}", *index]))


def _as_array(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) and x.dtype == object else atoms(x)


def _as_atoms(parts: list[Any]) -> list[Any]:
    return [_as_atoms(x) if isinstance(x, list) else _as_array(x) for x in parts]


def function_source(
    plan: Plan,
    name: str,
    inputs: Sequence[str] = (),
    comment: str = "",
) -> str:
    """Return a plan as the source of a function.

    A number is a number, an array the list of its elements in C order, and several results are a
    list of them.
    """
    given = [*inputs, *(f"v{i}" for i in range(len(inputs), plan.inputs))][: plan.inputs]
    arrays = [
        variables(one, shape, kind_of(dtype, f"the argument {one}"))
        for one, (shape, dtype) in zip(given, plan.signature, strict=True)
    ]
    lines, outputs = unrolled(plan, arrays)
    texts = [_output(x) for x in outputs]
    result = texts[0] if plan.single else f"[{', '.join(texts)}]"
    body = "".join(f"  {line}\n" for line in lines.read_by([result]))
    head = f"/** {comment} */\n" if comment else ""
    return f"{head}export function {name}({', '.join(given)}) {{\n{body}  return {result};\n}}\n"


def _output(x: Any) -> str:
    texts = [one.text for one in x.reshape(-1)]
    return f"[{', '.join(texts)}]" if x.ndim else texts[0]


def assigned(outputs: Mapping[str, Any]) -> list[str]:
    """Return the lines that write arrays of atoms into arrays of these names."""
    return [
        f"{name}[{number}] = {one.text};"
        for name, x in outputs.items()
        for number, one in enumerate(itertools.chain(x.reshape(-1)))
    ]
