"""Memory of saved values, in bytes, each block of memory counted once.

A saved array may be a view: it keeps the whole array alive that owns its memory, so that one is
counted. The one definition for `optlab.nn.Layer.summary`, graphs and benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from optlab.autograd.tensor.tensor import raw


def kept_by(node: Any) -> Iterator[Any]:
    """Yield the arrays that a node keeps: those that its rules read, and others such as labels.

    Values packed by hooks of the user count as packed. Once backward has freed the node, only the
    arguments that are not differentiated remain.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> [array.tolist() for array in kept_by(np.sin(x).node)]
    [[1.0, 2.0]]
    """
    if not node.order:
        return
    yield from arrays_in(node.saved)
    for value in node.static.values():
        yield from arrays_in(value)


def arrays_in(kept: Any) -> Iterator[Any]:
    """Yield the arrays in a saved value: itself, or those that it holds."""
    array = raw(getattr(kept, "packed", kept))  # by hooks of the user
    if hasattr(array, "nbytes") and hasattr(array, "dtype"):
        yield array
        return
    if hasattr(kept, "_saved"):  # the context of a Function
        yield from arrays_in(kept._saved)
    elif hasattr(kept, "restored"):  # replaced by a policy, or sampled constants
        kept = kept.values
    if isinstance(kept, tuple):
        for value in kept:
            yield from arrays_in(value)


class Memory:
    """Counter of bytes, each block of memory once.

    Examples
    --------
    >>> import numpy as np
    >>> memory, x = Memory(), np.zeros(10)
    >>> memory.add(x[:2]), memory.add(x)
    (80, 0)
    """

    def __init__(self) -> None:
        self._owners: dict[int, Any] = {}  # alive, so that no other array gets the same id

    def add(self, array: Any) -> int:
        """Return the bytes of the memory of `array`, 0 if that was counted before."""
        owner = _owner_of(array)
        if id(owner) in self._owners:
            return 0
        self._owners[id(owner)] = owner
        return int(getattr(owner, "nbytes", 0))

    def knows(self, array: Any) -> bool:
        """Return whether the memory of `array` was counted before."""
        return id(_owner_of(array)) in self._owners


def _owner_of(array: Any) -> Any:
    owner = array
    while isinstance(getattr(owner, "base", None), type(array)):
        owner = owner.base
    return owner
