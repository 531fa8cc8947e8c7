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


def _in_place_error(name: str) -> TypeError:
    return TypeError(
        f"Tensor.{name} would work in place, and what was computed from the Tensor would be wrong. "
        f"Write u = np.{name}(t, ...), which gives a new Tensor and keeps the gradient."
    )


#: Attributes of other libraries, and what to write here.
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

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:  # called for missing attributes only
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
        """Return ``np.dot(self, other)``."""
        return np.dot(self, other)  # type: ignore[call-overload]

    def clip(self, min: Any = None, max: Any = None, out: None = None, **options: Any) -> Tensor:
        """Clip elements to the interval from `min` to `max`."""
        return np.clip(self, min, max, out=out, **options)  # type: ignore[call-overload]

    def round(self, decimals: int = 0, out: None = None) -> Tensor:
        """Round to a number of decimals; its derivative is 0."""
        return np.round(self, decimals, out=out)  # type: ignore[call-overload]

    def conj(self) -> Tensor:
        """Return the complex conjugate: for real numbers, the same values."""
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
        """Reshape: ``reshape(2, 3)`` or ``reshape([2, 3])``."""
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0]) if np.ndim(shape[0]) else shape
        if order != "C" or copy is not None:
            return np.reshape(self, shape, order=order, copy=copy)  # type: ignore[call-overload]
        return apply(shapes.RESHAPE, (self,), {"shape": shape})

    def ravel(self, order: str = "C") -> Tensor:
        """Flatten to one axis."""
        if order != "C":
            return np.ravel(self, order)  # type: ignore[call-overload]
        return apply(shapes.RAVEL, (self,))

    def flatten(
        self, start_axis: int | str = 0, stop_axis: int = -1, *, order: str = "C"
    ) -> Tensor:
        """Merge the axes from `start_axis` to `stop_axis`; return a copy.

        A string as first argument is the order, as in NumPy's ``flatten(order)``.
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
        """All elements along one axis, for indexing and iteration."""
        return self.ravel()

    def copy(self, order: str = "C") -> Tensor:
        """Return a copy in its own memory; the gradient passes through."""
        return apply(shapes.COPY, (self,), {"order": order})

    def squeeze(self, axis: Any = None) -> Tensor:
        """Remove axes of length 1."""
        return apply(shapes.SQUEEZE, (self,), {"axis": axis})

    def transpose(self, *axes: Any) -> Tensor:
        """Reorder the axes; without arguments, reverse them."""
        if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)):
            axes = axes[0]
        return apply(shapes.TRANSPOSE, (self,), {"axes": axes or None})

    @property
    def T(self) -> Tensor:
        """The transpose: the axes in reverse order."""
        return apply(shapes.TRANSPOSE, (self,))

    @property
    def mT(self) -> Tensor:
        """The transpose of each matrix of a stack: the last two axes exchanged."""
        return np.matrix_transpose(self)  # type: ignore[call-overload]

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Exchange two axes."""
        return apply(shapes.SWAPAXES, (self,), {"axis1": axis1, "axis2": axis2})

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return a diagonal, as the last axis."""
        static = {"offset": offset, "axis1": axis1, "axis2": axis2}
        return apply(indexing.DIAGONAL, (self,), static)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return the sum of a diagonal."""
        return np.trace(self, offset, axis1, axis2)  # type: ignore[call-overload]

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
        """Return the elements (or slices along `axis`) at `indices`."""
        return np.take(self, indices, axis, out, mode)  # type: ignore[call-overload]

    def repeat(self, repeats: Any, axis: Any = None) -> Tensor:
        """Repeat every element (or every slice along `axis`)."""
        return np.repeat(self, repeats, axis)  # type: ignore[call-overload]

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Tensor:
        """Return the elements (or slices along `axis`) where `condition` is True."""
        return np.compress(condition, self, axis, out)  # type: ignore[call-overload]

    def choose(self, choices: Any, out: Any = None, mode: str = "raise") -> Any:
        """Select from `choices` by the integers in this Tensor."""
        return np.choose(self, choices, out, mode)  # type: ignore[call-overload]

    def argsort(
        self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> Any:
        """Return the indices that sort the elements, an integer array."""
        options = _drop_none(order=order, stable=stable)
        return np.argsort(self.data, axis=axis, kind=kind, **options)

    def argpartition(
        self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
    ) -> Any:
        """Return the indices that partition the elements, an integer array."""
        options = _drop_none(order=order, kind=None if kind == "introselect" else kind)
        return np.argpartition(self.data, raw(kth), axis=axis, **options)

    def nonzero(self) -> Any:
        """Return the indices of the nonzero elements, one array for each axis."""
        return self.data.nonzero()

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Return the indices at which to insert `v` into this sorted Tensor, an array."""
        return self.data.searchsorted(raw(v), side, raw(sorter))

    def sort(self, *args: Any, **kwargs: Any) -> Any:
        """Raise a TypeError: it sorts in place; ``np.sort(t)`` returns a new Tensor."""
        raise _in_place_error("sort")

    def partition(self, *args: Any, **kwargs: Any) -> Any:
        """Raise a TypeError: it works in place; ``np.partition(t, kth)`` returns a new Tensor."""
        raise _in_place_error("partition")

    def resize(self, *args: Any, **kwargs: Any) -> Any:
        """Raise a TypeError: it works in place; ``np.resize(t, shape)`` returns a new Tensor."""
        raise _in_place_error("resize")

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Raise a TypeError: bytes read as another dtype have no derivative."""
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
        """Cast to another dtype; the gradient has the dtype of this Tensor."""
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
        """Compute square roots."""
        return apply(elementwise.SQRT, (self,))

    def exp(self) -> Tensor:
        """Compute exponentials."""
        return apply(elementwise.EXP, (self,))

    def log(self) -> Tensor:
        """Compute natural logarithms."""
        return apply(elementwise.LOG, (self,))

    def tanh(self) -> Tensor:
        """Compute hyperbolic tangents."""
        return apply(elementwise.TANH, (self,))


def _drop_none(**options: Any) -> dict[str, Any]:
    """Return the options that are not None: arrays of other libraries do not take all of them."""
    return {name: value for name, value in options.items() if value is not None}
