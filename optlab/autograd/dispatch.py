"""What a call of NumPy does when it meets a Tensor.

NumPy hands every call with a Tensor among its arguments to us (NEP 13, NEP 18). Most are one
operation of the table; some are written with other functions; some have no derivative and give
plain arrays; the rest is refused by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optlab.autograd.operation import TABLE
from optlab.autograd.rules.shapes import concatenation, stacking
from optlab.autograd.tensor import Tensor, apply, power, raw

#: Functions without a derivative: they see the values and give plain arrays.
PLAIN: set[Any] = {
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_xor, np.logical_not,
    np.isnan, np.isinf, np.isfinite, np.signbit,
    np.argmax, np.argmin, np.argsort, np.nanargmax, np.nanargmin, np.searchsorted,
    np.count_nonzero, np.nonzero, np.flatnonzero, np.argwhere, np.all, np.any,
    np.allclose, np.isclose, np.array_equal, np.array_equiv, np.isreal, np.iscomplexobj,
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.shares_memory, np.may_share_memory,
    np.zeros_like, np.ones_like, np.empty_like, np.array_repr, np.array_str, np.array2string,
}  # fmt: skip

#: Functions that write into their first argument.
IN_PLACE: set[Any] = {np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}

#: Functions written with other functions.
COMPOSED: dict[Any, Callable[..., Any]] = {}

#: Ufuncs whose ``reduce`` is a function of its own.
REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
}


def universal_function(ufunc: Any, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """Answer a call of a ufunc, or of its methods."""
    out = kwargs.pop("out", None)
    if out is not None and any(target is not None for target in out):
        raise TypeError(
            f"np.{ufunc.__name__} was asked to write into an existing array (out=, or += on an "
            "array) what comes from a Tensor; the gradient would be lost. Write a = a + t instead."
        )
    if method == "__call__":
        if ufunc in PLAIN:
            return ufunc(*[raw(x) for x in inputs], **kwargs)
        composed = COMPOSED.get(ufunc)
        if composed is not None:
            return composed(*inputs, **kwargs)
        operation = TABLE.get(ufunc)
        if operation is not None:
            if kwargs:
                operation.bind(inputs, kwargs)
            return apply(operation, inputs)
    elif method == "reduce" and ufunc in REDUCTIONS:
        kwargs.setdefault("axis", 0)
        return array_function(REDUCTIONS[ufunc], inputs, kwargs)
    elif method == "accumulate" and ufunc is np.add:
        kwargs.setdefault("axis", 0)
        return array_function(np.cumsum, inputs, kwargs)
    elif method == "at":
        raise TypeError(
            f"np.{ufunc.__name__}.at writes in place, which would lose the gradient of a Tensor. "
            "Build the sum with np.where, or by indexing and addition."
        )
    elif method == "outer":
        a, b = inputs
        return universal_function(
            ufunc, "__call__", (np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b), kwargs
        )
    raise _not_covered(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")


def array_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer a call of any other NumPy function."""
    has_rule = function in TABLE or function in COMPOSED
    harmless = not (_needs_grad(args) or _needs_grad(kwargs) or _writes_into_tensor(function, args))
    if harmless and not has_rule:
        return function(*_raw_everywhere(args), **_raw_everywhere(kwargs))
    if kwargs.get("out") is not None:
        raise TypeError(
            f"np.{function.__name__}(..., out=) writes into an existing array, which would lose "
            "the gradient of a Tensor. Use the value that it returns."
        )
    composed = COMPOSED.get(function)
    if composed is not None:
        return composed(*args, **kwargs)
    operation = TABLE.get(function)
    if operation is not None:
        inputs, static = operation.bind(args, kwargs)
        return apply(operation, inputs, static)
    if function in PLAIN:
        return function(*_raw_everywhere(args), **_raw_everywhere(kwargs))
    if function in IN_PLACE:
        raise TypeError(
            f"np.{function.__name__} writes in place, which would lose the gradient of a Tensor. "
            "Build a new value with np.where or optlab.numpy."
        )
    raise _not_covered(
        f"{function.__module__}.{function.__name__}".removeprefix("numpy.").removeprefix("np.")
    )


def _not_covered(name: str) -> TypeError:
    return TypeError(
        f"np.{name} has no derivative rule for Tensors yet. Write it with functions that have "
        f"one, add a rule (optlab.autograd.rule), or use np.{name}(t.detach().numpy()) if no "
        "gradient is needed."
    )


def _needs_grad(x: Any) -> bool:
    """Say whether a Tensor that needs a gradient is among nested tuples, lists and dicts."""
    if isinstance(x, Tensor):
        return x.node is not None
    if isinstance(x, dict):
        x = x.values()
    elif not isinstance(x, (tuple, list)):
        return False
    return any(_needs_grad(part) for part in x)


def _writes_into_tensor(function: Any, args: tuple[Any, ...]) -> bool:
    return function in IN_PLACE and isinstance(args[0], Tensor)


def _raw_everywhere(x: Any) -> Any:
    """Take the arrays out of the Tensors in nested tuples, lists and dicts."""
    if isinstance(x, Tensor):
        return x.data
    if isinstance(x, (tuple, list)):
        return type(x)(_raw_everywhere(part) for part in x)
    if isinstance(x, dict):
        return {key: _raw_everywhere(value) for key, value in x.items()}
    return x


def composed(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Write a function of NumPy with other functions."""

    def put(written: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            COMPOSED[function] = written
        return written

    return put


@composed(np.power)
def _power(a: Any, b: Any) -> Any:
    return power(a, b) if isinstance(a, Tensor) else apply(TABLE[np.power], (a, b))


@composed(np.concatenate)
def _concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Any:
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [np.ravel(x) for x in arrays], 0
    lengths = [np.shape(x)[axis] for x in arrays]
    bounds = tuple(np.cumsum([0, *lengths]).tolist())
    return apply(concatenation(len(arrays)), arrays, {"axis": axis, "bounds": bounds})


@composed(np.stack)
def _stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    arrays = list(arrays)
    return apply(stacking(len(arrays)), arrays, {"axis": axis})


@composed(np.atleast_1d)
def _atleast_1d(x: Any) -> Any:
    return np.reshape(x, (1,)) if np.ndim(x) == 0 else x


@composed(np.atleast_2d)
def _atleast_2d(x: Any) -> Any:
    return np.reshape(x, (1,) * (2 - np.ndim(x)) + np.shape(x)) if np.ndim(x) < 2 else x


@composed(np.vstack)
def _vstack(arrays: Sequence[Any]) -> Any:
    return np.concatenate([np.atleast_2d(x) for x in arrays], 0)


@composed(np.hstack)
def _hstack(arrays: Sequence[Any]) -> Any:
    arrays = [np.atleast_1d(x) for x in arrays]
    return np.concatenate(arrays, 0 if np.ndim(arrays[0]) == 1 else 1)


@composed(np.column_stack)
def _column_stack(arrays: Sequence[Any]) -> Any:
    return np.concatenate([np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in arrays], 1)


@composed(np.dot)
def _dot(a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    if np.ndim(b) <= 2:
        return np.matmul(a, b)
    raise _not_covered("dot with a right side of more than two axes")


@composed(np.outer)
def _outer(a: Any, b: Any) -> Any:
    return np.reshape(a, (-1, 1)) * np.reshape(b, (1, -1))


@composed(np.clip)
def _clip(x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low = a_min if a_min is not None else min
    high = a_max if a_max is not None else max
    return apply(TABLE[np.clip], (x, low, high))


@composed(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    condition = raw(condition)
    if not choices:
        return np.nonzero(condition)
    return apply(TABLE[np.where], (condition, *choices))


@composed(np.ravel)
def _ravel(x: Any, order: str = "C") -> Any:
    if order != "C":
        raise TypeError(f"np.ravel(..., order={order!r}) is not covered on Tensors; order='C' is.")
    return apply(TABLE[np.ravel], (x,))


@composed(np.reshape)
def _reshape(x: Any, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Any:
    if order != "C":
        raise TypeError(
            f"np.reshape(..., order={order!r}) is not covered on Tensors; order='C' is."
        )
    shape = newshape if shape is None else shape
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return apply(TABLE[np.reshape], (x,), {"shape": shape})


@composed(np.array_split)
def _array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    before = (slice(None),) * (axis % np.ndim(x))
    parts = np.array_split(np.arange(np.shape(x)[axis]), indices_or_sections)
    starts = np.cumsum([0] + [len(part) for part in parts]).tolist()
    return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(starts)]


@composed(np.split)
def _split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    length = np.shape(x)[axis]
    if isinstance(indices_or_sections, (int, np.integer)) and length % indices_or_sections:
        raise ValueError(
            f"an axis of length {length} cannot be split into {indices_or_sections} equal parts."
        )
    return _array_split(x, indices_or_sections, axis)
