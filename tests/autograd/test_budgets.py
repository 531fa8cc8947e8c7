"""Budgets of rematerialize: what they say, and what can be dropped under them."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol

MemoryBudgetError = ol.autograd.MemoryBudgetError


def test_several_outputs_of_which_one_is_a_single_number() -> None:
    """Cross-entropy of two batches: of its outputs one is the loss, a single number."""

    def gradient(budget: Any) -> Any:
        ol.seed(0)
        layer, labels = ol.nn.Linear(64, 500), ol.to_tensor(np.zeros(256, int))
        with ol.rematerialize(budget=budget) as memory:
            loss = sum(
                ol.nn.functional.cross_entropy(layer(ol.ones([256, 64]) * scale), labels)
                for scale in (1.0, 2.0, 3.0)
            )
            loss.backward()
        return layer.weight.grad.numpy().tobytes(), memory.dropped

    plain, dropped = gradient("100 MiB")
    assert dropped == 0
    again, dropped = gradient("3.5 MiB")
    assert again == plain
    assert dropped > 0
