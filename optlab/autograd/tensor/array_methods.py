"""The methods of NumPy's arrays, on Tensors."""

# `apply` returns Any, as the tape does not know Tensor by name.
# mypy: no-warn-return-any

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from optlab.autograd.rules import elementwise
from optlab.autograd.rules.manipulation import indexing, shapes
from optlab.autograd.tape.apply import apply
from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.conversions import refusal
from optlab.autograd.tensor.reductions import ReductionMethods
from optlab.backend.dtypes import dtype_named, is_floating

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor


def _in_place(name: str) -> TypeError:
    return TypeError(
        f"Tensor.{name} would work in place, and what was computed from the Tensor would be wrong. "
        f"Write u = np.{name}(t, ...), which gives a new Tensor and keeps the gradient."
    )


#: What users of other libraries ask a Tensor for, and what it is called here.
ELSEWHERE = {
    "clone": "t.copy()", "unsqueeze": "np.expand_dims(t, axis)", "permute": "t.transpose(axes)",
    "requires_grad_": "t.requires_grad = True", "zero_": "t.grad = None", "dim": "t.ndim",
    "cat": "np.concatenate", "matmul": "t @ u", "mm": "t @ u", "numel": "t.size", "pow": "t ** n",
    "add_": "t += u", "mul_": "t *= u", "fill_": "t[...] = value", "double": "t.astype('float64')",
    "float": "t.astype('float32')", "long": "t.astype('int64')", "abs": "abs(t)",
    "sigmoid": "ol.nn.functional.sigmoid(t)", "relu": "ol.nn.functional.relu(t)",
    "gradient": "t.grad",
}  # fmt: skip


class ArrayMethods(ReductionMethods):
    """``t.sum()``, ``t.reshape(...)`` and the like: each is one operation of the table."""

    __slots__ = ()

    node: Any

    if not TYPE_CHECKING:  # a checker of types would take it for every attribute there is

        def __getattr__(self, name: str) -> Any:  # only asked for what is not there
            said = f"a Tensor has no attribute {name!r}"
            if name in ELSEWHERE:
                said += f"; write {ELSEWHERE[name]}"
            elif callable(getattr(np, name, None)):
                said += f"; write np.{name}(t)"
            raise AttributeError(said)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.data.shape

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.data.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.data.nbytes

    def dot(self, other: Any) -> Tensor:
        """Give ``np.dot(self, other)``."""
        return np.dot(self, other)  # type: ignore[call-overload]

    def clip(self, min: Any = None, max: Any = None, out: None = None, **options: Any) -> Tensor:
        """Limit elements to the interval from `min` to `max`."""
        return np.clip(self, min, max, out=out, **options)  # type: ignore[call-overload]

    def round(self, decimals: int = 0, out: None = None) -> Tensor:
        """Round to a number of decimals; its derivative is 0."""
        return np.round(self, decimals, out=out)  # type: ignore[call-overload]

    def conj(self) -> Tensor:
        """Give the complex conjugates: of real numbers, the numbers themselves."""
        return apply(elementwise.CONJUGATE, (self,))

    conjugate = conj

    @property
    def real(self) -> Tensor:
        """The real part: this Tensor."""
        return self  # type: ignore[return-value]

    @property
    def imag(self) -> Tensor:
        """The imaginary part: zeros."""
        return apply(elementwise.IMAGINARY, (self,))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
        """Give the same elements in another shape: ``reshape(2, 3)`` or ``reshape([2, 3])``."""
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0]) if np.ndim(shape[0]) else shape
        if order != "C" or copy is not None:
            return np.reshape(self, shape, order=order, copy=copy)  # type: ignore[call-overload]
        return apply(shapes.RESHAPE, (self,), {"shape": shape})

    def ravel(self, order: str = "C") -> Tensor:
        """Give all elements along one axis."""
        if order != "C":
            return np.ravel(self, order)  # type: ignore[call-overload]
        return apply(shapes.RAVEL, (self,))

    def flatten(
        self, start_axis: int | str = 0, stop_axis: int = -1, *, order: str = "C"
    ) -> Tensor:
        """Put the axes from `start_axis` to `stop_axis` together; the memory is its own.

        As NumPy's ``flatten(order)`` has the order first, text in the first place is the order.
        """
        if isinstance(start_axis, str):
            return self.flatten(order=start_axis)
        first, last = (axis + self.ndim if axis < 0 else axis for axis in (start_axis, stop_axis))
        if not self.ndim or (first == 0 and last == self.ndim - 1):
            return self.ravel(order).copy()
        if not 0 <= first <= last < self.ndim:
            raise ValueError(
                f"flatten: axes {start_axis} to {stop_axis} are not a range of the {self.ndim} "
                f"axes of a Tensor of shape {self.shape}."
            )
        together = math.prod(self.shape[first : last + 1])
        shape = (*self.shape[:first], together, *self.shape[last + 1 :])
        return self.reshape(shape, order=order).copy()

    @property
    def flat(self) -> Tensor:
        """All elements along one axis, to be indexed or iterated over."""
        return self.ravel()

    def copy(self, order: str = "C") -> Tensor:
        """Give the same values in memory of their own; the gradient passes through."""
        return apply(shapes.COPY, (self,), {"order": order})

    def squeeze(self, axis: Any = None) -> Tensor:
        """Leave out axes of length 1."""
        return apply(shapes.SQUEEZE, (self,), {"axis": axis})

    def transpose(self, *axes: Any) -> Tensor:
        """Reorder the axes; without arguments, reverse them."""
        if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)):
            axes = axes[0]
        return apply(shapes.TRANSPOSE, (self,), {"axes": axes or None})

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return apply(shapes.TRANSPOSE, (self,))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged: each matrix of a stack transposed."""
        return np.matrix_transpose(self)  # type: ignore[call-overload]

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Exchange two axes."""
        return apply(shapes.SWAPAXES, (self,), {"axis1": axis1, "axis2": axis2})

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Give a diagonal, as the last axis."""
        static = {"offset": offset, "axis1": axis1, "axis2": axis2}
        return apply(indexing.DIAGONAL, (self,), static)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Add up the elements of a diagonal."""
        return np.trace(self, offset, axis1, axis2)  # type: ignore[call-overload]

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
        """Give the elements (or slices along `axis`) at `indices`."""
        return np.take(self, indices, axis, out, mode)  # type: ignore[call-overload]

    def repeat(self, repeats: Any, axis: Any = None) -> Tensor:
        """Repeat every element (or every slice along `axis`)."""
        return np.repeat(self, repeats, axis)  # type: ignore[call-overload]

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Tensor:
        """Give the elements (or slices along `axis`) where `condition` holds."""
        return np.compress(condition, self, axis, out)  # type: ignore[call-overload]

    def choose(self, choices: Any, out: Any = None, mode: str = "raise") -> Any:
        """Pick from `choices` by the whole numbers in this Tensor."""
        return np.choose(self, choices, out, mode)  # type: ignore[call-overload]

    def argsort(
        self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> Any:
        """Give the positions of the elements in sorted order, a plain array of integers."""
        options = _given(order=order, stable=stable)
        return np.argsort(self.data, axis=axis, kind=kind, **options)

    def argpartition(
        self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
    ) -> Any:
        """Give the positions of the elements in partitioned order, a plain array of integers."""
        options = _given(order=order, kind=None if kind == "introselect" else kind)
        return np.argpartition(self.data, raw(kth), axis=axis, **options)

    def nonzero(self) -> Any:
        """Give the positions of the elements that are not 0, one plain array for each axis."""
        return self.data.nonzero()

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Give the positions at which `v` would go into this sorted Tensor, a plain array."""
        return self.data.searchsorted(raw(v), side, raw(sorter))

    def sort(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays sort themselves in place; ``np.sort(t)`` gives a sorted Tensor."""
        raise _in_place("sort")

    def partition(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: it works in place; ``np.partition(t, kth)`` gives a new Tensor."""
        raise _in_place("partition")

    def resize(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: it works in place; ``np.resize(t, shape)`` gives a new Tensor."""
        raise _in_place("resize")

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: it reads the same bytes as another type, which has no derivative."""
        raise TypeError(
            "Tensor.view reads the same memory as another type, which has no derivative. Write "
            "t.astype(dtype) for other numbers, t.reshape(shape) for another shape, or t[...]."
        )

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Tensor:
        """Give the values in another dtype; the gradient comes back in this one."""
        wanted = dtype_named(dtype)
        if order != "K" or not subok:
            option = f"order={order!r}" if order != "K" else "subok=False"
            raise TypeError(f"astype(..., {option}) is not covered on Tensors.")
        if not np.can_cast(self.data.dtype, wanted, casting):
            raise TypeError(
                f"astype cannot cast {self.data.dtype} to {wanted} with casting={casting!r}; "
                "casting='same_kind' or 'unsafe' allows more."
            )
        if not is_floating(wanted) and self.node is not None:
            raise refusal(self, f"casting it to {wanted}", ".detach() first if that is wanted")
        if not copy and wanted == self.data.dtype:
            return self  # type: ignore[return-value]
        return apply(shapes.CAST, (self,), {"dtype": wanted})

    def sqrt(self) -> Tensor:
        """Give the square roots."""
        return apply(elementwise.SQRT, (self,))

    def exp(self) -> Tensor:
        """Give the exponentials."""
        return apply(elementwise.EXP, (self,))

    def log(self) -> Tensor:
        """Give the natural logarithms."""
        return apply(elementwise.LOG, (self,))

    def tanh(self) -> Tensor:
        """Give the hyperbolic tangents."""
        return apply(elementwise.TANH, (self,))


def _given(**options: Any) -> dict[str, Any]:
    """Keep the options that were given: other arrays than NumPy's do not know all of them."""
    return {name: value for name, value in options.items() if value is not None}
