"""The operators of Tensors: arithmetic, comparisons, indexing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

# Tensors are made of these operators, and the operators run operations on Tensors: the two modules
# import each other, and meet when an operator is used.
import optlab.autograd.tensor as engine
from optlab.autograd import in_place
from optlab.autograd.rules.elementwise import (
    ABSOLUTE,
    ADD,
    DIVIDE,
    FLOOR_DIVIDE,
    INTEGER_POWER,
    MULTIPLY,
    NEGATIVE,
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

if TYPE_CHECKING:
    from optlab.autograd.tensor import Tensor


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

    # Comparisons have no derivative: they give plain arrays.

    def __eq__(self, other: Any) -> Any:
        return self.data == engine.raw(other)

    def __ne__(self, other: Any) -> Any:
        return self.data != engine.raw(other)

    def __lt__(self, other: Any) -> Any:
        return self.data < engine.raw(other)

    def __le__(self, other: Any) -> Any:
        return self.data <= engine.raw(other)

    def __gt__(self, other: Any) -> Any:
        return self.data > engine.raw(other)

    def __ge__(self, other: Any) -> Any:
        return self.data >= engine.raw(other)

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
    """Take the arrays out of the Tensors in an index."""
    if isinstance(index, Operators):
        return index.data
    if isinstance(index, tuple):
        return tuple(part.data if isinstance(part, Operators) else part for part in index)
    return index


def power(base: Any, exponent: Any) -> Tensor:
    """Give ``base ** exponent``; a small whole exponent becomes products."""
    if type(exponent) in (int, float):
        if exponent == 2:
            return engine.apply(SQUARE, (base,))
        if exponent == 1:
            return engine.apply(POSITIVE, (base,))
        if exponent == 0.5:
            return engine.apply(SQRT, (base,))
        whole = int(exponent) if exponent == exponent // 1 else 0
        if whole and abs(whole) <= 64 and engine.raw(base).dtype.kind == "f":
            return engine.apply(INTEGER_POWER, (base,), {"exponent": whole})
    return engine.apply(POWER, (base, exponent))
