"""Transforms, random draws, networks, indices and row-sparse gradients on guarded arrays.

See `tests.guarded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.manipulation.embedding import take_rows
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.arrays import MixedArraysError
from tests.guarded import GuardedArray, guarded, leaf, values

X = np.array([1.0, -2.0, 3.0])


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
    "cross_entropy of each": lambda x, i: ol.nn.functional.cross_entropy(x, i, reduction="none"),
    "embedding": lambda x, i: ol.nn.functional.embedding(i, x, padding_idx=0) ** 2,
    "linear": lambda x, i: ol.nn.functional.linear(x, x.T, x[0, :2]) ** 2,
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", [np.ndarray.tolist, GuardedArray])
def test_functions_of_networks(name: str, kind: Any) -> None:
    data = np.array([[0.5, -1.0, 2.0], [1.0, 0.0, 0.3]])
    plain, t = ol.to_tensor(data, requires_grad=True), leaf(data)
    wanted, found = LOSSES[name](plain, LABELS), LOSSES[name](t, kind(LABELS))
    np.sum(wanted).backward()
    np.sum(found).backward()
    np.testing.assert_allclose(values(found), wanted.numpy(), rtol=1e-12)
    np.testing.assert_allclose(values(t.grad), plain.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["cross_entropy", "embedding"])
def test_labels_and_rows_stay_where_they_are(name: str) -> None:
    with pytest.raises(MixedArraysError, match="on cpu, but goes with"):
        LOSSES[name](leaf([[0.5, -1.0, 2.0], [1.0, 0.0, 0.3]]), LABELS)


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


# Row-sparse gradients -----------------------------------------------------------------------------


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
