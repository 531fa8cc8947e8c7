"""The high-water mark of the memory of arrays, as their allocators report it.

NumPy reports every array that it allocates or frees to `tracemalloc`, and CuPy to its memory hooks.
So the highest point inside an operation is measured too, with temporaries that nothing else sees.
"""

from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import numpy as np


class HighWater:
    """Measures the growth of the memory of arrays since the last `mark`, and its peak.

    On the host this is what `tracemalloc` counts, Python's own objects included. It is started if
    it is not running, and stopped at the end. If it is running, its peak is reset at every mark and
    restored at the end: memory of that size is allocated and not touched.

    On a device this is what CuPy's pool hands out in this thread.
    """

    def __init__(self) -> None:
        self.is_mine = False
        self._base = 0
        self._peak_before = 0
        self._pool: Any = None

    def start(self) -> None:
        """Start the measurement."""
        self.is_mine = not tracemalloc.is_tracing()
        if self.is_mine:
            tracemalloc.start()
        else:
            self._peak_before = tracemalloc.get_traced_memory()[1]
        self._pool = _watched_pool()
        self.mark()

    def mark(self) -> None:
        """Count from here."""
        tracemalloc.reset_peak()
        self._base = tracemalloc.get_traced_memory()[0]
        if self._pool is not None:
            self._pool.mark()

    def reading(self) -> tuple[int, int]:
        """Return the growth in bytes since the mark, and the highest growth in between."""
        now, peak = tracemalloc.get_traced_memory()
        if not self.is_mine:
            self._peak_before = max(self._peak_before, peak)
        grown, highest = now - self._base, peak - self._base
        if self._pool is not None:
            grown, highest = grown + self._pool.grown, highest + self._pool.highest
        return grown, highest

    def was_there(self, owner: Any) -> bool:
        """Return whether an array is older than the measurement; False if that is unknown."""
        if isinstance(owner, np.ndarray):
            known = self.is_mine and tracemalloc.is_tracing()
            return known and tracemalloc.get_object_traceback(owner) is None
        return self._pool is not None and owner.data.mem.ptr not in self._pool.made

    def of_arrays(self) -> int:
        """Return the exact bytes of all arrays that the allocators know; this is slow."""
        domain = np.lib.tracemalloc_domain
        traces = tracemalloc.take_snapshot().traces
        on_host = sum(trace.size for trace in traces if trace.domain == domain)
        return on_host + (int(self._pool.used) if self._pool is not None else 0)

    def stop(self) -> None:
        """Stop the measurement and leave `tracemalloc` as it was."""
        if self._pool is not None:
            self._pool.__exit__(None, None, None)
        if self.is_mine:
            tracemalloc.stop()
            return
        now, peak = tracemalloc.get_traced_memory()
        missing = max(self._peak_before, peak) - now
        if missing > peak - now:
            try:
                np.empty(missing, np.uint8)
            except MemoryError:
                return  # the system refuses so much: the peak stays the one since the mark


def bytes_of(owner: Any) -> int:
    """Return the bytes that an array allocated itself; 0 if the memory is not its own.

    Examples
    --------
    >>> bytes_of(np.zeros((2, 3))), bytes_of(np.frombuffer(b"12345678"))
    (48, 0)
    """
    if isinstance(owner, np.ndarray):
        return owner.nbytes if owner.flags.owndata else 0
    memory = getattr(getattr(owner, "data", None), "mem", None)  # CuPy: a chunk of its pool
    return int(getattr(memory, "size", 0))


def _watched_pool() -> Any:
    """Return a hook on CuPy's memory, set in this thread; None if CuPy is not in use."""
    cupy = sys.modules.get("cupy")
    if cupy is None or not cupy.cuda.is_available():
        return None
    pool = _pool_hook(cupy)()
    pool.__enter__()
    return pool


def _pool_hook(cupy: Any) -> Any:
    """Return a class of CuPy's memory hooks that counts bytes."""

    class Pool(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "optlab's memory ledger"

        def __init__(self) -> None:
            self.used = cupy.get_default_memory_pool().used_bytes()
            self.made: set[int] = set()
            self.mark()

        def mark(self) -> None:
            self.base = self.highest_use = self.used

        @property
        def grown(self) -> int:
            return int(self.used - self.base)

        @property
        def highest(self) -> int:
            return int(self.highest_use - self.base)

        def malloc_postprocess(self, **what: int) -> None:
            self.used += what["mem_size"]
            self.highest_use = max(self.highest_use, self.used)
            self.made.add(what["mem_ptr"])

        def free_postprocess(self, **what: int) -> None:
            self.used -= what["mem_size"]
            self.made.discard(what["mem_ptr"])

    return Pool
