"""The methods of NumPy's arrays, on Tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

# Tensors are made of these methods, and the methods run operations on Tensors: the two modules
# import each other, and meet when a method is called.
import optlab.autograd.tensor as engine
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

    def clip(self, min: Any = None, max: Any = None, out: None = None, **options: Any) -> Tensor:
        """Limit elements to the interval from `min` to `max`."""
        return np.clip(self, min, max, out=out, **options)  # type: ignore[no-any-return, call-overload]

    def round(self, decimals: int = 0, out: None = None) -> Tensor:
        """Round to a number of decimals; its derivative is 0."""
        return np.round(self, decimals, out=out)  # type: ignore[no-any-return, call-overload]

    def conj(self) -> Tensor:
        """Give the complex conjugates: of real numbers, the numbers themselves."""
        return engine.apply(elementwise.CONJUGATE, (self,))

    conjugate = conj

    @property
    def real(self) -> Tensor:
        """The real part: this Tensor."""
        return self  # type: ignore[return-value]

    @property
    def imag(self) -> Tensor:
        """The imaginary part: zeros."""
        return engine.apply(elementwise.IMAGINARY, (self,))

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

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Exchange two axes."""
        return engine.apply(shapes.SWAPAXES, (self,), {"axis1": axis1, "axis2": axis2})

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Tensor:
        """Give the values in another dtype; the gradient comes back in this one."""
        wanted = np.dtype(dtype)
        if order != "K" or not subok:
            option = f"order={order!r}" if order != "K" else "subok=False"
            raise TypeError(f"astype(..., {option}) is not covered on Tensors.")
        if not np.can_cast(self.data.dtype, wanted, casting):
            raise TypeError(
                f"astype cannot cast {self.data.dtype} to {wanted} with casting={casting!r}; "
                "casting='same_kind' or 'unsafe' allows more."
            )
        if wanted.kind != "f" and self.node is not None:
            raise engine.refusal(
                self, f"casting it to {wanted}", ".detach() first if that is wanted"
            )
        if not copy and wanted == self.data.dtype:
            return self  # type: ignore[return-value]
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
