"""Starting a Philox generator from words that are already well mixed.

``Philox(key=...)`` first makes a `SeedSequence` from the operating system's entropy and then throws
it away, which takes longer than all the rest; a seed sequence that simply hands over the words
skips that. It also gives ``generator.spawn`` children that come from the key, not from the system.

Apart from `random`, because it imports ``numpy.random``, which costs time that only programs that
draw should pay.
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
        """Mix the words out of any text."""
        digest = hashlib.blake2b(text, digest_size=16).digest()
        return cls(np.frombuffer(digest, "<u8"))

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Give the words (NumPy calls this)."""
        if (n_words, np.dtype(dtype)) != (2, np.uint64):
            raise ValueError("these words are the key of a Philox generator, and of no other.")
        return self.words

    def spawn(self, n_children: int) -> list[Any]:
        """Give words for `n_children` further generators (``generator.spawn`` calls this)."""
        first = self.children
        self.children += n_children
        return [Words.of(self.words.tobytes() + b"%d" % (first + i)) for i in range(n_children)]


def generator_of(text: bytes) -> Generator:
    """Give a generator at the start of the stream that `text` names."""
    return Generator(Philox(Words.of(text)))  # type: ignore[arg-type]  # any ISeedSequence will do
