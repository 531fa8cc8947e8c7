"""Where a kernel reads: the geometry of a convolution, worked out once for each shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from optlab.backend.arrays import Shape
from optlab.nn.functional.windows import Pairs

#: A dense plan computes positions that it discards; with this many filters for each extra position
#: that takes as long as the copies that it saves (measured).
FILTERS_PER_EXTRA_POSITION = 15


#: An index into columns (C, ...kernel, N, ...grid): positions along an axis at which one element of
#: the kernel reads beyond the ends of the axis.
Overrun = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """Where a kernel reads in a buffer (C, N, ...pitch) of zeros that holds the images.

    A dense plan, for stride 1, slides the kernel over an image as over one long row: an element of
    the kernel reads one slice of the flattened image. Results that straddle the ends of rows are
    discarded. Rows follow each other without padding, so what an element of the kernel reads
    beyond the end of a row are numbers of the next row (`overruns`), which are zeroed in the
    columns; or, with one filter, the padding after a row is the padding before the next.

    Attributes
    ----------
    size, out, kernel : tuple of int
        Spatial size of the input, of the output, and of the kernel.
    stride, dilation, before : tuple of int
        Of the convolution; `before` is the padding before each axis.
    pitch : tuple of int
        Spatial size of the buffer.
    grid : tuple of int
        Positions of the columns: `out`, and in a dense plan the pitch for all axes but the first.
    dense : bool
        Whether the kernel slides over the ends of rows.
    overruns : tuple of indices
        What to zero in the columns.
    """

    size: Shape
    out: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    pitch: Shape
    grid: Shape
    dense: bool
    overruns: tuple[Overrun, ...] = ()

    @cached_property
    def elements(self) -> int:
        """Elements of the kernel."""
        return math.prod(self.kernel)

    @cached_property
    def length(self) -> int:
        """Positions of an image in the columns."""
        return math.prod(self.grid)

    @cached_property
    def room(self) -> int:
        """Elements of the buffer of an image."""
        return math.prod(self.pitch)

    @cached_property
    def lead(self) -> int:
        """Place of the first element of an image in the flattened buffer."""
        return sum(b * step for b, step in zip(self.before, self.steps, strict=True))

    @cached_property
    def places(self) -> int:
        """Elements of the buffer from the first element of an image to the end of its last row."""
        return self.size[0] * self.steps[0]

    @cached_property
    def steps(self) -> Shape:
        """Elements of the buffer from one index to the next, along each axis."""
        return tuple(math.prod(self.pitch[i + 1 :]) for i in range(len(self.pitch)))

    @cached_property
    def reach(self) -> Shape:
        """Elements of the buffer from one element of the kernel to the next, along each axis."""
        return tuple(d * step for d, step in zip(self.dilation, self.steps, strict=True))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first place in the flattened buffer that each element of the kernel reads."""
        return tuple(
            sum(i * reach for i, reach in zip(position, self.reach, strict=True))
            for position in itertools.product(*map(range, self.kernel))
        )

    @cached_property
    def reads(self) -> tuple[tuple[slice, ...], ...]:
        """What each element of the kernel reads of the buffer, for a plan that is not dense."""
        return tuple(
            tuple(
                slice(i * d, i * d + (m - 1) * s + 1, s)
                for i, d, m, s in zip(position, self.dilation, self.out, self.stride, strict=True)
            )
            for position in itertools.product(*map(range, self.kernel))
        )

    @cached_property
    def unpadded(self) -> bool:
        """Whether the buffer is the images themselves, without padding."""
        return self.pitch == self.size

    @cached_property
    def is_identity(self) -> bool:
        """Whether the columns are the images themselves: a kernel of 1 at every position."""
        return self.unpadded and self.grid == self.size and self.elements == 1

    @cached_property
    def keeps_size(self) -> bool:
        """Whether the grid of a dense plan is the image itself, without gaps between rows."""
        return self.dense and self.grid == self.size

    @cached_property
    def gap(self) -> int:
        """Zeros between the positions of two images, as `ColumnSums` reads them."""
        return max(self.starts[-1] - self.lead, self.lead + self.places - self.length, 0)

    @cached_property
    def valid(self) -> tuple[slice, ...]:
        """The positions of the grid that are outputs."""
        return (slice(None), slice(None), *[slice(0, n) for n in self.out])

    @cached_property
    def overruns_of_images(self) -> tuple[Overrun, ...]:
        """What to zero where images follow each other without padding, too."""
        rows = _overruns(0, self.size, self.out, self.kernel, self.dilation, self.before)
        return (*rows, *self.overruns)


def _overruns(
    axis: int, size: Shape, out: Shape, kernel: Shape, dilation: Shape, before: Shape
) -> Iterator[Overrun]:
    """Yield the overruns along one axis."""
    others = [slice(None)] * len(size)
    for element in range(kernel[axis]):
        shift = element * dilation[axis] - before[axis]  # position p reads element p + shift
        at = (*others[: axis + 1], element, *others)
        if shift < 0:
            yield (*at, slice(0, min(-shift, out[axis])))
        if size[axis] - shift < out[axis]:
            yield (*at, slice(max(size[axis] - shift, 0), out[axis]))


@lru_cache(maxsize=512)
def plan_of(
    size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, filters: int | None
) -> Plan:
    """Return where a kernel reads; `filters` is their number in a group, or None (no product).

    Examples
    --------
    >>> plan = plan_of((5, 5), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 4)
    >>> plan.dense, plan.pitch, plan.grid, plan.lead, plan.starts[3]
    (True, (8, 5), (5, 5), 6, 5)
    >>> [(overrun[2], overrun[-1]) for overrun in plan.overruns]
    [(0, slice(0, 1, None)), (2, slice(4, 5, None))]
    """
    before = tuple(b for b, _ in padding)
    out = tuple(
        (n + b + a - (k - 1) * d - 1) // s + 1
        for n, k, s, d, (b, a) in zip(size, kernel, stride, dilation, padding, strict=True)
    )
    pitch = tuple(n + b + a for n, (b, a) in zip(size, padding, strict=True))
    grid, dense = out, False
    overruns: list[Overrun] = []
    if max(stride) == 1 and filters is not None:
        apart = filters == 1  # `depthwise` adds shifted rows, and makes no columns
        close = tuple(
            max(n + max(b, a) if apart else n, m)
            for n, m, (b, a) in zip(size[1:], out[1:], padding[1:], strict=True)
        )
        extra = math.prod(close) / math.prod(out[1:]) - 1
        if dense := extra * filters <= FILTERS_PER_EXTRA_POSITION:
            pitch, grid = (pitch[0], *close), (out[0], *close)
            for axis in range(1, len(size) if not apart else 0):
                overruns += _overruns(axis, size, out, kernel, dilation, before)
    # The buffer has as many rows as reads need, and as the padding before the first image moves it.
    steps = [math.prod(pitch[i + 1 :]) for i in range(len(pitch))]
    ends = [sum(b * step for b, step in zip(before, steps, strict=True)) + size[0] * steps[0]]
    if dense:
        last = [(k - 1) * d * step for k, d, step in zip(kernel, dilation, steps, strict=True)]
        ends.append(sum(last) + math.prod(grid))
    pitch = (max(pitch[0], -(-max(ends) // steps[0])), *pitch[1:])
    return Plan(size, out, kernel, stride, dilation, before, pitch, grid, dense, tuple(overruns))
