"""How much memory arrays take, and took at most in between, as their allocators tell.

NumPy tells `tracemalloc` of every array that it makes or frees, and CuPy its memory hooks. So the
highest point inside an operation is seen too, with arrays that nobody else gets to see.
"""

from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import numpy as np


class HighWater:
    """Measures how the memory of arrays grew since the last `mark`, and its highest point since.

    On the host it is what `tracemalloc` counts, Python's own objects among it. It is started if it
    does not run, and stopped in the end. If it runs already, its peak is set back at every mark; in
    the end it is what it would have been: memory of that size is asked for, and not touched.

    On a device it is what CuPy's pool hands out in this thread.
    """

    def __init__(self) -> None:
        self.is_mine = False
        self._base = 0
        self._peak_before = 0
        self._pool: Any = None

    def start(self) -> None:
        """Begin to measure."""
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
        """Give by how many bytes memory has grown since the mark, and by how many at most."""
        now, peak = tracemalloc.get_traced_memory()
        if not self.is_mine:
            self._peak_before = max(self._peak_before, peak)
        grown, highest = now - self._base, peak - self._base
        if self._pool is not None:
            grown, highest = grown + self._pool.grown, highest + self._pool.highest
        return grown, highest

    def was_there(self, owner: Any) -> bool:
        """Say whether an array is older than the measurement; no, where nobody can know."""
        if isinstance(owner, np.ndarray):
            known = self.is_mine and tracemalloc.is_tracing()
            return known and tracemalloc.get_object_traceback(owner) is None
        return self._pool is not None and owner.data.mem.ptr not in self._pool.made

    def of_arrays(self) -> int:
        """Give the bytes of all arrays that the allocators know of, exactly; it takes its time."""
        domain = np.lib.tracemalloc_domain
        traces = tracemalloc.take_snapshot().traces
        on_host = sum(trace.size for trace in traces if trace.domain == domain)
        return on_host + (int(self._pool.used) if self._pool is not None else 0)

    def stop(self) -> None:
        """Stop measuring, and leave `tracemalloc` as it was."""
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
                return  # the system does not promise so much: the peak stays that since the mark


def bytes_of(owner: Any) -> int:
    """Give the bytes that an array has asked its allocator for; 0 where the memory is another's.

    Examples
    --------
    >>> bytes_of(np.zeros((2, 3))), bytes_of(np.frombuffer(b"12345678"))
    (48, 0)
    """
    if isinstance(owner, np.ndarray):
        return owner.nbytes if owner.flags.owndata else 0
    memory = getattr(getattr(owner, "data", None), "mem", None)  # CuPy: a piece of its pool
    return int(getattr(memory, "size", 0))


def _watched_pool() -> Any:
    """Give a hook on CuPy's memory, set in this thread; None where CuPy is not in use."""
    cupy = sys.modules.get("cupy")
    if cupy is None or not cupy.cuda.is_available():
        return None
    pool = _pool_hook(cupy)()
    pool.__enter__()
    return pool


def _pool_hook(cupy: Any) -> Any:
    """Give a class of CuPy's memory hooks that keeps count."""

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
