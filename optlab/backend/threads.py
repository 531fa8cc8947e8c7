"""Values that every thread has for itself."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class PerThread(threading.local, Generic[T]):
    """One `value` per thread, which begins as given.

    Examples
    --------
    >>> depth = PerThread(0)
    >>> depth.value += 1
    >>> other = threading.Thread(target=lambda: print(depth.value))
    >>> other.start(); other.join()
    0
    """

    value: T

    def __init__(self, value: T) -> None:
        self.value = value
