"""Captured numbers: Python floats that change between calls, and what is computed from them."""

from __future__ import annotations

import operator
from typing import Any

from optlab.plan.plan import Instruction
from optlab.plan.tracer import Captured, refusal

_OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "pow": operator.pow,
}  # fmt: skip


def _binary(name: str) -> Any:
    compute = _OPERATORS[name]

    def noted(self: CaptureNumber, args: tuple[Any, Any]) -> Any:
        values = []
        for x in args:  # thousands of times while a page is waited for
            if isinstance(x, CaptureNumber):
                values.append(x.value)
            elif isinstance(x, (int, float)):
                values.append(x)
            else:
                return NotImplemented  # an array records operations with a number
        return self.note(name, args, compute(*values))

    def forward(self: CaptureNumber, other: Any) -> Any:
        return noted(self, (self, other))

    def backward(self: CaptureNumber, other: Any) -> Any:
        return noted(self, (other, self))

    return forward, backward


class CaptureNumber(Captured):
    """A Python float that records what is computed from it in a plan."""

    __slots__ = ()

    def note(self, name: str, args: tuple[Any, ...], value: Any) -> CaptureNumber:
        """Record an operation on numbers; its shape is None."""
        result = self.tracer.place()
        arguments = tuple([x.place if isinstance(x, CaptureNumber) else x for x in args])
        self.tracer.instructions.append(
            Instruction(name, None, arguments, (), result, None, float)  # type: ignore[arg-type]
        )
        return type(self)(self.tracer, result, value)

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __pow__, __rpow__ = _binary("pow")

    def __neg__(self) -> CaptureNumber:
        return self.note("neg", (self,), -self.value)

    def __bool__(self) -> bool:
        raise refusal("a branch on a number that changes from call to call")

    def _compared(self, other: Any) -> Any:
        raise refusal("a comparison of a number that changes from call to call")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _compared
    __hash__ = object.__hash__

    def __float__(self) -> float:
        raise refusal("a function of a number that changes from call to call")

    __int__ = __index__ = __round__ = __float__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Captured) and not isinstance(x, CaptureNumber) for x in inputs):
            return NotImplemented
        raise refusal(f"{ufunc.__name__} of a number that changes from call to call")
