"""Row-sparse gradients: those of a large table of which an operation read a few rows.

The gradient of an embedding of 100,000 words and a sentence of 20 is 20 rows. It is stored as rows
until something needs the dense array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.half_precision import rounded, wide
from optlab.backend.arrays import Shape, array_module, on_host, zeros_beside


class RowSparse:
    """A gradient that is zero but for some rows.

    Row-sparse gradients add up without becoming dense; all else (arithmetic, NumPy functions, array
    methods) computes with the dense array.

    Parameters
    ----------
    rows : array of int, shape (n,)
        Indices of the rows, in any order; the values of repeated rows are added.
    values : array, shape (n, ...)
        Their gradients.
    shape : tuple of int
        Of the dense array; ``shape[1:]`` is that of a row.

    Examples
    --------
    >>> import numpy as np
    >>> g = RowSparse(np.array([2, 0, 2]), np.array([[1.0], [2.0], [10.0]]), (4, 1))
    >>> g.merged().rows, g.merged().values.ravel()
    (array([0, 2]), array([ 2., 11.]))
    >>> (g + g).dense().ravel()
    array([ 4.,  0., 22.,  0.])
    """

    __slots__ = ("_merged", "rows", "shape", "values")

    def __init__(self, rows: Any, values: Any, shape: Shape, merged: bool = False) -> None:
        self.rows = rows
        self.values = values
        self.shape = tuple(shape)
        self._merged = merged

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements of the dense array."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows and values."""
        return int(self.values.nbytes + self.rows.nbytes)

    def merged(self) -> RowSparse:
        """Return the gradient with unique rows in ascending order."""
        if self._merged:
            return self
        rows, place = np.unique(self.rows, return_inverse=True)
        given = wide(self.values)
        values = zeros_beside(given, (len(rows), *self.shape[1:]))
        array_module(given).add.at(values, place, given)
        return RowSparse(rows, rounded(values, self.dtype), self.shape, merged=True)

    def dense(self) -> Any:
        """Return the dense array."""
        given = wide(self.values)
        y = zeros_beside(given, self.shape)
        array_module(given).add.at(y, self.rows, given)
        return rounded(y, self.dtype)

    def numpy(self) -> Any:
        """Return the dense array on the host, as ``numpy()`` of a Tensor does."""
        return on_host(self.dense())

    def tolist(self) -> Any:
        """Return the dense array as nested lists."""
        return self.dense().tolist()

    def copy(self) -> RowSparse:
        """Return a copy."""
        return RowSparse(self.rows.copy(), self.values.copy(), self.shape, self._merged)

    def astype(self, dtype: Any) -> RowSparse:
        """Return the gradient in another dtype."""
        return RowSparse(self.rows, self.values.astype(dtype), self.shape, self._merged)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, RowSparse) and other.shape == self.shape:
            rows = np.concatenate([self.rows, other.rows])
            return RowSparse(rows, np.concatenate([self.values, other.values]), self.shape)
        return self.dense() + other

    def __radd__(self, other: Any) -> Any:
        return other + self.dense()

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (int, float)):
            return RowSparse(self.rows, self.values * other, self.shape, self._merged)
        return self.dense() * other

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __neg__(self) -> RowSparse:
        return RowSparse(self.rows, -self.values, self.shape, self._merged)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.dense(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(dense, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*[_dense_everywhere(x) for x in args], **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.dense()[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.dense(), name)

    def __repr__(self) -> str:
        return f"<RowSparse gradient: {len(self.rows)} rows of {self.shape}, {self.dtype}>"


def _arithmetic(name: str) -> Any:
    def method(self: RowSparse, *others: Any) -> Any:
        return getattr(self.dense(), name)(*map(dense, others))

    return method


for _name in ("sub", "rsub", "truediv", "rtruediv", "pow", "matmul", "rmatmul", "abs", "lt", "le",
              "gt", "ge"):  # fmt: skip
    setattr(RowSparse, f"__{_name}__", _arithmetic(f"__{_name}__"))


def dense(g: Any) -> Any:
    """Return the dense array of a row-sparse gradient; return anything else unchanged."""
    return g.dense() if isinstance(g, RowSparse) else g


def _dense_everywhere(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_dense_everywhere(part) for part in x)
    return dense(x)
