"""Which operations of a plan become steps of compiled kernels."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from optlab.backend.call_recorder import BOUNDED
from optlab.plan.calls.entries import Entry, OfTensor
from optlab.plan.calls.source import is_reduction
from optlab.plan.kernel_steps import (
    Bounded,
    Elementwise,
    LargestOfRows,
    Picked,
    Step,
    SumOfAll,
    SumOfRows,
    TakenRows,
)
from optlab.plan.plan import Instruction, Place

#: Operators on single values as NumPy's functions.
_OPERATORS: dict[Any, Any] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply,
    operator.truediv: np.true_divide, operator.neg: np.negative, operator.abs: np.absolute,
}  # fmt: skip


def step_of(entry: Entry, values: Any) -> Step | None:
    """Return an operation as a step of a kernel, None if it has none.

    Parameters
    ----------
    entry : Entry
    values : mapping of Place to Value
        Shapes and dtypes.
    """
    if entry.kind != "operation" or entry.keywords or len(entry.results) != 1:
        return None
    function, arguments, (result,) = entry.function, entry.arguments, entry.results
    value = values.get(result)
    if value is None:
        return None
    if getattr(function, "checks_facts", False):
        return _bounded(entry, values)
    if function in _OPERATORS and any(isinstance(x, Place) for x in arguments):
        if value.shape != () or value.dtype.kind != "f":
            return None
        function = _OPERATORS[function]
    if (isinstance(function, np.ufunc) and not function.signature) or function in (
        np.where, np.clip,
    ):  # fmt: skip
        return _elementwise(entry, function, value, values)
    shapes = [values[x].shape for x in arguments if isinstance(x, Place) and x in values]
    x = arguments[0] if arguments else None
    if not isinstance(x, Place) or x not in values:
        return None
    if is_reduction(function):
        ufunc: Any = getattr(function, "__self__", None)
        return _reduction(ufunc, x, arguments[1:], values, result)
    if function is np.take and len(arguments) == 3 and arguments[2] == 0:
        index = arguments[1]
        if isinstance(index, Place) and [len(shape) for shape in shapes] == [2, 1]:
            return TakenRows(x, index, result)
    return None


def picked_of(entry: Entry, values: Any, constants: Any) -> Step | None:
    """Return ``x[np.arange(n), index]`` as a step, None if an operation is something else."""
    if entry.function is not operator.getitem or entry.kind != "operation" or entry.keywords:
        return None
    x, index = entry.arguments
    if not (isinstance(x, Place) and type(index) is tuple and len(index) == 2):
        return None
    rows, columns = index
    if not (isinstance(rows, Place) and isinstance(columns, Place) and rows in constants):
        return None
    known, shape = constants[rows], values[x].shape
    if len(shape) != 2 or columns not in values or values[columns].shape != shape[:1]:
        return None
    if not np.array_equal(known, np.arange(shape[0])):
        return None
    return Picked(x, columns, entry.results[0])


def _elementwise(entry: Entry, function: Any, value: Any, values: Any) -> Step | None:
    arguments = []
    for x in entry.arguments:
        if isinstance(x, Place):
            if x not in values:
                return None  # a number of Python that differs from call to call
        elif isinstance(x, np.floating):
            # One of the dtype of the result meets arrays as Python's number does.
            if x.dtype != value.dtype or not np.isfinite(x):
                return None
            x = float(x)
        elif type(x) not in (int, float):
            return None
        arguments.append(x)
    result = entry.results[0]
    if not any(isinstance(x, Place) for x in arguments):
        return None
    return Elementwise(
        Instruction(
            function.__name__, function, tuple(arguments), (), result, value.shape, value.dtype
        )
    )


def _reduction(
    ufunc: Any, x: Place, given: tuple[Any, ...], values: Any, result: Place
) -> Step | None:
    """Return a reduction as a step: its arguments are axis, dtype, out and keepdims."""
    defaults = (0, None, None, False)
    axis, dtype, out, keepdims = (*given, *defaults[len(given) :])[:4]
    if dtype is not None or out is not None or type(keepdims) is not bool:
        return None
    dims = len(values[x].shape)
    if ufunc is np.add and axis in (0, (0,)) and not keepdims:
        return SumOfRows(x, result) if dims == 2 else SumOfAll(x, result) if dims == 1 else None
    if ufunc is np.maximum and axis in (1, -1) and dims == 2:
        return LargestOfRows(x, result)
    return None


def _bounded(entry: Entry, values: Any) -> Step | None:
    checked: Any = entry.function
    bounds = BOUNDED.get(checked.function)
    if bounds is None:
        return None
    places = [x.place if isinstance(x, OfTensor) else x for x in entry.arguments]
    if not isinstance(places[0], Place) or places[0] not in values:
        return None
    shapes = [values[x].shape if isinstance(x, Place) and x in values else x for x in places]
    count = bounds(*shapes, facts=checked.facts)
    return None if count is None else Bounded(places[0], count, entry.results[0])
