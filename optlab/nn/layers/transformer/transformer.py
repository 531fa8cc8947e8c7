"""Transformer, an encoder and a decoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.creation import to_tensor
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.nn.base.layer import Layer
from optlab.nn.docstrings import documented_like
from optlab.nn.layers.norm.layer_norm import LayerNorm
from optlab.nn.layers.transformer.blocks import (
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

#: For lists of 1, 2 or 3 settings: their positions for the two parts of an encoder layer, and for
#: the three of a decoder layer.
_SHARES = {1: ((0, 0), (0, 0, 0)), 2: ((0, 1), (0, 0, 1)), 3: ((0, 2), (0, 1, 2))}


def _split_settings(given: Any, argument: str) -> tuple[Any, Any]:
    """Return the settings of encoder layers and those of decoder layers."""
    if not isinstance(given, (list, tuple)):
        return given, given
    if len(given) not in _SHARES:
        raise ValueError(
            f"Transformer takes {argument} as one setting, or a list of 1 to 3; got {len(given)}."
        )
    reading, writing = _SHARES[len(given)]
    return [given[i] for i in reading], [given[i] for i in writing]


@documented_like(TransformerEncoderLayer)
class Transformer(Layer):
    """Apply a transformer, an encoder and a decoder.

    Parameters
    ----------
    d_model : int
        Width of inputs and output.
    num_encoder_layers, num_decoder_layers : int
        Numbers of layers.
    dim_feedforward : int
        Width of the hidden layers of the feed-forward networks.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, or a list of them, optional
        Settings of all weights and biases. A list of two: for attention, for the feed-forward
        networks. Of three: for self-attention, for cross-attention, for the feed-forward networks.
    custom_encoder, custom_decoder : Layer, optional
        Replacements of the encoder, called with (src, src_mask), and of the decoder, called with
        (tgt, memory, tgt_mask, memory_mask).

    Raises
    ------
    ValueError
        If `nhead` does not divide the width, or a setting is not known.

    See Also
    --------
    optlab.nn.TransformerEncoder, optlab.nn.TransformerDecoder : the two stacks.

    Notes
    -----
    Each stack ends with a `LayerNorm`. Source: Vaswani et al. 2017. Signature:
    paddle.nn.Transformer.

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.nn.Transformer(8, 2, 1, 1, 16)
    >>> mask = model.generate_square_subsequent_mask(5)
    >>> model(ol.ones([3, 7, 8]), ol.ones([3, 5, 8]), tgt_mask=mask).shape
    (3, 5, 8)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str = "relu", attn_dropout: float | None = None,
        act_dropout: float | None = None, normalize_before: bool = False, weight_attr: Any = None,
        bias_attr: Any = None, custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        self.d_model, self.nhead = d_model, nhead
        weights, biases = (
            _split_settings(weight_attr, "weight_attr"),
            _split_settings(bias_attr, "bias_attr"),
        )
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout,
                 normalize_before)  # fmt: skip
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, weights[0], biases[0], dtype=dtype),
            num_encoder_layers,
            LayerNorm(d_model, dtype=dtype),
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, weights[1], biases[1], dtype=dtype),
            num_decoder_layers,
            LayerNorm(d_model, dtype=dtype),
        )

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None,
        memory_mask: Any = None,
    ) -> Any:  # fmt: skip
        """Encode `src`, and decode `tgt` with it.

        Parameters
        ----------
        src : Tensor, shape [batch, length, d_model]
        tgt : Tensor, shape [batch, other length, d_model]
        src_mask, tgt_mask, memory_mask : Tensor or array, optional
            Masks of attention within the source, within the target, and from target to source, as
            in `MultiHeadAttention`.
        """
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    def generate_square_subsequent_mask(self, length: Any) -> Tensor:
        """Return a causal mask: 0 up to the own position, -inf for later ones.

        Parameters
        ----------
        length : int
            Length of the sequence.

        Returns
        -------
        Tensor, shape [length, length]
            On the device of the parameters.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.nn.Transformer(8, 2, 1, 1, 16).generate_square_subsequent_mask(3)
        Tensor([[  0., -inf, -inf],
                [  0.,   0., -inf],
                [  0.,   0.,   0.]], dtype=float32)
        """
        count = int(getattr(raw(length), "item", lambda: length)())
        if count < 1:
            raise ValueError(f"a mask is for sequences of at least 1 place; got {length!r}.")
        mask = np.triu(np.full((count, count), -np.inf, np.float32), 1)
        first = next(iter(self.parameters()), None)
        made = to_tensor(mask)
        return made if first is None else made.to(first.device, first.dtype)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"d_model={self.d_model}, nhead={self.nhead}"
