"""Hyper-parameters of an optimizer class: its signature, and reading and checking their values."""

from __future__ import annotations

import difflib
import math
from typing import Any

import numpy as np

from optlab.backend.arrays import as_float
from optlab.optimizer.per_member import read_members

REQUIRED: Any = object()

#: Arguments that every optimizer takes by name, with their defaults.
COMMON: dict[str, Any] = {
    "parameters": None,
    "weight_decay": None,
    "grad_clip": None,
    "name": None,
    "multi_precision": False,
    "not_finite": "pass",
}

#: Ranges of names that mean the same in every rule: (lowest, highest), the highest excluded.
COMMON_RANGES: dict[str, tuple[float, float]] = {
    "learning_rate": (0.0, math.inf),
    "epsilon": (0.0, math.inf),
    "momentum": (0.0, 1.0),
    "beta1": (0.0, 1.0),
    "beta2": (0.0, 1.0),
    "rho": (0.0, 1.0),
    "decay": (0.0, 1.0),
}


#: What other libraries call them.
ALIASES = {
    "lr": "learning_rate", "rate": "learning_rate", "betas": "beta1", "eps": "epsilon",
    "alpha": "rho", "nesterov": "use_nesterov",
}  # fmt: skip


def checked(name: str, value: Any, default: Any, ranges: dict[str, tuple[float, float]]) -> Any:
    """Give a hyper-parameter's value as a Python number or bool, or say what is wrong with it."""
    if isinstance(default, bool):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False; got {value!r}.")
        return bool(value)
    if default is not REQUIRED and not isinstance(default, (int, float)):
        return value
    if name == "learning_rate" and is_schedule(value):
        return float(value())
    if isinstance(value, (list, tuple, dict, set)) or callable(getattr(value, "parameters", None)):
        raise TypeError(
            f"{name} must be one number, but got a {type(value).__name__}. What to optimize is "
            "given by name: parameters=model.parameters()."
        )
    if default is REQUIRED or isinstance(default, float):
        members = read_members(value)
        if members is not None:
            return members.map(lambda one: checked(name, one, default, ranges))
    number = as_float(value, name)
    lowest, highest = ranges.get(name) or COMMON_RANGES.get(name) or (-math.inf, math.inf)
    if not (lowest <= number < highest and math.isfinite(number)):
        if highest < math.inf:
            bound = f"in [{lowest:g}, {highest:g})"
        else:
            bound = "finite" if lowest == -math.inf else f"finite and at least {lowest:g}"
        raise ValueError(f"{name} must be {bound}; got {number!r}.")
    if isinstance(default, int):
        if number != int(number):
            raise ValueError(f"{name} must be a whole number; got {number!r}.")
        return int(number)
    return number


def checked_callable(name: str, value: Any, takes: str) -> None:
    """Raise TypeError if an optional setting that is a function is something else."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function that takes {takes}; got {value!r}.")


def is_schedule(value: Any) -> bool:
    """Say whether something is a schedule of `optlab.optimizer.lr`, by what it can do."""
    return callable(value) and all(hasattr(value, name) for name in ("step", "get_lr"))


def read(cls: Any, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Read the arguments of an optimizer class into its settings.

    Raises
    ------
    TypeError
        For an unknown, missing or doubled argument.
    ValueError
        For a value out of range.
    """
    known = cls.hyperparameters
    if next(iter(known), None) != "learning_rate":
        raise TypeError(
            f"{cls.__name__}.hyperparameters must begin with 'learning_rate'; it has "
            f"{', '.join(known) or 'nothing'}."
        )
    if len(values) > len(known):
        raise TypeError(
            f"{cls.__name__} takes at most {len(known)} arguments by position "
            f"({', '.join(known)}); give the rest by name."
        )
    given = dict(zip(known, values, strict=False))
    for name, value in named.items():
        if name in given:
            raise TypeError(f"{cls.__name__} got {name} twice, by position and by name.")
        if name not in known:
            raise TypeError(unknown(cls.__name__, name, known))
        given[name] = value
    missing = [name for name, default in known.items() if default is REQUIRED and name not in given]
    if missing:
        raise TypeError(f"{cls.__name__} needs {' and '.join(missing)}.")
    return {
        name: checked(name, given.get(name, default), default, cls.ranges)
        for name, default in known.items()
    }


def unknown(owner: str, name: str, known: Any) -> str:
    """Say that a setting is not known, and which one was perhaps meant."""
    close = [ALIASES[name]] if ALIASES.get(name) in known else []
    close = close or difflib.get_close_matches(name, list(known), 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{owner} has no setting {name!r}; it has {', '.join(known)}.{hint}"


class Signature:
    """The signature of an optimizer class, built when somebody asks for it."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def __get__(self, instance: Any, owner: Any) -> Any:
        """Give an `inspect.Signature` of the hyper-parameters and the common arguments."""
        from inspect import Parameter
        from inspect import Signature as Built

        hyperparameters = self.cls.hyperparameters
        common = {name: value for name, value in COMMON.items() if name not in hyperparameters}
        return Built(
            [
                Parameter(
                    name,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    default=Parameter.empty if default is REQUIRED else default,
                )
                for name, default in hyperparameters.items()
            ]
            + [
                Parameter(name, Parameter.KEYWORD_ONLY, default=value)
                for name, value in common.items()
            ]
        )
