"""The tracer of a plan: placeholders for values during capture, and the recorded operations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from optlab.backend.user_frames import frame_outside, location_of
from optlab.plan.plan import Instruction, Joined, Place

COMPUTE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "matmul": operator.matmul, "mod": operator.mod, "neg": operator.neg, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": operator.and_, "or": operator.or_,
}  # fmt: skip


class CaptureError(TypeError):
    """A function does something that a plan cannot repeat; the message names it and its line."""


class Captured:
    """A placeholder for a value in a plan: its place, and its value in this capture."""

    __slots__ = ("place", "tracer", "value")

    def __init__(self, tracer: Any, place: Place, value: Any) -> None:
        self.tracer = tracer
        self.place = place
        self.value = value


class Tracer:
    """The plan during capture; `array` is the type of the arrays that it returns."""

    def __init__(self, array: type[Captured]) -> None:
        self.array = array
        self.instructions: list[Instruction] = []
        self.count = 0

    def place(self) -> Place:
        """Return a new place."""
        self.count += 1
        return Place(self.count - 1)

    def write(self, name: str, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Compute with the values, and record the operation."""
        arguments = tuple(written(x) for x in args)
        keywords = tuple((k, written(x)) for k, x in kwargs.items())
        compute = function or COMPUTE[name]
        value = compute(*[value_of(x) for x in args], **{k: value_of(x) for k, x in kwargs.items()})
        if not hasattr(value, "dtype"):
            raise refusal(f"{name} does not give one array")
        result = self.place()
        where = location_of(frame_outside("optlab", "numpy"))
        self.instructions.append(
            Instruction(
                name, function, arguments, keywords, result, value.shape, value.dtype, where
            )
        )
        return self.array(self, result, value)


def value_of(x: Any) -> Any:
    """Return the value of an argument in this capture."""
    if _is_joined(x):
        return [value_of(part) for part in x]
    return x.value if isinstance(x, Captured) else x


def written(x: Any) -> Any:
    """Return what is recorded for an argument: its place, or the constant itself."""
    if isinstance(x, Captured):
        return x.place
    if _is_joined(x):
        return Joined([written(part) for part in x])
    return x


def _is_joined(x: Any) -> bool:
    """Return whether `x` is a list of arrays, some of them captured, as ``np.stack`` takes."""
    return isinstance(x, (tuple, list)) and any(
        isinstance(part, Captured) or _is_joined(part) for part in x
    )


def refusal(what: str) -> CaptureError:
    """Return the error for what cannot be captured, with the line of the user's code."""
    frame = frame_outside("optlab", "numpy")
    where = location_of(frame)
    return CaptureError(f"{what} ({where}): a plan cannot repeat it.")
