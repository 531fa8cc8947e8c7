"""Events: how the engine tells what it does, at no cost while nobody listens.

The engine publishes and never asks who is there; recorders, ledgers and debuggers subscribe::

    if step_taken.listeners:          # one attribute read when nobody subscribed
        step_taken.publish(...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[..., None]


class Event:
    """One kind of thing that the engine does, and those who want to hear of it.

    Attributes
    ----------
    name : str
        What happened, in words.
    listeners : tuple of callables
        Called in the order of their subscription. Empty means that publishing can be skipped.

    Examples
    --------
    >>> rang = Event("the bell rang")
    >>> with rang.subscribed(lambda times: print("heard", times)):
    ...     rang.publish(2)
    heard 2
    >>> rang.listeners
    ()
    """

    __slots__ = ("listeners", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.listeners: tuple[Listener, ...] = ()

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` at every publication from now on."""
        self.listeners = (*self.listeners, listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Take back one subscription of `listener`; one that is not there is ignored."""
        remaining = list(self.listeners)
        if listener in remaining:
            remaining.remove(listener)
        self.listeners = tuple(remaining)

    @contextmanager
    def subscribed(self, listener: Listener) -> Iterator[None]:
        """Subscribe for the length of a ``with`` block."""
        self.subscribe(listener)
        try:
            yield
        finally:
            self.unsubscribe(listener)

    def publish(self, *what: Any) -> None:
        """Tell every listener."""
        for listener in self.listeners:
            listener(*what)

    def __repr__(self) -> str:
        return f"<Event {self.name!r}, {len(self.listeners)} listening>"


#: An operation ran and was put on the tape: ``publish(node)``.
operation_recorded = Event("an operation was recorded")

#: An operation ran again for backward: ``publish(piece, array)``, see `optlab.autograd.pieces`.
operation_recomputed = Event("an operation ran again")

#: Gradients have been propagated: ``publish(value, leaves)`` with the array that backward started
#: from and the leaves that received a gradient.
backward_finished = Event("backward finished")

#: An optimizer updated parameters: ``publish(optimizer, updates)``, see `optlab.optimizer.Update`.
step_taken = Event("an optimizer took a step")
