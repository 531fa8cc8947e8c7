"""np.where with a single truth value: the branch on values that a plan can repeat."""

from typing import Any

import numpy as np
import pytest

import optlab as ol

RNG = np.random.default_rng(0)
ROWS = [scale * RNG.standard_normal(3) for scale in (1, -1, 1, -1, 0.1, 5)]
ROWS += [np.ones(3), np.array([1.0, np.inf, 2.0])]


def of_a_sum(x: Any) -> Any:
    return np.sum(np.where(np.sum(x) > 0, x * 2, x * x))


def of_two_numbers(x: Any) -> Any:
    low, high = np.sum(x) > 0, np.max(x) < 2
    return np.where(low & ~high, x, np.where(low | high, 3.0, x - 1))


def by_logical_and(x: Any) -> Any:
    return np.where(np.logical_and(np.sum(x) > 0, np.max(x) < 2), x, -x)


def of_elements(x: Any) -> Any:
    return np.where(x[0] == x[1], x, 2 * x)


def of_any(x: Any) -> Any:
    return np.where(np.any(x > 1), x, x * 0.5)


def while_finite(x: Any) -> Any:
    return np.where(np.isfinite(x.sum()), x, 0.0)


def as_a_factor(x: Any) -> Any:
    return (x.sum() > 0) * np.sin(x)


def clipped_gradient(x: Any) -> Any:
    g = ol.grad(of_a_sum)(x)
    norm = np.sqrt(np.sum(g * g))
    return np.where(norm > 1, g / norm, g)


FUNCTIONS = [
    of_a_sum, of_two_numbers, by_logical_and, of_elements, of_any, while_finite, as_a_factor,
    clipped_gradient,
]  # fmt: skip


@pytest.mark.parametrize("given", [np.array, ol.to_tensor], ids=["array", "Tensor"])
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_replay_selects_by_the_values_of_its_own_call(f: Any, given: Any) -> None:
    captured = ol.capture(f)
    for row in ROWS:
        found, wanted = captured(given(row)), f(given(row))
        assert type(found) is type(wanted)
        np.testing.assert_array_equal(ol.to_tensor(found).numpy(), ol.to_tensor(wanted).numpy())
    assert len(captured.plans) == 1


def test_gradients_and_steps_follow_the_branch_that_is_taken() -> None:
    def train(how: Any) -> Any:
        w = ol.Parameter(np.linspace(-1, 1, 3))
        optimizer = ol.optimizer.Adam(0.1, parameters=[w])

        def step(x: Any) -> Any:
            loss = of_a_sum(w * x)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        call = how(step)
        losses = [call(ol.to_tensor(ROWS[i % 6])).item() for i in range(30)]
        return losses, w.numpy().tolist()

    assert train(ol.capture) == train(lambda f: f)
