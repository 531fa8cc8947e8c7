"""The documented path of `optlab.autograd.checkpoint.schedules.actions`."""

from optlab.autograd.checkpoint.schedules.actions import (
    Advance,
    Back,
    Free,
    Record,
    Restore,
    Snapshot,
)

__all__ = ["Advance", "Back", "Free", "Record", "Restore", "Snapshot"]
