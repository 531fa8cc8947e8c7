"""Observers of in-place writes to Tensors, per thread; they are called before the write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Here(threading.local):
    observers: tuple[Callable[[Any], None], ...] = ()


_here = _Here()


def about_to_write(t: Any) -> None:
    """Call the observers of this thread with a Tensor that is about to be written to."""
    for observer in _here.observers:
        observer(t)


@contextmanager
def observing(observer: Callable[[Any], None]) -> Iterator[None]:
    """Call `observer` inside the block with each Tensor that is about to be written to."""
    before = _here.observers
    _here.observers = (*before, observer)
    try:
        yield
    finally:
        _here.observers = before
