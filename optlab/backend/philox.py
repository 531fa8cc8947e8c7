"""Philox generators that start from words that are already mixed.

``Philox(key=...)`` first creates a `SeedSequence` from the operating system's entropy and then
discards it, which takes longer than all the rest; a seed sequence that just returns the words
avoids that. It also gives ``generator.spawn`` children that derive from the key, not from the
system.

Separate from `random`, as importing ``numpy.random`` takes time that only programs that draw should
pay for.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.random import Generator, Philox
from numpy.random.bit_generator import ISpawnableSeedSequence


class Words(ISpawnableSeedSequence):
    """The two words that a Philox generator takes as its key.

    Examples
    --------
    >>> one, other = generator_of(b"here").spawn(2)
    >>> one.random() == other.random()
    False
    """

    __slots__ = ("children", "words")

    def __init__(self, words: np.ndarray) -> None:
        self.words = words
        self.children = 0

    @classmethod
    def of(cls, text: bytes) -> Words:
        """Hash any text to words."""
        digest = hashlib.blake2b(text, digest_size=16).digest()
        return cls(np.frombuffer(digest, "<u8"))

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Return the words (NumPy calls this)."""
        if (n_words, np.dtype(dtype)) != (2, np.uint64):
            raise ValueError("these words are the key of a Philox generator, and of no other.")
        return self.words

    def spawn(self, n_children: int) -> list[Any]:
        """Return words for `n_children` more generators (``generator.spawn`` calls this)."""
        first = self.children
        self.children += n_children
        return [Words.of(self.words.tobytes() + b"%d" % (first + i)) for i in range(n_children)]


def generator_of(text: bytes) -> Generator:
    """Return a generator at the start of the stream that `text` names."""
    return Generator(Philox(Words.of(text)))  # type: ignore[arg-type]  # any ISeedSequence will do
