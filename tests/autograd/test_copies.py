"""Tensors can be copied, pickled, sent to other processes, and referred to weakly."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import optlab as ol


def _pickled(t: Any) -> Any:
    return pickle.loads(pickle.dumps(t))


def _leaf() -> ol.Tensor:
    return ol.to_tensor([1.0, 2.0], requires_grad=True)


MADE = {
    "leaf": _leaf,
    "constant": lambda: _leaf().detach(),
    "parameter": lambda: ol.Parameter([1.0]),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("again", [copy.deepcopy, _pickled])
def test_a_copy_has_memory_and_a_gradient_of_its_own(make: Any, again: Any) -> None:
    t = make()
    twin = again(t)
    assert type(twin) is type(t)
    assert twin.requires_grad == t.requires_grad
    assert np.array_equal(twin.data, t.data)
    assert not np.shares_memory(twin.data, t.data)
    if t.requires_grad:
        np.sum(twin * twin).backward()
        assert np.array_equal(twin.grad.numpy(), 2 * t.data)
        assert t.grad is None


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_shallow_copy_is_another_tensor_of_the_same_array(make: Any) -> None:
    t = make()
    twin = copy.copy(t)
    assert twin is not t
    assert type(twin) is type(t)
    assert twin.data is t.data
    assert twin.node is t.node


def test_a_copied_result_leads_to_the_copied_leaf() -> None:
    x = _leaf()
    y, leaf = copy.deepcopy((x**2, x))
    np.sum(y).backward()
    assert leaf.grad.tolist() == [2.0, 4.0]
    assert x.grad is None


def test_a_weak_reference_ends_with_the_tensor() -> None:
    x = _leaf()
    y = x * 2
    gone = [weakref.ref(y), weakref.ref(x)]
    assert gone[0]() is y
    del x, y
    gc.collect()
    assert [one() for one in gone] == [None, None]


def _doubled(connection: Any) -> None:
    t = connection.recv()
    connection.send((t * 2, t.requires_grad))


def test_a_tensor_goes_to_another_process_and_back() -> None:
    context: Any = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_doubled, args=(there,), daemon=True)
    process.start()
    here.send(ol.to_tensor([1.0, 2.0]))
    assert here.poll(60)
    twice, needs_gradient = here.recv()
    process.join(60)
    assert isinstance(twice, ol.Tensor)
    assert twice.tolist() == [2.0, 4.0]
    assert process.exitcode == 0
    assert not needs_gradient
