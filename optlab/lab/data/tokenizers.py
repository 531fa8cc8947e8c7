"""Tokenizers: text to integers and back, by characters or by byte-pair encoding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random

import numpy as np

#: Units that are never merged: words with the space before them, line ends with the spaces after
#: them, and other signs.
_WORD = re.compile(r"[ ]?\w+|\n+[ ]*|[ ]+|[ ]?[^\w\s]+|\s")
#: How many segmentations of a word one encoding of a text uses, if pairs are skipped.
_WAYS = 4


class Characters:
    """Each character is a symbol.

    Parameters
    ----------
    text : str
        Its characters, in the order of their code points, are the symbols.

    Examples
    --------
    >>> letters = Characters("banana")
    >>> letters.encode("ban")
    array([1, 0, 2])
    >>> letters.decode([2, 0]), len(letters)
    ('na', 3)
    """

    def __init__(self, text: str) -> None:
        self.symbols = sorted(set(text))
        self._numbers = {symbol: i for i, symbol in enumerate(self.symbols)}

    def __len__(self) -> int:
        return len(self.symbols)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} symbols>"

    def encode(self, text: str) -> np.ndarray:
        """Return the number of each symbol of the text.

        Raises
        ------
        ValueError
            If a character is none of the symbols.
        """
        return np.array(self._numbers_of(text), dtype=np.int64)

    def _numbers_of(self, symbols: Iterable[str]) -> list[int]:
        try:
            return [self._numbers[symbol] for symbol in symbols]
        except KeyError as error:
            raise ValueError(
                f"{error.args[0]!r} is none of the {len(self)} symbols of this vocabulary."
            ) from None

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of the numbers."""
        return "".join(self.symbols[int(number)] for number in numbers)


class BytePairs(Characters):
    """Byte-pair encoding: characters, and the most frequent pairs, merged repeatedly.

    Parameters
    ----------
    text : str
        Its characters are symbols, and pairs are counted in it. Words, line ends with their
        indentation, and other signs are never merged with each other.
    size : int
        The number of symbols to stop at.
    alphabet : str, optional
        More characters to include.

    Notes
    -----
    Source: Sennrich, Haddow and Birch 2016 (for translation); Gage 1994 (to compress data).

    Examples
    --------
    >>> pairs = BytePairs("low lower lowest", size=10)
    >>> pairs.symbols[-2:]
    ['lo', 'low']
    >>> pairs.decode(pairs.encode("slow")), len(pairs.encode("slow"))
    ('slow', 2)
    """

    def __init__(self, text: str, size: int, alphabet: str = "") -> None:
        super().__init__(text + alphabet)
        self._known: dict[str, list[list[int]]] = {}
        self.ranks: dict[tuple[str, str], int] = {}
        words = [(list(word), count) for word, count in Counter(_WORD.findall(text)).items()]
        while len(self.symbols) < size:
            pairs: Counter[tuple[str, str]] = Counter()
            for parts, count in words:
                for pair in pairwise(parts):
                    pairs[pair] += count
            if not pairs:
                break
            best = min(pairs, key=lambda pair: (-pairs[pair], pair))  # deterministic in ties
            self.ranks[best] = len(self.ranks)
            joined = "".join(best)
            if joined not in self._numbers:
                self._numbers[joined] = len(self.symbols)
                self.symbols.append(joined)
            for i, (parts, count) in enumerate(words):
                if joined in "".join(parts):
                    words[i] = (_merge_pair(parts, best), count)

    def encode(self, text: str, skip: float = 0.0, seed: int = 0) -> np.ndarray:
        """Return the numbers of the symbols of the text, merging pairs in the order learned.

        Parameters
        ----------
        text : str
        skip : float
            The probability of not merging a pair, so that a word has several segmentations.
            Training on many of them reduces overfitting.
        seed : int
            The seed of the segmentation.

        Raises
        ------
        ValueError
            If a character is none of the symbols, or `skip` is no probability below 1.

        Notes
        -----
        Source of `skip`: Provilkov, Emelianenko and Voita 2020, "BPE-dropout".
        """
        if not 0 <= skip < 1:
            raise ValueError(f"skip is a probability from 0 to below 1; got {skip!r}.")
        if not skip:
            known, ways, draws = self._known, 1, None
        else:
            known, ways, draws = {}, _WAYS, Random(f"pairs to skip, {seed}")
        found: list[int] = []
        for place, word in enumerate(_WORD.findall(text)):
            if word not in known:
                parts = (self._parts(word, skip, draws) for _ in range(ways))
                known[word] = [self._numbers_of(one) for one in parts]
            found += known[word][place % ways]
        return np.array(found, dtype=np.int64)

    def _parts(self, word: str, skip: float, draws: Random | None) -> list[str]:
        parts = list(word)
        while len(parts) > 1:
            known = {pair for pair in pairwise(parts) if pair in self.ranks}
            if draws is not None:
                known = {pair for pair in sorted(known) if draws.random() >= skip}
            if not known:
                break
            parts = _merge_pair(parts, min(known, key=self.ranks.__getitem__))
        return parts


def _merge_pair(parts: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Merge each occurrence of a pair, from left to right."""
    after: list[str] = []
    i = 0
    while i < len(parts):
        if tuple(parts[i : i + 2]) == pair:
            after.append(parts[i] + parts[i + 1])
            i += 2
        else:
            after.append(parts[i])
            i += 1
    return after
