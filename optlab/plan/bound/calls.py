"""A plan bound to arrays: its calls are made once, and repeated with other numbers.

To prepare the calls of a plan takes longer than to make them where arrays are small. So they are
kept, as long as the arrays are the same. Numbers that meet an array are kept as arrays without
axes, of its dtype: a ufunc takes 0.47 us with one on 3,000 elements, 0.65 us with a Python float,
which it casts to the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from optlab.backend import events
from optlab.plan.blocks import BlockPlan
from optlab.plan.progress import Call

_ARITHMETIC = (np.add, np.subtract, np.multiply, np.divide)


class UnboundError(Exception):
    """A plan cannot be bound: its numbers are used in other places than arithmetic on arrays."""


class _Number:
    """The place of a number in the calls, before it is known."""

    def __init__(self, position: int) -> None:
        self.position = position


class BoundCalls:
    """The calls of a plan without reductions on arrays that stay the same, as one block.

    Attributes
    ----------
    calls : list of tuple
        Functions and their arguments, for `optlab.plan.progress`.

    Raises
    ------
    UnboundError
        If the plan has several phases, or uses numbers in an unexpected place.

    Examples
    --------
    >>> from optlab.plan import capture_blocks
    >>> def step(a, n):
    ...     return {"p": a["p"] - n["rate"] * a["g"]}
    >>> plan = capture_blocks(step, {"p": np.ones(2), "g": np.ones(2)}, {"rate": 0.1})
    >>> p, g = np.ones(3), np.ones(3)
    >>> bound = BoundCalls(plan, [p, g])
    >>> bound.set_numbers([0.25])
    True
    >>> for function, *arguments in bound.calls:
    ...     _ = function(*arguments)
    >>> p
    array([0.75, 0.75, 0.75])
    """

    __slots__ = ("_cells", "_prepare", "calls")

    def __init__(self, plan: BlockPlan, arrays: Sequence[Any]) -> None:
        if plan.afters:
            raise UnboundError("the plan has several phases.")
        size = len(arrays[0])
        memory = [np.empty(size, dtype) for dtype in (*plan.kept, *plan.scratch)]
        if events.array_kept.listeners:
            for array in memory:
                events.array_kept.publish(array, "scratch of bound calls", "temporary", "step")
        numbers = [_Number(i) for i, _ in enumerate(plan.prepared[0])]
        cells: dict[Any, Any] = {}
        self.calls = [_bound(call, cells) for call in plan.calls[0](*arrays, *memory, *numbers)]
        self._prepare = plan.prepare
        #: For each number that a call reads: its position, its largest value, and what writes it.
        self._cells: list[tuple[int, float, Callable[[float], None]]] = [
            (position, float(np.finfo(dtype).max), cell.fill)
            for (position, dtype), cell in cells.items()
        ]

    def rest(self) -> list[Call]:
        """Return what is left after the calls: nothing."""
        return []

    def set_numbers(self, numbers: Sequence[float]) -> bool:
        """Set the numbers of the plan; return False if one is not finite in the dtype of arrays."""
        prepared = self._prepare(*numbers)
        for position, largest, write in self._cells:
            value = prepared[position]
            if not -largest <= value <= largest:
                return False
            write(value)
        return True


def _bound(call: Call, cells: dict[Any, Any]) -> Call:
    """Return a call with arrays without axes in place of its numbers."""
    function, *arguments = call
    if function in _ARITHMETIC and len(arguments) == 3:
        a, b, out = arguments
        if isinstance(b, np.ndarray):
            return function, _cell(a, b, out, cells), b, out
        return function, a, _cell(b, a, out, cells), out
    inside = [*arguments]
    if isinstance(function, partial):
        inside += [*function.args, *function.keywords.values()]
    if any(isinstance(one, _Number) for one in inside):
        raise UnboundError("a number is no operand of arithmetic.")
    return call


def _cell(x: Any, array: Any, out: Any, cells: dict[Any, Any]) -> Any:
    """Return an array for a number that meets `array`; anything else unchanged."""
    same = isinstance(array, np.ndarray) and array.dtype == out.dtype and array.dtype.kind == "f"
    if isinstance(x, _Number):
        if not same:
            raise UnboundError("a number meets an array of another dtype.")
        key = x.position, array.dtype
        if key not in cells:
            cells[key] = np.zeros((), array.dtype)
        return cells[key]
    if same and type(x) is float and abs(x) <= np.finfo(array.dtype).max:
        return np.array(x, array.dtype)
    return x
