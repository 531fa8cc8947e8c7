"""Swaps of weights: values, such as averages, that parameters hold until the weights are restored.

Several averages may be swapped into the same parameters. The last swap is visible, and each saves
the values that it found. If one is undone that is not the last, the next one takes over what it
saved: the weights are restored in whatever order.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.tape import versions
from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events
from optlab.backend.arrays import copied
from optlab.optimizer.params.labels import label_of

_count = itertools.count()
#: The swaps in effect. Only its owner refers to a swap, which ends with the owner.
_active: weakref.WeakSet[WeightSwap] = weakref.WeakSet()


class WeightSwap:
    """Values swapped into parameters, until `undo`.

    Parameters
    ----------
    owner : object
        The average, for messages.
    parameters : sequence of Tensor
    values : sequence of array
        The new values, which have been checked. `write` writes them.
    """

    def __init__(self, owner: object, parameters: Sequence[Tensor], values: Sequence[Any]) -> None:
        self.owner = type(owner).__name__
        self.parameters = list(parameters)
        #: The values that each parameter held before.
        self.saved = [copied(p.data) for p in self.parameters]
        if events.array_kept.listeners:
            for array in self.saved:
                events.array_kept.publish(array, self.owner, "slot", "")
        # An overflow of 16 bits warns, or raises, before anything is written.
        self._values = [
            value.astype(p.data.dtype, copy=False)
            for p, value in zip(self.parameters, values, strict=True)
        ]

    def write(self) -> None:
        """Write the values into the parameters; `take_back` undoes it, also where it stopped."""
        for p, value in zip(self.parameters, self._values, strict=True):
            in_place.overwrite(p, value, f"{self.owner}.apply()")
        self._written_at = versions.times.last_write
        self._order = next(_count)
        self._values = []
        self._register()

    def take_back(self) -> None:
        """Restore the weights after a `write` that an exception has interrupted."""
        _active.discard(self)
        for p, own in zip(self.parameters, self.saved, strict=True):
            in_place.overwrite(p, own, f"{self.owner}.apply()")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)  # in a copy the parameters are copies, too
        self._register()

    def _register(self) -> None:
        self._numbers = {id(p): number for number, p in enumerate(self.parameters)}
        _active.add(self)

    def undo(self, values: Sequence[Any]) -> str:
        """Restore the saved values, and return what moved the parameters meanwhile, or no text.

        Parameters
        ----------
        values : sequence of array
            The values that were swapped in.
        """
        moved = ""
        for p, own, value in zip(self.parameters, self.saved, values, strict=True):
            later = next((one for one in swaps_of(p) if one[0]._order > self._order), None)
            if later is not None:
                over, place = later
                moved = moved or _moved(p, over.saved[place], value, own, "something")
                over.saved[place] = own
                continue
            node: Any = p.node
            if getattr(node, "overwritten_at", 0) > self._written_at:
                moved = moved or _moved(p, p.data, value, own, node.writer)
            if p.data.shape == own.shape and p.data.dtype == own.dtype:
                in_place.overwrite(p, own, f"{self.owner}.restore()")
            else:  # the array was replaced
                moved = moved or _moved(p, p.data, value, own, "something")
                p.data = own
        _active.discard(self)
        return moved


def swaps_of(p: Tensor) -> list[tuple[WeightSwap, int]]:
    """Return the swaps in effect on a parameter, oldest first, with its number in each."""
    return [
        (swap, swap._numbers[id(p)])
        for swap in sorted(_active, key=lambda one: one._order)
        if id(p) in swap._numbers
    ]


def last_swapper(parameters: Sequence[Tensor]) -> str | None:
    """Return the owner of the last swap in effect on one of these parameters, or None."""
    for swap in sorted(_active, key=lambda one: -one._order):
        if any(id(p) in swap._numbers for p in parameters):
            return swap.owner
    return None


def own_weights(p: Tensor) -> Any:
    """Return the weights of a parameter beneath all swaps, or None if there is none."""
    swaps = swaps_of(p)
    return swaps[0][0].saved[swaps[0][1]] if swaps else None


def _moved(p: Tensor, left: Any, lent: Any, own: Any, writer: str) -> str:
    """Return by what a parameter was moved, if it does not hold the value swapped in."""
    if np.array_equal(left, lent.astype(own.dtype), equal_nan=True):
        return ""
    return f"{label_of(p)} was moved by {writer}"
