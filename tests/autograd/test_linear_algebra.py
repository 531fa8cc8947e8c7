"""Linear algebra: conventions, refusals, singular and repeated cases, and results of other engines.

The gradients of every function, to second order, are checked by `test_rules` on its rows.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.autograd.rows import numbers
from tests.autograd.rows.table import NUMPY

TURN = np.linalg.qr(numbers((3, 3)))[0]
#: A symmetric matrix with a repeated eigenvalue, up to rounding.
TWICE = TURN @ np.diag([1.0, 1.0, 3.0]) @ TURN.T
#: Not square, with a repeated singular value.
TWICE_TALL = np.vstack([TWICE, TURN])
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
WEIGHTS = numbers((3, 3), seed=7)
ROTATION = np.array([[0.0, 1.0], [-1.0, 0.0]])


def slope(f: Any, x: Any) -> np.ndarray:
    """Return the gradient of the sum of f."""
    return np.asarray(ol.grad(lambda x: np.sum(f(x)))(np.asarray(x)))


def curvature(f: Any, x: Any) -> np.ndarray:
    """Return the Hessian of the sum of f, as a matrix."""
    x = np.asarray(x)
    return np.asarray(ol.hessian(lambda x: np.sum(f(x)))(x)).reshape(x.size, x.size)


# Norms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ord", [None, 2, 1, np.inf, -np.inf, 0, 3, 2.5, 1.5, 0.5])
def test_a_norm_of_vectors_is_flat_at_zero(ord: Any) -> None:
    f = lambda x: np.linalg.norm(x, ord, axis=0)  # noqa: E731
    x = np.array([[0.0, 3.0], [0.0, 4.0]])
    np.testing.assert_array_equal(slope(f, x)[:, 0], 0.0)
    assert np.all(np.isfinite(curvature(f, x)))
    np.testing.assert_array_equal(curvature(f, np.zeros((2, 1))), 0.0)


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf])
def test_a_norm_of_matrices_is_flat_at_zero(ord: Any) -> None:
    f = lambda x: np.linalg.norm(x, ord)  # noqa: E731
    np.testing.assert_array_equal(slope(f, np.zeros((2, 3))), 0.0)
    assert np.all(np.isfinite(curvature(f, np.zeros((2, 3)))))


@pytest.mark.parametrize("ord", [1, 3, 1.5, 0.5])
def test_an_element_that_is_zero_has_slope_zero(ord: float) -> None:
    f = lambda x: np.linalg.norm(x, ord)  # noqa: E731
    found = slope(f, [0.0, -2.0, 1.0])
    assert found[0] == 0
    np.testing.assert_allclose(found[1:], slope(f, [-2.0, 1.0]), rtol=1e-14)
    assert np.all(np.isfinite(curvature(f, [0.0, -2.0, 1.0])))


def test_what_ties_for_a_norm_shares_its_gradient() -> None:
    assert slope(lambda x: np.linalg.norm(x, np.inf), [3.0, 1.0, -3.0]).tolist() == [0.5, 0, -0.5]
    assert slope(lambda x: np.linalg.norm(x, -np.inf), [3.0, 1.0, -1.0]).tolist() == [0, 0.5, -0.5]
    tied = np.array([[1.0, 2.0], [3.0, -2.0]])  # both columns add up to 4
    assert slope(lambda x: np.linalg.norm(x, 1), tied).tolist() == [[0.5, 0.5], [0.5, -0.5]]
    np.testing.assert_allclose(
        slope(lambda x: np.linalg.norm(x, 2), np.diag([2.0, 2.0])), np.diag([0.5, 0.5])
    )


def test_powers_in_a_norm_neither_overflow_nor_vanish() -> None:
    x = np.array([3e200, 4e200])
    np.testing.assert_allclose(
        ol.grad(lambda x: np.linalg.norm(x, 1.5))(x),
        ol.grad(lambda x: np.linalg.norm(x, 1.5))(x / 1e200),
    )


def test_norms_of_nothing() -> None:
    for ord in (None, 1, 2, np.inf):
        f = lambda x, ord=ord: np.linalg.norm(x, ord, axis=1)  # noqa: E731
        assert f(ol.to_tensor(np.ones((2, 0)), requires_grad=True)).tolist() == [0.0, 0.0]
        assert slope(f, np.ones((2, 0))).shape == (2, 0)


def test_norms_of_whole_numbers_are_floating() -> None:
    t = ol.to_tensor(np.array([[3, 0], [4, 0]]))
    for ord in (None, 0, 1, -1.5, 3):
        with np.errstate(divide="ignore"):
            got, wanted = np.linalg.norm(t, ord, 0), np.linalg.norm(t.numpy(), ord, 0)
        assert got.dtype == np.float64
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-14)


# Determinants -------------------------------------------------------------------------------------


def minors(x: np.ndarray) -> np.ndarray:
    """Return the cofactors by their definition."""
    return np.array(
        [
            [
                (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
                for j in range(len(x))
            ]
            for i in range(len(x))
        ]
    )


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_the_gradient_of_a_determinant_is_its_cofactors_at_any_rank(rank: int) -> None:
    x = numbers((4, rank)) @ numbers((rank, 4))
    np.testing.assert_allclose(slope(np.linalg.det, x), minors(x), rtol=1e-9, atol=1e-12)


def test_the_second_derivative_of_a_determinant_at_any_rank() -> None:
    found = curvature(np.linalg.det, np.outer([1.0, 2.0, -1.0], [1.0, 0.5, 2.0])).reshape([3] * 4)
    levi_civita = np.zeros((3, 3, 3))
    for p in itertools.permutations(range(3)):
        levi_civita[p] = np.linalg.det(np.eye(3)[list(p)])
    x = np.outer([1.0, 2.0, -1.0], [1.0, 0.5, 2.0])
    wanted = np.einsum("ikm,jln,mn->ijkl", levi_civita, levi_civita, x)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_third_derivative_of_a_determinant_asks_for_an_inverse() -> None:
    ol.check_grad(np.linalg.det, np.eye(3), order=3)
    with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
        ol.check_grad(np.linalg.det, np.zeros((3, 3)), order=3)


def test_log_of_a_determinant_has_no_derivative_at_zero() -> None:
    t = ol.to_tensor(np.zeros((2, 2)), requires_grad=True)
    with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
        np.linalg.slogdet(t).logabsdet.backward()


# Repeated values ----------------------------------------------------------------------------------

OF_VALUES = {
    "eigvalsh": (np.linalg.eigvalsh, TWICE),
    "eigh": (lambda x: np.linalg.eigh(x)[0], TWICE),
    "svdvals": (np.linalg.svdvals, TWICE),
    "svd": (lambda x: np.linalg.svd(x)[1], TWICE),
    "svd, hermitian": (lambda x: np.linalg.svd(x, hermitian=True)[1], TWICE),
    "eigvals": (np.linalg.eigvals, TWICE),
    "identity": (np.linalg.eigvalsh, np.eye(3)),
    "eigvals, identity": (np.linalg.eigvals, np.eye(3)),
}


@pytest.mark.parametrize("name", OF_VALUES)
def test_functions_of_repeated_values_have_their_gradient(name: str) -> None:
    values, x = OF_VALUES[name]
    np.testing.assert_allclose(slope(values, x), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(slope(lambda x: values(x) ** 3, x), 3 * x @ x, atol=1e-11)
    np.testing.assert_allclose(curvature(values, x) * 0, 0)  # finite


def test_functions_of_repeated_singular_values_of_a_tall_matrix() -> None:
    x = TWICE_TALL
    np.testing.assert_allclose(slope(lambda x: np.linalg.svdvals(x) ** 2, x), 2 * x, atol=1e-11)
    wanted = x @ np.linalg.inv(TURN @ np.diag(np.sqrt([2.0, 2.0, 10.0])) @ TURN.T)
    np.testing.assert_allclose(slope(lambda x: np.linalg.norm(x, "nuc"), x), wanted, atol=1e-12)


@pytest.mark.parametrize("x", [np.eye(3), TWICE, TWICE_TALL], ids=["identity", "square", "tall"])
def test_the_nuclear_norm_has_a_second_derivative_at_repeated_singular_values(x: Any) -> None:
    ol.check_grad(lambda x: np.linalg.norm(x, "nuc"), x)


def test_the_nuclear_norm_where_the_rank_is_not_full() -> None:
    u, v = np.array([0.6, 0.8]), np.array([1.0, 0.0, 0.0])
    found = slope(lambda x: np.linalg.norm(x, "nuc"), 5 * np.outer(u, v))
    np.testing.assert_allclose(found, np.outer(u, v), atol=1e-12)


@pytest.mark.parametrize("x", [np.eye(3), TWICE], ids=["identity", "rotated"])
def test_vectors_of_repeated_values_have_finite_gradients(x: Any) -> None:
    for f in (
        lambda x: np.linalg.eigh(x)[1] ** 2,
        lambda x: np.real(np.linalg.eig(x)[1]) ** 2,
        lambda x: np.linalg.svd(x)[0] ** 2,
    ):
        assert np.all(np.abs(slope(f, x)) < 1e3)


def test_the_space_of_a_repeated_eigenvalue_has_its_gradient() -> None:
    """The projector does not depend on the basis that was picked."""

    def projector(x: Any) -> Any:
        vectors = np.linalg.eigh(x)[1][:, :2]
        return np.sum(vectors @ vectors.T * numbers((3, 3), seed=3))

    step = 1e-6 * (lambda d: d + d.T)(numbers((3, 3), seed=4))
    difference = projector(TWICE + step) - projector(TWICE - step)
    np.testing.assert_allclose(np.sum(slope(projector, TWICE) * step), difference / 2, rtol=1e-6)


# Matrices that are read as symmetric --------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.eigh(x)[1] ** 2 * WEIGHTS,
        lambda x: np.linalg.eigh(x, UPLO="U")[1] ** 2 * WEIGHTS,
        lambda x: np.linalg.eigvalsh(x) ** 2,
        lambda x: np.linalg.cholesky(x) * WEIGHTS,
        lambda x: np.linalg.cholesky(x, upper=True) * WEIGHTS,
        lambda x: np.linalg.pinv(x, hermitian=True) ** 2,
        lambda x: np.linalg.svd(x, hermitian=True)[0] ** 2 * WEIGHTS,
    ],
    ids=["eigh", "eigh U", "eigvalsh", "cholesky", "cholesky upper", "pinv", "svd"],
)
def test_the_gradient_of_a_symmetric_matrix_is_symmetric(f: Any) -> None:
    half = numbers((3, 3), -0.3, 0.3)
    x = half + half.T + np.diag([1.0, 2.0, 3.5])
    found = slope(f, x)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
    step = 1e-6 * (lambda d: d + d.T)(numbers((3, 3), seed=2))
    difference = np.sum(f(x + step)) - np.sum(f(x - step))
    np.testing.assert_allclose(np.sum(found * step), difference / 2, rtol=1e-6)


# To any order -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.inv,
        np.linalg.det,
        np.linalg.svdvals,
        lambda x: np.linalg.slogdet(x)[1],
        lambda x: np.linalg.eigh(x + x.T)[1] ** 2,
        lambda x: np.linalg.qr(x)[0],
        lambda x: np.linalg.cholesky(x @ x.T),
        lambda x: np.linalg.norm(x, 3, axis=0),
        lambda x: np.linalg.norm(x, "nuc"),
        lambda x: np.einsum("ii,ij,kj->k", x, x, x),
    ],
    ids="inv det svdvals slogdet eigh qr cholesky norm nuclear einsum".split(),
)
def test_third_derivatives(f: Any) -> None:
    x = numbers((3, 3), -0.4, 0.4) + np.diag([1.0, 2.0, 3.0])
    ol.check_grad(f, x, order=3, absolute_tolerance=1e-5)


# Return values and refusals -----------------------------------------------------------------------


def test_results_have_the_names_that_numpy_gives_them() -> None:
    t = ol.to_tensor(SINGULAR.T @ SINGULAR + np.eye(3), requires_grad=True)
    for name in ("eigh", "eig", "svd", "qr", "slogdet"):
        function = getattr(np.linalg, name)
        assert type(function(t)) is type(function(t.numpy()))
        assert all(part.requires_grad for part in function(t))
    x, residuals, rank, values = np.linalg.lstsq(t, t[0])
    assert x.requires_grad
    assert values.requires_grad
    assert (residuals.shape, int(rank)) == ((0,), 3)


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_real_eigenvalues_are_real_whatever_numpy_gives(needs_gradient: bool) -> None:
    """NumPy 2.5 gives complex numbers for every matrix."""
    x = SINGULAR.T @ SINGULAR + np.eye(3)
    t = ol.to_tensor(x, requires_grad=needs_gradient)
    for found in (*np.linalg.eig(t), np.linalg.eigvals(t), np.poly(t)):
        assert found.dtype == x.dtype
    for found, wanted in zip(np.linalg.eig(t), np.linalg.eig(x), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_complex_eigenvalues_are_plain_results_or_refused() -> None:
    x = np.array([[0.0, -1.0], [1.0, 0.0]])
    found = np.linalg.eigvals(ol.to_tensor(x))
    np.testing.assert_array_equal(found.numpy(), np.linalg.eigvals(x))
    with pytest.raises(TypeError, match="complex eigenvalues"):
        np.linalg.eigvals(ol.to_tensor(x, requires_grad=True))


def test_a_rank_is_a_plain_number() -> None:
    t = ol.to_tensor(SINGULAR, requires_grad=True)
    assert np.linalg.matrix_rank(t) == 2
    assert not isinstance(np.linalg.matrix_rank(t), ol.Tensor)


def test_methods() -> None:
    x = numbers((2, 3, 4))
    t = ol.to_tensor(x, requires_grad=True)
    np.testing.assert_array_equal(t.mT.numpy(), x.mT)
    np.testing.assert_array_equal(t.trace(1, -2, -1).numpy(), x.trace(1, -2, -1))
    ol.check_grad(lambda x: x.trace(1, -2, -1), x)
    ol.check_grad(lambda x: x.mT * np.arange(3.0), x)


@pytest.mark.parametrize("function", [np.linalg.eig, np.linalg.eigvals])
def test_complex_eigenvalues_are_refused_where_a_gradient_is_wanted(function: Any) -> None:
    t = ol.to_tensor(ROTATION, requires_grad=True)
    with pytest.raises(TypeError, match="complex eigenvalues"):
        function(t)
    with ol.no_grad():
        assert np.all(np.asarray(np.linalg.eigvals(t)) == [1j, -1j])
    assert np.all(np.asarray(np.linalg.eigvals(t.detach())) == [1j, -1j])


REFUSED = {
    "qr, complete": (lambda t: np.linalg.qr(t[:, :2], "complete"), TypeError, "mode='complete'"),
    "qr, raw": (lambda t: np.linalg.qr(t, "raw"), TypeError, "mode='raw'"),
    "einsum dtype": (lambda t: np.einsum("ij", t, dtype="f4"), TypeError, "casting=.safe."),
    "einsum order": (lambda t: np.einsum("ij", t, order="F"), TypeError, "order='F'"),
    "einsum labels": (lambda t: np.einsum("ijk", t), ValueError, "2 axes"),
    "einsum operands": (lambda t: np.einsum("ij,jk", t), ValueError, "2 operands"),
    "einsum dots": (lambda t: np.einsum("...i->i", t), ValueError, r"needs '\.\.\.' too"),
    "einsum output": (lambda t: np.einsum("ij->k", t), ValueError, "k"),
    "einsum output of many": (lambda t: np.einsum("i,i,i->k", t[0], t[0], t[0]), ValueError, "k"),
    "einsum label": (lambda t: np.einsum(t, [0, 99]), ValueError, "99"),
    "vecdot axes": (lambda t: np.vecdot(t, t, axes=[0, 0, ()]), TypeError, "axes"),
    "matvec axes": (lambda t: np.matvec(t, t[0], axes=[(1, 0), 0, 0]), TypeError, "axes"),
    "matmul axes": (lambda t: np.matmul(t, t, axes=[(1, 0)] * 3), TypeError, "axes"),
    "norm of matrices": (lambda t: np.linalg.norm(t, 3), ValueError, "ord=3"),
    "norm of vectors": (lambda t: np.linalg.norm(t, "nuc", 0), ValueError, "'nuc'"),
    "norm axes": (lambda t: np.linalg.norm(t, 1, axis=2), np.exceptions.AxisError, "axis 2"),
    "norm twice": (lambda t: np.linalg.norm(t, 1, axis=(0, -2)), ValueError, "twice"),
    "norm, 3 axes": (lambda t: np.linalg.norm(t[None], 1), ValueError, "not over 3"),
    "tensordot": (lambda t: np.tensordot(t, t[:2], (0, 0)), ValueError, "as long in both"),
    "multi_dot": (lambda t: np.linalg.multi_dot([t]), ValueError, "at least two"),
    "cross": (lambda t: np.cross(t, np.ones(4)), ValueError, "3 and 4"),
    "linalg.cross": (lambda t: np.linalg.cross(t[:, :2], t), ValueError, "3 numbers"),
    "linalg.outer": (lambda t: np.linalg.outer(t, t), ValueError, "two vectors"),
    "matrix_power": (lambda t: np.linalg.matrix_power(t, 0.5), TypeError, "integer"),
    "inv": (np.linalg.inv, np.linalg.LinAlgError, "Singular"),
}
if NUMPY < (2, 2):
    del REFUSED["matvec axes"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_or_wrong_is_refused_by_name(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call(ol.to_tensor(np.zeros((3, 3)), requires_grad=True))


@pytest.mark.skipif(NUMPY >= (2, 5), reason="NumPy 2.5 takes vectors of three numbers alone")
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("lengths", [(2, 2), (2, 3), (3, 2)])
def test_cross_products_of_vectors_of_two_numbers(lengths: tuple[int, int]) -> None:
    a, b = numbers((4, lengths[0])), numbers((4, lengths[1]), seed=1)
    np.testing.assert_array_equal(
        np.cross(ol.to_tensor(a, requires_grad=True), b).numpy(), np.cross(a, b)
    )
    ol.check_grad(np.cross, a, b)


MIXED = {
    "solve": lambda t: np.linalg.solve([[2.0, 1.0], [0.0, 1.0]], t),
    "dot": lambda t: np.dot([[2.0, 1.0], [0.0, 1.0]], t),
    "inner": lambda t: np.inner(t, [1.0, 2.0]),
    "vdot": lambda t: np.vdot([1.0, 2.0, 3.0, 4.0], t),
    "outer": lambda t: np.outer([1.0, 2.0], t),
    "kron": lambda t: np.kron([1.0, 2.0], t),
    "tensordot": lambda t: np.tensordot(t, [[1.0, 2.0], [3.0, 4.0]]),
    "multi_dot": lambda t: np.linalg.multi_dot([[1.0, 2.0], t, [[1.0], [0.0]]]),
    "lstsq": lambda t: np.linalg.lstsq(t, [1.0, 2.0])[0],
    "vecdot": lambda t: np.vecdot([1.0, 2.0], t),
    "einsum": lambda t: np.einsum("i,ij,->j", [1.0, 2.0], t, 3.0),
}


@pytest.mark.parametrize("name", MIXED)
def test_lists_and_numbers_beside_tensors(name: str) -> None:
    f, x = MIXED[name], np.array([[1.0, 0.5], [-0.5, 2.0]])
    np.testing.assert_allclose(f(ol.to_tensor(x, requires_grad=True)).numpy(), f(x), rtol=1e-14)
    ol.check_grad(f, x)


def test_many_operands_are_contracted_without_large_arrays_in_between() -> None:
    rows = [ol.to_tensor(np.ones((300, 300)), requires_grad=True) for _ in range(3)]
    total = np.einsum("ij,kl,jk->il", *rows)  # the first two alone would be 300^4 numbers
    total.backward()
    assert rows[1].grad is not None
    assert rows[1].grad.numpy()[0, 0] == 300 * 300


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,jk->i", "ij,ij->j", "ij,kj->"])
def test_large_sums_have_the_gradient_of_small_ones(subscripts: str) -> None:
    a, b = numbers((40, 40)), numbers((40, 40), seed=1)
    small = (slice(0, 5), slice(0, 5))
    zeros = np.zeros((40, 40))
    zeros[small] = 1.0
    found = ol.grad(lambda a, b: np.sum(np.einsum(subscripts, a * zeros, b * zeros)), (0, 1))(a, b)
    wanted = ol.grad(lambda a, b: np.sum(np.einsum(subscripts, a, b)), (0, 1))(a[small], b[small])
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(ours)[small], np.asarray(theirs), rtol=1e-12)
