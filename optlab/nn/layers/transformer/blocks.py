"""Transformer layers: attention and feed-forward networks, each with a residual connection."""

from __future__ import annotations

from typing import Any, ClassVar

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.docstrings import documented_like, inherit_docstring
from optlab.nn.layers.containers import LayerList
from optlab.nn.layers.dropout import Dropout
from optlab.nn.layers.linear import Linear
from optlab.nn.layers.norm.layer_norm import LayerNorm
from optlab.nn.layers.transformer.attention import MultiHeadAttention, StaticCache

_ACTIVATIONS = (
    "relu", "gelu", "silu", "swish", "tanh", "sigmoid", "elu", "selu", "leaky_relu", "mish",
)  # fmt: skip


def _settings_per_part(given: Any, count: int, name: str) -> list[Any]:
    """Return the setting of each part, from one for all or a list."""
    if not isinstance(given, (list, tuple)):
        return [given] * count
    if len(given) != count:
        raise ValueError(f"{name} has {len(given)} settings; it takes one, or one for each of the "
                         f"{count} parts.")  # fmt: skip
    return list(given)


class _Block(Layer):
    """Base class of the layers of encoder and decoder.

    Parameters
    ----------
    d_model : int
        Width of input and output.
    nhead : int
        Number of attention heads.
    dim_feedforward : int
        Width of the hidden layer of the feed-forward network.
    dropout : float
        Probability of an element to be dropped before it is added to the residual.
    activation : str
        Name of a function of ``optlab.nn.functional``, such as 'relu' or 'gelu'.
    attn_dropout, act_dropout : float, optional
        Dropout probabilities of the attention weights and after the activation; by default
        `dropout`.
    normalize_before : bool
        Whether to normalize the input of each part rather than its sum with the residual.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, or a list of them, optional
        Settings of all weights and biases, or a list with one for each part.
    layer_norm_eps : float
        Added to the variances.
    dtype : str or dtype
        Dtype of the parameters.

    Raises
    ------
    ValueError
        If `nhead` does not divide the width, or the activation is not known.
    """

    _parts = 2

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1,
        activation: str = "relu", attn_dropout: float | None = None,
        act_dropout: float | None = None, normalize_before: bool = False, weight_attr: Any = None,
        bias_attr: Any = None, layer_norm_eps: float = 1e-5, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if activation not in _ACTIVATIONS:
            raise ValueError(f"{name} takes activation={', '.join(map(repr, _ACTIVATIONS))}; got "
                             f"{activation!r}.")  # fmt: skip
        self._settings = {
            "d_model": d_model, "nhead": nhead, "dim_feedforward": dim_feedforward,
            "dropout": dropout, "activation": activation, "attn_dropout": attn_dropout,
            "act_dropout": act_dropout, "normalize_before": normalize_before,
            "weight_attr": weight_attr, "bias_attr": bias_attr, "layer_norm_eps": layer_norm_eps,
            "dtype": dtype,
        }  # fmt: skip
        self.normalize_before = normalize_before
        self.activation = getattr(functional, activation)
        weights = _settings_per_part(weight_attr, self._parts, "weight_attr")
        biases = _settings_per_part(bias_attr, self._parts, "bias_attr")
        within = dropout if attn_dropout is None else attn_dropout

        def attention(part: int) -> MultiHeadAttention:
            return MultiHeadAttention(
                d_model, nhead, within, weight_attr=weights[part], bias_attr=biases[part],
                dtype=dtype,
            )  # fmt: skip

        self.self_attn = attention(0)
        if self._parts == 3:
            self.cross_attn = attention(1)
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1], dtype=dtype)
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1], dtype=dtype)
        for part in range(1, self._parts + 1):
            setattr(self, f"norm{part}", LayerNorm(d_model, layer_norm_eps, dtype=dtype))
            setattr(self, f"dropout{part}", Dropout(dropout))

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _with_residual(self, part: int, x: Any, inner: Any) -> Any:
        """Apply `inner` with dropout and a residual connection, normalized before or after."""
        norm, dropout = getattr(self, f"norm{part}"), getattr(self, f"dropout{part}")
        y = x + dropout(inner(norm(x) if self.normalize_before else x))
        return y if self.normalize_before else norm(y)


@inherit_docstring
class TransformerEncoderLayer(_Block):
    """Apply self-attention, then a feed-forward network, each with a residual connection.

    Parameters
    ----------
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, or a list of them, optional
        Settings of all weights and biases, or a list of two: for self-attention, for the
        feed-forward network.

    Notes
    -----
    Source: Vaswani et al. 2017; `normalize_before`: Xiong et al. 2020.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.TransformerEncoderLayer(8, 2, 16)(ol.ones([3, 5, 8])).shape
    (3, 5, 8)
    """

    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any:
        """Return the output, and the new cache if one was given."""
        after = []

        def attend(x: Any) -> Any:
            y = self.self_attn(x, x, x, src_mask, cache)
            if cache is None:
                return y
            after.append(y[1])
            return y[0]

        y = self._with_residual(2, self._with_residual(1, src, attend), self._feed_forward)
        return y if cache is None else (y, after[0])

    def gen_cache(self, src: Any) -> Any:
        """Return an empty cache for the batch of `src`."""
        return self.self_attn.gen_cache(src)


@inherit_docstring
class TransformerDecoderLayer(_Block):
    """Apply self-attention, cross-attention to the encoder output, then a feed-forward network.

    Parameters
    ----------
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, or a list of them, optional
        Settings of all weights and biases, or a list of three: for self-attention, for
        cross-attention, for the feed-forward network.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(ol.ones([3, 5, 8]), ol.ones([3, 7, 8])).shape
    (3, 5, 8)
    """

    _parts = 3

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        cache: Any = None,
    ) -> Any:  # fmt: skip
        """Return the output, and the pair of new caches if a pair was given."""
        own, other = (None, None) if cache is None else cache
        after = []

        def attend(x: Any) -> Any:
            y = self.self_attn(x, x, x, tgt_mask, own)
            if own is None:
                return y
            after.append(y[1])
            return y[0]

        def attend_to_memory(x: Any) -> Any:
            y = self.cross_attn(x, memory, memory, memory_mask, other)
            return y if other is None else y[0]

        y = self._with_residual(2, self._with_residual(1, tgt, attend), attend_to_memory)
        y = self._with_residual(3, y, self._feed_forward)
        return y if cache is None else (y, (after[0], other))

    def gen_cache(self, memory: Any) -> tuple[Any, Any]:
        """Return an empty cache, and one of the keys and values of `memory`."""
        return (
            self.self_attn.gen_cache(memory),
            self.cross_attn.gen_cache(memory, memory, type=StaticCache),
        )


class _Stack(Layer):
    """Base class of encoder and decoder: layers in a chain, then an optional normalization."""

    #: The class of the layers.
    _kind: ClassVar[type[_Block]]

    def _fill(self, first: Any, count: int, norm: Layer | None) -> None:
        """Set the first layer and copies of it with initial values of their own."""
        stack = type(self).__name__
        if not isinstance(first, self._kind):
            raise TypeError(f"{stack} takes a {self._kind.__name__}; got {type(first).__name__}.")
        if count < 1:
            raise ValueError(f"{stack} has at least 1 layer; got num_layers={count!r}.")
        copies = (type(first)(**first._settings) for _ in range(count - 1))
        self.layers = LayerList([first, *copies])
        self.num_layers, self.norm = count, norm

    def _run(self, x: Any, others: tuple[Any, ...], cache: Any) -> Any:
        """Return the output, and the list of new caches if a list was given."""
        caches = []
        for i, layer in enumerate(self.layers):
            if cache is None:
                x = layer(x, *others)
            else:
                x, new = layer(x, *others, cache[i])
                caches.append(new)
        y: Tensor = x if self.norm is None else self.norm(x)
        return y if cache is None else (y, caches)


class TransformerEncoder(_Stack):
    """Apply several `TransformerEncoderLayer` in a chain.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        First layer; the others have its settings, and initial values of their own.
    num_layers : int
    norm : LayerNorm, optional
        Normalization of the output.

    Examples
    --------
    >>> import optlab as ol
    >>> encoder = ol.nn.TransformerEncoder(ol.nn.TransformerEncoderLayer(8, 2, 16), num_layers=2)
    >>> encoder(ol.ones([3, 5, 8])).shape
    (3, 5, 8)
    """

    _kind = TransformerEncoderLayer

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__()
        self._fill(encoder_layer, num_layers, norm)

    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any:
        """Return the output, and the list of new caches if a list was given."""
        return self._run(src, (src_mask,), cache)

    def gen_cache(self, src: Any) -> list[Any]:
        """Return an empty cache for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


@documented_like(TransformerEncoder)
class TransformerDecoder(_Stack):
    """Apply several `TransformerDecoderLayer` in a chain.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        First layer; the others have its settings, and initial values of their own.

    Examples
    --------
    >>> import optlab as ol
    >>> decoder = ol.nn.TransformerDecoder(ol.nn.TransformerDecoderLayer(8, 2, 16), num_layers=2)
    >>> decoder(ol.ones([3, 5, 8]), ol.ones([3, 7, 8])).shape
    (3, 5, 8)
    """

    _kind = TransformerDecoderLayer

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__()
        self._fill(decoder_layer, num_layers, norm)

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        cache: Any = None,
    ) -> Any:  # fmt: skip
        """Return the output, and the list of new pairs of caches if a list was given."""
        return self._run(tgt, (memory, tgt_mask, memory_mask), cache)

    def gen_cache(self, memory: Any, do_zip: bool = False) -> list[Any]:
        """Return a pair of caches for each layer; with `do_zip`, a list for each kind instead."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches, strict=True)) if do_zip else caches
