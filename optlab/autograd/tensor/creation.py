"""Creation of Tensors: from data, and filled with a value."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.rules.manipulation.shapes import BROADCAST_TO
from optlab.autograd.tape.nodes import leaf_for
from optlab.autograd.tensor.conversions import has_history, refusal, refuse_setting
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import copied
from optlab.backend.device import brought_here, made_here, moved
from optlab.backend.dtypes import dtype_named, is_real, widened

DEFAULT_DTYPE = np.dtype("float32")

ShapeLike = int | Sequence[int] | np.ndarray | Tensor


def to_tensor(
    data: Any,
    dtype: Any = None,
    requires_grad: bool = False,
    *,
    place: str | None = None,
    stop_gradient: bool | None = None,
) -> Tensor:
    """Make a Tensor with a copy of `data`, on the current device (see `optlab.set_device`).

    Tensors and device arrays stay on their device.

    Parameters
    ----------
    data : array_like or Tensor
        Numbers, nested lists, an array, or a leaf Tensor (detach the result of operations first).
    dtype : str or dtype, optional
        By default that of an array; float32 for Python floats, int64 for Python ints.
    requires_grad : bool
        Whether backward accumulates a gradient in this Tensor.
    place : str, optional
        The device, in place of the current one: ``"cpu"``, ``"gpu"`` or ``"gpu:1"``.
    stop_gradient : bool, optional
        Paddle's name for the opposite of `requires_grad`. As in Paddle, integers may have
        ``stop_gradient=False``, without effect.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `data` is not numeric, or `requires_grad` is set for integers.
    ValueError
        If `requires_grad` and `stop_gradient` contradict each other.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.to_tensor([1, 2, 3])
    Tensor([1, 2, 3], dtype=int64)
    >>> ol.to_tensor([1.0, 2.0], requires_grad=True)
    Tensor([1., 2.], dtype=float32, requires_grad=True)
    """
    if has_history(data):
        raise refusal(data, "to_tensor or Parameter", "data.detach(), if that is what you want")
    if isinstance(requires_grad, str):
        raise TypeError(
            f"to_tensor's third argument is requires_grad, True or False; got {requires_grad!r}. "
            f"Write place={requires_grad!r} for the device."
        )
    if requires_grad and stop_gradient:
        raise ValueError("requires_grad=True and stop_gradient=True contradict each other.")
    given = raw(data)
    try:
        array = copied(given, None if dtype is None else dtype_named(dtype))
    except ValueError as error:
        raise ValueError(
            f"to_tensor takes numbers or nested lists of them; these have rows of different "
            f"length, or hold something else: {error}"
        ) from error
    if not is_real(array.dtype):
        raise TypeError(
            f"to_tensor takes real numbers; {type(data).__name__} gives an array of dtype "
            f"{array.dtype}. (Is something among them that is not a number?)"
        )
    if dtype is None and array.dtype == np.float64 and not hasattr(given, "dtype"):
        array = array.astype(DEFAULT_DTYPE)
    if place is not None:
        array = moved(array, place)
    elif given is data:  # else a Tensor, which stays on its device
        array = _on_current_device(array)
    if stop_gradient is False and array.dtype.kind == "f":
        requires_grad = True
    return Tensor(array, leaf_for(array) if requires_grad else None)


def _on_current_device(array: Any) -> Any:
    """Move a NumPy array to the current device; return other arrays unchanged."""
    return brought_here(array) if isinstance(array, np.ndarray) else array


def read_shape(shape: ShapeLike) -> tuple[int, ...]:
    """Return a shape given as a number, a list, a tuple or an array as a tuple."""
    if not (isinstance(shape, (list, tuple)) and set(map(type, shape)) <= {int}):
        shape = raw(shape)
        try:
            given: Any = [shape] if np.ndim(shape) == 0 else np.asarray(shape).tolist()
            shape = [operator.index(length) for length in given]
        except TypeError:
            raise TypeError(
                f"a shape is a whole number or a list of them; got {shape!r}."
            ) from None
    lengths = tuple(shape)
    if lengths and min(lengths) < 0:
        raise ValueError(f"a shape has no negative lengths; got {list(lengths)}.")
    return lengths


def refuse_lengths(name: str, shape: Any, dtype: Any) -> None:
    """Raise TypeError for a second length of a shape in the place of the dtype."""
    if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool):
        lengths = [*(shape if isinstance(shape, (list, tuple)) else [raw(shape)]), int(dtype)]
        raise TypeError(
            f"{name}: the second argument is the dtype; got {dtype!r}. A shape of several lengths "
            f"is a list: write ol.{name}({lengths})."
        )


def zeros(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Make a Tensor of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        A negative length is a ValueError.
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.zeros([2])
    Tensor([0., 0.], dtype=float32)
    """
    refuse_lengths("zeros", shape, dtype)
    return full(shape, 0.0, DEFAULT_DTYPE if dtype is None else dtype)


def ones(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Make a Tensor of ones.

    Parameters
    ----------
    shape : int or sequence of int
        A negative length is a ValueError.
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.ones([2], dtype="float64")
    Tensor([1., 1.], dtype=float64)
    """
    refuse_lengths("ones", shape, dtype)
    return full(shape, 1.0, DEFAULT_DTYPE if dtype is None else dtype)


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None) -> Tensor:
    """Make a Tensor filled with one value.

    Parameters
    ----------
    shape : int or sequence of int
    fill_value : number or Tensor
        The gradient of a Tensor is the sum of the gradients of all elements.
    dtype : str or dtype, optional
        By default float32 for a Python number, a whole one too, as in Paddle; else that of
        `fill_value`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.full([2], 7), ol.full([2], 7, "int64")
    (Tensor([7., 7.], dtype=float32), Tensor([7, 7], dtype=int64))
    """
    if isinstance(fill_value, Tensor) and fill_value.node is not None:
        stretched = apply(BROADCAST_TO, (fill_value,), {"shape": read_shape(shape)})
        return stretched if dtype is None else stretched.astype(dtype)
    if dtype is None:
        dtype = DEFAULT_DTYPE if type(fill_value) in (int, float) else None
    else:
        dtype = dtype_named(dtype)
    return Tensor(made_here().full(read_shape(shape), raw(fill_value), dtype))


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Make a Tensor of evenly spaced numbers: from `start` (0 if only one is given) below `end`.

    Parameters
    ----------
    start, end, step : number
        ``arange(end)``, ``arange(start, end)`` or ``arange(start, end, step)``; `end` is excluded.
    dtype : str or dtype, optional
        By default int64 for integers, float32 if one of the three is a float.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.arange(4)
    Tensor([0, 1, 2, 3], dtype=int64)
    """
    for name, value in (("start", start), ("end", end), ("step", step)):
        refuse_setting(value, name, "start + step * ol.arange(n), with n a whole number")
    start, end, step = raw(start), raw(end), raw(step)
    if end is None:
        start, end = 0, start
    if dtype is None and any(isinstance(part, (float, np.floating)) for part in (start, end, step)):
        dtype = DEFAULT_DTYPE
    values = made_here().arange(
        start, end, step, dtype=None if dtype is None else widened(dtype_named(dtype))
    )
    return Tensor(values if dtype is None else values.astype(dtype_named(dtype), copy=False))
