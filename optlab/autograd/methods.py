"""The methods of NumPy's arrays, on Tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

# Tensors are made of these methods, and the methods run operations on Tensors: the two modules
# import each other, and meet when a method is called.
import optlab.autograd.tensor as engine
from optlab.autograd.operation import TABLE
from optlab.autograd.rules import elementwise, reductions, shapes

if TYPE_CHECKING:
    from optlab.autograd.tensor import Tensor


class ArrayMethods:
    """``t.sum()``, ``t.reshape(...)`` and the like: each is one operation of the table."""

    __slots__ = ()

    data: Any
    node: Any

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Add up elements over `axis` (all of them by default)."""
        return engine.apply(reductions.SUM, (self,), {"axis": axis, "keepdims": keepdims})

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Average elements over `axis`."""
        return engine.apply(reductions.MEAN, (self,), {"axis": axis, "keepdims": keepdims})

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Give the largest element over `axis`; where several tie they share its gradient."""
        return engine.apply(reductions.MAX, (self,), {"axis": axis, "keepdims": keepdims})

    def min(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Give the smallest element over `axis`; where several tie they share its gradient."""
        return engine.apply(reductions.MIN, (self,), {"axis": axis, "keepdims": keepdims})

    def prod(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Multiply elements over `axis`."""
        return engine.apply(reductions.PROD, (self,), {"axis": axis, "keepdims": keepdims})

    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
        """Give the variance over `axis`."""
        return engine.apply(
            reductions.VAR, (self,), {"axis": axis, "ddof": ddof, "keepdims": keepdims}
        )

    def std(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
        """Give the standard deviation over `axis`."""
        return engine.apply(
            reductions.STD, (self,), {"axis": axis, "ddof": ddof, "keepdims": keepdims}
        )

    def cumsum(self, axis: Any = None) -> Tensor:
        """Give running sums along `axis`."""
        return engine.apply(reductions.CUMSUM, (self,), {"axis": axis})

    def argmax(self, axis: Any = None) -> Any:
        """Give the position of the largest element, a plain array of integers."""
        return self.data.argmax(axis=axis)

    def argmin(self, axis: Any = None) -> Any:
        """Give the position of the smallest element, a plain array of integers."""
        return self.data.argmin(axis=axis)

    def dot(self, other: Any) -> Tensor:
        """Give ``np.dot(self, other)``."""
        return np.dot(self, other)  # type: ignore[no-any-return, call-overload]

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Add up the elements of a diagonal."""
        return np.trace(self, offset, axis1, axis2)  # type: ignore[no-any-return, call-overload]

    def clip(self, low: Any = None, high: Any = None) -> Tensor:
        """Limit elements to the interval from `low` to `high`."""
        return engine.apply(TABLE[np.clip], (self, low, high))

    def reshape(self, *shape: Any) -> Tensor:
        """Give the same elements in another shape: ``reshape(2, 3)`` or ``reshape([2, 3])``."""
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        return engine.apply(shapes.RESHAPE, (self,), {"shape": shape})

    def ravel(self) -> Tensor:
        """Give all elements along one axis."""
        return engine.apply(shapes.RAVEL, (self,))

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Tensor:
        """Leave out axes of length 1."""
        return engine.apply(shapes.SQUEEZE, (self,), {"axis": axis})

    def transpose(self, *axes: Any) -> Tensor:
        """Reorder the axes; without arguments, reverse them."""
        if len(axes) == 1 and not isinstance(axes[0], int):
            axes = axes[0]
        return engine.apply(shapes.TRANSPOSE, (self,), {"axes": axes or None})

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return engine.apply(shapes.TRANSPOSE, (self,))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged: each matrix of a stack transposed."""
        return np.matrix_transpose(self)  # type: ignore[no-any-return, call-overload]

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Exchange two axes."""
        return engine.apply(shapes.SWAPAXES, (self,), {"axis1": axis1, "axis2": axis2})

    def astype(self, dtype: Any) -> Tensor:
        """Give the values in another dtype; the gradient comes back in this one."""
        wanted = np.dtype(dtype)
        if wanted.kind != "f" and self.node is not None:
            raise engine.refusal(
                self, f"casting it to {wanted}", ".detach() first if that is wanted"
            )
        return engine.apply(shapes.CAST, (self,), {"dtype": wanted})

    def sqrt(self) -> Tensor:
        """Give the square roots."""
        return engine.apply(elementwise.SQRT, (self,))

    def exp(self) -> Tensor:
        """Give the exponentials."""
        return engine.apply(elementwise.EXP, (self,))

    def log(self) -> Tensor:
        """Give the natural logarithms."""
        return engine.apply(elementwise.LOG, (self,))

    def tanh(self) -> Tensor:
        """Give the hyperbolic tangents."""
        return engine.apply(elementwise.TANH, (self,))
