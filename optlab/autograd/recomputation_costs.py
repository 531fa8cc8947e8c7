"""What it takes to make dropped arrays again: their own operations, and what these would read.

Costs are counted, not timed, so that two runs drop the same arrays: a contraction (a product of
matrices, a convolution) costs its multiplications, anything else `ELEMENT_COST` for each element of its
output and inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from optlab.autograd.pieces import Recomputable

#: What an operation on each element costs, in multiplications of a product of matrices: memory is
#: slower than arithmetic by about this factor.
ELEMENT_COST = 16.0

#: So many operations are looked back over, to see what it takes to make an array again.
MOST_ANCESTORS = 64


class EvictedSet:
    """A class of dropped neighbours, and what all of them cost."""

    __slots__ = ("cost", "parent")

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.parent: EvictedSet | None = None

    def root(self) -> EvictedSet:
        """Give the one that stands for the class."""
        top = self
        while top.parent is not None:
            if top.parent.parent is not None:
                top.parent = top.parent.parent
            top = top.parent
        return top

    def join(self, other: EvictedSet) -> None:
        """Make one class of two."""
        mine, others = self.root(), other.root()
        if mine is not others:
            others.parent = mine
            mine.cost += others.cost


def evicted_neighborhood(result: Recomputable) -> tuple[list[Recomputable], set[EvictedSet]]:
    """Find what would have to run for a result, were it dropped.

    Returns
    -------
    list of Recomputable
        What it is made of, as far as it is not there and nothing dropped needs it yet: results that
        nobody saved. At most `MOST_ANCESTORS`; more would not change the choice.
    set of EvictedSet
        The classes of dropped pieces that these, or the result, are made of or part of.
    """
    below: list[Recomputable] = []
    beside: set[EvictedSet] = set()
    for reference in result.consumers:
        one = reference()
        if one is not None and one.evicted is not None:
            beside.add(one.evicted.root())
    stack, seen = [result], {result}
    while stack and len(below) < MOST_ANCESTORS:
        for source in stack.pop().sources:
            one = source.result
            if one is None or one in seen or one.present is not None:
                continue
            seen.add(one)
            if one.evicted is not None:
                beside.add(one.evicted.root())
            else:
                below.append(one)
                stack.append(one)
    return below, beside


def cost_of(inputs: Sequence[Any], y: Any) -> float:
    """Count what an operation costs, from the shapes of what it reads and gives."""
    outputs = y if isinstance(y, tuple) else (y,)
    size = float(sum(part.size for part in outputs))
    sizes = [float(getattr(x, "size", 1)) for x in inputs]
    steps = ELEMENT_COST * (size + sum(sizes))
    matrices = [x.size for x in inputs if len(getattr(x, "shape", ())) >= 2]
    if len(matrices) < 2 or all(
        getattr(x, "shape", outputs[0].shape) == outputs[0].shape for x in inputs
    ):
        return steps
    # (m, k) times (k, n): the sizes of all three multiplied are the square of m k n. For what is
    # element by element after all (one input is stretched) this counts more than it should.
    first, second = sorted(matrices)[-2:]
    return steps + math.sqrt(float(first) * second * size)
