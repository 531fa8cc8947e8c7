"""How large the blocks are in which block plans run."""

from __future__ import annotations

import os

#: Elements of a block. For Adam in float32, calls cost less than memory does from 64 K on.
BLOCK = 1 << 16
#: From so many elements on a second thread pays.
LARGE = 8 * BLOCK


def cores() -> int:
    """Give the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
