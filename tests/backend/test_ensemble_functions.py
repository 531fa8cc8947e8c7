"""Ensemble arrays: every supported function of NumPy equals separate runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optlab.backend.ensemble import EnsembleArray

K = 3  # as many members as rows and columns: a mixed-up axis fits the shapes, but not the numbers

rng = np.random.default_rng(0)
A, B = rng.uniform(-1, 1, (K, K, K)), rng.uniform(-1, 1, (K, K, K))
V, U = rng.uniform(-1, 1, (K, K)), rng.uniform(-1, 1, (K, K))
S = rng.uniform(-1, 1, K)
C = rng.uniform(-1, 1, (K, 2, K, 4))
P = np.array([[2, 0, 2], [1, 1, 0], [0, 2, 1]])
J = np.array([2, 0, 1])
PLAIN = rng.uniform(-1, 1, (K, K))


def separately(f: Any, *stacked: Any) -> list[Any]:
    return [f(*[x[k] for x in stacked]) for k in range(K)]


def equal(got: Any, wanted: list[Any], exactly: bool) -> None:
    """Compare the value of an ensemble with those of its members, recursively."""
    if isinstance(wanted[0], (tuple, list)):
        assert len(got) == len(wanted[0])
        for i, part in enumerate(got):
            equal(part, [w[i] for w in wanted], exactly)
        return
    stacked = np.stack(wanted)
    assert isinstance(got, EnsembleArray)
    assert got.shape == np.shape(wanted[0])
    assert got.dtype == stacked.dtype
    if exactly:
        np.testing.assert_array_equal(got.members, stacked)
    else:
        np.testing.assert_allclose(got.members, stacked, rtol=1e-9, atol=1e-12)


#: Bitwise: elementwise, moving, sorting, choosing, sums and products along one axis, products
#: of two matrices.
EXACT: dict[str, tuple[Any, ...]] = {
    "add": (np.add, A, V),
    "add, the longer on the right": (np.add, V, A),
    "add a plain array": (lambda v: v + PLAIN, V),
    "plain on the left": (lambda v: PLAIN - v, V),
    "numbers": (lambda v: 2 - v / 3 + v**2 + 2.0**v, V),
    "0-d": (lambda s, a: s * a, S, A),
    "list": (lambda v: v * [1.0, 2.0, 3.0], V),
    "comparison": (lambda v, u: v < u, V, U),
    "divmod": (lambda v: divmod(v, 0.3), V),
    "modf": (np.modf, V),
    "abs": (abs, A),
    "logic": (lambda v, u: (v > 0) & ~(u > 0) | (v < -0.5), V, U),
    "invert": (lambda i: ~i, P),
    "ufunc where": (lambda v, u: np.add(v, u, where=u > 0, out=np.zeros_like(v)), V, U),
    "ufunc dtype": (lambda v: np.exp(v, dtype="float32"), V.astype("float32")),
    "where": (lambda v, a: np.where(v > 0, a, v), V, A),
    "clip": (lambda a, v: np.clip(a, v, 1), A, V),
    "clip by name": (lambda a: a.clip(max=0.5), A),
    "method clip": (lambda a: a.clip(0, 0.5), A),
    "nan_to_num": (lambda v: np.nan_to_num(np.log(v), nan=1.0), abs(V)),
    "round": (np.round, V),
    "select": (lambda v: np.select([v > 0.5, v < 0], [v, -v], 7.0), V),
    "sinc": (np.sinc, V),
    "choose": (lambda i, v: np.choose(i, [v, v * 2, v * 3]), P, V),
    "isclose": (np.isclose, V, U),
    "real": (lambda v: np.real(v) + np.imag(v), V),
    "heaviside": (np.heaviside, V, U),
    "sum along": (lambda a: np.sum(a, axis=0), A),
    "sum, negative axis": (lambda a: a.sum(-1), A),
    "prod along": (lambda a: np.prod(a, 1, keepdims=True), A),
    "max": (lambda a: a.max(), A),
    "sum of nothing": (lambda a: np.sum(a, axis=()), A),
    "sum 0-d": (np.sum, S),
    "max along": (lambda a: np.max(a, (0, 1), keepdims=True), A),
    "min": (np.amin, A),
    "sum where": (lambda a: np.sum(a, axis=1, where=a > 0), A),
    "ptp": (np.ptp, A),
    "sum where initial": (lambda a, v: np.sum(a, where=v > 0, initial=2.0), A, V),
    "reduce": (np.maximum.reduce, A),
    "reduce keepdims": (lambda a: np.add.reduce(a, 1, keepdims=True), A),
    "reduce all": (lambda a: np.minimum.reduce(a, axis=None), A),
    "reduce 0-d": (np.add.reduce, S),
    "logaddexp.reduce": (lambda a: np.logaddexp.reduce(a, axis=-1), A),
    "accumulate": (lambda a: np.multiply.accumulate(a, 1), A),
    "outer": (np.subtract.outer, V, U),
    "reduceat": (lambda v: np.add.reduceat(v, [0, 2]), V),
    "any": (lambda a: np.any(a > 0.5, 0), A),
    "all": (lambda a: np.all(a > -0.5), A),
    "count_nonzero": (lambda a: np.count_nonzero(a > 0, 1), A),
    "argmax": (np.argmax, A),
    "argmin along": (lambda a: a.argmin(axis=1), A),
    "median": (lambda a: np.median(a, axis=0), A),
    "quantile": (lambda a: np.quantile(a, [0.2, 0.5], 1), A),
    "quantile of all": (lambda a: np.quantile(a, 0.3), A),
    "nanquantile, a table of q": (lambda a: np.nanquantile(a, [[0.1], [0.4]], (0, 1)), A),
    "nanmax": (np.nanmax, A),
    "percentile": (lambda a: np.percentile(a, [10, 20, 30], keepdims=True), A),
    "cumsum": (np.cumsum, A),
    "cumsum along": (lambda a: a.cumsum(-2), A),
    "cumprod": (np.cumprod, V),
    "diff": (np.diff, A),
    "diff with ends": (lambda v: np.diff(v, 2, prepend=0, append=v), V),
    "diff along": (lambda a: np.diff(a, axis=0), A),
    "sort": (np.sort, A),
    "argsort": (np.argsort, A),
    "sort all": (lambda a: np.sort(a, None), A),
    "sort first": (lambda a: np.sort(a, 0), A),
    "partition": (lambda v: np.partition(v, 1), V),
    "flip": (np.flip, C),
    "repeat": (lambda a: np.repeat(a, 2), A),
    "take": (lambda a: np.take(a, [2, 0], 1), A),
    "take flat": (lambda a: a.take([5, 1]), A),
    "take own": (lambda a, i: np.take(a, i, 1), A, P),
    "take own flat": (lambda a, j: np.take(a, j), A, J),
    "take_along_axis": (lambda v, i: np.take_along_axis(v, i, 0), V, P),
    "argsort and back": (lambda a: np.take_along_axis(a, np.argsort(a, 0), 0), A),
    "delete": (lambda v: np.delete(v, 1), V),
    "unwrap": (np.unwrap, 5 * V),
    "fft": (np.fft.fft, V),
    "reshape": (lambda c: np.reshape(c, (4, -1)), C),
    "method reshape": (lambda c: c.reshape(2, -1), C),
    "ravel": (np.ravel, C),
    "ravel K": (lambda c: np.ravel(np.transpose(c, (1, 0, 2)), "K"), C),
    "ravel A": (lambda c: np.ravel(c.T, "A"), C),
    "reshape F": (lambda c: np.reshape(c, (4, -1), order="F"), C),
    "reshape A": (lambda c: np.reshape(c.T, (2, 12), order="A"), C),
    "flatten": (lambda c: c.flatten(), C),
    "squeeze": (lambda v: np.squeeze(v[None, :, None]), V),
    "squeeze one member": (lambda s: np.squeeze(s[None], 0), S),
    "T": (lambda c: c.T, C),
    "mT": (lambda c: c.mT, C),
    "transpose": (lambda c: np.transpose(c, (2, 0, -2)), C),
    "method transpose": (lambda c: c.transpose(1, 0, 2), C),
    "swapaxes": (lambda c: c.swapaxes(0, -1), C),
    "moveaxis": (lambda c: np.moveaxis(c, [0, 2], [-1, 0]), C),
    "rollaxis": (lambda c: np.rollaxis(c, 2), C),
    "rollaxis on": (lambda c: np.rollaxis(c, 0, 3), C),
    "expand_dims": (lambda v: np.expand_dims(v, (0, -1)), V),
    "broadcast_to": (lambda v: np.broadcast_to(v, (3, 3)), V),
    "broadcast_arrays": (lambda v, a: np.broadcast_arrays(v, a, v[0]), V, A),
    "atleast": (lambda s, v: [np.atleast_1d(s), np.atleast_2d(v), np.atleast_3d(v)], S, V),
    "roll": (lambda a: np.roll(a, 1), A),
    "roll along": (lambda a: np.roll(a, (1, 2), (0, 1)), A),
    "rot90": (np.rot90, A),
    "flipud": (np.flipud, A),
    "fliplr": (np.fliplr, A),
    "tile": (lambda v: np.tile(v, (2, 2)), V),
    "tile one": (lambda a: np.tile(a, 2), A),
    "pad": (lambda a: np.pad(a, 1), A),
    "tril": (np.tril, A),
    "pad modes": (lambda a: np.pad(a, ((1, 2), (0, 1)), "reflect"), A),
    "triu": (lambda c: np.triu(c, 1), C),
    "pad constants": (lambda a: np.pad(a, 1, constant_values=((1, 2), (3, 4))), A),
    "pad edge": (lambda v: np.pad(v, (2, 1), "edge"), V),
    "tril of a vector": (np.tril, V),
    "pad mean": (lambda a: np.pad(a, 1, "maximum", stat_length=2), A),
    "windows": (lambda c: np.lib.stride_tricks.sliding_window_view(c, (2, 2), (0, -1)), C),
    "windows of all": (lambda v: np.lib.stride_tricks.sliding_window_view(v, (2, 1), (0, 0)), V),
    "diagonal": (lambda a: np.diagonal(a, 1), A),
    "diagonal last": (lambda c: np.diagonal(c, 0, 1, 2), C),
    "diag": (lambda a: np.diag(a, -1), A),
    "diag of a vector": (lambda v: np.diag(v, 1), V),
    "diagflat": (lambda v: np.diagflat(v, -2), V),
    "trace": (np.trace, A),
    "concatenate": (lambda v, u: np.concatenate([v, u, [1.0]]), V, U),
    "concatenate last": (lambda a, b: np.concatenate([a, PLAIN, b], -1), A, B),
    "concatenate flat": (lambda a, v: np.concatenate([a, v], None), A, V),
    "stack": (lambda v, u: np.stack([v, u, np.ones(3)], -1), V, U),
    "stack 0-d": (lambda s: np.stack([s, s]), S),
    "vstack": (lambda v, a: np.vstack([v, a]), V, A),
    "hstack": (lambda v, u: np.hstack([v, u]), V, U),
    "dstack": (lambda v, u: np.dstack([v, u]), V, U),
    "column_stack": (lambda v, a: np.column_stack([v, a]), V, A),
    "append": (lambda v: np.append(v, 1.0), V),
    "block": (lambda a, v: np.block([[a, a], [v, v]]), A, V),
    "split": (lambda c: np.split(c, 2, axis=-1), C),
    "array_split": (lambda v: np.array_split(v, 2), V),
    "hsplit": (lambda a: np.hsplit(a, 3), A),
    "vsplit": (lambda a: np.vsplit(a, [1]), A),
    "dsplit": (lambda c: np.dsplit(c, 2), C),
    "iteration": (list, A),
    "matmul": (np.matmul, A, B),
    "matmul with one for all": (lambda a: PLAIN @ a @ PLAIN, A),
    "matmul in batches": (lambda c, a: a @ c, C, A),
    "zeros_like": (np.zeros_like, A),
    "ones_like": (lambda a: np.ones_like(a, "float32", shape=2), A),
    "full_like": (lambda a, v: np.full_like(a, v), A, V),
    "astype": (lambda a: a.astype("float32"), A),
    "np.astype": (lambda a: np.astype(a, "int64"), 9 * A),
    "copy": (np.copy, A),
    "inv": (np.linalg.inv, A),
    "det": (np.linalg.det, A),
    "slogdet": (np.linalg.slogdet, A),
    "eigh": (np.linalg.eigh, A),
    "svd": (np.linalg.svd, A),
    "qr": (np.linalg.qr, A),
    "cholesky": (lambda a: np.linalg.cholesky(a @ a.T + np.eye(3)), A),
    "svd of rectangles": (lambda c: np.linalg.svd(c[0], full_matrices=False), C),
    "solve": (np.linalg.solve, A, B),
    "eigvals": (np.linalg.eigvalsh, A),
    "interp": (lambda v, u: np.interp(v, np.sort(u), u), V, U),
    "convolve": (np.convolve, V, U),
    "searchsorted": (lambda v, u: np.searchsorted(np.sort(v), u), V, U),
    "gradient": (np.gradient, A),
    "histogram": (lambda v: np.histogram(v, 4), V),
    "cov": (np.cov, A),
    "linspace": (lambda s: np.linspace(s, 2, 5), S),
    "bincount": (lambda i: np.bincount(i, minlength=3), P),
    "lstsq": (lambda a, v: np.linalg.lstsq(a, v)[0], A, V),
    "average": (lambda v, u: np.average(v, weights=abs(u)), V, U),
    "conj": (lambda v: v.conj(), V),
}

#: Sums over several axes and products with vectors are added in a different order.
ROUNDED: dict[str, tuple[Any, ...]] = {
    "sum": (np.sum, A),
    "mean": (np.mean, A),
    "var": (lambda a: np.var(a, (0, 1), ddof=1), A),
    "std": (lambda a: a.std(keepdims=True), A),
    "sum of transposed": (lambda c: np.sum(c.T, (0, 2)), C),
    "nanmean": (np.nanmean, A),
    "var about a mean": (lambda a: np.var(a, 0, mean=np.mean(a, 0, keepdims=True)), A),
    "std about a mean": (lambda a: np.std(a, mean=np.mean(a, keepdims=True)), A),
    "matvec": (np.matmul, A, V),
    "vecmat": (np.matmul, V, A),
    "inner product": (np.matmul, V, U),
    "row by one for all": (lambda v: v @ PLAIN, V),
    "one for all by column": (lambda v: PLAIN @ v, V),
    "plain vector": (lambda a: a @ PLAIN[0], A),
    "plain row": (lambda a: PLAIN[0] @ a, A),
    "batches by vector": (lambda c: c @ np.arange(4.0), C),
    "vector by batches": (lambda v, c: v @ c, V, C),
    "dot": (np.dot, A, B),
    "dot vectors": (np.dot, V, U),
    "dot numbers": (lambda s, a: np.dot(s, a), S, A),
    "dot of many axes": (np.dot, A, C),
    "method dot": (lambda a, v: a.dot(v), A, V),
    "inner": (np.inner, A, V),
    "outer product": (np.outer, V, A),
    "vdot": (np.vdot, A, B),
    "kron": (np.kron, A, V),
    "kron of matrices": (np.kron, A, B),
    "vecdot": (np.vecdot, A, B),
    "tensordot": (lambda a, c: np.tensordot(a, c, (1, 1)), A, C),
    "tensordot of two axes": (lambda a, b: np.tensordot(a, b, ([0, 1], [1, 0])), A, B),
    "tensordot with a plain array": (lambda a: np.tensordot(PLAIN, a, 1), A),
    "cross": (np.cross, V, U),
    "cross of rows": (lambda a, v: np.cross(a, v), A, V),
    "cross of columns": (lambda a, b: np.cross(a, b, axis=0), A, B),
    "einsum": (lambda a, v: np.einsum("ij,j->i", a, v), A, V),
    "einsum trace": (lambda a: np.einsum("ii", a), A),
    "einsum implicit": (lambda a, b: np.einsum("ij, jk", a, b), A, B),
    "einsum plain": (lambda a: np.einsum("ij,ki", a, PLAIN), A),
    "einsum dots": (lambda c, a: np.einsum("...ij,ki->...kj", c, a), C, A),
    "einsum dots implicit": (lambda c, a: np.einsum("...ji,kj", c, a), C, A),
    "einsum in numbers": (lambda a, v: np.einsum(a, [0, 1], v, [1], [0]), A, V),
    "einsum in numbers, implicit": (lambda a, v: np.einsum(a, [0, 1], v, [1]), A, V),
    "multi_dot": (lambda v, a, b: np.linalg.multi_dot([v, a, b, PLAIN, v]), V, A, B),
    "norm": (np.linalg.norm, A),
    "norm of rows": (lambda a: np.linalg.norm(a, axis=1, keepdims=True), A),
    "norm ord": (lambda a: np.linalg.norm(a, 1), A),
    "norm of a vector, ord": (lambda v: np.linalg.norm(v, 3), V),
    "nuclear norm": (lambda c: np.linalg.norm(c, "nuc", (0, 2)), C),
    "norm 2": (lambda a: np.linalg.norm(a, 2, keepdims=True), A),
    "solve a vector": (np.linalg.solve, A, V),
    "solve by one for all": (lambda v: np.linalg.solve(PLAIN, v), V),
    "solve plain vector": (lambda a: np.linalg.solve(a, PLAIN[0]), A),
    "solve in batches": (lambda c, a: np.linalg.solve(a, c[..., :3]), C, A),
    "pinv": (np.linalg.pinv, A),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, 3), A),
    "trapezoid": (np.trapezoid, A),
    "trapezoid over x": (lambda a, v: np.trapezoid(a, v, axis=0), A, V),
    "cond": (np.linalg.cond, A),
    "vector_norm": (lambda a: np.linalg.vector_norm(a, axis=0), A),
    "matrix_norm": (np.linalg.matrix_norm, A),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_same_bits_as_separate_runs(name: str) -> None:
    f, *stacked = EXACT[name]
    equal(f(*map(EnsembleArray, stacked)), separately(f, *stacked), exactly=True)


@pytest.mark.parametrize("name", ROUNDED)
def test_the_same_as_separate_runs_within_rounding(name: str) -> None:
    f, *stacked = ROUNDED[name]
    equal(f(*map(EnsembleArray, stacked)), separately(f, *stacked), exactly=False)


@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_what_runs_on_an_ensemble_runs_on_an_ensemble_of_ensembles(name: str) -> None:
    f, *stacked = (EXACT | ROUNDED)[name]
    outer = [np.stack([x, x[::-1]]) for x in stacked]
    nested = [EnsembleArray(EnsembleArray(np.moveaxis(x, 0, 0)), level=1) for x in outer]
    got = f(*nested)

    def parts(y: Any) -> list[Any]:
        return [p for part in y for p in parts(part)] if isinstance(y, (list, tuple)) else [y]

    both = [parts(f(*[EnsembleArray(x[i]) for x in outer])) for i in range(2)]
    for at, part in enumerate(parts(got)):
        assert part.level == 1
        for i in range(2):
            wanted = both[i][at].members
            np.testing.assert_allclose(part.members.members[i], wanted, rtol=1e-9, atol=1e-12)
