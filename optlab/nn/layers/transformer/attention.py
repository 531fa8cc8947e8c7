"""Multi-head attention."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import zeros_beside
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.functional.attention import as_mask, masked
from optlab.nn.layers.linear import Linear


class Cache(NamedTuple):
    """Keys and values of the positions so far, of shape [batch, heads, length, head_dim]."""

    k: Any
    v: Any


class StaticCache(NamedTuple):
    """Keys and values that every call attends to, of the same shape."""

    k: Any
    v: Any


class MultiHeadAttention(Layer):
    """Apply multi-head attention; each head has its own queries, keys and values.

    Parameters
    ----------
    embed_dim : int
        Width of queries and output.
    num_heads : int
        Number of heads, which divide the width.
    dropout : float
        Dropout probability of the attention weights in training.
    kdim, vdim : int, optional
        Widths of keys and values; by default `embed_dim`.
    need_weights : bool
        Whether to also return the attention weights, of shape [batch, heads, length, key length].
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the weights and biases of ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``;
        ``bias_attr=False`` omits the biases.
    dtype : str or dtype
        Dtype of the parameters.

    Raises
    ------
    ValueError
        If `num_heads` does not divide the width.

    See Also
    --------
    optlab.nn.functional.scaled_dot_product_attention : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> attention = ol.nn.MultiHeadAttention(embed_dim=8, num_heads=2)
    >>> attention(ol.ones([3, 5, 8])).shape
    (3, 5, 8)
    """

    Cache = Cache
    StaticCache = StaticCache

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, kdim: int | None = None,
        vdim: int | None = None, need_weights: bool = False, weight_attr: Any = None,
        bias_attr: Any = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"MultiHeadAttention: a width of {embed_dim} cannot be divided into {num_heads} "
                "heads."
            )
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim

        def projection(width: int) -> Linear:
            return Linear(width, embed_dim, weight_attr, bias_attr, dtype=dtype)

        self.q_proj, self.k_proj = projection(embed_dim), projection(self.kdim)
        self.v_proj, self.out_proj = projection(self.vdim), projection(embed_dim)

    def _heads(self, x: Any) -> Any:
        return x.reshape(*x.shape[:-1], self.num_heads, self.head_dim)

    def gen_cache(self, key: Any, value: Any = None, type: type = Cache) -> Any:
        """Create a cache.

        Parameters
        ----------
        key, value : Tensor
            For ``StaticCache``, inputs of the projections that every call attends to (`value` is by
            default `key`); for ``Cache``, initial keys and values, of shape [batch, heads, length,
            head_dim]. With `key` alone a ``Cache`` is empty, with the batch size of `key`.
        type : MultiHeadAttention.Cache or MultiHeadAttention.StaticCache

        Returns
        -------
        Cache or StaticCache

        Examples
        --------
        >>> import optlab as ol
        >>> attention, x = ol.nn.MultiHeadAttention(8, 2), ol.ones([1, 3, 8])
        >>> cache = attention.gen_cache(x)
        >>> for i in range(3):
        ...     y, cache = attention(x[:, i : i + 1], cache=cache)
        >>> cache.k.shape
        (1, 2, 3, 4)
        """
        if type is StaticCache:
            keys, values = self.k_proj(key), self.v_proj(key if value is None else value)
            return StaticCache(*(np.swapaxes(self._heads(x), 1, 2) for x in (keys, values)))
        if type is not Cache:
            raise TypeError(f"gen_cache makes a Cache or a StaticCache; got type={type!r}.")
        if value is not None:
            return Cache(key, value)
        shape = (key.shape[0], self.num_heads, 0, self.head_dim)
        empty = zeros_beside(raw(self.k_proj.weight), shape)
        return Cache(Tensor(empty), Tensor(empty))

    def forward(
        self, query: Any, key: Any = None, value: Any = None, attn_mask: Any = None,
        cache: Any = None,
    ) -> Any:  # fmt: skip
        """Attend to `value`; `key` and `value` are by default `query`.

        Parameters
        ----------
        query : Tensor, shape [batch, length, embed_dim]
        key : Tensor, shape [batch, key length, kdim], optional
        value : Tensor, shape [batch, key length, vdim], optional
        attn_mask : Tensor, optional
            Mask that broadcasts to [batch, heads, length, key length]: booleans or integers (True
            or nonzero: attend), or floating numbers, which are added to the scores.
        cache : Cache or StaticCache, optional
            Earlier keys and values: those of a ``Cache`` precede the new ones; those of a
            ``StaticCache`` replace them.

        Returns
        -------
        Tensor or tuple
            The output; then the weights if `need_weights`; then the new cache if one was given.
        """
        q = self._heads(self.q_proj(query))
        if isinstance(cache, StaticCache):
            k, v = (np.swapaxes(x, 1, 2) for x in cache)
        else:
            key = query if key is None else key
            k = self._heads(self.k_proj(key))
            v = self._heads(self.v_proj(query if value is None else value))
            if isinstance(cache, Cache):
                k, v = (
                    np.concatenate([np.swapaxes(old, 1, 2), new], axis=1)
                    for old, new in zip(cache, (k, v), strict=True)
                )
                cache = Cache(np.swapaxes(k, 1, 2), np.swapaxes(v, 1, 2))
            elif cache is not None:
                raise TypeError(f"MultiHeadAttention: cache comes from gen_cache; got {cache!r}.")
        given: list[Any] = []
        if self.need_weights:
            attended, weights = self._with_weights(q, k, v, attn_mask)
            given.append(weights)
        else:
            attended = functional.scaled_dot_product_attention(
                q, k, v, attn_mask, self.dropout, training=self.training
            )
        if cache is not None:
            given.append(cache)
        y = self.out_proj(attended.reshape(*attended.shape[:-2], self.embed_dim))
        return (y, *given) if given else y

    def _with_weights(self, q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
        """Attend in separate operations: the fused one does not return its weights."""
        q, k, v = (np.swapaxes(x, -2, -3) for x in (q, k, v))
        found = masked((q * self.head_dim**-0.5) @ np.swapaxes(k, -1, -2), as_mask(mask, q))
        weights = functional.softmax(found)
        if self.dropout:
            weights = functional.dropout(weights, self.dropout, training=self.training)
        return np.swapaxes(weights @ v, -2, -3), weights

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"
