"""Who observes writes to Tensors in place, before they happen, in this thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Here(threading.local):
    observers: tuple[Callable[[Any], None], ...] = ()


_here = _Here()


def about_to_write(t: Any) -> None:
    """Tell the observers of this thread that a Tensor is going to be written to."""
    for observer in _here.observers:
        observer(t)


@contextmanager
def observing(observer: Callable[[Any], None]) -> Iterator[None]:
    """Call `observer` with each Tensor that is going to be written to inside the block."""
    before = _here.observers
    _here.observers = (*before, observer)
    try:
        yield
    finally:
        _here.observers = before
