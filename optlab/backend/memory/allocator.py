"""Tuning of the C library's allocator for freed memory.

glibc returns every freed array of more than 128 kB to the system and requests a new one for the
next: the system then clears each page on first touch, which takes longer than most arithmetic on
it. But glibc adapts: once a larger block has been freed, it keeps freed blocks up to that size. One
block of 32 MB, which is never written to and so takes no memory, makes it adapt at once; a forward
and backward pass of a transformer block then takes half the time.
"""

from __future__ import annotations

import numpy as np

#: Just below the largest size that glibc adapts to.
_SIZE = 32 * 1024 * 1024 - 64 * 1024


def keep_freed_memory() -> None:
    """Let freed memory be reused: blocks up to 32 MB, up to 64 MB in total.

    Other C libraries ignore this, and so does glibc if the environment sets
    ``MALLOC_MMAP_THRESHOLD_`` or ``MALLOC_TRIM_THRESHOLD_``.

    Examples
    --------
    >>> keep_freed_memory()
    """
    np.empty(_SIZE, np.uint8)
