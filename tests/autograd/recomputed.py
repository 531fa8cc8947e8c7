"""Networks and methods of running them: recomputation must reproduce the bits of plain running."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

import optlab as ol
from optlab.backend import random

nn = ol.nn


class Block(nn.Layer):
    """A residual block: LayerNorm, Linear, GELU, Dropout, Linear."""

    def __init__(self, width: int, hidden: int, p: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.one, self.two = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.act, self.drop = nn.GELU(), nn.Dropout(p)

    def forward(self, x: Any) -> Any:
        return x + self.two(self.drop(self.act(self.one(self.norm(x)))))


class Recurrent(nn.Layer):
    """An LSTM that returns only its outputs."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inner = nn.LSTM(size, size)

    def forward(self, x: Any) -> Any:
        return self.inner(x)[0]


def given(*shape: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def mlp() -> tuple[list[Any], Any]:
    layers = [nn.Sequential(nn.Linear(24, 24), nn.Tanh(), nn.Dropout(0.3)) for _ in range(5)]
    return layers, ol.to_tensor(given(16, 24))


def cnn() -> tuple[list[Any], Any]:
    layers = [
        nn.Sequential(nn.Conv2D(3, 3, 3, padding=1), nn.BatchNorm2D(3), nn.ReLU()) for _ in range(3)
    ]
    return [*layers, nn.Flatten(), nn.Linear(3 * 36, 4)], ol.to_tensor(given(4, 3, 6, 6))


def transformer() -> tuple[list[Any], Any]:
    layers = [nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1) for _ in range(3)]
    return layers, ol.to_tensor(given(2, 8, 16))


def lstm() -> tuple[list[Any], Any]:
    return [Recurrent(8), nn.Dropout(0.2), Recurrent(8)], ol.to_tensor(given(3, 5, 8))


def embedding() -> tuple[list[Any], Any]:
    ids = ol.to_tensor(np.random.default_rng(1).integers(0, 50, (4, 6)))
    return [nn.Embedding(50, 16, sparse=True), Block(16, 32), Block(16, 32)], ids


def residual() -> tuple[list[Any], Any]:
    return [Block(32, 64) for _ in range(4)], ol.to_tensor(given(16, 32), requires_grad=True)


def double() -> tuple[list[Any], Any]:
    layers, x = residual()
    for layer in layers:
        layer.to(dtype="float64")
    return layers, x.detach().astype("float64")


def half(dtype: str) -> Callable[[], tuple[list[Any], Any]]:
    def build() -> tuple[list[Any], Any]:
        layers, x = residual()
        for layer in layers:
            layer.to(dtype=dtype)
        return layers, x.detach().astype(dtype)

    return build


NETWORKS: dict[str, Callable[[], tuple[list[Any], Any]]] = {
    "mlp": mlp, "cnn": cnn, "transformer": transformer, "lstm": lstm, "embedding": embedding,
    "residual": residual, "autocast": residual, "float64": double, "float16": half("float16"),
    "bfloat16": half("bfloat16"),
}  # fmt: skip


def plainly(blocks: list[Any], x: Any) -> Any:
    for block in blocks:
        x = block(x)
    return x


def each(**how: Any) -> Callable[[list[Any], Any], Any]:
    """Return a function that recomputes every block on its own."""

    def run(blocks: list[Any], x: Any) -> Any:
        for block in blocks:
            x = ol.recompute(block, x, **how)
        return x

    return run


def all_at_once(**how: Any) -> Callable[[list[Any], Any], Any]:
    """Return a function that recomputes all blocks in one call."""
    return lambda blocks, x: ol.recompute(lambda x: plainly(blocks, x), x, **how)


def sequential(segments: Any, snapshots: Any = None) -> Callable[[list[Any], Any], Any]:
    return lambda blocks, x: ol.recompute_sequential(
        blocks, x, segments=segments, snapshots=snapshots
    )


def rematerialized(**how: Any) -> Callable[[list[Any], Any], Any]:
    def run(blocks: list[Any], x: Any) -> Any:
        keep = [blocks[1]] if how.get("keep") == "layer" else how.get("keep")
        with ol.rematerialize(keep=keep, budget=how.get("budget")):
            return plainly(blocks, x)

    return run


def train(
    network: str, run: Callable[[list[Any], Any], Any], steps: int = 3, wrap: Any = None
) -> dict[str, Any]:
    """Train for some steps; return everything that must not depend on how the network was run."""
    ol.seed(3)
    blocks, x = NETWORKS[network]()
    model = nn.Sequential(*blocks)
    adam = ol.optimizer.Adam(0.01, parameters=model.parameters())
    optimizer = adam if wrap is None else wrap(adam, blocks)
    seen: dict[str, Any] = {}
    for step in range(steps):
        with ol.amp.auto_cast(dtype="bfloat16") if network == "autocast" else nullcontext():
            out = run(blocks, x)
            loss = (out.astype("float32") ** 2).mean()
        loss.backward()
        seen[f"loss {step}"] = loss.numpy()
        for name, p in model.named_parameters():
            g = p.grad
            seen[f"gradient of {name} {step}"] = None if g is None else np.asarray(whole(g))
        if x.requires_grad:
            seen[f"gradient of x {step}"] = x.grad.numpy()
            x.grad = None
        optimizer.step()
        optimizer.clear_grad()
    seen |= {f"parameter {name}": p.numpy() for name, p in model.named_parameters()}
    seen |= {f"buffer {name}": b.numpy() for name, b in model.named_buffers()}
    seen["random"] = np.array(random.next_key().generator().random())
    return seen


def whole(g: Any) -> Any:
    from optlab.autograd.tape.row_sparse import dense as densely

    return densely(g.data if isinstance(g, ol.Tensor) else g)


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Assert that two results are bitwise equal."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if value is None or other[name] is None:
            assert value is other[name], name
            continue
        assert value.dtype == other[name].dtype, name
        assert value.tobytes() == other[name].tobytes(), name
