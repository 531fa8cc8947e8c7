"""im2col and col2im: convolution as one matrix product over the patches that a kernel reads.

Arrays are laid out channels first, (C, N, ...space): the images of a batch are adjacent in every
row, and a convolution is one product, of weight (O, C * kernel) and columns (C * kernel,
N * positions). Results are returned as (N, C, ...space) with those strides, so that the next layer
reads them without a copy.

All columns of NumPy arrays are one strided copy, and a dense plan adds columns up by one strided
reduction: a call for each element of the kernel takes two to four times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from optlab.backend.arrays import Shape
from optlab.nn.functional.blocks import SHARED, cut
from optlab.nn.functional.conv.plan import Overrun, Plan
from optlab.nn.functional.conv.scratch import SCRATCH

#: Columns are made for as many images at a time as fit in this many bytes: more is no faster, and
#: would set the memory peak of a step.
BLOCK_BYTES = 2_000_000

#: Makes an array from one of the same dtype, a shape, and what it is for.
Into = Callable[[Any, Shape, str], Any] | None

#: From this many bytes of columns on, half of the images for each of two cores is faster than one
#: block (on one core it takes as long).
SHARED_BYTES = 500_000


def channels_first(x: Any) -> Any:
    """Swap the axes of batch and channels: (N, C, ...) and (C, N, ...)."""
    return x.swapaxes(0, 1)


def im2col(x: Any, plan: Plan, into: Into = None, ones: bool = False) -> Any:
    """Return the columns (C * kernel, N, positions) of `x` (C, N, ...size).

    `into` makes the arrays that are needed, by default new ones. With `ones`, a row of ones comes
    last (if the columns are not the images themselves).
    """
    channels, count = x.shape[:2]
    if plan.is_identity:
        return x.reshape((channels, count, plan.length))
    into = into or _empty
    rows = channels * plan.elements
    whole = into(x, (rows + ones, count, plan.length), "columns")
    whole[rows:] = 1
    seen = whole[:rows].reshape((channels, plan.elements, count, plan.length))
    if not plan.unpadded:
        buffer = into(x, (channels, count, plan.room), "padded")
        buffer[...] = 0
        inside(buffer, plan)[...] = x
        x = buffer.reshape((channels, count, *plan.pitch))
    if plan.dense:
        x = x.reshape((channels, count, plan.room))
        for i, start in enumerate(plan.starts):
            seen[:, i] = x[:, :, start : start + plan.length]
        _zero(_by_grid(seen, plan), plan.overruns)
    else:
        spread = seen.reshape((channels, plan.elements, count, *plan.grid))
        for i, read in enumerate(plan.reads):
            spread[:, i] = x[_at(read)]
    return whole


def takes_ones(plan: Plan, groups: int) -> bool:
    """Return whether `columns_of` adds a row of ones."""
    return groups == 1 and not plan.is_identity


def columns_of(x: Any, plan: Plan, groups: int) -> Any:
    """Return the columns of a NumPy array (C, N, ...size), in memory of this thread.

    Where `takes_ones` says so, a row of ones comes last, which multiplies a bias.
    """
    if plan.is_identity or not plan.dense:
        return im2col(x, plan, SCRATCH, groups == 1)
    channels, count = x.shape[:2]
    key = "columns", plan, channels, count, x.dtype
    columns = SCRATCH.views(key, lambda: _Columns(x, plan, channels, count)).fill(x)
    return columns if groups == 1 else columns[:-1]


def column_sums(beside: Any, plan: Plan, channels: int, count: int) -> ColumnSums:
    """Return `ColumnSums` in memory of this thread, with the dtype of another array."""
    key = "sums", plan, channels, count, beside.dtype
    found: ColumnSums = SCRATCH.views(key, lambda: ColumnSums(beside, plan, channels, count))
    return found


class _Columns:
    """Views for `im2col` by a dense plan.

    Attributes
    ----------
    whole : NumPy array (C * kernel + 1, N, positions)
        The columns, and a row of ones.
    """

    def __init__(self, beside: Any, plan: Plan, channels: int, count: int) -> None:
        rows = channels * plan.elements
        self.whole = SCRATCH(beside, (rows + 1, count, plan.length), "columns")
        seen = self.whole[:rows].reshape((channels, plan.elements, count, plan.length))
        self.by_grid = _by_grid(seen, plan)
        self.padded = SCRATCH(beside, (channels, count, plan.room), "padded")
        self.inside = inside(self.padded, plan)
        self.windows = _windows(self.padded.reshape((channels, count, *plan.pitch)), plan)
        self.zeros = [self.by_grid[overrun] for overrun in plan.overruns]

    def fill(self, x: Any) -> Any:
        """Return the columns of `x` (C, N, ...size), and a row of ones."""
        self.padded.fill(0)
        self.inside[...] = x
        self.by_grid[...] = self.windows
        for zeros in self.zeros:
            zeros[...] = 0
        self.whole[-1:].fill(1)
        return self.whole


def _empty(beside: Any, shape: Shape, role: str) -> Any:
    return np.empty_like(beside, shape=shape, order="C")


def inside(buffer: Any, plan: Plan) -> Any:
    """Return the images within a buffer (C, N, room), as (C, N, ...size)."""
    rows = buffer[:, :, plan.lead : plan.lead + plan.places]
    return _without_padding(rows, plan)


def _without_padding(rows: Any, plan: Plan) -> Any:
    """Return rows as far apart as those of the buffer, (C, N, places), as (C, N, ...size)."""
    rows = rows.reshape((*rows.shape[:2], plan.size[0], *plan.pitch[1:]))
    return rows[(..., *[slice(n) for n in plan.size[1:]])]


def _at(read: tuple[slice, ...]) -> tuple[slice, ...]:
    return (slice(None), slice(None), *read)


def _by_grid(seen: Any, plan: Plan) -> Any:
    """Return columns (C, kernel, N, positions) as (C, ...kernel, N, ...grid)."""
    return seen.reshape((seen.shape[0], *plan.kernel, seen.shape[2], *plan.grid))


def _zero(by_grid: Any, overruns: Iterable[Overrun]) -> None:
    for overrun in overruns:
        by_grid[overrun] = 0


def _windows(x: Any, plan: Plan) -> Any:
    """Return what the kernel reads of a buffer (C, N, ...pitch), a view (C, ...kernel, N, ...grid).

    The plan is dense: a row of the grid goes on in the next row of the buffer.
    """
    per_channel, per_image, *steps = x.strides
    reach = [d * step for d, step in zip(plan.dilation, steps, strict=True)]
    shape = (x.shape[0], *plan.kernel, x.shape[1], *plan.grid)
    return as_strided(x, shape, (per_channel, *reach, per_image, *steps))


def col2im(seen: Any, plan: Plan, into: Into = None) -> Any:
    """Add columns (C * kernel, N, positions) to where they were read, in (C, N, ...size).

    The columns of a dense plan are overwritten.
    """
    channels, count = seen.shape[0] // plan.elements, seen.shape[1]
    if plan.is_identity:
        return seen.reshape((channels, count, *plan.size))
    seen = seen.reshape((channels, plan.elements, count, plan.length))
    _zero(_by_grid(seen, plan), plan.overruns)
    buffer = (into or _empty)(seen, (channels, count, plan.room), "padded")
    buffer[...] = 0
    if plan.dense:
        for i, start in enumerate(plan.starts):
            buffer[:, :, start : start + plan.length] += seen[:, i]
    else:
        target = buffer.reshape((channels, count, *plan.pitch))
        spread = seen.reshape((channels, plan.elements, count, *plan.grid))
        for i, read in enumerate(plan.reads):
            target[_at(read)] += spread[:, i]
    return inside(buffer, plan)


class ColumnSums:
    """Columns of a dense plan, in memory where one strided reduction adds them up.

    Element k of the kernel adds its columns, from place start(k) of the buffer on: place q is the
    sum over k of the positions q - start(k). Before and after the positions of an image lie gaps of
    zeros, which the reduction reads where an element of the kernel does not reach q. Where there
    are as many positions as elements of an image, it reads those of the next image instead, which
    are zeroed, and there is one gap for all images: their products may then be one.

    Attributes
    ----------
    columns : NumPy array (C * kernel, N, positions)
        To be filled before `add_up`, which overwrites some of it.
    """

    def __init__(self, beside: Any, plan: Plan, channels: int, count: int) -> None:
        self.plan, gap = plan, plan.gap
        parts, length = (1, count * plan.length) if plan.keeps_size else (count, plan.length)
        rows = channels * plan.elements
        self.memory = SCRATCH(beside, (gap + rows * parts * (length + gap),), "columns")
        spread = self.memory[gap:].reshape((rows, parts, length + gap))
        self.columns = spread[:, :, :length].reshape((rows, count, plan.length))
        by_grid = self.columns.reshape((channels, *plan.kernel, count, *plan.grid))
        overruns = plan.overruns_of_images if plan.keeps_size else plan.overruns
        self.gaps = [self.memory[:gap], spread[:, :, length:]]
        self.zeros = [by_grid[overrun] for overrun in overruns]
        row, image, step = self.columns.strides
        along = [
            math.prod(plan.kernel[i + 1 :]) * row - reach * step
            for i, reach in enumerate(plan.reach)
        ]
        self.terms = as_strided(
            self.memory[gap + plan.lead :],
            (channels, *plan.kernel, count, plan.places),
            (plan.elements * row, *along, image, step),
        )
        self.axes = tuple(range(1, 1 + len(along)))
        self.sums = None
        if plan.pitch[1:] != plan.size[1:]:
            self.sums = SCRATCH(beside, (channels, count, plan.places), "padded")

    def add_up(self, out: Any) -> None:
        """Write the sums to `out` (C, N, ...size)."""
        for zeros in (*self.gaps, *self.zeros):
            zeros[...] = 0
        if self.sums is None and out.dtype == self.terms.dtype:
            out = out.reshape((*out.shape[:2], self.plan.places))
            np.add.reduce(self.terms, axis=self.axes, out=out)
        else:
            sums = np.add.reduce(self.terms, axis=self.axes, out=self.sums)
            out[...] = _without_padding(sums, self.plan)


def on_grid(g: Any, plan: Plan) -> Any:
    """Spread (O, N, ...out) over the positions of the columns, with zeros where no output is.

    Returns (O, N, positions).
    """
    filters, count = g.shape[:2]
    if plan.grid != plan.out:
        spread = _empty(g, (filters, count, *plan.grid), "spread")
        spread[...] = 0
        spread[plan.valid] = g
        g = spread
    return g.reshape((filters, count, plan.length))


def in_rows(g: Any, plan: Plan, each: bool) -> Any:
    """Return `on_grid` of a NumPy array, in memory of this thread if it must be copied.

    All images of a row lie one behind the other, but with `each`.
    """
    filters, count = g.shape[:2]
    shape = (filters, count, plan.length)
    fits = plan.grid == plan.out
    if fits and (each or g[0].flags.c_contiguous):
        return g.reshape(shape)
    spread, valid = grid_in_scratch(g, plan, filters, count)
    if not fits:
        spread.fill(0)
    valid[...] = g
    return spread


def grid_in_scratch(beside: Any, plan: Plan, filters: int, count: int) -> tuple[Any, Any]:
    """Return memory of this thread (O, N, positions), and its outputs, a view (O, N, ...out)."""

    def make() -> tuple[Any, Any]:
        whole = SCRATCH(beside, (filters, count, plan.length), "grid")
        return whole, whole.reshape((filters, count, *plan.grid))[plan.valid]

    found: tuple[Any, Any] = SCRATCH.views(("grid", plan, filters, count, beside.dtype), make)
    return found


def blocks(
    count: int, channels: int, plan: Plan, itemsize: int, filters: int, sums: bool = False
) -> list[slice]:
    """Return blocks of images, about equal in size, whose columns fit into `BLOCK_BYTES`.

    `filters` is their number in a group. With `sums`, there are gaps between the images, as in
    `ColumnSums`. There is one block, or an even number, as far as there are images. It does not
    depend on the machine, and neither do sums over the blocks.
    """
    rows = count * channels * plan.elements
    gap = plan.gap if sums and not plan.keeps_size else 0
    total = rows * (plan.length + gap) * itemsize
    rounds = -(-total // BLOCK_BYTES)
    if total > SHARED_BYTES or 2 * rows * plan.length * filters >= SHARED:
        rounds += rounds % 2
    return cut(count, rounds)


def all_numpy(*arrays: Any) -> bool:
    """Return whether all are NumPy arrays, for which blocks pay off."""
    return all(type(x) is np.ndarray for x in arrays)


def at_least_float32(*arrays: Any) -> Sequence[Any]:
    """Return arrays in at least float32: sums of float16 are rounded once, at the end."""
    dtype = np.result_type(np.float32, *[x.dtype for x in arrays])
    return [x if x.dtype == dtype else x.astype(dtype) for x in arrays]
