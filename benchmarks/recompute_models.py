"""The chains of the recomputation benchmark, in optlab and in PyTorch.

Each function returns the parts of a network, in order, and the loss of the last part's output.
Libraries are imported inside the functions, since the peer's process reads this file too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.memory_models import (
    LENGTH,
    gpt_of_pytorch,
    images,
    lenet_of_pytorch,
    our_gpt,
    our_lenet,
    words,
)

#: The residual blocks: their number, width, inner width and batch size.
BLOCKS, WIDTH, INSIDE, BATCH = 16, 256, 1024, 512

Parts = tuple[list[Any], Callable[[Any, Any], Any]]


def our_blocks() -> Parts:
    """Return residual blocks LayerNorm-Linear-GELU-Dropout-Linear, and the sum of squares."""
    import numpy as np

    import optlab as ol

    nn = ol.nn

    class Block(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Sequential(
                nn.LayerNorm(WIDTH), nn.Linear(WIDTH, INSIDE), nn.GELU(), nn.Dropout(0.1),
                nn.Linear(INSIDE, WIDTH),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return x + self.inside(x)

    return [Block() for _ in range(BLOCKS)], lambda x, y: np.sum(x * x)


def blocks_of_pytorch() -> Parts:
    """Return the same blocks in PyTorch."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Sequential(
                nn.LayerNorm(WIDTH), nn.Linear(WIDTH, INSIDE), nn.GELU(), nn.Dropout(0.1),
                nn.Linear(INSIDE, WIDTH),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return x + self.inside(x)

    return [Block() for _ in range(BLOCKS)], lambda x, y: (x * x).sum()


def our_mlp() -> Parts:
    """Return a layer from 784 to 256 units, 15 layers of 256, and a layer of ten classes."""
    import optlab as ol

    nn = ol.nn
    sizes = [784, *[256] * 15]
    parts: list[Any] = [nn.Sequential(nn.Linear(wide, 256), nn.ReLU()) for wide in sizes]
    return [*parts, nn.Linear(256, 10)], nn.functional.cross_entropy


def mlp_of_pytorch() -> Parts:
    """Return the same layers in PyTorch."""
    from torch import nn

    sizes = [784, *[256] * 15]
    parts: list[Any] = [nn.Sequential(nn.Linear(wide, 256), nn.ReLU()) for wide in sizes]
    return [*parts, nn.Linear(256, 10)], nn.functional.cross_entropy


def our_cnn() -> Parts:
    """Return LeNet-5 in three parts: each convolution with its pooling, then the linear layers."""
    import optlab as ol

    network, _ = our_lenet()
    layers = list(network.children())
    parts = [ol.nn.Sequential(*layers[a:b]) for a, b in ((0, 3), (3, 6), (6, None))]
    return parts, ol.nn.functional.cross_entropy


def cnn_of_pytorch() -> Parts:
    """Return the same parts in PyTorch."""
    from torch import nn

    network, _ = lenet_of_pytorch()
    layers = list(network.children())
    parts = [nn.Sequential(*layers[a:b]) for a, b in ((0, 3), (3, 6), (6, None))]
    return parts, nn.functional.cross_entropy


def our_transformer() -> Parts:
    """Return a GPT of 8 blocks with dropout: the embedding, each block, the output layer."""
    import numpy as np

    import optlab as ol

    model, _ = our_gpt(0.1, blocks=8)

    class First(ol.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places, self.dropout = model.words, model.places, model.dropout

        def forward(self, x: Any) -> Any:
            return self.dropout(self.words(x) + self.places(np.arange(LENGTH)))

    last = ol.nn.Sequential(model.norm, model.head)
    return [First(), *model.blocks.children(), last], ol.nn.functional.cross_entropy


def transformer_of_pytorch() -> Parts:
    """Return the same parts in PyTorch."""
    import torch
    from torch import nn

    model, _ = gpt_of_pytorch(0.1, blocks=8)

    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places, self.dropout = model.words, model.places, model.dropout

        def forward(self, x: Any) -> Any:
            return self.dropout(self.words(x) + self.places(torch.arange(LENGTH)))

    def loss(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(x.reshape(-1, x.shape[-1]), y.reshape(-1))

    return [First(), *model.blocks, nn.Sequential(model.norm, model.head)], loss


def rows_of_blocks() -> tuple[Any, Any]:
    """Return the batch of the residual blocks."""
    return images(BATCH, (WIDTH,))


class Case(NamedTuple):
    """A chain on both sides."""

    batch: Callable[[], tuple[Any, Any]]
    ours: Callable[[], Parts]
    pytorch: Callable[[], Parts]
    segments: int


CASES: dict[str, Case] = {
    "16 residual blocks": Case(rows_of_blocks, our_blocks, blocks_of_pytorch, 4),
    "MLP of 17 layers": Case(partial(images, 512, (784,)), our_mlp, mlp_of_pytorch, 4),
    "LeNet-5, batch 256": Case(partial(images, 256, (1, 28, 28)), our_cnn, cnn_of_pytorch, 2),
    "GPT of 8 blocks": Case(partial(words, 8), our_transformer, transformer_of_pytorch, 3),
}
