"""The documented path of `optlab.autograd.checkpoint.schedules.schedule`."""

from optlab.autograd.checkpoint.schedules.protocol import State
from optlab.autograd.checkpoint.schedules.schedule import Moment, Schedule

__all__ = ["Moment", "Schedule", "State"]
