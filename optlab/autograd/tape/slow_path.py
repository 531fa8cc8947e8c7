"""One flag that guards the slow path of `apply` and of the backward pass.

Save policies, anomaly mode, checks after in-place writes, listeners of single operations and 16-bit
arithmetic are rare. `apply` reads one attribute, ``if slow_path.any``; whatever needs the slow path
enters and leaves it here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from optlab.backend import events


class _SlowPath:
    """Counts of the reasons for the slow path, over all threads.

    Attributes
    ----------
    any : int
        All reasons.
    needs_values : int
        Reasons to keep values of the backward pass: a save policy stores them, anomaly mode reports
        them. A rule must not write over its incoming gradient then.
    written : int
        Arrays that were written to in place through a Tensor.
    """

    __slots__ = ("_reasons", "any", "needs_values", "written")

    def __init__(self) -> None:
        self.any = self.needs_values = self.written = 0
        # `self.any += 1` would lose a count where two threads do it, or a finalizer in between.
        # Appending to a list is one operation.
        self._reasons: dict[str, list[None]] = {"any": [], "needs_values": [], "written": []}

    def enter(self, *, needs_values: bool = False, written: bool = False) -> None:
        """Add one reason."""
        for name in _counted(needs_values, written):
            self._reasons[name].append(None)
        self._renew()

    def leave(self, *, needs_values: bool = False, written: bool = False) -> None:
        """Remove one reason, with the arguments of its `enter`."""
        for name in _counted(needs_values, written):
            self._reasons[name].pop()
        self._renew()

    def _renew(self) -> None:
        """Set the counts; a thread that was overtaken by another sets them again."""
        for name, reasons in self._reasons.items():
            while getattr(self, name) != (count := len(reasons)):
                setattr(self, name, count)


def _counted(needs_values: bool, written: bool) -> tuple[str, ...]:
    names = ("any", "needs_values") if needs_values else ("any",)
    return (*names, "written") if written else names


slow_path = _SlowPath()


def _gate(event: events.Event) -> Callable[[], None]:
    """Return what enters the slow path while an event has listeners, and leaves it then."""
    entered: list[None] = []

    def follow() -> None:
        # A thread that was overtaken by another looks again.
        while bool(entered) != bool(event.listeners):
            if event.listeners:
                entered.append(None)
                slow_path.enter()
                continue
            with suppress(IndexError):
                entered.pop()
                slow_path.leave()

    return follow


for _event in (
    events.operation_starts, events.operation_ran, events.rule_starts, events.values_wanted,
    events.leaf_collects, events.backward_pass_ended,
):  # fmt: skip
    _event.open_by(_gate(_event))
