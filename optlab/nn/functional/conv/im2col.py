"""im2col and col2im: convolution as one matrix product over the patches that a kernel reads.

Arrays are laid out channels first, (C, N, ...space): the images of a batch are adjacent in every
row, and a convolution is one product, of weight (O, C * kernel) and columns (C * kernel,
N * positions). Results are returned as (N, C, ...space) with those strides, so that the next layer
reads them without a copy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from optlab.backend.arrays import Shape, zeros_beside
from optlab.nn.functional.windows import Pairs

#: Columns are made for as many images at a time as fit in this many bytes: more is no faster, and
#: would set the memory peak of a step.
BLOCK_BYTES = 2_200_000

#: A dense plan computes positions that it discards; with this many filters for each extra position
#: that takes as long as the copies that it saves (measured).
FILTERS_PER_EXTRA_POSITION = 15


@dataclass(frozen=True)
class Plan:
    """Where a kernel reads in a padded buffer (C, N, ...space).

    A dense plan, for stride 1, stores the rows of an image so close that the padding after one is
    the padding before the next, and slides the kernel over them as over one long row: an element of
    the kernel reads one slice of an image. Results that straddle the ends of rows are discarded.

    Attributes
    ----------
    size, out : tuple of int
        Spatial size of the input and of the output.
    pitch : tuple of int
        Spatial size of the buffer.
    grid : tuple of int
        Positions of the columns: `out`, and in a dense plan the pitch for all axes but the first.
    inside : tuple of slice
        The image within the buffer.
    reads : tuple
        What each element of the kernel reads: a slice of the flattened image in a dense plan, else
        slices of the spatial axes.
    """

    size: Shape
    out: Shape
    pitch: Shape
    grid: Shape
    inside: tuple[slice, ...]
    reads: tuple[Any, ...]

    @cached_property
    def dense(self) -> bool:
        """Whether the kernel slides over the ends of rows."""
        return isinstance(self.reads[0], slice)

    @cached_property
    def unpadded(self) -> bool:
        """Whether the buffer is the images themselves, without padding."""
        return self.pitch == self.size

    @cached_property
    def is_identity(self) -> bool:
        """Whether the columns are the images themselves: a kernel of 1 at every position."""
        return self.unpadded and self.grid == self.size and len(self.reads) == 1

    @cached_property
    def valid(self) -> tuple[slice, ...]:
        """The positions of the grid that are outputs."""
        return (slice(None), slice(None), *[slice(0, n) for n in self.out])


@lru_cache(maxsize=512)
def plan_of(
    size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, filters: int | None
) -> Plan:
    """Return where a kernel reads; `filters` is their number in a group, or None (no product).

    Examples
    --------
    >>> plan = plan_of((5, 5), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 4)
    >>> plan.dense, plan.pitch, plan.grid, plan.reads[3]
    (True, (8, 6), (5, 6), slice(6, 36, None))
    """
    before = tuple(b for b, _ in padding)
    out = tuple(
        (n + b + a - (k - 1) * d - 1) // s + 1
        for n, k, s, d, (b, a) in zip(size, kernel, stride, dilation, padding, strict=True)
    )
    positions = list(itertools.product(*map(range, kernel)))
    inside = tuple(slice(b, b + n) for b, n in zip(before, size, strict=True))
    pitch = tuple(n + b + a for n, (b, a) in zip(size, padding, strict=True))
    if max(stride) == 1 and filters is not None and len(size) > 1 and len(positions) > 1:
        close = tuple(
            max(n + max(b, a), m)
            for n, m, (b, a) in zip(size[1:], out[1:], padding[1:], strict=True)
        )
        if (math.prod(close) / math.prod(out[1:]) - 1) * filters <= FILTERS_PER_EXTRA_POSITION:
            grid = (out[0], *close)
            steps = [math.prod(grid[i + 1 :]) for i in range(len(grid))]
            starts = [
                sum(i * d * step for i, d, step in zip(position, dilation, steps, strict=True))
                for position in positions
            ]
            length = math.prod(grid)
            rows = max(-(-(starts[-1] + length) // steps[0]), pitch[0])
            reads: Any = tuple(slice(start, start + length) for start in starts)
            return Plan(size, out, (rows, *close), grid, inside, reads)
    reads = tuple(
        tuple(
            slice(i * d, i * d + (m - 1) * s + 1, s)
            for i, d, m, s in zip(position, dilation, out, stride, strict=True)
        )
        for position in positions
    )
    return Plan(size, out, pitch, out, inside, reads)


def channels_first(x: Any) -> Any:
    """Swap the axes of batch and channels: (N, C, ...) and (C, N, ...)."""
    return x.swapaxes(0, 1)


def im2col(x: Any, plan: Plan) -> Any:
    """Return the columns (C * kernel, N * grid) of `x` (C, N, ...size)."""
    channels, count = x.shape[:2]
    if plan.is_identity:
        return x.reshape((channels, -1))
    seen = np.empty_like(x, shape=(channels, len(plan.reads), count, *_flat(plan)), order="C")
    if not plan.unpadded:
        buffer = zeros_beside(x, (channels, count, *plan.pitch))
        buffer[(slice(None), slice(None), *plan.inside)] = x
        x = buffer
    if plan.dense:
        x = x.reshape((channels, count, -1))
    for i, read in enumerate(plan.reads):
        seen[:, i] = x[_at(read)]
    return seen.reshape((channels * len(plan.reads), -1))


def _flat(plan: Plan) -> Shape:
    """Return the shape of what one element of the kernel reads of an image."""
    return (math.prod(plan.grid),) if plan.dense else plan.grid


def _at(read: Any) -> tuple[slice, ...]:
    return (slice(None), slice(None), *(read if isinstance(read, tuple) else (read,)))


def col2im(seen: Any, plan: Plan, channels: int, count: int) -> Any:
    """Add columns (C * kernel, N * grid) to where they were read, in (C, N, ...size)."""
    if plan.is_identity:
        return seen.reshape((channels, count, *plan.size))
    seen = seen.reshape((channels, len(plan.reads), count, *_flat(plan)))
    buffer = zeros_beside(seen, (channels, count, *plan.pitch))
    target = buffer.reshape((channels, count, -1)) if plan.dense else buffer
    for i, read in enumerate(plan.reads):
        target[_at(read)] += seen[:, i]
    return buffer if plan.unpadded else buffer[(slice(None), slice(None), *plan.inside)]


def on_grid(g: Any, plan: Plan) -> Any:
    """Spread (O, N, ...out) over the positions of the columns, with zeros where no output is."""
    filters, count = g.shape[:2]
    if plan.grid != plan.out:
        spread = zeros_beside(g, (filters, count, *plan.grid))
        spread[plan.valid] = g
        g = spread
    return g.reshape((filters, -1))


def blocks(count: int, channels: int, plan: Plan, itemsize: int) -> Iterator[slice]:
    """Yield blocks of images, about equal in size, whose columns fit into `BLOCK_BYTES`."""
    bytes_each = channels * len(plan.reads) * math.prod(plan.grid) * itemsize
    most = max(BLOCK_BYTES // max(bytes_each, 1), 1)
    rounds = max(-(-count // most), 1)
    most = -(-count // rounds)
    for start in range(0, count, max(most, 1)):
        yield slice(start, min(start + most, count))


def in_groups(matrix: Any, groups: int) -> Any:
    """Split the rows of a matrix into groups, on a new first axis; one group stays a matrix."""
    rows, width = matrix.shape
    return matrix if groups == 1 else matrix.reshape((groups, rows // groups, width))


def all_numpy(*arrays: Any) -> bool:
    """Return whether all are NumPy arrays, for which blocks pay off."""
    return all(type(x) is np.ndarray for x in arrays)


def at_least_float32(*arrays: Any) -> Sequence[Any]:
    """Return arrays in at least float32: sums of float16 are rounded once, at the end."""
    dtype = np.result_type(np.float32, *[x.dtype for x in arrays])
    return [x if x.dtype == dtype else x.astype(dtype) for x in arrays]
