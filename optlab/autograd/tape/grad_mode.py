"""Grad mode: whether operations are recorded on the tape, per thread."""

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
    """The error for a replay that differs from the first run.

    Examples
    --------
    >>> issubclass(RecomputationError, RuntimeError)
    True
    """


class _Recomputing(threading.local):
    depth = 0
    #: The number of these replays that write to copies.
    apart = 0
    #: The frames that call `is_recomputing` in a run that will be replayed; None outside of one.
    asked: set[tuple[int, Any]] | None = None


#: The nesting depth of replays in this thread (see `recompute`).
recomputing = _Recomputing()


class grad_mode:
    """A ``with`` block, or a decorator, that switches recording on or off."""

    __slots__ = ("before", "wanted")

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.before: list[bool] = []  # one object may be entered repeatedly

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
    """Disable recording: results need no gradient, and nothing is saved for backward.

    Use it as ``with no_grad():`` or as a decorator, with or without parentheses.

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
    """Enable recording inside a `no_grad` block.

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
    """Return whether operations on Tensors are recorded in this thread.

    Examples
    --------
    >>> import optlab as ol
    >>> with ol.no_grad():
    ...     print(ol.is_grad_enabled())
    False
    """
    return recording.on


def is_recomputing() -> bool:
    """Return whether the running code is a replay by `optlab.recompute`.

    A layer that counts in Python numbers in its forward pass should count in the first run only.
    (A replay writes to copies of Tensors. Tensors that a function writes after calling this have in
    the replay the values that the first run left.)

    Examples
    --------
    >>> import optlab as ol
    >>> replayed = []
    >>> def square(x):
    ...     replayed.append(ol.autograd.is_recomputing())
    ...     return x * x
    >>> x = ol.to_tensor(3.0, requires_grad=True)
    >>> ol.recompute(square, x).backward()
    >>> replayed
    [False, True]
    """
    if recomputing.asked is not None:
        frame = sys._getframe(1)
        recomputing.asked.add((id(frame), frame.f_code))
    return recomputing.depth > 0


def learns() -> bool:
    """Return whether running statistics are updated: not in a replay without side effects."""
    return recomputing.depth == recomputing.apart
