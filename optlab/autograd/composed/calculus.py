"""Differences, integrals, polynomials and convolutions, composed of other functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from optlab.autograd.composed.reductions import NOT_GIVEN, constant
from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules import calculus as rules
from optlab.autograd.tensor.tensor import apply, raw
from optlab.backend.arrays import constants_beside, zeros_beside


def _as_array(x: Any, beside: Any = None) -> Any:
    """Convert numbers and lists to an array on the device of `beside`; return arrays unchanged."""
    return x if hasattr(x, "shape") else constants_beside(raw(beside), np.asarray(x))


def _index_axis(x: Any, axis: int, index: Any) -> Any:
    """Return ``x[index]`` along one axis."""
    return x[(slice(None),) * normalize_axis_index(axis, len(x.shape)) + (index,)]


def _as_float(x: Any) -> Any:
    return x if x.dtype == np.float64 else x.astype(np.float64)


# Differences --------------------------------------------------------------------------------------


@composed(np.diff)
def _diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN
) -> Any:
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"the order of a difference is 0 or more; got n={n}.")
    a = _as_array(a)
    if len(a.shape) == 0:
        raise ValueError("diff takes an array of at least one axis; got a single number.")
    place = normalize_axis_index(axis, len(a.shape))
    across = tuple(1 if i == place else length for i, length in enumerate(a.shape))
    joined = [_as_array(x, beside=a) for x in (prepend, a, append) if x is not NOT_GIVEN]
    joined = [np.broadcast_to(x, across) if len(x.shape) == 0 else x for x in joined]
    if len(joined) > 1:
        a = np.concatenate(joined, axis)
    subtract = np.not_equal if a.dtype == bool else np.subtract
    for _ in range(n):
        a = subtract(_index_axis(a, axis, slice(1, None)), _index_axis(a, axis, slice(None, -1)))
    return a


@composed(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ary = np.reshape(ary, (-1,))
    ends = []
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is None:
            continue
        end = np.reshape(_as_array(end, beside=ary), (-1,))
        if not np.can_cast(end.dtype, ary.dtype, casting="same_kind"):
            raise TypeError(f"{name} of dtype {end.dtype} does not fit an array of {ary.dtype}.")
        ends.append((name, end if end.dtype == ary.dtype else end.astype(ary.dtype)))
    difference = ary[1:] - ary[:-1]
    if not ends:
        return difference
    before = [end for name, end in ends if name == "to_begin"]
    after = [end for name, end in ends if name == "to_end"]
    return np.concatenate([*before, difference, *after])


@composed(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = _as_array(f)
    if f.dtype.kind in "iub":
        f = f.astype(np.float64)
    ndim = len(f.shape)
    axes = tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order is 1 or 2; got {edge_order}.")
    if len(varargs) == 1 and np.ndim(varargs[0]) == 0:
        varargs *= len(axes)
    if len(varargs) not in (0, len(axes)):
        raise TypeError(
            f"gradient takes no spacing, one for all axes, or one for each of the {len(axes)} "
            f"axes; got {len(varargs)}."
        )
    found = []
    for i, along in enumerate(axes):
        length = f.shape[along]
        if length < edge_order + 1:
            raise ValueError(
                f"a gradient with edge_order={edge_order} takes at least {edge_order + 1} "
                f"elements along its axis; got {length}."
            )
        step = _steps(varargs[i], f, length) if varargs else 1.0
        slope = _slope(f, along, step, edge_order)
        found.append(slope if slope.dtype == f.dtype else slope.astype(f.dtype))
    return found[0] if len(found) == 1 else tuple(found)


def _steps(spacing: Any, f: Any, length: int) -> Any:
    """Return the distances between neighbors: one number if they are all equal."""
    if np.ndim(spacing) == 0:
        return spacing
    spacing = _as_array(spacing, beside=f)
    if spacing.shape != (length,):
        raise ValueError(
            f"the coordinates along an axis of length {length} have shape ({length},); got "
            f"{spacing.shape}."
        )
    steps = np.diff(spacing.astype(np.float64) if spacing.dtype.kind in "iu" else spacing)
    if isinstance(steps, np.ndarray) and np.all(steps == steps[0]):
        return steps[0]  # as NumPy does, so that the bits are the same
    return steps


def _slope(f: Any, axis: int, step: Any, edge_order: int) -> Any:
    """Return central differences along one axis, one-sided ones at both ends."""

    def at(start: int, stop: int | None) -> Any:
        return _index_axis(f, axis, slice(start, stop))

    def beside(x: Any) -> Any:
        return np.reshape(x, (-1,) + (1,) * (len(f.shape) - 1 - axis % len(f.shape)))

    if np.ndim(step) == 0:
        first = second = before_last = last = step
        inner = (at(2, None) - at(0, -2)) / (2.0 * step)
    else:
        first, second = step[0], step[min(1, step.shape[0] - 1)]
        before_last, last = step[max(-2, -step.shape[0])], step[-1]
        h, k = step[:-1], step[1:]
        a, b, c = -k / (h * (h + k)), (k - h) / (h * k), h / (k * (h + k))
        inner = beside(a) * at(0, -2) + beside(b) * at(1, -1) + beside(c) * at(2, None)
    if edge_order == 1:
        left = (at(1, 2) - at(0, 1)) / first
        right = (at(-1, None) - at(-2, -1)) / last
    else:
        even = np.ndim(step) == 0
        a, b, c = _one_sided(first, second, even)
        left = a * at(0, 1) + b * at(1, 2) + c * at(2, 3)
        a, b, c = _one_sided(last, before_last, even)
        right = -c * at(-3, -2) + -b * at(-2, -1) + -a * at(-1, None)
    return np.concatenate([left, inner, right], axis=axis)


def _one_sided(h: Any, k: Any, even: bool) -> tuple[Any, Any, Any]:
    """Return the weights of three points, steps h and k apart, in the slope at the first."""
    if even:
        return -1.5 / h, 2.0 / h, -0.5 / h
    return -(2.0 * h + k) / (h * (h + k)), (h + k) / (h * k), -h / (k * (h + k))


@composed(*[getattr(np, name) for name in ("trapezoid", "trapz") if hasattr(np, name)])
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = _as_array(y)
    if x is None:
        width = dx
    else:
        x = _as_array(x, beside=y)
        width = np.diff(x, axis=axis if len(x.shape) > 1 else -1)
        if len(x.shape) == 1:
            shape = [1] * len(y.shape)
            shape[axis] = width.shape[0]
            width = width.reshape(tuple(shape))
    pairs = _index_axis(y, axis, slice(1, None)) + _index_axis(y, axis, slice(None, -1))
    return np.sum(width * pairs / 2.0, axis=axis)


# Polynomials --------------------------------------------------------------------------------------


@composed(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    if isinstance(p, np.poly1d) or isinstance(x, np.poly1d):
        raise not_covered("polyval with a poly1d")
    p, x = _as_array(p), _as_array(x, beside=p)
    value: Any = np.zeros_like(x)
    for coefficient in p:
        value = value * x + coefficient
    return value


@composed(np.vander)
def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = _as_array(x)
    if len(x.shape) != 1:
        raise ValueError(f"vander takes a vector (one axis); got shape {x.shape}.")
    n = x.shape[0]
    N = n if N is None else N
    dtype = np.promote_types(x.dtype, int)
    x = x if x.dtype == dtype else x.astype(dtype)
    ones = zeros_beside(raw(x), (n, min(N, 1))) + dtype.type(1)
    powers = np.cumprod(np.broadcast_to(np.reshape(x, (-1, 1)), (n, max(N - 1, 0))), axis=1)
    rising = np.concatenate([ones, powers], axis=1)
    return rising if increasing else np.flip(rising, 1)


# Convolution and interpolation --------------------------------------------------------------------


def _mode(mode: Any) -> Any:
    if mode not in ("full", "same", "valid", 0, 1, 2):
        raise ValueError(f"mode is 'full', 'same' or 'valid'; got {mode!r}.")
    return mode


@composed(np.convolve)
def _convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    a, v = _as_array(a, beside=v), _as_array(v, beside=a)
    a, v = (np.reshape(x, (1,)) if len(x.shape) == 0 else x for x in (a, v))
    return apply(rules.CONVOLVE, (a, v), {"mode": _mode(mode)})


@composed(np.correlate)
def _correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    a, v = _as_array(a, beside=v), _as_array(v, beside=a)
    if a.shape[0] < v.shape[0]:  # NumPy slides the shorter over the longer
        return np.flip(_convolve(v, np.flip(a, 0), mode), 0)
    return _convolve(a, np.flip(v, 0), mode)


@composed(np.interp)
def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    one = next((part for part in (fp, x, xp) if hasattr(part, "shape")), None)
    x, xp, fp = (_as_array(part, beside=one) for part in (x, xp, fp))
    if fp.dtype.kind == "c":
        raise not_covered("interp with complex fp")
    x, xp, fp = _as_float(x), _as_float(xp), _as_float(fp)
    if len(xp.shape) != 1 or xp.shape != fp.shape:
        raise ValueError(
            f"interp takes fp and xp as vectors of the same length; got {fp.shape} and {xp.shape}."
        )
    if period is not None:
        period = abs(constant(period, "interp with period="))
        if period == 0:
            raise ValueError("interp takes a period other than 0.")
        left = right = None
        x, xp = x % period, xp % period
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
    ends = {"left": left, "right": right}
    static = {
        name: constant(end, f"interp with {name}=") for name, end in ends.items() if end is not None
    }
    return apply(rules.INTERP, (x, xp, fp), static)


@composed(np.unwrap)
def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    static = {
        "discont": constant(discont, "unwrap with discont="),
        "axis": axis,
        "period": constant(period, "unwrap with period="),
    }
    return apply(rules.UNWRAP, (p,), static)
