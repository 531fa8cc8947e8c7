"""Weights of PyTorch models, brought into the form of the layers here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array
from optlab.nn.layers import Linear, MultiHeadAttention

#: What PyTorch's attention keeps in one matrix, in its order.
_JOINED = ("q_proj", "k_proj", "v_proj")
_RENAMED = {"multihead_attn": "cross_attn"}


def from_torch(layer: Any, state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Bring the ``state_dict`` of a PyTorch model into the form of a layer of the same structure.

    PyTorch keeps the weight of a ``Linear`` as [out, in], Paddle and optlab as [in, out]; a square
    one fits either way, and would compute something else. PyTorch also joins the three input
    matrices of attention, counts batches in its batch norms, and calls the second attention of a
    decoder ``multihead_attn``.

    Parameters
    ----------
    layer : Layer
        Whose structure says which weights are those of a Linear or of attention.
    state_dict : mapping of str to array
        Of ``torch.nn.Module.state_dict()`` (Tensors of PyTorch are fine), or as ``ol.load`` reads
        it from a safetensors file.

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
    """Give a weight as an array: of ours, of NumPy, or of PyTorch."""
    if isinstance(value, Tensor):
        return raw(value)
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return as_array(value)
