"""Resampling along axes: which elements each output element reads, and its transpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.backend.arrays import constants_beside
from optlab.nn.functional.conv.im2col import at_least_float32


@dataclass(frozen=True, repr=False, eq=False)
class Taps:
    """Taps of a linear filter: the input indices of each output index, and their weights.

    Attributes
    ----------
    length, count : int
        Lengths of the input axis and of the output axis.
    pieces : tuple of (array or slice, array or None, array or slice)
        The n-th taps of the outputs, n rising: input indices, weights (None: all 1) and output
        indices. No piece has an output index twice.
    label : str
        Description of the request, which identifies the taps.
    """

    length: int
    count: int
    pieces: tuple[tuple[Any, Any, Any], ...]
    label: str

    def __hash__(self) -> int:
        return hash((self.length, self.count, self.label))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Taps) and (self.length, self.count, self.label) == (
            other.length,
            other.count,
            other.label,
        )

    def __repr__(self) -> str:
        return self.label

    @cached_property
    def transposed(self) -> Taps:
        """The transpose: input and output indices exchanged."""
        read, weights, to = [], [], []
        for source, factors, target in self.pieces:
            read.append(np.arange(self.length)[source])
            weights.append(np.ones(len(read[-1])) if factors is None else factors)
            to.append(np.arange(self.count)[target])
        transpose = taps(
            self.count, self.length, np.concatenate(to), np.concatenate(weights),
            np.concatenate(read), f"the transpose of: {self.label}",
        )  # fmt: skip
        transpose.__dict__["transposed"] = self
        return transpose


def taps(length: int, count: int, read: Any, weights: Any, to: Any, label: str) -> Taps:
    """Return the taps of input indices `read`, their weights and output indices `to`.

    Examples
    --------
    >>> import numpy as np
    >>> one = taps(2, 3, np.array([0, 0, 1, 1]), np.array([1, 0.5, 0.5, 1]), [0, 1, 1, 2], "double")
    >>> [(source.tolist(), target.tolist()) for source, _, target in one.pieces[1:]]
    [([1], [1])]
    """
    order = np.lexsort((read, to))
    read, weights, to = np.asarray(read)[order], weights[order], np.asarray(to)[order]
    # The ordinal number of each tap among those of its output.
    first = np.searchsorted(to, to)
    nth = np.arange(len(to)) - first
    pieces = []
    for n in range(int(nth.max()) + 1 if len(nth) else 0):
        chosen = nth == n
        target, factors = to[chosen], weights[chosen]
        pieces.append(
            (
                _as_slice(read[chosen]),
                None if (factors == 1).all() else factors,
                slice(None) if len(target) == count else _as_slice(target),
            )
        )
    return Taps(length, count, tuple(pieces), label)


def _as_slice(indices: Any) -> Any:
    """Return equally spaced indices as a slice, which reads many times faster."""
    steps = np.diff(indices)
    if not steps.size or steps[0] < 1 or (steps != steps[0]).any():
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1, int(steps[0]))


def _cubic(t: Any) -> tuple[Any, ...]:
    """Return the cubic convolution weights of four neighbors, at fraction t of the middle two.

    Source: Keys 1981, with a = -3/4 as in OpenCV, Paddle and PyTorch.
    """
    a = -0.75

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


@lru_cache(maxsize=512)
def sampling_taps(
    length: int, count: int, kind: str, scale: float | None, corners: bool, centers: bool
) -> Taps:
    """Return the taps that resample an axis of `length` to `count`.

    Parameters
    ----------
    length, count : int
    kind : {'nearest', 'linear', 'cubic'}
    scale : float or None
        Scale factor; None: count / length.
    corners : bool
        Whether the first and the last elements of both axes are aligned.
    centers : bool
        Whether elements are the centers of cells (only without `corners`) rather than their starts.

    Examples
    --------
    >>> pieces = sampling_taps(2, 3, "linear", None, True, False).pieces
    >>> [(source.tolist(), weights.tolist()) for source, weights, _ in pieces]
    [([0, 0, 1], [1.0, 0.5, 1.0]), ([1], [0.5])]
    """
    label = f"{kind} {length} to {count}" + (f", scale {scale}" if scale else "")
    label += ", align_corners" if corners else ", centers" if centers else ""
    steps = np.arange(count)
    if kind == "nearest":
        at = steps * length // count if scale is None else (steps / scale).astype(int)
        return taps(length, count, np.minimum(at, length - 1), np.ones(count), steps, label)
    if corners:
        where = steps * ((length - 1) / max(count - 1, 1))
    else:
        step = length / count if scale is None else 1 / scale
        where = (steps + 0.5) * step - 0.5 if centers else steps * step
    if kind == "linear":
        where = np.clip(where, 0, length - 1)
    start = np.floor(where).astype(int)
    part = where - start
    offsets, weights = ((0, 1), (1 - part, part)) if kind == "linear" else ((-1, 0, 1, 2), ())
    weights = weights or _cubic(part)
    read, factors, to = [], [], []
    for offset, weight in zip(offsets, weights, strict=True):
        needed = weight != 0
        read.append(np.clip(start + offset, 0, length - 1)[needed])
        factors.append(weight[needed])
        to.append(steps[needed])
    return taps(
        length, count, np.concatenate(read), np.concatenate(factors), np.concatenate(to), label
    )


def resample(x: Any, readings: Sequence[Taps]) -> Any:
    """Resample the last axes of `x`, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> resample(np.array([[0.0, 4.0]]), (sampling_taps(2, 3, "linear", None, True, False),))
    array([[0., 2., 4.]])
    """
    dtype = x.dtype
    if any(weights is not None for one in readings for _, weights, _ in one.pieces):
        (x,) = at_least_float32(x)
    # Axes that become shorter go first.
    axes = sorted(
        enumerate(readings, x.ndim - len(readings)), key=lambda at: at[1].count / at[1].length
    )
    for axis, one in axes:
        x = _along(x, axis, one)
    return x if x.dtype == dtype else x.astype(dtype)


def _along(x: Any, axis: int, one: Taps) -> Any:
    before = (slice(None),) * axis
    out: Any = None
    for read, weights, to in one.pieces:
        sliced = isinstance(read, slice)
        part = x[(*before, read)] if sliced else np.take(x, constants_beside(x, read), axis)
        if weights is not None:
            factors = weights.astype(x.dtype).reshape(-1, *[1] * (x.ndim - axis - 1))
            part = part * constants_beside(x, factors)
        if out is None and isinstance(to, slice) and to == slice(None):
            out = part.copy() if sliced and weights is None else part  # a slice shares its memory
            continue
        if out is None:
            out = np.zeros_like(part, shape=(*x.shape[:axis], one.count, *x.shape[axis + 1 :]))
        out[(*before, to)] += part
    if out is None:
        return np.zeros_like(x, shape=(*x.shape[:axis], one.count, *x.shape[axis + 1 :]))
    return out


RESAMPLE = rule(
    resample,
    lambda g, readings: as_single_operation(resample, g, tuple(one.transposed for one in readings)),
    static="readings",
)
