"""The modes of a thread, given to the threads that it starts."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from optlab.autograd.tape.anomaly_mode import depth as anomaly_depth
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.half_precision import halves
from optlab.backend import random


class Modes:
    """What a thread has switched on: recording, auto_cast, anomaly mode, its random numbers.

    Each thread that runs `inside` draws as a program would that continued from here: all of them
    draw the same numbers, and none changes those of the thread that started them.
    """

    def __init__(self) -> None:
        self.recording = recording.on
        self.policy = halves.policy
        self.anomaly = anomaly_depth.value
        random.current_stream()  # seeded now, so that all ranks have one seed
        self.place = random.bookmark()

    def context(self) -> Any:
        """Return a copy of this thread's context variables, for one thread."""
        return copy_context()

    def inside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function with these modes, in a thread that ends with it."""
        recording.on = self.recording
        halves.policy = self.policy
        anomaly_depth.value = self.anomaly
        with random.replayed(self.place):
            return function(*args, **kwargs)
