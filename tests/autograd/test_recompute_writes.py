"""recompute and in-place writes, by the function itself or between the runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol

RecomputationError = ol.autograd.RecomputationError
WAYS: dict[str, Callable[..., Any]] = {
    "one operation": lambda f, x: ol.recompute(f, x),
    "its operations": lambda f, x: ol.recompute(f, x, use_reentrant=False),
    "sequential": lambda f, x: ol.recompute_sequential([f], x),
    "revolve": lambda f, x: ol.recompute_sequential([f, lambda y: y * 1.0], x, segments="revolve"),
    "nested": lambda f, x: ol.recompute(lambda x: ol.recompute(f, x) * 1.0, x),
}
ALL = pytest.mark.parametrize("way", WAYS)
MILLION = 1_000_000

BETWEEN: dict[str, Callable[[Any], Any]] = {
    "item": lambda b: b.__setitem__(12347, 5.0),
    "set_value": lambda b: b.set_value(np.where(np.arange(MILLION) == 12347, 5.0, 1.0)),
    "*=": lambda b: b.__imul__(np.where(np.arange(MILLION) == 12347, 5.0, 1.0)),
    "view": lambda b: b[12300:12400].__setitem__(47, 5.0),
}


@ALL
@pytest.mark.parametrize("how", BETWEEN)
def test_one_element_of_a_million_that_changed_between(way: str, how: str) -> None:
    x = ol.to_tensor(np.ones(MILLION), requires_grad=True)
    buffer = ol.to_tensor(np.ones(MILLION))
    y = WAYS[way](lambda x: np.sin(x * buffer) * x, x).sum()
    BETWEEN[how](buffer)
    with pytest.raises(RecomputationError, match=r"operation 1 of .* 'multiply' reads an array"):
        y.backward()
    assert x.grad is None


@ALL
def test_what_was_written_before_or_is_written_afterwards_is_no_change(way: str) -> None:
    x, buffer = ol.to_tensor(np.ones(3), requires_grad=True), ol.ones([3])
    buffer[0] = 2.0
    for _ in range(2):
        y = WAYS[way](lambda x: x * buffer * x, x).sum()
        y.backward()
        buffer[1] += 1.0
    np.testing.assert_array_equal(x.grad.numpy(), [8.0, 6.0, 4.0])


class Centred(ol.nn.Layer):
    """A layer that subtracts a running mean, which forward updates in one of three ways."""

    def __init__(self, how: str, reads: bool, size: int = 4) -> None:
        super().__init__()
        self.how, self.reads = how, reads
        self.register_buffer("mean", ol.zeros([size]))
        self.register_buffer("count", ol.to_tensor(0.0))
        self.linear = ol.nn.Linear(size, size)

    def forward(self, x: Any) -> Any:
        new = 0.9 * self.mean.detach() + 0.1 * x.detach().mean(axis=0)
        if self.how == "in place":
            self.mean[...] = new
        elif self.how == "combined":
            self.mean *= 0.9
            self.mean += 0.1 * x.detach().mean(axis=0)
        elif self.how == "parts":
            self.mean[0:2] *= 0.5
            self.mean[2:] += 1.0
        elif self.how == "set_value":
            self.mean.set_value(new)
        else:
            self.mean = new
        self.count += 1.0
        y = self.linear(x)
        return np.tanh(y - self.mean.numpy() if self.reads else y)


@ALL
@pytest.mark.parametrize("how", ["in place", "combined", "parts", "set_value", "anew"])
@pytest.mark.parametrize("reads", [False, True])
def test_buffers_that_forward_writes_are_written_once(way: str, how: str, reads: bool) -> None:
    def run(call: Callable[..., Any]) -> Any:
        ol.seed(0)
        layer, x = (
            Centred(how, reads),
            ol.to_tensor(np.linspace(-1, 1, 12, dtype="f").reshape(3, 4)),
        )
        losses = [call(layer, x * scale).sum() for scale in (1.0, 2.0)]  # twice before backward
        means = [layer.mean.numpy().tobytes()]
        for loss in losses:
            loss.backward(retain_graph=True)
            means.append(layer.mean.numpy().tobytes())
        losses[0].backward()
        return means, layer.count.numpy(), [p.grad.numpy().tobytes() for p in layer.parameters()]

    assert run(WAYS[way]) == run(lambda f, x: f(x))


@ALL
def test_spectral_norm(way: str) -> None:
    def run(call: Callable[..., Any]) -> Any:
        ol.seed(0)
        inside = ol.nn.utils.spectral_norm(ol.nn.Linear(4, 5))
        layer = ol.nn.Sequential(inside, ol.nn.Tanh())
        x = ol.to_tensor(np.linspace(-1, 1, 12, dtype="f").reshape(3, 4))
        (call(layer, x).sum() + call(layer, x * 2).sum()).backward()
        return [t.numpy().tobytes() for t in (inside.weight_u, inside.weight_orig.grad)]

    assert run(WAYS[way]) == run(lambda f, x: f(x))


def test_a_tensor_of_a_closure_is_written_once() -> None:
    for way in WAYS.values():
        x, calls = ol.to_tensor(np.ones(3), requires_grad=True), ol.zeros([1])

        def f(x: Any, calls: Any = calls) -> Any:
            calls[0] += 1.0
            return x * float(calls[0].numpy()) * x

        y = [way(f, x).sum() for _ in range(3)]
        y[1].backward()
        np.testing.assert_array_equal(x.grad.numpy(), [4.0] * 3)
        assert calls.numpy() == [3.0]


def test_a_large_tensor_is_written_once() -> None:
    for way in WAYS.values():
        x, seen = ol.to_tensor(np.ones(3), requires_grad=True), ol.zeros([MILLION])

        def f(x: Any, seen: Any = seen) -> Any:
            seen += 1.0
            return x * x

        way(f, x).sum().backward()
        assert seen.numpy()[0] == 1.0


def test_a_second_write_through_a_view_is_refused() -> None:
    for way in WAYS.values():
        x, table = ol.to_tensor(np.ones(3), requires_grad=True), ol.zeros([4, 4])

        def f(x: Any, table: Any = table) -> Any:
            row = table[1:2]
            row += 1.0
            return x * x

        y = way(f, x).sum()
        with pytest.raises(RecomputationError, match=r"a part of memory \(shape \(1, 4\)\)"):
            y.backward()
        assert table.numpy().sum() == 4.0


def test_threads_that_go_back_at_once_leave_buffers_as_they_were() -> None:
    ol.seed(0)
    layer, x = Centred("in place", False), ol.ones([3, 4])
    losses = [ol.recompute(layer, x).sum() for _ in range(8)]
    mean = layer.mean
    before = mean.numpy().copy()
    threads = [threading.Thread(target=loss.backward) for loss in losses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert layer.mean is mean
    assert layer.count.numpy() == 8
    np.testing.assert_array_equal(mean.numpy(), before)


class Guarded(Centred):
    """A layer that updates its mean in the first run only, and reads it afterwards."""

    def forward(self, x: Any) -> Any:
        if not ol.autograd.is_recomputing():
            self.mean[...] = 0.9 * self.mean + 0.1 * x.detach().mean(axis=0)
        return np.tanh(self.linear(x) - self.mean.numpy())


def beside(layer: Any, x: Any) -> Any:
    """Apply batch normalization and read its running mean afterwards."""
    return layer(x) * layer.buffers()[0].numpy()


@ALL
@pytest.mark.parametrize("kind", ["guarded", "batch norm"])
def test_statistics_that_are_read_after_they_were_written(way: str, kind: str) -> None:
    def run(call: Callable[..., Any]) -> Any:
        ol.seed(0)
        layer = ol.nn.Sequential(Guarded("", True)) if kind == "guarded" else ol.nn.BatchNorm1D(4)
        f = layer if kind == "guarded" else lambda x: beside(layer, x)
        x = ol.to_tensor(np.linspace(-1, 1, 12, dtype="f").reshape(3, 4))
        call(f, x).sum().backward()
        means = [b.numpy().tobytes() for b in layer.buffers()]
        return means, [p.grad.numpy().tobytes() for p in layer.parameters()]

    assert run(WAYS[way]) == run(lambda f, x: f(x))


def test_a_prediction_learns_nothing() -> None:
    layers = [ol.nn.utils.spectral_norm(ol.nn.Linear(4, 4)), ol.nn.BatchNorm1D(4)]
    before = [b.numpy().tobytes() for layer in layers for b in layer.buffers()]
    ol.memory.predict(layers, ol.ones([3, 4]), segments=1)
    assert [b.numpy().tobytes() for layer in layers for b in layer.buffers()] == before
