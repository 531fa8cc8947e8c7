"""What the ranks of one run share: messages, collective calls, who waits for whom, who failed.

One lock guards all of it. A wait is a condition that is looked at again whenever something
changes; so it is known at any time which rank waits for which, and a circle of waits is found at
the moment at which it closes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from optlab.backend.exchange import Silence
from optlab.backend.rank_errors import DeadlockError, RankError, StalledError

#: MPICH's values; those of the MPI that is loaded are understood, too.
ANY_SOURCE, ANY_TAG, PROC_NULL, UNDEFINED = -2, -1, -1, -32766
#: Between two looks at the ranks that are waited for.
_LOOK = 0.05

#: The place of messages: a communicator and the kind of call (objects, buffers).
Context = tuple[Any, ...]


class Message:
    """A message on its way: its envelope, and its content."""

    __slots__ = ("content", "context", "matched", "nbytes", "seal", "source", "tag")

    def __init__(
        self, context: Context, source: int, tag: int, content: Any, nbytes: int, seal: Any
    ) -> None:
        self.context, self.source, self.tag = context, source, tag
        self.content, self.nbytes = content, nbytes
        #: Copies the content of a message that lies in the sender's buffer until it is received.
        self.seal: Callable[[Any], Any] | None = seal
        self.matched = False


class Reception:
    """A posted receive: what it accepts, and the message that it got."""

    __slots__ = ("cancelled", "context", "message", "source", "tag")

    def __init__(self, context: Context, source: int, tag: int) -> None:
        self.context, self.source, self.tag = context, source, tag
        self.message: Message | None = None
        self.cancelled = False

    def accepts(self, message: Message) -> bool:
        """Return whether a message fits."""
        return (
            message.context == self.context
            and self.source in (ANY_SOURCE, message.source)
            and self.tag in (ANY_TAG, message.tag)
        )


class Wait:
    """Somebody's wait: in which call, for whom, and whether all of them are needed."""

    __slots__ = ("call", "every", "missing", "ready")

    def __init__(
        self,
        call: str,
        ready: Callable[[], Any],
        missing: Callable[[], list[int]],
        every: bool = True,
    ) -> None:
        self.call, self.ready, self.missing, self.every = call, ready, missing, every


class _Life:
    """Signs of life of a rank: the processor time of its thread, and its calls."""

    def __init__(self, look: float) -> None:
        self.clock: int | None = None
        self.silence = Silence(2 * look)

    def begin(self) -> None:
        """Find the clock of this thread; some systems have none."""
        if hasattr(time, "pthread_getcpuclockid"):
            with contextlib.suppress(OSError):
                self.clock = time.pthread_getcpuclockid(threading.get_ident())

    def silent(self) -> float:
        """Return for how many seconds the thread, which has not ended, has not computed."""
        used = None
        if self.clock is not None:
            with contextlib.suppress(OSError):
                used = time.clock_gettime(self.clock)
        return self.silence.look(used, time.monotonic())


class Board:
    """The state that the ranks of one run share.

    Parameters
    ----------
    size : int
    timeout : float
        Seconds without a sign of life after which a rank that others wait for counts as stalled.
    longest : float
        The most seconds that any wait takes.
    """

    def __init__(self, size: int, timeout: float, longest: float) -> None:
        self.size, self.timeout, self.longest = size, timeout, longest
        self.changed = threading.Condition()
        self.unexpected: list[list[Message]] = [[] for _ in range(size)]
        self.posted: list[list[Reception]] = [[] for _ in range(size)]
        self.collectives: dict[Any, dict[str, Any]] = {}
        self._look = min(_LOOK, timeout / 4)
        self.lives = [_Life(self._look) for _ in range(size)]
        self.ended: list[str | None] = [None] * size
        #: The waits of each rank's own thread, which is what a deadlock is made of.
        self.waits: list[Wait | None] = [None] * size
        self.threads: list[int | None] = [None] * size
        self.helpers: dict[int, set[int]] = defaultdict(set)
        self.failure: RankError | None = None
        self.sent = [0] * size

    # Messages -----------------------------------------------------------------------------------

    def post(self, dest: int, message: Message) -> None:
        """Send a message: to a receive that was posted before, or to the queue."""
        with self.changed:
            self.check()
            self.sent[message.source] += message.nbytes
            for reception in self.posted[dest]:
                if reception.accepts(message):
                    self.posted[dest].remove(reception)
                    self._deliver(reception, message)
                    return
            self.unexpected[dest].append(message)
            self.changed.notify_all()

    def expect(self, rank: int, reception: Reception) -> None:
        """Post a receive: messages of one sender are received in the order of their sending."""
        with self.changed:
            self.check()
            for message in self.unexpected[rank]:
                if reception.accepts(message):
                    self.unexpected[rank].remove(message)
                    self._deliver(reception, message)
                    return
            self.posted[rank].append(reception)

    def waiting_message(self, rank: int, reception: Reception) -> Message | None:
        """Return the first message that a receive would get; it stays."""
        return next((one for one in self.unexpected[rank] if reception.accepts(one)), None)

    def cancel(self, rank: int, reception: Reception) -> None:
        """Take back a posted receive."""
        with self.changed:
            if reception in self.posted[rank]:
                self.posted[rank].remove(reception)
                reception.cancelled = True

    def _deliver(self, reception: Reception, message: Message) -> None:
        if message.seal is not None:
            message.content, message.seal = message.seal(message.content), None
        reception.message = message
        message.matched = True
        self.changed.notify_all()

    # Waits --------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise if a rank has failed."""
        if self.failure is not None:
            raise type(self.failure)(str(self.failure), self.failure.rank) from (
                self.failure.__cause__
            )

    def wait(self, rank: int, wait: Wait) -> None:
        """Wait until the condition holds, or raise an error that names who is missing."""
        with self.changed:
            self.check()
            if wait.ready():
                return
            own = threading.get_ident() == self.threads[rank]
            if own:
                self.waits[rank] = wait
            else:
                self.helpers[rank].add(threading.get_ident())
            try:
                self._find_deadlock()
                end = time.monotonic() + self.longest
                while not wait.ready():
                    self.check()
                    self._find_stall(rank, wait, end)
                    self.changed.wait(self._look)
                    if not wait.ready():
                        self.check()
            finally:
                if own:
                    self.waits[rank] = None
                    self.lives[rank].silence.breaks()

    def _find_deadlock(self) -> None:
        """Fail all ranks if each of those that have not ended waits in vain.

        A rank with threads of its own that communicate may be helped by them: it does not count.
        """
        for rank in range(self.size):
            if self.ended[rank] is None:
                wait = self.waits[rank]
                if wait is None or self.helpers[rank] or wait.ready():
                    return
        lines = []
        for rank, wait in enumerate(self.waits):
            if wait is not None:
                lines.append(f"rank {rank} in {wait.call} for {self._listed(wait.missing())}")
        self.fail(
            DeadlockError(f"deadlock, every rank waits for another: {'; '.join(lines)}."), None
        )
        self.check()

    def _listed(self, ranks: list[int]) -> str:
        names = [
            f"rank {one}" if self.ended[one] is None else f"rank {one}, which {self.ended[one]}"
            for one in ranks
        ]
        return " and ".join(names) or "nobody"

    def _find_stall(self, rank: int, wait: Wait, end: float) -> None:
        """Fail all ranks if those at the end of the chain of waits show no sign of life."""
        found, todo = set(), list(wait.missing())
        while todo:
            one = todo.pop()
            if one not in found and self.ended[one] is None:
                found.add(one)
                further = self.waits[one]
                if further is not None:
                    todo += further.missing()
        busy = sorted(one for one in found if self.waits[one] is None and one != rank)
        silent = [one for one in busy if self.lives[one].silent() >= self.timeout]
        if silent and (wait.every or len(silent) == len(busy)):
            self.fail(
                StalledError(
                    f"{self._listed(silent)} gave no sign of life for {self.timeout:g} seconds, "
                    f"while rank {rank} waits in {wait.call}. If it works on something that needs "
                    "no processor, such as a slow file, give LocalWorld a longer timeout.",
                    silent[0],
                ),
                None,
            )
        elif time.monotonic() >= end:
            late = busy or wait.missing()
            self.fail(
                StalledError(
                    f"rank {rank} has waited in {wait.call} for {self._listed(late)} for "
                    f"{self.longest:g} seconds, the longest that LocalWorld(longest=...) allows.",
                    late[0] if late else None,
                ),
                None,
            )

    # Failures -----------------------------------------------------------------------------------

    def fail(self, error: RankError, cause: BaseException | None) -> None:
        """Record the first failure; every wait ends with it."""
        with self.changed:
            if self.failure is None:
                error.__cause__ = cause
                self.failure = error
            self.changed.notify_all()

    def begin(self, rank: int) -> None:
        """Say that the rank runs in this thread."""
        with self.changed:
            self.threads[rank] = threading.get_ident()
            self.lives[rank].begin()

    def end(self, rank: int, how: str) -> None:
        """Say that a rank has ended; the others may now wait for it in vain."""
        with self.changed:
            self.ended[rank] = how
            with contextlib.suppress(DeadlockError):
                if self.failure is None and not all(self.ended):
                    self._find_deadlock()
            self.changed.notify_all()
