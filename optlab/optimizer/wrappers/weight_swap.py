"""Loans: values that parameters hold for a while, and the weights that they get back.

Several averages may lend to the same parameters. The last loan is what is seen, and every loan
keeps what it found. When one ends that is not the last, the next one is given what it kept: the
weights come back whatever the order.
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

_count = itertools.count()
#: The loans that have not ended. Who lends holds the loan; it goes with its lender.
_active: weakref.WeakSet[WeightSwap] = weakref.WeakSet()


class WeightSwap:
    """Values lent to parameters, until `end`.

    Parameters
    ----------
    owner : object
        Who lends, for messages.
    parameters : sequence of Tensor
    values : sequence of array
        What they are to hold; everything has been checked.
    """

    def __init__(self, owner: object, parameters: Sequence[Tensor], values: Sequence[Any]) -> None:
        self.owner = type(owner).__name__
        self.parameters = list(parameters)
        #: What each parameter held before.
        self.saved = [copied(p.data) for p in self.parameters]
        if events.array_kept.listeners:
            for array in self.saved:
                events.array_kept.publish(array, self.owner, "slot", "")
        # An overflow of 16 bits is said, or raised, before anything is written.
        values = [
            value.astype(p.data.dtype, copy=False)
            for p, value in zip(self.parameters, values, strict=True)
        ]
        for p, value in zip(self.parameters, values, strict=True):
            in_place.overwrite(p, value, f"{self.owner}.apply()")
        self._written_at = versions.times.last_write
        self._order = next(_count)
        self._register()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)  # a copy, with copies of the parameters
        self._register()

    def _register(self) -> None:
        self._numbers = {id(p): number for number, p in enumerate(self.parameters)}
        _active.add(self)

    def undo(self, values: Sequence[Any]) -> str:
        """Give back what the parameters held, and say what moved them meanwhile, if something did.

        Parameters
        ----------
        values : sequence of array
            What was lent.
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
            else:  # another array was put there
                moved = moved or _moved(p, p.data, value, own, "something")
                p.data = own
        _active.discard(self)
        return moved


def swaps_of(p: Tensor) -> list[tuple[WeightSwap, int]]:
    """Give the open loans of a parameter, the oldest first, with its number in each."""
    return [
        (swap, swap._numbers[id(p)])
        for swap in sorted(_active, key=lambda one: one._order)
        if id(p) in swap._numbers
    ]


def last_swapper(parameters: Sequence[Tensor]) -> str | None:
    """Name who lent to one of these parameters last, if any does."""
    for swap in sorted(_active, key=lambda one: -one._order):
        if any(id(p) in swap._numbers for p in parameters):
            return swap.owner
    return None


def own_weights(p: Tensor) -> Any:
    """Give the weights of a parameter that are under all loans; None if there is none."""
    swaps = swaps_of(p)
    return swaps[0][0].saved[swaps[0][1]] if swaps else None


def _moved(p: Tensor, left: Any, lent: Any, own: Any, writer: str) -> str:
    """Say who moved a parameter, if what is left there is not what was lent."""
    if np.array_equal(left, lent.astype(own.dtype), equal_nan=True):
        return ""
    return f"{getattr(p, 'name', None) or 'a parameter'} was moved by {writer}"
