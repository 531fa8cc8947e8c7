"""Symbols: placeholders that write down the arithmetic done with them, fast enough for every step.

The scalars of a rule are computed anew in each of hundreds of steps, by code that may branch on
the step count. So they are traced step by step; what differs between two steps that do the same
operations are the constants alone, which are kept apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optlab.plan.tracer import refusal

#: A reference on a tape: a place from 0 on, or a constant as -1, -2, ...
Ref = int


class Tape:
    """What was done with symbols: operations on references, and the constants in them.

    Attributes
    ----------
    ops : list of tuple
        Name and references of the operands. The first result has the place `inputs`.
    constants : list of float

    Parameters
    ----------
    inputs : int
    values : sequence of array
        All values that an input has, for choices by it; of the first inputs.
    """

    def __init__(self, inputs: int, values: Sequence[Any] = ()) -> None:
        self.inputs = inputs
        self._values = values
        self.ops: list[tuple[Any, ...]] = []
        self.constants: list[float] = []

    def symbols(self) -> list[Symbol]:
        """Return the symbols of the inputs."""
        return [Symbol(self, i) for i in range(self.inputs)]

    def clear(self) -> None:
        """Forget all operations, for the next step with the same inputs."""
        self.ops, self.constants = [], []

    def reference(self, value: Any) -> Ref:
        """Return the reference of a symbol or a number."""
        if value.__class__ is Symbol:
            return value.place
        self.constants.append(float(value))
        return -len(self.constants)

    def choice(self, symbol: Symbol, compare: Callable[[Any, Any], Any], other: Any) -> bool:
        """Return how an input compares with a number, if all its values compare alike."""
        if symbol.place < len(self._values) and isinstance(other, (float, int)):
            found = compare(self._values[symbol.place], other)
            if found.all() or not found.any():
                return bool(found.all())
        raise refusal("a choice by a number that differs between members")

    def write(self, name: str, *operands: Any) -> Symbol:
        """Write down an operation, and return the symbol of its result."""
        self.ops.append((name, *map(self.reference, operands)))
        return Symbol(self, self.inputs + len(self.ops) - 1)


def _binary(name: str) -> Any:
    def forward(self: Symbol, other: Any) -> Any:
        if other.__class__ is Symbol or isinstance(other, (float, int)):
            return self.tape.write(name, self, other)
        return NotImplemented

    def backward(self: Symbol, other: Any) -> Any:
        if isinstance(other, (float, int)):
            return self.tape.write(name, other, self)
        return NotImplemented

    return forward, backward


def _choice(compare: Callable[[Any, Any], Any]) -> Any:
    def choose(self: Symbol, other: Any) -> bool:
        return self.tape.choice(self, compare, other)

    return choose


class Symbol:
    """A number, or an array of float64, that writes down what is computed from it.

    Examples
    --------
    >>> tape = Tape(1)
    >>> [rate] = tape.symbols()
    >>> result = rate / (1 - 0.5)
    >>> tape.ops, tape.constants
    ([('truediv', 0, -1)], [0.5])
    """

    __slots__ = ("place", "tape")

    dtype = np.dtype(np.float64)

    def __init__(self, tape: Tape, place: int) -> None:
        self.tape = tape
        self.place = place

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __pow__, __rpow__ = _binary("pow")

    def __neg__(self) -> Symbol:
        return self.tape.write("neg", self)

    def __pos__(self) -> Symbol:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.sqrt and method == "__call__" and not kwargs:
            return self.tape.write("sqrt", self)
        raise refusal(f"{ufunc.__name__} of a number that differs between members")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.zeros_like:
            return 0.0
        raise refusal(f"{function.__name__} of a number that differs between members")

    def _refuse(self, *_: Any) -> Any:
        raise refusal("a choice by a number that differs between members")

    __bool__ = __float__ = __int__ = __index__ = __round__ = _refuse
    __lt__, __le__ = _choice(operator.lt), _choice(operator.le)
    __gt__, __ge__ = _choice(operator.gt), _choice(operator.ge)
    __eq__, __ne__ = _choice(operator.eq), _choice(operator.ne)
    __hash__ = object.__hash__
