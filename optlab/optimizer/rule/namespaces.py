"""The namespaces `h`, `s` and `c` of an update rule, with hints for a wrong name."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, Self


class Values(SimpleNamespace):
    """Named values as attributes.

    Examples
    --------
    >>> h = HyperParameters(learning_rate=0.1)
    >>> h.learning_rate
    0.1
    >>> h.lr
    Traceback (most recent call last):
        ...
    AttributeError: there is no hyper-parameter 'lr'; there is learning_rate.
    """

    what: ClassVar[str] = "value"
    letter: ClassVar[str] = "values"
    hint: ClassVar[str] = ""
    hints: ClassVar[dict[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(vars(self)) or "none"
        hint = "" if name.startswith("__") else self.hints.get(name, self.hint).format(name=name)
        raise AttributeError(f"there is no {self.what} {name!r}; there is {known}.{hint}")

    def __getitem__(self, key: Any) -> Any:
        wanted = key if isinstance(key, str) and key.isidentifier() else "name"
        raise TypeError(
            f"the {self.what}s are attributes: write {self.letter}.{wanted} in place of "
            f"{self.letter}[{reprlib.repr(key)}]."
        )


class HyperParameters(Values):
    """``h``: the settings of the user.

    A setting of a group may be set, ``optimizer.groups[0].h.beta1 = 0.8``: it is checked first, by
    the function that `checked_by` has given.
    """

    __slots__ = ("_check",)

    what = "hyper-parameter"
    letter = "h"
    learning_rate: float

    def checked_by(self, check: Callable[[HyperParameters, str, Any], Any]) -> Self:
        """Set the function that returns the value of a setting, or raises; return this."""
        object.__setattr__(self, "_check", check)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        check = _check_of(self)
        super().__setattr__(name, value if check is None else check(self, name, value))

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {self.what} cannot be deleted; {name!r} belongs to the rule.")

    def __reduce__(self) -> Any:
        check = _check_of(self)
        return type(self), (), (vars(self), {} if check is None else {"_check": check})

    def __setstate__(self, state: Any) -> None:
        values, checks = state
        vars(self).update(values)
        for check in checks.values():
            self.checked_by(check)


def _check_of(h: HyperParameters) -> Any:
    """Return the function that checks the settings, or None."""
    try:
        return object.__getattribute__(h, "_check")
    except AttributeError:
        return None


class SpreadHyperParameters(HyperParameters):
    """``h`` with a setting that has one value per member of an ensemble."""


class Slots(Values):
    """``s``: the state of every element, such as moments."""

    what = "slot"
    letter = "s"
    hint = (
        " Slots are declared in the class, with the value they begin at: slots = {{{name!r}: 0.0}}."
    )


class Scalars(Values):
    """``c``: scalars that depend on the step and the hyper-parameters alone."""

    what = "scalar"
    letter = "c"
    #: The decay of a rule with ``separate_decay``, an array, if there is one.
    decay: Any = None
    hint = (
        " They are what scalars(self, t, h) returns, t being the step count from 1: "
        "return {{{name!r}: ...}} there, for example {{'t': float(t)}}."
    )
    hints: ClassVar[dict[str, str]] = {
        "key": " A rule that draws random numbers says so in the class: draws = True."
    }
