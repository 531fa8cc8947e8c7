"""The two gradients of a depthwise convolution of stride 1: one filter a channel.

With one filter for each channel a column is used only once, so a matrix product has no advantage.
The gradient of the input is a sum, over the elements of the kernel, of the shifted output gradient
times one number a channel; the gradient of the weight is an inner product for each shift. Blocks of
a few channels or images stay in the cache. (Forward, columns and a row times a matrix are as fast.)
Layout and plans are those of `im2col`; the images of a block are contiguous, and a shift runs over
the ends of images as a dense plan does over those of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optlab.nn.functional.conv.im2col import all_numpy, inside
from optlab.nn.functional.conv.plan import Plan

#: Images, sums and products of one block have about this many bytes each.
BLOCK_BYTES = 200_000


def fits(groups: int, filters: int, channels: int, plan: Plan, *arrays: Any) -> bool:
    """Return whether this is a depthwise convolution of stride 1 of NumPy arrays."""
    return groups == filters == channels > 1 and plan.dense and all_numpy(*arrays)


class _Block:
    """A zero-padded buffer for some channels of some images."""

    def __init__(self, channels: int, count: int, plan: Plan, dtype: Any) -> None:
        self.plan = plan
        padded = np.zeros((channels, count, *plan.pitch), dtype)
        self.flat = padded.reshape((channels, -1))
        self.inside = inside(padded.reshape((channels, count, plan.room)), plan)
        self.valid = padded[plan.valid]


def _blocks(channels: int, count: int, plan: Plan, itemsize: int) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of channels and images; all but the last ones are of one size."""
    bytes_each = plan.room * itemsize
    images = max(min(BLOCK_BYTES // bytes_each, count), 1)
    across = min(max(BLOCK_BYTES // (bytes_each * images), 1), channels)
    for first in range(0, channels, across):
        for start in range(0, count, images):
            yield (
                slice(first, min(first + across, channels)),
                slice(start, min(start + images, count)),
            )


class _Workspace:
    """Buffers, made once for each block size."""

    def __init__(self, plan: Plan, dtype: Any, count: int) -> None:
        self.plan, self.dtype, self.count = plan, dtype, count
        self.made: dict[tuple[int, int], list[_Block]] = {}

    def blocks(self, channels: slice, images: slice) -> list[_Block]:
        size = channels.stop - channels.start, images.stop - images.start
        if size not in self.made:
            self.made[size] = [_Block(*size, self.plan, self.dtype) for _ in range(self.count)]
        return self.made[size]


def by_input(g: Any, weight: Any, plan: Plan, dtype: Any) -> Any:
    """Return the gradient (C, N, ...size) of the input for `g` (C, N, ...out)."""
    channels, count = g.shape[:2]
    x = np.empty((channels, count, *plan.size), dtype)
    space = _Workspace(plan, g.dtype, 3)
    starts = plan.starts
    for here, images in _blocks(channels, count, plan, g.itemsize):
        given, total, part = space.blocks(here, images)
        given.valid[...] = g[here, images]
        end = given.flat.shape[1] - starts[-1]
        source, term = given.flat[:, :end], part.flat[:, :end]
        total.flat[:, end:] = 0
        for i, start in enumerate(starts):
            target = total.flat[:, start : start + end]
            if i:
                np.multiply(source, weight[here, i, None], term)
                np.add(target, term, target)
            else:
                np.multiply(source, weight[here, i, None], target)
        x[here, images] = total.inside
    return x


def by_weight(x: Any, g: Any, plan: Plan) -> Any:
    """Return the gradient (C, kernel) of the weight."""
    channels, count = x.shape[:2]
    weight = np.zeros((channels, plan.elements), x.dtype)
    space = _Workspace(plan, x.dtype, 2)
    starts = plan.starts
    for here, images in _blocks(channels, count, plan, x.itemsize):
        given, gradient = space.blocks(here, images)
        given.inside[...] = x[here, images]
        gradient.valid[...] = g[here, images]
        end = given.flat.shape[1] - starts[-1]
        source = gradient.flat[:, :end]
        for i, start in enumerate(starts):
            weight[here, i] += np.vecdot(given.flat[:, start : start + end], source)
    return weight
