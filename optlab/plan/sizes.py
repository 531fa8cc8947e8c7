"""Block sizes of block plans."""

from __future__ import annotations

import os

#: Elements of a block: from 128 K on, calls cost less than memory traffic (Adam, two threads).
BLOCK = 1 << 17
#: From this many elements on a second thread pays off.
LARGE = 4 * BLOCK


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
