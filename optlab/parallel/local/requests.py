"""Requests of calls that do not wait, and what is known of a received message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from optlab.parallel.local.board import Board, Message, Reception, Wait


class Status:
    """What is known of a received message: its source, its tag, its bytes.

    Examples
    --------
    >>> import optlab as ol
    >>> def f(comm):
    ...     if comm.rank == 1:
    ...         return comm.send("hello", dest=0, tag=7)
    ...     status = ol.parallel.Status()
    ...     text = comm.recv(status=status)
    ...     return text, status.Get_source(), status.Get_tag()
    >>> ol.parallel.LocalWorld(2).run(f)[0]
    ('hello', 1, 7)
    """

    def __init__(self) -> None:
        self.source = self.tag = -1
        self.error = self.count = 0

    def Get_source(self) -> int:
        """Return the rank that sent the message."""
        return self.source

    def Get_tag(self) -> int:
        """Return the tag of the message."""
        return self.tag

    def Get_error(self) -> int:
        """Return 0."""
        return self.error

    def Get_count(self, datatype: Any = None) -> int:
        """Return the number of bytes of the message, or of elements of a datatype."""
        size = 1 if datatype is None else int(datatype.Get_size())
        return self.count // size

    @staticmethod
    def tell(status: Any, source: int, message: Message) -> None:
        """Write the envelope of a message into a status, this one's or mpi4py's."""
        if status is not None:
            status.source, status.tag = source, message.tag
            if isinstance(status, Status):
                status.count = message.nbytes


class Request:
    """A call on its way; this one, to or from no process, is done.

    `wait` and `test` are those of objects (they return the object), `Wait` and `Test` of arrays.
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    def wait(self, status: Any = None) -> Any:
        """Wait until it is done; return the object that was received, or None."""
        return None

    def test(self, status: Any = None) -> tuple[bool, Any]:
        """Return whether it is done, and the object that was received, or None."""
        return True, None

    def Wait(self, status: Any = None) -> bool:
        """Wait until it is done; return True."""
        self.wait(status)
        return True

    def Test(self, status: Any = None) -> bool:
        """Return whether it is done."""
        return self.test(status)[0]

    def Cancel(self) -> None:
        """Take back a receive that nothing has reached."""

    def cancel(self) -> None:
        """Take back a receive that nothing has reached."""
        self.Cancel()

    @staticmethod
    def waitall(requests: Iterable[Request], statuses: Any = None) -> list[Any]:
        """Wait for all; return the received objects."""
        return [one.wait() for one in requests]

    @staticmethod
    def Waitall(requests: Iterable[Request], statuses: Any = None) -> bool:
        """Wait for all; return True."""
        for one in requests:
            one.Wait()
        return True


class SendRequest(Request):
    """A send on its way: done when it is buffered or received."""

    def __init__(self, board: Board, rank: int, wait: Wait) -> None:
        super().__init__(board)
        self._rank, self._wait = rank, wait

    def wait(self, status: Any = None) -> Any:
        """Wait until the message is buffered, or received."""
        self._board.wait(self._rank, self._wait)

    def test(self, status: Any = None) -> tuple[bool, Any]:
        """Return whether the message is buffered, or received."""
        with self._board.changed:
            self._board.check()
            return bool(self._wait.ready()), None


class ReceiveRequest(Request):
    """A receive on its way: done when its message is here."""

    def __init__(
        self,
        board: Board,
        ranks: tuple[int, ...],
        rank: int,
        reception: Reception | None,
        wait: Wait,
        opened: Callable[[Any], Any],
    ) -> None:
        super().__init__(board)
        self._ranks, self._rank = ranks, ranks[rank]
        self._reception, self._wait, self._opened = reception, wait, opened
        self._taken = False
        self._result: Any = None

    def wait(self, status: Any = None) -> Any:
        """Wait for the message; return the object."""
        if self._reception is not None:
            self._board.wait(self._rank, self._wait)
        return self._take(status)

    def test(self, status: Any = None) -> tuple[bool, Any]:
        """Return whether the message is here, and the object."""
        with self._board.changed:
            self._board.check()
            done = self._reception is None or bool(self._wait.ready())
        return (True, self._take(status)) if done else (False, None)

    def Cancel(self) -> None:
        """Take back the receive, if nothing has reached it."""
        if self._reception is not None:
            self._board.cancel(self._rank, self._reception)

    def _take(self, status: Any) -> Any:
        message = None if self._reception is None else self._reception.message
        if message is not None:
            Status.tell(status, self._ranks.index(message.source), message)
            if not self._taken:
                self._taken = True
                self._result = self._opened(message.content)
        return self._result
