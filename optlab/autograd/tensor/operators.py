"""The operators of Tensors: arithmetic, comparisons, indexing."""

# `apply` returns Any, as the tape does not know Tensor by name.
# mypy: no-warn-return-any

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

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
from optlab.autograd.tape.apply import apply, apply_several
from optlab.autograd.tape.base import raw
from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.powers import power
from optlab.backend.arrays import check_same_device

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor

_numpy: Any = np  # its type stubs do not know Tensors


class Operators:
    """``t + u``, ``t < u``, ``t[i]`` and the like: each is one operation of the table."""

    __slots__ = ()

    data: Any
    ndim: Any

    def __add__(self, other: Any) -> Tensor:
        return apply(ADD, (self, other))

    def __radd__(self, other: Any) -> Tensor:
        return apply(ADD, (other, self))

    def __sub__(self, other: Any) -> Tensor:
        return apply(SUBTRACT, (self, other))

    def __rsub__(self, other: Any) -> Tensor:
        return apply(SUBTRACT, (other, self))

    def __mul__(self, other: Any) -> Tensor:
        return apply(MULTIPLY, (self, other))

    def __rmul__(self, other: Any) -> Tensor:
        return apply(MULTIPLY, (other, self))

    def __truediv__(self, other: Any) -> Tensor:
        return apply(DIVIDE, (self, other))

    def __rtruediv__(self, other: Any) -> Tensor:
        return apply(DIVIDE, (other, self))

    def __mod__(self, other: Any) -> Tensor:
        return apply(REMAINDER, (self, other))

    def __rmod__(self, other: Any) -> Tensor:
        return apply(REMAINDER, (other, self))

    def __floordiv__(self, other: Any) -> Any:
        return apply(FLOOR_DIVIDE, (self, other))

    def __rfloordiv__(self, other: Any) -> Any:
        return apply(FLOOR_DIVIDE, (other, self))

    def __divmod__(self, other: Any) -> Any:
        return apply_several(DIVMOD, (self, other))

    def __rdivmod__(self, other: Any) -> Any:
        return apply_several(DIVMOD, (other, self))

    def __pow__(self, other: Any) -> Tensor:
        return power(self, other)

    def __rpow__(self, other: Any) -> Tensor:
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
        return _compare(operator.eq, self.data, raw(other))

    def __ne__(self, other: Any) -> Any:
        return _compare(operator.ne, self.data, raw(other))

    def __lt__(self, other: Any) -> Any:
        return _compare(operator.lt, self.data, raw(other))

    def __le__(self, other: Any) -> Any:
        return _compare(operator.le, self.data, raw(other))

    def __gt__(self, other: Any) -> Any:
        return _compare(operator.gt, self.data, raw(other))

    def __ge__(self, other: Any) -> Any:
        return _compare(operator.ge, self.data, raw(other))

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
        return iter(apply_several(UNSTACK, (self,), {"axis": 0}))


def _plain_index(index: Any) -> Any:
    """Return an index with arrays for Tensors, and copies of arrays and lists."""
    if isinstance(index, (int, slice)):
        return index
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    if isinstance(index, (list, np.ndarray, Operators)):
        # Backward reads the index again, and the caller may write to the array meanwhile.
        return copy.deepcopy(index) if isinstance(index, list) else raw(index).copy()
    return index


def _compare(comparison: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Compare arrays; raise an error if they are on different devices."""
    try:
        return comparison(a, b)
    except TypeError:
        check_same_device(f"the comparison {comparison.__name__}", (a, b))
        raise
