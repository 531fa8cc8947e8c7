"""What an update rule is handed: named values, with a helpful word for a wrong name."""

from __future__ import annotations

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

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(vars(self)) or "none"
        raise AttributeError(f"there is no {self.what} {name!r}; there is {known}.")


class HyperParameters(Values):
    """``h``: what the user set."""

    what = "hyper-parameter"
    learning_rate: float


class Slots(Values):
    """``s``: what the rule remembers of every element."""

    what = "slot"


class Scalars(Values):
    """``c``: what depends on the step and the hyper-parameters alone."""

    what = "scalar"
