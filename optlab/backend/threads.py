"""Thread-local values."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class PerThread(threading.local, Generic[T]):
    """One `value` per thread, which begins as given."""

    def __init__(self, value: T) -> None:
        self.value = value
