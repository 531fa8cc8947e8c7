"""Sliding windows: validation of kernel, stride and padding, and the slices that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import raw
from optlab.backend.arrays import Shape

Pair = tuple[int, int]
Pairs = tuple[Pair, ...]

_numpy: Any = np  # NumPy's annotations know nothing of __array_function__

FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def is_channels_last(data_format: Any, dims: int, call: str) -> bool:
    """Return whether a data format of `dims` spatial axes has its channels last."""
    first, last = FORMATS[dims]
    if data_format not in (first, last):
        raise ValueError(f"{call} takes data_format={first!r} or {last!r}; got {data_format!r}.")
    return bool(data_format == last)


def channels_second(x: Any, last: bool) -> Any:
    """Move the channels of `x` to axis 1, if they are last."""
    return _numpy.moveaxis(x, -1, 1) if last else x


def channels_back(y: Any, last: bool) -> Any:
    """Move the channels of a result from axis 1 to the end, if those of the input were last."""
    return _numpy.moveaxis(y, 1, -1) if last else y


def check_axes(x: Any, dims: int, data_format: str, call: str) -> None:
    """Check that `x` has an axis for each letter of the format."""
    if x.ndim != dims + 2:
        raise ValueError(
            f"{call} takes x of {dims + 2} axes, {' '.join(data_format)}; got shape {x.shape}. "
            "A single example gets its batch axis with x[None]."
        )


def per_axis(value: Any, dims: int, what: str, call: str, least: int = 1) -> Shape:
    """Return an integer for each axis, of one integer or one per axis.

    Examples
    --------
    >>> per_axis(3, 2, "stride", "conv2d"), per_axis([1, 2], 2, "stride", "conv2d")
    ((3, 3), (1, 2))
    """
    numbers = as_integers(value)
    if numbers is not None and len(numbers) == 1:
        numbers = numbers * dims
    if numbers is None or len(numbers) != dims or min(numbers) < least:
        each = "" if dims == 1 else f", or {dims} of them"
        raise ValueError(
            f"{call}: {what} is a whole number of at least {least}{each}; got {value!r}."
        )
    return tuple(numbers)


def as_integers(value: Any) -> list[int] | None:
    """Return an integer or a sequence of integers as a list; None for anything else."""
    value = raw(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    values = [raw(v).item() if hasattr(raw(v), "item") else v for v in values]
    if not values or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return None
    return values


def paddings(value: Any, dims: int, channels_last: bool, call: str) -> Pairs | str:
    """Return a padding as a pair (before, after) for each spatial axis, or as ``'SAME'``.

    Examples
    --------
    >>> paddings(1, 2, False, "conv2d"), paddings([1, 2], 1, False, "conv1d")
    (((1, 1), (1, 1)), ((1, 2),))
    >>> paddings("VALID", 1, False, "conv1d"), paddings("same", 1, False, "conv1d")
    (((0, 0),), 'SAME')
    """
    if isinstance(value, str):
        word = value.upper()
        if word == "SAME":
            return word
        if word == "VALID":
            return ((0, 0),) * dims
        raise ValueError(f"{call}: padding as text is 'SAME' or 'VALID'; got {value!r}.")
    pairs = _pairs(value, dims, channels_last)
    if pairs is None or min(min(pair) for pair in pairs) < 0:
        raise ValueError(
            f"{call}: padding is a whole number, {dims} of them, {2 * dims} of them (before and "
            f"after each axis), {dims + 2} pairs with [0, 0] for batch and channels, 'SAME' or "
            f"'VALID', and never negative; got {value!r}."
        )
    return pairs


def _pairs(value: Any, dims: int, channels_last: bool) -> Pairs | None:
    """Return a padding as pairs; None if it has no known form."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in value):
        rows = [as_integers(v) for v in value]
        if any(row is None or len(row) != 2 for row in rows):
            return None
        pairs = [(row[0], row[1]) for row in rows if row is not None]
        if len(pairs) == dims + 2:
            outside = [pairs[0], pairs[-1] if channels_last else pairs[1]]
            if outside != [(0, 0), (0, 0)]:
                return None
            pairs = pairs[1:-1] if channels_last else pairs[2:]
        return tuple(pairs) if len(pairs) == dims else None
    numbers = as_integers(value)
    if numbers is None:
        return None
    if len(numbers) == 1:
        numbers = numbers * dims
    if len(numbers) == dims:
        return tuple((n, n) for n in numbers)
    if len(numbers) == 2 * dims:
        return tuple((numbers[2 * i], numbers[2 * i + 1]) for i in range(dims))
    return None


def same_padding(size: Sequence[int], extent: Sequence[int], stride: Sequence[int]) -> Pairs:
    """Return the padding with which ceil(size / stride) windows fit, the odd element at the end.

    Examples
    --------
    >>> same_padding((7, 8), (3, 3), (2, 2))
    ((1, 1), (0, 1))
    """
    pairs = []
    for n, e, s in zip(size, extent, stride, strict=True):
        total = max((-(-n // s) - 1) * s + e - n, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def extents(kernel: Sequence[int], dilation: Sequence[int]) -> Shape:
    """Return the extent of a dilated kernel along each axis."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def outputs(
    size: Sequence[int], extent: Sequence[int], stride: Sequence[int], padding: Pairs, call: str
) -> Shape:
    """Return the number of windows along each axis, at least 1.

    Examples
    --------
    >>> outputs((7,), (3,), (2,), ((1, 0),), "conv1d")
    (3,)
    """
    counts = tuple(
        (n + before + after - e) // s + 1
        for n, e, s, (before, after) in zip(size, extent, stride, padding, strict=True)
    )
    if min(counts) < 1:
        raise ValueError(
            f"{call}: a window of {tuple(extent)} (its gaps included) does not fit into "
            f"{tuple(size)} with padding {padding}. Take a smaller kernel or more padding."
        )
    return counts


# Windows of pooling -----------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Windows:
    """The windows along one axis, as slices.

    Attributes
    ----------
    length : int
        Length of the axis.
    count : int
        Number of windows.
    pieces : tuple of (slice, slice)
        The n-th elements of the windows, n rising: their indices on the axis, and the windows that
        have them. No piece has an element twice.
    padded : tuple of int
        Width of each window, with the padding that it covers.
    label : str
        Description of the request, which identifies the windows.
    """

    length: int
    count: int
    pieces: tuple[tuple[slice, slice], ...]
    padded: tuple[int, ...]
    label: str

    def __hash__(self) -> int:
        return hash((self.length, self.count, self.label))

    def __repr__(self) -> str:
        return self.label

    @cached_property
    def is_global(self) -> bool:
        """Whether one window covers the whole axis."""
        return self.count == 1 and len(self.pieces) == self.length

    @cached_property
    def full(self) -> bool:
        """Whether all windows have equally many elements, none in padding."""
        return all(members == slice(0, self.count) for _, members in self.pieces)

    @cached_property
    def disjoint(self) -> bool:
        """Whether no element is in two windows."""
        read = [i for elements, _ in self.pieces for i in range(*elements.indices(self.length))]
        return len(read) == len(set(read))

    def inside(self) -> Any:
        """Return the number of elements of each window."""
        counts = np.zeros(self.count, int)
        for _, members in self.pieces:
            counts[members] += 1
        return counts


@lru_cache(maxsize=512)
def sliding(length: int, kernel: int, stride: int, padding: Pair, ceil_mode: bool) -> Windows:
    """Return the windows of `kernel` elements, one every `stride`.

    With `ceil_mode` a last window that starts before the end may extend past it.

    Examples
    --------
    >>> sliding(5, 2, 2, (0, 0), False).count, sliding(5, 2, 2, (0, 0), True).count
    (2, 3)
    """
    before, after = padding
    room = length + before + after - kernel
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= length + before:
        count -= 1
    pieces = []
    for k in range(kernel):
        first = max(-(-(before - k) // stride), 0)
        last = min((length - 1 + before - k) // stride, count - 1)
        if first <= last:
            start = first * stride - before + k
            stop = last * stride - before + k + 1
            pieces.append((slice(start, stop, stride), slice(first, last + 1)))
    padded = tuple(min(kernel, length + before + after - i * stride) for i in range(count))
    label = f"{kernel} every {stride}, padding {padding}" + (", ceil_mode" if ceil_mode else "")
    return Windows(length, count, tuple(pieces), padded, label)


def _every(period: int, first: int, count: int) -> slice:
    return slice(0, count) if period == 1 else slice(first, count, period)


@lru_cache(maxsize=512)
def adaptive(length: int, count: int) -> Windows:
    """Return `count` windows of nearly equal width that cover an axis.

    The i-th spans floor(i length / count) to ceil((i + 1) length / count): neighbors may share an
    element. The pattern repeats, so that slices read them all.

    Examples
    --------
    >>> adaptive(6, 3).pieces
    ((slice(0, 5, 2), slice(0, 3, None)), (slice(1, 6, 2), slice(0, 3, None)))
    """
    common = int(np.gcd(length, count))
    period, step = count // common, length // common
    pieces, widths = [], []
    for r in range(period):
        start, stop = r * length // count, -(-(r + 1) * length // count)
        widths.append(stop - start)
        pieces += [
            (slice(i, i + (common - 1) * step + 1, step), _every(period, r, count))
            for i in range(start, stop)
        ]
    return Windows(length, count, tuple(pieces), tuple(widths * common), f"{count} adaptive")
