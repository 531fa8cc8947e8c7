"""Random keys: every draw is a function of a seed and of a place, never of a hidden global state.

A `Key` is a seed and a path, for example ``(7, "layer 2", "step 31")``. Its hash starts a Philox
generator (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), a counter-based one:
the same key gives the same numbers whatever was drawn elsewhere before. A `scope` names a place;
draws inside it are numbered within that place alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Key(NamedTuple):
    """Where random numbers come from: a seed and the path of the place that draws them.

    Examples
    --------
    >>> key = Key(7).fold("dropout", 3)
    >>> bool(key.generator().random() == Key(7).fold("dropout", 3).generator().random())
    True
    """

    seed: int
    path: tuple[str | int, ...] = ()

    def fold(self, *place: str | int) -> Key:
        """Give the key of a place below this one."""
        plain = (part if isinstance(part, str) else int(part) for part in place)
        return Key(int(self.seed), (*self.path, *plain))

    def generator(self) -> np.random.Generator:
        """Give a NumPy generator at the start of this key's own stream."""
        import hashlib

        from numpy.random import Generator, Philox

        seed, path = Key(self.seed).fold(*self.path)  # equal keys must hash alike
        digest = hashlib.blake2b(repr((seed, path)).encode(), digest_size=16).digest()
        return Generator(Philox(key=int.from_bytes(digest, "little")))


class _Stream:
    """The draws of one place, numbered from 0."""

    __slots__ = ("draws", "key")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.draws = itertools.count()

    def next_key(self) -> Key:
        return self.key.fold(next(self.draws))


_scopes: ContextVar[_Stream | None] = ContextVar("optlab random scope", default=None)
_root: _Stream | None = None


def seed(n: int) -> None:
    """Fix every random draw that follows, to the bit.

    Parameters
    ----------
    n : int
        Any integer. Without a call of `seed` the numbers differ from run to run.

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
    global _root
    try:
        n = int(n.__index__())
    except AttributeError:
        raise TypeError(
            f"seed takes an integer, but got {n!r} of type {type(n).__name__}."
        ) from None
    _root = _Stream(Key(n))


def next_key() -> Key:
    """Give a fresh key: the next one of the innermost `scope`, or of the whole program."""
    stream = _scopes.get() or _root
    if stream is None:
        import secrets

        seed(secrets.randbits(63))
        assert _root is not None
        stream = _root
    return stream.next_key()


@contextmanager
def scope(*place: str | int, seed: int | None = None) -> Iterator[Key]:
    """Draw from a place of its own for the length of a ``with`` block.

    What is drawn inside depends on the seed and on `place` only, so neither the order of other
    draws nor the number of threads changes it; and nothing outside notices what was drawn inside.

    Parameters
    ----------
    place
        The names and numbers that say where, for instance ``("layer 2", 31)``.
    seed
        Start from this seed instead of the surrounding one.

    Examples
    --------
    >>> with scope("data", seed=1):
    ...     a = next_key()
    >>> a
    Key(seed=1, path=('data', 0))
    """
    if seed is not None:
        key = Key(seed)
    else:
        outer = _scopes.get() or _root
        key = outer.key if outer is not None else next_key()
    stream = _Stream(key.fold(*place))
    token = _scopes.set(stream)
    try:
        yield stream.key
    finally:
        _scopes.reset(token)
