"""A baseline for models of text: n-gram counts with interpolated Kneser-Ney smoothing.

Every count is reduced by a discount, whose mass goes to the next shorter context; shorter contexts
count in how many different longer ones a symbol was seen, not how often. Three discounts (for
counts of 1, 2 and more) follow from the numbers of n-grams with counts of 1 to 4. It is the best
known smoothing method for n-grams (Chen and Goodman 1999).
"""

from __future__ import annotations

import math

import numpy as np

#: Contexts are 64-bit integers.
_BITS = 63


class KneserNey:
    """Probabilities of the next symbol, given the last ``order - 1`` symbols.

    Parameters
    ----------
    symbols : array of int, shape [length]
        The text to count, each symbol a number from 0 to ``vocabulary - 1``.
    order : int
        The number of symbols of an n-gram; the context is the last `order` - 1.
    vocabulary : int
        The number of different symbols.

    Raises
    ------
    ValueError
        If the n-grams do not fit into 64 bits, or the text is shorter than one.

    Notes
    -----
    Source: Chen and Goodman 1999, "An empirical study of smoothing techniques for language
    modeling" (modified Kneser-Ney). The shortest context interpolates with the uniform
    distribution.

    Examples
    --------
    >>> import numpy as np
    >>> text = np.array([0, 1, 2] * 50)
    >>> model = KneserNey(text, order=2, vocabulary=3)
    >>> bool(model.probabilities(np.array([0, 1, 2, 0]))[1:].min() > 0.9)
    True
    """

    def __init__(self, symbols: np.ndarray, order: int, vocabulary: int) -> None:
        bits = max(1, math.ceil(math.log2(vocabulary)))
        if order < 1 or order * bits > _BITS:
            raise ValueError(
                f"n-grams of {vocabulary} symbols have an order from 1 to {_BITS // bits}; got "
                f"{order!r}."
            )
        if len(symbols) < order:
            raise ValueError(f"a text of {len(symbols)} symbols holds no n-gram of order {order}.")
        self.order, self.vocabulary, self._bits = order, vocabulary, bits
        self._levels: list[_Level] = []
        codes = self._codes(symbols, order)
        grams, counts = np.unique(codes, return_counts=True)
        for _ in range(order):
            self._levels.append(_Level(grams, counts, bits))
            # A shorter n-gram counts once for each symbol that was seen before it.
            length = order - len(self._levels)
            grams, counts = np.unique(grams & ((1 << bits * length) - 1), return_counts=True)
        self._levels.reverse()

    def _codes(self, symbols: np.ndarray, length: int) -> np.ndarray:
        """Return each run of symbols as one number, the last symbol in its lowest bits."""
        codes = np.zeros(len(symbols) - length + 1, np.int64)
        for i in range(length):
            codes = codes << self._bits | symbols[i : len(symbols) - length + 1 + i]
        return codes

    def probabilities(self, symbols: np.ndarray) -> np.ndarray:
        """Return the probability of each symbol after those before it.

        The first symbols have fewer before them and use shorter contexts.
        """
        found = np.full(len(symbols), 1 / self.vocabulary)
        for length, level in enumerate(self._levels, start=1):
            if length <= len(symbols):
                codes = self._codes(symbols, length)
                found[length - 1 :] = level.interpolated(codes, found[length - 1 :])
        return found

    def bits(self, symbols: np.ndarray) -> float:
        """Return the mean of -log2 of the probabilities: bits per symbol."""
        return float(-np.log2(self.probabilities(symbols)).mean())


class _Level:
    """The counts of n-grams of one length."""

    def __init__(self, grams: np.ndarray, counts: np.ndarray, bits: int) -> None:
        self.grams, self.bits = grams, bits
        of = [int(np.count_nonzero(counts == i)) for i in range(5)]
        share = of[1] / max(1, of[1] + 2 * of[2])
        discounts = np.zeros(4)
        for i in (1, 2, 3):
            known = of[i] and of[i + 1]
            discount = i - (i + 1) * share * of[i + 1] / of[i] if known else 0.5
            discounts[i] = min(max(discount, 0.05), i - 0.05)
        taken = discounts[np.minimum(counts, 3)]
        self.left = counts - taken
        self.contexts, starts = np.unique(grams >> bits, return_index=True)
        self.totals = np.add.reduceat(counts, starts)
        self.backoff = np.add.reduceat(taken, starts) / self.totals

    def interpolated(self, codes: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """Return the probabilities of n-grams, from those in the next shorter context."""
        contexts = codes >> self.bits
        at = np.minimum(np.searchsorted(self.contexts, contexts), len(self.contexts) - 1)
        seen = self.contexts[at] == contexts
        gram = np.minimum(np.searchsorted(self.grams, codes), len(self.grams) - 1)
        left = np.where(self.grams[gram] == codes, self.left[gram], 0.0)
        here: np.ndarray = left / self.totals[at] + self.backoff[at] * shorter
        return np.where(seen, here, shorter)


def best_order(
    symbols: np.ndarray, vocabulary: int, orders: range = range(1, 10), share: float = 0.9
) -> int:
    """Return the order of `KneserNey` that predicts the last part of a training text best.

    Parameters
    ----------
    symbols : array of int
        The training text. Its first part is counted, its last one predicted; held-out data are not
        used.
    vocabulary : int
    orders : range
        The orders to try.
    share : float
        The share of the first part.

    Examples
    --------
    >>> import numpy as np
    >>> best_order(np.array([0, 1, 0, 2, 1] * 40), 3, range(1, 4))
    3
    """
    cut = round(share * len(symbols))
    return min(orders, key=lambda n: KneserNey(symbols[:cut], n, vocabulary).bits(symbols[cut:]))
