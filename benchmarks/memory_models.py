"""The networks of the memory benchmark, in optlab and in PyTorch: the same layers and sizes.

Each function returns a network and a function that computes its loss on a batch. Libraries are
imported inside the functions, since the peer's process reads this file too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

WIDTH, HEADS, LENGTH, BLOCKS, WORDS = 128, 4, 64, 2, 100

Built = tuple[Any, Callable[[Any, Any], Any]]


def images(count: int, space: tuple[int, ...]) -> tuple[Any, Any]:
    """Return float32 inputs and the labels of ten classes."""
    import numpy as np

    draws = np.random.default_rng(0)
    return draws.standard_normal((count, *space), np.float32), np.arange(count) % 10


def words(count: int) -> tuple[Any, Any]:
    """Return sequences of token ids and the token that follows each."""
    import numpy as np

    found = np.random.default_rng(0).integers(0, WORDS, (count, LENGTH + 1))
    return found[:, :-1].copy(), found[:, 1:].copy()


def our_mlp() -> Built:
    """Return 784-256-128-10 with ReLU."""
    import optlab as ol

    nn = ol.nn
    model = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    return model, lambda x, y: nn.functional.cross_entropy(model(x), y)


def mlp_of_pytorch() -> Built:
    """Return the same layers in PyTorch."""
    from torch import nn

    model = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    return model, lambda x, y: nn.functional.cross_entropy(model(x), y)


def our_lenet() -> Built:
    """Return LeNet-5 with ReLU and max pooling, for images of 28 x 28."""
    import optlab as ol

    nn = ol.nn
    model = nn.Sequential(
        nn.Conv2D(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(6, 16, 5), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return model, lambda x, y: nn.functional.cross_entropy(model(x), y)


def lenet_of_pytorch() -> Built:
    """Return the same layers in PyTorch."""
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return model, lambda x, y: nn.functional.cross_entropy(model(x), y)


def our_gpt(rate: float = 0.0, blocks: int = BLOCKS) -> Built:
    """Return a small GPT: pre-norm blocks with causal attention and GELU, and dropout."""
    import numpy as np

    import optlab as ol

    nn, attend = ol.nn, ol.nn.functional.scaled_dot_product_attention

    class Block(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.v, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.network = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )
            self.dropout = nn.Dropout(rate)

        def attention(self, x: Any) -> Any:
            batch = x.shape[0]
            q, k, v = (
                part(x).reshape([batch, LENGTH, HEADS, WIDTH // HEADS])
                for part in (self.q, self.k, self.v)
            )
            found = attend(q, k, v, dropout_p=rate, is_causal=True)
            return self.out(found.reshape([batch, LENGTH, WIDTH]))

        def forward(self, x: Any) -> Any:
            x = x + self.dropout(self.attention(self.norm1(x)))
            return x + self.dropout(self.network(self.norm2(x)))

    class Gpt(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.dropout = nn.Dropout(rate)
            self.blocks = nn.Sequential(*[Block() for _ in range(blocks)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

        def forward(self, x: Any) -> Any:
            x = self.dropout(self.words(x) + self.places(np.arange(LENGTH)))
            return self.head(self.norm(self.blocks(x)))

    model = Gpt()
    return model, lambda x, y: nn.functional.cross_entropy(model(x), y)


def gpt_of_pytorch(rate: float = 0.0, plain: bool = False, blocks: int = BLOCKS) -> Built:
    """Return the same GPT in PyTorch; `plain`: attention as single operations, softmax included."""
    import torch
    from torch import nn

    def attend(q: Any, k: Any, v: Any) -> Any:
        if not plain:
            return nn.functional.scaled_dot_product_attention(
                q, k, v, dropout_p=rate, is_causal=True
            )
        future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        weights = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        weights = weights.masked_fill(future, float("-inf")).softmax(-1)
        return nn.functional.dropout(weights, rate) @ v

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.v, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.network = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )
            self.dropout = nn.Dropout(rate)

        def attention(self, x: Any) -> Any:
            batch = x.shape[0]
            q, k, v = (
                part(x).reshape(batch, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
                for part in (self.q, self.k, self.v)
            )
            return self.out(attend(q, k, v).transpose(1, 2).reshape(batch, LENGTH, WIDTH))

        def forward(self, x: Any) -> Any:
            x = x + self.dropout(self.attention(self.norm1(x)))
            return x + self.dropout(self.network(self.norm2(x)))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.dropout = nn.Dropout(rate)
            self.blocks = nn.Sequential(*[Block() for _ in range(blocks)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

        def forward(self, x: Any) -> Any:
            x = self.dropout(self.words(x) + self.places(torch.arange(LENGTH)))
            return self.head(self.norm(self.blocks(x)))

    model = Gpt()

    def loss(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(model(x).reshape(-1, WORDS), y.reshape(-1))

    return model, loss


#: The cases: the batch, our network, and PyTorch's networks by their form of attention.
CASES: dict[str, tuple[Callable[[], Any], Callable[[], Built], dict[str, Callable[[], Built]]]] = {
    "MLP, batch 64": (partial(images, 64, (784,)), our_mlp, {"": mlp_of_pytorch}),
    "LeNet-5, batch 16": (partial(images, 16, (1, 28, 28)), our_lenet, {"": lenet_of_pytorch}),
    "LeNet-5, batch 256": (partial(images, 256, (1, 28, 28)), our_lenet, {"": lenet_of_pytorch}),
    "GPT, batch 8": (
        partial(words, 8),
        our_gpt,
        {"": gpt_of_pytorch, "plain attention": partial(gpt_of_pytorch, plain=True)},
    ),
    "GPT, batch 8, dropout": (
        partial(words, 8),
        partial(our_gpt, 0.1),
        {
            "": partial(gpt_of_pytorch, 0.1),
            "plain attention": partial(gpt_of_pytorch, 0.1, plain=True),
        },
    ),
}
