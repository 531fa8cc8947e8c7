"""Elementwise functions, composed of other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.elementwise import NAN_TO_NUM, WHERE
from optlab.autograd.tensor.powers import power
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.autograd.tensor.ufunc_options import with_options

_NO_VALUE = np._NoValue


def _refuse(name: str, **options: Any) -> None:
    """Raise for the first option that is not None."""
    for option, value in options.items():
        if value is not None:
            raise TypeError(f"np.{name}(..., {option}=) is not covered on Tensors; leave it out.")


@composed(np.power)
def _power(a: Any, b: Any) -> Any:
    return power(a, b) if isinstance(a, Tensor) else apply(TABLE[np.power], (a, b))


@composed(np.clip)
def _clip(
    x: Any,
    a_min: Any = _NO_VALUE,
    a_max: Any = _NO_VALUE,
    out: None = None,
    *,
    min: Any = _NO_VALUE,
    max: Any = _NO_VALUE,
    **options: Any,
) -> Any:
    if a_min is _NO_VALUE and a_max is _NO_VALUE:
        a_min = None if min is _NO_VALUE else min
        a_max = None if max is _NO_VALUE else max
    elif a_min is _NO_VALUE or a_max is _NO_VALUE:
        missing = "a_min" if a_min is _NO_VALUE else "a_max"
        raise TypeError(f"clip() needs {missing} too (None for no bound), or min= and max= alone.")
    elif min is not _NO_VALUE or max is not _NO_VALUE:
        raise ValueError("clip() takes a_min and a_max, or min and max, not both.")
    x, a_min, a_max = with_options("clip", (x, a_min, a_max), options)
    _refuse("clip", out=out, **options)
    return apply(TABLE[np.clip], (x, a_min, a_max))


@composed(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    condition = np.asarray(condition) if isinstance(condition, (list, tuple)) else raw(condition)
    if not choices:
        return np.nonzero(condition)
    return apply(WHERE, (condition, *choices))


@composed(np.nan_to_num)
def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    put_in = {"nan": nan, "posinf": posinf, "neginf": neginf}
    for name, value in put_in.items():
        if isinstance(value, Tensor) and value.node is not None:
            raise TypeError(
                f"nan_to_num(..., {name}=) takes numbers; for a Tensor that needs a gradient "
                "write np.where(np.isnan(x), t, x)."
            )
    if not copy:
        raise TypeError(
            "nan_to_num(..., copy=False) writes in place, which would lose the gradient of a "
            "Tensor. Use the value that it returns."
        )
    return apply(NAN_TO_NUM, (x,), {name: raw(value) for name, value in put_in.items()})


@composed(np.around)
def _around(a: Any, decimals: int = 0, out: None = None) -> Any:
    _refuse("around", out=out)
    return np.round(a, decimals)


@composed(np.real)
def _real(val: Any) -> Any:
    return val.real


@composed(np.real_if_close)
def _real_if_close(a: Any, tol: float = 100) -> Any:
    return +a  # Tensors are real: within any tolerance


@composed(np.astype)
def _astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    if device not in (None, "cpu"):
        raise ValueError(f"astype(..., device={device!r}): NumPy knows the device 'cpu' alone.")
    return x.astype(dtype, copy=copy)


@composed(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    if order != "K":
        raise TypeError(f"copy(..., order={order!r}) is not covered on Tensors; order='K' is.")
    return +a
