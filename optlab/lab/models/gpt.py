"""A GPT: a network that reads a text and says which symbol comes next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.mode import no_grad
from optlab.backend import random
from optlab.nn import Dropout, Embedding, Layer, LayerList, LayerNorm, Linear, functional
from optlab.nn.initializer import Normal


class Block(Layer):
    r"""Attention to the past, then a small network on each place, with a residual around each.

    .. math:: h = x + \mathrm{mix}(\mathrm{attention}(\mathrm{norm}_1(x))), \quad
        y = h + \mathrm{narrow}(\mathrm{gelu}(\mathrm{wide}(\mathrm{norm}_2(h))))

    Parameters
    ----------
    width : int
        The length of the vector at each place.
    heads : int
        Into how many heads of attention the width is divided.
    dropout : float
        The probability of elements to be dropped before they are added to the residual.
    depth : int
        How many blocks the model has: what is added to the residual starts the smaller, the more
        there are.

    Raises
    ------
    ValueError
        If the width is no multiple of the heads.

    Notes
    -----
    Queries, keys and values are made by one product of matrices. Sources: Radford et al. 2019
    (where the normalisations stand, and how weights start), Vaswani et al. 2017.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.lab.models.Block(8, heads=2)(ol.ones([3, 5, 8])).shape
    (3, 5, 8)
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0, depth: int = 1) -> None:
        super().__init__()
        if heads < 1 or width < 1 or width % heads:
            raise ValueError(f"Block: a width of {width} cannot be divided into {heads} heads.")
        self.heads = heads
        spread = 0.02 * math.sqrt(768 / width)  # GPT-2 has a width of 768 and a spread of 0.02
        start, small = Normal(0.0, spread), Normal(0.0, spread / math.sqrt(2 * depth))
        self.norm1 = LayerNorm(width)
        self.look = Linear(width, 3 * width, start)
        self.mix = Linear(width, width, small)
        self.norm2 = LayerNorm(width)
        self.wide = Linear(width, 4 * width, start)
        self.narrow = Linear(4 * width, width, small)
        self.dropout = Dropout(dropout)

    def forward(self, x: Any) -> Any:
        """Give the output, of the shape [batch, length, width] of the input."""
        heads = (*x.shape[:-1], self.heads, x.shape[-1] // self.heads)
        query, key, value = (
            part.reshape(heads) for part in np.split(self.look(self.norm1(x)), 3, axis=-1)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.mix(seen.reshape(x.shape)))
        return x + self.dropout(self.narrow(functional.gelu(self.wide(self.norm2(x)))))


class GPT(Layer):
    """Say for each place of a text which symbol comes next, from all those before it.

    Parameters
    ----------
    vocabulary : int
        How many symbols there are.
    length : int
        The longest text it can read at once.
    width : int
        The length of the vector at each place.
    depth : int
        How many blocks.
    heads : int
        How many heads of attention in each.
    dropout : float
        The probability of elements to be dropped, in each block and after the embedding.
    tied : bool
        Whether what reads the symbols is also what gives their scores.

    Notes
    -----
    Source: Radford et al. 2019, "Language models are unsupervised multitask learners"; weights
    that are tied: Press and Wolf 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model = ol.lab.models.GPT(vocabulary=10, length=8, width=16, depth=2, heads=2)
    >>> model(np.zeros((3, 8), dtype=int)).shape
    (3, 8, 10)
    >>> len(model.generate([1, 2], count=4, seed=0))
    6
    """

    def __init__(
        self,
        vocabulary: int,
        length: int,
        width: int = 128,
        depth: int = 4,
        heads: int = 4,
        dropout: float = 0.0,
        tied: bool = True,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"GPT has at least one block; got depth={depth!r}.")
        self.length = length
        start = Normal(0.0, 0.02)
        self.symbols = Embedding(vocabulary, width, weight_attr=start)
        self.places = Embedding(length, width, weight_attr=start)
        self.dropout = Dropout(dropout)
        self.blocks = LayerList([Block(width, heads, dropout, depth) for _ in range(depth)])
        self.norm = LayerNorm(width)
        self.head = None if tied else Linear(width, vocabulary, start, bias_attr=False)

    def forward(self, symbols: Any) -> Any:
        """Give the scores of the next symbol, [batch, length, vocabulary].

        Raises
        ------
        ValueError
            If the text is longer than the model can read.
        """
        length = np.shape(symbols)[-1]
        if length > self.length:
            raise ValueError(f"this GPT reads {self.length} symbols at once; got {length}.")
        x = self.dropout(self.symbols(symbols) + self.places(np.arange(length)))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.head is not None:
            return self.head(x)
        return functional.linear(x, self.symbols.weight.T)

    def bits(self, symbols: np.ndarray, batch: int = 16) -> float:
        """Give the sum of -log2 of the probabilities of all symbols of a text but the first.

        The text is read in pieces that overlap by three quarters, so that each symbol (but those
        at the start) is predicted from at least that much of what the model can read.
        """
        quarter = max(1, self.length // 4)
        known = self.length - quarter
        total = 0.0
        starts = np.arange(0, max(1, len(symbols) - 1 - known), quarter)
        was = self.training
        self.eval()
        with no_grad():
            for group in np.split(starts, range(batch, len(starts), batch)):
                # The last piece of the text may be shorter than the others: on its own then.
                for pieces in _of_one_length(group, len(symbols) - 1, self.length):
                    stop = min(self.length, len(symbols) - 1 - pieces[0])
                    at = pieces[:, None] + np.arange(stop)
                    log_probability = functional.log_softmax(self(symbols[at])).numpy()
                    found = np.take_along_axis(log_probability, symbols[at + 1][..., None], -1)
                    new = np.where(pieces[:, None] == 0, 0, known) <= np.arange(stop)
                    total -= float(np.sum(found[..., 0], where=new, dtype=np.float64))
        if was:
            self.train()
        return total / math.log(2)

    def generate(
        self, start: Any, count: int, temperature: float = 1.0, seed: int | None = None
    ) -> np.ndarray:
        """Go on with a text.

        Parameters
        ----------
        start : array of int
            The symbols to start with, at least one.
        count : int
            How many to add.
        temperature : float
            Below 1 likely symbols are preferred; 0 takes the likeliest each time.
        seed : int, optional
            By default it is drawn.
        """
        found = [int(symbol) for symbol in start]
        if not found:
            raise ValueError("generate needs at least one symbol to start with.")
        key = random.next_key() if seed is None else random.Key(seed)
        draws = key.generator().random(count)
        was = self.training
        self.eval()
        with no_grad():
            for draw in draws:
                scores = self(np.array([found[-self.length :]]))[0, -1].numpy().astype(np.float64)
                if temperature == 0:
                    found.append(int(scores.argmax()))
                    continue
                weights = np.exp((scores - scores.max()) / temperature).cumsum()
                found.append(int(np.searchsorted(weights, draw * weights[-1])))
        if was:
            self.train()
        return np.array(found)


def _of_one_length(starts: np.ndarray, end: int, length: int) -> list[np.ndarray]:
    """Sort the starts of pieces into those with `length` symbols up to `end`, and shorter ones."""
    full = starts + length <= end
    return [part for part in (starts[full], *starts[~full][:, None]) if len(part)]
