"""Batching rules of linear algebra: NumPy's functions run over leading axes."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from optlab.backend.ensemble.array import EnsembleArray
from optlab.backend.ensemble.batched_call import Call, as_array, shifted
from optlab.backend.ensemble.reductions import fold
from optlab.backend.ensemble.registry import batched, bind, numpy_function, public_name, refusal

# Products -----------------------------------------------------------------------------------------


def stacked_product(a: Any, b: Any) -> Any:
    """Multiply matrices, one pair a member: the most common case, fast; None for any other."""
    arrays, first = [], None
    for x in (a, b):
        if type(x) is EnsembleArray:
            if x.members.ndim != 3 or (
                first is not None
                and (x.level != first.level or len(x.members) != len(first.members))
            ):
                return None
            first = x
            arrays.append(x.members)
        elif type(x) is np.ndarray and x.ndim == 2:
            arrays.append(x)
        else:
            return None
    return None if first is None else EnsembleArray(np.matmul(*arrays), first.level)


@batched("matmul", "linalg.matmul")
def _matmul(call: Call, a: Any, b: Any) -> Any:
    """Compute one product per member; a vector is a row on the left, a column on the right."""
    a, b = as_array(a), as_array(b)
    m, n = np.ndim(a), np.ndim(b)
    if not m or not n:
        raise ValueError("matmul takes arrays of at least one axis; multiply by numbers with *.")
    if m == n == 1:
        return np.add.reduce(a * b)
    if m == 1 and n == 2 and not call.has(b):
        return call.wrap(a.members @ b)  # one product for all members
    if n == 1 and m == 2 and not call.has(a):
        return call.wrap(b.members @ np.transpose(a))
    if m == 1:
        return np.matmul(a[None, :], b)[..., 0, :]
    if n == 1:
        return np.matmul(a, b[:, None])[..., 0]
    return call.wrap(np.matmul(*call.aligned([a, b])))


@batched("vecdot", "linalg.vecdot")
def _vecdot(call: Call, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return np.sum(np.conj(x1) * x2, axis=-1)


@batched("matvec")
def _matvec(call: Call, x1: Any, x2: Any) -> Any:
    return np.matmul(x1, np.expand_dims(x2, -1))[..., 0]


@batched("vecmat")
def _vecmat(call: Call, x1: Any, x2: Any) -> Any:
    return np.matmul(np.conj(np.expand_dims(x1, -2)), x2)[..., 0, :]


@batched("dot")
def _dot(call: Call, a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        raise refusal("np.dot with out=", "Use the value that it returns.")
    if not np.ndim(a) or not np.ndim(b):
        return np.multiply(a, b)
    if np.ndim(b) <= 2:
        return np.matmul(a, b)
    return np.tensordot(a, b, axes=(-1, -2))


@batched("inner")
def _inner(call: Call, a: Any, b: Any, /) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return np.multiply(a, b)
    return np.tensordot(a, b, axes=(-1, -1))


@batched("vdot")
def _vdot(call: Call, a: Any, b: Any, /) -> Any:
    return np.sum(np.conj(np.ravel(a)) * np.ravel(b))


@batched("outer", "linalg.outer")
def _outer(call: Call, a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        raise refusal("np.outer with out=", "Use the value that it returns.")
    return np.reshape(a, (-1, 1)) * np.reshape(b, (1, -1))


@batched("tensordot", "linalg.tensordot")
def _tensordot(call: Call, a: Any, b: Any, axes: Any = 2) -> Any:
    m, n = np.ndim(a), np.ndim(b)
    if isinstance(axes, (int, np.integer)):
        axes = (tuple(range(m - axes, m)), tuple(range(axes)))
    left, right = normalize_axis_tuple(axes[0], m), normalize_axis_tuple(axes[1], n)
    a_free = [i for i in range(m) if i not in left]
    b_free = [i for i in range(n) if i not in right]
    a_shape, b_shape = np.shape(a), np.shape(b)
    if [a_shape[i] for i in left] != [b_shape[i] for i in right]:
        raise ValueError("tensordot: the lengths of the axes to add up over differ.")
    shape = [a_shape[i] for i in a_free] + [b_shape[i] for i in b_free]
    length = int(np.prod([a_shape[i] for i in left]))
    rows, columns = (
        int(np.prod([s[i] for i in f])) for s, f in ((a_shape, a_free), (b_shape, b_free))
    )
    a = np.reshape(np.transpose(a, (*a_free, *left)), (rows, length))
    b = np.reshape(np.transpose(b, (*right, *b_free)), (length, columns))
    return np.reshape(np.matmul(a, b), shape)


@batched("kron")
def _kron(call: Call, a: Any, b: Any) -> Any:
    n = max(np.ndim(a), np.ndim(b))
    a = np.reshape(a, (1,) * (n - np.ndim(a)) + np.shape(a))
    b = np.reshape(b, (1,) * (n - np.ndim(b)) + np.shape(b))
    shape = [i * j for i, j in zip(np.shape(a), np.shape(b), strict=True)]
    spread = np.expand_dims(a, tuple(range(1, 2 * n, 2))) * np.expand_dims(
        b, tuple(range(0, 2 * n, 2))
    )
    return np.reshape(spread, shape)


@batched("cross", "linalg.cross")
def _cross(
    call: Call, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    if np.shape(a)[-1] != 3 or np.shape(b)[-1] != 3:
        raise refusal("np.cross of vectors that are not three long")
    (a0, a1, a2), (b0, b1, b2) = ([v[..., i] for i in range(3)] for v in (a, b))
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return np.moveaxis(np.stack(parts, -1), -1, axisc)


def _letters(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Read the subscripts of an einsum call in either form."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    arrays = list(operands[:-1:2] if len(operands) % 2 else operands[::2])
    axes = operands[1::2]

    def spelled(labels: Any) -> str:
        return "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in labels)

    subscripts = ",".join(spelled(labels) for labels in axes)
    return (f"{subscripts}->{spelled(operands[-1])}" if len(operands) % 2 else subscripts), arrays


@batched("einsum")
def _einsum(call: Call, *operands: Any, **options: Any) -> Any:
    if options.pop("out", None) is not None:
        raise refusal("np.einsum with out=", "Use the value that it returns.")
    subscripts, arrays = _letters(operands)
    inputs, arrow, output = subscripts.partition("->")
    if not arrow:  # NumPy's rule: letters that appear once, in alphabetical order
        labels = inputs.replace("...", "").replace(",", "")
        once = sorted(c for c in set(labels) if labels.count(c) == 1)
        output = ("..." if "..." in inputs else "") + "".join(once)
    member = next(c for c in string.ascii_letters if c not in subscripts)
    terms = [
        (member if call.has(x) else "") + term
        for x, term in zip(arrays, inputs.split(","), strict=True)
    ]
    arrays = [x.members if call.has(x) else x for x in arrays]
    return call.wrap(np.einsum(f"{','.join(terms)}->{member}{output}", *arrays, **options))


@batched("linalg.multi_dot")
def _multi_dot(call: Call, arrays: Sequence[Any], *, out: Any = None) -> Any:
    if out is not None:
        raise refusal("np.linalg.multi_dot with out=", "Use the value that it returns.")
    return reduce(np.matmul, arrays)


# Matrices -----------------------------------------------------------------------------------------


def _of_matrices(path: str, arrays: str = "a") -> None:
    """Register the rule of a function that NumPy itself runs over leading axes."""
    function = numpy_function(path)
    names = arrays.split()

    @batched(path)
    def rule(call: Call, *args: Any, **kwargs: Any) -> Any:
        given = bind(function, args, kwargs)
        if any(call.has(value) for name, value in given.items() if name not in names):
            raise refusal(f"{public_name(function)} with these arguments of each member")
        matrices = [call.stacked(given.pop(name)) for name in names]
        return call.wrap(function(*matrices, **given))


for path in (
    "inv", "pinv", "det", "slogdet", "eig", "eigh", "eigvals", "eigvalsh", "svd", "qr", "cholesky",
    "matrix_power",
):  # fmt: skip
    _of_matrices(f"linalg.{path}")
_of_matrices("linalg.svdvals", "x")


@batched("linalg.cond")
def _cond(call: Call, x: Any, p: Any = None) -> Any:
    return call.wrap(np.linalg.cond(x.members, p))


@batched("linalg.matrix_rank")
def _matrix_rank(
    call: Call, A: Any, tol: Any = None, hermitian: bool = False, **options: Any
) -> Any:
    if call.has(tol) or np.ndim(A) < 2:
        raise refusal("np.linalg.matrix_rank with these arguments")
    return call.wrap(np.linalg.matrix_rank(A.members, tol, hermitian, **options))


@batched("linalg.solve")
def _solve(call: Call, a: Any, b: Any) -> Any:
    if np.ndim(b) == 1:  # with the member axis NumPy would read a vector as a matrix
        return np.linalg.solve(a, b[:, None])[..., 0]
    a, b = (call.padded(x, max(np.ndim(a), np.ndim(b))) for x in (a, b))
    return call.wrap(np.linalg.solve(a, b))


@batched("linalg.norm")
def _norm(call: Call, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if call.has(ord):
        raise refusal("np.linalg.norm with an order of each member")
    if axis is None and ord is not None:
        axis = tuple(range(x.ndim)) if x.ndim != 1 else 0
    return fold(call, lambda x, **options: np.linalg.norm(x, ord, **options), x, axis, keepdims)


@batched("linalg.vector_norm")
def _vector_norm(
    call: Call, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Any:
    def norm(x: Any, **options: Any) -> Any:
        return np.linalg.vector_norm(x, ord=ord, **options)

    return fold(call, norm, x, axis, keepdims)


@batched("linalg.matrix_norm")
def _matrix_norm(call: Call, x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    axes = shifted((-2, -1), x.ndim)
    return call.wrap(np.linalg.norm(x.members, ord, axes, keepdims))
