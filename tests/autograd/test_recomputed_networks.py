"""Every method of recomputation trains every network to the bits of plain running."""

from __future__ import annotations

from typing import Any

import pytest

import optlab as ol
from tests.autograd.recomputed import (
    NETWORKS,
    all_at_once,
    each,
    plainly,
    rematerialized,
    same,
    sequential,
    train,
)

pytestmark = pytest.mark.filterwarnings("ignore:a budget of .* cannot be kept to:UserWarning")

WAYS = {
    "each": each(), "each, its operations": each(use_reentrant=False), "all": all_at_once(),
    "all, its operations": all_at_once(use_reentrant=False), "1 segment": sequential(1),
    "2 segments": sequential(2), "3 segments": sequential(3), "sqrt": sequential("sqrt"),
    "revolve": sequential("revolve"), "revolve 1": sequential("revolve", 1),
    "revolve 3": sequential("revolve", 3), "rematerialize": rematerialized(),
    "keep names": rematerialized(keep=["linear", "add"]),
    "keep layer": rematerialized(keep="layer"),
    "keep callable": rematerialized(keep=lambda name, y: y.ndim > 2),
    "ample budget": rematerialized(budget="1 GiB"),
}  # fmt: skip


def expected(network: str) -> dict[str, Any]:
    return train(network, plainly)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("way", WAYS)
def test_steps_are_those_of_plain_running(network: str, way: str) -> None:
    same(train(network, WAYS[way]), expected(network))


@pytest.mark.parametrize("network", NETWORKS)
def test_so_are_those_within_the_smallest_budget(network: str) -> None:
    with pytest.raises(ol.autograd.MemoryBudgetError) as error:
        train(network, rematerialized(budget=1))
    smallest = error.value.smallest
    for budget in (smallest, smallest * 5 // 4, smallest * 2):
        same(train(network, rematerialized(budget=budget)), expected(network))


def by_layers(adam: Any, blocks: list[Any]) -> Any:
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints(blocks[::2])
    return optimizer


@pytest.mark.parametrize("network", NETWORKS)
def test_so_are_those_of_the_optimizer_with_layers(network: str) -> None:
    same(train(network, plainly, wrap=by_layers), expected(network))


@pytest.mark.parametrize("network", NETWORKS)
def test_so_are_those_of_the_optimizer_with_tensors(network: str) -> None:
    optimizers = []

    def wrap(adam: Any, blocks: list[Any]) -> Any:
        optimizers.append(ol.optimizer.RecomputeOptimizer(adam))
        return optimizers[0]

    def run(blocks: list[Any], x: Any) -> Any:
        passed = []
        for block in blocks:
            x = block(x)
            passed.append(x)
        optimizers[0].set_checkpoints(passed[1::2])
        return x

    same(train(network, run, wrap=wrap), expected(network))
