"""Peaks of traced bytes for sixteen residual blocks, for each method of recomputation."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.autograd.recomputed import Block, each, plainly, rematerialized, sequential

pytestmark = pytest.mark.slow
BATCH, WIDTH, HIDDEN, DEPTH = 512, 256, 1024, 16


def every_fourth(blocks: list[Any]) -> Any:
    parameters = [p for block in blocks for p in block.parameters()]
    optimizer = ol.optimizer.RecomputeOptimizer(ol.optimizer.SGD(0.1, parameters=parameters))
    optimizer.set_checkpoints(blocks[3::4])
    return optimizer


#: The method, its peak in MiB above the start (with gradients allocated), its optimizer wrapper.
WAYS: dict[str, tuple[Callable[[list[Any], Any], Any], float, Any]] = {
    "plain": (plainly, 100, None),
    "every block": (each(), 26, None),
    "every block, its operations": (each(use_reentrant=False), 26, None),
    "four segments": (sequential(4), 36, None),
    "every fourth a checkpoint": (plainly, 38, every_fourth),
    "a budget of 40 MiB": (rematerialized(budget="40 MiB"), 42, None),
}


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("way", WAYS)
def test_the_peak_of_a_step(way: str) -> None:
    run, most, around = WAYS[way]
    ol.seed(0)
    blocks = [Block(WIDTH, HIDDEN) for _ in range(DEPTH)]
    for block in blocks:
        for p in block.parameters():
            p.grad = ol.zeros(list(p.shape))
    x = ol.to_tensor(np.random.default_rng(0).standard_normal((BATCH, WIDTH)).astype("float32"))
    holder = around and around(blocks)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        (run(blocks, x) ** 2).mean().backward()
        peak = (tracemalloc.get_traced_memory()[1] - before) / 2**20
    finally:
        tracemalloc.stop()
    assert peak <= most, f"{peak:.1f} MiB"
    del holder
