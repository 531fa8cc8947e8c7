"""One flag that guards the slow path of `apply` and of the backward pass.

Saved-tensor hooks, anomaly mode, checks after in-place writes, listeners of single operations and
16-bit arithmetic are rare. `apply` reads one attribute, ``if slow_path.any``; those who need the
slow path enter and leave it here.
"""

from __future__ import annotations


class _SlowPath:
    """How many need the slow path anywhere in the program; each attribute answers one question.

    Attributes
    ----------
    any : int
        Whether the slow path is needed at all.
    needs_values : int
        Whether values of the backward pass may be read later: a save policy keeps them, anomaly
        mode reports them. A rule must not write over the gradient that arrives then.
    written : int
        Whether the memory of a Tensor was written to in place.
    """

    __slots__ = ("any", "needs_values", "written")

    def __init__(self) -> None:
        self.any = self.needs_values = self.written = 0

    def enter(self, *, needs_values: bool = False, written: bool = False) -> None:
        """Count one more that needs the slow path."""
        self.any += 1
        self.needs_values += needs_values
        self.written += written

    def leave(self, *, needs_values: bool = False, written: bool = False) -> None:
        """Count one less: called with what `enter` was called with."""
        self.any -= 1
        self.needs_values -= needs_values
        self.written -= written


slow_path = _SlowPath()
