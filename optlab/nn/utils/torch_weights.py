"""Conversion of the weights of PyTorch models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array
from optlab.nn.layers import Linear, MultiHeadAttention

#: Projections that attention in PyTorch stores in one matrix, in its order.
_JOINED = ("q_proj", "k_proj", "v_proj")
_RENAMED = {"multihead_attn": "cross_attn"}


def from_torch(layer: Any, state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the ``state_dict`` of a PyTorch model for a layer of the same structure.

    PyTorch stores the weight of a ``Linear`` as [out, in], Paddle and optlab as [in, out]; a square
    one has a valid shape either way, but computes something else. PyTorch also joins the three
    input projections of attention, counts batches in its batch norms, and calls the
    cross-attention of a decoder ``multihead_attn``.

    Parameters
    ----------
    layer : Layer
        Tells which weights belong to a Linear or to attention.
    state_dict : mapping of str to array
        From ``torch.nn.Module.state_dict()`` (Tensors of PyTorch are accepted), or from a
        safetensors file read by ``ol.load``.

    Returns
    -------
    dict
        For ``layer.set_state_dict``, which checks names and shapes.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> network = ol.nn.Sequential(ol.nn.Linear(3, 2))
    >>> of_torch = {"0.weight": np.zeros((2, 3), "float32"), "0.bias": np.ones(2, "float32")}
    >>> converted = ol.nn.utils.from_torch(network, of_torch)
    >>> converted["0.weight"].shape
    (3, 2)
    >>> network.set_state_dict(converted)
    Keys(missing_keys=[], unexpected_keys=[])
    """
    layers = dict(layer.named_sublayers(include_self=True))
    found: dict[str, Any] = {}
    for given, value in state_dict.items():
        name = ".".join(_RENAMED.get(part, part) for part in given.split("."))
        owner, _, leaf = name.rpartition(".")
        array = _array(value)
        if leaf == "num_batches_tracked":
            continue
        if leaf in ("in_proj_weight", "in_proj_bias") and _is(layers, owner, MultiHeadAttention):
            kind = leaf.removeprefix("in_proj_")
            for part, third in zip(_JOINED, np.split(array, 3), strict=True):
                found[f"{owner}.{part}.{kind}" if owner else f"{part}.{kind}"] = third.T
        elif leaf == "weight" and array.ndim == 2 and _is(layers, owner, Linear):
            found[name] = array.T
        else:
            found[name] = array
    return found


def _is(layers: Mapping[str, Any], name: str, kind: type) -> bool:
    return isinstance(layers.get(name), kind)


def _array(value: Any) -> Any:
    """Return a Tensor of ours, an array or a Tensor of PyTorch as an array."""
    if isinstance(value, Tensor):
        return raw(value)
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return as_array(value)
