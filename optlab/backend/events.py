"""Events: how the engine tells what it does, at no cost while nobody listens.

The engine publishes and never asks who is there; recorders, ledgers and debuggers subscribe::

    if step_taken.listeners:          # one attribute read when nobody subscribed
        step_taken.publish(...)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[..., None]

#: Subscriptions of several threads are taken one after the other.
_lock = threading.Lock()


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
        with _lock:
            self.listeners = (*self.listeners, listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Take back one subscription of `listener`; one that is not there is ignored."""
        with _lock:
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

# The next six are told only while `optlab.autograd.extras` counts somebody who listens, so that an
# operation asks no question more for them.

#: An operation is about to run: ``publish(name, inputs)``, Tensors among the inputs.
operation_starts = Event("an operation starts")

#: It ran, recorded or not: ``publish(name, inputs, outputs)``; an array, or a tuple of arrays.
operation_ran = Event("an operation ran")

#: Backward is about to run the derivative rules of a node: ``publish(node, g, saved, pending)``
#: with the gradient that arrived, the values that the rules read (brought back, if they had been
#: dropped) and all gradients on their way, by the nodes that they are for. What the rules of the
#: node before gave is among these.
rule_starts = Event("the rules of a node start")

#: Backward is about to ask for values that a node does not hold itself, and that may have to be
#: computed again: ``publish(node, g, pending)``, before its rules start.
values_wanted = Event("the values of a node are wanted")

#: A leaf is about to collect a gradient while others are on their way: ``publish(leaf)``. What the
#: rules before gave is among those yet; hooks, and a sum with a Tensor, run operations next.
leaf_collects = Event("a leaf collects on the way")

#: A walk back is over: ``publish(g, saved, pending)``, as before; what is pending has arrived.
backward_pass_ended = Event("a backward pass ended")

#: An operation ran again for backward: ``publish(piece, array)``, see `optlab.autograd.pieces`.
operation_recomputed = Event("an operation ran again")

#: Gradients have been propagated: ``publish(value, leaves)`` with the array that backward started
#: from and the leaves that received a gradient.
backward_finished = Event("backward finished")

#: A chain of layers that run again has stored the input of one: ``publish(keeper, arrays)``. They
#: wait for backward until `keeper` is gone.
input_stored = Event("the input of a layer was stored")

#: An optimizer updated parameters: ``publish(optimizer, updates)``, see `optlab.optimizer.Update`.
step_taken = Event("an optimizer took a step")

#: The same for those who only want to know that it is done: ``publish(optimizer)``. Who listens to
#: this does not make an optimizer compute its terms.
step_finished = Event("an optimizer finished a step")

#: Gradients were cleared: ``publish(parameters)``.
gradients_cleared = Event("gradients were cleared")

#: An array was made that stays: ``publish(array, name, role, phase)``, such as a table that is used
#: again, or what an optimizer holds while it calls a closure; `role` as in `optlab.backend.ledger`,
#: `phase` is "step" where an optimizer made it, empty where it is of what runs now.
array_kept = Event("an array stays")
