"""`LocalWorld`: ranks as threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from optlab.backend.exchange import simulated
from optlab.backend.rank_errors import RankError
from optlab.parallel.local.board import Board
from optlab.parallel.local.comm import LocalComm
from optlab.parallel.local.modes import Modes


class LocalWorld:
    """Simulated ranks: threads of this process, which communicate by the calls of mpi4py.

    ``world.run(f)`` is to ``f`` what ``mpiexec -n 4 python -m mpi4py`` is to a program that ends
    with ``f(MPI.COMM_WORLD)``: the same code, the same results to the bit.

    Parameters
    ----------
    size : int
        The number of ranks.
    buffered : bool
        False: a send waits until it is received, as large messages do on MPI. What would block
        there blocks here, and is reported.
    timeout : float
        Seconds. Every wait has a deadline: a rank that others wait for and that neither computes
        (its thread uses no processor time) nor communicates for so long ends the run.
    longest : float
        The most seconds that any wait takes, whatever the others compute meanwhile.

    Raises
    ------
    RankError
        By `run`, if a rank raises: it names the rank, and the rank's error is its ``__cause__``.
    DeadlockError
        By `run`, as soon as every rank waits for another; it says who waits for whom.
    StalledError
        By `run`, if a rank stalls: it names the rank. (Python cannot end the thread of that rank;
        its next call of the communicator does.)

    Notes
    -----
    Ranks begin with the modes of the thread that calls `run`: whether gradients are recorded,
    `auto_cast`, anomaly mode, and its random numbers, so that every rank draws the same ones, as
    processes that begin with the same ``ol.seed`` do; ``ol.random_scope("rank", comm.rank)`` gives
    each its own. ``world.bytes_sent`` has the bytes that each rank put into its calls in the last
    run. Where a thread has no clock of its own (macOS, Windows), `timeout` counts from its last
    call.

    Examples
    --------
    >>> import optlab as ol
    >>> world = ol.parallel.LocalWorld(4)
    >>> world.run(lambda comm: comm.allreduce(comm.rank))
    [6, 6, 6, 6]
    >>> def ring(comm):
    ...     comm.send("token", dest=(comm.rank + 1) % comm.size)
    ...     return comm.recv(source=(comm.rank - 1) % comm.size)
    >>> world.run(ring)
    ['token', 'token', 'token', 'token']
    >>> ol.parallel.LocalWorld(2, buffered=False).run(ring)
    Traceback (most recent call last):
      ...
    optlab.parallel.DeadlockError: deadlock, every rank waits for another: rank 0 in send(dest=1,
    tag=0) for rank 1; rank 1 in send(dest=0, tag=0) for rank 0.
    """

    def __init__(
        self, size: int, buffered: bool = True, timeout: float = 7.0, longest: float = 300.0
    ) -> None:
        if isinstance(size, bool) or not hasattr(size, "__index__") or size.__index__() < 1:
            raise ValueError(f"LocalWorld takes a number of ranks from 1 on, got {size!r}.")
        if not isinstance(buffered, bool):
            raise TypeError(f"buffered must be True or False, got {buffered!r}.")
        for name, value in (("timeout", timeout), ("longest", longest)):
            if not isinstance(value, (int, float)) or not value > 0:
                raise ValueError(f"{name} must be a number of seconds above 0, got {value!r}.")
        self.size = size.__index__()
        self.buffered, self.timeout, self.longest = buffered, float(timeout), float(longest)
        #: The bytes that each rank put into its calls, in the last run.
        self.bytes_sent: list[int] = [0] * self.size

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Call ``function(comm, *args, **kwargs)`` on every rank; return the results in order."""
        if not callable(function):
            raise TypeError(f"run takes a function of a communicator, got {function!r}.")
        board = Board(self.size, self.timeout, self.longest)
        modes = Modes()
        results: list[Any] = [None] * self.size
        ranks = tuple(range(self.size))

        def work(rank: int) -> None:
            board.begin(rank)
            comm = LocalComm(board, ranks, rank, self.buffered, ())
            simulated.set(comm)  # in this thread's own context
            how = "has ended"
            try:
                results[rank] = modes.inside(function, comm, *args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - raised by `run`, SystemExit too
                how = f"raised {type(error).__name__}"
                if not isinstance(error, RankError) or board.failure is None:
                    said = f"{type(error).__name__}: {error}".removesuffix(": ")
                    board.fail(RankError(f"rank {rank} raised {said}", rank), error)
            finally:
                board.end(rank, how)

        threads = []
        for rank in ranks:
            context = modes.context()
            thread = threading.Thread(
                target=context.run, args=(work, rank), name=f"optlab rank {rank}", daemon=True
            )
            threads.append(thread)
        for thread in threads:
            thread.start()
        try:
            self._wait_for(board)
        except BaseException as error:  # KeyboardInterrupt: the ranks end, too
            board.fail(RankError(f"the run was ended by {type(error).__name__}."), error)
            raise
        finally:
            self.bytes_sent = list(board.sent)
        if board.failure is not None:
            failure = board.failure
            raise failure from failure.__cause__
        for thread in threads:
            thread.join()
        return results

    def _wait_for(self, board: Board) -> None:
        """Wait until all ranks have ended; after a failure, a moment for those that can."""
        with board.changed:
            while not all(board.ended) and board.failure is None:
                board.changed.wait(0.2)
            if board.failure is not None:
                board.changed.wait_for(lambda: all(board.ended), min(1.0, self.timeout))

    def __repr__(self) -> str:
        extra = "" if self.buffered else ", buffered=False"
        return f"LocalWorld({self.size}{extra})"
