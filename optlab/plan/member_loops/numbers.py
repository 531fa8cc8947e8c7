"""Numbers of a member loop: what differs between members, between steps, or both.

Sums, products, quotients and roots are the same in NumPy, in machine code and in Python. Powers
are not, so Python computes them, once for each pair of distinct values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.plan.tracer import CaptureError

Floats = np.ndarray[Any, np.dtype[np.float64]]

#: The most powers that are computed one by one.
_MOST_POWERS = 4_000_000
#: Up to so many, it takes longer to find equal ones.
_FEW = 4096
_COMPUTE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "neg": operator.neg, "sqrt": np.sqrt,
}  # fmt: skip


class Number:
    """A number of a program.

    Attributes
    ----------
    level : {"step", "member", "table", "loop"}
        It differs between steps (`data` has one value a step), between members (one value a
        member), or both: a table with one row a step and one column a distinct member, with the
        column of each member (`columns`); or the operation `name` on `operands`, done in the loop.
    """

    __slots__ = ("columns", "data", "level", "name", "operands")

    def __init__(
        self,
        level: str,
        data: Any = None,
        columns: Any = None,
        name: str = "",
        operands: tuple[Any, ...] = (),
    ) -> None:
        self.level = level
        self.data = data
        self.columns = columns
        self.name = name
        self.operands = operands


def per_member(values: Floats) -> Number:
    """Return a number with one value a member."""
    return Number("member", np.ascontiguousarray(values, dtype=np.float64))


def per_step(values: Any) -> Number:
    """Return a number with one value a step."""
    return Number("step", np.ascontiguousarray(values, dtype=np.float64))


def table(rows: Floats, columns: Any) -> Number:
    """Return a number with one row a step, and for each member the column that is its own."""
    return Number("table", np.ascontiguousarray(rows), np.ascontiguousarray(columns, np.int64))


class Numbers:
    """Arithmetic with numbers; the results of equal operations are computed once."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._known: dict[Any, Any] = {}

    def combine(self, name: str, *operands: Any) -> Any:
        """Return the result of an operation on numbers and Python floats.

        Raises
        ------
        CaptureError
            If a result is not finite (a single run might raise), or it is a power that the loop
            cannot compute.
        """
        key = (name, *(id(x) if isinstance(x, Number) else repr(x) for x in operands))
        if key not in self._known:
            # The operands are kept, so that no other gets their identity.
            self._known[key] = self._combined(name, operands), operands
        return self._known[key][0]

    def _combined(self, name: str, operands: tuple[Any, ...]) -> Any:
        levels = {x.level for x in operands if isinstance(x, Number)}
        if not levels:
            return float(_compute(name, *operands))
        if len(levels) == 1 and (level := levels.pop()) in ("step", "member"):
            values = [x.data if isinstance(x, Number) else x for x in operands]
            return Number(level, _compute(name, *values))
        if name == "pow":
            return self._power(*operands)
        return Number("loop", name=name, operands=operands)

    def _power(self, base: Any, exponent: Any) -> Number:
        """Return a power of which one part differs between members, the other between steps."""
        parts = (base, exponent)
        if any(isinstance(x, Number) and x.level not in ("step", "member") for x in parts):
            raise CaptureError("a power of a number that differs by step and by member.")
        by_member = base if base.level == "member" else exponent
        distinct, columns = np.unique(by_member.data, return_inverse=True)
        if len(distinct) * self.steps > _MOST_POWERS:
            raise CaptureError("there are too many powers that differ by step and member.")
        given = [distinct if x is by_member else x.data[:, None] for x in parts]
        return table(_compute("pow", *given), columns.reshape(-1))


def _compute(name: str, *operands: Any) -> Any:
    """Return the result of an operation on floats or arrays of them, with Python's bits."""
    with np.errstate(all="ignore"):
        if name == "pow":
            found = _powers(*operands)
        else:
            found = _COMPUTE[name](*[np.asarray(x, dtype=np.float64) for x in operands])
    if not np.all(np.isfinite(found)):
        raise CaptureError("a number of the rule is not finite for some member or step.")
    return np.asarray(found) if np.ndim(found) else found


def _powers(base: Any, exponent: Any) -> Any:
    base, exponent = np.broadcast_arrays(base, exponent)
    if base.size <= _FEW:
        found = _python_powers(base.ravel().tolist(), exponent.ravel().tolist())
        return found.reshape(base.shape)
    pairs = np.stack([base.ravel(), exponent.ravel()], axis=1)
    distinct, places = np.unique(pairs, axis=0, return_inverse=True)
    if len(distinct) > _MOST_POWERS:
        raise CaptureError("there are too many different powers.")
    return _python_powers(*distinct.T.tolist())[places.reshape(-1)].reshape(base.shape)


def _python_powers(bases: list[float], exponents: list[float]) -> Floats:
    """Return powers as Python computes them, NaN for those that it refuses or that are complex."""
    pairs = list(zip(bases, exponents, strict=True))
    try:
        found = np.array([a**b for a, b in pairs])
        if found.dtype == np.float64:
            return found
    except (OverflowError, ZeroDivisionError):
        pass
    return np.array([_power(a, b) for a, b in pairs], dtype=np.float64)


def _power(a: float, b: float) -> float:
    try:
        value = a**b
    except (OverflowError, ZeroDivisionError):
        return np.nan
    return value if isinstance(value, float) else np.nan
