"""The recorder of a captured call, if this thread runs one (see `optlab.capture`).

The engine asks `here.recorder` where something happens that a plan has to repeat: an operation, a
draw, a write. Nothing is asked of it outside a capture.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Here(threading.local):
    recorder: Any = None


#: What records the call that runs in this thread; None outside of a capture.
here = _Here()


class suspended:
    """A ``with`` block in which nothing is recorded: what it does is one entry of the plan."""

    __slots__ = ("recorder",)

    def __enter__(self) -> None:
        self.recorder, here.recorder = here.recorder, None

    def __exit__(self, *error: object) -> None:
        here.recorder = self.recorder


def effect(function: F) -> F:
    """Make a function that changes state of the engine one entry of a plan.

    A plan calls it again, as it was called; outside of a capture it is the function itself.

    Examples
    --------
    >>> @effect
    ... def greet(name):
    ...     return f"hello {name}"
    >>> greet("you")
    'hello you'
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        recorder = here.recorder
        if recorder is None:
            return function(*args, **kwargs)
        if args:
            refuse_step_hooks(args[0])
        return recorder.effect(function, args, kwargs)

    return run  # type: ignore[return-value]


def refuse_step_hooks(optimizer: Any) -> None:
    """Refuse to capture a step with hooks, which a plan cannot repeat."""
    if getattr(optimizer, "has_step_hooks", False):
        here.recorder.refuse("it takes a step of an optimizer that has step hooks")


def values_of(t: Any) -> Any:
    """Return the array of a Tensor, for functions that read values and return plain arrays.

    In a captured call it is an array that records what is computed from it.
    """
    return t.data if here.recorder is None else here.recorder.traced(t)


def handed_out(array: Any) -> Any:
    """Return a plain array for the user; in a captured call one that records."""
    return array if here.recorder is None else here.recorder.handed_out(array)


def pure(function: F) -> F:
    """Make a function of arrays, which is no operation of the tape, one entry of a plan.

    It returns arrays and facts, such as shapes. The facts of a call that a plan repeats have to be
    those that it was captured with.
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        recorder = here.recorder
        if recorder is None:
            return function(*args, **kwargs)
        return recorder.pure(function, args, kwargs)

    return run  # type: ignore[return-value]


def after_backward(function: F) -> F:
    """Make ``minimize(self, loss, ...)`` an entry of a plan, after the loss went backward."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        recorder = here.recorder
        if recorder is None:
            return function(*args, **kwargs)
        for x in (*args, *kwargs.values()):
            node = getattr(x, "node", None)
            if getattr(node, "order", 0) and not getattr(node, "backward_done", False):
                x.backward()
        return recorder.effect(function, args, kwargs)

    return run  # type: ignore[return-value]


def live(read: F) -> F:
    """Make a method that returns a number one that a plan calls anew."""

    @wraps(read)
    def run(self: Any) -> Any:
        return read(self) if here.recorder is None else here.recorder.number(read, self)

    return run  # type: ignore[return-value]


class LiveCount(int):
    """A whole number that may change from call to call of a captured function, as floats may.

    Other whole numbers choose a plan: they are lengths, axes, modes. A step count is none of these.

    Examples
    --------
    >>> LiveCount(3), LiveCount(3) == 3
    (3, True)
    """

    __slots__ = ()


def is_live(x: Any) -> bool:
    """Return whether something stands for a number that changes from call to call of a plan."""
    return getattr(type(x), "is_call_number", False)


def live_setting(owner: Any, name: str) -> Any:
    """Return an attribute that may change from call to call; a plan reads it anew."""
    recorder = here.recorder
    return getattr(owner, name) if recorder is None else recorder.number(getattr, owner, name)


#: The calls of NumPy of which functions consist, for plans that give each of them its memory.
ELEMENTARY: dict[Any, Callable[..., Any]] = {}


def elementary(function: Any, steps: Callable[..., Any]) -> None:
    """Register the calls of NumPy of which a function consists.

    Parameters
    ----------
    function : callable
        A forward function, or a derivative rule.
    steps : callable
        Takes the arguments of `function`, and yields ``(call, *arguments)``. It is sent the
        result of each, and the last one is the result of the function. It may return at once where
        the arguments have another form.

    Examples
    --------
    >>> import operator
    >>> def scaled(x, a, b):
    ...     return x * a + b
    >>> def steps(x, a, b):
    ...     product = yield operator.mul, x, a
    ...     yield operator.add, product, b
    >>> elementary(scaled, steps)
    """
    ELEMENTARY[function] = steps


#: Functions that copy and check integers, with what returns their bound.
BOUNDED: dict[Any, Callable[..., Any]] = {}


def bounded_by(function: Any, bound: Callable[..., Any]) -> None:
    """Register a function that copies integers, and raises if one is out of bounds.

    Parameters
    ----------
    function : callable
        That `pure` was given.
    bound : callable
        Takes the arguments of `function`, shapes in place of arrays, and by name ``facts``, what it
        found. It returns the number of values that are allowed, from 0 on; None where the function
        does more than to copy and check.
    """
    BOUNDED[function] = bound
