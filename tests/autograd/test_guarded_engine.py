"""Features of the tape besides derivative rules, on guarded arrays (see `tests.guarded`)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd import Function, detect_anomaly, saved_tensors_hooks
from optlab.autograd.tape.anomaly_mode import AnomalyError
from optlab.autograd.tape.nodes import ZERO
from optlab.backend.arrays import MixedArraysError
from tests.guarded import GuardedArray, guarded, leaf, values

X = np.array([1.0, -2.0, 3.0])


# Tensors ------------------------------------------------------------------------------------------


def test_to_tensor_copies_on_the_device() -> None:
    array = guarded()
    t = ol.to_tensor(array, requires_grad=True)
    array[0] = 9.0
    assert values(t) == X.tolist()
    assert ol.to_tensor(array, dtype="float32").dtype == np.float32
    assert values(ol.to_tensor(array, dtype="float32")) == [9.0, -2.0, 3.0]
    assert values(ol.to_tensor(t.detach(), requires_grad=True)) == X.tolist()


def test_requires_grad_can_be_set() -> None:
    t = ol.to_tensor(guarded())
    t.requires_grad = True
    np.sum(t * t).backward()
    assert values(t.grad) == [2.0, -4.0, 6.0]


def test_ways_out() -> None:
    t = leaf()
    on_host = t.numpy()
    assert type(on_host) is np.ndarray
    on_host[0] = 9.0
    assert values(t) == X.tolist()
    assert type(t.detach().numpy()) is np.ndarray
    assert t.tolist() == X.tolist()
    assert type(t[1].item()) is float
    assert t[1].item() == -2.0
    assert float(t[1].detach()) == -2.0
    assert int(ol.to_tensor(guarded(3.0))) == 3
    assert [10, 20, 30][ol.to_tensor(GuardedArray(np.array(1)))] == 20
    assert bool(t[0].detach() > 0)
    assert f"{t[0].detach():.2f}" == "1.00"
    assert len(t) == 3
    assert [row.item() for row in t] == X.tolist()


def test_repr_looks_as_on_the_host() -> None:
    assert repr(leaf()) == repr(ol.to_tensor(X, requires_grad=True))
    assert "Tensor" in str(ol.to_tensor(guarded(2.0)))


def test_no_way_out_by_accident() -> None:
    t = ol.to_tensor(guarded())
    for becomes in (np.asarray, np.array, lambda x: np.ones(3).__setitem__(slice(None), x)):
        with pytest.raises(MixedArraysError, match=r"t\.numpy\(\)"):
            becomes(t)
    assert not hasattr(t, "__cuda_array_interface__")
    assert not hasattr(leaf(), "__cuda_array_interface__")
    assert not hasattr(t, "__array_interface__")


def test_detach_shares_the_memory() -> None:
    t = leaf()
    assert t.detach().data is t.data
    assert not t.detach().requires_grad


def test_a_copy_is_a_leaf_of_its_own() -> None:
    t = leaf()
    again = copy.deepcopy(t)
    np.sum(again * again).backward()
    assert values(again.grad) == [2.0, -4.0, 6.0]
    assert t.grad is None


# Mixing -------------------------------------------------------------------------------------------

MIXTURES: dict[str, Callable[[Any, Any], Any]] = {
    "t + x": lambda t, x: t + x,
    "x + t": lambda t, x: x + t,
    "x @ t": lambda t, x: x @ t,
    "t > x": lambda t, x: t > x,
    "x > t": lambda t, x: x > t,
    "t == x": lambda t, x: t == x,
    "np.multiply": np.multiply,
    "np.maximum": np.maximum,
    "np.greater": np.greater,
    "np.concatenate": lambda t, x: np.concatenate([t, x]),
    "np.stack": lambda t, x: np.stack([x, t]),
    "np.where": lambda t, x: np.where(x > 0, t, t),
    "np.dot": np.dot,
    "np.einsum": lambda t, x: np.einsum("i,i->", t, x),
    "np.isclose": np.isclose,
    "np.insert": lambda t, x: np.insert(t, 0, x),
}


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("needs", [True, False])
def test_arrays_of_numpy_do_not_mix_in(name: str, needs: bool) -> None:
    mixture = MIXTURES[name]
    t = ol.to_tensor(guarded(), requires_grad=needs)
    for x in (X, ol.to_tensor(X), ol.to_tensor(X, requires_grad=True)):
        with pytest.raises(MixedArraysError) as caught:
            mixture(t, x)
        message = str(caught.value)
        assert "numpy.ndarray of shape (3,)" in message
        assert "tests.GuardedArray of shape (3,)" in message
        assert "t.to('cpu') or t.to('guarded')" in message
        assert "cupy.asarray" in message


def test_numbers_mix() -> None:
    t = leaf()
    y = 2 * t + np.float64(1) - True
    np.sum(np.float32(3) * y).backward()
    assert values(y) == (2 * X).tolist()
    assert values(t.grad) == [6.0, 6.0, 6.0]


def test_other_type_errors_keep_their_words() -> None:
    with pytest.raises(TypeError, match="dim"):
        np.sum(leaf(), dim=0)


# Backward -----------------------------------------------------------------------------------------


def test_backward_from_a_given_gradient() -> None:
    for given in (guarded([1.0, 10.0, 100.0]), ol.to_tensor(guarded([1.0, 10.0, 100.0]))):
        t = leaf()
        (t * t).backward(given)
        assert values(t.grad) == [2.0, -40.0, 600.0]
    t = leaf(2.0)
    (t * t).backward(3.0)
    assert values(t.grad) == 12.0


@pytest.mark.parametrize("given", [X, [1.0, 2.0, 3.0], ol.to_tensor(X)])
def test_backward_from_a_gradient_of_numpy_is_refused(given: Any) -> None:
    t = leaf()
    with pytest.raises(MixedArraysError, match="numpy"):
        (t * t).backward(given)
    on_host = ol.to_tensor(X, requires_grad=True)
    with pytest.raises(MixedArraysError, match="GuardedArray"):
        (on_host * on_host).backward(guarded())


def test_gradients_add_up() -> None:
    t = leaf()
    for _ in range(3):
        np.sum(t * t).backward()
    assert values(t.grad) == (6 * X).tolist()


def test_a_cleared_gradient_is_zeros_beside_the_values() -> None:
    t = leaf()
    np.sum(t * t).backward()
    t.node.grad = ZERO  # the value that clear_grad() of optimizers stores
    assert values(t.grad) == [0.0, 0.0, 0.0]
    np.sum(t * t).backward()
    assert values(t.grad) == (2 * X).tolist()


def test_setting_a_gradient() -> None:
    t = leaf()
    t.grad = guarded([1.0, 2.0, 3.0])
    assert values(t.grad) == [1.0, 2.0, 3.0]
    t.grad = ol.to_tensor(guarded([4.0, 5.0, 6.0]))
    assert values(t.grad) == [4.0, 5.0, 6.0]
    with pytest.raises(MixedArraysError, match="the gradient is a numpy"):
        t.grad = X
    assert values(t.grad) == [4.0, 5.0, 6.0]


def test_create_graph() -> None:
    t = leaf()
    np.sum(t**3).backward(create_graph=True)
    first, t.grad = t.grad, None
    np.sum(first).backward()
    assert values(t.grad) == (6 * X).tolist()


# Hooks --------------------------------------------------------------------------------------------


def test_hooks_see_and_replace_gradients_on_the_device() -> None:
    for replace in (lambda g: g * 10, lambda g: (g * 10).data):
        seen = []
        t = leaf()
        y = t * t
        y.register_hook(lambda g, seen=seen: seen.append(g))
        t.register_hook(replace)
        np.sum(y).backward()
        assert values(seen[0]) == [1.0, 1.0, 1.0]
        assert values(t.grad) == (20 * X).tolist()


@pytest.mark.parametrize("inner", [False, True])
def test_what_a_hook_returns_must_lie_on_the_device(inner: bool) -> None:
    t = leaf()
    y = t * t
    (y if inner else t).register_hook(lambda g: np.ones(3))
    with pytest.raises(MixedArraysError, match="what a hook returned is a numpy"):
        np.sum(y).backward()


def test_saved_tensors_hooks() -> None:
    t = leaf()
    with saved_tensors_hooks(lambda s: s.numpy(), lambda kept: GuardedArray(kept)):
        y = np.sum(np.exp(t) * t)
    y.backward()
    np.testing.assert_allclose(t.grad.numpy(), np.exp(X) * (1 + X))


def test_detect_anomaly() -> None:
    t = leaf([4.0, 0.0])
    with np.errstate(divide="ignore"), detect_anomaly():
        np.sum(np.sqrt(t[:1])).backward()
        with pytest.raises(AnomalyError, match=r"'log' gave -inf at element \[1\] of shape \(2,\)"):
            np.log(t)
        y = np.sum(np.sqrt(t))
        with pytest.raises(AnomalyError, match="the derivative of 'sqrt'"):
            y.backward()


class Cube(Function):
    """An operation defined by a user."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class SumAndProduct(Function):
    """An operation with two outputs."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a + b, a * b

    @staticmethod
    def backward(ctx: Any, of_sum: Any, of_product: Any) -> Any:
        a, b = ctx.saved_tensors
        return of_sum + of_product * b, of_sum + of_product * a


def test_functions_of_the_user() -> None:
    t = leaf()
    np.sum(Cube.apply(t)).backward(create_graph=True)
    first, t.grad = t.grad, None
    np.sum(first).backward()
    assert values(first) == (3 * X * X).tolist()
    assert values(t.grad) == (6 * X).tolist()
    a, b = leaf(), leaf([1.0, 1.0, 2.0])
    total, product = SumAndProduct.apply(a, b)
    np.sum(product).backward()  # no gradient arrives at the other output
    assert values(total) == [2.0, -1.0, 5.0]
    assert values(a.grad) == [1.0, 1.0, 2.0]


# In place -----------------------------------------------------------------------------------------


def test_writing_in_place_is_recorded() -> None:
    t, v = leaf(), leaf([5.0, 6.0])
    y = t * 1.0
    y[:2] = v
    y += t
    y *= 2.0
    np.sum(y * y).backward()
    total = np.array([6.0, 4.0, 6.0])
    assert values(y) == (2 * total).tolist()
    assert values(t.grad) == (8 * total * [1, 1, 2]).tolist()
    assert values(v.grad) == (8 * total[:2]).tolist()


@pytest.mark.parametrize("index", [[0, 2], np.array([0, 2]), GuardedArray(np.array([0, 2]))])
def test_writing_at_places(index: Any) -> None:
    t, v = leaf(), leaf([5.0, 6.0])
    y = t * 1.0
    y[index] = v
    np.sum(y * y).backward()
    assert values(y) == [5.0, -2.0, 6.0]
    assert values(t.grad) == [0.0, -4.0, 0.0]
    assert values(v.grad) == [10.0, 12.0]


def test_writing_through_a_mask() -> None:
    t = leaf()
    y = t * 1.0
    y[y < 0] = 0.0
    np.sum(y * y).backward()
    assert values(t.grad) == [2.0, 0.0, 6.0]


def test_what_backward_needs_is_not_overwritten_unnoticed() -> None:
    t = leaf()
    y = np.exp(t)
    z = np.sum(y)
    y += 1.0
    with pytest.raises(RuntimeError, match="written over"):
        z.backward()


def test_a_write_through_a_view_has_its_gradient_on_either_side() -> None:
    t = leaf()
    y = t * 1.0
    view, other = y[1:], y[:2]
    view *= 3.0
    np.sum(y).backward(retain_graph=True)
    assert values(t.grad) == [1.0, 3.0, 3.0]
    np.sum(other).backward()
    assert values(t.grad) == [2.0, 6.0, 3.0]


def test_a_leaf_is_not_overwritten_but_without_recording() -> None:
    t = leaf()
    with pytest.raises(TypeError, match="collects a gradient"):
        t += 1.0
    with ol.no_grad():
        t += 1.0
        t[0] = 7.0
    assert values(t) == [7.0, -1.0, 4.0]


@pytest.mark.parametrize(
    "write",
    [lambda y: y.__setitem__(slice(None), X), lambda y: y.__iadd__(X)],
    ids=["t[:] = x", "t += x"],
)
def test_writing_arrays_of_numpy_is_refused(write: Any) -> None:
    y = leaf() * 1.0
    with pytest.raises(MixedArraysError, match=r"numpy.* of shape"):
        write(y)
    with pytest.raises(MixedArraysError, match=r"numpy.* of shape"):
        write(y.detach())
    assert values(y) == X.tolist()


def test_nothing_of_this_is_said_of_host_arrays() -> None:
    with pytest.raises(ValueError, match=re.escape("shape")):
        ol.to_tensor(X) + np.ones(2)
