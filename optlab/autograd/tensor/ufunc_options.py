"""The keyword arguments that every ufunc takes, on Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.dtypes import dtype_named, is_floating

#: Options and the only value that is accepted, NumPy's default.
DEFAULTS: dict[str, Any] = {
    "casting": "same_kind", "order": "K", "subok": True, "signature": None, "sig": None,
}  # fmt: skip

#: Ufuncs with an integer input or output, so that no single dtype fits all of them.
_MIXED = {"ldexp", "frexp"}


def with_options(name: str, inputs: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Apply the options of a ufunc to its inputs, and remove them from `options`.

    ``dtype=`` is the dtype of the computation: inputs are cast to it, on the tape, so that each
    gradient has the dtype of its input.

    Raises
    ------
    TypeError
        For an option that Tensors do not support; none is ignored.
    """
    if not options:
        return tuple(inputs)
    if options.pop("where", True) is not True:
        raise TypeError(
            f"np.{name}(..., where=) leaves the other elements without a value, so they have no "
            f"derivative. Write np.where(mask, np.{name}(...), other)."
        )
    for option, default in DEFAULTS.items():
        if option in options and options.pop(option) != default:
            raise TypeError(
                f"np.{name}(..., {option}=) is not covered on Tensors; leave it out, or call "
                ".astype on what goes in and what comes out."
            )
    dtype = options.pop("dtype", None)
    if dtype is None:
        return tuple(inputs)
    wanted = dtype_named(dtype)
    if not is_floating(wanted) or name in _MIXED:
        raise TypeError(
            f"np.{name}(..., dtype={wanted}) is not covered on Tensors; gradients are for real "
            "floating numbers. Call .astype on what goes in or comes out."
        )
    return tuple(_cast(x, wanted) for x in inputs)


def _cast(x: Any, dtype: Any) -> Any:
    """Cast an input; Python numbers take the dtype of the others by promotion."""
    if x is None or type(x) in (bool, int, float):
        return x
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
    if not np.can_cast(x.dtype, dtype, "same_kind"):
        raise TypeError(f"dtype={dtype} cannot hold an input of dtype {x.dtype}.")
    return x.astype(dtype, copy=False) if isinstance(x, (Tensor, np.ndarray)) else x.astype(dtype)
