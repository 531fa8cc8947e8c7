"""Observers of in-place writes to Tensors, per thread; they are called before the write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from optlab.backend.threads import PerThread

_observers: PerThread[tuple[Callable[[Any], None], ...]] = PerThread(())


def about_to_write(t: Any) -> None:
    """Call the observers of this thread with a Tensor that is about to be written to."""
    for observer in _observers.value:
        observer(t)


@contextmanager
def observing(observer: Callable[[Any], None]) -> Iterator[None]:
    """Call `observer` inside the block with each Tensor that is about to be written to."""
    before = _observers.value
    _observers.value = (*before, observer)
    try:
        yield
    finally:
        _observers.value = before
