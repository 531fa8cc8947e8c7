"""Uniform and normal random numbers, random choices and permutations."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.random.parameters import (
    SCORE_FUNCTION,
    Size,
    as_parameters,
    draw,
    refuse_gradient,
)
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend import random as keys
from optlab.backend.arrays import on_host


def seed(seed: int | None = None) -> None:
    """Seed all following draws, like `optlab.seed`; without a seed, from fresh entropy.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.seed(3)
    >>> first = ol.numpy.random.rand()
    >>> ol.seed(3)
    >>> bool(ol.numpy.random.rand() == first)
    True
    """
    if seed is None:
        keys.seed_from_entropy()
    else:
        keys.seed(seed)


def random(size: Size = None) -> Any:
    """Draw from the uniform distribution on [0, 1).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.numpy.random.random(2).round(4)
    array([0.1279, 0.2853])
    """
    return draw("random", size=size)


random_sample = ranf = sample = random


def rand(*shape: int) -> Any:
    """Draw from the uniform distribution on [0, 1), with the shape as separate arguments.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.rand(2, 3).shape
    (2, 3)
    """
    return draw("random", size=shape or None)


def randn(*shape: int) -> Any:
    """Draw from the standard normal distribution, with the shape as separate arguments.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.randn(2, 3).shape
    (2, 3)
    """
    return draw("standard_normal", size=shape or None)


def choice(
    a: Any,
    size: Size = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    shuffle: bool = True,
) -> Any:
    """Draw elements of `a` (or of 0 ... a - 1) with probabilities `p`.

    The gradient passes to the drawn elements of a Tensor `a`; `p` has none.

    Examples
    --------
    >>> import optlab as ol
    >>> t = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> ol.numpy.random.choice(t, size=3, p=[0.0, 1.0]).backward()
    >>> t.grad
    Tensor([0., 3.], dtype=float32)
    """
    a, p = as_parameters(a, p)
    refuse_gradient("choice", "p", p, SCORE_FUNCTION)
    options = {"replace": replace, "p": on_host(raw(p)), "shuffle": shuffle}
    if not isinstance(a, Tensor):
        return draw("choice", a, size=size, axis=axis, **options)
    if a.ndim == 0:
        return draw("choice", int(a.item()), size=size, **options)
    return _take(a, draw("choice", a.shape[axis], size=size, **options), axis)


def permutation(x: Any, axis: int = 0) -> Any:
    """Return the elements of `x` (or of 0 ... x - 1) in random order.

    The gradient passes through to the elements of a Tensor.

    Examples
    --------
    >>> import optlab as ol
    >>> sorted(ol.numpy.random.permutation(4).tolist())
    [0, 1, 2, 3]
    """
    (x,) = as_parameters(x)
    draws = keys.next_key().generator()
    if not isinstance(x, Tensor):
        return draws.permutation(x, axis=axis)
    if x.ndim == 0:
        return draws.permutation(int(x.item()))
    return _take(x, draws.permutation(x.shape[axis]), axis)


def _take(x: Tensor, chosen: Any, axis: int) -> Any:
    return x[(slice(None),) * (axis % x.ndim) + (chosen,)]


def shuffle(x: Any, axis: int = 0) -> None:
    """Shuffle the elements of an array or list in place.

    Raises
    ------
    TypeError
        For a Tensor; use `permutation`.

    Examples
    --------
    >>> import optlab as ol
    >>> x = list(range(4))
    >>> ol.numpy.random.shuffle(x)
    >>> sorted(x)
    [0, 1, 2, 3]
    """
    if isinstance(x, Tensor):
        raise TypeError(
            "random.shuffle writes in place, which would lose the gradient of a Tensor. "
            "Write x = random.permutation(x) instead."
        )
    if isinstance(x, np.ndarray):
        keys.next_key().generator().shuffle(x, axis=axis)
    else:
        keys.next_key().generator().shuffle(x)
