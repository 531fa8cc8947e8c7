"""The methods of NumPy's arrays, on Tensors."""

# `apply` returns Any, as the tape does not know Tensor by name.
# mypy: no-warn-return-any

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from optlab.autograd.rules import elementwise
from optlab.autograd.rules.manipulation import indexing, shapes
from optlab.autograd.tape.apply import apply
from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.conversions import refusal
from optlab.autograd.tensor.reductions import ReductionMethods
from optlab.backend.call_recorder import values_of
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.backend.foreign_arguments import hint
from optlab.backend.wrong_arguments import closed, surplus

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor


def _in_place_error(name: str) -> TypeError:
    return TypeError(
        f"Tensor.{name} would work in place, and what was computed from the Tensor would be wrong. "
        f"Write u = np.{name}(t, ...), which gives a new Tensor and keeps the gradient."
    )


#: Attributes of other libraries, and what to write here.
ELSEWHERE = {
    "clone": "t.copy()", "permute": "t.transpose(axes)", "t": "t.T",
    "requires_grad_": "t.requires_grad = True", "zero_": "t[...] = 0", "dim": "t.ndim",
    "cat": "np.concatenate", "matmul": "t @ u", "mm": "t @ u", "bmm": "t @ u", "mv": "t @ u",
    "numel": "t.size", "pow": "t ** n", "rank": "t.ndim", "element_size": "t.dtype.itemsize",
    "add_": "t += u, or t[...] = t + u",
    "subtract_": "t -= u", "mul_": "t *= u", "multiply_": "t *= u", "scale_": "t *= factor",
    "fill_": "t[...] = value", "detach_": "t = t.detach()",
    "add": "t + u", "subtract": "t - u", "multiply": "t * u", "divide": "t / u", "mod": "t % u",
    "remainder": "t % u", "floor_divide": "t // u", "equal": "t == u", "not_equal": "t != u",
    "less_than": "t < u", "less_equal": "t <= u", "greater_than": "t > u", "abs": "abs(t)",
    "greater_equal": "t >= u", "double": "t.astype('float64')", "float": "t.astype('float32')",
    "long": "t.astype('int64')", "int": "t.astype('int32')", "half": "t.astype('float16')",
    "sigmoid": "ol.nn.functional.sigmoid(t)", "relu": "ol.nn.functional.relu(t)",
    "softmax": "ol.nn.functional.softmax(t)", "gradient": "t.grad", "lerp": "ol.lerp(t, u, weight)",
    "is_contiguous": "t.data.flags.c_contiguous", "scale": "ol.scale(t, scale, bias)",
    "norm": "ol.norm(t, p, axis)", "split": "ol.split(t, num_or_sections, axis)",
    "expand": "ol.expand(t, shape)", "tile": "ol.tile(t, repeat_times)", "dist": "ol.dist(t, u)",
    "gather": "ol.gather(t, index, axis)", "gather_nd": "ol.gather_nd(t, index)",
    "scatter": "ol.scatter(t, index, updates)", "topk": "ol.topk(t, k, axis)",
    "chunk": "ol.chunk(t, chunks, axis)", "unbind": "ol.unbind(t, axis)",
    "unstack": "ol.unstack(t, axis)", "logsumexp": "ol.logsumexp(t, axis)",
    "cross": "ol.cross(t, u)",
    "index_select": "ol.index_select(t, index, axis)",
    "index_add": "ol.index_add(t, index, axis, u)",
    "index_sample": "ol.index_sample(t, index)", "masked_select": "ol.masked_select(t, mask)",
    "masked_fill": "ol.masked_fill(t, mask, value)", "expand_as": "ol.expand_as(t, u)",
    "equal_all": "ol.equal_all(t, u)", "rsqrt": "ol.rsqrt(t)", "reciprocal": "1 / t",
    "where": "np.where(condition, a, b)",
    "kthvalue": "ol.kthvalue(t, k, axis)", "repeat_interleave": "ol.repeat_interleave(t, repeats)",
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
            elif name.endswith("_") and callable(getattr(np, name[:-1], None)):
                said += f"; write t[...] = np.{name[:-1]}(t)"
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

    @closed
    def reshape(
        self, *shape: Any, order: str = "C", copy: bool | None = None, **unknown: Never
    ) -> Tensor:
        """Reshape: ``reshape(2, 3)`` or ``reshape([2, 3])``."""
        if unknown:
            raise surplus("Tensor.reshape", ArrayMethods.reshape, (), unknown, hint)
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0]) if np.ndim(shape[0]) else shape
        if order != "C" or copy is not None:
            reshaped: Tensor = np.reshape(self, shape, order=order)  # type: ignore[call-overload]
            if copy is False and self.size and not np.may_share_memory(reshaped.data, self.data):
                raise ValueError("this reshape needs a copy, which copy=False does not allow.")
            # np.reshape itself takes copy from NumPy 2.1 on.
            return +reshaped if copy else reshaped
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

    @closed
    def squeeze(self, axis: Any = None, *rest: Never, **unknown: Never) -> Tensor:
        """Remove axes of length 1."""
        if rest or unknown:
            raise surplus("Tensor.squeeze", ArrayMethods.squeeze, rest, unknown, hint)
        if type(axis) is list:
            axis = tuple(axis)
        return apply(shapes.SQUEEZE, (self,), {"axis": axis})

    @closed
    def transpose(self, *axes: Any, perm: Any = None, **unknown: Never) -> Tensor:
        """Reorder the axes; without arguments, reverse them. `perm` is Paddle's name for them."""
        if unknown:
            raise surplus("Tensor.transpose", ArrayMethods.transpose, (), unknown, hint)
        if perm is not None:
            if axes:
                raise TypeError("transpose: axes and perm are two names of one argument; give one.")
            axes = (perm,)
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

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
    ) -> Tensor:
        """Return the sum of a diagonal."""
        return np.trace(self, offset, axis1, axis2, dtype, out)  # type: ignore[call-overload]

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
        return np.argsort(values_of(self), axis=axis, kind=kind, **options)

    def argpartition(
        self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
    ) -> Any:
        """Return the indices that partition the elements, an integer array."""
        options = _drop_none(order=order, kind=None if kind == "introselect" else kind)
        return np.argpartition(values_of(self), raw(kth), axis=axis, **options)

    def nonzero(self) -> Any:
        """Return the indices of the nonzero elements, one array for each axis."""
        return values_of(self).nonzero()

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Return the indices at which to insert `v` into this sorted Tensor, an array."""
        return values_of(self).searchsorted(raw(v), side, raw(sorter))

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
