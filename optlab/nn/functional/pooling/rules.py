"""Pooling, axis by axis, and its gradients; max pooling of large windows saves input and output.

Where several elements of a window are its maximum, the first one (row by row) gets the gradient.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.autograd.rules.reductions import aggregates
from optlab.backend.arrays import constants_beside
from optlab.nn.functional.conv.im2col import at_least_float32
from optlab.nn.functional.windows import Windows

AllWindows = Sequence[Windows]
Divisor = str | float


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def _shape(x: Any, axis: int, length: int) -> tuple[int, ...]:
    return (*x.shape[:axis], length, *x.shape[axis + 1 :])


def _axes(x: Any, windows: AllWindows) -> list[tuple[int, Windows]]:
    """Return the spatial axes with their windows."""
    return list(enumerate(windows, x.ndim - len(windows)))


# Maxima -------------------------------------------------------------------------------------------


def _split_first(windows: Windows) -> tuple[slice | None, Any]:
    """Split the pieces of the windows: the first if all windows have it, and the rest."""
    if windows.full:
        return windows.pieces[0][0], windows.pieces[1:]
    return None, windows.pieces


def _max_along(x: Any, axis: int, windows: Windows) -> Any:
    if windows.is_global:
        return aggregates.MAX.forward(x, axis=axis, keepdims=True)
    first, rest = _split_first(windows)
    if first is not None:
        y = x[_along(axis, first)].copy(order="K")
    else:
        y = np.full_like(x, -np.inf, shape=_shape(x, axis, windows.count))
    for read, targets in rest:
        part = y[_along(axis, targets)]
        np.maximum(part, x[_along(axis, read)], out=part)
    return y


Part = tuple[slice, ...]
Stage = list[tuple[int, Windows]]


def _pieces(ndim: int, stage: Stage) -> list[tuple[Part, Part]]:
    """Return, for each element of the windows, its indices in x and the windows that have it."""
    found = []
    for pieces in itertools.product(*[one.pieces for _, one in stage]):
        of, to = [slice(None)] * ndim, [slice(None)] * ndim
        for (axis, _), (read, targets) in zip(stage, pieces, strict=True):
            of[axis], to[axis] = read, targets
        found.append((tuple(of), tuple(to)))
    return found


def _first_maxima(x: Any, y: Any, stage: Stage) -> Iterator[tuple[Part, Part, Any]]:
    """Yield, for each element of the windows, its indices and where it is the first maximum.

    NaN is never less than anything, so that a window of NaN gets its gradient too.
    """
    pieces = _pieces(x.ndim, stage)
    full = all(one.full for _, one in stage)
    taken = None
    for i, (of, to) in enumerate(pieces):
        if taken is None:
            hit = ~(x[of] < y[to])
            taken = hit.copy() if full else np.zeros_like(y, dtype=bool)
        elif full and i == len(pieces) - 1:
            hit = ~taken
        else:
            hit = ~(x[of] < y[to]) & ~taken[to]
        if not full or 0 < i < len(pieces) - 1:
            taken[to] |= hit
        yield of, to, hit


def max_pool(x: Any, windows: AllWindows) -> Any:
    """Return the maximum of each window.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> max_pool(np.array([[1.0, 3.0, 2.0, 2.0]]), (sliding(4, 2, 2, (0, 0), False),))
    array([[3., 2.]])
    """
    for axis, one in _axes(x, windows):
        x = _max_along(x, axis, one)
    return x


#: Windows of at most this many elements are searched at once, larger ones axis by axis.
SMALL = 16


def _stages(x: Any, y: Any, windows: AllWindows) -> list[tuple[Any, Any, Stage]]:
    """Return the array, the maxima and the axes of each stage of the search; the last axis first.

    In this order ties are resolved row by row, as if a window were searched at once.
    """
    axes = _axes(x, windows)
    if math.prod(len(one.pieces) for _, one in axes) <= SMALL:
        return [(x, y, axes)]
    stages = []
    for axis, one in axes[:0:-1]:
        best = _max_along(x, axis, one)
        stages.append((x, best, [(axis, one)]))
        x = best
    return [*stages, (x, y, axes[:1])]


def _is_first_along(x: Any, axis: int) -> Any:
    """Return where an element is the first maximum of a whole axis."""
    steps = constants_beside(x, np.arange(x.shape[axis]))
    return np.argmax(x, axis=axis, keepdims=True) == steps.reshape(
        (-1,) + (1,) * (x.ndim - 1 - axis)
    )


def max_pool_input(upper: Any, x: Any, best: Any, windows: AllWindows) -> Any:
    """Scatter `upper` to the maxima of the windows of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> x, windows = np.array([[1.0, 3.0, 2.0, 2.0]]), (sliding(4, 2, 2, (0, 0), False),)
    >>> max_pool_input(np.array([[5.0, 7.0]]), x, max_pool(x, windows), windows)
    array([[0., 5., 7., 0.]])
    """
    stages = _stages(x, best, windows)
    while stages:
        values, maxima, stage = stages.pop()
        if len(stage) == 1 and stage[0][1].is_global:
            upper = upper * _is_first_along(values, stage[0][0])
            continue
        disjoint = all(one.disjoint for _, one in stage)
        out: Any = None
        for of, to, hit in _first_maxima(values, maxima, stage):
            out = _accumulate(out, upper[to], hit, of, values.shape, disjoint)
        upper = out
    return upper


def max_pool_gather(upper: Any, x: Any, best: Any, windows: AllWindows) -> Any:
    """Gather `upper` at the maxima of the windows of `x`: the transpose of `max_pool_input`.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> x, windows = np.array([[1.0, 3.0, 2.0, 2.0]]), (sliding(4, 2, 2, (0, 0), False),)
    >>> max_pool_gather(np.array([[5.0, 6.0, 7.0, 8.0]]), x, max_pool(x, windows), windows)
    array([[6., 7.]])
    """
    for values, maxima, stage in _stages(x, best, windows):
        if len(stage) == 1 and stage[0][1].is_global:
            axis = stage[0][0]
            chosen = upper * _is_first_along(values, axis)
            upper = np.add.reduce(chosen, axis=axis, keepdims=True)
            continue
        out: Any = None
        for of, to, hit in _first_maxima(values, maxima, stage):
            out = _accumulate(out, upper[of], hit, to, maxima.shape, False)
        upper = out
    return upper


def _accumulate(out: Any, a: Any, b: Any, at: Part, shape: Any, alone: bool) -> Any:
    """Add a * b to an array that is made at the first call; `alone`: assign, no other term."""
    if out is None:
        part = a * b
        out = np.zeros_like(part, shape=shape)
        out[at] = part
    elif alone:
        np.multiply(a, b, out=out[at])
    else:
        out[at] += a * b
    return out


def max_indices(x: Any, best: Any, windows: AllWindows) -> Any:
    """Return the index of each maximum, counted row by row over the spatial axes.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> x, windows = np.array([[1.0, 3.0, 2.0, 2.0]]), (sliding(4, 2, 2, (0, 0), False),)
    >>> max_indices(x, max_pool(x, windows), windows)
    array([[1, 2]])
    """
    space = x.shape[x.ndim - len(windows) :]
    indices = np.arange(math.prod(space)).reshape((1,) * (x.ndim - len(space)) + space)
    return max_pool_gather(constants_beside(x, indices), x, best, windows)


MAX_POOL = rule(
    max_pool,
    lambda g, x, y, windows: as_single_operation(max_pool_input, g, x, y, windows),
    static="windows",
)
# The indices of the maxima are constant in x, except at ties: there is no gradient of x.
MAX_POOL_INPUT = rule(
    max_pool_input,
    inputs="upper x best",
    static="windows",
    joint=lambda g, x, best, windows: (
        as_single_operation(max_pool_gather, g, x, best, windows),
        None,
        None,
    ),
)
MAX_POOL_GATHER = rule(
    max_pool_gather,
    inputs="upper x best",
    static="windows",
    joint=lambda g, x, best, windows: (
        as_single_operation(max_pool_input, g, x, best, windows),
        None,
        None,
    ),
)

# Averages -----------------------------------------------------------------------------------------


def _divide(x: Any, windows: AllWindows, divisor: Divisor) -> Any:
    """Divide by a number, or by the number of elements of each window ("inside" or "padded")."""
    if not isinstance(divisor, str):
        return x / divisor
    counts: Any = np.ones((), int)
    for one in windows:
        counts = np.multiply.outer(counts, one.inside() if divisor == "inside" else one.padded)
    if counts.min() == counts.max():
        return x / float(counts.flat[0])
    return x / constants_beside(x, counts.astype(x.dtype))


def average_pool(x: Any, windows: AllWindows, divisor: Divisor) -> Any:
    """Return the sum of each window, divided.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> average_pool(np.array([[1.0, 3.0, 2.0]]), (sliding(3, 2, 2, (0, 0), True),), "inside")
    array([[2., 2.]])
    """
    dtype = x.dtype
    (x,) = at_least_float32(x)
    for axis, one in _axes(x, windows):
        if one.is_global:
            x = np.add.reduce(x, axis=axis, keepdims=True)
            continue
        first, rest = _split_first(one)
        if first is not None:
            y = x[_along(axis, first)].copy(order="K")
        else:
            y = np.zeros_like(x, shape=_shape(x, axis, one.count))
        for read, targets in rest:
            y[_along(axis, targets)] += x[_along(axis, read)]
        x = y
    x = _divide(x, windows, divisor)
    return x if x.dtype == dtype else x.astype(dtype)


def average_pool_input(upper: Any, windows: AllWindows, divisor: Divisor) -> Any:
    """Spread `upper` evenly over the elements of its window: the transpose of `average_pool`.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> average_pool_input(np.array([[2.0, 5.0]]), (sliding(3, 2, 2, (0, 0), True),), "inside")
    array([[1., 1., 5.]])
    """
    upper = _divide(upper, windows, divisor)
    for axis, one in _axes(upper, windows):
        if one.is_global:
            upper = np.repeat(upper, one.length, axis)
            continue
        out: Any = None
        for read, targets in one.pieces:
            part = upper[_along(axis, targets)]
            if out is None:
                out = np.zeros_like(part, shape=_shape(part, axis, one.length))
            out[_along(axis, read)] += part
        upper = out
    return upper


AVERAGE_POOL = rule(
    average_pool,
    lambda g, windows, divisor: as_single_operation(average_pool_input, g, windows, divisor),
    static="windows divisor",
)
AVERAGE_POOL_INPUT = rule(
    average_pool_input,
    lambda g, windows, divisor: as_single_operation(average_pool, g, windows, divisor),
    inputs="upper",
    static="windows divisor",
)
