"""Dispatch of NumPy calls with ensembles: apply the batching rule, or refuse."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

# The files of rules fill the registry.
from optlab.backend.ensemble import (
    creation,
    elementwise,
    indexing,
    joining,
    linear_algebra,
    reductions,
    sequential,
    shapes,
)
from optlab.backend.ensemble.array import EnsembleArray, register
from optlab.backend.ensemble.batched_call import Call
from optlab.backend.ensemble.registry import INSTEAD, RULES, composed, public_name, refusal
from optlab.backend.errors import EnsembleError

__all__ = [
    "RULES", "array_function", "covered", "creation", "elementwise", "joining", "linear_algebra",
    "reductions", "sequential", "shapes", "universal_function",
]  # fmt: skip


def covered(function: Any) -> bool:
    """Return whether ensembles support a NumPy function.

    Examples
    --------
    >>> covered(np.tanh), covered(np.cumsum), covered(np.unique)
    (True, True, False)
    """
    return function in RULES or (isinstance(function, np.ufunc) and function.signature is None)


def _is_foreign(x: Any) -> bool:
    """Return whether the type of `x` handles ensembles while they do not know it (a Tensor)."""
    return (
        not isinstance(x, (EnsembleArray, np.ndarray, np.generic))
        and hasattr(type(x), "__array_ufunc__")
        and type(x).__module__.partition(".")[0] != "cupy"
        and not hasattr(type(x), "is_traced")  # it stands for a plain array
    )


@register
def universal_function(ufunc: Any, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """Apply a ufunc, or one of its methods."""
    if method == "__call__" and not kwargs and ufunc.signature is None and ufunc.nout == 1:
        y = elementwise.call_aligned(ufunc, inputs)
        if y is not None:
            return y
    if ufunc is np.matmul and method == "__call__" and not kwargs:
        y = linear_algebra.stacked_product(*inputs)
        if y is not None:
            return y
    out = kwargs.get("out") or ()
    if any(_is_foreign(x) for x in (*inputs, *out, kwargs.get("where"))):
        return NotImplemented
    if method == "__call__":
        call = Call(inputs, kwargs)
        if ufunc.signature is None:
            return elementwise.universal(call, ufunc, inputs, kwargs)
        if ufunc in RULES and not kwargs:
            return RULES[ufunc](call, *inputs)
    elif method == "reduce":
        return reductions.reduce(Call(inputs, kwargs), ufunc, *inputs, **kwargs)
    elif method in ("accumulate", "reduceat"):
        return reductions.accumulate(Call(inputs, kwargs), ufunc, method, *inputs, **kwargs)
    elif method == "outer" and not kwargs:
        a, b = inputs
        return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b)
    elif method == "at":
        return indexing.at(ufunc, *inputs)
    if method == "__call__":
        y = _composed(ufunc, inputs, kwargs)
        if y is not NotImplemented:
            return y
    given = f" with {', '.join(kwargs)}" if kwargs else ""
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    raise refusal(f"np.{name}{given}")


def _composed(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function that is composed of others; return NotImplemented for one that is not."""
    for call in composed:
        y = call(function, args, kwargs)
        if y is not NotImplemented:
            return y
    return NotImplemented


#: What is asked most often, of one array: without a `Call` it takes a fifth of the time.
_QUESTIONS: dict[Any, Any] = {np.shape: attrgetter("shape"), np.ndim: attrgetter("ndim")}


@register
def array_function(function: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Apply any other function."""
    if function in _QUESTIONS and len(args) == 1 and type(args[0]) is EnsembleArray:
        return _QUESTIONS[function](args[0])
    for other in types:
        known = other is EnsembleArray or issubclass(other, np.ndarray)
        known = known or hasattr(other, "is_traced")  # it stands for a plain array
        if not known and other.__module__.partition(".")[0] != "cupy":
            return NotImplemented
    rule = RULES.get(function)
    if rule is not None:
        try:
            return rule(Call(args, kwargs), *args, **kwargs)
        except EnsembleError:  # arguments that the rule does not cover
            y = _composed(function, args, kwargs)
            if y is NotImplemented:
                raise
            return y
    y = _composed(function, args, kwargs)
    if y is not NotImplemented:
        return y
    if not (getattr(function, "__module__", None) or "numpy").startswith("numpy"):
        return function(*args, **kwargs)  # written in NumPy functions, which ensembles support
    raise refusal(public_name(function), INSTEAD.get(function, ""))
