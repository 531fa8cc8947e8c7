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
        start, small = Normal(0.0, 0.02), Normal(0.0, 0.02 / math.sqrt(2 * depth))
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
