"""A stand-in for `cupyx.distributed.NCCLBackend` and CuPy's events, for ranks that are threads.

Its calls have the signatures of the real ones (tests/test_cupy_wheel.py compares them) and refuse
what those refuse: NumPy's arrays, dtypes that NCCL lacks, arrays that are not contiguous. As on a
GPU, a call returns at once, and its result is there when an event behind it is done.
"""

from __future__ import annotations

import threading
from typing import Any

from tests.guarded import GuardedArray

#: What NCCL can move: cupyx.distributed._nccl_comm._nccl_dtypes.
DTYPES = "bBiIlLqQefdFD"


class Cluster:
    """What the GPUs of some ranks have in common."""

    def __init__(self, size: int, missing: int | None = None) -> None:
        self.size, self.missing = size, missing
        self.lock = threading.Lock()
        #: What the ranks gave to each call, by its number.
        self.given: dict[int, dict[int, Any]] = {}
        #: The bytes that each rank put into each of its calls.
        self.bytes_of: list[list[tuple[str, int]]] = [[] for _ in range(size)]
        self.aborted: list[int] = []

    def backend(self, rank: int) -> NCCLBackend:
        made = NCCLBackend(self.size, rank, use_mpi=True)
        made.cluster, made._comm = self, _Communicator(self, rank)
        return made


class _Communicator:
    def __init__(self, cluster: Cluster, rank: int) -> None:
        self.cluster, self.rank = cluster, rank

    def abort(self) -> None:
        self.cluster.aborted.append(self.rank)


class Stream(threading.local):
    """What a thread's GPU still has to do."""

    def __init__(self) -> None:
        self.work: list[Any] = []


STREAM = Stream()


class Event:
    """``cupy.cuda.Event``: whether the work before it has been done."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.before: list[Any] | None = None

    def record(self, stream: Any = None) -> None:
        self.before = list(STREAM.work)

    @property
    def done(self) -> bool:
        assert self.before is not None, "the event was not recorded"
        while self.before and self.before[0]():
            STREAM.work.remove(self.before.pop(0))
        return not self.before


class NCCLBackend:
    """``cupyx.distributed.NCCLBackend``, of which optlab uses these calls."""

    cluster: Cluster
    _comm: _Communicator

    def __init__(
        self, n_devices: int, rank: int, host: str = "127.0.0.1", port: int = 13333,
        use_mpi: bool = False,
    ) -> None:  # fmt: skip
        self.rank, self.calls = rank, 0

    def all_gather(self, in_array: Any, out_array: Any, count: int, stream: Any = None) -> None:
        assert count == in_array.size
        assert out_array.size == count * self.cluster.size

        def finish(found: dict[int, Any]) -> None:
            for rank, one in found.items():
                out_array.hidden[rank * count : (rank + 1) * count] = one

        self._put("all_gather", in_array, finish, out_array)

    def broadcast(self, in_out_array: Any, root: int = 0, stream: Any = None) -> None:
        def finish(found: dict[int, Any]) -> None:
            in_out_array.hidden[...] = found[root]

        self._put("broadcast", in_out_array, finish)

    def _put(self, name: str, array: Any, finish: Any, *more: Any) -> None:
        for one in (array, *more):
            assert type(one) is GuardedArray, "NCCL takes arrays of a GPU"
            assert one.flags.c_contiguous
            if one.dtype.char not in DTYPES:
                raise TypeError(f"Unknown dtype {one.dtype} for NCCL")
        cluster, number = self.cluster, self.calls
        self.calls += 1
        cluster.bytes_of[self.rank].append((name, array.nbytes))
        with cluster.lock:
            found = cluster.given.setdefault(number, {})
            if self.rank != cluster.missing:
                found[self.rank] = (name, array.hidden.copy())

        def done() -> bool:
            if len(found) < cluster.size:
                return False
            assert {called for called, _ in found.values()} == {name}
            finish({rank: one for rank, (_, one) in sorted(found.items())})
            return True

        STREAM.work.append(done)
