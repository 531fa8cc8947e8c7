"""Budgets of rematerialize: their messages, and what can be dropped under them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.remat.budget import Budget

TOO_SMALL = "ignore:a budget of .* cannot be kept to:UserWarning"
MemoryBudgetError = ol.autograd.MemoryBudgetError


def test_several_outputs_of_which_one_is_a_single_number() -> None:
    """Cross-entropy of two batches: one of its outputs is the loss, a scalar."""

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


def count_evaluations(n: int, size: int, budget: int, monkeypatch: Any) -> int:
    """Count the cost evaluations and drops of a budget while the user holds all results."""
    counts = [0]
    score, drop = Budget._score, Budget._drop

    def counted(function: Any) -> Any:
        def call(self: Any, store: Any) -> Any:
            counts[0] += 1
            return function(self, store)

        return call

    monkeypatch.setattr(Budget, "_score", counted(score))
    monkeypatch.setattr(Budget, "_drop", counted(drop))
    x = ol.to_tensor(np.ones(size), requires_grad=True)

    def step() -> None:
        y, held = x, []
        with ol.rematerialize(budget=budget):
            for _ in range(n):
                y = np.sin(y)
                held.append(y)
            y.sum().backward()

    with pytest.raises(MemoryBudgetError):
        step()
    monkeypatch.undo()
    return counts[0]


@pytest.mark.filterwarnings(TOO_SMALL)
@pytest.mark.parametrize(("size", "budget"), [(1000, 400_000), (100, 20_000)])
def test_what_the_user_holds_is_not_asked_for_at_every_operation(
    size: int, budget: int, monkeypatch: Any
) -> None:
    counts = [count_evaluations(n, size, budget, monkeypatch) for n in (200, 400)]
    assert counts[1] < 3 * counts[0]  # evaluating all candidates every time would be 8 times
    assert counts[1] < 400 * 250


def test_what_the_user_has_let_go_is_dropped_before_a_budget_is_given_up() -> None:
    x = ol.to_tensor(np.ones(1000), requires_grad=True)
    with ol.rematerialize(budget=8000 * 60) as memory:
        y, held = x, []
        for i in range(200):
            y = np.sin(y)
            held.append(y)
            if len(held) == 50:
                held.clear()
            if i == 150:
                held.clear()
        y.sum().backward()
    assert memory.dropped > 100


def test_a_budget_that_cannot_be_kept_to_is_said_where_it_is_exceeded_first() -> None:
    def step() -> None:
        x = ol.to_tensor(np.ones(100_000), requires_grad=True)
        with ol.rematerialize(budget=1_000_000):
            y = np.sin(x)
            said.append(len(caught))
            y = np.sin(y)
            said.append(len(caught))
            np.sin(y).sum().backward()
            said.append(len(caught))

    said: list[int] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(MemoryBudgetError) as error:
            step()
    assert said == [1, 1, 1]  # the first operation takes twice 800,000
    message = str(caught[0].message)
    assert "976.57 KiB (1,000,000 bytes) cannot be kept to: it came to" in message
    assert "(1,600,000 bytes) here," in message
    assert caught[0].filename == __file__
    assert "976.57 KiB (1,000,000 bytes)" in str(error.value)
    assert f"({error.value.smallest:,} bytes). Under another budget" in str(error.value)


@pytest.mark.parametrize(
    ("budget", "match"),
    [
        ("64 M", r"write '64 MiB' \(of 1,048,576 bytes\) or '64 MB' \(of 1,000,000 bytes\)"),
        ("1.5k", r"write '1.5 KiB' \(of 1,024 bytes\) or '1.5 KB' \(of 1,000 bytes\)"),
        ("64", "has no unit: write '64 MiB', or a number for bytes"),
        ("0", "a budget has to be more than nothing"),
        (0, "a budget has to be more than nothing"),
    ],
)
def test_budgets_that_leave_open_what_is_meant(budget: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ol.rematerialize(budget=budget)
