"""What it takes to make dropped arrays again: their own operations, and what these would read.

Costs are counted, not timed, so that two runs drop the same arrays: a contraction (a product of
matrices, a convolution) costs its multiplications, anything else `A_STEP` for each element of its
output and inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from optlab.autograd.pieces import Piece

#: What an operation on each element costs, in multiplications of a product of matrices: memory is
#: slower than arithmetic by about this factor.
A_STEP = 16.0

#: So many operations are looked back over, to see what it takes to make an array again.
FAR = 64


class Group:
    """A class of dropped neighbours, and what all of them cost."""

    __slots__ = ("cost", "parent")

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.parent: Group | None = None

    def root(self) -> Group:
        """Give the one that stands for the class."""
        group = self
        while group.parent is not None:
            if group.parent.parent is not None:
                group.parent = group.parent.parent
            group = group.parent
        return group

    def join(self, other: Group) -> None:
        """Make one class of two."""
        mine, others = self.root(), other.root()
        if mine is not others:
            others.parent = mine
            mine.cost += others.cost


def absent_around(piece: Piece) -> tuple[list[Piece], set[Group]]:
    """Find what would have to run for a piece, were it dropped.

    Returns
    -------
    list of Piece
        What it is made of, as far as it is not there and nothing dropped needs it yet: results that
        nobody saved. At most `FAR`; more would not change the choice.
    set of Group
        The classes of dropped pieces that these, or the piece, are made of or part of.
    """
    below: list[Piece] = []
    beside: set[Group] = set()
    for reference in piece.consumers:
        one = reference()
        if one is not None and one.group is not None:
            beside.add(one.group.root())
    stack, seen = [piece], {piece}
    while stack and len(below) < FAR:
        for source in stack.pop().sources:
            one = source.piece
            if one is None or one in seen or one.present is not None:
                continue
            seen.add(one)
            if one.group is not None:
                beside.add(one.group.root())
            else:
                below.append(one)
                stack.append(one)
    return below, beside


def cost_of(inputs: Sequence[Any], y: Any) -> float:
    """Count what an operation costs, from the shapes of what it reads and gives."""
    outputs = y if isinstance(y, tuple) else (y,)
    size = float(sum(part.size for part in outputs))
    sizes = [float(getattr(x, "size", 1)) for x in inputs]
    steps = A_STEP * (size + sum(sizes))
    matrices = [x.size for x in inputs if len(getattr(x, "shape", ())) >= 2]
    if len(matrices) < 2 or all(
        getattr(x, "shape", outputs[0].shape) == outputs[0].shape for x in inputs
    ):
        return steps
    # (m, k) times (k, n): the sizes of all three multiplied are the square of m k n. For what is
    # element by element after all (one input is stretched) this counts more than it should.
    first, second = sorted(matrices)[-2:]
    return steps + math.sqrt(float(first) * second * size)
