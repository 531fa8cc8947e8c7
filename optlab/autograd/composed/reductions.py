"""Reductions: NumPy's arguments of those with a rule, and those composed of other functions.

Every argument of NumPy is read here; one that is not covered raises an error that names it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.operation import COMPOSED, TABLE, Operation
from optlab.autograd.rules.reductions import aggregates as rules
from optlab.autograd.rules.reductions import cumulative
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import zeros_beside

NOT_GIVEN = np._NoValue


def constant(x: Any, name: str) -> Any:
    """Return the value of an argument without a derivative; raise if it needs a gradient."""
    if isinstance(x, Tensor) and x.node is not None:
        raise not_covered(f"{name} given as a Tensor that needs a gradient")
    return raw(x)


def _to_static(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Convert the given arguments to static arguments, by the names that rules read."""
    static: dict[str, Any] = {}
    for argument, value in given.items():
        if value is NOT_GIVEN or (argument == "dtype" and value is None):
            continue
        if argument in ("axis", "keepdims"):
            static[argument] = tuple(value) if isinstance(value, list) else value
        elif argument == "out":
            if value is not None:
                raise TypeError(
                    f"np.{name}(..., out=) writes into an existing array, which would lose the "
                    "gradient of a Tensor. Use the value that it returns."
                )
        elif argument in ("overwrite_input", "weights"):
            if value is not None and value is not False:
                raise not_covered(f"{name} with {argument}=")
        elif argument == "where":
            if value is not True:
                static["where"] = (
                    np.asarray(value) if isinstance(value, (list, tuple)) else raw(value)
                )
        elif argument == "correction":
            if given.get("ddof", 0) != 0:
                raise ValueError("ddof and correction are two names of one number; give one.")
            static["ddof"] = constant(value, f"{name} with correction=")
        else:
            static[argument] = constant(value, f"{name} with {argument}=")
    return static


def _bind(name: str, order: tuple[str, ...], args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Bind the arguments after the array to names; NumPy has already refused duplicates."""
    given = dict(zip(order, args, strict=False)) | kwargs
    unknown = [argument for argument in kwargs if argument not in order]
    if unknown:
        raise TypeError(
            f"np.{name} on Tensors does not know {unknown[0]}=; it takes {', '.join(order)}."
        )
    return given


def _register(functions: Any, arguments: str, operation: Operation | None = None) -> None:
    """Register functions with a rule for all of NumPy's arguments, in NumPy's order."""
    order = tuple(arguments.split())
    for function in functions:
        COMPOSED[function] = _wrapper(function, order, operation or TABLE[function])


def _wrapper(function: Any, order: tuple[str, ...], operation: Operation) -> Callable[..., Any]:
    name = function.__name__

    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            return apply(operation, args)
        if not args:
            args = (kwargs.pop("a"),)
        return apply(operation, args[:1], _to_static(name, _bind(name, order, args[1:], kwargs)))

    return _with_signature(called, order)


def _with_signature(called: Callable[..., Any], order: tuple[str, ...]) -> Callable[..., Any]:
    """Declare the arguments after the array, so that others find the position of one."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("a", *order)]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


_REDUCTION = "axis dtype out keepdims initial where"
_register((np.sum, np.prod, np.nansum, np.nanprod), _REDUCTION)
_register((rules.logaddexp_reduce, rules.logaddexp2_reduce, rules.hypot_reduce), _REDUCTION)
_register((rules.fmax_reduce, rules.fmin_reduce), _REDUCTION)
_register((np.mean, np.nanmean), "axis dtype out keepdims where")
_register((np.max, np.min, np.nanmax, np.nanmin), "axis out keepdims initial where")
_register((np.amax,), "axis out keepdims initial where", TABLE[np.max])
_register((np.amin,), "axis out keepdims initial where", TABLE[np.min])
_register((np.cumsum, np.cumprod, np.nancumsum, np.nancumprod), "axis dtype out")
_register(
    (cumulative.maximum_accumulate, cumulative.minimum_accumulate, cumulative.logaddexp_accumulate),
    "axis dtype out",
)
_register((np.median, np.nanmedian), "axis out overwrite_input keepdims")
_register(
    (np.quantile, np.percentile, np.nanquantile, np.nanpercentile),
    "q axis out overwrite_input method keepdims weights",
)

_VARIANCE = tuple("axis dtype out ddof keepdims where mean correction".split())


def _register_variance(function: Any) -> None:
    """Register a variance or standard deviation for NumPy's arguments, including ``mean=``."""
    name = function.__name__

    def called(*args: Any, **kwargs: Any) -> Any:
        if not args:
            args = (kwargs.pop("a"),)
        given = _bind(name, _VARIANCE, args[1:], kwargs)
        mean = given.pop("mean", NOT_GIVEN)
        static = _to_static(name, given)
        if mean is NOT_GIVEN:
            return apply(TABLE[function], args[:1], static)
        if function in (np.nanvar, np.nanstd):
            raise not_covered(f"{name} with mean=")
        about = rules.VAR_ABOUT if function is np.var else rules.STD_ABOUT
        return apply(about, (args[0], mean), static)

    composed(function)(_with_signature(called, _VARIANCE))


for spread_of in (np.var, np.std, np.nanvar, np.nanstd):
    _register_variance(spread_of)


@composed(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN) -> Any:
    options = _to_static("ptp", {"axis": axis, "out": out, "keepdims": keepdims})
    return np.subtract(np.max(a, **options), np.min(a, **options))


@composed(cumulative.add_reduceat)
def _add_reduceat(x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    options = _to_static("add.reduceat", {"axis": axis, "dtype": dtype, "out": out})
    indices = constant(indices, "add.reduceat with its indices")
    return apply(TABLE[cumulative.add_reduceat], (x,), {"indices": indices, **options})


def _cumulative(function: Any, first: float) -> Callable[..., Any]:
    """Return a cumulative function of the array API, composed of the older one."""

    def called(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        if axis is None:
            if np.ndim(x) > 1:
                raise ValueError(
                    f"an array of {np.ndim(x)} axes needs axis=, the axis to accumulate along."
                )
            axis = 0
        running = function(x, axis=axis, dtype=dtype, out=out)
        if not include_initial:
            return running
        shape = list(running.shape)
        shape[axis] = 1
        initial = zeros_beside(raw(running), tuple(shape)) + running.dtype.type(first)
        return np.concatenate([initial, running], axis=axis)

    return called


if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    composed(np.cumulative_sum)(_cumulative(np.cumsum, 0.0))
    composed(np.cumulative_prod)(_cumulative(np.cumprod, 1.0))
