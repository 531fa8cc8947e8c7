"""Ctrl-C between the steps of a run, so that it can go on to the bit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stopped_between_steps() -> Iterator[list[bool]]:
    """Yield a list that becomes true at the first Ctrl-C; the second one interrupts at once.

    A step that is torn in the middle could not be repeated to the bit. In threads that get no
    signals, nothing changes.
    """
    stop: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)
    if before is None or before is signal.SIG_IGN:  # nobody is to be interrupted
        yield stop
        return

    def stop_soon(number: int, frame: Any) -> None:
        if stop:
            raise KeyboardInterrupt
        stop.append(True)

    signal.signal(signal.SIGINT, stop_soon)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
