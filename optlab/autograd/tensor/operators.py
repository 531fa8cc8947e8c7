"""The operators of Tensors: arithmetic, comparisons, indexing."""

# `apply` returns Any, as the tape does not know Tensor by name.
# mypy: no-warn-return-any

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import NumpyVersion

from optlab.autograd.rules.elementwise import (
    ABSOLUTE,
    ADD,
    DIVIDE,
    DIVMOD,
    FLOOR_DIVIDE,
    MULTIPLY,
    NEGATIVE,
    POSITIVE,
    POWER,
    REMAINDER,
    SUBTRACT,
)  # fmt: skip
from optlab.autograd.rules.linalg.linear_algebra import MATMUL
from optlab.autograd.rules.manipulation.indexing import GETITEM
from optlab.autograd.rules.manipulation.joining import UNSTACK
from optlab.autograd.tape import views
from optlab.autograd.tape.apply import apply, apply_several
from optlab.autograd.tape.base import raw
from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.powers import power
from optlab.backend.arrays import check_same_device, copied
from optlab.backend.call_recorder import here
from optlab.backend.dtypes import float32

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor

_numpy: Any = np  # its type stubs do not know Tensors

#: Exponents that leave the dtype of an array as it is even where they are NumPy scalars: before
#: NumPy 2.3, the operator has a quick way for them.
_QUICK_POWERS = (-1, 0, 0.5, 1, 2) if NumpyVersion(np.__version__) < "2.3.0" else ()


class Operators:
    """``t + u``, ``t < u``, ``t[i]`` and the like: each is one operation of the table.

    Integers divided by integers are float32, and so are integers divided by ``np.float32(2)``:
    ``/`` is an operator of Tensors. Where NumPy's array or scalar stands to the left, NumPy calls
    ``np.divide``, which cannot be told from ``np.divide(a, t)`` and has NumPy's dtype: float64.
    Write ``ol.to_tensor(a) / t`` there.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> t = ol.to_tensor([1, 2])
    >>> str((t / np.array([2, 2])).dtype), str((np.array([2, 2]) / t).dtype)
    ('float32', 'float64')
    """

    __slots__ = ()

    data: Any
    ndim: Any
    node: Any

    # Integers that meet a Python float, and the quotient of integers, are float32, the dtype that
    # `to_tensor` gives Python floats: NumPy's float64 would widen every parameter that they meet.

    def __add__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(ADD, (self, other))

    def __radd__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(ADD, (other, self))

    def __sub__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(SUBTRACT, (self, other))

    def __rsub__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(SUBTRACT, (other, self))

    def __mul__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(MULTIPLY, (self, other))

    def __rmul__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(MULTIPLY, (other, self))

    def __truediv__(self, other: Any) -> Tensor:
        if self.node is None and self.data.dtype.kind in "iub":
            return _quotient(self, other, False)
        return apply(DIVIDE, (self, other))

    def __rtruediv__(self, other: Any) -> Tensor:
        if self.node is None and self.data.dtype.kind in "iub":
            return _quotient(self, other, True)
        return apply(DIVIDE, (other, self))

    def __mod__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(REMAINDER, (self, other))

    def __rmod__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(REMAINDER, (other, self))

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(FLOOR_DIVIDE, (self, other))

    def __rfloordiv__(self, other: Any) -> Any:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(FLOOR_DIVIDE, (other, self))

    def __divmod__(self, other: Any) -> Any:
        return apply_several(DIVMOD, (self, other))

    def __rdivmod__(self, other: Any) -> Any:
        return apply_several(DIVMOD, (other, self))

    def __pow__(self, other: Any) -> Tensor:
        if _QUICK_POWERS and isinstance(other, np.generic) and isinstance(self.data, np.ndarray):
            quick = _QUICK_POWERS if self.data.dtype.kind == "f" else (2,)
            other = other.item() if other in quick else other
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return power(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        if type(other) is float and self.node is None:
            self = _with_float(self)
        return apply(POWER, (other, self))

    def __matmul__(self, other: Any) -> Tensor:
        return apply(MATMUL, (self, other))

    def __rmatmul__(self, other: Any) -> Tensor:
        return apply(MATMUL, (other, self))

    def __neg__(self) -> Tensor:
        return apply(NEGATIVE, (self,))

    def __pos__(self) -> Tensor:
        return apply(POSITIVE, (self,))

    def __abs__(self) -> Tensor:
        return apply(ABSOLUTE, (self,))

    # In place: the memory is overwritten, and the Tensor has the node of the new values.

    def __iadd__(self, other: Any) -> Any:
        return in_place.combine(self, "+", other)  # type: ignore[arg-type]

    def __isub__(self, other: Any) -> Any:
        return in_place.combine(self, "-", other)  # type: ignore[arg-type]

    def __imul__(self, other: Any) -> Any:
        return in_place.combine(self, "*", other)  # type: ignore[arg-type]

    def __itruediv__(self, other: Any) -> Any:
        return in_place.combine(self, "/", other)  # type: ignore[arg-type]

    def __ifloordiv__(self, other: Any) -> Any:
        return in_place.combine(self, "//", other)  # type: ignore[arg-type]

    def __imod__(self, other: Any) -> Any:
        return in_place.combine(self, "%", other)  # type: ignore[arg-type]

    def __ipow__(self, other: Any) -> Any:
        return in_place.combine(self, "**", other)  # type: ignore[arg-type]

    def __imatmul__(self, other: Any) -> Any:
        return in_place.combine(self, "@", other)  # type: ignore[arg-type]

    # Bitwise operators give plain arrays of integers; with a gradient they raise an error.

    def __invert__(self) -> Any:
        return _numpy.invert(self)

    def __and__(self, other: Any) -> Any:
        return _numpy.bitwise_and(self, other)

    def __or__(self, other: Any) -> Any:
        return _numpy.bitwise_or(self, other)

    def __xor__(self, other: Any) -> Any:
        return _numpy.bitwise_xor(self, other)

    def __lshift__(self, other: Any) -> Any:
        return _numpy.left_shift(self, other)

    def __rshift__(self, other: Any) -> Any:
        return _numpy.right_shift(self, other)

    def __rand__(self, other: Any) -> Any:
        return _numpy.bitwise_and(other, self)

    def __ror__(self, other: Any) -> Any:
        return _numpy.bitwise_or(other, self)

    def __rxor__(self, other: Any) -> Any:
        return _numpy.bitwise_xor(other, self)

    def __rlshift__(self, other: Any) -> Any:
        return _numpy.left_shift(other, self)

    def __rrshift__(self, other: Any) -> Any:
        return _numpy.right_shift(other, self)

    # Comparisons have no derivative: they return plain arrays.

    def __eq__(self, other: Any) -> Any:
        return _compare(operator.eq, self, other)

    def __ne__(self, other: Any) -> Any:
        return _compare(operator.ne, self, other)

    def __lt__(self, other: Any) -> Any:
        return _compare(operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return _compare(operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return _compare(operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return _compare(operator.ge, self, other)

    # Indexing -----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        return apply(GETITEM, (self,), {"index": _plain_index(index)})

    def __setitem__(self, index: Any, value: Any) -> None:
        in_place.write_item(self, _plain_index(index), value)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("a Tensor with no axes cannot be iterated over; use .item().")
        if not len(self.data):
            return iter(())
        rows = apply_several(UNSTACK, (self,), {"axis": 0})
        views.link_parts(rows, self, GETITEM, range(len(rows)))
        return iter(rows)


def _with_float(t: Any) -> Any:
    """Return a Tensor of integers or truth values in float32; another one unchanged."""
    return t.astype(float32) if t.data.dtype.kind in "iub" else t


def _quotient(t: Any, other: Any, swapped: bool) -> Tensor:
    """Divide a Tensor of integers or truth values by `other`, or the other way round."""
    whole = getattr(raw(other), "dtype", float32).kind in "iub"
    if whole or type(other) in (int, float, bool, np.float32):
        t, other = t.astype(float32), other.astype(float32) if whole else other
    return apply(DIVIDE, (other, t) if swapped else (t, other))


def _plain_index(index: Any) -> Any:
    """Return an index with arrays for Tensors, and copies of arrays and lists."""
    if isinstance(index, (int, slice)):
        return index
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    if isinstance(index, (list, np.ndarray, Operators)):
        # Backward reads the index again, and the caller may write to the array meanwhile.
        if isinstance(index, Operators):
            return copied(index.data)
        return copy.deepcopy(index) if isinstance(index, list) else index.copy()
    return index


def _compare(comparison: Callable[[Any, Any], Any], t: Any, other: Any) -> Any:
    """Compare values; raise an error if they are on different devices."""
    a, b = t.data, raw(other)
    if here.recorder is not None:
        here.recorder.meet((t, other))
        return here.recorder.write(comparison.__name__, comparison, (a, b), {})
    try:
        return comparison(a, b)
    except TypeError:
        check_same_device(f"the comparison {comparison.__name__}", (a, b))
        raise
