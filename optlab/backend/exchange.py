"""Exchange of arrays among ranks, in the order of the ranks and with deadlines.

A world is a communicator with the calls of mpi4py: its own, or that of
`optlab.parallel.LocalWorld`. Every rank gets the arrays of all ranks and adds them in the same
order, so that simulated ranks and those of MPI compute the same bits. (``Allreduce`` may add in
any order.) `optlab.parallel.nccl_world` adds two calls to MPI's communicator, by which arrays of
GPUs are gathered and broadcast from where they are. Waits of MPI have no end of their own: here
they are polled, and end with an error that names the rank that is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from optlab.backend.arrays import is_on_device, zeros_beside
from optlab.backend.rank_errors import RankError, StalledError

#: Seconds without a sign of life after which a rank counts as stalled, and the most of any wait.
TIMEOUT, LONGEST = 7.0, 300.0
#: What the launchers of MPI say to a process that they start.
_LAUNCHED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
#: Where ranks announce themselves to `optlab.parallel.launch`: the name of a folder.
FOLDER = "OPTLAB_RANKS"
_TAG = 7321
_LONGEST_PAUSE = 0.002
#: The name that Linux shows of a process whose program is done, while MPI still waits for others.
_ENDED = "optlab-ended"

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

    def signs(self) -> tuple[float, ...] | None:
        """Return what changes while the process computes; None if it is not known here.

        The processor time is counted in hundredths of a second, less than a rank that looks for
        messages now and then uses in seconds on a busy machine; the nanoseconds of its main thread
        stand beside it where the system tells them.
        """
        place = Path(f"/proc/{self.process}")
        try:
            text = (place / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        before, _, rest = text.rpartition(")")
        state, *fields = rest.split()
        if state in "ZX" or before.endswith(f"({_ENDED}"):
            return None
        nanoseconds = 0.0
        with contextlib.suppress(OSError, ValueError, IndexError):
            nanoseconds = float((place / "schedstat").read_text(encoding="ascii").split()[0])
        return float(fields[10]), float(fields[11]), nanoseconds

    def has_ended(self) -> bool:
        """Return whether the process, or the program that it ran, is known to have ended."""
        return Path("/proc/self/stat").exists() and self.signs() is None


class _LastWord:
    """Lets the other ranks on this host see that the program of this process is done.

    MPI ends after Python does, and waits for the other ranks to come to their ends: one of them
    that waits for this one would take it for stalled. This object says it when Python takes the
    modules apart, which comes after all functions that are registered for the end, in whatever
    order: they may still exchange.
    """

    def __del__(
        self,
        name: bytes = _ENDED.encode(),
        opened: Any = os.open,
        to_write: int = os.O_WRONLY,
        write: Any = os.write,
    ) -> None:
        # What it calls is in the signature, as the modules may be cleared: contextlib, too.
        try:  # noqa: SIM105
            write(opened("/proc/self/comm", to_write), name)
        except OSError:
            pass


#: Of a process that has met other ranks.
_last_word: _LastWord | None = None


def launched_rank() -> int | None:
    """Return the rank of this process as its launcher has said it, before MPI begins."""
    for name in _LAUNCHED:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def launched_peers(own: int, ranks: list[int]) -> list[Peer | None]:
    """Return where ranks of the whole world run, for those launched on this host; else None.

    They are known before they say anything: from the launcher's folder, or as children of one
    parent with their ranks in their environments. `own` is this process's rank.
    """
    found: dict[int, Peer] = {}
    if launched_rank() != own or not Path("/proc/self/stat").exists():
        return [None] * len(ranks)
    host = socket.gethostname()
    if folder := os.environ.get(FOLDER):
        for rank in ranks:
            with contextlib.suppress(OSError, ValueError, KeyError):
                text = (Path(folder) / f"rank-{rank}.json").read_text(encoding="utf-8")
                found[rank] = Peer(host, json.loads(text)["process"])
        return [found.get(rank) for rank in ranks]
    parent = str(os.getppid())
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = (place / "stat").read_text(encoding="ascii", errors="replace")
            if stat.rpartition(")")[2].split()[1] != parent:
                continue
            for one in (place / "environ").read_bytes().split(b"\0"):
                key, _, value = one.decode(errors="replace").partition("=")
                if key in _LAUNCHED:
                    found[int(value)] = Peer(host, int(place.name))
    return [found.get(rank) for rank in ranks]


def _world_ranks(world: Any, size: int) -> list[int]:
    """Return which ranks of the whole world those of a communicator are."""
    found = getattr(world, "world_ranks", None)  # of a `LocalWorld`
    mpi = sys.modules.get("mpi4py.MPI")
    if found is None and mpi is not None and hasattr(world, "Get_group"):
        found = world.Get_group().Translate_ranks(group=mpi.COMM_WORLD.Get_group())
    return list(range(size)) if found is None or min(found) < 0 else list(found)


def here() -> Peer:
    """Return where this rank runs."""
    return Peer(socket.gethostname(), os.getpid())


class Silence:
    """Seconds for which what changes while something works (its processor time) has not changed.

    They are counted from look to look, and one step of that count has a limit: what the looking
    process has missed by itself, stopped or without a processor on a busy machine, says nothing of
    the one that it looks at.

    Parameters
    ----------
    most : float
        Seconds that count between two looks: twice their usual distance is a good value.

    Examples
    --------
    >>> silence = Silence(most=1.0)
    >>> [silence.look("at work", now) for now in (0.0, 0.6, 100.6)]
    [0.0, 0.6, 1.6]
    >>> silence.look("at work again", 100.8)
    0.0
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self.signs: Any = None
        self.seconds = 0.0
        self._at: float | None = None

    def look(self, signs: Any, now: float) -> float:
        """Compare signs of life with those of the last look; return the seconds of silence."""
        if self._at is None or signs != self.signs:
            self.seconds = 0.0
        else:
            self.seconds += min(now - self._at, self.most)
        self.signs, self._at = signs, now
        return self.seconds

    def breaks(self) -> None:
        """Begin to count again: it has been seen at work in another way."""
        self.seconds, self._at = 0.0, None


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
        #: The ranks of the whole world, by which messages and errors name those of `world`.
        self.world_ranks = _world_ranks(world, self.size)
        #: Where the ranks run, as far as it is known; all is known after the meeting.
        self.peers: list[Peer | None] = [None] * self.size
        self._own: Any = None
        #: Moves arrays from GPU to GPU: the world of `optlab.parallel.nccl_world`; None for others.
        self._device = world if self.size > 1 and hasattr(world, "gather_on_device") else None

    def moves(self, array: Any) -> bool:
        """Return whether an array goes to the other ranks from its device, and arrives on theirs.

        The arrays of a GPU do in a world of `optlab.parallel.nccl_world`; in any other one they
        are copied to the host (`on_host`) by who exchanges them.
        """
        return self._device is not None and is_on_device(array)

    @property
    def is_local(self) -> bool:
        """Whether the world ends its waits itself."""
        return bool(getattr(self.world, "has_deadlines", False))

    def meet(self) -> None:
        """Let all ranks announce their processes, and get a communicator of their own."""
        if self._own is not None:
            return
        if self.is_local:
            self._own = self.world.Dup()
            return
        global _last_word
        _last_word = _last_word or _LastWord()
        self._find_peers()
        own = np.zeros(256, np.uint8)
        said = f"{here().process} {here().host}".encode()[:256]
        own[: len(said)] = np.frombuffer(said, np.uint8)
        found = self._all_to_all(self.world, own)
        for rank, one in enumerate(found):
            process, _, host = one.tobytes().rstrip(b"\0").decode(errors="replace").partition(" ")
            self.peers[rank] = Peer(host, int(process))
        self._own = self.duplicate()

    def duplicate(self) -> Any:
        """Return a communicator of the same ranks, whose messages are apart from all others.

        All ranks call it. It waits for them as an exchange does: MPI's own call has no deadline,
        and a rank that has given up in the meantime does not come.

        Raises
        ------
        StalledError, RankError
            If a rank does not answer in time, or has ended; the message names it.
        """
        if self.is_local or self.size == 1 or not hasattr(self.world, "Idup"):
            return self.world.Dup()
        result, done = self.world.Idup()
        self._wait({rank: done for rank in range(self.size) if rank != self.rank})
        return result

    def _find_peers(self) -> None:
        """Look for the ranks of this host that have not said yet where they run."""
        found = launched_peers(self.world_ranks[self.rank], self.world_ranks)
        self.peers = [a or b for a, b in zip(self.peers, found, strict=True)]

    def name(self, rank: int) -> str:
        """Return the name of a rank, for messages."""
        peer, number = self.peers[rank], self.world_ranks[rank]
        if peer is None:
            return f"rank {number}"
        return f"rank {number} (process {peer.process} on {peer.host})"

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
        if self.moves(array):
            found = zeros_beside(array, (self.size, array.size))
            self._on_device("gather_on_device", array, found)
            return [found[rank] for rank in range(self.size)]
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
            if self.moves(array):
                self._on_device("broadcast_on_device", got, root)
            elif self.is_local:
                self._own.Bcast(got, root)
            elif self.rank == root:
                requests = {r: self._own.Isend(got, r, _TAG) for r in range(self.size) if r != root}
                self._wait(requests)
            else:
                self._wait({root: self._own.Irecv(got, root, _TAG)})
            result.append(got)
        return result

    def _on_device(self, name: str, *arguments: Any) -> None:
        """Run an exchange between GPUs, and wait for it as for any other.

        Each rank says first that it comes, and with how many bytes: NCCL's calls have no deadline,
        and wait for ever, or write past an end, where ranks do not agree.
        """
        sizes = [int(one[0]) for one in self.gather(np.array([arguments[0].nbytes], np.int64))]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"{self.purpose} exchanges arrays of one size; the ranks came with {sizes} bytes."
            )
        device = cast("Any", self._device)
        try:
            done = getattr(device, name)(*arguments)
            self._wait({rank: done for rank in range(self.size) if rank != self.rank})
        except BaseException:
            device.abort()  # a kernel that waits for a rank would keep this process from ending
            raise

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
        watched: dict[int, Silence] = {}
        every = min(0.25, self.timeout / 4)
        next_look = begin + every
        left = dict(requests)
        while True:
            left = {rank: one for rank, one in left.items() if not one.Test()}
            if not left:
                return
            now = time.monotonic()
            if now >= next_look:
                next_look = now + every
                self._look(left, begin, now, watched, every)
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause + 1e-5)

    def _look(
        self,
        left: dict[int, Any],
        begin: float,
        now: float,
        watched: dict[int, Silence],
        every: float,
    ) -> None:
        """Raise if a rank that is waited for has ended, or shows no sign of life.

        Nothing is concluded from one look: this process itself may have been stopped since it
        asked for the message, and a rank that has ended may have sent it before.
        """
        if any(self.peers[rank] is None for rank in left):
            self._find_peers()  # it may have begun since
        for rank in left:
            number = self.world_ranks[rank]
            peer = self.peers[rank]
            if peer is None or peer.host != socket.gethostname():
                continue  # nothing is known of it: the longest wait ends this
            seen, signs = rank in watched, peer.signs()
            silence = watched.setdefault(rank, Silence(2 * every))
            if seen and silence.signs is None and signs is None and peer.has_ended():
                raise RankError(f"{self.name(rank)} has ended, while {self._waiting()}.", number)
            silent = silence.look(signs, now)
            if silent >= self.timeout and signs is not None:
                raise StalledError(
                    f"{self.name(rank)} gave no sign of life for {self.timeout:g} seconds, while "
                    f"{self._waiting()}.",
                    number,
                )
        if now - begin >= self.longest:
            rank = min(left)
            raise StalledError(
                f"{' and '.join(map(self.name, left))} did not come within {self.longest:g} "
                f"seconds, while {self._waiting()}.",
                self.world_ranks[rank],
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
    own = [
        (name(p), tuple(p.shape), str(p.dtype) + " on a GPU" * exchange.moves(p.data), id(p))
        for p in parameters
    ]
    found = exchange.gather_objects((place, own))
    seen: dict[Any, int] = {}
    first = found[0][1]
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
