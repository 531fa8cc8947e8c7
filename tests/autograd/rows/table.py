"""The table of rows: cases, numbers to check at, and the table itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]

#: The release of NumPy: rows for what it does not have yet are left out.
NUMPY = tuple(int(number) for number in np.__version__.split(".")[:2])


class Case(NamedTuple):
    """A function of arrays, and the arrays to check it at."""

    label: str
    f: Callable[..., Any]
    args: tuple[np.ndarray, ...]


def numbers(shape: Shape, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Return fixed numbers between two bounds."""
    return np.asarray(np.random.default_rng((seed, *shape)).uniform(low, high, shape))


def distinct(shape: Shape) -> np.ndarray:
    """Return fixed numbers that are well separated from each other and from 0."""
    n = int(np.prod(shape))
    order = np.random.default_rng(n).permutation(n)
    return np.asarray((0.3 * order - 0.15 * n + 0.07).reshape(shape))


ROWS: dict[Any, list[Case]] = {}


def put(function: Any, label: str, f: Callable[..., Any], *args: np.ndarray) -> None:
    ROWS.setdefault(function, []).append(Case(f"{function.__name__} {label}", f, args))


#: Shapes at which every elementwise function is checked.
SHAPES: list[Shape] = [(), (1,), (3,), (2, 3), (2, 1, 3), (0, 2)]


def quietly(function: Any) -> Callable[..., Any]:
    """Return `function` without the DeprecationWarning that NumPy gives to whoever calls it."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return function(*args, **kwargs)

    return call


def with_left(function: Any, constant: Any) -> Callable[..., Any]:
    """Return `function` with its first argument fixed."""
    return lambda x: function(constant, x)


def with_right(function: Any, constant: Any) -> Callable[..., Any]:
    """Return `function` with its second argument fixed."""
    return lambda x: function(x, constant)


def with_static(function: Any, **static: Any) -> Callable[..., Any]:
    """Return `function` with its keyword arguments fixed."""
    return lambda x: function(x, **static)
