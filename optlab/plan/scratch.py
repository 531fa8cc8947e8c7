"""Scratch arrays: memory of a thread that is used again, block after block.

Block plans are what optimizers step by, so those who keep account of memory are told that these
arrays are of the step.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.backend import events

_local = threading.local()


def scratch(dtypes: Sequence[Any], size: int, purpose: str = "blocks") -> list[Any]:
    """Give scratch arrays of this thread; they are used again by the next for the same purpose."""
    kept: dict[Any, Any] = _local.__dict__.setdefault(purpose, {})
    found = []
    for number, dtype in enumerate(dtypes):
        array = kept.get((number, dtype))
        if array is None or len(array) < size:
            array = kept[number, dtype] = np.empty(size, dtype)
            if events.array_kept.listeners:
                events.array_kept.publish(array, f"scratch of {purpose}", "temporary", "step")
        found.append(array if len(array) == size else array[:size])
    return found
