"""Half precision: float16 and bfloat16 are stored in 16 bits and computed in 32.

float16 has 11 bits of precision and reaches 65504; bfloat16 (of the package ml_dtypes) has 8 and
reaches as far as float32, 3.4e38. The rules are the same for both:

=========================  =========================================================================
an operation               computes in float32, and its result is rounded once, to 16 bits. So sums,
                           means, norms, softmax, the statistics of normalisations, losses, products
                           of matrices and convolutions add up in float32, and the functions of
                           ``np.linalg``, which do not support 16 bits, work too. A composed
                           function (``np.var``) counts as one operation.
its derivative rule        computes in float32 as well; the gradient is rounded to the dtype of its
                           input. So the gradient of a float16 parameter is float16. Gradients of
                           several uses are added in that dtype.
saved values               have 16 bits
with a Python number       the dtype stays: ``t * 0.1`` has the dtype of t
with other arrays          ``np.result_type``, with bfloat16 in the place of float16: float32 and
and NumPy's numbers        float64 win; booleans, int8 and uint8 keep 16 bits, int16 and uint16
                           give float32, wider integers float64
float16 with bfloat16      gives float32: neither contains the other
overflow                   gives infinity, without a warning of rounding or of the rest of the
                           backward pass (`detect_anomaly` finds the origin). Underflow gives 0.
moving data                views, casts and copies change no value
=========================  =========================================================================

These are PyTorch's rules on the CPU, except for integers, where NumPy's apply. They save memory,
not time: CPUs compute in 32 bits, and casts take time. (NumPy's ``@`` of float16 does not use BLAS:
64 x 64 takes 0.8 ms, in float32 with the casts 0.03 ms; 512 x 512 takes 1.7 s.)

None of this costs time before the first Tensor of 16 bits is made.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from optlab.autograd.operation import MOVING, Operation
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend.dtypes import dtype_named, is_half, widened

_FLOAT32 = np.dtype(np.float32)

#: Operations that move data and compute nothing.
_MOVE = {"cast", "moved"}


class Policy(Protocol):
    """A policy that casts the inputs of operations."""

    def goal(self, operation: str) -> np.dtype | None:
        """Return the dtype to which inputs of an operation are cast; None for no cast."""

    def cast(self, operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the inputs of an operation in that dtype."""


class _Here(threading.local):
    """The cast policy of this thread."""

    policy: Policy | None = None


class _Halves:
    """Whether 16-bit Tensors exist, and the policy that casts inputs (`optlab.amp`).

    `on` counts both, for all threads, and is read first; `policy` is that of this thread.
    """

    __slots__ = ("_here", "met", "on")

    def __init__(self) -> None:
        self.on = 0
        self.met = False
        self._here = _Here()

    @property
    def policy(self) -> Policy | None:
        """The cast policy of this thread."""
        return self._here.policy

    @policy.setter
    def policy(self, policy: Policy | None) -> None:
        self._here.policy = policy


halves = _Halves()


#: The dtypes of 16 bits, for a fast check; bfloat16 is added with its first Tensor.
HALVES: set[Any] = {np.dtype(np.float16)}


def enable_half(dtype: Any) -> None:
    """Enable the checks of operations for a dtype of 16 bits, at its first Tensor."""
    if halves.met and dtype in HALVES:
        return
    if is_half(dtype):
        HALVES.add(dtype)
        if not halves.met:
            halves.met = True
            halves.on += 1
            slow_path.enter()


def cast_by_policy(operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Return the inputs of an operation, cast by `optlab.amp.auto_cast`."""
    policy = halves.policy
    if policy is None or operation.name in _MOVE:
        return inputs
    return policy.cast(operation, inputs)


@contextmanager
def uncast() -> Iterator[None]:
    """Disable the cast policy of this thread inside a ``with`` block."""
    before, halves.policy = halves.policy, None
    try:
        yield
    finally:
        halves.policy = before


def forward_in_float32(operation: Operation) -> Callable[..., Any]:
    """Return the forward function of an operation for inputs of 16 bits."""
    is_view = operation.view and not operation.name.startswith("einsum")  # no bfloat16 there
    if is_view or operation.name in _MOVE:
        return operation.forward
    return partial(_run_in_float32, operation)


def _run_in_float32(operation: Operation, *values: Any, **static: Any) -> Any:
    """Run an operation in float32, and round its result once."""
    goal = _result_dtype([x.dtype for x in values if hasattr(x, "dtype")])
    if static.get("dtype") is not None:
        goal = dtype_named(static["dtype"])
        static["dtype"] = widened(goal)
    return narrowed(operation.forward(*map(wide, values), **static), goal)


def _result_dtype(dtypes: Sequence[Any]) -> Any:
    """Return the dtype to which a float32 result is rounded; float32 for no rounding.

    Wide integers and float64 are not checked: with them the result is float64 anyway.
    """
    narrow = {dtype for dtype in dtypes if is_half(dtype)}
    stays = len(narrow) > 1 or any(
        dtype == _FLOAT32 or (dtype.kind in "iu" and dtype.itemsize == 2) for dtype in dtypes
    )
    return _FLOAT32 if stays else narrow.pop()


def narrowed(y: Any, dtype: Any) -> Any:
    """Round float32 to a dtype of 16 bits; return anything else unchanged."""
    if not is_half(dtype):
        return y
    if isinstance(y, (tuple, list)):
        parts = [narrowed(part, dtype) for part in y]
        return getattr(type(y), "_make", type(y))(parts)
    if getattr(y, "dtype", None) != _FLOAT32:
        return y
    return rounded(y, dtype)


def rounded(y: Any, dtype: Any) -> Any:
    """Cast without a warning of overflow, which gives infinity."""
    if y.dtype == dtype:
        return y
    with np.errstate(over="ignore"):
        return y.astype(dtype)


def with_dtype(function: Callable[..., Any], x: Any, **options: Any) -> Any:
    """Call a reduction with its options; with a ``dtype`` of 16 bits it adds up in float32."""
    dtype = options.get("dtype")
    if dtype is None or not is_half(dtype_named(dtype)):
        return function(x, **options)
    return rounded(function(x, **{**options, "dtype": _FLOAT32}), dtype_named(dtype))


def wide(x: Any) -> Any:
    """Convert arrays of 16 bits, also in tuples and lists, to float32; leave others unchanged."""
    if isinstance(x, (tuple, list)):
        if not any(map(_has_halves, x)):
            return x
        return getattr(type(x), "_make", type(x))([wide(part) for part in x])
    return x.astype(_FLOAT32) if _has_halves(x) else x


def _has_halves(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_has_halves, x))
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, np.dtype) and is_half(dtype)


def widen_for_rule(g: Any, saved: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the gradient and the saved values of a derivative rule in float32."""
    several = hasattr(type(g), "wide")  # the gradients of several outputs
    if not several and g.dtype not in HALVES:
        for x in saved:
            if x.__class__ is tuple or getattr(x, "dtype", None) in HALVES:
                break
        else:
            return g, saved
    if saved and getattr(type(saved[0]), "takes_gradients_as_they_are", False):
        return g, saved
    return g.wide() if several else wide(g), wide(saved)


def compute_together(
    written: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a composed function as one operation: in float32, rounded once."""
    if written in MOVING or halves.policy is not None:  # a policy casts for each operation
        return written(*args, **kwargs)
    found = [x.dtype for x in _arrays((args, tuple(kwargs.values())))]
    if not any(map(is_half, found)):
        return written(*args, **kwargs)
    goal = _result_dtype(found)
    place = _place_of_dtype(written)
    if kwargs.get("dtype") is not None:
        goal = dtype_named(kwargs["dtype"])
        kwargs = {**kwargs, "dtype": widened(goal)}
    elif place is not None and place < len(args) and args[place] is not None:
        goal = dtype_named(args[place])
        args = (*args[:place], widened(goal), *args[place + 1 :])
    args = wide(args)
    kwargs = {name: wide(x) for name, x in kwargs.items()}
    return narrowed(written(*args, **kwargs), goal)


def _arrays(x: Any) -> list[Any]:
    """List the arrays in nested tuples and lists."""
    if isinstance(x, (tuple, list)):
        return [array for part in x for array in _arrays(part)]
    return [x] if isinstance(getattr(x, "dtype", None), np.dtype) else []


@cache
def _place_of_dtype(written: Callable[..., Any]) -> int | None:
    """Return at which position a composed function takes ``dtype``; None for by name only."""
    for place, parameter in enumerate(inspect.signature(written).parameters.values()):
        if parameter.name == "dtype" and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            return place
    return None
