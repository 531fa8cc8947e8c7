"""How a function takes its numbers: f(x, y), f(x) of one number, or f(p) of a vector."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd import Tensor
from optlab.autograd.tape.grad_mode import no_grad
from optlab.autograd.tensor.tensor import raw
from optlab.autograd.transforms.vmap import vmap
from optlab.backend.text import one_line

#: Lengths of vectors that are tried to say how many numbers a function needs.
_LONGER = (3, 4, 5, 6, 8, 10)


class OfVector:
    """A function of one vector as a function of its coordinates.

    Parameters
    ----------
    function : callable
        ``f(p)``: maps a vector to one number.

    Examples
    --------
    >>> import numpy as np
    >>> bowl = OfVector(lambda p: np.sum((p - 1) ** 2))
    >>> float(bowl(np.float64(3.0), np.float64(1.0)))
    4.0
    >>> bowl(np.array([3.0, 1.0]), np.array([1.0, 1.0]))  # many points
    array([4., 0.])
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.__name__ = str(getattr(function, "__name__", type(function).__name__))

    def __call__(self, *coordinates: Any) -> Any:
        """Return the value at one point, or at many: each of them a vector of its own."""
        points = np.stack(coordinates, axis=-1)
        if points.ndim == 1:
            return self.function(points)
        shape = points.shape[:-1]
        values = vmap(self.function)(np.reshape(points, (-1, len(coordinates))))
        return np.reshape(values, shape) if np.ndim(values) == 1 else values


def as_function_of_numbers(
    function: Callable[..., Any], dimension: int | None = None
) -> tuple[Callable[..., Any], int]:
    """Return a function of coordinates, and how many it takes.

    A function that needs two arguments is f(x, y). One that needs a single argument is tried on a
    vector of two numbers: if it gives one number it is f(p); if it fails, or gives a number for
    each element, it is f(x).

    Parameters
    ----------
    function : callable
    dimension : int, optional
        The number of coordinates, where it is known (from the domain, or a start). A function of
        one argument and one coordinate is f(x) if that works, f(p) on a vector of one number
        otherwise. With more than two coordinates it is f(p).

    Raises
    ------
    TypeError
        If the function needs another number of arguments, or a vector of unknown length.

    Examples
    --------
    >>> as_function_of_numbers(lambda x, y: x * y)[1]
    2
    >>> as_function_of_numbers(lambda x: (x - 1) ** 2)[1]
    1
    >>> as_function_of_numbers(lambda p: p[0] ** 2 + p[1] ** 2)[1]
    2
    >>> as_function_of_numbers(lambda p: np.sum(p**2), 7)[1]
    7
    """
    needed = _count_arguments(function)
    if needed == 1 and dimension is not None and dimension > 2:
        return OfVector(function), dimension
    if needed == 2:
        return function, 2 if dimension is None else min(dimension, 2)
    on_vector = _tried(function, np.array([-2.0, 2.0]))
    on_number = _tried(function, np.float64(-2.0))
    if dimension == 1:
        one_element = on_number is None and _tried(function, np.ones(1)) == 1
        return (OfVector(function), 1) if one_element else (function, 1)
    if on_vector is None:
        _refuse_longer(function)
    if dimension == 2 or on_vector == 1 or (on_number is None and on_vector is not None):
        return OfVector(function), 2
    return function, 1  # one that fails anyway says so itself where it is evaluated


def dimension_of_start(function: Callable[..., Any], start: Any) -> int | None:
    """Return the length of the vectors that a function takes, where a start tells it.

    A start of two numbers tells nothing: f(x, y) has one too.

    Examples
    --------
    >>> dimension_of_start(lambda p: np.sum(p**2), np.ones(7))
    7
    >>> dimension_of_start(lambda x, y: x * y, np.ones(7))
    """
    try:
        shape = np.shape(raw(start))
    except ValueError:  # rows of different length
        return None
    if start is None or len(shape) != 1 or shape[0] in (0, 2) or _count_arguments(function) == 2:
        return None
    return shape[0]


def _tried(function: Callable[[Any], Any], argument: Any) -> int | None:
    """Return how many numbers a function gives for an argument; None if it fails."""
    for given in (argument, Tensor(argument)):
        with np.errstate(all="ignore"), no_grad():
            try:
                value = raw(function(given.copy() if given is argument else given))
                return int(np.size(value))
            except Exception:  # noqa: BLE001 - a user's function; the next way is tried
                continue
    return None


def _refuse_longer(function: Callable[[Any], Any]) -> None:
    """Raise TypeError if a function takes a vector of more than two numbers."""
    for count in _LONGER:
        if _tried(function, np.ones(count)) == 1:
            name = _name_of(function)
            raise TypeError(
                f"{name} takes a vector of {count} numbers; a surface has two, a curve one. "
                f"ol.compare takes it with a start of that length: start=np.zeros({count}). For a "
                f"map, fix the others: lambda x, y: {name}(np.stack([x, y, "
                f"{', '.join('0' * (count - 2))}]))."
            )


def _name_of(function: Callable[..., Any]) -> str:
    name = one_line(str(getattr(function, "__name__", "f")))
    return "f" if name == "<lambda>" else name


def _count_arguments(function: Callable[..., Any]) -> int:
    """Return how many numbers a function takes, 1 or 2."""
    if isinstance(function, np.ufunc):
        return function.nin
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return 2
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in places)
    if needed > 2 or not places:
        raise TypeError(
            f"{getattr(function, '__name__', function)!r} takes {needed} numbers; a surface is a "
            "function f(x, y), or f(p) of a vector; a curve is a function f(x)."
        )
    return needed or min(len(places), 2)
