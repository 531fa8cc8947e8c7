"""The documented path of `optlab.autograd.checkpoint.schedules.builders`."""

from optlab.autograd.checkpoint.schedules.builders import chosen, in_segments, plain, revolve

__all__ = ["chosen", "in_segments", "plain", "revolve"]
