"""Batching rules of functions along axes: axis k of a member is axis k + 1 of the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.backend.ensemble.array import EnsembleArray
from optlab.backend.ensemble.batched_call import Call, shifted
from optlab.backend.ensemble.indexing import getitem
from optlab.backend.ensemble.registry import batched, bind, numpy_function, public_name, refusal


def fold(
    call: Call, function: Callable[..., Any], a: Any, axis: Any, keepdims: Any, **options: Any
) -> Any:
    """Reduce axes of each member by a function that takes ``axis``."""
    x, shape = call.stacked(a), np.shape(a)
    where = options.get("where")
    if where is not None and not isinstance(where, (bool, np.bool)):
        if axis is None:
            where = call.stacked(np.broadcast_to(where, shape)).reshape(call.count, -1)
        else:
            where = call.padded(where, len(shape))
        options["where"] = where
    if options.get("mean") is not None:  # of np.var and np.std, with reduced axes of length 1
        mean = call.stacked(options["mean"])
        options["mean"] = mean.reshape((call.count, 1)) if axis is None else mean
    if axis is None:  # all elements of a member in one row, in the order in which NumPy adds
        y = function(x.reshape((call.count, -1)), axis=1, **options)
        return call.wrap(y.reshape((call.count,) + (1,) * len(shape)) if keepdims else y)
    if keepdims:
        options["keepdims"] = True
    return call.wrap(function(x, axis=shifted(axis, len(shape)), **options))


def reduce(
    call: Call, ufunc: Any, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
    keepdims: bool = False, initial: Any = np._NoValue, where: Any = True,
) -> Any:  # fmt: skip
    """Apply ``ufunc.reduce``."""
    if out is not None and any(target is not None for target in np.atleast_1d(out)):
        raise refusal(f"np.{ufunc.__name__}.reduce with out=", "Use the value that it returns.")
    if axis == 0 and np.ndim(a) == 0:
        axis = ()
    options = {} if where is True else {"where": where}
    if initial is not np._NoValue:
        options["initial"] = initial
    if dtype is not None:
        options["dtype"] = dtype
    return fold(call, ufunc.reduce, a, axis, keepdims, **options)


def accumulate(call: Call, ufunc: Any, method: str, a: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply ``ufunc.accumulate`` and ``ufunc.reduceat``."""
    names = ["axis", "dtype", "out"] if method == "accumulate" else ["indices", "axis", "dtype"]
    given = dict(zip(names, args, strict=False)) | kwargs
    if call.has(given.get("indices")) or given.get("out") is not None:
        raise refusal(f"np.{ufunc.__name__}.{method} with these arguments")
    given["axis"] = shifted(given.get("axis", 0), np.ndim(a))
    return call.wrap(getattr(ufunc, method)(call.stacked(a), **given))


def _folding(path: str) -> None:
    function = numpy_function(path)

    @batched(path)
    def rule(call: Call, *args: Any, **kwargs: Any) -> Any:
        given = bind(function, args, kwargs)
        a, axis = given.pop("a"), given.pop("axis", None)
        if any(call.has(value) for name, value in given.items() if name not in ("where", "mean")):
            raise refusal(f"{public_name(function)} with {', '.join(given)} of each member")
        keepdims = given.pop("keepdims", False)
        if given.get("dtype", 0) is None:
            del given["dtype"]
        return fold(call, function, a, axis, keepdims, **given)


for path in (
    "sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "ptp", "all", "any",
    "argmax", "argmin", "median", "count_nonzero", "nansum", "nanprod", "nanmean", "nanvar",
    "nanstd", "nanmax", "nanmin", "nanargmax", "nanargmin", "nanmedian",
):  # fmt: skip
    _folding(path)


def _quantile(path: str) -> None:
    function = numpy_function(path)

    @batched(path)
    def rule(call: Call, *args: Any, **kwargs: Any) -> Any:
        given = bind(function, args, kwargs)
        a, q, axis = given.pop("a"), given.pop("q"), given.pop("axis", None)
        keepdims = given.pop("keepdims", False)
        if call.has(q) or any(call.has(value) for value in given.values()):
            raise refusal(f"{public_name(function)} with a q or weights of each member")
        levels = np.ndim(q)

        def several(x: Any, axis: Any, **options: Any) -> Any:
            if not levels:
                return function(x, q, axis=axis, **options)
            # As one row: with a 2-D q and several axes nanquantile confuses its axes.
            y = np.moveaxis(function(x, np.ravel(q), axis=axis, **options), 0, 1)
            return y.reshape((call.count, *np.shape(q), *y.shape[2:]))

        if axis is None and keepdims and levels:
            axis = tuple(range(np.ndim(a)))
        return fold(call, several, a, axis, keepdims, **given)


for path in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    _quantile(path)


def _along(path: str, array: str, flat: bool, default: Any = None) -> None:
    """Register the rule of a function along one axis; without axis, over all elements."""
    function = numpy_function(path)

    @batched(path)
    def rule(call: Call, *args: Any, **kwargs: Any) -> Any:
        given = bind(function, args, kwargs)
        a, axis = given.pop(array), given.pop("axis", default)
        if any(call.has(value) for value in given.values()):
            raise refusal(f"{public_name(function)} with {', '.join(given)} of each member")
        x, ndim = call.stacked(a), np.ndim(a)
        if axis is None and flat:
            return call.wrap(function(x.reshape((call.count, -1)), axis=1, **given))
        if axis is None:
            axis = tuple(range(ndim))
        return call.wrap(function(x, axis=shifted(axis, ndim), **given))


for path, array, default in [
    ("cumsum", "a", None), ("cumprod", "a", None), ("nancumsum", "a", None),
    ("nancumprod", "a", None), ("cumulative_sum", "x", None), ("cumulative_prod", "x", None),
    ("sort", "a", -1), ("argsort", "a", -1), ("partition", "a", -1), ("argpartition", "a", -1),
    ("repeat", "a", None), ("delete", "arr", None),
    ("fft.fft", "a", -1), ("fft.ifft", "a", -1), ("fft.rfft", "a", -1), ("fft.irfft", "a", -1),
]:  # fmt: skip
    if numpy_function(path) is not None:
        _along(path, array, flat=True, default=default)
_along("flip", "m", flat=False)
_along("unwrap", "p", flat=True, default=-1)


@batched("diff")
def _diff(
    call: Call, a: Any, n: int = 1, axis: int = -1,
    prepend: Any = np._NoValue, append: Any = np._NoValue,
) -> Any:  # fmt: skip
    ends = []
    for end in (prepend, append):
        if end is not np._NoValue:
            shape = list(np.shape(a))
            shape[axis] = 1 if not np.ndim(end) else np.shape(end)[axis]
            end = np.broadcast_to(end, shape)
        ends.append(end)
    parts = [part for part in (ends[0], a, ends[1]) if part is not np._NoValue]
    x = np.concatenate(parts, axis) if len(parts) > 1 else a
    return call.wrap(np.diff(call.stacked(x), n, shifted(axis, np.ndim(x))))


@batched("trapezoid")
def _trapezoid(call: Call, y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    # With slices, as NumPy's own.
    if x is None:
        width = dx
    elif np.ndim(x) == 1:
        shape = [1] * np.ndim(y)
        width = np.diff(x)
        shape[axis] = np.shape(width)[0]
        width = np.reshape(width, shape)
    else:
        width = np.diff(x, axis=axis)
    before = (slice(None),) * (axis % np.ndim(y))
    left, right = y[(*before, slice(None, -1))], y[(*before, slice(1, None))]
    return np.sum(width * (right + left) / 2.0, axis=axis)


@batched("take")
def _take(
    call: Call, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    if out is not None:
        raise refusal("np.take with out=", "Use the value that it returns.")
    if axis is None:
        a, axis = np.ravel(a), 0
    place = shifted(axis, np.ndim(a)) - 1
    if not isinstance(indices, EnsembleArray):
        return call.wrap(np.take(call.stacked(a), indices, axis=place + 1, mode=mode))  # type: ignore[call-overload]
    if mode == "clip":
        indices = np.clip(indices, 0, np.shape(a)[place] - 1)
    elif mode == "wrap":
        indices = indices % np.shape(a)[place]
    return getitem(a, (slice(None),) * place + (indices,))


def _along_axis(call: Call, arr: Any, indices: Any, axis: Any) -> tuple[Any, ...]:
    """Return members, indices and axis of `take_along_axis` and `put_along_axis`."""
    if axis is None:
        arr, axis = np.reshape(arr, (-1,)), 0
    return call.stacked(arr), call.stacked(indices), shifted(axis, np.ndim(arr))


@batched("take_along_axis")
def _take_along_axis(call: Call, arr: Any, indices: Any, axis: Any = -1) -> Any:
    return call.wrap(np.take_along_axis(*_along_axis(call, arr, indices, axis)))


@batched("put_along_axis")
def _put_along_axis(call: Call, arr: Any, indices: Any, values: Any, axis: Any) -> None:
    if not call.has(arr) or axis is None:
        raise refusal("np.put_along_axis into a shared array, or with axis=None")
    x, places, axis = _along_axis(call, arr, indices, axis)
    np.put_along_axis(x, places, call.padded(values, arr.ndim), axis)
