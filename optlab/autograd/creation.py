"""Making Tensors: from data, filled with a value, and from random keys."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.mode import recording
from optlab.autograd.rules.shapes import BROADCAST_TO
from optlab.autograd.tensor import Tensor, _leaf, apply, raw, refusal
from optlab.backend import random
from optlab.backend.arrays import copied

DEFAULT_DTYPE = np.dtype("float32")

ShapeLike = int | Sequence[int] | np.ndarray | Tensor


def to_tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Make a Tensor with a copy of `data`.

    Parameters
    ----------
    data : array_like or Tensor
        Numbers, nested lists, an array, or a Tensor that you made (a result of operations has to
        be detached first).
    dtype : str or dtype, optional
        Arrays keep the dtype they have; Python floats become float32, Python ints int64.
    requires_grad : bool
        Whether backward collects a gradient here.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `data` is not numeric, or a gradient is asked for integers.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.to_tensor([1, 2, 3])
    Tensor([1, 2, 3], dtype=int64)
    >>> ol.to_tensor([1.0, 2.0], requires_grad=True)
    Tensor([1., 2.], dtype=float32, requires_grad=True)
    """
    if isinstance(data, Tensor) and not data.is_leaf and recording.on:
        raise refusal(data, "to_tensor or Parameter", "data.detach(), if that is what you want")
    given = raw(data)
    try:
        array = copied(given, dtype)
    except ValueError as error:
        raise ValueError(
            f"to_tensor takes numbers or nested lists of them; these have rows of different "
            f"length, or hold something else: {error}"
        ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"to_tensor takes real numbers; {type(data).__name__} gives an array of dtype "
            f"{array.dtype}. (Is something among them that is not a number?)"
        )
    if dtype is None and array.dtype == np.float64 and not hasattr(given, "dtype"):
        array = array.astype(DEFAULT_DTYPE)
    return Tensor(array, _leaf(array) if requires_grad else None)


def _shape(shape: ShapeLike) -> tuple[int, ...]:
    """Read a shape given as a number, a list, a tuple or an array."""
    shape = raw(shape)
    try:
        given: Any = [shape] if np.ndim(shape) == 0 else np.asarray(shape).tolist()
        lengths = tuple(operator.index(length) for length in given)
    except TypeError:
        raise TypeError(f"a shape is a whole number or a list of them; got {shape!r}.") from None
    if any(length < 0 for length in lengths):
        raise ValueError(f"a shape has no negative lengths; got {list(lengths)}.")
    return lengths


def zeros(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Make a Tensor of zeros.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.zeros([2])
    Tensor([0., 0.], dtype=float32)
    """
    return full(shape, 0.0, dtype or DEFAULT_DTYPE)


def ones(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Make a Tensor of ones.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.ones([2], dtype="float64")
    Tensor([1., 1.], dtype=float64)
    """
    return full(shape, 1.0, dtype or DEFAULT_DTYPE)


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None) -> Tensor:
    """Make a Tensor filled with one value.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.full([2], 7)
    Tensor([7, 7], dtype=int64)
    """
    if isinstance(fill_value, Tensor) and fill_value.node is not None:
        stretched = apply(BROADCAST_TO, (fill_value,), {"shape": _shape(shape)})
        return stretched if dtype is None else stretched.astype(dtype)
    if dtype is None:
        dtype = DEFAULT_DTYPE if isinstance(fill_value, float) else None
    return Tensor(np.full(_shape(shape), raw(fill_value), dtype))


def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Make a Tensor of evenly spaced numbers: from `start` (0 if only one is given) below `end`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.arange(4)
    Tensor([0, 1, 2, 3], dtype=int64)
    """
    start, end, step = raw(start), raw(end), raw(step)
    if end is None:
        start, end = 0, start
    if dtype is None and any(isinstance(part, (float, np.floating)) for part in (start, end, step)):
        dtype = DEFAULT_DTYPE
    return Tensor(np.arange(start, end, step, dtype=dtype))


def rand(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Draw uniformly from [0, 1).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.rand([2, 3]).shape
    (2, 3)
    """
    return uniform(shape, dtype, 0.0, 1.0)


def uniform(shape: ShapeLike, dtype: Any = None, min: float = -1.0, max: float = 1.0) -> Tensor:
    """Draw uniformly from [`min`, `max`).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> t = ol.uniform(shape=[100], min=2.0, max=3.0)
    >>> bool((t >= 2).all() and (t < 3).all())
    True
    """
    drawn = random.next_key().generator().random(_shape(shape))
    values = np.asarray(min + (max - min) * drawn).astype(dtype or DEFAULT_DTYPE)
    below = np.nextafter(values.dtype.type(max), values.dtype.type(min))
    # Rounding to a narrower dtype may reach the upper end, which is excluded.
    return Tensor(np.minimum(values, below) if max > min else values)


def randn(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Draw from the normal distribution of mean 0 and standard deviation 1.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.randn([2]).dtype
    dtype('float32')
    """
    return normal(0.0, 1.0, shape, dtype)


def normal(mean: float = 0.0, std: float = 1.0, shape: ShapeLike = (), dtype: Any = None) -> Tensor:
    """Draw from the normal distribution of the given mean and standard deviation.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.normal(5.0, 0.0, [2])
    Tensor([5., 5.], dtype=float32)
    """
    drawn = random.next_key().generator().standard_normal(_shape(shape))
    return Tensor(np.asarray(mean + std * drawn).astype(dtype or DEFAULT_DTYPE))


def randint(
    low: int, high: int | None = None, shape: ShapeLike = (1,), dtype: Any = None
) -> Tensor:
    """Draw whole numbers from `low` (0 if only one bound is given) below `high`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> t = ol.randint(0, 5, [100])
    >>> int(t.numpy().min()), int(t.numpy().max())
    (0, 4)
    """
    if high is None:
        low, high = 0, low
    drawn = random.next_key().generator().integers(low, high, _shape(shape))
    return Tensor(np.asarray(drawn).astype(dtype or np.int64))
