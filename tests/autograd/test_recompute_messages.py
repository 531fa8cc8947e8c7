"""Error messages of recompute, recompute_sequential and rematerialize."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol

nn = ol.nn
X = np.ones((3, 4))


def checkpoints(given: Any) -> Any:
    model = nn.Linear(4, 4)
    inner = ol.optimizer.SGD(learning_rate=0.1, parameters=model.parameters())
    ol.optimizer.RecomputeOptimizer(inner).set_checkpoints(given)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ol.recompute(nn.Tanh, X), r"class Tanh itself: make a layer first, Tanh\("),
        (lambda: ol.recompute([nn.Tanh()], X), r"ol\.recompute_sequential\(layers, x\)"),
        (lambda: ol.recompute_sequential([nn.Tanh], X), r"layers\[0\], takes .* Tanh itself"),
        (lambda: ol.recompute_sequential(nn.Tanh, X), "class Tanh itself"),
        (lambda: ol.rematerialize(keep=nn.Linear), "class Linear itself: make a layer first"),
        (lambda: ol.rematerialize(keep=np.tanh), "write keep='tanh'"),
        (lambda: ol.rematerialize(keep=[np.concatenate]), "write keep='concatenate'"),
        (lambda: ol.rematerialize(keep=nn.functional.gelu), "write keep='gelu'"),
        (lambda: checkpoints([nn.Linear]), "set_checkpoints .* class Linear itself"),
        (lambda: checkpoints(nn.Linear), "set_checkpoints .* class Linear itself"),
    ],
)
def test_what_to_write_is_said(call: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        call()


def test_what_was_dropped_is_said_rightly() -> None:
    x = ol.to_tensor(X, requires_grad=True)
    blocks = [ol.rematerialize(), ol.rematerialize(keep="sin"), ol.rematerialize(budget="1 MiB")]
    for block in blocks:
        with block:
            y = np.sin(x)
        y.sum().backward()
    assert [repr(block) for block in blocks] == [
        "<rematerialize: all dropped at once, 0 run again>",
        "<rematerialize: all dropped at once but what keep says, 0 run again>",
        "<rematerialize with a budget of 1 MiB: 0 dropped, 0 run again>",
    ]


def test_a_function_that_ran_otherwise_is_named_with_its_place() -> None:
    x, runs = ol.to_tensor(X, requires_grad=True), [0]

    def counting(x: Any) -> Any:
        runs[0] += 1
        return x * runs[0] * x

    line = counting.__code__.co_firstlineno
    for reentrant in (True, False):
        y = ol.recompute(counting, x, use_reentrant=reentrant)
        with pytest.raises(ol.autograd.RecomputationError) as error:
            y.sum().backward()
        assert f"recompute ran counting ({__file__}, line {line}) again" in str(error.value)
        assert "It reads runs from around it" in str(error.value)


def test_a_lambda_that_reads_the_variable_of_a_loop_is_told_to_bind_it() -> None:
    y = x = ol.to_tensor(X, requires_grad=True)
    for scale in (1.0, 2.0):
        y = ol.recompute(lambda x: np.sin(x * scale), y)  # noqa: B023
    with pytest.raises(
        ol.autograd.RecomputationError,
        match=r"reads scale from around it, .* bind it, lambda x, scale=scale: \.\.\.",
    ):
        y.sum().backward()
    assert x.grad is None
    block = nn.Sequential(nn.Dropout(0.5))
    z = ol.recompute(block, y)
    block.eval()
    with pytest.raises(
        ol.autograd.RecomputationError, match=r"recompute ran Sequential again"
    ) as e:
        z.sum().backward()
    assert "from around" not in str(e.value)
