"""Checking derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.functional import vjp
from optlab.autograd.mode import no_grad
from optlab.autograd.tensor import Tensor, raw
from optlab.backend.random import Key


def check_grad(
    f: Callable[..., Any],
    *args: Any,
    order: int = 2,
    step: float = 1e-6,
    relative_tolerance: float = 1e-5,
    absolute_tolerance: float = 1e-6,
) -> None:
    """Compare the derivatives of `f` with central finite differences, up to `order`.

    For a random u and v it compares <u'J, v> with (<u, f(x + s v)> - <u, f(x - s v)>) / 2s, then
    does the same with the function (u, x) -> u'J for the next order.

    Parameters
    ----------
    f : callable
        Takes arrays, gives one array.
    args : array_like
        Where to check, in float64, away from kinks.
    order : int
        1 checks the gradient, 2 also the gradient of the gradient, and so on.
    step : float
        The distance s of the finite difference.
    relative_tolerance, absolute_tolerance : float
        By how much the two may differ.

    Raises
    ------
    AssertionError
        If they differ; it says for which argument and order, and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.check_grad(np.tanh, np.array([0.3, -1.2]))
    >>> from optlab.autograd import rule
    >>> def wrong(x):
    ...     return x * x
    >>> row = rule(wrong, lambda g, x: g * x)
    >>> ol.check_grad(lambda x: ol.autograd.tensor.apply(row, (x,)), np.array([2.0]))
    Traceback (most recent call last):
        ...
    AssertionError: order 1: the derivative of <lambda> for argument 0 is ..., finite ...
    """
    name = getattr(f, "__name__", type(f).__name__)
    points = tuple(np.array(raw(x), dtype=np.float64) for x in args)
    _check(f, points, 1, order, name, step, relative_tolerance, absolute_tolerance)


def _check(
    f: Callable[..., Any],
    points: tuple[np.ndarray, ...],
    level: int,
    order: int,
    name: str,
    step: float,
    relative: float,
    absolute: float,
) -> None:
    numbers = Key(level, ("check_grad", name)).generator()
    value, pullback = vjp(f, *points)
    u = numbers.standard_normal(np.shape(value))
    gradients = pullback(u)
    for position, (x, gradient) in enumerate(zip(points, gradients, strict=True)):
        # Each order puts the gradient that arrives before the function's own arguments.
        own = position - (level - 1)
        which = f"argument {own}" if own >= 0 else "the arriving gradient"
        if gradient.shape != x.shape:
            raise AssertionError(
                f"order {level}: the derivative of {name} for {which} has shape "
                f"{gradient.shape}, but the argument has shape {x.shape}."
            )
        v = numbers.standard_normal(x.shape)
        ours = float(np.sum(gradient * v))
        before, after = list(points), list(points)
        before[position], after[position] = x - step * v, x + step * v
        with no_grad():
            difference = raw(f(*after)) - raw(f(*before))
        theirs = float(np.sum(u * difference)) / (2 * step)
        if not abs(ours - theirs) <= absolute + relative * abs(theirs):
            raise AssertionError(
                f"order {level}: the derivative of {name} for {which} is {ours!r}, "
                f"finite differences give {theirs!r}."
            )
    if level < order:

        def next_order(u: Any, *points: Any) -> Tensor:
            pulled = vjp(f, *points)[1](u)
            return np.concatenate([np.reshape(g, (-1,)) for g in pulled])  # type: ignore[return-value]

        _check(
            next_order,
            (u, *points),
            level + 1,
            order,
            f"the gradient of {name}",
            step,
            relative,
            absolute,
        )
