"""Steps of a kernel: what an operation of a plan computes, and what it reads.

Each says by NumPy what it computes (`by_numpy`); as loops they are written by
`optlab.plan.numba_steps`, whose kernels have to give the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optlab.plan.plan import Instruction, Place


class Elementwise(NamedTuple):
    """A ufunc, `np.where` or `np.clip` of arrays and numbers."""

    instruction: Instruction

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [x for x in self.instruction.arguments if isinstance(x, Place)]

    @property
    def result(self) -> Place:
        """The place that it writes."""
        return self.instruction.result


class SumOfRows(NamedTuple):
    """``np.add.reduce(x, axis=0)`` of a matrix: its rows, one after another."""

    x: Place
    result: Place

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [self.x]


class SumOfAll(NamedTuple):
    """``np.add.reduce(x)`` of a vector, pairwise."""

    x: Place
    result: Place

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [self.x]


class LargestOfRows(NamedTuple):
    """``np.maximum.reduce(x, axis=1)`` of a matrix."""

    x: Place
    result: Place

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [self.x]


class Picked(NamedTuple):
    """``x[np.arange(n), chosen]`` of a matrix."""

    x: Place
    chosen: Place
    result: Place

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [self.x, self.chosen]


class TakenRows(NamedTuple):
    """``np.take(x, chosen, axis=0)`` of a matrix, by a vector."""

    x: Place
    chosen: Place
    result: Place

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [self.x, self.chosen]


class Bounded(NamedTuple):
    """A copy of integers, all of which have to be 0 ... `size` - 1."""

    x: Place
    size: int
    result: Place

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [self.x]


class Finite(NamedTuple):
    """Nothing is computed: all elements have to be finite."""

    x: Place
    result: None = None

    @property
    def reads(self) -> list[Place]:
        """The places that it reads."""
        return [self.x]


Step = Elementwise | SumOfRows | SumOfAll | LargestOfRows | Picked | TakenRows | Bounded | Finite


def by_numpy(step: Step, arrays: dict[Place, Any]) -> None:
    """Run a step by NumPy."""
    if isinstance(step, Finite):
        return
    x = [arrays[p] for p in step.reads]
    if isinstance(step, Elementwise):
        one = step.instruction
        value = one.function(  # type: ignore[misc]
            *[arrays[a] if isinstance(a, Place) else a for a in one.arguments]
        )
    elif isinstance(step, SumOfRows):
        value = np.add.reduce(x[0], axis=0)
    elif isinstance(step, SumOfAll):
        value = np.add.reduce(x[0])
    elif isinstance(step, LargestOfRows):
        value = np.maximum.reduce(x[0], axis=1).reshape(arrays[step.result].shape)
    elif isinstance(step, Picked):
        value = x[0][np.arange(len(x[1])), x[1]]
    elif isinstance(step, TakenRows):
        value = np.take(x[0], x[1], 0)
    else:
        value = x[0].reshape(arrays[step.result].shape)
    arrays[step.result][...] = value
