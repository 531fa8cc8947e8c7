"""Rows of functions that write into their first argument; each row gives what was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.autograd.rows.table import numbers, put


def _written(write: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of what is written to, and of the values: it writes and gives a product."""

    def run(x: Any, v: Any) -> Any:
        y = x * x
        write(y, v * v)
        return y * x

    return run


_A = numbers((3, 4))
_PLACES = np.array([[0, 2], [1, 1], [3, 0]])
_MASK = np.arange(12).reshape(3, 4) % 3 == 0
for _label, _function, _write, _shape in [
    ("rows", np.put_along_axis, lambda y, v: np.put_along_axis(y, _PLACES, v, 1), (3, 2)),
    ("a number", np.put_along_axis, lambda y, v: np.put_along_axis(y, _PLACES, v, axis=1), ()),
    ("flat", np.put_along_axis, lambda y, v: np.put_along_axis(y, np.array([1, 5]), v, None), (2,)),
    ("a number", np.fill_diagonal, np.fill_diagonal, ()),
    ("values", np.fill_diagonal, np.fill_diagonal, (3,)),
    ("cycled", np.fill_diagonal, np.fill_diagonal, (2,)),
    ("values", np.put, lambda y, v: np.put(y, [0, 5, -1], v), (3,)),
    ("cycled, wrapped, twice", np.put, lambda y, v: np.put(y, [0, 12, 3], v, mode="wrap"), (2,)),
    ("values", np.place, lambda y, v: np.place(y, _MASK, v), (3,)),
    ("values", np.putmask, lambda y, v: np.putmask(y, _MASK, v), (3, 4)),
    ("cycled", np.putmask, lambda y, v: np.putmask(y, _MASK, v), (5,)),
    ("a number", np.putmask, lambda y, v: np.putmask(y, _MASK, v), ()),
    ("all", np.copyto, np.copyto, (4,)),
    ("where", np.copyto, lambda y, v: np.copyto(y, v, where=_MASK), (3, 4)),
]:  # fmt: skip
    put(_function, _label, _written(_write), _A, numbers(_shape, seed=3))
