"""What operations keep for backward, and how its bytes are counted: once for each piece of memory.

An array that is kept may be a view. What stays alive because of it is the memory in which it lies,
so that is what counts, whole. The one definition for `optlab.nn.Layer.summary`, for graphs and for
benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from optlab.autograd.tensor import raw


def kept_by(node: Any) -> Iterator[Any]:
    """Go through the arrays that a node keeps: what its rules read, and arrays such as labels.

    What hooks of the user packed is what they made of it; nothing remains once backward has freed
    it, but for the arguments that are not differentiated.

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
    """Go through the arrays in a value that is kept: itself, or what it holds."""
    array = raw(getattr(kept, "kept", kept))  # `kept`: packed by hooks of the user
    if hasattr(array, "nbytes") and hasattr(array, "dtype"):
        yield array
        return
    if hasattr(kept, "_saved"):  # the context of a Function
        yield from arrays_in(kept._saved)
    elif hasattr(kept, "restored"):  # kept by a keeper, or watched
        kept = kept.values
    if isinstance(kept, tuple):
        for value in kept:
            yield from arrays_in(value)


class Memory:
    """Counts bytes, each piece of memory once.

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
        """Give the bytes of the memory that `array` lies in; 0 where that was counted before."""
        owner = _owner_of(array)
        if id(owner) in self._owners:
            return 0
        self._owners[id(owner)] = owner
        return int(getattr(owner, "nbytes", 0))

    def knows(self, array: Any) -> bool:
        """Say whether the memory that `array` lies in was counted before."""
        return id(_owner_of(array)) in self._owners


def _owner_of(array: Any) -> Any:
    owner = array
    while isinstance(getattr(owner, "base", None), type(array)):
        owner = owner.base
    return owner
