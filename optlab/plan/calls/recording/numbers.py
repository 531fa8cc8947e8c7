"""Numbers that change from call to call, inside a captured call."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from optlab.backend.user_frames import called_by_user, frame_outside, location_of
from optlab.plan.plan import Place


def _computed(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return an operator and its reflection: numbers computed from it change as well."""
    function = getattr(operator, name)

    def forward(self: CallNumber, other: Any) -> Any:
        return self.recorder.of_numbers(name, function, self, other)

    def backward(self: CallNumber, other: Any) -> Any:
        return self.recorder.of_numbers(name, function, other, self)

    return forward, backward


def _compared(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def run(self: CallNumber, other: Any) -> Any:
        value = self._taken("a comparison")
        return function(value, other.value if isinstance(other, CallNumber) else other)

    return run


class NumberNeededError(BaseException):
    """A float among the arguments decides what is computed; not an error that users catch."""


class CallNumber:
    """A Python number that a captured call read: it may be an operand, and be handed out."""

    __slots__ = ("argument", "place", "recorder", "taken", "value", "where")

    is_traced = True
    #: `optlab.backend.call_recorder.is_live` asks for it.
    is_call_number = True
    #: `optlab.autograd.operation.as_single_operation` records functions of it.
    records_calls = True

    def __init__(
        self, recorder: Any, place: Place, value: Any, argument: bool = False, taken: bool = False
    ) -> None:
        self.recorder, self.place, self.value = recorder, place, value
        self.argument, self.taken = argument, taken
        #: The line that took it.
        self.where = location_of(frame_outside("optlab", "numpy"))
        recorder.handed.append(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(getattr(type(x), "holds", None) is not None for x in inputs):
            return NotImplemented
        if self.taken:
            self.recorder.refuse(".item(), whose number is used further,", self.where)
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self.recorder.write(ufunc.__name__, function, inputs, kwargs)

    def _taken(self, what: str) -> Any:
        if self.argument:
            raise NumberNeededError
        self.recorder.refuse(f"{what} of a number that changes from call to call", self.where)
        return self.value

    def __float__(self) -> float:
        return float(self._taken("float()"))

    def __int__(self) -> int:
        return int(self._taken("int()"))

    def __index__(self) -> int:
        return operator.index(self._taken("an index"))

    def __bool__(self) -> bool:
        return bool(self._taken("a branch"))

    def __repr__(self) -> str:
        return repr(self._taken("a print"))

    def __format__(self, spec: str) -> str:
        return format(self._taken("a print"), spec)

    __str__ = __repr__
    __lt__, __le__, __gt__, __ge__ = map(_compared, ("lt", "le", "gt", "ge"))
    __eq__, __ne__ = _compared("eq"), _compared("ne")

    def __hash__(self) -> int:
        hashed: int = hash(self._taken("a hash"))
        return hashed

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._taken("round()"), digits)

    def __trunc__(self) -> int:
        return int(self._taken("int()"))

    def __floor__(self) -> int:
        floored: int = math.floor(self._taken("floor()"))
        return floored

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not called_by_user():
            raise AttributeError(name)
        return getattr(self._taken(f".{name}"), name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the number for which it stands, for ``isinstance`` in code of the user."""
        return type(self.value) if called_by_user() else CallNumber

    __add__, __radd__ = _computed("add")
    __sub__, __rsub__ = _computed("sub")
    __mul__, __rmul__ = _computed("mul")
    __truediv__, __rtruediv__ = _computed("truediv")
    __pow__, __rpow__ = _computed("pow")
    __mod__, __rmod__ = _computed("mod")
    __floordiv__, __rfloordiv__ = _computed("floordiv")

    def __neg__(self) -> Any:
        return self.recorder.of_numbers("neg", operator.neg, self)

    def __abs__(self) -> Any:
        return self.recorder.of_numbers("abs", operator.abs, self)
