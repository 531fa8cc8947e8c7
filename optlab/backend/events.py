"""Events: how the engine reports what it does, at no cost without listeners.

The engine publishes and does not know its listeners; recorders, ledgers and debuggers subscribe::

    if step_taken.listeners:          # one attribute read when nothing is subscribed
        step_taken.publish(...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[..., None]


class Subscription:
    """One subscription of a listener: `remove` ends it, and so does the end of a ``with`` block.

    Examples
    --------
    >>> rang = Event("the bell rang")
    >>> handle = rang.subscribe(print)
    >>> rang.publish("ding")
    ding
    >>> handle.remove()
    >>> rang.publish("ding")
    """

    __slots__ = ("_event", "_key")

    def __init__(self, event: Event, key: object) -> None:
        self._event, self._key = event, key

    def remove(self) -> None:
        """End the subscription; a second call does nothing."""
        self._event._subscribed.pop(self._key, None)
        self._event._renew()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class _InPlans:
    """The key of a subscription that a captured call can serve."""

    __slots__ = ()


class _Of:
    """The key of a subscription to what one object publishes."""

    __slots__ = ("publisher",)

    def __init__(self, publisher: Any) -> None:
        self.publisher = publisher


class Event:
    """One kind of event in the engine, and its listeners.

    Attributes
    ----------
    name : str
        What happened, in words.
    listeners : tuple of callables
        In the order of their subscription. If empty, publishing can be skipped.
    in_plans : bool
        Whether plans of captured calls publish it.
    eager : tuple of callables
        Those that a captured call cannot serve: while there are some, it runs eagerly.

    Examples
    --------
    >>> rang = Event("the bell rang")
    >>> with rang.subscribed(lambda times: print("heard", times)):
    ...     rang.publish(2)
    heard 2
    >>> rang.listeners
    ()
    """

    __slots__ = ("_audiences", "_gate", "_subscribed", "eager", "in_plans", "listeners", "name")

    def __init__(self, name: str, in_plans: bool = False) -> None:
        self.name, self.in_plans = name, in_plans
        self.listeners: tuple[Listener, ...] = ()
        self.eager: tuple[Listener, ...] = ()
        #: The listeners of each publisher that has some of its own, by its identity, and of others.
        self._audiences: dict[int | None, tuple[Listener, ...]] = {None: ()}
        self._subscribed: dict[object, Listener] = {}  # in order; one listener may be there twice
        self._gate: Callable[[], None] | None = None

    def subscribe(self, listener: Listener, in_plans: bool = False, of: Any = None) -> Subscription:
        """Call `listener` at every publication from now on; return the handle that ends it.

        Parameters
        ----------
        listener : callable
        in_plans : bool
            Whether a plan of `optlab.capture` may publish to it: it reads what it is given at once,
            keeps no array of it, runs no operation of the engine, and follows `call_rehearsed`. A
            plan publishes the events `backward_finished`, `step_finished` and `step_replayed` only.
        of : optional
            Call it only at what this object publishes, such as one optimizer: others do not
            compute for it what nobody reads. It is the first thing that is published.
        """
        if not callable(listener):
            raise TypeError(
                f"a listener is a function; got {listener!r}. Write "
                "event.subscribe(lambda *what: ...)."
            )
        key = _InPlans() if in_plans and self.in_plans else object()
        if of is not None:
            key = _Of(of)
        self._subscribed[key] = listener
        self._renew()
        return Subscription(self, key)

    def unsubscribe(self, listener: Listener) -> None:
        """Remove one subscription of `listener`; ignore a listener that is not subscribed."""
        for key, other in list(self._subscribed.items()):
            if other == listener and self._subscribed.pop(key, None) is not None:
                self._renew()
                break

    def _renew(self) -> None:
        """Set `listeners` to what is subscribed.

        Without a lock, which an interrupt could leave locked: a thread that was overtaken by
        another finds that the listeners are not those that are subscribed, and sets them again.
        """
        while True:
            subscribed = list(self._subscribed.items())
            now = tuple([one for _, one in subscribed])
            eager = tuple([one for key, one in subscribed if type(key) is not _InPlans])
            audiences: dict[int | None, tuple[Listener, ...]] = {None: now}
            owners = {id(key.publisher) for key, _ in subscribed if type(key) is _Of}
            for owner in (None, *owners) if owners else ():
                audiences[owner] = tuple([
                    one for key, one in subscribed
                    if type(key) is not _Of or id(key.publisher) == owner
                ])  # fmt: skip
            if (self.listeners, self.eager, self._audiences) == (now, eager, audiences):
                break
            self.listeners, self.eager, self._audiences = now, eager, audiences
        if self._gate is not None:
            self._gate()

    def open_by(self, gate: Callable[[], None]) -> None:
        """Call `gate` now, and whenever the listeners have changed.

        It is for who publishes only while it knows that somebody listens.

        Examples
        --------
        >>> rang = Event("a bell rang")
        >>> rang.open_by(lambda: print(len(rang.listeners), "listening"))
        0 listening
        >>> handle = rang.subscribe(print)
        1 listening
        """
        self._gate = gate
        gate()

    def audience_of(self, publisher: Any) -> tuple[Listener, ...]:
        """Return the listeners to what an object publishes.

        Examples
        --------
        >>> rang = Event("a bell rang")
        >>> front, back = object(), object()
        >>> handle = rang.subscribe(print, of=front)
        >>> rang.audience_of(front) == (print,), rang.audience_of(back)
        (True, ())
        """
        audiences = self._audiences
        return audiences.get(id(publisher)) or audiences[None]

    @contextmanager
    def subscribed(self, listener: Listener, of: Any = None) -> Iterator[None]:
        """Subscribe for the duration of a ``with`` block."""
        self.subscribe(listener, of=of)
        try:
            yield
        finally:
            self.unsubscribe(listener)

    def publish(self, *what: Any) -> None:
        """Call every listener, but those to what another object publishes."""
        several = len(self._audiences) > 1
        for listener in self.audience_of(what[0]) if several else self.listeners:
            listener(*what)

    def __repr__(self) -> str:
        return f"<Event {self.name!r}, {len(self.listeners)} listening>"


#: An operation ran and was recorded on the tape: ``publish(node)``.
operation_recorded = Event("an operation was recorded")

# The next six are published only while `optlab.autograd.tape.slow_path` counts a reason, so that an
# operation needs no further check for them; a listener is one.

#: An operation is about to run: ``publish(name, inputs)``, Tensors among the inputs.
operation_starts = Event("an operation starts")

#: It ran, recorded or not: ``publish(name, inputs, outputs)``, an array or a tuple of arrays.
operation_ran = Event("an operation ran")

#: The backward pass is about to run the rules of a node: ``publish(node, g, saved, pending)`` with
#: the incoming gradient, the saved values (recomputed if they had been dropped) and all pending
#: gradients by node, those from the rules of the previous node included.
rule_starts = Event("the rules of a node start")

#: The backward pass is about to fetch values that a node does not hold itself and that may have to
#: be recomputed: ``publish(node, g, pending)``, before its rules start.
values_wanted = Event("the values of a node are wanted")

#: A leaf is about to accumulate a gradient while others are pending, those from the previous rules
#: included: ``publish(leaf)``. Hooks, and a sum with a Tensor, run operations next.
leaf_collects = Event("a leaf collects on the way")

#: A backward pass is over: ``publish(g, saved, pending)``, as above; all gradients have arrived.
backward_pass_ended = Event("a backward pass ended")

#: An operation was recomputed for the backward pass: ``publish(result, array)``, see
#: `optlab.autograd.remat.tensors`.
operation_recomputed = Event("an operation ran again")

#: A backward pass that adds to the gradients of leaves is about to start: ``publish()``.
backward_starts = Event("backward starts")

#: A backward pass is finished: ``publish(value, leaves)`` with the array that it started from and
#: the leaves that received a gradient.
backward_finished = Event("backward finished", in_plans=True)

#: A checkpointed chain has stored the input of a layer: ``publish(keeper, arrays)``. They stay for
#: the backward pass until `keeper` is freed.
input_stored = Event("the input of a layer was stored")

#: An optimizer updated parameters: ``publish(optimizer, updates)``, see `optlab.optimizer.Update`.
#: Who listens to one optimizer alone subscribes with ``of=optimizer``: others keep to their short
#: ways, as nobody reads the terms of their rules.
step_taken = Event("an optimizer took a step")

#: An optimizer took a step by calls on fixed arrays: ``publish(optimizer, shown)``, see
#: `optlab.optimizer.step.bound`. The next step overwrites the arrays. Who listens to `step_taken`
#: may listen to this, too: where all who do so do, such a step publishes this in its place, and an
#: optimizer of few parameters keeps its short way.
step_shown = Event("an optimizer showed a step")

#: The same without the updates: ``publish(optimizer)``. Listeners to this event do not make an
#: optimizer compute its terms.
step_finished = Event("an optimizer finished a step", in_plans=True)

#: A plan replayed a backward pass and the step after it: ``publish(value, leaves, optimizer,
#: show)``, where ``show()`` gives leaves the gradients of the step. Who listens to the ends of both
#: in plans may listen to this in their place: one call instead of two.
step_replayed = Event("a plan replayed a step", in_plans=True)

#: A captured call is rehearsed: ``publish(what)``. It "begins", "rests" (what is published until
#: the next of these is no part of it), and is "undone" or "stands".
call_rehearsed = Event("a captured call is rehearsed", in_plans=True)

#: Gradients were cleared: ``publish(parameters)``.
gradients_cleared = Event("gradients were cleared")

#: An array was created that stays: ``publish(array, name, role, phase)``, such as a reused table,
#: or what an optimizer holds while it calls a closure; `role` as in `optlab.backend.memory.ledger`,
#: `phase` is "step" if an optimizer created it, and empty if it belongs to what runs now.
array_kept = Event("an array stays")


def subscribe(event: str | Event, listener: Listener, of: Any = None) -> Subscription:
    """Call `listener` at every publication of an event from now on (``ol.events.subscribe``).

    Parameters
    ----------
    event : str or Event
        An event, or its name here: ``"step_taken"``, ``"backward_finished"``, ...
    listener : callable
        Takes what the event publishes. It must not change what it is given.
    of : optional
        Listen to this object alone, such as one optimizer: of ``"step_taken"`` others compute no
        terms then.

    Returns
    -------
    Subscription
        Its ``remove()``, or the end of a ``with`` block, ends the subscription.

    Raises
    ------
    ValueError
        If there is no event of that name; the message lists the names.
    TypeError
        If `event` is neither a name nor an event, or `listener` cannot be called.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0], name="w")
    >>> losses = []
    >>> with ol.events.subscribe("backward_finished", lambda value, leaves: losses.append(value)):
    ...     (w * w).sum().backward()
    >>> float(losses[0])
    9.0
    """
    if isinstance(event, str):
        known = {name: x for name, x in globals().items() if isinstance(x, Event)}
        if event not in known:
            raise ValueError(f"there is no event {event!r}; there are {', '.join(known)}.")
        event = known[event]
    if not isinstance(event, Event):
        raise TypeError(f"subscribe takes an event or its name; got {type(event).__name__}.")
    return event.subscribe(listener, of=of)
