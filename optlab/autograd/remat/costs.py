"""Cost of recomputing dropped results: their own operations, and those of missing inputs.

Costs are counted, not timed, so that two runs drop the same arrays: a contraction (a product of
matrices, a convolution) costs its multiplications, any other operation `ELEMENT_COST` for each
element of its output and inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from optlab.autograd.remat.tensors import Recomputable

#: Cost of an element-wise operation on one element, in multiplications of a matrix product: memory
#: is slower than arithmetic by about this factor.
ELEMENT_COST = 16.0

#: Largest number of missing ancestors that are visited to find the cost of a result.
MOST_ANCESTORS = 64


class EvictedSet:
    """Set of dropped neighbors with their total cost (union-find)."""

    __slots__ = ("cost", "parent")

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.parent: EvictedSet | None = None

    def root(self) -> EvictedSet:
        """Return the representative of the set."""
        top = self
        while top.parent is not None:
            if top.parent.parent is not None:
                top.parent = top.parent.parent
            top = top.parent
        return top

    def join(self, other: EvictedSet) -> None:
        """Merge two sets."""
        mine, others = self.root(), other.root()
        if mine is not others:
            others.parent = mine
            mine.cost += others.cost


def evicted_neighborhood(result: Recomputable) -> tuple[list[Recomputable], set[EvictedSet]]:
    """Return what has to run, besides its own operation, to recompute a result if it is dropped.

    Returns
    -------
    list of Recomputable
        Missing ancestors that belong to no evicted set: results that no operation saved. At most
        `MOST_ANCESTORS`; more would not change the choice.
    set of EvictedSet
        The sets of dropped results that read these or the result, or are read by them.
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
    """Return the cost of an operation, from the shapes of its inputs and outputs."""
    outputs = y if isinstance(y, tuple) else (y,)
    size = float(sum(part.size for part in outputs))
    sizes = [float(getattr(x, "size", 1)) for x in inputs]
    steps = ELEMENT_COST * (size + sum(sizes))
    matrices = [x.size for x in inputs if len(getattr(x, "shape", ())) >= 2]
    if len(matrices) < 2 or all(
        getattr(x, "shape", outputs[0].shape) == outputs[0].shape for x in inputs
    ):
        return steps
    # (m, k) times (k, n): the product of all three sizes is the square of m k n. Element-wise
    # operations with a broadcast input are overestimated.
    first, second = sorted(matrices)[-2:]
    return steps + math.sqrt(float(first) * second * size)
