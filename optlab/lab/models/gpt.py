"""GPT: a language model that predicts the next symbol of a text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import no_grad
from optlab.backend import random
from optlab.nn import Dropout, Embedding, Layer, LayerList, LayerNorm, Linear, functional
from optlab.nn.initializer import Normal


class Block(Layer):
    r"""Causal self-attention, then a position-wise network, each with a residual connection.

    .. math:: h = x + \mathrm{mix}(\mathrm{attention}(\mathrm{norm}_1(x))), \quad
        y = h + \mathrm{narrow}(\mathrm{gelu}(\mathrm{wide}(\mathrm{norm}_2(h))))

    Parameters
    ----------
    width : int
        The embedding dimension.
    heads : int
        The number of attention heads.
    dropout : float
        The dropout probability before each residual addition.
    depth : int
        The number of blocks of the model: residual branches start smaller in deeper models.

    Raises
    ------
    ValueError
        If the width is not a multiple of the number of heads.

    Notes
    -----
    One matrix product computes queries, keys and values. Sources: Radford et al. 2019 (positions of
    the normalizations, initial weights), Vaswani et al. 2017.

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
        spread = 0.02 * math.sqrt(768 / width)  # GPT-2: width 768, standard deviation 0.02
        start, small = Normal(0.0, spread), Normal(0.0, spread / math.sqrt(2 * depth))
        self.norm1 = LayerNorm(width)
        self.look = Linear(width, 3 * width, start)
        self.mix = Linear(width, width, small)
        self.norm2 = LayerNorm(width)
        self.wide = Linear(width, 4 * width, start)
        self.narrow = Linear(4 * width, width, small)
        self.dropout = Dropout(dropout)

    def forward(self, x: Any) -> Any:
        """Return the output, [batch, length, width] as the input."""
        heads = (*x.shape[:-1], self.heads, x.shape[-1] // self.heads)
        query, key, value = (
            part.reshape(heads) for part in np.split(self.look(self.norm1(x)), 3, axis=-1)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.mix(seen.reshape(x.shape)))
        return x + self.dropout(self.narrow(functional.gelu(self.wide(self.norm2(x)))))


class GPT(Layer):
    """A network that predicts the next symbol at each position of a text from those before it.

    Parameters
    ----------
    vocabulary : int
        The number of symbols.
    length : int
        The context length.
    width : int
        The embedding dimension.
    depth : int
        The number of blocks.
    heads : int
        The number of attention heads per block.
    dropout : float
        The dropout probability, in each block and after the embedding.
    tied : bool
        Whether the embedding is also the weight of the output layer.

    Notes
    -----
    Source: Radford et al. 2019, "Language models are unsupervised multitask learners"; tied
    weights: Press and Wolf 2017.

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
        """Return the scores of the next symbol, [batch, length, vocabulary].

        Raises
        ------
        ValueError
            If the text is longer than the context length.
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
        """Return the sum of -log2 of the probabilities of all symbols of a text but the first.

        The text is read in windows that overlap by three quarters, so that each symbol (except at
        the start) is predicted from at least that much of the longest context.
        """
        quarter = max(1, self.length // 4)
        known = self.length - quarter
        total = 0.0
        starts = np.arange(0, max(1, len(symbols) - 1 - known), quarter)
        was = self.training
        self.eval()
        with no_grad():
            for group in np.split(starts, range(batch, len(starts), batch)):
                # A shorter last window is a batch of its own.
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
    """Group the starts of windows by length: those with `length` symbols, and each shorter one."""
    full = starts + length <= end
    return [part for part in (starts[full], *starts[~full][:, None]) if len(part)]
