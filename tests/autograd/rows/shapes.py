"""Rows of functions that rearrange elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from optlab.autograd.rules.manipulation.shapes import cast, copied, repeat_evenly
from optlab.autograd.tensor.tensor import raw
from tests.autograd.rows.table import (
    NUMPY,
    SHAPES,
    numbers,
    put,
)


def _filled_like(a: Any, fill_value: Any, **options: Any) -> Any:
    """Call np.full_like so that NumPy dispatches to a Tensor."""
    like = ol.to_tensor(a, fill_value.dtype)
    return np.full_like(
        raw(like) if isinstance(fill_value, np.ndarray) else like, fill_value, **options
    )


# Functions that rearrange elements ----------------------------------------------------------------

for function, calls in {
    np.reshape: [((2, 3), (3, 2)), ((2, 3), (-1,)), ((2, 3), 6), ((1,), ()), ((), (1, 1)),
                 ((2, 3), (1, -1, 2)), ((6,), [2, 3])],
    np.squeeze: [((2, 1, 3),), ((2, 1, 3), 1), ((1, 2, 1), (0, -1)), ((2, 3),), ((1,),), ((),)],
    np.expand_dims: [((2, 3), 0), ((2, 3), -1), ((2, 3), (0, 3)), ((), 0)],
    np.ravel: [((2, 3),), ((),), ((3,),)],
    np.transpose: [((2, 3),), ((2, 1, 3), (1, 2, 0)), ((2, 1, 3), (-1, 0, 1)), ((3,),), ((),),
                   ((2, 3, 4), [2, 0, 1]), ((3,), 0), ((3,), -1)],
    np.swapaxes: [((2, 3), 0, 1), ((2, 1, 3), -1, 0), ((2, 3), 1, 1)],
    np.moveaxis: [((2, 1, 3), 0, -1), ((2, 1, 3), (0, 1), (-1, 0)), ((2, 3), 1, 0),
                  ((2, 3, 4), [2, 0], [0, 1])],
    np.flip: [((2, 3),), ((2, 3), 0), ((2, 3), (0, -1)), ((3,), 0), ((),)],
    np.roll: [((2, 3), 1), ((2, 3), -2, 1), ((2, 3), (1, 2), (0, 1)), ((4,), 5),
              ((2, 3), 1, (0, 1))],
    np.broadcast_to: [((3,), (2, 3)), ((), (2, 3)), ((2, 1), (4, 2, 3)), ((2, 3), (2, 3)),
                      ((1, 1), (1, 4)), ((1,), 3)],
    np.atleast_1d: [((),), ((3,),), ((2, 3),)],
    np.atleast_2d: [((),), ((3,),), ((2, 3),), ((2, 1, 3),)],
    np.atleast_3d: [((),), ((3,),), ((2, 3),), ((2, 1, 3),), ((2, 1, 1, 3),)],
    np.rollaxis: [((2, 3, 4), 2), ((2, 3, 4), -1, 1), ((2, 3, 4), 0, 3), ((2, 3), 1, -1),
                  ((2, 3, 4), 0, -1), ((2, 3, 4), 0, -2), ((2, 3, 4), 1, -3)],
    np.fft.fftshift: [((5,),), ((2, 3),), ((4, 3), 1), ((2, 3, 5), (0, -1))],
    np.fft.ifftshift: [((5,),), ((2, 3),), ((4, 3), 1), ((2, 3, 5), [0, -1])],
    np.rot90: [((2, 3),), ((2, 3), 2), ((2, 3), -1), ((2, 3), 4), ((2, 3, 4), 1, (2, 0)),
               ((2, 3, 4), 3, (-1, 1)), ((2, 2, 2), 2, (0, 2))],
    np.fliplr: [((2, 3),), ((2, 3, 2),)],
    np.flipud: [((3,),), ((2, 3),)],
    np.tile: [((3,), 2), ((2, 3), (2, 1)), ((2, 3), 2), ((2,), (3, 1, 2)), ((2, 1, 3), (1, 4)),
              ((), 3), ((), ()), ((2,), 0), ((2,), [2, 2]), ((2,), np.array([2, 2]))],
    np.repeat: [((3,), 2), ((2, 3), 2), ((2, 3), 3, 0), ((2, 3), 2, -1), ((), 3), ((2, 3), 0, 1),
                ((2, 3), [1, 0, 2], 1), ((3,), np.array([2, 0, 1])), ((2, 2), [1, 2, 3, 0]),
                ((2, 3), [2], 1), ((1, 3), 4, 0)],
    np.resize: [((2, 3), (2, 4)), ((3,), 7), ((2, 3), 2), ((3,), (0, 2)), ((4,), ())],
    np.tril: [((3, 3),), ((2, 4), 1), ((4, 2), -1), ((2, 3, 3), 0), ((3,),)],
    np.triu: [((3, 3),), ((2, 4), 1), ((4, 2), -1), ((2, 3, 3), 0), ((3,),)],
    np.matrix_transpose: [((2, 3),), ((4, 2, 3),)],
}.items():  # fmt: skip
    for shape, *rest in calls:
        put(function, f"{shape} {rest}", lambda x, f=function, r=tuple(rest): f(x, *r),
            numbers(shape))  # fmt: skip

for shape, order in [((2, 3), "C"), ((2, 3), "F"), ((2, 3), "A"), ((2, 3, 4), "F")]:
    put(np.reshape, f"{shape} order {order}",
        lambda x, order=order: np.reshape(x, (-1, 2), order=order), numbers(shape))  # fmt: skip
    put(np.reshape, f"{shape} transposed, order {order}",
        lambda x, order=order: np.reshape(x.T, (2, -1), order=order), numbers(shape))  # fmt: skip
if NUMPY >= (2, 1):
    put(np.reshape, "a copy", lambda x: np.reshape(x, 6, copy=True), numbers((2, 3)))
put(np.reshape, "method", lambda x: x.reshape(3, 2, order="F"), numbers((2, 3)))
for label, move in {
    "as it is": lambda x: x, "transposed": lambda x: x.T, "backwards": lambda x: x[:, ::-1],
    "moved": lambda x: np.moveaxis(x, 0, 1), "strided": lambda x: x[::2, :, 1:],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}.items():  # fmt: skip
    for order in "CFAK":
        put(np.ravel, f"{label}, order {order}",
            lambda x, move=move, order=order: np.ravel(move(x), order),
            numbers((3, 2, 4)))  # fmt: skip
for function, shapes in {
    np.atleast_1d: [(), (2,)], np.atleast_2d: [(2,), (1, 2)], np.atleast_3d: [(2,), (1, 2, 1)],
    np.broadcast_arrays: [(2, 1), (3,)],
}.items():  # fmt: skip
    put(function, "several", lambda a, b, f=function: (lambda x, y: x * y)(*f(a, b)),
        *map(numbers, shapes))  # fmt: skip
put(np.atleast_2d, "beside a list", lambda a: np.atleast_2d(a, [1.0, 2.0])[1] * a, numbers((2,)))
put(np.broadcast_arrays, "beside an array",
    lambda a: np.broadcast_arrays(np.ones((3, 1)), a, 2.0)[1], numbers((2,)))  # fmt: skip
for options in (
    {}, {"indexing": "ij"}, {"sparse": True}, {"copy": False}, {"sparse": True, "indexing": "ij"},
):  # fmt: skip
    put(np.meshgrid, f"{options}",
        lambda a, b, c, o=options: (lambda x, y, z: x * y + z)(*np.meshgrid(a, b, c, **o)),
        numbers((2,)), numbers((3,)), numbers((2,), seed=1))  # fmt: skip
put(np.meshgrid, "one", lambda a: np.meshgrid(a)[0], numbers((2,)))
put(np.meshgrid, "beside an array", lambda a: np.meshgrid(a, np.arange(3.0))[0], numbers((2,)))
put(np.full_like, "a number", lambda a: _filled_like(np.zeros((2, 3)), a), numbers(()))
put(np.full_like, "a row", lambda a: _filled_like(np.zeros((2, 3)), a), numbers((3,)))
put(np.full_like, "another shape", lambda a: _filled_like(np.zeros(3), a, shape=(4, 2)),
    numbers((2,)))  # fmt: skip


def _filled_in(made: Any, x: Any) -> Any:
    """Write into an array that was made like `x`."""
    made[1:] += x[1:]
    made[0] = x[1] * x[0]
    return made * made


for function in (np.zeros_like, np.ones_like):
    put(function, "written into", lambda x, f=function: _filled_in(f(x), x), numbers((3,)))
    put(function, "a factor", lambda x, f=function: x * x + f(x), numbers((2, 3)))


def _emptied(x: Any) -> Any:
    made = np.empty_like(x)
    made[...] = x * x
    return made


put(np.empty_like, "written into", _emptied, numbers((2, 3)))

for shape in SHAPES:
    for order in "CK":
        put(copied, f"{shape} {order}", lambda x, order=order: x.copy(order), numbers(shape))
put(repeat_evenly, "(2, 3)", lambda x: x.repeat(2, 1), numbers((2, 3)))
for shape in SHAPES:
    put(cast, f"{shape}", lambda x: x.astype("float64") * 2.0, numbers(shape))
