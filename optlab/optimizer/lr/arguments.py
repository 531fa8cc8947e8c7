"""Arguments of schedules: read them as plain Python values, or say what is wrong with them."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.backend.arrays import as_float


def number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Give one finite number, an int where an int was given.

    Parameters
    ----------
    name : str
        What the argument is called.
    value : float, int, NumPy scalar, one-element array or Tensor
        What was given.
    least, above, most, below : float
        Its bounds: at least, greater than, at most, less than.

    Examples
    --------
    >>> number("gamma", 1.5, above=0, below=1)
    Traceback (most recent call last):
    ...
    ValueError: gamma must be above 0 and below 1; got 1.5.
    """
    exact = type(value) is int
    found = as_float(value, name)
    if not (math.isfinite(found) and least <= found <= most and above < found < below):
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (
                ("at least", least), ("above", above), ("at most", most), ("below", below)
            )
            if math.isfinite(bound)
        ]  # fmt: skip
        wanted = " and ".join(bounds) or "finite"
        if not math.isfinite(found) and bounds:
            wanted = f"finite and {wanted}"
        raise ValueError(f"{name} must be {wanted}; got {found if not exact else value!r}.")
    return value if exact else found


def rate(name: str, value: Any) -> float:
    """Give a learning rate as a float: finite, and at least 0."""
    return float(number(name, value, least=0.0))


def whole(name: str, value: Any, least: int | None = None) -> int:
    """Give a whole number as an int.

    Examples
    --------
    >>> whole("step_size", 2.5, 1)
    Traceback (most recent call last):
    ...
    TypeError: step_size must be a whole number of at least 1; got 2.5 of type float.
    """
    wanted = f"{name} must be a whole number" + ("" if least is None else f" of at least {least}")
    try:
        if isinstance(value, bool):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{wanted}; got {value!r} of type {type(value).__name__}.") from None
    if least is not None and found < least:
        raise ValueError(f"{wanted}; got {found}.")
    return found


def flag(name: str, value: Any) -> bool:
    """Give True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Give one of several words.

    Examples
    --------
    >>> choice("mode", "lowest", ("min", "max"))
    Traceback (most recent call last):
    ...
    ValueError: mode must be 'min' or 'max'; got 'lowest'.
    """
    wanted = f"{', '.join(map(repr, options[:-1]))} or {options[-1]!r}"
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {wanted}; got {value!r} of type {type(value).__name__}.")
    if value not in options:
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")
    return value


def function(name: str, value: Any, example: str) -> Any:
    """Give something that can be called."""
    if not callable(value):
        raise TypeError(
            f"{name} must be a function, such as {example}; got {value!r} of type "
            f"{type(value).__name__}."
        )
    return value


def rising(name: str, value: Any) -> list[int]:
    """Give epochs in rising order as a list of ints.

    Examples
    --------
    >>> rising("milestones", [30, 10])
    Traceback (most recent call last):
    ...
    ValueError: milestones must rise; got 30 before 10.
    """
    found = [whole(f"{name}[{at}]", one, 0) for at, one in enumerate(listed(name, value))]
    for first, second in itertools.pairwise(found):
        if first >= second:
            raise ValueError(f"{name} must rise; got {first} before {second}.")
    return found


def listed(name: str, value: Any) -> list[Any]:
    """Give a list, tuple or one-dimensional array as a list."""
    shape = getattr(value, "shape", None)
    if isinstance(value, (list, tuple)) or (shape is not None and len(shape) == 1):
        return list(value)
    raise TypeError(
        f"{name} must be a list of numbers; got {value!r} of type {type(value).__name__}."
    )
