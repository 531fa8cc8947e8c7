"""Creation of random Tensors, with the signatures that Paddle documents.

`optlab.autograd.random` has NumPy's signatures, and more distributions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.random import continuous
from optlab.autograd.random.parameters import SCORE_FUNCTION, refuse_gradient
from optlab.autograd.tensor.creation import DEFAULT_DTYPE, ShapeLike, read_shape, refuse_lengths
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, constants_beside, is_on_device, on_host
from optlab.backend.device import brought_here
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.backend.random import next_key


def rand(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Draw from the uniform distribution on [0, 1).

    Parameters
    ----------
    shape : int or sequence of int
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.rand([2, 3]).shape
    (2, 3)
    """
    refuse_lengths("rand", shape, dtype)
    return uniform(shape, dtype, 0.0, 1.0)


def uniform(shape: ShapeLike, dtype: Any = None, min: Any = -1.0, max: Any = 1.0) -> Tensor:
    """Draw from the uniform distribution on [`min`, `max`); differentiable in bounds as Tensors.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : str or dtype, optional
        float32 by default.
    min, max : number or Tensor
        The gradient is that of ``min + (max - min) * u`` at the drawn u.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> t = ol.uniform(shape=[100], min=2.0, max=3.0)
    >>> bool((t >= 2).all() and (t < 3).all())
    True
    """
    refuse_lengths("uniform", shape, dtype)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        drawn: Tensor = continuous.uniform(min, max, read_shape(shape))
        return drawn if dtype is None else drawn.astype(dtype_named(dtype))
    u = next_key().generator().random(read_shape(shape))
    values = as_array(min + (max - min) * u).astype(dtype_named(dtype or DEFAULT_DTYPE))
    if max > min:
        # Rounding to a narrower dtype may reach the upper bound, which is excluded.
        kind = values.dtype.type
        values = np.minimum(values, np.nextafter(kind(max), kind(min)))
    return Tensor(brought_here(values))


def randn(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Draw from the standard normal distribution.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.randn([2]).dtype
    dtype('float32')
    """
    refuse_lengths("randn", shape, dtype)
    return normal(0.0, 1.0, shape, dtype)


def standard_normal(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Draw from the standard normal distribution, as `randn`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.standard_normal([2, 3]).shape
    (2, 3)
    """
    refuse_lengths("standard_normal", shape, dtype)
    return normal(0.0, 1.0, shape, dtype)


def normal(mean: Any = 0.0, std: Any = 1.0, shape: ShapeLike = (), dtype: Any = None) -> Tensor:
    """Draw from the normal distribution of the given mean and standard deviation.

    The draw is differentiable in a mean or deviation that is a Tensor (as ``mean + std * z`` at the
    drawn z); by default it then has the shape to which both broadcast.

    Parameters
    ----------
    mean, std : number or Tensor
    shape : int or sequence of int
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.normal(5.0, 0.0, [2])
    Tensor([5., 5.], dtype=float32)
    """
    lengths = read_shape(shape)
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        drawn: Tensor = continuous.normal(mean, std, lengths or None)
        return drawn if dtype is None else drawn.astype(dtype_named(dtype))
    z = next_key().generator().standard_normal(lengths)
    return Tensor(
        brought_here(as_array(mean + std * z).astype(dtype_named(dtype or DEFAULT_DTYPE)))
    )


def randint(
    low: int = 0, high: int | None = None, shape: ShapeLike = (1,), dtype: Any = None
) -> Tensor:
    """Draw integers from `low` (0 if only one bound is given) up to, not including, `high`.

    Parameters
    ----------
    low, high : int
        ``randint(high)`` or ``randint(low, high)``; `high` is excluded.
    shape : int or sequence of int
    dtype : str or dtype, optional
        int64 by default.

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
    drawn = next_key().generator().integers(low, high, read_shape(shape))
    return Tensor(brought_here(as_array(drawn).astype(dtype_named(dtype or np.int64))))


def randperm(n: int, dtype: Any = "int64") -> Tensor:
    """Draw a random permutation of 0 ... n - 1.

    Parameters
    ----------
    n : int
        Length of the permutation.
    dtype : str or dtype
        int64 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> sorted(ol.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    return Tensor(brought_here(next_key().generator().permutation(n).astype(dtype_named(dtype))))


def bernoulli(x: Any) -> Tensor:
    """Draw from the Bernoulli distribution: 1 with probability `x`, else 0; it has no gradient.

    Parameters
    ----------
    x : Tensor or array
        Probabilities from 0 to 1; the draw has its shape and dtype.

    Raises
    ------
    TypeError
        If `x` needs a gradient.
    ValueError
        If a probability is outside 0 ... 1.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.bernoulli(ol.to_tensor([0.0, 1.0]))
    Tensor([0., 1.], dtype=float32)
    """
    refuse_gradient("bernoulli", "x", x, SCORE_FUNCTION)
    p = _probabilities("bernoulli", x)
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"bernoulli takes probabilities from 0 to 1; got {p.min()} ... {p.max()}.")
    u = constants_beside(p, next_key().generator().random(p.shape))
    return Tensor(as_array(u < p, p.dtype))


def _probabilities(name: str, x: Any) -> Any:
    """Return an array of floating numbers; raise TypeError for another dtype."""
    known = isinstance(x, (Tensor, np.ndarray)) or is_on_device(x)
    p = raw(x) if known else brought_here(np.asarray(x, DEFAULT_DTYPE))
    if not is_floating(p.dtype):
        raise TypeError(f"{name} takes floating numbers; got dtype {p.dtype}. Use .astype().")
    return p


def poisson(x: Any) -> Tensor:
    """Draw from the Poisson distribution of mean `x`, for each element; it has no gradient.

    Parameters
    ----------
    x : Tensor or array
        Nonnegative floating means; the draw has its shape and dtype.

    Raises
    ------
    TypeError
        If `x` needs a gradient, or is not floating.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.poisson(ol.zeros([2]))
    Tensor([0., 0.], dtype=float32)
    """
    refuse_gradient("poisson", "x", x, SCORE_FUNCTION)
    mean = _probabilities("poisson", x)
    drawn = as_array(next_key().generator().poisson(on_host(mean))).astype(mean.dtype)
    return Tensor(constants_beside(mean, drawn))


def multinomial(x: Any, num_samples: int = 1, replacement: bool = False) -> Tensor:
    """Draw indices with probabilities proportional to `x`, along its last axis.

    Parameters
    ----------
    x : Tensor or array of shape [N] or [B, N]
        Nonnegative weights; they need not add up to 1.
    num_samples : int
        Number of draws from each row.
    replacement : bool
        Whether an index may be drawn more than once.

    Returns
    -------
    Tensor of int64, of shape [num_samples] or [B, num_samples]

    Raises
    ------
    ValueError
        If a weight is negative, a row is all zeros, or has fewer than `num_samples` nonzero weights
        to draw from without replacement.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.multinomial(ol.to_tensor([0.0, 2.0, 0.0]), 3, replacement=True)
    Tensor([1, 1, 1], dtype=int64)
    """
    refuse_gradient("multinomial", "x", x, SCORE_FUNCTION)
    given = _probabilities("multinomial", x)
    weights = on_host(given).astype(np.float64)
    if weights.ndim not in (1, 2):
        raise ValueError(f"multinomial takes x of shape [N] or [B, N]; got {weights.shape}.")
    if not np.all(weights >= 0) or not np.all(weights.sum(-1) > 0):
        raise ValueError("multinomial takes weights of 0 or more, not all 0 in a row.")
    if not replacement and num_samples > np.count_nonzero(weights, -1).min():
        raise ValueError(
            f"multinomial cannot draw {num_samples} different indices: a row has only "
            f"{np.count_nonzero(weights, -1).min()} with a weight above 0. Use replacement=True."
        )
    draws = next_key().generator()
    if replacement:
        u = draws.random((*weights.shape[:-1], num_samples))
        ends = np.cumsum(weights, -1)
        chosen = np.sum(u[..., None] * ends[..., None, -1:] >= ends[..., None, :], -1)
    else:
        # The order of exponential arrival times with rates w is that of draws without replacement.
        with np.errstate(divide="ignore"):
            arrivals = draws.standard_exponential(weights.shape) / weights
        chosen = np.argsort(arrivals, -1)[..., :num_samples]
    return Tensor(constants_beside(given, np.asarray(chosen, np.int64)))
