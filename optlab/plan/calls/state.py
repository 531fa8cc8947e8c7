"""The state of the engine after a call, for comparison: what a plan leaves behind and the function.

Two states are equal if no program could tell them apart: values, gradients, whether gradients are
needed, hooks, ``state_dict()`` of optimizers, schedules and averages, the next random numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.nodes import ZERO, Leaf
from optlab.backend import random


def state_of(roots: Iterable[Any]) -> list[Any]:
    """Return what identifies the state of Tensors, arrays and objects of the engine."""
    stream = random.stream_of_this_thread()
    return [stream.key, stream.draws, *map(_state, roots)]


def _state(x: Any) -> Any:
    if isinstance(x, TensorBase):
        node = x.node
        gradient = node.grad if isinstance(node, Leaf) else None
        return bits_of(x), type(node), bits_of(gradient), len(getattr(node, "hooks", None) or ())
    if hasattr(type(x), "state_dict"):
        try:
            return bits_of(x.state_dict())
        except Exception:  # noqa: BLE001  # of any class
            return None
    return bits_of(x) if isinstance(x, np.ndarray) else None


def bits_of(x: Any) -> Any:
    """Return what two values share if they are equal to the bit; arrays by a hash."""
    if isinstance(x, TensorBase):
        return "Tensor", bits_of(x.data)
    if isinstance(x, (np.ndarray, np.generic)) and not x.dtype.hasobject:
        contents = np.ascontiguousarray(x)
        return x.dtype.str, x.shape, hashlib.blake2b(contents.view(np.uint8).data).digest()
    if isinstance(x, dict):
        return [(key, bits_of(part)) for key, part in x.items()]
    if isinstance(x, (tuple, list)):
        return [bits_of(part) for part in x]
    if isinstance(x, float):
        return x.hex()
    if x is None or x is ZERO or isinstance(x, (int, str, bytes)):
        return x
    if hasattr(x, "members"):
        return "ensemble", bits_of(x.members)
    if hasattr(x, "to_dense"):
        return "rows", bits_of(x.to_dense())
    return type(x).__qualname__
