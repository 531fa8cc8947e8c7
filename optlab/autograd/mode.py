"""Whether operations are being written on the tape, per thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Recording(threading.local):
    on = True


recording = _Recording()


class RecomputationError(RuntimeError):
    """What was run again is not what was run the first time.

    Examples
    --------
    >>> issubclass(RecomputationError, RuntimeError)
    True
    """


class _Recomputing(threading.local):
    depth = 0
    #: Of these runs, those whose writes go to copies.
    apart = 0
    #: Who asks `is_recomputing` in a run that will be made again; None where none is under way.
    asked: set[tuple[int, Any]] | None = None


#: How many runs of what was run before are under way in this thread (see `recompute`).
recomputing = _Recomputing()


class grad_mode:
    """Switch recording on or off for the length of a ``with`` block, or of a decorated function."""

    __slots__ = ("before", "wanted")

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.before: list[bool] = []  # one mode may be entered inside itself

    def __enter__(self) -> None:
        self.before.append(recording.on)
        recording.on = self.wanted

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        recording.on = self.before.pop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function with this mode."""

        @wraps(function)
        def switched(*args: P.args, **kwargs: P.kwargs) -> R:
            with grad_mode(self.wanted):
                return function(*args, **kwargs)

        return switched


def no_grad(function: Callable[..., Any] | None = None) -> Any:
    """Run without recording: results need no gradient, and nothing is kept for backward.

    Use it as ``with no_grad():`` or as a decorator, with or without brackets.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> with ol.no_grad():
    ...     y = w * 2
    >>> y.requires_grad
    False
    """
    mode = grad_mode(False)
    return mode if function is None else mode(function)


def enable_grad(function: Callable[..., Any] | None = None) -> Any:
    """Record again, inside a `no_grad` block.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> with ol.no_grad(), ol.enable_grad():
    ...     y = w * 2
    >>> y.requires_grad
    True
    """
    mode = grad_mode(True)
    return mode if function is None else mode(function)


def is_grad_enabled() -> bool:
    """Say whether operations on Tensors are being recorded in this thread.

    Examples
    --------
    >>> import optlab as ol
    >>> with ol.no_grad():
    ...     print(ol.is_grad_enabled())
    False
    """
    return recording.on


def is_recomputing() -> bool:
    """Say whether what runs now is run again, by `optlab.recompute`.

    What a layer counts in forward in Python's own numbers it should do the first time alone. (What
    it writes to Tensors goes to copies the second time. Tensors that a function writes after it has
    asked are then as the first run left them.)

    Examples
    --------
    >>> import optlab as ol
    >>> said = []
    >>> def square(x):
    ...     said.append(ol.autograd.is_recomputing())
    ...     return x * x
    >>> x = ol.to_tensor(3.0, requires_grad=True)
    >>> ol.recompute(square, x).backward()
    >>> said
    [False, True]
    """
    if recomputing.asked is not None:
        frame = sys._getframe(1)
        recomputing.asked.add((id(frame), frame.f_code))
    return recomputing.depth > 0


def learns() -> bool:
    """Say whether statistics are brought up to date: not where a run has to leave no trace."""
    return recomputing.depth == recomputing.apart
