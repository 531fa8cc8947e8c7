"""`Tensor`: an array with its node on the tape.

Read this file, `tape.apply` and `tape.nodes` first, then `gradients` and `tape.backward`: together
they are reverse-mode differentiation. The derivative rules are in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from optlab.autograd.operation import COMPOSED, TABLE
from optlab.autograd.tape import versions, views
from optlab.autograd.tape.apply import apply as _apply
from optlab.autograd.tape.apply import apply_several as _apply_several
from optlab.autograd.tape.apply import register
from optlab.autograd.tape.base import TensorBase, raw
from optlab.autograd.tape.half_precision import compute_together, halves
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tensor.array_methods import ArrayMethods
from optlab.autograd.tensor.conversions import Conversions, SilentDetachError, taken
from optlab.autograd.tensor.devices import DeviceMethods
from optlab.autograd.tensor.gradients import GradientMethods
from optlab.autograd.tensor.operators import Operators
from optlab.autograd.tensor.paddle_compat import PaddleNames
from optlab.backend.arrays import as_array, on_host
from optlab.backend.foreign_arguments import hint
from optlab.backend.wrong_arguments import explain_methods

__all__ = ["SilentDetachError", "Tensor", "answer_with", "apply", "apply_several", "raw"]


# TensorBase comes first: a read of a slot searches the bases for it, as CPython caches no slots of
# a class with `__getattr__`. As the last base it takes 40 instructions more a read.
@register
class Tensor(
    TensorBase, GradientMethods, Operators, ArrayMethods, Conversions, DeviceMethods, PaddleNames
):
    """An array that, if it needs a gradient, has a node of the operation that computed it.

    Every NumPy function with a derivative rule takes Tensors: ``np.exp(t)``. `optlab.to_tensor`
    makes them.

    Parameters
    ----------
    data : array
        The array, of any shape and dtype, not copied.
    node : Node or Leaf, optional
        Its node on the tape; None for a value that needs no gradient.

    Attributes
    ----------
    data
        The array. Do not write to it.
    grad : Tensor or None
        The gradient that backward accumulated, for a leaf with ``requires_grad=True``.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> t = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> np.sum(t**3).backward()
    >>> t.grad
    Tensor([ 3., 12.], dtype=float32)
    """

    __slots__ = ()

    #: `operation.as_single_operation` records functions of optlab on Tensors as one operation.
    records_calls = True
    #: The attribute that holds the array.
    holds = "data"

    def __repr__(self) -> str:
        taken(self, "a printed Tensor")
        values = as_array(on_host(self.data))
        precision = None
        if values.dtype.kind == "V":  # NumPy prints digits that bfloat16 does not have
            values, precision = values.astype(np.float32), 4
        body = np.array2string(values, precision=precision, separator=", ", prefix="Tensor(")
        asks = ", requires_grad=True" if views.is_recorded(self) else ""
        return f"{type(self).__name__}({body}, dtype={self.dtype}{asks})"

    def __len__(self) -> int:
        return len(self.data)

    __hash__ = object.__hash__

    # Off the tape -------------------------------------------------------------------------------

    def detach(self) -> Tensor:
        """Return the values detached from the tape: no gradient passes through the result.

        It shares the memory, unless a recorded operation wrote to this Tensor in place.
        """
        views.renew_all((self,))
        record = versions.record_of(self.data)
        if record is not None and record.order and self.node is not None:
            return Tensor(self.data.copy())
        return Tensor(self.data)

    # NumPy's array protocols (NEP 13, NEP 18) ---------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # The fast path of nearly every call; the first call of all fills COMPOSED.
        if method == "__call__" and not kwargs and COMPOSED and ufunc not in COMPOSED:
            operation = TABLE.get(ufunc)
            if operation is not None:
                return apply(operation, inputs)
        if slow_path.written:
            views.renew_all(inputs)
        return _dispatch().universal_function(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if slow_path.written:
            views.renew_all((args, *kwargs.values()))
        written = COMPOSED.get(function)
        if written is not None and "out" not in kwargs:
            if halves.on:
                return compute_together(written, args, kwargs)
            return written(*args, **kwargs)
        return _dispatch().array_function(function, args, kwargs)


# Not of the operators and the methods without options: a wrapper takes 75 to 240 ns a call. What
# is called most often (sum, reshape, backward, ...) refuses surplus arguments itself: see `closed`.
explain_methods(
    Tensor,
    (
        "prod", "var", "std", "cumsum", "cumprod", "argmax", "argmin", "all", "any", "argsort",
        "flatten", "unsqueeze", "swapaxes", "diagonal", "trace", "take", "repeat", "register_hook",
    ),
    hint,
)  # fmt: skip

# `apply` returns Any, as the tape does not know the class by name; from here on it is Tensor.
apply: Callable[..., Tensor] = _apply
apply_several: Callable[..., tuple[Tensor, ...]] = _apply_several


def answer_with(load: Callable[[], Any]) -> None:
    """Dispatch NumPy's calls to the module that `load` returns; the first call loads it."""
    global _dispatch
    _dispatch = cache(load)


_dispatch: Callable[[], Any]
