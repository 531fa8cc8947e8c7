"""The namespaces `h`, `s` and `c` of an update rule, with hints for a wrong name."""

from __future__ import annotations

import reprlib
from types import SimpleNamespace
from typing import Any, ClassVar


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
    """``h``: the settings of the user."""

    what = "hyper-parameter"
    letter = "h"
    learning_rate: float


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
    hint = (
        " They are what scalars(self, t, h) returns, t being the step count from 1: "
        "return {{{name!r}: ...}} there, for example {{'t': float(t)}}."
    )
    hints: ClassVar[dict[str, str]] = {
        "key": " A rule that draws random numbers says so in the class: draws = True."
    }
