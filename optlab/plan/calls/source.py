"""Entries as Python source: one statement for each, with constants as names of its scope."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import new_tensor
from optlab.plan.calls.entries import Entry, OfTensor
from optlab.plan.calls.places import is_made_anew
from optlab.plan.plan import Place

#: Functions whose `out` NumPy wants by name; by position it is faster.
_BY_NAME = (np.maximum, np.minimum, np.clip)
#: The place of `out` among the arguments of a reduction: after array, axis and dtype.
_OUT_OF_REDUCTION = 3


def is_reduction(function: Any) -> bool:
    """Return whether a function is the method `reduce` of a ufunc."""
    return isinstance(getattr(function, "__self__", None), np.ufunc) and (
        function.__name__ == "reduce"
    )


def takes_out(entry: Entry) -> bool:
    """Return whether an operation can write its result into a given array."""
    function = entry.function
    if entry.kind != "operation" or entry.keywords or entry.several:
        return False
    if is_reduction(function):
        return len(entry.arguments) <= _OUT_OF_REDUCTION or (
            entry.arguments[_OUT_OF_REDUCTION] is None
        )
    return function is np.clip or (isinstance(function, np.ufunc) and function.nout == 1)


class Source:
    """Writes entries as statements, and keeps the constants that they name.

    Attributes
    ----------
    scope : dict of str to object
    """

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {"new_tensor": new_tensor}
        self._names: dict[int, str] = {}

    def place(self, place: Place) -> str:
        """Return the name of a value."""
        return f"v{place.number}"

    def call(self, entry: Entry, function: Any = None, out: str | None = None) -> str:
        """Return an entry as an expression.

        Parameters
        ----------
        entry : Entry
        function : callable, optional
            Called in place of that of the entry.
        out : str, optional
            The name of the array for the result.
        """
        function = function or entry.function
        arguments = [self.expression(x) for x in entry.arguments]
        if out is not None and is_reduction(function):
            arguments += ["None"] * (_OUT_OF_REDUCTION + 1 - len(arguments))
            arguments[_OUT_OF_REDUCTION] = out
        elif out is not None:
            arguments.append(f"out={out}" if function in _BY_NAME else out)
        arguments += [f"{name}={self.expression(x)}" for name, x in entry.keywords.items()]
        if entry.name == "read" and entry.kind == "read":
            return f"{arguments[0]}.data"
        if function is np.transpose and len(arguments) == 1:
            return f"{arguments[0]}.T"  # in a tenth of the time
        return f"{self.constant(function)}({', '.join(arguments)})"

    def statement(self, entry: Entry, function: Any = None, out: str | None = None) -> str:
        """Return an entry as a statement that names its results."""
        call = self.call(entry, function, out)
        if entry.kind == "effect" and not entry.gives:
            return call
        names = ", ".join(f"v{place.number}" for place in entry.results)
        return f"{names}, = {call}" if entry.several else f"{names} = {call}"

    def expression(self, x: Any) -> str:
        """Return a value as an expression."""
        if isinstance(x, Place):
            return self.place(x)
        if isinstance(x, OfTensor):
            return f"new_tensor({self.place(x.place)})"
        render = getattr(x, "source", None)
        if render is not None and hasattr(x, "holds_places"):
            return str(render(self.expression, self.constant))
        if is_made_anew(x):
            if type(x) is list:
                return f"[{', '.join(map(self.expression, x))}]"
            if type(x) is tuple:
                return f"({', '.join(map(self.expression, x))},)"
            if type(x) is dict:
                items = [f"{self.constant(k)}: {self.expression(v)}" for k, v in x.items()]
                return "{" + ", ".join(items) + "}"
            if isinstance(x, tuple):
                return f"{self.constant(type(x)._make)}(({', '.join(map(self.expression, x))},))"  # type: ignore[attr-defined]
        return self.constant(x)

    def constant(self, x: Any) -> str:
        """Return the name of a constant."""
        if type(x) in (int, bool, str, type(None)):
            return f"({x!r})" if type(x) is int and x < 0 else repr(x)
        name = self._names.get(id(x))
        if name is None:
            label = getattr(x, "__name__", "") if callable(x) else ""
            name = label if label.isidentifier() else f"c{len(self._names)}"
            if name in self.scope or name == "replay" or (name[0] in "vb" and name[1:].isdigit()):
                name = f"{name}_{len(self._names)}"
            self._names[id(x)] = name
            self.scope[name] = x
        return name
