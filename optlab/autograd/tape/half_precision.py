"""Numbers of 16 bits: kept in 16 bits, computed in 32.

float16 has 11 bits of precision and reaches 65504; bfloat16 (of the package ml_dtypes) has 8 and
reaches as far as float32, 3.4e38. The rules are the same for both:

=========================  =========================================================================
an operation               computes in float32, and its result is rounded once, to 16 bits. So sums,
                           means, norms, softmax, the statistics of normalisations, losses, products
                           of matrices and convolutions add up in float32, and the functions of
                           ``np.linalg``, which know no 16 bits, work too. A function of NumPy that
                           is written here with others (``np.var``) counts as one operation.
its derivative rule        is given float32 as well; the gradient is rounded to the dtype of what it
                           is the gradient of. So the gradient of a float16 parameter is float16.
                           Gradients that come from several places are added in that dtype.
what is kept for backward  has 16 bits
beside a Python number     16 bits stay: ``t * 0.1`` is of the dtype of t
beside other arrays        ``np.result_type``, with bfloat16 in the place of float16: float32 and
and NumPy's numbers        float64 win; truth values, int8 and uint8 keep 16 bits, int16 and uint16
                           give float32, wider whole numbers float64
float16 beside bfloat16    gives float32: neither holds the other
beyond the largest number  infinity, and it stays so. Rounding gives no warning, nor does the rest
                           of a walk back that came by 16 bits (`detect_anomaly` finds where it
                           began). Too small a number becomes 0.
moving numbers             views, casts and copies change nothing
=========================  =========================================================================

These are PyTorch's rules on the CPU, but for whole numbers, where NumPy's hold. They save memory,
not time: CPUs compute in 32 bits, and casting takes its own time. (NumPy's own ``@`` of
float16 knows no BLAS: 64 x 64 takes it 0.8 ms, in float32 with the casts 0.03 ms; 512 x 512 takes
it 1.7 s.)

Nothing of this costs anything before the first Tensor of 16 bits is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np

from optlab.autograd.operation import MOVING, Operation
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend.dtypes import dtype_named, is_half, widened

_FLOAT32 = np.dtype(np.float32)

#: Operations that compute nothing, and whose inputs do not meet.
_MOVE = {"cast", "moved"}


class Policy(Protocol):
    """What casts the inputs of operations."""

    def goal(self, operation: str) -> np.dtype | None:
        """Give the dtype that the inputs of an operation are to have; None leaves them."""

    def cast(self, operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
        """Give the inputs of an operation in that dtype."""


class _Here(threading.local):
    """What casts inputs in this thread: a thread has its own, as it has its own `no_grad`."""

    policy: Policy | None = None


class _Halves:
    """Whether numbers of 16 bits were met, and what casts inputs by itself (`optlab.amp`).

    `on` counts for all threads. It is asked at every operation, and must be quick; `policy` is
    looked at only where `on` says so.
    """

    __slots__ = ("_here", "met", "on")

    def __init__(self) -> None:
        self.on = 0
        self.met = False
        self._here = _Here()

    @property
    def policy(self) -> Policy | None:
        """What casts inputs in this thread."""
        return self._here.policy

    @policy.setter
    def policy(self, policy: Policy | None) -> None:
        self._here.policy = policy


halves = _Halves()


#: The dtypes of 16 bits, for the quick question: bfloat16 joins them when it is first met.
HALVES: set[Any] = {np.dtype(np.float16)}


def enable_half(dtype: Any) -> None:
    """Take note of the first Tensors of 16 bits: from now on operations look out for them."""
    if halves.met and dtype in HALVES:
        return
    if is_half(dtype):
        HALVES.add(dtype)
        if not halves.met:
            halves.met = True
            halves.on += 1
            slow_path.enter()


def cast_by_policy(operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Give the inputs of an operation as `optlab.amp.auto_cast` wants them."""
    policy = halves.policy
    if policy is None or operation.name in _MOVE:
        return inputs
    return policy.cast(operation, inputs)


@contextmanager
def uncast() -> Iterator[None]:
    """Inside, nothing is cast by a policy, in this thread."""
    before, halves.policy = halves.policy, None
    try:
        yield
    finally:
        halves.policy = before


def forward_in_float32(operation: Operation) -> Callable[..., Any]:
    """Give what computes an operation on numbers of 16 bits."""
    is_view = operation.view and not operation.name.startswith("einsum")  # which knows no bfloat16
    if is_view or operation.name in _MOVE:
        return operation.forward
    return partial(_computed, operation)


def _computed(operation: Operation, *values: Any, **static: Any) -> Any:
    """Compute an operation in float32, and round what it gives once."""
    goal = _goal([x.dtype for x in values if hasattr(x, "dtype")])
    if static.get("dtype") is not None:
        goal = dtype_named(static["dtype"])
        static["dtype"] = widened(goal)
    return narrowed(operation.forward(*map(wide, values), **static), goal)


def _goal(dtypes: Sequence[Any]) -> Any:
    """Give the dtype to which float32 is to be rounded: float32 where it stays.

    Whole numbers of many bits and float64 make the result float64 where they are computed with at
    all; so they are not asked for.
    """
    narrow = {dtype for dtype in dtypes if is_half(dtype)}
    stays = len(narrow) > 1 or any(
        dtype == _FLOAT32 or (dtype.kind in "iu" and dtype.itemsize == 2) for dtype in dtypes
    )
    return _FLOAT32 if stays else narrow.pop()


def narrowed(y: Any, dtype: Any) -> Any:
    """Round float32 to a dtype of 16 bits; everything else stays what it is."""
    if not is_half(dtype):
        return y
    if isinstance(y, (tuple, list)):
        parts = [narrowed(part, dtype) for part in y]
        return getattr(type(y), "_make", type(y))(parts)
    if getattr(y, "dtype", None) != _FLOAT32:
        return y
    return rounded(y, dtype)


def rounded(y: Any, dtype: Any) -> Any:
    """Cast without a warning: beyond the largest number is infinity."""
    if y.dtype == dtype:
        return y
    with np.errstate(over="ignore"):
        return y.astype(dtype)


def with_dtype(function: Callable[..., Any], x: Any, **options: Any) -> Any:
    """Call a reduction that may be asked for a dtype of 16 bits: it adds up in float32 then."""
    dtype = options.get("dtype")
    if dtype is None or not is_half(dtype_named(dtype)):
        return function(x, **options)
    return rounded(function(x, **{**options, "dtype": _FLOAT32}), dtype_named(dtype))


def wide(x: Any) -> Any:
    """Give float32 in the place of 16 bits, in tuples and lists too; the rest as it is."""
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
    """Give a derivative rule the gradient and the saved values in float32."""
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
    goal = _goal(found)
    if any(map(_is_dtype, (*args, *kwargs.values()))):
        given = next(filter(_is_dtype, (*args, *kwargs.values())))
        goal = dtype_named(given)
        args = tuple(widened(goal) if _is_dtype(x) else x for x in args)
        kwargs = {name: widened(goal) if _is_dtype(x) else x for name, x in kwargs.items()}
    args = wide(args)
    kwargs = {name: wide(x) for name, x in kwargs.items()}
    return narrowed(written(*args, **kwargs), goal)


def _arrays(x: Any) -> list[Any]:
    """List the arrays in nested tuples and lists."""
    if isinstance(x, (tuple, list)):
        return [array for part in x for array in _arrays(part)]
    return [x] if isinstance(getattr(x, "dtype", None), np.dtype) else []


def _is_dtype(x: Any) -> bool:
    """Say whether an argument names a dtype."""
    if isinstance(x, str):
        return x in ("float16", "bfloat16", "float32", "float64")
    return isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, (np.generic, float)))
