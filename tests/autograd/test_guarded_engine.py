"""What the tape offers besides derivative rules, on guarded arrays (see `tests.guarded`)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd import Function, detect_anomaly, saved_tensors_hooks
from optlab.autograd.anomaly import AnomalyError
from optlab.autograd.operation import TABLE
from optlab.autograd.sparse import RowSparse, take_rows
from optlab.autograd.tape import ZERO
from optlab.autograd.tensor import Tensor, apply
from optlab.backend.arrays import MixedArraysError
from tests.guarded import GuardedArray

X = np.array([1.0, -2.0, 3.0])


def guarded(x: Any = X) -> GuardedArray:
    return GuardedArray(np.array(x, dtype=float))


def leaf(x: Any = X) -> Tensor:
    return ol.to_tensor(guarded(x), requires_grad=True)


def values(x: Any) -> Any:
    """Give what a device array, or a Tensor of one, holds; anything else is an error here."""
    array = x.data if isinstance(x, Tensor) else x
    assert isinstance(array, GuardedArray), type(array)
    return array.hidden.tolist()


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
        assert "t.numpy()" in message
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
    t.node.grad = ZERO  # what clear_grad() of optimizers puts there
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
    """A user's own operation."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class SumAndProduct(Function):
    """One with two outputs."""

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
    np.sum(product).backward()  # nothing arrives at the other output
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


def test_a_view_that_is_out_of_date_is_refused() -> None:
    t = leaf()
    y = t * 1.0
    view = y[1:]
    view += 1.0
    with pytest.raises(RuntimeError, match="written to through another"):
        np.sum(y)


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


# Gradients of few rows ----------------------------------------------------------------------------


def looked_up(table: Tensor, rows: Any) -> Tensor:
    return apply(TABLE[take_rows], (table,), {"rows": rows, "sparse": True})


@pytest.mark.parametrize("kind", [np.array, lambda rows: GuardedArray(np.array(rows)), list])
def test_row_sparse_gradients_stay_sparse_and_on_the_device(kind: Any) -> None:
    table = leaf(np.arange(12.0).reshape(4, 3))
    np.sum(looked_up(table, kind([2, 0, 2]))).backward()
    np.sum(looked_up(table, np.array([3, 2])) * 10.0).backward()
    found = table.grad
    assert isinstance(found, RowSparse)
    merged = found.merged()
    assert values(merged.rows) == [0, 2, 3]
    assert values(merged.values) == [[1.0] * 3, [12.0] * 3, [10.0] * 3]
    wanted = [[1.0] * 3, [0.0] * 3, [12.0] * 3, [10.0] * 3]
    assert values(found.dense()) == wanted
    assert values(found.copy().astype(np.float32).dense()) == wanted
    assert type(found.numpy()) is np.ndarray
    assert found.tolist() == wanted
    assert values(found * 2.0 + guarded(np.zeros((4, 3)))) == (2 * np.array(wanted)).tolist()


def test_a_row_sparse_gradient_meets_a_dense_one() -> None:
    table = leaf(np.arange(12.0).reshape(4, 3))
    y = np.sum(looked_up(table, np.array([1, 1]))) + np.sum(table)
    y.backward()
    assert values(table.grad) == [[1.0] * 3, [3.0] * 3, [1.0] * 3, [1.0] * 3]


def test_hooks_see_a_row_sparse_gradient_whole() -> None:
    table = leaf(np.arange(12.0).reshape(4, 3))
    table.register_hook(lambda g: g * 2)
    np.sum(looked_up(table, np.array([1]))).backward()
    assert values(table.grad)[1] == [2.0] * 3


# Transforms ---------------------------------------------------------------------------------------

A = np.array([[1.0, 2.0], [3.0, -1.0]])


def energy(x: Any) -> Any:
    return np.sum(x**3) + np.prod(x)


def curve(x: Any) -> Any:
    return np.stack([np.sum(x * x), np.sin(x[0]) * x[1]])


V = np.array([1.0, 0.5, -1.0])
TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda x, v: ol.grad(energy)(x),
    "value_and_grad": lambda x, v: ol.value_and_grad(energy)(x),
    "grad of several": lambda x, v: ol.grad(lambda a, b: np.sum(a * a * b), argnums=(0, 1))(x, v),
    "grad of a dict": lambda x, v: ol.grad(lambda d: np.sum(d["a"] * d["b"]))({"a": x, "b": v}),
    "grad of nothing": lambda x, v: ol.grad(lambda a, b: np.sum(a), argnums=1)(x, v),
    "grad twice": lambda x, v: ol.grad(lambda a: np.sum(ol.grad(energy)(a) * v))(x),
    "vjp": lambda x, v: (lambda y, pull: (y, *pull(y)))(*ol.vjp(curve, x)),
    "vjp of a container": lambda x, v: ol.vjp(lambda a: (a * a, np.sum(a)), x)[1]((v, v[0])),
    "jvp": lambda x, v: ol.jvp(curve, (x,), (v,)),
    "jvp of a constant": lambda x, v: ol.jvp(lambda a: v * 2.0, (x,), (v,)),
    "hvp": lambda x, v: ol.hvp(energy, x, v),
    "jacobian": lambda x, v: ol.jacobian(curve)(x),
    "jacobian of nothing": lambda x, v: ol.jacobian(lambda a: a[:0])(x),
    "hessian": lambda x, v: ol.hessian(energy)(x),
}


def flat(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    return [part for one in x for part in flat(one)] if isinstance(x, (tuple, list)) else [x]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_give_device_arrays_for_device_arrays(name: str) -> None:
    transform = TRANSFORMS[name]
    wanted = flat(transform(X, V))
    for wrap in (guarded, leaf):
        found = flat(transform(wrap(X), wrap(V)))
        assert len(found) == len(wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            assert isinstance(ours, Tensor) == (wrap is leaf)
            array = ours.data if wrap is leaf else ours
            assert isinstance(array, GuardedArray)
            np.testing.assert_allclose(array.hidden, theirs, rtol=1e-12)


def test_transforms_refuse_directions_of_numpy() -> None:
    with pytest.raises(MixedArraysError):
        ol.vjp(curve, guarded())[1](np.ones(2))
    with pytest.raises(MixedArraysError):
        ol.jvp(curve, (guarded(),), (V,))
    with pytest.raises(MixedArraysError):
        ol.hvp(energy, guarded(), V)


def test_ensembles_of_device_arrays() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])

    def f(row: Any) -> Any:
        return np.sum(row * row) * row

    np.testing.assert_allclose(values(ol.vmap(f)(guarded(x))), ol.vmap(f)(x))
    each = ol.vmap(ol.grad(lambda row: np.sum(row**3)))
    np.testing.assert_allclose(values(each(guarded(x))), 3 * x * x)
    t = leaf(x)
    np.sum(ol.vmap(f)(t)).backward()
    plain = ol.to_tensor(x, requires_grad=True)
    np.sum(ol.vmap(f)(plain)).backward()
    np.testing.assert_allclose(values(t.grad), plain.grad.numpy())


# Random -------------------------------------------------------------------------------------------

random = ol.numpy.random
P = np.array([0.7, 1.5, 2.5])
DRAWS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda p: random.normal(p, p * 0.5, size=(4, 3)),
    "normal of location": lambda p: random.normal(p, 0.5),
    "normal of scale": lambda p: random.normal(1.0, p),
    "uniform": lambda p: random.uniform(p, p + 1.0),
    "uniform from a number": lambda p: random.uniform(0.0, p),
    "laplace": lambda p: random.laplace(p, 2),
    "gumbel": lambda p: random.gumbel(p, np.float64(2)),
    "lognormal": lambda p: random.lognormal(p, 0.1),
    "exponential": lambda p: random.exponential(p, size=(2, 3)),
    "gamma": lambda p: random.gamma(p, 2.0),
    "gamma of scale": lambda p: random.gamma(2.0, p),
    "beta": lambda p: random.beta(p, 1.5),
    "chisquare": lambda p: random.chisquare(p),
    "f": lambda p: random.f(p, 4.0),
    "standard_t": lambda p: random.standard_t(p + 2.0),
    "dirichlet": lambda p: random.dirichlet(p, size=2),
    "weibull": lambda p: random.weibull(p),
    "pareto": lambda p: random.pareto(p),
    "power": lambda p: random.power(p),
    "rayleigh": lambda p: random.rayleigh(p),
    "triangular": lambda p: random.triangular(-1.0, 0.0, p),
    "multivariate normal": lambda p: random.multivariate_normal(p, np.diag(p), size=2),
    "choice": lambda p: random.choice(p, size=5),
    "permutation": lambda p: random.permutation(p),
    "ol.normal": lambda p: ol.normal(p, 1.0),
    "ol.uniform": lambda p: ol.uniform([2, 3], min=0.0, max=p),
    "dropout": lambda p: ol.nn.functional.dropout(p, 0.5),
}
WHOLE_DRAWS: dict[str, Callable[[Any], Any]] = {
    "poisson": lambda p: random.poisson(p),
    "binomial": lambda p: random.binomial(5, p / 3.0),
    "geometric": lambda p: random.geometric(p / 3.0),
    "wald": lambda p: random.wald(p, 1.0),
    "noncentral": lambda p: random.noncentral_chisquare(p, 1.0),
    "choice by probabilities": lambda p: random.choice(p, size=5, p=p / p.sum()),
    "ol.bernoulli": lambda p: ol.bernoulli(p / 3.0),
    "ol.poisson": lambda p: ol.poisson(p),
    "ol.multinomial": lambda p: ol.multinomial(p, 2),
    "ol.multinomial again": lambda p: ol.multinomial(p, 6, replacement=True),
}


@pytest.mark.parametrize("name", DRAWS | WHOLE_DRAWS)
def test_draws_are_those_of_the_host_on_the_device(name: str) -> None:
    law = (DRAWS | WHOLE_DRAWS)[name]
    ol.seed(4)
    wanted = law(ol.to_tensor(P, requires_grad=name in DRAWS))
    ol.seed(4)
    t = ol.to_tensor(guarded(P), requires_grad=name in DRAWS)
    found = law(t)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(values(found), wanted.numpy(), rtol=1e-12)
    if name in DRAWS:
        np.sum(found * found).backward()
        plain = ol.to_tensor(P, requires_grad=True)
        ol.seed(4)
        again = law(plain)
        np.sum(again * again).backward()
        np.testing.assert_allclose(values(t.grad), plain.grad.numpy(), rtol=1e-9)


def test_wrong_parameters_are_seen_on_the_device() -> None:
    with pytest.raises(ValueError, match="scale that is 0 or more"):
        random.normal(0.0, leaf([1.0, -1.0]))
    with pytest.raises(ValueError, match="probabilities from 0 to 1"):
        ol.bernoulli(ol.to_tensor(guarded([2.0])))


# Networks -----------------------------------------------------------------------------------------

LABELS = np.array([1, 0])
LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda x, i: ol.nn.functional.softmax(x) * x,
    "cross_entropy": ol.nn.functional.cross_entropy,
    "cross_entropy of each": lambda x, i: ol.nn.functional.cross_entropy(x, i, "none"),
    "embedding": lambda x, i: ol.nn.functional.embedding(i, x, padding_idx=0) ** 2,
    "linear": lambda x, i: ol.nn.functional.linear(x, x.T, x[0, :2]) ** 2,
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", [np.array, GuardedArray])
def test_functions_of_networks(name: str, kind: Any) -> None:
    data = np.array([[0.5, -1.0, 2.0], [1.0, 0.0, 0.3]])
    plain, t = ol.to_tensor(data, requires_grad=True), leaf(data)
    wanted, found = LOSSES[name](plain, LABELS), LOSSES[name](t, kind(LABELS))
    np.sum(wanted).backward()
    np.sum(found).backward()
    np.testing.assert_allclose(values(found), wanted.numpy(), rtol=1e-12)
    np.testing.assert_allclose(values(t.grad), plain.grad.numpy(), rtol=1e-12)


def test_parameters() -> None:
    p = ol.nn.Parameter(guarded())
    assert type(p.numpy()) is np.ndarray
    assert repr(p) == repr(ol.nn.Parameter(X))
    p.set_value(guarded([1.0, 2.0, 3.0]))
    assert values(p) == [1.0, 2.0, 3.0]
    with pytest.raises(MixedArraysError, match="the value is a numpy"):
        p.set_value(X)


# Indices ------------------------------------------------------------------------------------------

INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "getitem": lambda t, i: t[i],
    "getitem and slice": lambda t, i: t[i, 1:],
    "take": lambda t, i: np.take(t, i, axis=0),
    "delete": lambda t, i: np.delete(t, i, axis=1),
    "insert": lambda t, i: np.insert(t, i, 7.0, axis=0),
    "array_split": lambda t, i: np.array_split(t, i, axis=1)[1],
    "repeat": lambda t, i: np.repeat(t, i, axis=0),
    "reduceat": lambda t, i: np.add.reduceat(t, i),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("kind", [np.array, lambda i: GuardedArray(np.array(i))])
def test_indices_lie_anywhere(name: str, kind: Any) -> None:
    indexed = INDEXED[name]
    data = np.arange(6.0).reshape(2, 3)
    plain = ol.to_tensor(data, requires_grad=True)
    wanted = indexed(plain, np.array([0, 1]))
    t = leaf(data)
    found = indexed(t, kind([0, 1]))
    assert values(found) == wanted.tolist()
    np.sum(found * found).backward()
    np.sum(wanted * wanted).backward()
    assert values(t.grad) == plain.grad.tolist()


def test_sums_over_bins_of_numbers_on_the_device() -> None:
    t = leaf()
    found = np.bincount(GuardedArray(np.array([0, 2, 0])), t)
    assert values(found) == [4.0, 0.0, -2.0]
    np.sum(found * found).backward()
    assert values(t.grad) == [8.0, -4.0, 8.0]
    with pytest.raises(MixedArraysError):
        np.bincount(np.array([0, 2, 0]), t)


def test_positions_are_found_on_the_device() -> None:
    t = leaf()
    assert values(t.argsort()) == [1, 0, 2]
    assert values(t.argpartition(0))[0] == 1
    assert values(np.argmax(t)) == 2
    assert values(t.nonzero()[0]) == [0, 1, 2]


def test_an_array_of_numpy_is_not_read_at_places_on_the_device() -> None:
    t = ol.to_tensor(X, requires_grad=True)
    with pytest.raises(TypeError):
        t[GuardedArray(np.array([0, 1]))]


def test_nothing_of_this_is_said_of_host_arrays() -> None:
    with pytest.raises(ValueError, match=re.escape("shape")):
        ol.to_tensor(X) + np.ones(2)
