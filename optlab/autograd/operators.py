"""The operators of Tensors: arithmetic, comparisons, indexing."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

# Tensors are made of these operators, and the operators run operations on Tensors: the two modules
# import each other, and meet when an operator is used.
import optlab.autograd.tensor as engine
from optlab.autograd import in_place
from optlab.autograd.rules.elementwise import (
    ABSOLUTE,
    ADD,
    DIVIDE,
    DIVMOD,
    FLOOR_DIVIDE,
    INTEGER_POWER,
    MULTIPLY,
    NEGATIVE,
    NUMBER_POWER,
    POSITIVE,
    POWER,
    REMAINDER,
    SQRT,
    SQUARE,
    SUBTRACT,
)  # fmt: skip
from optlab.autograd.rules.indexing import GETITEM
from optlab.autograd.rules.joining import UNSTACK
from optlab.autograd.rules.linear_algebra import MATMUL
from optlab.backend.arrays import check_same_device
from optlab.backend.dtypes import common_dtype, is_floating

if TYPE_CHECKING:
    from optlab.autograd.tensor import Tensor

_numpy: Any = np  # its type stubs do not know Tensors


class Operators:
    """``t + u``, ``t < u``, ``t[i]`` and the like: each is one operation of the table."""

    __slots__ = ()

    data: Any
    ndim: Any

    def __add__(self, other: Any) -> Tensor:
        return engine.apply(ADD, (self, other))

    def __radd__(self, other: Any) -> Tensor:
        return engine.apply(ADD, (other, self))

    def __sub__(self, other: Any) -> Tensor:
        return engine.apply(SUBTRACT, (self, other))

    def __rsub__(self, other: Any) -> Tensor:
        return engine.apply(SUBTRACT, (other, self))

    def __mul__(self, other: Any) -> Tensor:
        return engine.apply(MULTIPLY, (self, other))

    def __rmul__(self, other: Any) -> Tensor:
        return engine.apply(MULTIPLY, (other, self))

    def __truediv__(self, other: Any) -> Tensor:
        return engine.apply(DIVIDE, (self, other))

    def __rtruediv__(self, other: Any) -> Tensor:
        return engine.apply(DIVIDE, (other, self))

    def __mod__(self, other: Any) -> Tensor:
        return engine.apply(REMAINDER, (self, other))

    def __rmod__(self, other: Any) -> Tensor:
        return engine.apply(REMAINDER, (other, self))

    def __floordiv__(self, other: Any) -> Any:
        return engine.apply(FLOOR_DIVIDE, (self, other))

    def __rfloordiv__(self, other: Any) -> Any:
        return engine.apply(FLOOR_DIVIDE, (other, self))

    def __divmod__(self, other: Any) -> Any:
        return engine.apply_several(DIVMOD, (self, other))

    def __rdivmod__(self, other: Any) -> Any:
        return engine.apply_several(DIVMOD, (other, self))

    def __pow__(self, other: Any) -> Tensor:
        return power(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return engine.apply(POWER, (other, self))

    def __matmul__(self, other: Any) -> Tensor:
        return engine.apply(MATMUL, (self, other))

    def __rmatmul__(self, other: Any) -> Tensor:
        return engine.apply(MATMUL, (other, self))

    def __neg__(self) -> Tensor:
        return engine.apply(NEGATIVE, (self,))

    def __pos__(self) -> Tensor:
        return engine.apply(POSITIVE, (self,))

    def __abs__(self) -> Tensor:
        return engine.apply(ABSOLUTE, (self,))

    # In place: the memory is written to, and the Tensor stands for the new values.

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

    # Bits are of whole numbers: plain arrays for those, refused by name where a gradient is wanted.

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

    # Comparisons have no derivative: they give plain arrays.

    def __eq__(self, other: Any) -> Any:
        return _compared(operator.eq, self.data, engine.raw(other))

    def __ne__(self, other: Any) -> Any:
        return _compared(operator.ne, self.data, engine.raw(other))

    def __lt__(self, other: Any) -> Any:
        return _compared(operator.lt, self.data, engine.raw(other))

    def __le__(self, other: Any) -> Any:
        return _compared(operator.le, self.data, engine.raw(other))

    def __gt__(self, other: Any) -> Any:
        return _compared(operator.gt, self.data, engine.raw(other))

    def __ge__(self, other: Any) -> Any:
        return _compared(operator.ge, self.data, engine.raw(other))

    # Indexing -----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        return engine.apply(GETITEM, (self,), {"index": _plain(index)})

    def __setitem__(self, index: Any, value: Any) -> None:
        in_place.write_item(self, _plain(index), value)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("a Tensor with no axes cannot be iterated over; use .item().")
        if not len(self.data):
            return iter(())
        return iter(engine.apply_several(UNSTACK, (self,), {"axis": 0}))


def _plain(index: Any) -> Any:
    """Take the arrays out of the Tensors in an index, and copy those that others may write to."""
    if isinstance(index, (int, slice)):
        return index
    if isinstance(index, tuple):
        return tuple(map(_plain, index))
    if isinstance(index, (list, np.ndarray, Operators)):
        # Backward reads the index again, and the caller may go on writing to his own.
        return copy.deepcopy(index) if isinstance(index, list) else engine.raw(index).copy()
    return index


def power(base: Any, exponent: Any) -> Tensor:
    """Give ``base ** exponent``; a small whole exponent becomes products."""
    kind = type(exponent)
    if kind is not int and isinstance(exponent, np.generic) and exponent.dtype.kind in "fiu":
        # A NumPy scalar brings its type along, a Python number does not.
        dtype = engine.raw(base).dtype
        wanted = common_dtype(dtype, exponent.dtype)
        if is_floating(wanted):
            base = base if wanted == dtype else base.astype(wanted)
            exponent = exponent.item()
    if type(exponent) in (int, float) and is_floating(engine.raw(base).dtype):
        if exponent == 2:
            return engine.apply(SQUARE, (base,))
        if exponent == 1:
            return engine.apply(POSITIVE, (base,))
        if exponent == 0.5:
            return engine.apply(SQRT, (base,))
        if exponent and -64 <= exponent <= 64 and exponent % 1 == 0:
            return engine.apply(INTEGER_POWER, (base,), {"exponent": int(exponent)})
        return engine.apply(NUMBER_POWER, (base,), {"exponent": exponent})
    return engine.apply(POWER, (base, exponent))


def _compared(comparison: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Compare arrays; say so where they lie on different devices."""
    try:
        return comparison(a, b)
    except TypeError:
        check_same_device(f"the comparison {comparison.__name__}", (a, b))
        raise
