"""Scratch arrays: memory of a thread that is reused, block after block.

Optimizer steps run block plans, so memory ledgers are told that these arrays belong to the step.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.backend import events

_local = threading.local()


def scratch(dtypes: Sequence[Any], size: int, purpose: str = "blocks") -> list[Any]:
    """Return scratch arrays of this thread; the next call for the same purpose reuses them."""
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


def noted(purpose: str) -> dict[Any, Any]:
    """Return a dictionary of this thread, for what belongs to its scratch arrays: views of them.

    Examples
    --------
    >>> noted("an example")["halves"] = 2
    >>> noted("an example")
    {'halves': 2}
    """
    kept: dict[Any, Any] = _local.__dict__.setdefault(f"views, {purpose}", {})
    return kept


def give_up() -> None:
    """Leave the scratch arrays of this thread to the work that an exception has interrupted."""
    _local.__dict__.clear()
