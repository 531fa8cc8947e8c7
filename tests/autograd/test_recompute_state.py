"""recompute and state that a function changes: the seed of the program, singular vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol

WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "one operation": ol.recompute,
    "its operations": lambda f, x: ol.recompute(f, x, use_reentrant=False),
    "a chain": lambda f, x: ol.recompute_sequential([np.sin, f, np.cos], x, segments=2),
}
BOTH = pytest.mark.parametrize("way", WAYS)


def plainly(way: str, f: Any, x: Any) -> Any:
    return np.cos(f(np.sin(x))) if way == "a chain" else f(x)


def seeds(v: Any) -> Any:
    ol.seed(7)
    return np.exp(v * ol.rand([4]))


def goes_back(v: Any) -> Any:
    state = ol.get_rng_state()
    first = ol.rand([4])
    ol.set_rng_state(state)
    return np.exp(v * first * ol.rand([4]))


@BOTH
@pytest.mark.parametrize("f", [seeds, goes_back])
def test_a_function_that_seeds_draws_the_same_again_and_nothing_outside_notices(f, way) -> None:
    def found(run: Callable[[Any, Any], Any]) -> list[Any]:
        ol.seed(1)
        x = ol.to_tensor(np.linspace(0, 1, 4), requires_grad=True)
        loss = np.sum(run(f, x))
        between = ol.rand([2]).tolist()
        loss.backward()
        return [loss.item(), between, x.grad.tolist(), ol.rand([2]).tolist()]

    assert found(WAYS[way]) == found(lambda f, x: plainly(way, f, x))


@BOTH
def test_spectral_norm_moves_its_vectors_once_a_step(way: str) -> None:
    def found(run: Callable[[Any, Any], Any]) -> list[Any]:
        ol.seed(0)
        layer, x = ol.nn.utils.spectral_norm(ol.nn.Linear(4, 4)), ol.ones([2, 4])
        sgd = ol.optimizer.SGD(0.1, parameters=layer.parameters())
        for _ in range(3):
            np.sum(run(layer, x) ** 2).backward()
            sgd.step()
            sgd.clear_grad()
        return [value.tolist() for value in layer.state_dict().values()]

    assert found(WAYS[way]) == found(lambda f, x: plainly(way, f, x))
