"""Thread-local values."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class PerThread(threading.local, Generic[T]):
    """One `value` per thread. All threads begin with the given object: give an immutable one."""

    def __init__(self, value: T) -> None:
        self.value = value
