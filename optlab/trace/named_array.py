"""The array of the one parameter of a run, which takes the name of the parameter, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


class NamedArray(np.ndarray):
    """An array that answers to one name, so that code for several parameters reads one alike.

    Examples
    --------
    >>> moment = NamedArray.of(np.array([1.0, 2.0]), "w")
    >>> moment[0], moment["w"]
    (np.float64(1.0), array([1., 2.]))
    >>> list(moment.items())
    [('w', array([1., 2.]))]
    """

    parameter: str | None = None

    @classmethod
    def of(cls, array: np.ndarray, parameter: str) -> NamedArray:
        """Return a view of an array with the name of a parameter."""
        found = array.view(cls)
        found.parameter = parameter
        return found

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key != self.parameter:
                raise KeyError(f"there is no parameter {key!r}; there is {self.parameter}")
            return self.view(np.ndarray)
        return self.view(np.ndarray)[key]

    def keys(self) -> list[str]:
        """Return the name of the parameter, as of a mapping."""
        return [] if self.parameter is None else [self.parameter]

    def values(self) -> list[np.ndarray]:
        """Return the array, as of a mapping."""
        return [self[name] for name in self.keys()]

    def items(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield name and array, as of a mapping."""
        return zip(self.keys(), self.values(), strict=True)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array.view(np.ndarray)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))
