"""One flag that guards the slow path of `apply` and of the backward pass.

Save policies, anomaly mode, checks after in-place writes, listeners of single operations and 16-bit
arithmetic are rare. `apply` reads one attribute, ``if slow_path.any``; whatever needs the slow path
enters and leaves it here.
"""

from __future__ import annotations


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

    __slots__ = ("any", "needs_values", "written")

    def __init__(self) -> None:
        self.any = self.needs_values = self.written = 0

    def enter(self, *, needs_values: bool = False, written: bool = False) -> None:
        """Add one reason."""
        self.any += 1
        self.needs_values += needs_values
        self.written += written

    def leave(self, *, needs_values: bool = False, written: bool = False) -> None:
        """Remove one reason, with the arguments of its `enter`."""
        self.any -= 1
        self.needs_values -= needs_values
        self.written -= written


slow_path = _SlowPath()
