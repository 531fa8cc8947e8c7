"""Scaled dot-product attention, beside its derivative rule."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules import random
from optlab.autograd.rules.reductions import aggregates
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import Tensor, apply_several, raw
from optlab.backend import events
from optlab.backend.arrays import constants_beside
from optlab.backend.dtypes import is_floating
from optlab.backend.random import next_key
from optlab.nn.functional.arguments import given_with, inner, no_name, scores, setting_beside, total
from optlab.nn.functional.blocks import cut, for_each, rounds_for


def _heads_first(x: Any) -> Any:
    """Swap [..., length, heads, width] and [..., heads, length, width]."""
    return np.swapaxes(x, -2, -3)


def _matrix_transpose(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def masked(similarity: Any, mask: Any) -> Any:
    """Add a floating mask to scores; set them to -infinity where a boolean mask is False."""
    if mask is None:
        return similarity
    if mask.dtype == bool:
        return np.where(mask, similarity, -np.inf)
    return similarity + mask


@lru_cache(maxsize=16)
def _causal_mask(length: int, source: int, dtype: Any, factor: bool = False) -> Any:
    """Return the causal mask, by which query i attends to positions 0 ... i only.

    It is added to scores: 0 or -infinity. As a `factor` it multiplies weights: 1 or 0.
    """
    mask = np.tri(length, source, dtype=dtype)
    if not factor:
        mask = np.where(mask > 0, 0.0, -np.inf).astype(dtype)
    mask.flags.writeable = False
    if events.array_kept.listeners:
        events.array_kept.publish(mask, "causal mask", "data", "")
    return mask


def _similarity(query: Any, key: Any, mask: Any, scale: float, causal: bool) -> Any:
    found = (_heads_first(query) * scale) @ _matrix_transpose(_heads_first(key))
    if causal:
        # A sum: `where` of an array and a number takes five times as long.
        found = found + constants_beside(found, _causal_mask(*found.shape[-2:], found.dtype))
    return masked(found, mask)


#: The width of a product that takes as long as exp and the sums do, for each score.
_WIDTH_OF_EXP = 64

#: exp of scores of at most this magnitude, and its sums, neither overflow nor underflow in float32.
_SMALL = 40.0


def _bounded_weights(query: Any, key: Any, scale: float, causal: bool, level: Any = None) -> Any:
    """Return exp(scores - level) where no maximum need be subtracted, else None.

    The mask multiplies the weights: exp takes twice as long for -infinity.
    """
    if not _are_bounded(query, key, scale):
        return None
    weights = _similarity(query, key, None, scale, False)
    if level is not None:
        weights -= level
    np.exp(weights, out=weights)
    if causal:
        weights *= _causal_mask(*weights.shape[-2:], weights.dtype, True)
    return weights


def _are_bounded(query: Any, key: Any, scale: float) -> bool:
    """Return whether all scores are bounded by `_SMALL`, by the Cauchy-Schwarz inequality."""
    for x in (query, key):
        if type(x) is not np.ndarray or x.dtype.itemsize < 4 or not x.size:
            return False
    longest = np.vecdot(query, query).max() * np.vecdot(key, key).max()
    return bool(longest * (scale * scale) <= _SMALL * _SMALL)


def _matmul_heads(weights: Any, value: Any) -> Any:
    """Return weights @ value as [..., length, heads, width], contiguous in this order."""
    if type(weights) is not np.ndarray or type(value) is not np.ndarray:
        return _heads_first(weights @ value)
    lead = np.broadcast_shapes(weights.shape[:-2], value.shape[:-2])
    shape = (*lead[:-1], weights.shape[-2], lead[-1], value.shape[-1])
    out = np.empty(shape, np.result_type(weights, value))
    np.matmul(weights, value, out=_heads_first(out))
    return out


def _attend_masked(
    query: Any, key: Any, value: Any, mask: Any, scale: float, causal: bool, rate: float, draw: Any
) -> Any:
    """Return the output and the log-sum-exp of the scores of each query."""
    weights = None if mask is not None else _bounded_weights(query, key, scale, causal)
    if weights is not None:
        sums = total(weights, -1)
        level = np.log(sums)
    else:
        found = _similarity(query, key, mask, scale, causal)
        top = aggregates.MAX.forward(found, axis=-1, keepdims=True)
        top = np.where(top == -np.inf, 0.0, top)
        weights = np.exp(found - top)
        sums = total(weights, -1)
        # A fully masked query gets weights of 0: exp(-inf - inf) in the backward pass too.
        none = sums == 0
        sums = np.where(none, 1.0, sums)
        level = np.where(none, np.inf, top + np.log(sums))
    weights *= 1 / sums
    if rate:
        weights = random.dropout(weights, rate, draw)
    return _matmul_heads(weights, _heads_first(value)), level


def _attend_masked_back(
    g: Any, query: Any, key: Any, value: Any, mask: Any, y: Any, needs: Any, scale: float,
    causal: bool, rate: float, draw: Any,
) -> Any:  # fmt: skip
    out, level = y
    weights = None if mask is not None else _bounded_weights(query, key, scale, causal, level)
    if weights is None:
        weights = np.exp(_similarity(query, key, mask, scale, causal) - level)
    arrived = _heads_first(g[0])
    by_value = None
    if needs[2]:
        dropped = random.dropout(weights, rate, draw) if rate else weights
        by_value = _matmul_heads(_matrix_transpose(dropped), arrived)
    along = arrived @ _matrix_transpose(_heads_first(value))
    if rate:
        along = random.dropout(along, rate, draw)
    along = along - inner(arrived, _heads_first(out), -1)
    if 1 in g:
        along = along + g[1]
    slope = weights * along
    return (
        _matmul_heads(slope, _heads_first(key)) * scale if needs[0] else None,
        _matmul_heads(_matrix_transpose(slope), _heads_first(query)) * scale if needs[1] else None,
        by_value,
        slope if len(needs) > 3 and needs[3] else None,
    )


def _parts(query: Any, key: Any, value: Any, rate: float) -> list[slice]:
    """Return the parts of a batch to be computed at a time: one unless there is much to do."""
    given = (query, key, value)
    plain = all(type(x) is np.ndarray and x.ndim > 3 for x in given)
    if not plain or rate or len({len(x) for x in given}) > 1:
        return []
    length, source = query.shape[-3], key.shape[-3]
    wide = query.shape[-1] + value.shape[-1] + _WIDTH_OF_EXP
    rounds = rounds_for(2 * math.prod(query.shape[:-3]) * query.shape[-2] * length * source * wide)
    return cut(len(query), rounds) if rounds > 1 else []


def _attend(
    query: Any, key: Any, value: Any, scale: float, causal: bool, rate: float, draw: Any
) -> Any:
    parts = _parts(query, key, value, rate)
    if len(parts) < 2:
        return _attend_masked(query, key, value, None, scale, causal, rate, draw)

    def part(b: slice) -> Any:
        return _attend_masked(query[b], key[b], value[b], None, scale, causal, rate, draw)

    return _joined(for_each(part, parts))


def _joined(found: list[Any]) -> Any:
    """Return arrays of a batch from those of its parts."""
    return tuple(
        None if arrays[0] is None else np.concatenate(arrays) for arrays in zip(*found, strict=True)
    )


def _attend_back(
    g: Any, query: Any, key: Any, value: Any, y: Any, needs: Any, scale: float, causal: bool,
    rate: float, draw: Any,
) -> Any:  # fmt: skip
    parts = _parts(query, key, value, rate)
    if len(parts) < 2:
        return _attend_masked_back(
            g, query, key, value, None, y, needs, scale, causal, rate, draw
        )[:3]  # fmt: skip

    def part(b: slice) -> Any:
        upper = {i: g[i][b] for i in range(2) if i in g}
        outputs = y[0][b], y[1][b]
        if 0 not in upper:
            upper[0] = np.zeros_like(outputs[0])
        return _attend_masked_back(
            upper, query[b], key[b], value[b], None, outputs, needs, scale, causal, rate, draw
        )[:3]  # fmt: skip

    return _joined(for_each(part, parts))


ATTEND = rule(
    _attend,
    inputs="query key value",
    static="scale causal rate draw",
    several=True,
    joint=_attend_back,
)
ATTEND_MASKED = rule(
    _attend_masked,
    inputs="query key value mask",
    static="scale causal rate draw",
    several=True,
    joint=_attend_masked_back,
)


def as_mask(mask: Any, beside: Any) -> Any:
    """Return a mask as booleans (integers: where not 0) or as floating numbers to add."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or type(mask.data) is not type(raw(beside)):
        array = given_with(raw(beside), mask, "the mask")
        mask = mask if isinstance(mask, Tensor) else array
    if mask.dtype.kind in "iu":
        return raw(mask) != 0
    if mask.dtype.kind == "b":
        return raw(mask)
    if not is_floating(mask.dtype):
        raise TypeError(f"a mask holds truth values or numbers; got dtype {mask.dtype}.")
    return mask if mask.dtype == beside.dtype else mask.astype(beside.dtype)


def _check(query: Any, key: Any, value: Any, gqa: bool) -> None:
    shapes = query.shape, key.shape, value.shape
    given = "got query {}, key {}, value {}.".format(*shapes)
    name = "scaled_dot_product_attention"
    if min(map(len, shapes)) < 3:
        raise ValueError(f"{name} takes [batch, length, heads, width]; {given}")
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(f"{name}: query and key must have the same width (last axis); {given}")
    if key.shape[-3:-1] != value.shape[-3:-1] or not key.shape[-3]:
        raise ValueError(
            f"{name}: key and value must have the same length, at least 1, and the same number of "
            f"heads; {given}"
        )
    heads, fewer = query.shape[-2], key.shape[-2]
    if heads != fewer and not (gqa and fewer and heads % fewer == 0):
        raise ValueError(
            f"{name}: the {heads} heads of query must be as many as the {fewer} of key and value"
            f"{', or a multiple of them' if gqa else ''}; {given}"
        )


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, training: bool = True, backend: None = None,
    scale: float | None = None, enable_gqa: bool = True, name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply scaled dot-product attention.

    .. math:: y = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d}} + M\right) V

    Parameters
    ----------
    query : Tensor, shape [batch, length, heads, width]
    key : Tensor, shape [batch, source, heads, width]
    value : Tensor, shape [batch, source, heads, any width]
    attn_mask : Tensor, optional
        Broadcast to [batch, heads, length, source]: booleans (True: attend) or numbers that are
        added to the scores.
    dropout_p : float
        Probability of dropping an attention weight in training.
    is_causal : bool
        Whether query i attends to positions 0 ... i only.
    training : bool
        Whether dropout applies.
    backend : None
        There is one implementation.
    scale : float, optional
        Factor of the products; by default 1 / sqrt(width).
    enable_gqa : bool
        Whether key and value may have fewer heads, each shared by a group of query heads.

    Returns
    -------
    Tensor
        Of shape [batch, length, heads, width of value].

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    The output and one number a query are saved; the backward pass recomputes the weights. A fully
    masked query yields 0. Source: Vaswani et al. 2017.

    Examples
    --------
    >>> import optlab as ol
    >>> q, v = ol.zeros([1, 2, 1, 4]), ol.to_tensor([1.0, 3.0]).reshape(1, 2, 1, 1)
    >>> attention = ol.nn.functional.scaled_dot_product_attention
    >>> attention(q, q, v).ravel(), attention(q, q, v, is_causal=True).ravel()
    (Tensor([2., 2.], dtype=float32), Tensor([1., 2.], dtype=float32))
    """
    no_name(name)
    if backend is not None:
        raise TypeError(f"scaled_dot_product_attention(backend={backend!r}) is not covered.")
    rate = as_setting(dropout_p, "dropout_p")
    if not 0 <= rate <= 1:
        raise ValueError(f"dropout_p must be a probability from 0 to 1; got {dropout_p!r}.")
    query, key, value = scores(query), scores(key), scores(value)
    _check(query, key, value, enable_gqa)
    if query.shape[-2] != key.shape[-2]:
        group = query.shape[-2] // key.shape[-2]
        key, value = np.repeat(key, group, axis=-2), np.repeat(value, group, axis=-2)
    rate = rate if training else 0.0
    factor = 1 / math.sqrt(query.shape[-1])
    if scale is not None:
        factor = setting_beside(query, scale, "scale")
        if isinstance(factor, Tensor):
            query, factor = query * factor, 1.0
    static = {
        "scale": factor,
        "causal": bool(is_causal),
        "rate": rate,
        "draw": next_key() if rate else None,
    }
    mask = as_mask(attn_mask, query)
    if mask is None:
        return apply_several(ATTEND, (query, key, value), static)[0]
    wanted = (query.shape[-2], query.shape[-3], key.shape[-3])
    if any(a not in (1, b) for a, b in zip(mask.shape[::-1], wanted[::-1], strict=False)):
        raise ValueError(
            "scaled_dot_product_attention: attn_mask must broadcast to [batch, heads, length, "
            f"source], here [..., {', '.join(map(str, wanted))}]; got shape {mask.shape}."
        )
    return apply_several(ATTEND_MASKED, (query, key, value, mask), static)[0]
