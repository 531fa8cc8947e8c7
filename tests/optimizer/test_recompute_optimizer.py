"""RecomputeOptimizer: dropped values, messages, and that no state is left behind."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape import saved_tensors
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events
from tests.autograd.recomputed import Block

X = np.random.default_rng(0).standard_normal((32, 16)).astype("float32")


def network(n: int = 4) -> tuple[list[Any], Any]:
    ol.seed(0)
    blocks = [Block(16, 32) for _ in range(n)]
    model = ol.nn.Sequential(*blocks)
    return blocks, ol.optimizer.Adam(0.01, parameters=model.parameters())


def forward(blocks: list[Any]) -> Any:
    x = ol.to_tensor(X)
    for block in blocks:
        x = block(x)
    return (x**2).mean()


@contextmanager
def recomputed() -> Iterator[list[str]]:
    """Record the names of the operations that run again."""
    names: list[str] = []

    def note(piece: Any, y: Any) -> None:
        names.append(piece.name)

    with events.operation_recomputed.subscribed(note):
        yield names


@pytest.mark.parametrize("how", ["minimize", "backward and step", "backward and apply_gradients"])
def test_every_way_to_take_a_step(how: str) -> None:
    def trained(wrap: bool) -> list[bytes]:
        blocks, optimizer = network()
        if wrap:
            optimizer = ol.optimizer.RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(blocks[1::2])
        for _ in range(3):
            loss = forward(blocks)
            if how == "minimize":
                optimizer.minimize(loss)
            elif how == "backward and step":
                loss.backward()
                optimizer.step()
            else:
                pairs = optimizer.backward(loss)
                optimizer.apply_gradients(pairs)
            optimizer.clear_grad()
        return [p.numpy().tobytes() for block in blocks for p in block.parameters()]

    assert trained(wrap=True) == trained(wrap=False)


def test_segments_before_checkpoints_run_again_and_what_follows_the_last_does_not() -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    counts = []
    for checkpoints in ([], [blocks[0]], [blocks[1], blocks[2]], blocks):
        optimizer.set_checkpoints(checkpoints)
        assert optimizer.checkpoints == list(checkpoints)
        with recomputed() as names:
            forward(blocks).backward()
        counts.append(len(names))
    assert counts[0] == 0 < counts[1] < counts[2] < counts[3]


def test_tensors_close_their_segment_when_they_are_given() -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    x = ol.to_tensor(X)
    for block in blocks[:3]:
        x = block(x)
    middle = x
    loss = (blocks[3](x) ** 2).mean()
    optimizer.set_checkpoints([middle])
    with recomputed() as names:
        loss.backward()
    assert len(names) > 3
    with recomputed() as names:
        forward(blocks).backward()
    assert names == []


def test_a_tensor_from_before_the_optimizer_warns() -> None:
    blocks, adam = network()
    y = blocks[0](ol.to_tensor(X))
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    with pytest.warns(UserWarning, match=r"nothing can be dropped .*shape \(32, 16\)"):
        optimizer.set_checkpoints([y])


@pytest.mark.parametrize("wrong", ["blocks", 3, None, [3], ["a"], [np.ones(3)]])
def test_wrong_checkpoints_are_said_and_change_nothing(wrong: Any) -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints(blocks[:1])
    with pytest.raises(TypeError, match="checkpoint"):
        optimizer.set_checkpoints(wrong)
    assert optimizer.checkpoints == blocks[:1]


def test_it_ends_with_the_optimizer_also_where_copies_were_made() -> None:
    gc.collect()
    before = slow_path.any
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints(blocks)
    twin = copy.deepcopy(optimizer)
    assert saved_tensors.innermost() is not None
    del optimizer
    gc.collect()
    del twin
    gc.collect()
    assert saved_tensors.innermost() is None
    assert slow_path.any == before
    with recomputed() as names:
        forward(blocks).backward()
    assert names == []


def test_graphs_and_arrays_go_with_their_last_reference() -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints(blocks[1::2])

    def step(backward: bool) -> list[Any]:
        y = blocks[0](ol.to_tensor(X))
        loss = forward(blocks)
        if backward:
            loss.backward()
        return [weakref.ref(one) for one in (y.data, y.node, loss.node)]

    step(backward=True)
    gc.collect()
    gc.disable()
    try:
        for backward in (True, False):
            assert [one() for one in step(backward)] == [None] * 3
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_step_between_forward_and_backward_is_said() -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints(blocks)
    loss = forward(blocks)
    forward(blocks).backward()
    optimizer.step()
    optimizer.clear_grad()
    with pytest.raises(RuntimeError, match=r"step\(\) has written over"):
        loss.backward()


def test_its_state_goes_through_state_dict_and_load() -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints(blocks[1:2])
    optimizer.minimize(forward(blocks))
    state = optimizer.state_dict()
    other_blocks, other_adam = network()
    other = ol.optimizer.RecomputeOptimizer(other_adam)
    other.load(state)
    for name, value in other.state_dict().items():
        if hasattr(value, "numpy"):
            np.testing.assert_array_equal(value.numpy(), state[name].numpy())
    assert other_blocks


def test_several_outputs_and_double_backward() -> None:
    def gradients(wrap: bool) -> list[bytes]:
        blocks, adam = network(2)
        holder = ol.optimizer.RecomputeOptimizer(adam) if wrap else None
        if holder is not None:
            holder.set_checkpoints(blocks)
        x = ol.to_tensor(X[:16], requires_grad=True)
        y = blocks[0](x)
        values, vectors = np.linalg.eigh((y.T @ y) * 0.1 + np.eye(16, dtype="float32") * x[0])
        loss = values.sum() + (blocks[1](vectors) ** 2).sum()
        loss.backward(create_graph=True)
        slope, x.grad = x.grad, None
        (slope * slope).sum().backward()
        return [x.grad.numpy().tobytes()]

    assert gradients(wrap=True) == gradients(wrap=False)


def test_a_sequential_is_one_layer_and_no_list() -> None:
    optimizer = ol.optimizer.RecomputeOptimizer(ol.optimizer.SGD(0.1))
    with pytest.raises(TypeError, match="a list of Layers or Tensors"):
        optimizer.set_checkpoints(ol.nn.Sequential(ol.nn.Linear(2, 2), ol.nn.Tanh()))
    with pytest.raises(TypeError, match="got one of type ndarray"):
        optimizer.set_checkpoints([np.zeros((1000, 1000))])


def test_checkpoints_that_drop_nothing_are_said_once() -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints([ol.nn.Tanh()])
    with pytest.warns(UserWarning, match="none of the checkpoint Layers ran"):
        optimizer.minimize(forward(blocks))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.minimize(forward(blocks))
        optimizer.set_checkpoints(blocks[:1])
        optimizer.minimize(forward(blocks))


def test_tensors_of_one_step_are_none_of_the_next() -> None:
    blocks, adam = network()
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    hidden = blocks[0](ol.to_tensor(X[:16]))
    optimizer.set_checkpoints([hidden])
    optimizer.minimize((hidden**2).sum())
    with pytest.warns(UserWarning, match="Tensors are checkpoints of one step alone"):
        optimizer.minimize(forward(blocks))


def test_training_goes_on_with_recomputation_or_without_from_the_state_of_either():
    def make(wrap):
        ol.seed(0)
        model = ol.nn.Sequential(ol.nn.Linear(4, 4), ol.nn.Tanh(), ol.nn.Linear(4, 1))
        optimizer = wrap(ol.optimizer.Adam(0.1, parameters=model.parameters()))
        return model, optimizer

    def checkpointed(adam):
        return ol.optimizer.RecomputeOptimizer(adam)

    for first, second in [(checkpointed, lambda adam: adam), (lambda adam: adam, checkpointed)]:
        (model, one), (twin, other) = make(first), make(second)
        for optimizer, network in ((one, model), (other, twin)):
            if hasattr(optimizer, "set_checkpoints"):
                optimizer.set_checkpoints([network[1]])
        (model(ol.ones([2, 4])) ** 2).sum().backward()
        one.step()
        twin.set_state_dict(model.state_dict())
        other.set_state_dict(one.state_dict())
        assert {n: str(v) for n, v in other.state_dict().items()} == {
            n: str(v) for n, v in one.state_dict().items()
        }
        assert other.state_dict()["0.weight.t"] == 1


def test_that_checkpoints_were_never_set_is_said_once():
    w = ol.Parameter([1.0])
    optimizer = ol.optimizer.RecomputeOptimizer(ol.optimizer.SGD(0.1, parameters=[w]))
    with pytest.warns(UserWarning, match="no checkpoints were set"):
        optimizer.minimize((w * w).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.minimize((w * w).sum())
