"""Checks of what the class of a rule declares, when the class is created."""

from __future__ import annotations

import reprlib
from types import FunctionType
from typing import Any

import numpy as np

#: The parameters with which the methods of a rule are called.
_SIGNATURES = {
    "update": ("self", "p", "g", "s", "h", "c"),
    "scalars": ("self", "t", "h"),
    "check": ("self", "h"),
    "slots_for": ("self", "h"),
    "for_parameter": ("self", "p", "h"),
    "applies_by_rows": ("self", "h"),
}
_TAKES_ANY = 4  # `inspect.CO_VARARGS`; the module takes long to import


def is_built_in(definition: Any) -> bool:
    """Return whether a class or function is optlab's own, and so need not be verified."""
    return (definition.__module__ or "").partition(".")[0] == "optlab"  # None under `exec`


def check_class(cls: type) -> None:
    """Raise if the class of a rule declares something that no optimizer can use.

    Raises
    ------
    TypeError
        If settings or slots are no dict of names and start values, or a method has other
        parameters than it is called with.
    """
    declared = vars(cls)
    if "hyperparameters" in declared:
        _check_is_dict(
            f"{cls.__name__}.hyperparameters", declared["hyperparameters"], "learning_rate", 0.1
        )
    if "slots" in declared:
        checked_slots(f"{cls.__name__}.slots", declared["slots"])
    for name, wanted in _SIGNATURES.items():
        method = declared.get(name)
        if isinstance(method, FunctionType):
            _check_signature(f"{cls.__name__}.{name}", method, wanted)


def checked_slots(what: str, slots: Any) -> dict[str, float]:
    """Return slots with their start values, checked.

    Examples
    --------
    >>> checked_slots("Mine.slots", {"m": None})
    Traceback (most recent call last):
    ...
    TypeError: Mine.slots: 'm' begins at a number, such as 0.0; got None.
    """
    _check_is_dict(what, slots, "m", 0.0)
    for name, start in slots.items():
        if not isinstance(start, (int, float, np.number)):
            raise TypeError(
                f"{what}: {name!r} begins at a number, such as 0.0; got {reprlib.repr(start)}."
            )
    return slots  # type: ignore[no-any-return]


def _check_is_dict(what: str, given: Any, name: str, start: float) -> None:
    """Raise if something is no dict of names and values; `name` and `start` are an example."""
    if not isinstance(given, dict) or not all(isinstance(one, str) for one in given):
        raise TypeError(
            f"{what} must be a dict of name and start value, such as {{{name!r}: {start}}}; got "
            f"{reprlib.repr(given)}."
        )


def _check_signature(what: str, method: FunctionType, wanted: tuple[str, ...]) -> None:
    """Raise if a method cannot be called with these parameters."""
    code = method.__code__
    most = code.co_argcount
    least = most - len(method.__defaults__ or ())
    if least <= len(wanted) and (len(wanted) <= most or code.co_flags & _TAKES_ANY):
        return
    name = method.__name__
    written = ", ".join(code.co_varnames[:most])
    raise TypeError(
        f"{what} must be written as {name}({', '.join(wanted)}), as it is called with "
        f"{len(wanted) - 1} arguments; it is {name}({written})."
    )
