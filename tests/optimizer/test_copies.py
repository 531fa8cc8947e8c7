"""Copies of optimizers are independent: none reads what another one writes."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import optlab as ol


def a_model() -> tuple[Any, Any]:
    ol.seed(0)
    model = ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Tanh(), ol.nn.Linear(4, 2))
    return model, ol.optimizer.Adam(0.1, parameters=model.parameters())


def train(model: Any, optimizer: Any, steps: int) -> list[np.ndarray]:
    x = np.random.default_rng(1).standard_normal((8, 3)).astype("float32")
    for _ in range(steps):
        (model(x) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
    return [parameter.numpy() for parameter in model.parameters()]


@pytest.mark.parametrize("before", [0, 2])
def test_a_deep_copy_trains_on(before: int) -> None:
    model, optimizer = a_model()
    train(model, optimizer, before)
    copied = copy.deepcopy((model, optimizer))
    ours, theirs = train(model, optimizer, 3), train(*copied, 3)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_pickled_optimizer_trains_on() -> None:
    weight = ol.Parameter([1.0, 2.0])
    optimizer = ol.optimizer.Momentum(0.1, parameters=[weight])
    weight.sum().backward()
    optimizer.step()
    other_weight, other = pickle.loads(pickle.dumps((weight, optimizer)))
    optimizer.step()
    other.step()
    np.testing.assert_array_equal(weight.numpy(), other_weight.numpy())


def test_a_parameter_from_another_process_is_not_taken_for_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weight = ol.Parameter([1.0, 2.0])
    for _ in range(10):
        weight.set_value([3.0, 4.0])
    pickled = pickle.dumps(weight)
    monkeypatch.setattr("optlab.autograd.tape.versions.clock", itertools.count(1))
    monkeypatch.setattr("optlab.autograd.tape.versions.times.last_write", 0)
    arrived, other = pickle.loads(pickled), ol.Parameter([0.0])
    loss = (arrived * arrived).sum()
    other.set_value([1.0])
    loss.backward(retain_graph=True)
    assert arrived.grad.tolist() == [6.0, 8.0]
    arrived.set_value([5.0, 6.0])
    with pytest.raises(RuntimeError, match=r"set_value\(\)"):
        loss.backward()


def test_values_taken_out_do_not_change_with_a_step() -> None:
    weight = ol.Parameter([1.0, 2.0])
    optimizer = ol.optimizer.SGD(0.1, parameters=[weight])
    taken = [weight.numpy(), weight.detach().numpy(), weight.reshape(2, 1).detach().numpy()]
    weight.sum().backward()
    optimizer.step()
    for array in taken:
        np.testing.assert_array_equal(array.ravel(), [1.0, 2.0])


@pytest.mark.parametrize(
    "view",
    [lambda w: w.T, lambda w: w[:], lambda w: w.reshape(4), lambda w: np.expand_dims(w, 0)],
    ids=["transposed", "sliced", "reshaped", "expanded"],
)
def test_a_view_knows_that_a_step_wrote_over_it(view: Any) -> None:
    weight = ol.Parameter([[1.0, 2.0], [3.0, 4.0]], name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[weight])
    seen = view(weight)
    loss = (seen * seen).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match=r"saved of w .*SGD\.step\(\)"):
        loss.backward()


class TestRulesInPlace:
    @pytest.mark.parametrize("target", ["p", "g", "s.velocity"])
    def test_are_refused_and_change_nothing(self, target: str) -> None:
        class InPlace(ol.optimizer.Optimizer):
            hyperparameters = {"learning_rate": 0.1}
            slots = {"velocity": 1.0}

            def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
                array = {"p": p, "g": g, "s.velocity": s.velocity}[target]
                array += 1.0
                return p - g, {"velocity": s.velocity}

        weight = ol.Parameter([1.0, 2.0])
        optimizer = InPlace(parameters=[weight])
        weight.sum().backward()
        for _ in range(2):
            with pytest.raises(TypeError, match="writes into its arguments"):
                optimizer.step()
        np.testing.assert_array_equal(weight.numpy(), [1.0, 2.0])
        np.testing.assert_array_equal(weight.grad.numpy(), [1.0, 1.0])

    def test_terms_may_be_what_came_in(self) -> None:
        class Telling(ol.optimizer.Optimizer):
            hyperparameters = {"learning_rate": 0.5}

            def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
                return p - h.learning_rate * g, {}, {"before": p}

        weight = ol.Parameter([1.0], name="w")
        optimizer = Telling(parameters=[weight])
        with ol.record(optimizer) as trace:
            for _ in range(3):
                weight.grad = [1.0]
                optimizer.step()
        np.testing.assert_array_equal(trace.terms["before"]["w"], [[1.0], [0.5], [0.0]])


def test_a_wrong_name_in_a_rule_is_answered() -> None:
    class Wrong(ol.optimizer.Optimizer):
        def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
            return p - h.lr * g, {}

    weight = ol.Parameter([1.0])
    weight.sum().backward()
    with pytest.raises(AttributeError, match=r"no hyper-parameter 'lr'; there is learning_rate"):
        Wrong(parameters=[weight]).step()


def test_in_place_arithmetic_on_a_parameter() -> None:
    weight = ol.Parameter([1.0, 2.0])
    same = weight
    with pytest.raises(TypeError, match="no_grad"):
        weight -= 1.0
    with ol.no_grad():
        weight -= 0.5
        weight *= 2.0
    assert weight is same
    np.testing.assert_array_equal(weight.numpy(), [1.0, 3.0])
