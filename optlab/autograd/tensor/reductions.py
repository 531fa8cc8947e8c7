"""The methods of Tensors that reduce along axes: sums, means, extremes, their indices.

``keepdims`` is NumPy's name, ``keepdim`` Paddle's for the same.
"""

# `apply` returns Any, as the tape does not know Tensor by name.
# mypy: no-warn-return-any

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optlab.autograd.rules.reductions import aggregates
from optlab.autograd.tape.apply import apply

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor


def call_numpy(function: Any, *args: Any, **options: Any) -> Tensor:
    """Call a function of NumPy that returns a Tensor for a Tensor."""
    result: Tensor = function(*args, **options)
    return result


class ReductionMethods:
    """``t.sum()``, ``t.mean(axis)``, ``t.argmax()`` and the like."""

    __slots__ = ()

    data: Any

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = np._NoValue, where: Any = True, *, keepdim: bool = False,
    ) -> Tensor:  # fmt: skip
        """Sum elements over `axis`, all of them by default."""
        if dtype is out is None and initial is np._NoValue and where is True:
            return apply(aggregates.SUM, (self,), {"axis": axis, "keepdims": keepdims or keepdim})
        return call_numpy(np.sum, self, axis, dtype, out, keepdims or keepdim, initial, where)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *,
        keepdim: bool = False, where: Any = True,
    ) -> Tensor:  # fmt: skip
        """Compute the mean over `axis`."""
        if dtype is out is None and where is True:
            return apply(aggregates.MEAN, (self,), {"axis": axis, "keepdims": keepdims or keepdim})
        return call_numpy(np.mean, self, axis, dtype, out, keepdims or keepdim, where=where)

    def max(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = np._NoValue,
        where: Any = True, *, keepdim: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return the maximum over `axis`; elements that tie share its gradient."""
        if out is None and initial is np._NoValue and where is True:
            return apply(aggregates.MAX, (self,), {"axis": axis, "keepdims": keepdims or keepdim})
        return call_numpy(np.max, self, axis, out, keepdims or keepdim, initial, where)

    def min(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = np._NoValue,
        where: Any = True, *, keepdim: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return the minimum over `axis`; elements that tie share its gradient."""
        if out is None and initial is np._NoValue and where is True:
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
        keepdims: bool = False, *, keepdim: bool = False, **options: Any,
    ) -> Tensor:  # fmt: skip
        """Compute the variance over `axis`; more options as in ``np.var``."""
        return call_numpy(np.var, self, axis, dtype, out, ddof, keepdims or keepdim, **options)

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: bool = False, *, keepdim: bool = False, **options: Any,
    ) -> Tensor:  # fmt: skip
        """Compute the standard deviation over `axis`; more options as in ``np.std``."""
        return call_numpy(np.std, self, axis, dtype, out, ddof, keepdims or keepdim, **options)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Compute cumulative sums along `axis`."""
        return call_numpy(np.cumsum, self, axis, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Compute cumulative products along `axis`."""
        return call_numpy(np.cumprod, self, axis, dtype, out)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Return the index of the maximum, an integer array."""
        return np.argmax(self.data, axis, out, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Return the index of the minimum, an integer array."""
        return np.argmin(self.data, axis, out, keepdims=keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False, **where: Any) -> Any:
        """Return whether all elements (over `axis`) are nonzero, a boolean array."""
        return np.all(self.data, axis, out, keepdims, **where)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False, **where: Any) -> Any:
        """Return whether an element (over `axis`) is nonzero, a boolean array."""
        return np.any(self.data, axis, out, keepdims, **where)
