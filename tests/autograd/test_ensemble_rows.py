"""Every function of the gradient checks, on an ensemble and member by member."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from tests.autograd.rows import ROWS, Case


def _param(function: Any, case: Case) -> Any:
    return pytest.param(case, id=case.label)


CASES = [_param(function, case) for function, row in ROWS.items() for case in row]

#: Functions whose results differ in length between members, or that read values: refused by name.
REFUSED = frozenset(
    "extract piecewise trim_zeros union1d unique unique_all unique_counts unique_inverse "
    "unique_values".split()
)


def members_near(x: np.ndarray, count: int) -> np.ndarray:
    """Return copies of `x`, each with different small noise."""
    noise = np.random.default_rng((count, *x.shape)).uniform(-1e-3, 1e-3, (count, *x.shape))
    return np.asarray(x + noise)


def sizes_that_coincide(args: tuple[np.ndarray, ...]) -> int:
    """Return a number of members that equals the length of some axis."""
    lengths = [length for x in args for length in x.shape if length > 1]
    return lengths[-1] if lengths else 2


def weight(shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape))


def value_and_gradients(case: Case, args: Any) -> tuple[Any, Any]:
    y, pullback = ol.vjp(case.f, *args)
    return y, pullback(weight(y.shape))


def gradient_of_gradients(case: Case, args: Any) -> Any:
    def weighted(*args: Any) -> Any:
        gradients = value_and_gradients(case, args)[1]
        return sum(np.sum(g * weight(g.shape)) for g in gradients)

    return ol.grad(weighted, range(len(args)))(*args)


def compare(case: Case, compute: Any) -> None:
    """Compute on an ensemble and member by member, and compare all results."""
    count = sizes_that_coincide(case.args)
    stacked = [members_near(x, count) for x in case.args]
    try:
        together = compute(case, [EnsembleArray(x) for x in stacked])
    except EnsembleError:
        if case.label.split()[0] in REFUSED:
            return
        raise
    for k in range(count):
        alone = compute(case, [x[k] for x in stacked])
        for got, wanted in zip(together, alone, strict=True):
            assert got.shape == wanted.shape
            assert got.dtype == wanted.dtype
            member = got.members[k] if isinstance(got, EnsembleArray) else got
            np.testing.assert_allclose(member, wanted, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("case", CASES)
def test_an_ensemble_equals_separate_runs(case: Case) -> None:
    def value_and_all(case: Case, args: Any) -> Any:
        y, gradients = value_and_gradients(case, args)
        return y, *gradients

    compare(case, value_and_all)


@pytest.mark.parametrize("case", CASES[::4])
def test_second_derivatives_of_an_ensemble_are_those_of_its_members(case: Case) -> None:
    compare(case, gradient_of_gradients)


#: NumPy does not dispatch on the argument of `full_like` that differs from member to member. The
#: others write in place, which Tensors record; an array of many members is refused by name.
NOT_DISPATCHED = ("full_like", "fill_diagonal", "put", "place")


def loop(case: Case, stacked: list[np.ndarray]) -> np.ndarray:
    """Return what a function gives for one member after the other, as one array."""
    alone = [case.f(*[x[k] for x in stacked]) for k in range(len(stacked[0]))]
    return np.stack([y.numpy() if isinstance(y, ol.Tensor) else np.asarray(y) for y in alone])


@pytest.mark.parametrize(
    "case", [_param(function, case) for function, row in ROWS.items() for case in row[:6]]
)
def test_vmap_gives_arrays_for_arrays_and_tensors_for_tensors(case: Case) -> None:
    stacked = [members_near(x, 2) for x in case.args]
    try:
        y = ol.vmap(case.f)(*stacked)
    except EnsembleError:
        assert case.label.split()[0] in REFUSED or case.label.startswith(NOT_DISPATCHED)
        return
    assert type(y) is np.ndarray
    np.testing.assert_allclose(y, loop(case, stacked), rtol=1e-10, atol=1e-11)
    z = ol.vmap(case.f)(*[ol.to_tensor(x) for x in stacked])
    assert isinstance(z, ol.Tensor)
    np.testing.assert_allclose(z.numpy(), y, rtol=1e-10, atol=1e-11)
