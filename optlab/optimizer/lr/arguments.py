"""Validation of the arguments of schedules, and conversion to plain Python values."""

from __future__ import annotations

import itertools
import math
import operator
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.conversions import as_setting, refuse_setting
from optlab.backend.text import or_list
from optlab.optimizer.rule.members import read_members

#: What to write for a rate, or a setting of a schedule, that is differentiated.
_FUNCTIONAL = (
    "the rate as a formula of t, and give it to optimizer.functional_step(parameters, gradients, "
    "state, learning_rate=...)"
)


def number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Validate a finite number; an int stays an int.

    Parameters
    ----------
    name : str
        The name of the argument.
    value : float, int, NumPy scalar, one-element array or Tensor
        The argument.
    least, above, most, below : float
        Bounds: at least, greater than, at most, less than.

    Examples
    --------
    >>> number("gamma", 1.5, above=0, below=1)
    Traceback (most recent call last):
    ...
    ValueError: gamma must be above 0 and below 1; got 1.5.
    """
    exact = type(value) is int
    refuse_setting(value, name, _FUNCTIONAL)
    members = read_members(value)
    if members is not None:
        raise TypeError(
            f"{name} of a schedule must be one number, but got an ensemble of {len(members)}: "
            "schedules have one rate for all members. Give the ensemble itself to the optimizer "
            "for rates that stay, or race one optimizer a schedule with ol.compare."
        )
    found = as_setting(value, name)
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
    """Validate a learning rate and return it as a float: finite, and at least 0."""
    return float(number(name, value, least=0.0))


def integer(name: str, value: Any, least: int | None = None) -> int:
    """Validate an integer.

    Examples
    --------
    >>> integer("step_size", 2.5, 1)
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
    """Validate a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Validate one of several words.

    Examples
    --------
    >>> choice("mode", "lowest", ("min", "max"))
    Traceback (most recent call last):
    ...
    ValueError: mode must be 'min' or 'max'; got 'lowest'.
    """
    wanted = or_list(options)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {wanted}; got {value!r} of type {type(value).__name__}.")
    if value not in options:
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")
    return value


def function(name: str, value: Any, example: str) -> Any:
    """Validate a callable."""
    if not callable(value):
        raise TypeError(
            f"{name} must be a function, such as {example}; got {value!r} of type "
            f"{type(value).__name__}."
        )
    return value


def increasing(name: str, value: Any) -> list[int]:
    """Validate epochs in increasing order, and return them as a list of ints.

    Examples
    --------
    >>> increasing("milestones", [30, 10])
    Traceback (most recent call last):
    ...
    ValueError: milestones must rise; got 30 before 10.
    """
    found = [integer(f"{name}[{at}]", one, 0) for at, one in enumerate(as_list(name, value))]
    for first, second in itertools.pairwise(found):
        if first >= second:
            raise ValueError(f"{name} must rise; got {first} before {second}.")
    return found


def as_list(name: str, value: Any) -> list[Any]:
    """Convert a list, tuple, range or 1-D array to a list."""
    shape = getattr(value, "shape", None)
    if isinstance(value, (list, tuple, range)) or (shape is not None and len(shape) == 1):
        return list(value)
    raise TypeError(
        f"{name} must be a list of numbers; got {value!r} of type {type(value).__name__}."
    )


def no_optimizer(schedule: str, first: Sequence[str], args: Any, named: dict[str, Any]) -> None:
    """Raise if an optimizer is among the arguments of a schedule.

    Parameters
    ----------
    schedule : str
        The class.
    first : sequence of str
        Names of its first argument.
    args, named
        The arguments of the call.
    """
    every = [*args, *named.values()]
    optimizer = next((one for one in every if _is_optimizer(one)), None)
    if optimizer is None:
        return
    written = ["0.1"] if first and first[0].endswith("learning_rate") else []
    written += [reprlib.repr(one) for one in args if one is not optimizer]
    written += [f"{k}={reprlib.repr(v)}" for k, v in named.items() if v is not optimizer]
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    raise TypeError(
        f"{schedule} takes no optimizer: the schedule goes into the optimizer, as its learning "
        f"rate. Write {type(optimizer).__name__}({schedule}({', '.join(written) or '...'}), "
        "parameters=...), and call schedule.step() when the count goes on."
    )


def _is_optimizer(value: Any) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("step", "bind", "clear_grad"))
