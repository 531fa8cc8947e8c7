"""Jacobian and Hessian matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from optlab.autograd.tape.saved_tensors import outside_recompute
from optlab.autograd.transforms.evaluation import (
    Argnums,
    Evaluation,
    check_callable,
    explained_transform,
    positions,
)
from optlab.autograd.transforms.functional import grad
from optlab.autograd.transforms.vmap import vmap
from optlab.backend.arrays import zeros_beside
from optlab.backend.ensemble import EnsembleError

#: Most elements of the largest array in a backward pass for many rows at once.
_MOST_ELEMENTS = 4_000_000


def _rows(run: Evaluation) -> list[Any]:
    """Return for each input the gradients of all elements of the value, stacked.

    One vectorized backward pass computes all rows, unless they are few or some operation has no
    batching rule.
    """
    n, value = run.value.size, run.value.data

    def pulled(u: Any) -> list[Any]:
        return run.pull(u, retain_graph=True)

    if n >= 8 and isinstance(value, np.ndarray):
        largest = max(n, *(int(np.size(x)) for x in run.given))
        chunk = max(1, _MOST_ELEMENTS // largest)
        seeds = np.eye(n, dtype=value.dtype).reshape(n, *value.shape)
        try:
            parts = [vmap(pulled)(seeds[i : i + chunk]) for i in range(0, n, chunk)]
        except EnsembleError:
            pass
        else:
            return [np.concatenate(rows) for rows in zip(*parts, strict=True)]
    found = []
    for i in range(n):
        seed = zeros_beside(value, (n,))
        seed[i] = 1
        found.append(pulled(seed.reshape(value.shape)))
    if not found:
        return [run.hand_out(zeros_beside(x, (0, *x.shape))) for x in run.given]
    return [np.stack(rows) for rows in zip(*found, strict=True)]


@explained_transform
def jacobian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Jacobian matrix of `f`: J_ij = dy_i/dx_j.

    Parameters
    ----------
    f : callable
        Returns one array, or a container of arrays.
    argnums : int or sequence of int
        With respect to which positional arguments; several give a tuple of matrices.

    Returns
    -------
    callable
        Takes what `f` takes; returns an array of shape (shape of the value) + (shape of the
        argument). If the value or the argument is a container, so is the result: for each part of
        the value, for each part of the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_callable(f, "jacobian")

    @wraps(f)
    @outside_recompute
    def matrix(*args: Any, **kwargs: Any) -> Any:
        places, single = positions(argnums, args)
        run = Evaluation(f, args, places, kwargs)
        rows = _rows(run)
        blocks: list[list[Any]] = []
        start = 0
        for part in run.parts:
            end = start + part.size
            blocks.append(
                [
                    np.reshape(row[start:end], part.shape + x.shape)
                    for row, x in zip(rows, run.given, strict=True)
                ]
            )
            start = end
        columns = [run.built(block) for block in blocks]
        built = run.build_value([c[0] if single else tuple(c) for c in columns])
        if single or run.returns_container:
            return built
        return tuple(built)

    return matrix


@explained_transform
def hessian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian matrix of `f`: d²f / dx_i dx_j.

    Parameters
    ----------
    f : callable
        Its value must be one number.
    argnums : int or sequence of int
        With respect to which positional arguments; several give a tuple of tuples of matrices.

    Returns
    -------
    callable
        Takes what `f` takes; returns an array of shape (shape of the argument) twice. For a product
        with a vector `hvp` is cheaper.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    check_callable(f, "hessian")
    return jacobian(grad(f, argnums), argnums)
