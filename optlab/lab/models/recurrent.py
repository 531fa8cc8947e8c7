"""A language model of characters with a recurrent memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import no_grad
from optlab.backend import random
from optlab.nn import LSTM, Dropout, Embedding, Layer, Linear, functional


class CharLSTM(Layer):
    """An LSTM that predicts the next symbol at each position of a text.

    Parameters
    ----------
    vocabulary : int
        The number of symbols.
    width : int
        Of the embedding and of the memory.
    depth : int
        The number of LSTM layers.
    dropout : float
        The dropout probability before the output layer.

    References
    ----------
    Hochreiter and Schmidhuber, Long short-term memory, 1997; Graves, Generating sequences with
    recurrent neural networks, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model = ol.models.CharLSTM(vocabulary=20, width=16)
    >>> model(np.zeros((3, 7), dtype=int)).shape
    (3, 7, 20)
    >>> len(model.generate([1, 2], count=4, seed=0))
    6
    """

    def __init__(
        self, vocabulary: int, width: int = 128, depth: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.symbols = Embedding(vocabulary, width)
        self.memory = LSTM(width, width, num_layers=depth)
        self.dropout = Dropout(dropout)
        self.head = Linear(width, vocabulary)

    def forward(self, symbols: Any) -> Any:
        """Return the scores of the next symbol, [batch, length, vocabulary]."""
        states, _ = self.memory(self.symbols(symbols))
        return self.head(self.dropout(states))

    def bits(self, symbols: np.ndarray, length: int = 256, batch: int = 32) -> float:
        """Return the sum of -log2 of the probabilities of all symbols of a text but the first.

        The text is read in windows whose first half is context, except at its start.

        Parameters
        ----------
        symbols : array of int
        length : int
            Of a window.
        batch : int
            Windows at once.
        """
        half = max(1, length // 2)
        starts = list(range(0, max(1, len(symbols) - 1 - half), half))
        total = 0.0
        was = self.training
        self.eval()
        with no_grad():
            full = [at for at in starts if at + length <= len(symbols) - 1]
            groups = [full[i : i + batch] for i in range(0, len(full), batch)]
            groups += [[at] for at in starts[len(full) :]]
            for group in groups:
                stop = min(length, len(symbols) - 1 - group[0])
                at = np.array(group)[:, None] + np.arange(stop)
                log_probability = functional.log_softmax(self(symbols[at])).numpy()
                found = np.take_along_axis(log_probability, symbols[at + 1][..., None], -1)[..., 0]
                new = np.where(np.array(group)[:, None] == 0, 0, half) <= np.arange(stop)
                total -= float(np.sum(found, where=new, dtype=np.float64))
        if was:
            self.train()
        return total / math.log(2)

    def generate(
        self, start: Any, count: int, temperature: float = 1.0, seed: int | None = None
    ) -> np.ndarray:
        """Continue a text.

        Parameters
        ----------
        start : array of int
            The first symbols, at least one.
        count : int
            How many symbols to add.
        temperature : float
            Below 1 favors likely symbols; 0 takes the likeliest each time.
        seed : int, optional
            By default drawn from the current random stream.
        """
        found = [int(symbol) for symbol in start]
        if not found:
            raise ValueError("generate needs at least one symbol to start with.")
        key = random.next_key() if seed is None else random.Key(seed)
        draws = key.generator().random(count)
        was = self.training
        self.eval()
        states: Any = None
        new = np.array([found])
        with no_grad():
            for draw in draws:
                output, states = self.memory(self.symbols(new), states)
                scores = self.head(output[0, -1]).numpy().astype(np.float64)
                if temperature == 0:
                    found.append(int(scores.argmax()))
                else:
                    weights = np.exp((scores - scores.max()) / temperature).cumsum()
                    found.append(int(np.searchsorted(weights, draw * weights[-1])))
                new = np.array([found[-1:]])
        if was:
            self.train()
        return np.array(found)
