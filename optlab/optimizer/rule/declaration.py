"""What the class of a rule declares, checked where the class is written."""

from __future__ import annotations

import reprlib
from types import FunctionType
from typing import Any

import numpy as np

#: What a rule is called with.
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
    """Return whether a class or function is optlab's own: it is trusted and not checked again."""
    return (definition.__module__ or "").partition(".")[0] == "optlab"  # None under `exec`


def check_class(cls: type) -> None:
    """Raise if a rule's class says something about itself that no optimizer can use.

    Raises
    ------
    TypeError
        If settings or slots are no dict of names and start values, or a method does not take what
        it will be given.
    """
    declared = vars(cls)
    if "hyperparameters" in declared:
        _named(f"{cls.__name__}.hyperparameters", declared["hyperparameters"], "learning_rate", 0.1)
    if "slots" in declared:
        checked_slots(f"{cls.__name__}.slots", declared["slots"])
    for name, wanted in _SIGNATURES.items():
        method = declared.get(name)
        if isinstance(method, FunctionType):
            _check_signature(f"{cls.__name__}.{name}", method, wanted)


def checked_slots(what: str, slots: Any) -> dict[str, float]:
    """Give slots with the values they begin at, or say what is wrong with them.

    Examples
    --------
    >>> checked_slots("Mine.slots", {"m": None})
    Traceback (most recent call last):
    ...
    TypeError: Mine.slots: 'm' begins at a number, such as 0.0; got None.
    """
    _named(what, slots, "m", 0.0)
    for name, start in slots.items():
        if not isinstance(start, (int, float, np.number)):
            raise TypeError(
                f"{what}: {name!r} begins at a number, such as 0.0; got {reprlib.repr(start)}."
            )
    return slots  # type: ignore[no-any-return]


def _named(what: str, given: Any, name: str, start: float) -> None:
    """Say what a dict of names and values looks like, if this is none."""
    if not isinstance(given, dict) or not all(isinstance(one, str) for one in given):
        raise TypeError(
            f"{what} must be a dict of name and start value, such as {{{name!r}: {start}}}; got "
            f"{reprlib.repr(given)}."
        )


def _check_signature(what: str, method: FunctionType, wanted: tuple[str, ...]) -> None:
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
