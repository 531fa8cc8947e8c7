"""A recorded quantity: arrays by the names of parameters, or the one array that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from optlab.trace.choices import chosen_names, chosen_rows, chosen_steps, rows_of


class RecordedArray(np.ndarray):
    """An array of a trace, of which `sel` chooses steps.

    What is computed from it is an array like any other.

    Examples
    --------
    >>> loss = RecordedArray.of(np.array([9.0, 4.0, 1.0]), steps=np.array([1, 2, 3]))
    >>> loss.sel(step=slice(2, 3)), 2 * loss
    (array([4., 1.]), array([18.,  8.,  2.]))
    """

    steps: np.ndarray | None = None
    parameter: str | None = None

    @classmethod
    def of(
        cls, array: np.ndarray, parameter: str | None = None, steps: np.ndarray | None = None
    ) -> Any:
        """Return a view of an array with the name of a parameter, and the steps of its rows."""
        found = array.view(cls)
        found.parameter, found.steps = parameter, steps
        return found

    def sel(self, step: Any = None, parameter: Any = None) -> Any:
        """Return the rows of some steps; arguments are those of ``trace.sel``.

        Raises
        ------
        KeyError
            If it was not recorded at a step, or is no array of a parameter.
        TypeError
            If this is not the whole array of the trace, but what was computed from it.
        """
        if self.steps is None:
            raise TypeError(
                "sel chooses steps of a recorded quantity, trace[name].sel(step=...); this array "
                "was computed from one."
            )
        chosen_names(parameter, [] if self.parameter is None else [self.parameter])
        wanted = chosen_steps(step, self.steps.tolist())
        rows = rows_of(self.steps, wanted)
        array = chosen_rows(self.view(np.ndarray), rows)
        return type(self).of(array, self.parameter, self.steps[rows])

    def __getitem__(self, key: Any) -> Any:
        return self.view(np.ndarray)[key]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array.view(np.ndarray)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


class NamedArray(RecordedArray):
    """An array that answers to one name, so that code for several parameters reads one alike.

    Examples
    --------
    >>> moment = NamedArray.of(np.array([1.0, 2.0]), "w")
    >>> moment[0], moment["w"]
    (np.float64(1.0), array([1., 2.]))
    >>> list(moment.items())
    [('w', array([1., 2.]))]
    """

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key != self.parameter:
                raise KeyError(f"there is no parameter {key!r}; there is {self.parameter}")
            return self.view(np.ndarray)
        return super().__getitem__(key)

    def keys(self) -> list[str]:
        """Return the name of the parameter, as of a mapping."""
        return [] if self.parameter is None else [self.parameter]

    def values(self) -> list[np.ndarray]:
        """Return the array, as of a mapping."""
        return [self[name] for name in self.keys()]

    def items(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield name and array, as of a mapping."""
        return zip(self.keys(), self.values(), strict=True)


class NamedArrays(dict[str, np.ndarray]):
    """The arrays of a quantity by the names of parameters; `sel` chooses steps and parameters.

    Examples
    --------
    >>> arrays = {"w": np.array([4.0, 5.0, 6.0]), "b": np.array([7.0, 8.0, 9.0])}
    >>> moment = NamedArrays(arrays, np.array([1, 2, 3]))
    >>> moment.sel(step=slice(2, 3))
    {'w': array([5., 6.]), 'b': array([8., 9.])}
    >>> moment.sel(step=2, parameter="b")
    array([8.])
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], steps: np.ndarray) -> None:
        super().__init__(arrays)
        self.steps = steps

    def sel(self, step: Any = None, parameter: Any = None) -> Any:
        """Return some steps and some parameters; arguments are those of ``trace.sel``.

        Raises
        ------
        KeyError
            If the quantity was not recorded at a step, or there is no parameter of a name.
        """
        rows = rows_of(self.steps, chosen_steps(step, self.steps.tolist()))
        found = {
            name: chosen_rows(self[name], rows) for name in chosen_names(parameter, list(self))
        }
        return one_or_all(NamedArrays(found, self.steps[rows]))


def one_or_all(arrays: NamedArrays) -> Any:
    """Return arrays by names; of one parameter alone the array."""
    if len(arrays) != 1:
        return arrays
    [(name, array)] = arrays.items()
    return NamedArray.of(array, name, arrays.steps)
