"""Functions of arrays that find out facts, which have to be those of the capture in a replay."""

from __future__ import annotations

from typing import Any

import numpy as np


class FactsChangedError(RuntimeError):
    """A call differs from the captured one in something that the plan depends on."""


class CheckedFacts:
    """A function that returns arrays and facts; the facts have to be those of the capture."""

    checks_facts = True

    def __init__(self, function: Any, facts: tuple[Any, ...]) -> None:
        self.function, self.facts = function, facts
        self.__name__ = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the arrays, after the facts were compared."""
        value = self.function(*args, **kwargs)
        parts = value if isinstance(value, tuple) else (value,)
        if tuple([None if isinstance(x, np.ndarray) else x for x in parts]) != self.facts:
            raise FactsChangedError(
                f"{self.function.__name__} found something else in these arguments than in those "
                "that the plan was captured with."
            )
        return tuple([x for x in parts if isinstance(x, np.ndarray)])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CheckedFacts)
            and self.function is other.function
            and self.facts == other.facts
        )

    def __hash__(self) -> int:
        return hash(self.function)
