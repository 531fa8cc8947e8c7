"""The methods of Tensors that reduce along axes: sums, means, extremes, their indices.

``keepdims`` is NumPy's name, ``keepdim`` Paddle's for the same.
"""

# `apply` returns Any, as the tape does not know Tensor by name.
# mypy: no-warn-return-any

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import numpy as np

from optlab.autograd.rules.reductions import aggregates
from optlab.autograd.tape.apply import apply
from optlab.backend.call_recorder import values_of
from optlab.backend.foreign_arguments import hint
from optlab.backend.wrong_arguments import closed, surplus

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor


def call_numpy(function: Any, t: Any, axis: Any, *args: Any, **options: Any) -> Tensor:
    """Call a function of NumPy that returns a Tensor for a Tensor; axes may be a list."""
    result: Tensor = function(t, tuple(axis) if type(axis) is list else axis, *args, **options)
    return result


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: arrays of other libraries do not take all of them."""
    return {name: value for name, value in options.items() if value is not np._NoValue}


class ReductionMethods:
    """``t.sum()``, ``t.mean(axis)``, ``t.argmax()`` and the like."""

    __slots__ = ()

    data: Any

    @closed
    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = np._NoValue, where: Any = True, *rest: Never, keepdim: bool = False,
        **unknown: Never,
    ) -> Tensor:  # fmt: skip
        """Sum elements over `axis`, all of them by default."""
        if rest or unknown:
            raise surplus("Tensor.sum", ReductionMethods.sum, rest, unknown, hint)
        if dtype is out is None and initial is np._NoValue and where is True:
            if type(axis) is list:
                axis = tuple(axis)
            return apply(aggregates.SUM, (self,), {"axis": axis, "keepdims": keepdims or keepdim})
        return call_numpy(np.sum, self, axis, dtype, out, keepdims or keepdim, initial, where)

    @closed
    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        *rest: Never, keepdim: bool = False, where: Any = True, **unknown: Never,
    ) -> Tensor:  # fmt: skip
        """Compute the mean over `axis`."""
        if rest or unknown:
            raise surplus("Tensor.mean", ReductionMethods.mean, rest, unknown, hint)
        if dtype is out is None and where is True:
            if type(axis) is list:
                axis = tuple(axis)
            return apply(aggregates.MEAN, (self,), {"axis": axis, "keepdims": keepdims or keepdim})
        return call_numpy(np.mean, self, axis, dtype, out, keepdims or keepdim, where=where)

    @closed
    def max(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = np._NoValue,
        where: Any = True, *rest: Never, keepdim: bool = False, **unknown: Never,
    ) -> Tensor:  # fmt: skip
        """Return the maximum over `axis`; elements that tie share its gradient."""
        if rest or unknown:
            raise surplus("Tensor.max", ReductionMethods.max, rest, unknown, hint)
        if out is None and initial is np._NoValue and where is True:
            if type(axis) is list:
                axis = tuple(axis)
            return apply(aggregates.MAX, (self,), {"axis": axis, "keepdims": keepdims or keepdim})
        return call_numpy(np.max, self, axis, out, keepdims or keepdim, initial, where)

    @closed
    def min(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = np._NoValue,
        where: Any = True, *rest: Never, keepdim: bool = False, **unknown: Never,
    ) -> Tensor:  # fmt: skip
        """Return the minimum over `axis`; elements that tie share its gradient."""
        if rest or unknown:
            raise surplus("Tensor.min", ReductionMethods.min, rest, unknown, hint)
        if out is None and initial is np._NoValue and where is True:
            if type(axis) is list:
                axis = tuple(axis)
            return apply(aggregates.MIN, (self,), {"axis": axis, "keepdims": keepdims or keepdim})
        return call_numpy(np.min, self, axis, out, keepdims or keepdim, initial, where)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = np._NoValue, where: Any = True, *, keepdim: bool = False,
    ) -> Tensor:  # fmt: skip
        """Multiply elements over `axis`."""
        return call_numpy(np.prod, self, axis, dtype, out, keepdims or keepdim, initial, where)

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: bool = False, *, where: Any = np._NoValue, mean: Any = np._NoValue,
        correction: Any = np._NoValue, keepdim: bool = False,
    ) -> Tensor:  # fmt: skip
        """Compute the variance over `axis`, with the options of ``np.var``."""
        options = _given(where=where, mean=mean, correction=correction)
        return call_numpy(np.var, self, axis, dtype, out, ddof, keepdims or keepdim, **options)

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: bool = False, *, where: Any = np._NoValue, mean: Any = np._NoValue,
        correction: Any = np._NoValue, keepdim: bool = False,
    ) -> Tensor:  # fmt: skip
        """Compute the standard deviation over `axis`, with the options of ``np.std``."""
        options = _given(where=where, mean=mean, correction=correction)
        return call_numpy(np.std, self, axis, dtype, out, ddof, keepdims or keepdim, **options)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Compute cumulative sums along `axis`."""
        return call_numpy(np.cumsum, self, axis, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Compute cumulative products along `axis`."""
        return call_numpy(np.cumprod, self, axis, dtype, out)

    def argmax(
        self, axis: Any = None, out: Any = None, *, keepdims: bool = False, keepdim: bool = False
    ) -> Any:
        """Return the index of the maximum, an integer array (``ol.argmax`` gives a Tensor)."""
        return np.argmax(values_of(self), axis, out, keepdims=keepdims or keepdim)

    def argmin(
        self, axis: Any = None, out: Any = None, *, keepdims: bool = False, keepdim: bool = False
    ) -> Any:
        """Return the index of the minimum, an integer array (``ol.argmin`` gives a Tensor)."""
        return np.argmin(values_of(self), axis, out, keepdims=keepdims or keepdim)

    def all(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, keepdim: bool = False,
        where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        """Return whether all elements (over `axis`) are nonzero, a boolean array."""
        axis = tuple(axis) if type(axis) is list else axis
        return np.all(values_of(self), axis, out, keepdims or keepdim, **_given(where=where))

    def any(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, keepdim: bool = False,
        where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        """Return whether an element (over `axis`) is nonzero, a boolean array."""
        axis = tuple(axis) if type(axis) is list else axis
        return np.any(values_of(self), axis, out, keepdims or keepdim, **_given(where=where))
