"""Steps of which the loss, the rate and the time alone are recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter as _clock
from typing import Any, Protocol

from optlab.optimizer import Optimizer
from optlab.trace.recordings.pending import PendingSteps

_NAN = math.nan


class Listens(Protocol):
    """What takes the events that need more."""

    def on_backward(self, value: Any, leaves: Sequence[Any]) -> None:
        """Take a backward pass."""

    def on_finished(self, optimizer: Any) -> None:
        """Take a step."""

    def take_live(self, show: Callable[[], None] | None = None) -> None:
        """Observe arrays after a step of which everything else is kept, or before the next one.

        `show` gives leaves their gradients first, if that was not done.
        """


class _Nobody:
    """Takes events after the end of a recording."""

    def on_backward(self, value: Any, leaves: Sequence[Any]) -> None:
        """Do nothing."""

    def on_finished(self, optimizer: Any) -> None:
        """Do nothing."""

    def take_live(self, show: Callable[[], None] | None = None) -> None:
        """Do nothing."""


_NOBODY = _Nobody()


class PlainSteps:
    """Takes backward passes and steps in the shortest way, where nothing else is to be done.

    A captured step of a small network takes 40 us, of which a recording may take 2. So this does
    what can be done without a call in Python, and knows for how many steps that is enough.

    Attributes
    ----------
    left : int or float
        So many of the next steps are plain; 0 hands every event on.
    live : bool
        Whether of others nothing but their arrays is observed: they are taken here, too, and the
        listener is told by `take_live`.
    loss : float or None
        The loss of the backward passes since the last step.
    leaf : Leaf or None
        The first leaf of the last backward pass that reached a parameter of the optimizer.
    reached : list of Leaf or None
        The leaves of the last replay, a list of its plan: with them come a loss of one number, and
        a step of the optimizer.
    pinned : PinnedRows or None
        Takes some of the steps whose arrays are observed.
    skipped : int
        The steps that ``not_finite="skip"`` has left out so far.
    """

    __slots__ = (
        "_append_loss", "_append_rate", "_append_time", "_group", "_listener", "_optimizer",
        "_reads_rate", "leaf", "left", "live", "loss", "pinned", "reached", "skipped",
    )  # fmt: skip

    def __init__(self, optimizer: Any, pending: PendingSteps, listener: Listens) -> None:
        self.left: float = 0
        self.live = False
        self.loss: float | None = None
        self.leaf: Any = None
        self.reached: Any = None
        self.pinned: Any = None
        self.skipped = optimizer.skipped
        self._optimizer = optimizer
        self._listener: Listens = listener
        self._group = optimizer.groups[0]
        #: Whether the rate is a setting where there is no schedule.
        self._reads_rate = type(optimizer).get_lr is Optimizer.get_lr
        self._append_loss, self._append_rate = pending.losses.append, pending.rates.append
        self._append_time = pending.times.append

    def release(self) -> None:
        """Forget who takes the other events: a circle of references would keep the trace."""
        self._listener, self.left, self.live = _NOBODY, 0, False
        self.pinned = self.reached = None

    def rate(self) -> float:
        """Return the rate of the first group."""
        optimizer = self._optimizer
        if self._reads_rate and optimizer.schedule is None:
            return optimizer.settings["learning_rate"] * self._group.multiplier  # type: ignore[no-any-return]
        return optimizer.get_lr() * self._group.multiplier  # type: ignore[no-any-return]

    def take(self) -> None:
        """Keep loss, rate and time of a step."""
        loss, self.loss = self.loss, None
        self._append_loss(_NAN if loss is None else loss)
        self._append_rate(self.rate())
        self._append_time(_clock())

    def on_backward(self, value: Any, leaves: Sequence[Any]) -> None:
        """Take a backward pass."""
        if (
            (self.left or self.live)
            and self.loss is None
            and leaves
            and leaves[0] is self.leaf
            and value is not None
            and not value.ndim
        ):
            self.loss = float(value)
        else:
            self._listener.on_backward(value, leaves)

    def on_finished(self, optimizer: Any) -> None:
        """Take a step."""
        if (
            (self.left or self.live)
            and optimizer is self._optimizer
            and optimizer.skipped == self.skipped
        ):
            loss, self.loss = self.loss, None  # as `take` does, without its call
            self._append_loss(_NAN if loss is None else loss)
            if self._reads_rate and optimizer.schedule is None:
                rate = optimizer.settings["learning_rate"] * self._group.multiplier
            else:
                rate = self.rate()
            self._append_rate(rate)
            self._append_time(_clock())
            if self.left:
                self.left -= 1
                return
            pinned = self.pinned
            if pinned is None or not pinned.left or not pinned.take(self):
                self._listener.take_live()
        else:
            self._listener.on_finished(optimizer)

    def on_replay(
        self, value: Any, leaves: Sequence[Any], optimizer: Any, show: Callable[[], None]
    ) -> None:
        """Take a backward pass and a step that a plan has replayed."""
        if (
            leaves is self.reached
            and (self.left or self.live)
            and self.loss is None
            and optimizer.schedule is None
            and optimizer.skipped == self.skipped
        ):
            self._append_loss(value)  # as `take` does, without its call
            self._append_rate(optimizer.settings["learning_rate"] * self._group.multiplier)
            self._append_time(_clock())
            if self.left:
                self.left -= 1
                return
            pinned = self.pinned
            if pinned is None or not pinned.left or not pinned.take(self):
                self._listener.take_live(show)
            return
        self._listener.on_backward(value, leaves)
        show()
        self._listener.on_finished(optimizer)
        if (
            optimizer is self._optimizer
            and leaves[0] is self.leaf
            and value is not None
            and not value.ndim
            and self._reads_rate
        ):
            self.reached = leaves
