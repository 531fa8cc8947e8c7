"""Exchange of arrays among ranks, in the order of the ranks and with deadlines.

A world is a communicator with the calls of mpi4py: its own, or that of `optlab.parallel.LocalWorld`.
Every rank gets the arrays of all ranks and adds them in the same order, so that simulated ranks
and those of MPI compute the same bits. (``Allreduce`` may add in any order.) Waits of MPI have no
end of their own: here they are polled, and end with an error that names the rank that is missing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optlab.backend.rank_errors import RankError, StalledError

#: Seconds without a sign of life after which a rank counts as stalled, and the most of any wait.
TIMEOUT, LONGEST = 8.0, 300.0
#: What the launchers of MPI say to a process that they start.
_LAUNCHED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_TAG = 7321
_LONGEST_PAUSE = 0.002

#: The communicator of the simulated rank that runs here.
simulated: ContextVar[Any] = ContextVar("optlab simulated rank", default=None)


def default_world() -> Any:
    """Return the world of this program: the simulated rank's, MPI's if it was launched, or None."""
    world = simulated.get()
    if world is not None:
        return world
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None and any(name in os.environ for name in _LAUNCHED):
        with contextlib.suppress(ImportError):
            from mpi4py import MPI as mpi
    return None if mpi is None else mpi.COMM_WORLD


class Peer(NamedTuple):
    """Where a rank runs."""

    host: str
    process: int

    def cpu_time(self) -> float | None:
        """Return the processor time of the process; None if it is not known here."""
        try:
            text = Path(f"/proc/{self.process}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        state, *fields = text.rpartition(")")[2].split()
        return None if state in "ZX" else float(fields[10]) + float(fields[11])

    def has_ended(self) -> bool:
        """Return whether the process is known to have ended."""
        return Path("/proc/self/stat").exists() and self.cpu_time() is None


def here() -> Peer:
    """Return where this rank runs."""
    return Peer(socket.gethostname(), os.getpid())


class Exchange:
    """The exchanges of one user of a world, apart from all other messages.

    The first exchange is a meeting: every rank announces its process.

    Parameters
    ----------
    world
        A communicator.
    purpose : str
        Who exchanges, for messages.
    timeout, longest : float
        Seconds: without a sign of life of a rank that is waited for; of any wait. (A `LocalWorld`
        has its own.)
    """

    def __init__(
        self, world: Any, purpose: str, timeout: float = TIMEOUT, longest: float = LONGEST
    ) -> None:
        missing = [name for name in ("Get_rank", "Get_size", "Isend", "Irecv", "allgather")
                   if not hasattr(world, name)]  # fmt: skip
        if missing:
            raise TypeError(
                f"{purpose} takes a communicator: that of LocalWorld.run, or MPI.COMM_WORLD of "
                f"mpi4py; got {world!r}."
            )
        self.world, self.purpose = world, purpose
        self.timeout, self.longest = timeout, longest
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self.peers: list[Peer] | None = None
        self._own: Any = None

    @property
    def is_local(self) -> bool:
        """Whether the world ends its waits itself."""
        return bool(getattr(self.world, "has_deadlines", False))

    def meet(self) -> None:
        """Let all ranks announce their processes, and get a communicator of their own."""
        if self.peers is not None:
            return
        if self.is_local:
            self._own = self.world.Dup()
            self.peers = [here()] * self.size
            return
        own = np.zeros(256, np.uint8)
        said = f"{here().process} {here().host}".encode()[:256]
        own[: len(said)] = np.frombuffer(said, np.uint8)
        found = self._all_to_all(self.world, own)
        peers = []
        for one in found:
            process, _, host = one.tobytes().rstrip(b"\0").decode(errors="replace").partition(" ")
            peers.append(Peer(host, int(process)))
        self._own = self.world.Dup()  # all are here, so this does not wait
        self.peers = peers

    def name(self, rank: int) -> str:
        """Return the name of a rank, for messages."""
        if self.is_local or self.peers is None:
            return f"rank {rank}"
        peer = self.peers[rank]
        return f"rank {rank} (process {peer.process} on {peer.host})"

    def gather(self, array: Any) -> list[Any]:
        """Return the flat arrays of all ranks, of one size and dtype, in the order of the ranks.

        Raises
        ------
        StalledError, RankError
            If a rank does not answer in time, or has ended; the message names it.
        """
        self.meet()
        if self.size == 1:
            return [array]
        if self.is_local:
            found = np.empty((self.size, array.size), array.dtype)
            self._own.Allgather(array, found)
            return list(found)
        return self._all_to_all(self._own, array)

    def gather_objects(self, obj: Any) -> list[Any]:
        """Return the objects of all ranks; for what is exchanged once, not in every step."""
        import pickle

        data = np.frombuffer(pickle.dumps(obj), np.uint8)
        sizes = [int(one[0]) for one in self.gather(np.array([data.size], np.int64))]
        padded = np.zeros(max(sizes), np.uint8)
        padded[: data.size] = data
        found = self.gather(padded)
        return [pickle.loads(x[:n].tobytes()) for x, n in zip(found, sizes, strict=True)]

    def bcast(self, arrays: list[Any], root: int = 0) -> list[Any]:
        """Return the root's flat arrays, on every rank."""
        self.meet()
        result = []
        for array in arrays:
            got = array.copy()
            if self.is_local:
                self._own.Bcast(got, root)
            elif self.rank == root:
                requests = {r: self._own.Isend(got, r, _TAG) for r in range(self.size) if r != root}
                self._wait(requests)
            else:
                self._wait({root: self._own.Irecv(got, root, _TAG)})
            result.append(got)
        return result

    def _all_to_all(self, world: Any, array: Any) -> list[Any]:
        found = [np.empty_like(array) for _ in range(self.size)]
        found[self.rank] = array
        others = [r for r in range(self.size) if r != self.rank]
        received = {r: world.Irecv(found[r], r, _TAG) for r in others}
        sent = {r: world.Isend(array, r, _TAG) for r in others}
        self._wait(received)
        self._wait(sent)
        return found

    def wait(self, requests: dict[int, Any]) -> None:
        """Wait for a request to or from each of some ranks: objects with mpi4py's ``Test``.

        Raises
        ------
        StalledError, RankError
            If a rank does not answer in time, or has ended; the message names it.
        """
        self._wait(requests)

    def _wait(self, requests: dict[int, Any]) -> None:
        """Wait for requests to or from ranks."""
        begin = time.monotonic()
        pause = 0.0
        watch: dict[int, tuple[float | None, float]] = {}
        next_look = begin + min(0.25, self.timeout / 4)
        left = dict(requests)
        while True:
            left = {rank: one for rank, one in left.items() if not one.Test()}
            if not left:
                return
            now = time.monotonic()
            if now >= next_look:
                next_look = now + min(0.25, self.timeout / 4)
                self._look(left, begin, now, watch)
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause + 1e-5)

    def _look(
        self,
        left: dict[int, Any],
        begin: float,
        now: float,
        watch: dict[int, tuple[float | None, float]],
    ) -> None:
        """Raise if a rank that is waited for has ended, or shows no sign of life."""
        for rank in left:
            peer = None if self.peers is None else self.peers[rank]
            same_host = peer is not None and peer.host == socket.gethostname()
            if peer is not None and same_host and peer.has_ended():
                raise RankError(f"{self.name(rank)} has ended, while {self._waiting()}.", rank)
            used = peer.cpu_time() if peer is not None and same_host else None
            before, since = watch.get(rank, (None, begin))
            if used is not None and used != before:
                since = now if before is not None else begin
            watch[rank] = (used, since)
            if now - since >= self.timeout:
                raise StalledError(
                    f"{self.name(rank)} gave no sign of life for {self.timeout:g} seconds, while "
                    f"{self._waiting()}.",
                    rank,
                )
        if now - begin >= self.longest:
            rank = min(left)
            raise StalledError(
                f"{' and '.join(map(self.name, left))} did not come within {self.longest:g} "
                f"seconds, while {self._waiting()}.",
                rank,
            )

    def _waiting(self) -> str:
        return f"{self.name(self.rank)} waits for it in an exchange of {self.purpose}"


def added(arrays: list[Any]) -> Any:
    """Return the sum of arrays, added one after the other."""
    total = arrays[0].copy()
    for one in arrays[1:]:
        total += one
    return total


def check_apart(exchange: Exchange, parameters: list[Any], name: Callable[[Any], str]) -> None:
    """Check that ranks have parameters of one structure, and that none is another rank's, too.

    Raises
    ------
    ValueError
        If the parameters differ in number, shape or dtype, or one object is shared by two ranks;
        every rank raises it.
    """
    place = here()
    own = [(name(p), tuple(p.shape), str(p.dtype), id(p)) for p in parameters]
    found = exchange.gather_objects((place, own))
    seen: dict[Any, int] = {}
    first_place, first = found[0]
    for rank, (where, listed) in enumerate(found):
        for label, _, _, number in listed:
            other = seen.setdefault((where, number), rank)
            if other != rank:
                raise ValueError(
                    f"{label} belongs to rank {other} and to rank {rank}: each rank has its own "
                    "copy. Build the model inside the function that the world runs, or copy it "
                    "there: copy.deepcopy(model)."
                )
        if [one[1:3] for one in listed] != [one[1:3] for one in first]:
            a = next((x for x, y in zip(first, listed, strict=False) if x[1:3] != y[1:3]), None)
            b = next((y for x, y in zip(first, listed, strict=False) if x[1:3] != y[1:3]), None)
            what = (
                f"{a[0]} is {a[2]} of shape {a[1]} on rank 0, {b[2]} of shape {b[1]} on rank {rank}"
                if a is not None and b is not None
                else f"rank 0 has {len(first)} parameters, rank {rank} has {len(listed)}"
            )
            raise ValueError(f"the ranks have different models: {what}.")
