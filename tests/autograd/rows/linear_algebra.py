"""Rows of products of matrices and vectors, inverses, linear systems and determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation
from optlab.autograd.rules.linalg.determinants import change_of_cofactors, cofactors
from tests.autograd.rows.table import (
    Shape,
    numbers,
    put,
    with_left,
    with_right,
    with_static,
)

# Products of matrices and vectors -----------------------------------------------------------------

PRODUCTS: list[tuple[Shape, Shape]] = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
]  # fmt: skip
BATCHED: list[tuple[Shape, Shape]] = [
    ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (2, 3, 1)), ((0, 3), (3, 2)),
    ((1, 1), (1, 1)),
]  # fmt: skip
for a_shape, b_shape in PRODUCTS + BATCHED:
    a, b = numbers(a_shape), numbers(b_shape, seed=1)
    put(np.matmul, f"{a_shape} {b_shape}", np.matmul, a, b)
    put(np.matmul, f"{a_shape} array right", with_right(np.matmul, b), a)
    put(np.matmul, f"{b_shape} array left", with_left(np.matmul, a), b)
for a_shape, b_shape in [*PRODUCTS, ((), ()), ((), (3,)), ((2, 3), ()), ((5, 2, 3), (3,)),
                         ((5, 2, 3), (3, 4)), ((3,), (2, 3, 4)), ((2, 3), (2, 3, 4)),
                         ((2, 1, 3), (2, 3, 2)), ((0, 3), (3, 2))]:  # fmt: skip
    a, b = numbers(a_shape), numbers(b_shape, seed=1)
    put(np.dot, f"{a_shape} {b_shape}", np.dot, a, b)
    put(np.dot, f"{a_shape} array right", with_right(np.dot, b), a)
for a_shape, b_shape in [((2,), (3,)), ((), (3,)), ((2, 2), (3,)), ((1,), (1,))]:
    put(np.outer, f"{a_shape} {b_shape}", np.outer, numbers(a_shape), numbers(b_shape, seed=1))
put(np.linalg.outer, "(2,) (3,)", np.linalg.outer, numbers((2,)), numbers((3,), seed=1))
put(np.linalg.matmul, "(2, 3) (3,)", np.linalg.matmul, numbers((2, 3)), numbers((3,), seed=1))

for a_shape, b_shape in [((3,), (3,)), ((2, 2), (2, 2)), ((), ()), ((2, 3), (6,))]:
    put(np.vdot, f"{a_shape} {b_shape}", np.vdot, numbers(a_shape), numbers(b_shape, seed=1))
put(np.vdot, "array left", with_left(np.vdot, numbers((2, 3))), numbers((6,), seed=1))
for a_shape, b_shape in [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (4, 3)), ((2, 1, 3), (2, 3)), ((), (3,)),
    ((2, 2), ()),
]:  # fmt: skip
    put(np.inner, f"{a_shape} {b_shape}", np.inner, numbers(a_shape), numbers(b_shape, seed=1))
put(np.inner, "with itself", lambda x: np.inner(x, x), numbers((2, 3)))

for a_shape, b_shape, options in [
    ((3,), (3,), {}), ((2, 3), (2, 3), {}), ((5, 3), (3,), {}), ((2, 3, 1), (1, 3, 2), {"axis": 1}),
    ((2, 3), (2, 3), {"axis": 0}), ((3, 2), (4, 3, 2), {"axis": -2}),
]:  # fmt: skip
    f = lambda a, b, options=options: np.vecdot(a, b, **options)  # noqa: E731
    put(np.vecdot, f"{a_shape} {options}", f, numbers(a_shape), numbers(b_shape, seed=1))
put(
    np.vecdot,
    "keepdims",
    lambda a, b: np.vecdot(a, b, axis=0, keepdims=True),
    numbers((2, 3)),
    numbers((2, 3), seed=1),
)
put(
    np.linalg.vecdot,
    "axis 0",
    lambda a, b: np.linalg.vecdot(a, b, axis=0),
    numbers((2, 3)),
    numbers((2, 3), seed=1),
)
if hasattr(np, "matvec"):
    for a_shape, b_shape in [((2, 3), (3,)), ((5, 2, 3), (3,)), ((2, 3), (5, 3)), ((1, 1), (1,))]:
        a, b = numbers(a_shape), numbers(b_shape, seed=1)
        put(np.matvec, f"{a_shape} {b_shape}", np.matvec, a, b)
        put(np.vecmat, f"{b_shape} {a_shape}", np.vecmat, b, np.swapaxes(a, -1, -2))

TENSORDOT: list[tuple[Shape, Shape, Any]] = [
    ((2, 3), (3, 4), 1), ((2, 3, 2), (3, 2, 2), 2), ((2,), (3, 2), 0), ((), (2,), 0),
    ((2, 3, 4), (4, 3), ((1, 2), (1, 0))), ((2, 3, 4), (4, 3), [(-1, -2), (0, -1)]),
    ((2, 3), (4, 3), (1, 1)), ((2, 3), (4, 3), ([1], [-1])), ((2, 3), (2,), ((), ())),
    ((2, 3), (2, 3), 2), ((2, 0), (0, 2), 1),
]  # fmt: skip
for a_shape, b_shape, axes in TENSORDOT:
    f = lambda a, b, axes=axes: np.tensordot(a, b, axes)  # noqa: E731
    put(np.tensordot, f"{a_shape} {b_shape} {axes}", f, numbers(a_shape), numbers(b_shape, seed=1))
put(np.tensordot, "default axes", np.tensordot, numbers((2, 3, 2)), numbers((3, 2), seed=1))
put(np.tensordot, "array left", with_left(np.tensordot, numbers((3, 2, 2))), numbers((2, 2, 3)))
put(
    np.linalg.tensordot,
    "axes=1",
    lambda a, b: np.linalg.tensordot(a, b, axes=1),
    numbers((2, 3)),
    numbers((3, 2), seed=1),
)

for a_shape, b_shape in [
    ((2,), (3,)), ((2, 3), (2, 2)), ((2,), (2, 3)), ((2, 2), (3,)), ((2, 1, 2), (2, 3)), ((), (3,)),
    ((), ()),
]:  # fmt: skip
    put(np.kron, f"{a_shape} {b_shape}", np.kron, numbers(a_shape), numbers(b_shape, seed=1))
put(np.kron, "array left", with_left(np.kron, numbers((2, 2))), numbers((2, 1), seed=1))

CHAINS: list[list[Shape]] = [
    [(2, 3), (3, 4)], [(5, 2), (2, 4), (4, 1)], [(1, 4), (4, 2), (2, 5)], [(3,), (3, 2), (2, 4)],
    [(2, 3), (3, 2), (2,)], [(3,), (3, 2), (2,)], [(3,), (3,)],
    [(2, 5), (5, 1), (1, 4), (4, 3)], [(3,), (3, 2), (2, 2), (2, 2), (2,)],
]  # fmt: skip
for shapes in CHAINS:
    matrices = [numbers(shape, seed=i) for i, shape in enumerate(shapes)]
    put(np.linalg.multi_dot, f"{shapes}", lambda *arrays: np.linalg.multi_dot(arrays), *matrices)
put(
    np.linalg.multi_dot,
    "an array among them",
    lambda a, b: np.linalg.multi_dot([a, np.ones((3, 3)), b]),
    numbers((2, 3)),
    numbers((3,), seed=1),
)

for a_shape, b_shape, options in [
    ((3,), (3,), {}), ((4, 3), (4, 3), {}), ((4, 3), (3,), {}), ((3, 4), (3, 4), {"axis": 0}),
    ((3, 4), (4, 3), {"axisa": 0, "axisc": 0}), ((2, 1, 3), (5, 3), {"axisc": 1}),
    ((3, 4), (3,), {"axisa": 0, "axisb": 0}),
]:  # fmt: skip
    f = lambda a, b, options=options: np.cross(a, b, **options)  # noqa: E731
    put(np.cross, f"{a_shape} {b_shape} {options}", f, numbers(a_shape), numbers(b_shape, seed=1))
put(np.cross, "array left", with_left(np.cross, numbers((3,))), numbers((2, 3), seed=1))
put(np.linalg.cross, "(2, 3)", np.linalg.cross, numbers((2, 3)), numbers((3,), seed=1))
put(
    np.linalg.cross,
    "axis 0",
    lambda a, b: np.linalg.cross(a, b, axis=0),
    numbers((3, 2)),
    numbers((3, 2), seed=1),
)


# Diagonals and transposes -------------------------------------------------------------------------

for shape, options in [
    ((3, 3), {}), ((2, 3), {}), ((3, 2), {"offset": 1}), ((2, 3), {"offset": -1}),
    ((2, 3), {"offset": 5}), ((2, 3, 4), {}), ((2, 3, 4), {"axis1": 1, "axis2": 2}),
    ((2, 3, 4), {"offset": 1, "axis1": -1, "axis2": 0}), ((3, 3), {"axis1": 1, "axis2": 0}),
]:  # fmt: skip
    put(np.trace, f"{shape} {options}", with_static(np.trace, **options), numbers(shape))
put(np.trace, "offset by position", lambda x: np.trace(x, 1, -2, -1), numbers((2, 3, 3)))
for shape, options in [((3, 3), {}), ((2, 3, 4), {"offset": 2}), ((2, 4, 3), {"offset": -1})]:
    for function in (np.linalg.trace, np.linalg.diagonal):
        put(function, f"{shape} {options}", with_static(function, **options), numbers(shape))
for function in (np.matrix_transpose, np.linalg.matrix_transpose):
    put(function, "(2, 3)", function, numbers((2, 3)))
    put(function, "(2, 1, 3)", function, numbers((2, 1, 3)))


# Inverses, linear systems and determinants --------------------------------------------------------


def well_conditioned(shape: Shape, seed: int = 0) -> np.ndarray:
    """Return well-conditioned matrices, near a multiple of the identity."""
    return numbers(shape, -0.6, 0.6, seed) + 1.5 * np.eye(*shape[-2:])


MATRICES: list[Shape] = [(1, 1), (2, 2), (3, 3), (2, 3, 3), (2, 1, 2, 2), (0, 3, 3), (0, 0)]
for shape in MATRICES:
    put(np.linalg.inv, f"{shape}", np.linalg.inv, well_conditioned(shape))
    put(np.linalg.det, f"{shape}", np.linalg.det, well_conditioned(shape))
    put(np.linalg.slogdet, f"{shape}", lambda x: np.linalg.slogdet(x)[1], well_conditioned(shape))
put(np.linalg.det, "(5, 5)", np.linalg.det, well_conditioned((5, 5)))
put(np.linalg.det, "negative", np.linalg.det, well_conditioned((3, 3))[::-1].copy())
put(
    np.linalg.slogdet,
    "negative",
    lambda x: np.linalg.slogdet(x).logabsdet,
    -well_conditioned((3, 3)),
)
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
RANK_ONE = np.outer([1.0, 2.0, -1.0], [1.0, 0.5, 2.0])
for label, x in [("singular", SINGULAR), ("rank 1", RANK_ONE), ("zeros", np.zeros((3, 3))),
                 ("identity", np.eye(3)), ("a batch", np.stack([SINGULAR, RANK_ONE]))]:  # fmt: skip
    put(np.linalg.det, label, np.linalg.det, x)
for shape in [(2, 2), (3, 3), (2, 4, 4), (1, 1)]:
    put(cofactors, f"{shape}", lambda x: as_single_operation(cofactors, x), well_conditioned(shape))
    put(
        change_of_cofactors,
        f"{shape}",
        lambda h, x: as_single_operation(change_of_cofactors, h, x),
        numbers(shape),
        well_conditioned(shape),
    )

for a_shape, b_shape in [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3, 2)),
    ((3, 3), (2, 3, 1)), ((2, 1, 2, 2), (3, 2, 2)), ((2, 2, 2), (2, 2)), ((1, 1), (1,)),
]:  # fmt: skip
    a, b = well_conditioned(a_shape), numbers(b_shape, seed=1)
    put(np.linalg.solve, f"{a_shape} {b_shape}", np.linalg.solve, a, b)
    put(np.linalg.solve, f"{a_shape} array left", with_left(np.linalg.solve, a), b)
    put(np.linalg.solve, f"{b_shape} array right", with_right(np.linalg.solve, b), a)

for shape in [(3, 2), (2, 3), (3, 3), (2, 4, 2), (1, 1)]:
    put(np.linalg.pinv, f"{shape}", np.linalg.pinv, well_conditioned(shape))
put(np.linalg.pinv, "rcond", lambda x: np.linalg.pinv(x, 1e-8), well_conditioned((3, 2)))
put(np.linalg.pinv, "rtol", lambda x: np.linalg.pinv(x, rtol=1e-8), well_conditioned((3, 2)))
put(
    np.linalg.pinv,
    "hermitian",
    lambda x: np.linalg.pinv(x + x.swapaxes(-1, -2), hermitian=True),
    well_conditioned((2, 3, 3)),
)

for a_shape, b_shape in [((4, 2), (4,)), ((4, 2), (4, 3)), ((2, 4), (2,)), ((2, 2), (2, 3))]:
    a, b = well_conditioned(a_shape), numbers(b_shape, seed=1)
    solution = lambda a, b: np.linalg.lstsq(a, b)[0]  # noqa: E731
    put(np.linalg.lstsq, f"solution {a_shape} {b_shape}", solution, a, b)
    residuals = lambda a, b: np.linalg.lstsq(a, b, rcond=1e-9)[1]  # noqa: E731
    put(np.linalg.lstsq, f"residuals {a_shape} {b_shape}", residuals, a, b)
put(
    np.linalg.lstsq,
    "singular values",
    lambda a: np.linalg.lstsq(a, np.ones(4))[3],
    well_conditioned((4, 2)),
)
put(np.linalg.lstsq, "array left", lambda b: np.linalg.lstsq(np.eye(4, 2), b)[0], numbers((4,)))

for n in (0, 1, 2, 3, 4, 5, 8, -1, -2, -3):
    f = lambda x, n=n: np.linalg.matrix_power(x, n)  # noqa: E731
    put(np.linalg.matrix_power, f"{n}", f, well_conditioned((3, 3)))
put(
    np.linalg.matrix_power,
    "a batch",
    lambda x: np.linalg.matrix_power(x, 3),
    well_conditioned((2, 2, 2)),
)
put(np.linalg.tensorinv, "ind 2", np.linalg.tensorinv, well_conditioned((4, 4)).reshape(2, 2, 4))
put(
    np.linalg.tensorinv,
    "ind 1",
    lambda a: np.linalg.tensorinv(a, ind=1),
    well_conditioned((4, 4)).reshape(4, 2, 2),
)
put(
    np.linalg.tensorsolve,
    "(4,)",
    np.linalg.tensorsolve,
    well_conditioned((4, 4)).reshape(2, 2, 4),
    numbers((2, 2)),
)
put(
    np.linalg.tensorsolve,
    "axes",
    lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)),
    well_conditioned((4, 4)).T.reshape(4, 2, 2).copy(),
    numbers((2, 2)),
)

put(np.copy, "(2, 3)", np.copy, numbers((2, 3), -1, 1))
put(np.astype, "(2,)", lambda x: np.astype(x, x.dtype), numbers((2,), -1, 1))
