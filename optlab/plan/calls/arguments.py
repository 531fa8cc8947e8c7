"""The arguments of a call: by name, and as the key of the plan that fits them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.half_precision import halves
from optlab.autograd.tape.nodes import InputLeaf, Leaf
from optlab.backend.call_recorder import LiveCount
from optlab.backend.device import get_device


class Same:
    """An object, equal to itself alone."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __hash__(self) -> int:
        return id(self.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.x is self.x


def containers_and_arrays(x: Any) -> dict[int, Any]:
    """Return the arrays in arguments, and the lists, tuples and dicts around them, by identity."""
    found: dict[int, Any] = {}
    waiting = [x]
    while waiting:
        one = waiting.pop()
        if type(one) is dict:
            waiting.extend(one.values())
        elif type(one) in (list, tuple) or (isinstance(one, tuple) and hasattr(one, "_fields")):
            waiting.extend(one)
        elif type(one) is not np.ndarray:
            continue
        found[id(one)] = one
    return found


def arguments_by_name(f: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by name, or by number where no signature is known.

    Examples
    --------
    >>> arguments_by_name(lambda x, rate=0.1: ..., (2,), {"rate": 0.5})
    {'x': 2, 'rate': 0.5}
    """
    try:
        signature = inspect.signature(getattr(f, "forward", f))
        return dict(signature.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"number {i}": x for i, x in enumerate(args)}, **kwargs}


def signature(args: Any, kwargs: Any, live: bool) -> tuple[list[Any], Any]:
    """Return the arrays among arguments, and the key of the plan; None for what has no plan.

    Floats are like arrays where they are `live`, and part of the key where not.
    """
    numbers = True if live else None
    leaves: list[Any] = []
    parts: list[Any] = []
    for x in args:
        if isinstance(x, TensorBase) and x.node is None and type(x.data) is _array:
            data = x.data  # what `_sign` does, in half the time
            parts += "Tensor", (data.shape, data.dtype, data.strides)
            leaves.append(data)
        elif not _sign(x, leaves, parts, numbers):
            return leaves, None
    if kwargs:
        for name in sorted(kwargs):
            parts.append(name)
            if not _sign(kwargs[name], leaves, parts, numbers):
                return leaves, None
        parts.append(tuple(kwargs))
    parts += recording.on, halves.policy, get_device()
    if len(leaves) > 1 and len({*map(id, leaves)}) < len(leaves):  # one array, several arguments
        identities = [id(x) for x in leaves]
        parts.append(tuple([identities.index(i) for i in identities]))
    return leaves, tuple(parts)


_array = np.ndarray


def _sign(x: Any, leaves: list[Any], parts: list[Any], numbers: Any) -> bool:
    if isinstance(x, TensorBase):
        node = x.node
        if node is not None and (not isinstance(node, Leaf) or isinstance(node, InputLeaf)):
            return False
        data = x.data
        kind: Any = "Tensor" if node is None else node
        parts.append(kind)
        if type(data) is _array:
            parts.append((data.shape, data.dtype, data.strides))
        elif isinstance(data, np.generic):
            parts.append(data.dtype)
        else:
            return False
        leaves.append(data)
    elif isinstance(x, _array):
        if type(x) is not _array:
            return False
        parts.append((x.shape, x.dtype, x.strides))
        leaves.append(x)
    elif isinstance(x, np.generic):
        parts.append((type(x), x.tobytes() if numbers is None else "scalar"))
        if numbers is not None:
            leaves.append(x)
    elif type(x) in (tuple, list):
        parts.append((type(x), len(x)))
        return all([_sign(part, leaves, parts, numbers) for part in x])  # noqa: C419 (the rest too)
    elif type(x) is dict:
        parts.append(tuple(x))
        return all([_sign(part, leaves, parts, numbers) for part in x.values()])  # noqa: C419
    elif type(x) is float or type(x) is LiveCount:
        if numbers is None:
            parts.append(x.hex() if type(x) is float else x)  # zeros of both signs, and NaN
        else:
            parts.append(type(x))
            leaves.append(x)
    elif isinstance(x, (int, str, bytes, bool, type(None))):
        parts.append((type(x), x))
    elif hasattr(x, "shape") and hasattr(x, "dtype"):
        return False  # an array of another kind: of a device, of an ensemble
    elif isinstance(x, tuple) and hasattr(x, "_fields"):
        parts.append((type(x), len(x)))
        return all([_sign(part, leaves, parts, numbers) for part in x])  # noqa: C419
    else:
        parts.append(Same(x))
    return True
