"""Implementation of NumPy's array protocols (NEP 13, NEP 18) for Tensors.

NumPy passes every call with a Tensor among its arguments to this module. Most functions are one
operation of the table of rules, some are composed of others, some have no derivative and return
plain arrays; all others raise a TypeError that names them.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from optlab.autograd.composed import COMPOSED, not_covered
from optlab.autograd.composed.writes import write_at
from optlab.autograd.operation import TABLE, rule_call
from optlab.autograd.rules.reductions import aggregates, cumulative
from optlab.autograd.rules.scipy_special import register_scipy
from optlab.autograd.tape.base import needs_grad
from optlab.autograd.tape.half_precision import compute_together
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.autograd.tensor.ufunc_options import with_options
from optlab.backend.arrays import check_same_device
from optlab.backend.call_recorder import here

#: Functions without a derivative: they read the values and return plain arrays.
PLAIN: set[Any] = {
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_xor, np.logical_not,
    np.isnan, np.isinf, np.isfinite, np.signbit,
    np.argmax, np.argmin, np.argsort, np.nanargmax, np.nanargmin, np.searchsorted,
    np.count_nonzero, np.nonzero, np.flatnonzero, np.argwhere, np.all, np.any,
    np.allclose, np.isclose, np.array_equal, np.array_equiv, np.isreal, np.iscomplex,
    np.isrealobj, np.iscomplexobj, np.isposinf, np.isneginf, np.common_type,
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.shares_memory, np.may_share_memory,
    np.linalg.matrix_rank,
    np.array_repr, np.array_str, np.array2string,
    np.argpartition, np.lexsort, np.digitize, np.isin, np.ix_, np.tril_indices_from,
    np.triu_indices_from, np.diag_indices_from, np.ravel_multi_index, np.unravel_index,
}  # fmt: skip

#: Ufuncs of integers.
WHOLE_NUMBERS: set[Any] = {
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift,
    np.bitwise_count, np.gcd, np.lcm,
}  # fmt: skip

#: Ufuncs whose ``reduce``, ``accumulate`` or ``reduceat`` is implemented by another function.
REDUCTIONS: dict[str, dict[Any, Any]] = {
    "reduce": {
        np.add: np.sum,
        np.multiply: np.prod,
        np.maximum: np.max,
        np.minimum: np.min,
        np.fmax: aggregates.fmax_reduce,
        np.fmin: aggregates.fmin_reduce,
        np.logaddexp: aggregates.logaddexp_reduce,
        np.logaddexp2: aggregates.logaddexp2_reduce,
        np.hypot: aggregates.hypot_reduce,
    },
    "accumulate": {
        np.add: np.cumsum,
        np.multiply: np.cumprod,
        np.maximum: cumulative.maximum_accumulate,
        np.minimum: cumulative.minimum_accumulate,
        np.logaddexp: cumulative.logaddexp_accumulate,
    },
    "reduceat": {np.add: cumulative.add_reduceat},
}


def universal_function(ufunc: Any, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """Implement ``__array_ufunc__``: a call of a ufunc, or of one of its methods."""
    if here.recorder is not None:
        here.recorder.meet((inputs, kwargs))
    out = kwargs.pop("out", None)
    if method == "at":
        return write_at(ufunc, *inputs, **kwargs)
    if ufunc not in TABLE and ufunc not in COMPOSED:
        register_scipy(ufunc)
    if not needs_grad(inputs) and not (out and any(isinstance(x, Tensor) for x in out)):
        known = ufunc in TABLE or ufunc in COMPOSED or method != "__call__"
        if not known or out is not None:
            function = ufunc if method == "__call__" else getattr(ufunc, method)
            target = {} if out is None else {"out": out}
            return _call(function, [raw(x) for x in inputs], {**kwargs, **target})
    if out is not None and any(target is not None for target in out):
        raise TypeError(
            f"np.{ufunc.__name__} was asked to write into an existing array (out=, or += on an "
            "array) what comes from a Tensor; the gradient would be lost. Write a = a + t instead."
        )
    if method == "__call__":
        if ufunc in PLAIN:
            return _call(ufunc, [raw(x) for x in inputs], _without_tensors(kwargs))
        if ufunc in WHOLE_NUMBERS:
            raise TypeError(
                f"np.{ufunc.__name__} is for whole numbers and truth values; a Tensor that needs a "
                "gradient holds floating numbers."
            )
        inputs = with_options(ufunc.__name__, inputs, kwargs)
        composed = COMPOSED.get(ufunc)
        if composed is not None:
            return compute_together(composed, tuple(inputs), kwargs)
        operation = TABLE.get(ufunc)
        if operation is not None:
            inputs, static = operation.bind(tuple(inputs), kwargs)
            return apply(operation, inputs, static)
    elif method in REDUCTIONS:
        function = REDUCTIONS[method].get(ufunc)
        if function is not None:
            kwargs.setdefault("axis", 0)
            return array_function(function, inputs, kwargs)
        if ufunc in PLAIN or not needs_grad(inputs):
            return _call(getattr(ufunc, method), [raw(x) for x in inputs], kwargs)
    elif method == "outer":
        a, b = inputs
        a = np.reshape(a, np.shape(a) + (1,) * np.ndim(b))
        return universal_function(ufunc, "__call__", (a, b), kwargs)
    name = str(ufunc.__name__)
    if getattr(np, name, None) is not ufunc:
        raise _foreign(name, ufunc.nin)
    raise not_covered(name if method == "__call__" else f"{name}.{method}")


def _foreign(name: str, inputs: int) -> TypeError:
    """Return the error for a ufunc that is not NumPy's own, such as those of scipy.special."""
    name = name.split(" ")[0]  # np.frompyfunc and np.vectorize add "(vectorized)"
    return TypeError(
        f"{name} is not a function of NumPy (but of scipy.special, np.frompyfunc or the like), and "
        "optlab has no derivative rule for it. If you know its derivative, give it one: "
        f"{rule_call(name, inputs)}, in plain NumPy (None: no derivative); or write it with "
        f"functions of NumPy; or use {name}(t.detach().numpy()) if no gradient is needed."
    )


def array_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Implement ``__array_function__``: a call of any other NumPy function."""
    if here.recorder is not None:
        here.recorder.meet((args, kwargs))
    composed = COMPOSED.get(function)
    if composed is not None and kwargs.get("out") is None:
        return compute_together(composed, tuple(args), kwargs)
    has_rule = composed is not None or function in TABLE
    if not has_rule and not (needs_grad(args) or needs_grad(kwargs)):
        return _call(function, _without_tensors(args), _without_tensors(kwargs))
    if kwargs.get("out") is not None:
        raise TypeError(
            f"np.{function.__name__}(..., out=) writes into an existing array, which would lose "
            "the gradient of a Tensor. Use the value that it returns."
        )
    operation = TABLE.get(function)
    if operation is not None:
        inputs, static = operation.bind(args, kwargs)
        return apply(operation, inputs, static)
    if function in PLAIN:
        return _call(function, _without_tensors(args), _without_tensors(kwargs))
    raise not_covered(
        f"{function.__module__}.{function.__name__}".removeprefix("numpy.").removeprefix("np.")
    )


def _call(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function on plain arrays; raise if they are stored on different devices."""
    if here.recorder is not None:
        return here.recorder.write(function.__name__, function, args, kwargs)
    try:
        return function(*args, **kwargs)
    except TypeError:
        check_same_device(function.__name__, (*args, *kwargs.values()))
        raise


def _without_tensors(x: Any) -> Any:
    """Replace Tensors in nested tuples, lists and dicts by their arrays."""
    if isinstance(x, Tensor):
        return x.data
    if isinstance(x, (tuple, list)):
        return getattr(type(x), "_make", type(x))([_without_tensors(part) for part in x])
    if isinstance(x, dict):
        return {key: _without_tensors(value) for key, value in x.items()}
    return x


class _Here(threading.local):
    """The composed functions that this thread is calling on ensembles."""

    calling: tuple[Any, ...] = ()


_here = _Here()


def composed_of_ensembles(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a composed function on ensembles, which then needs no batching rule."""
    written = COMPOSED.get(function)
    if written is None or function in _here.calling or kwargs.get("out") is not None:
        return NotImplemented
    before = _here.calling
    _here.calling = (*before, function)  # one that ends in itself has no other way
    try:
        return _without_tensors(compute_together(written, tuple(args), kwargs))
    finally:
        _here.calling = before
