"""The communicator of simulated ranks: mpi4py's calls, between threads."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from optlab.backend.rank_errors import CommunicationError, RankError
from optlab.parallel.local.board import (
    ANY_SOURCE,
    ANY_TAG,
    PROC_NULL,
    UNDEFINED,
    Board,
    Message,
    Reception,
    Wait,
)
from optlab.parallel.local.buffers import copy_into, flat_view, is_in_place, mpi, operation, uint8
from optlab.parallel.local.requests import ReceiveRequest, Request, SendRequest, Status

_LARGEST_TAG = 2**31 - 1


class LocalComm:
    """The communicator that `LocalWorld.run` gives to each rank; the calls are mpi4py's.

    Calls in lower case send any object that can be pickled, those with a capital the memory of
    arrays. What a rank gets is its own copy. Any function of two values may be an operation;
    reductions combine in the order of the ranks.

    Attributes
    ----------
    rank, size : int
        The number of this rank in the communicator, from 0, and the number of ranks.
    name : str

    Examples
    --------
    >>> import optlab as ol
    >>> def f(comm):
    ...     right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    ...     return comm.sendrecv(comm.rank, dest=right, source=left), comm.allreduce(comm.rank)
    >>> ol.parallel.LocalWorld(3).run(f)
    [(2, 3), (0, 3), (1, 3)]
    """

    def __init__(
        self, board: Board, ranks: tuple[int, ...], rank: int, buffered: bool, place: Any
    ) -> None:
        self._board, self._ranks, self._buffered = board, ranks, buffered
        self._place = place
        self._calls = 0
        self.rank, self.size = rank, len(ranks)
        #: Waits end by themselves: see `optlab.backend.exchange`.
        self.has_deadlines = True
        self.name = "LOCAL_WORLD" if place == () else ""
        #: Which ranks of the whole world these are.
        self.world_ranks = ranks

    def Get_rank(self) -> int:
        """Return the number of this rank."""
        return self.rank

    def Get_size(self) -> int:
        """Return the number of ranks."""
        return self.size

    def Get_name(self) -> str:
        """Return the name of the communicator."""
        return self.name

    def Is_inter(self) -> bool:
        """Return False: all ranks are of one group."""
        return False

    # From one rank to another: objects -------------------------------------------------------

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object; unbuffered, wait until it is received."""
        self._send("send", obj, dest, tag, self._buffered).wait()

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object, and wait until it is received."""
        self._send("ssend", obj, dest, tag, False).wait()

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Send an object without waiting; the request's `wait` does."""
        return self._send("isend", obj, dest, tag, self._buffered)

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Send an object without waiting; the request is done when it is received."""
        return self._send("issend", obj, dest, tag, False)

    def recv(
        self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None
    ) -> Any:
        """Receive an object."""
        return self._receive("recv", source, tag).wait(status)

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Receive an object without waiting; the request's `wait` returns it."""
        return self._receive("irecv", source, tag)

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Any = None,
    ) -> Any:
        """Send an object and receive one, in whatever order they can."""
        received = self._receive("sendrecv", source, recvtag)
        self._send("sendrecv", sendobj, dest, sendtag, self._buffered).wait()
        return received.wait(status)

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None) -> bool:
        """Wait until there is a message to receive."""
        return self._probe("probe", ("objects",), source, tag, status)

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None) -> bool:
        """Return whether there is a message to receive."""
        return self._iprobe("iprobe", ("objects",), source, tag, status)

    # From one rank to another: arrays --------------------------------------------------------

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send an array; unbuffered, wait until it is received."""
        self._send_array("Send", buf, dest, tag, self._buffered).Wait()

    def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send an array, and wait until it is received."""
        self._send_array("Ssend", buf, dest, tag, False).Wait()

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Send an array without waiting; it must not change before the request is done."""
        return self._send_array("Isend", buf, dest, tag, self._buffered)

    def Issend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Send an array without waiting; the request is done when it is received."""
        return self._send_array("Issend", buf, dest, tag, False)

    def Recv(
        self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None
    ) -> None:
        """Receive into an array."""
        self._receive_array("Recv", buf, source, tag).Wait(status)

    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Receive into an array without waiting; it is filled when the request is done."""
        return self._receive_array("Irecv", buf, source, tag)

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Any = None,
    ) -> None:
        """Send an array and receive one, in whatever order they can."""
        received = self._receive_array("Sendrecv", recvbuf, source, recvtag)
        self._send_array("Sendrecv", sendbuf, dest, sendtag, self._buffered).Wait()
        received.Wait(status)

    def Probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None) -> bool:
        """Wait until there is an array to receive."""
        return self._probe("Probe", ("arrays",), source, tag, status)

    def Iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None) -> bool:
        """Return whether there is an array to receive."""
        return self._iprobe("Iprobe", ("arrays",), source, tag, status)

    # Among all ranks: objects ----------------------------------------------------------------

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._together("barrier", None)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Return the object of the root, on every rank."""
        self._check_root(root, "bcast")
        given = self._together("bcast", _packed(obj) if self.rank == root else None, root)
        return obj if self.rank == root else pickle.loads(given[root])

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Return the objects of all ranks in their order at the root, None elsewhere."""
        self._check_root(root, "gather")
        given = self._together("gather", _packed(sendobj), root)
        return list(map(pickle.loads, given)) if self.rank == root else None

    def allgather(self, sendobj: Any) -> list[Any]:
        """Return the objects of all ranks in their order."""
        return list(map(pickle.loads, self._together("allgather", _packed(sendobj))))

    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        """Return this rank's entry of the root's list."""
        self._check_root(root, "scatter")
        parts = None
        if self.rank == root:
            parts = [_packed(one) for one in self._one_each("scatter", sendobj)]
        given: Any = self._together("scatter", parts, root)
        return pickle.loads(given[root][self.rank])

    def alltoall(self, sendobj: Any) -> list[Any]:
        """Return what each rank has in its list for this rank."""
        parts = [_packed(one) for one in self._one_each("alltoall", sendobj)]
        return [pickle.loads(one[self.rank]) for one in self._together("alltoall", parts)]

    def reduce(self, sendobj: Any, op: Any = None, root: int = 0) -> Any:
        """Return the sum, or another combination, of all ranks' objects at the root."""
        self._check_root(root, "reduce")
        combine = operation(op, of_arrays=False)
        given = self._together("reduce", _packed(sendobj), root)
        return _folded(combine, map(pickle.loads, given)) if self.rank == root else None

    def allreduce(self, sendobj: Any, op: Any = None) -> Any:
        """Return the sum, or another combination, of all ranks' objects."""
        combine = operation(op, of_arrays=False)
        return _folded(combine, map(pickle.loads, self._together("allreduce", _packed(sendobj))))

    # Among all ranks: arrays -----------------------------------------------------------------

    def Barrier(self) -> None:
        """Wait for all ranks."""
        self._together("Barrier", None)

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Fill every rank's array with that of the root."""
        self._check_root(root, "Bcast")
        flat = flat_view(buf, "Bcast", writable=self.rank != root)
        given = self._together("Bcast", flat.copy() if self.rank == root else None, root)
        if self.rank != root:
            copy_into(flat, given[root], "Bcast")

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Fill the root's array with the arrays of all ranks in their order."""
        self._check_root(root, "Gather")
        target = flat_view(recvbuf, "Gather", writable=True) if self.rank == root else None
        given = self._together("Gather", self._own_part("Gather", sendbuf, target), root)
        if self.rank == root:
            _fill(target, given, "Gather")

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Fill every rank's array with the arrays of all ranks in their order."""
        target = flat_view(recvbuf, "Allgather", writable=True)
        _fill(
            target,
            self._together("Allgather", self._own_part("Allgather", sendbuf, target)),
            "Allgather",
        )

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Fill each rank's array with its part of the root's array."""
        self._check_root(root, "Scatter")
        parts = None
        if self.rank == root:
            flat = flat_view(sendbuf, "Scatter")
            if flat.size % self.size:
                raise CommunicationError(
                    f"Scatter: {flat.size} elements for {self.size} ranks.", "MPI_ERR_COUNT"
                )
            parts = np.split(flat.copy(), self.size)
        given: Any = self._together("Scatter", parts, root)
        if not is_in_place(recvbuf):
            copy_into(flat_view(recvbuf, "Scatter", True), given[root][self.rank], "Scatter")

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Any = None, root: int = 0) -> None:
        """Fill the root's array with the sum, or another combination, of all ranks' arrays."""
        self._check_root(root, "Reduce")
        target = flat_view(recvbuf, "Reduce", writable=True) if self.rank == root else None
        own: Any = target if is_in_place(sendbuf) else flat_view(sendbuf, "Reduce")
        combine = operation(op, of_arrays=True)
        given = self._together("Reduce", own.copy(), root)
        if self.rank == root:
            copy_into(target, _folded_arrays(combine, given, "Reduce"), "Reduce")

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = None) -> None:
        """Fill every rank's array with the sum, or another combination, of all ranks' arrays."""
        target = flat_view(recvbuf, "Allreduce", writable=True)
        own = target if is_in_place(sendbuf) else flat_view(sendbuf, "Allreduce")
        combine = operation(op, of_arrays=True)
        given = self._together("Allreduce", own.copy())
        copy_into(target, _folded_arrays(combine, given, "Allreduce"), "Allreduce")

    # Communicators ---------------------------------------------------------------------------

    def Dup(self, info: Any = None) -> LocalComm:
        """Return a communicator of the same ranks, whose messages do not mix with these."""
        place = (self._place, self._calls, None)
        self._together("Dup", None)
        return LocalComm(self._board, self._ranks, self.rank, self._buffered, place)

    def Split(self, color: int = 0, key: int = 0) -> LocalComm | None:
        """Return the communicator of the ranks with the same color, ordered by their keys.

        With ``MPI.UNDEFINED`` as color it is None.
        """
        place = (self._place, self._calls)
        given = [pickle.loads(one) for one in self._together("Split", _packed((color, key)))]
        if color in {UNDEFINED, getattr(mpi(), "UNDEFINED", UNDEFINED)}:
            return None
        order = sorted((k, rank) for rank, (c, k) in enumerate(given) if c == color)
        ranks = tuple(self._ranks[rank] for _, rank in order)
        own = [rank for _, rank in order].index(self.rank)
        return LocalComm(self._board, ranks, own, self._buffered, (*place, color))

    def Free(self) -> None:
        """Do nothing: a communicator goes with its last reference."""

    def Abort(self, errorcode: int = 0) -> None:
        """End all ranks."""
        rank = self._ranks[self.rank]
        self._board.fail(RankError(f"rank {rank} called Abort({errorcode}).", rank), None)
        self._board.check()

    # The machinery ---------------------------------------------------------------------------

    def _send(self, call: str, obj: Any, dest: int, tag: int, buffered: bool) -> Request:
        self._check_rank(dest, call, "dest")
        self._check_tag(tag, call)
        content = _packed(obj)
        if _is_null(dest):
            return Request(self._board)
        return self._sent(call, ("objects",), content, len(content), dest, tag, buffered, None)

    def _send_array(self, call: str, buf: Any, dest: int, tag: int, buffered: bool) -> Request:
        self._check_rank(dest, call, "dest")
        self._check_tag(tag, call)
        flat = flat_view(buf, call)
        if _is_null(dest):
            return Request(self._board)
        # An unbuffered message stays in the sender's array until it is received, as on MPI.
        seal = None if buffered else _copied
        content = flat.copy() if buffered else flat
        return self._sent(call, ("arrays",), content, flat.nbytes, dest, tag, buffered, seal)

    def _sent(
        self,
        call: str,
        kind: tuple[str],
        content: Any,
        nbytes: int,
        dest: int,
        tag: int,
        buffered: bool,
        seal: Callable[[Any], Any] | None,
    ) -> Request:
        own, other = self._ranks[self.rank], self._ranks[dest]
        message = Message((self._place, *kind), own, tag, content, nbytes, seal)
        self._board.post(other, message)
        wait = Wait(
            f"{call}(dest={dest}, tag={tag})", lambda: buffered or message.matched, lambda: [other]
        )
        return SendRequest(self._board, own, wait)

    def _receive(self, call: str, source: int, tag: int) -> Request:
        reception, wait = self._posted(call, ("objects",), source, tag)
        return ReceiveRequest(self._board, self._ranks, self.rank, reception, wait, pickle.loads)

    def _receive_array(self, call: str, buf: Any, source: int, tag: int) -> Request:
        target = flat_view(buf, call, writable=True)
        reception, wait = self._posted(call, ("arrays",), source, tag)

        def fill(content: Any) -> bool:
            copy_into(target, content, call)
            return True

        return ReceiveRequest(self._board, self._ranks, self.rank, reception, wait, fill)

    def _posted(
        self, call: str, kind: tuple[str], source: int, tag: int
    ) -> tuple[Reception | None, Wait]:
        reception, wait = self._reception(call, kind, source, tag)
        if reception is not None:
            self._board.expect(self._ranks[self.rank], reception)
        return reception, wait

    def _reception(
        self, call: str, kind: tuple[str], source: int, tag: int
    ) -> tuple[Reception | None, Wait]:
        """Return what a receive accepts, and its wait; None for a source of no process."""
        if tag not in _any("ANY_TAG", ANY_TAG):
            self._check_tag(tag, call)
        else:
            tag = ANY_TAG
        if source in _any("ANY_SOURCE", ANY_SOURCE):
            of, named, others = ANY_SOURCE, "any", list(self._ranks)
            others.remove(self._ranks[self.rank])
        else:
            self._check_rank(source, call, "source")
            if _is_null(source):
                return None, Wait(call, lambda: True, list)
            of, named = self._ranks[source], str(source)
            others = [of]
        reception = Reception((self._place, *kind), of, tag)
        said = f"{call}(source={named}, tag={'any' if tag == ANY_TAG else tag})"
        wait = Wait(
            said,
            lambda: reception.message is not None or reception.cancelled,
            lambda: others,
            every=of != ANY_SOURCE,
        )
        return reception, wait

    def _probe(self, call: str, kind: tuple[str], source: int, tag: int, status: Any) -> bool:
        reception, wait = self._reception(call, kind, source, tag)
        own = self._ranks[self.rank]
        if reception is not None:
            wait.ready = lambda: self._board.waiting_message(own, reception) is not None
            self._board.wait(own, wait)
        return self._iprobe(call, kind, source, tag, status)

    def _iprobe(self, call: str, kind: tuple[str], source: int, tag: int, status: Any) -> bool:
        reception, _ = self._reception(call, kind, source, tag)
        if reception is None:
            return True
        with self._board.changed:
            self._board.check()
            message = self._board.waiting_message(self._ranks[self.rank], reception)
        if message is None:
            return False
        Status.tell(status, self._ranks.index(message.source), message)
        return True

    def _together(self, call: str, given: Any, root: int | None = None) -> list[Any]:
        """Meet all ranks in a collective call; return what each of them gave."""
        place = (self._place, self._calls)
        self._calls += 1
        said = call if root is None else f"{call}(root={root})"
        own, board = self._ranks[self.rank], self._board
        with board.changed:
            board.check()
            met = board.collectives.setdefault(place, {"calls": {}, "given": {}, "left": 0})
            calls, values = met["calls"], met["given"]
            if calls and said not in calls.values():
                other, theirs = next(iter(calls.items()))
                error = CommunicationError(
                    f"rank {own} calls {said}, where rank {other} called {theirs}: every rank makes"
                    " the same collective calls, in the same order.",
                    "MPI_ERR_OTHER",
                )
                raise error
            calls[own], values[own] = said, given
            board.sent[own] += _nbytes(given)
            board.changed.notify_all()
        board.wait(
            own,
            Wait(
                said,
                lambda: len(values) == self.size,
                lambda: [one for one in self._ranks if one not in values],
            ),
        )
        with board.changed:
            met["left"] += 1
            if met["left"] == self.size:
                del board.collectives[place]
        return [values[one] for one in self._ranks]

    def _own_part(self, call: str, sendbuf: Any, target: Any) -> Any:
        """Return what a rank contributes to a gathered array."""
        if is_in_place(sendbuf):
            part = target.size // self.size
            return target[self.rank * part : (self.rank + 1) * part].copy()
        return flat_view(sendbuf, call).copy()

    def _one_each(self, call: str, given: Any) -> list[Any]:
        parts = list(given) if isinstance(given, Iterable) else None
        if parts is None:
            raise TypeError(f"{call} takes a sequence with an object for each rank, got {given!r}.")
        if len(parts) != self.size:
            raise ValueError(f"{call}: expecting {self.size} items, got {len(parts)}.")
        return parts

    def _check_rank(self, rank: Any, call: str, name: str) -> None:
        if not isinstance(rank, (int, np.integer)):
            raise TypeError(f"{call}: {name} must be an integer, got {rank!r}.")
        if not (0 <= rank < self.size or _is_null(rank)):
            raise CommunicationError(
                f"{call}: {name}={rank}, but the ranks are 0 to {self.size - 1}.", "MPI_ERR_RANK"
            )

    def _check_root(self, root: Any, call: str) -> None:
        if not isinstance(root, (int, np.integer)):
            raise TypeError(f"{call}: root must be an integer, got {root!r}.")
        if not 0 <= root < self.size:
            raise CommunicationError(
                f"{call}: root={root}, but the ranks are 0 to {self.size - 1}.", "MPI_ERR_ROOT"
            )

    def _check_tag(self, tag: Any, call: str) -> None:
        if not isinstance(tag, (int, np.integer)):
            raise TypeError(f"{call}: tag must be an integer, got {tag!r}.")
        if not 0 <= tag <= _LARGEST_TAG:
            raise CommunicationError(f"{call}: tag={tag}, but tags begin at 0.", "MPI_ERR_TAG")

    def __repr__(self) -> str:
        return f"<LocalComm: rank {self.rank} of {self.size}>"

    def __deepcopy__(self, memo: Any) -> LocalComm:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a communicator belongs to its rank, and cannot be sent or saved.")


def _any(name: str, own: int) -> set[int]:
    """Return the values of a constant: MPICH's, and that of the MPI that is loaded."""
    return {own, getattr(mpi(), name, own)}


def _is_null(rank: Any) -> bool:
    return rank in _any("PROC_NULL", PROC_NULL)


def _packed(obj: Any) -> bytes:
    return pickle.dumps(obj, pickle.HIGHEST_PROTOCOL)


def _copied(array: Any) -> Any:
    return array.copy()


def _nbytes(given: Any) -> int:
    if given is None:
        return 0
    if isinstance(given, list):
        return sum(map(_nbytes, given))
    return len(given) if isinstance(given, bytes) else int(given.nbytes)


def _folded(combine: Callable[[Any, Any], Any], values: Iterable[Any]) -> Any:
    """Combine values in the order of the ranks."""
    values = iter(values)
    result = next(values)
    for value in values:
        result = combine(result, value)
    return result


def _folded_arrays(combine: Callable[[Any, Any], Any], given: list[Any], call: str) -> Any:
    if len({one.size for one in given}) > 1:
        raise CommunicationError(
            f"{call}: the ranks gave {', '.join(str(one.size) for one in given)} elements.",
            "MPI_ERR_COUNT",
        )
    return np.asarray(_folded(combine, given), dtype=given[0].dtype)


def _fill(target: Any, given: list[Any], call: str) -> None:
    """Fill a buffer with the arrays of all ranks."""
    if sum(one.nbytes for one in given) > target.nbytes:
        raise CommunicationError(
            f"{call}: the ranks sent {sum(one.nbytes for one in given)} bytes, the buffer has "
            f"{target.nbytes}.",
            "MPI_ERR_TRUNCATE",
        )
    target, place = target.view(uint8), 0
    for one in given:
        copy_into(target[place : place + one.nbytes], one.view(uint8), call)
        place += one.nbytes
