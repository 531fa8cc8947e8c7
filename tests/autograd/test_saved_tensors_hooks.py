"""saved_tensors_hooks: which values are packed, and that backward uses the unpacked ones."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape.slow_path import slow_path

hooks = ol.autograd.saved_tensors_hooks


def leaf(*values: float) -> ol.Tensor:
    return ol.to_tensor(values, dtype="float64", requires_grad=True)


def test_each_saved_value_is_packed_once_and_unpacked_when_backward_comes() -> None:
    packed: list[Any] = []
    unpacked: list[int] = []

    def pack(t: ol.Tensor) -> int:
        assert isinstance(t, ol.Tensor)
        assert not t.requires_grad
        packed.append(t.numpy())
        return len(packed) - 1

    def unpack(place: int) -> Any:
        unpacked.append(place)
        return packed[place]

    x = leaf(1.0, 2.0)
    with hooks(pack, unpack):
        loss = np.sum(np.exp(x) * 3.0)
    assert [array.tolist() for array in packed] == [np.exp([1.0, 2.0]).tolist()]
    assert unpacked == []
    loss.backward()
    assert unpacked == [0]
    np.testing.assert_array_equal(x.grad.numpy(), 3.0 * np.exp([1.0, 2.0]))


def test_backward_uses_what_unpack_gives() -> None:
    x = leaf(1.0, 2.0)
    with hooks(lambda t: None, lambda _: np.array([10.0, 20.0])):
        y = x * x
    y.backward()
    assert x.grad.tolist() == [20.0, 40.0]


def test_rounding_to_float16() -> None:
    x = leaf(0.1, 0.2)
    with hooks(lambda t: t.numpy().astype(np.float16), lambda a: a.astype(np.float64)):
        np.sum(np.tanh(x)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 - np.tanh([0.1, 0.2]) ** 2, rtol=1e-3)
    assert x.grad.tolist() != (1 - np.tanh([0.1, 0.2]) ** 2).tolist()


def test_saving_to_a_file(tmp_path: Any) -> None:
    def pack(t: ol.Tensor) -> Any:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, t.numpy())
        return path

    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with hooks(pack, np.load):
        loss = np.sum(np.tanh(x * w) ** 2)
    loss.backward()
    assert len(list(tmp_path.iterdir())) == 4
    expected = ol.grad(lambda x: np.sum(np.tanh(x * np.array([3.0, 4.0])) ** 2))(
        np.array([1.0, 2.0])
    )
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_the_innermost_pair_applies_and_outside_none_does() -> None:
    seen: list[str] = []

    def mark(name: str) -> Any:
        return hooks(lambda t: seen.append(name) or t, lambda t: t)

    x = leaf(1.0)
    with mark("outer"):
        np.exp(x)
        with mark("inner"):
            np.exp(x)
        np.exp(x)
    np.exp(x)
    assert seen == ["outer", "inner", "outer"]


def test_another_thread_has_hooks_of_its_own() -> None:
    seen: list[Any] = []
    x = leaf(1.0)
    with hooks(seen.append, lambda t: t):
        thread = threading.Thread(target=lambda: np.exp(x))
        thread.start()
        thread.join()
    assert seen == []


def test_what_backward_does_not_keep_is_not_packed() -> None:
    seen: list[Any] = []
    with hooks(seen.append, lambda t: t):
        np.sum(leaf(1.0) + 2.0)
        with ol.no_grad():
            np.exp(leaf(1.0))
        np.exp(ol.to_tensor([1.0]))
    assert seen == []


def test_double_backward() -> None:
    x = leaf(2.0)
    with hooks(lambda t: t.numpy(), lambda a: a):
        y = x**3
    y.backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.backward()
    assert x.grad.tolist() == [12.0]


def test_operations_with_several_inputs_saved() -> None:
    x, m = leaf(1.0, 2.0), ol.to_tensor(np.eye(2) * 3.0, requires_grad=True)
    kept: list[Any] = []
    with hooks(lambda t: kept.append(t) or t, lambda t: t):
        np.sum(m @ x).backward()
    assert sorted(t.shape for t in kept) == [(2,), (2, 2)]
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("given", [np.zeros(3), np.zeros(2, np.float32), None, "gone"])
def test_an_unpack_that_gives_something_else_is_said(given: Any) -> None:
    x = leaf(1.0, 2.0)
    with hooks(lambda t: t, lambda t: given):
        y = np.exp(x)
    with pytest.raises(ValueError, match=r"unpack must give back.*shape"):
        y.backward()


def test_errors_of_the_hooks_come_through_and_leave_no_trace() -> None:
    x = leaf(1.0)

    def broken(t: Any) -> Any:
        raise OSError("disk full")

    before = slow_path.any
    with pytest.raises(OSError, match="disk full"), hooks(broken, broken):
        np.exp(x)
    assert slow_path.any == before
    np.exp(x).backward()
    with pytest.raises(TypeError, match="pack must be a function"):
        hooks(3, broken)  # type: ignore[arg-type]


def test_what_operations_with_several_outputs_save_is_packed_too() -> None:
    seen: list[Any] = []
    x = ol.to_tensor(np.diag([1.0, 2.0]), requires_grad=True)
    with hooks(lambda t: seen.append(t.shape) or t.numpy(), lambda a: a):
        values, vectors = np.linalg.eigh(x)
    assert (2, 2) in seen
    (np.sum(values**2) + np.sum(vectors**4)).backward()
    assert np.isfinite(x.grad.numpy()).all()
