"""Derivative rule of reading rows of a table, whose gradient may be row-sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.manipulation.indexing import getitem, scatter_recorded
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.backend.arrays import Shape, constants_beside, unwrapped


def take_rows(x: Any, rows: Any, sparse: bool = False) -> Any:
    """Return ``x[rows]``; with `sparse`, the gradient of `x` holds these rows only.

    Examples
    --------
    >>> import numpy as np
    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0, 2])).ravel()
    array([3., 1., 3.])
    """
    return getitem(x, rows)


def _table_gradient(g: Any, x_shape: Shape, rows: Any, sparse: bool = False) -> Any:
    # A gradient that is itself recorded stays dense, so that it can be differentiated again.
    if not sparse or unwrapped(g) is not g:
        return scatter_recorded(g, rows, x_shape)
    rows = constants_beside(g, np.reshape(rows, -1))
    return RowSparse(rows, g.reshape(-1, *x_shape[1:]), x_shape)


TAKE_ROWS = rule(take_rows, _table_gradient, static="rows sparse")
