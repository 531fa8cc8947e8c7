"""Convolution forward and backward, where PyTorch's kernels are at their best.

Ours are matrix products (BLAS) plus the copies of im2col, over blocks of images on all cores. The
gradients of input, weight and bias are computed, as inside a network. Images of 14 and 16 pixels
keep their size (padding 1), those of 28 do not (no padding).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from benchmarks.row import Peer, Row, Work, at_least


class Size(NamedTuple):
    """A batch of images, the filters, and the target ratio."""

    images: tuple[int, int, int, int]
    filters: int
    kernel: int
    padding: int
    target: float


SIZES = {
    "convolution_28": Size((32, 1, 28, 28), 8, 5, 0, 2.0),
    "convolution_14": Size((32, 16, 14, 14), 32, 3, 1, 0.7),
    "convolution_16": Size((64, 32, 16, 16), 64, 3, 1, 0.7),
}


def arrays(size: Size) -> tuple[Any, Any]:
    """Return images and an upstream gradient, both float32."""
    import numpy as np

    numbers = np.random.default_rng(0)
    count, _, height, width = size.images
    shrinks = size.kernel - 1 - 2 * size.padding
    shape = (count, size.filters, height - shrinks, width - shrinks)
    return tuple(  # type: ignore[return-value]
        numbers.standard_normal(s).astype(np.float32) for s in (size.images, shape)
    )


def ours(size: Size) -> Work:
    """Return forward and backward of optlab's layer."""
    import optlab as ol

    images, gradient = arrays(size)
    x = ol.to_tensor(images, requires_grad=True)
    layer = ol.nn.Conv2D(size.images[1], size.filters, size.kernel, padding=size.padding)
    leaves = [x, *layer.parameters()]

    def step() -> None:
        layer(x).backward(gradient)
        for leaf in leaves:
            leaf.grad = None

    return step


def pytorch(size: Size) -> Work:
    """Return the same in PyTorch."""
    import torch

    images, gradient = map(torch.from_numpy, arrays(size))
    x = images.requires_grad_()
    layer = torch.nn.Conv2d(size.images[1], size.filters, size.kernel, padding=size.padding)
    leaves = [x, *layer.parameters()]

    def step() -> None:
        layer(x).backward(gradient)
        for leaf in leaves:
            leaf.grad = None

    return step


ROWS = [
    Row(
        name=name,
        title=(
            f"convolution, {'x'.join(map(str, size.images))} to {size.filters}, kernel "
            f"{size.kernel}, forward and backward"
        ),
        unit="forward and backward",
        ours=partial(ours, size),
        peers=[
            Peer(
                "PyTorch eager", partial(pytorch, size), "torch", at_least(size.target),
                threads=(1, 2),
            ),
        ],
    )
    for name, size in SIZES.items()
]  # fmt: skip
