"""Random keys: every draw is a function of a seed and a path, not of a hidden global state.

A `Key` is a seed and a path, for example ``(7, "layer 2", "step 31")``. Its hash starts a
counter-based Philox generator (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"):
the same key gives the same numbers whatever was drawn elsewhere before. A `scope` adds to the path;
draws inside are numbered within that scope alone.

Threads share no counter. The thread that called `seed` or opened a scope numbers its draws 0, 1, 2,
...; another thread that draws in the same scope (or without one, or in a scope that it inherited by
`contextvars.copy_context`) has its own numbering below it, so it never changes the draws of the
first. Such threads are distinguished by the order of their first draw, which is arbitrary if
several start together: let each open its own scope, named by its job, and its numbers depend on
that name alone.

`random_state` saves and restores the position of a program's draws.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from optlab.backend.call_recorder import effect, here

if TYPE_CHECKING:
    import numpy as np

_PLAIN = frozenset({int, str})
_generator_of: Any = None  # imported by the first draw


class Key(NamedTuple):
    """The origin of random numbers: a seed and the path of what draws them.

    Examples
    --------
    >>> key = Key(7).fold("dropout", 3)
    >>> bool(key.generator().random() == Key(7).fold("dropout", 3).generator().random())
    True
    """

    seed: int
    path: tuple[str | int, ...] = ()

    def fold(self, *place: str | int) -> Key:
        """Return the key of a path below this one."""
        plain = (part if isinstance(part, str) else int(part) for part in place)
        return Key(int(self.seed), (*self.path, *plain))

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator at the start of this key's stream."""
        global _generator_of
        if _generator_of is None:
            from optlab.backend.philox import generator_of as _generator_of
        seed, path = self
        if type(seed) is not int or not _PLAIN.issuperset(map(type, path)):
            seed, path = Key(seed).fold(*path)  # equal keys must hash alike
        generator: np.random.Generator = _generator_of(repr((seed, path)).encode())
        return generator


class Stream:
    """The draws of one scope, numbered from 0; other threads have their own numbering below it."""

    __slots__ = ("claimed", "draws", "epochs", "key", "loaders", "owner", "threads", "visitors")

    def __init__(self, key: Key, draws: int = 0, epochs: Sequence[int] = ()) -> None:
        self.key = key
        self.draws = draws
        #: How many epochs each data loader has yielded, by its number; and how many loaders.
        self.epochs = dict(enumerate(epochs))
        self.loaders = 0
        self.claimed: set[int] = set()
        self.owner = threading.get_ident()
        self.visitors = itertools.count()
        self.threads: threading.local | None = None

    def next_loader(self) -> int:
        """Return the number of a new data loader in this stream."""
        while self.loaders in self.claimed:
            self.loaders += 1
        self.loaders += 1
        return self.loaders - 1

    def claim_loader(self, number: int) -> None:
        """Give a number to a data loader that continues a saved run: no new one gets it."""
        self.claimed.add(number)

    def next_key(self) -> Key:
        """Return the key of the next draw."""
        if threading.get_ident() != self.owner:
            return self._of_this_thread().next_key()
        seed, path = self.key
        draw = self.draws
        self.draws = draw + 1
        return Key(seed, (*path, draw))

    def _of_this_thread(self) -> Stream:
        """Return the stream of a thread other than the one that owns this stream."""
        with _lock:
            if self.threads is None:
                self.threads = threading.local()
        stream: Stream | None = getattr(self.threads, "stream", None)
        if stream is None:
            stream = self.threads.stream = Stream(self.key.fold("thread", next(self.visitors)))
        return stream


_lock = threading.Lock()
_scopes: ContextVar[Stream | None] = ContextVar("optlab random scope", default=None)
_root: Stream | None = None


class _Replay:
    """Replaces the stream of the program inside `replayed`."""

    __slots__ = ("stream",)

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream


_replay: ContextVar[_Replay | None] = ContextVar("optlab random replay", default=None)


class Generator:
    """The random generator of a program, as `seed` returns it; it can be reseeded.

    There is one for all devices, and it has no state of its own; see the top of this module.

    Examples
    --------
    >>> generator = seed(3)
    >>> print(generator.manual_seed(4))
    the random numbers of this program, from seed 4
    """

    __slots__ = ()

    def manual_seed(self, seed: int) -> Generator:
        """Seed every following draw, as the function `seed` does."""
        return _start_from(seed)

    def initial_seed(self) -> int:
        """Return the last seed.

        Examples
        --------
        >>> seed(3).initial_seed()
        3
        """
        replay = _replay.get()
        if replay is not None and replay.stream is not None:
            return replay.stream.key.seed
        if _root is None:
            seed_from_entropy()
        assert _root is not None
        return _root.key.seed

    def __str__(self) -> str:
        return f"the random numbers of this program, from seed {self.initial_seed()}"

    def __repr__(self) -> str:
        # A bare `ol.seed(0)` at a prompt, or at the end of a cell, has nothing to show.
        return ""

    def _ipython_display_(self) -> None:
        """Display nothing, not even the number of the cell."""


def seed(n: int) -> Generator:
    """Seed every following random draw, to the bit.

    Parameters
    ----------
    n : int
        Any integer. Without a call of `seed` the numbers differ between runs.

    Returns
    -------
    Generator
        Its ``manual_seed`` does the same as this function.

    Raises
    ------
    TypeError
        If `n` is not an integer.

    Examples
    --------
    >>> seed(3); a = next_key().generator().random()
    >>> seed(3); b = next_key().generator().random()
    >>> a == b
    True
    """
    return _start_from(n)


@effect
def _start_from(n: Any) -> Generator:
    try:
        n = int(n.__index__())
    except AttributeError:
        raise TypeError(
            f"seed takes an integer, but got {n!r} of type {type(n).__name__}."
        ) from None
    set_stream(Stream(Key(n)))
    return Generator()


def set_stream(stream: Stream) -> None:
    """Make `stream` the stream of the program; inside `replayed`, until its end."""
    global _root
    replay = _replay.get()
    if replay is not None:
        replay.stream = stream
    else:
        _root = stream


class Bookmark(NamedTuple):
    """A position in the random numbers of this thread, to draw the same ones again."""

    key: Key
    draws: int
    scoped: bool = False


def bookmark() -> Bookmark:
    """Return the position of the next draw.

    Examples
    --------
    >>> _ = seed(3)
    >>> place = bookmark()
    >>> drawn = next_key()
    >>> with replayed(place):
    ...     print(next_key() == drawn)
    True
    """
    stream = stream_of_this_thread()
    return Bookmark(stream.key, stream.draws, _scopes.get() is not None)


@contextmanager
def replayed(place: Bookmark) -> Iterator[None]:
    """Draw from a bookmark for the duration of a ``with`` block; draws outside do not change."""
    stream = Stream(place.key, place.draws)
    replay = _replay.set(_Replay(None if place.scoped else stream))
    token = _scopes.set(stream if place.scoped else None)
    try:
        yield
    finally:
        _scopes.reset(token)
        _replay.reset(replay)


def seed_from_entropy() -> None:
    """Seed from the operating system's entropy."""
    import secrets

    seed(secrets.randbits(63))


def next_key() -> Key:
    """Return a fresh key: the next of the innermost `scope`, or of the program."""
    if here.recorder is not None:
        return here.recorder.next_key()  # type: ignore[no-any-return]
    return current_stream().next_key()


def current_stream() -> Stream:
    """Return the innermost stream; without a seed, one that is seeded from entropy."""
    stream = _scopes.get()
    if stream is None:
        replay = _replay.get()
        stream = _root if replay is None or replay.stream is None else replay.stream
    if stream is None:
        with _lock:  # two threads may draw first at the same time
            if _root is None:
                seed_from_entropy()
        assert _root is not None
        stream = _root
    return stream


def stream_of_this_thread() -> Stream:
    """Return the stream that numbers the draws of this thread."""
    stream = current_stream()
    return stream if threading.get_ident() == stream.owner else stream._of_this_thread()


def program_stream() -> Stream | None:
    """Return the stream of draws outside any scope; None inside a scope."""
    return None if _scopes.get() is not None else current_stream()


@contextmanager
def scope(*place: str | int, seed: int | None = None) -> Iterator[Key]:
    """Draw from a separate stream for the duration of a ``with`` block (``ol.random_scope``).

    Draws inside depend on the seed and on `place` only, so neither the order of other draws nor the
    number of threads changes them, and they do not change draws outside.

    Parameters
    ----------
    place
        The names and numbers of the path, for instance ``("layer 2", 31)``.
    seed
        Replaces the surrounding seed.

    Yields
    ------
    Key
        The key of the scope.

    Notes
    -----
    A thread that is started inside does not inherit the scope (before Python 3.14, unless it runs
    in `contextvars.copy_context`): open one in it. Its draws there depend on the name alone,
    whatever other threads draw meanwhile.

    Examples
    --------
    >>> with scope("data", seed=1):
    ...     a = next_key()
    >>> a
    Key(seed=1, path=('data', 0))

    Four threads, each with its own scope, draw the same numbers in any order:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def job(i):
    ...     with scope("job", i, seed=1):
    ...         return next_key()
    >>> with ThreadPoolExecutor() as threads:
    ...     keys = list(threads.map(job, range(4)))
    >>> keys[2]
    Key(seed=1, path=('job', 2, 0))
    """
    key = Key(seed) if seed is not None else current_stream().key
    stream = Stream(key.fold(*place))
    token = _scopes.set(stream)
    try:
        yield stream.key
    finally:
        _scopes.reset(token)
