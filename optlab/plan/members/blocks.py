"""The executor of a block plan for the members of an ensemble: rows of two-dimensional blocks.

Every member has numbers of its own (a learning rate), the operations are the same. So the captured
operations run on blocks of some members each, in place, with a column of numbers where a single
run has one number. An element goes through the same operations as in a run by itself, to the bit:
the columns are computed in float64, as Python floats are, and rounded to the dtype of the arrays,
as NumPy rounds a Python float.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from optlab.plan import sizes
from optlab.plan.blocks import BlockPlan, RunsBlock
from optlab.plan.progress import Progress
from optlab.plan.scratch import scratch


class Tile(list[Any]):
    """The arrays of a block, of shape (members, elements), and which members these are."""

    def __init__(self, arrays: Sequence[Any], rows: slice) -> None:
        super().__init__(arrays)
        self.rows = rows


class MemberBlocks:
    """Runs a block plan of one phase on blocks of members.

    Parameters
    ----------
    plan : BlockPlan
    dtype
        Of the arrays, to which numbers are rounded.

    Examples
    --------
    >>> from optlab.plan import capture_blocks
    >>> example = np.ones(2)
    >>> plan = capture_blocks(
    ...     lambda a, n: {"p": a["p"] - n["rate"] * a["g"]},
    ...     {"p": example, "g": example},
    ...     {"rate": 0.1},
    ... )
    >>> members = MemberBlocks(plan, np.dtype(float))
    >>> run = members.phase(0, members.prepare([0.5, 0.25]))
    >>> p = np.ones((2, 3))
    >>> run(Tile([p, np.ones((2, 3))], slice(0, 2)))
    []
    >>> p
    array([[0.5 , 0.5 , 0.5 ],
           [0.75, 0.75, 0.75]])
    """

    def __init__(self, plan: BlockPlan, dtype: Any) -> None:
        if plan.afters:
            raise ValueError("a plan with reductions over whole arrays has no blocks of members.")
        self.plan, self.dtype = plan, dtype
        self.instructions = plan.instructions
        self.afters: list[Any] = []
        #: State of `optlab.plan.executors`, as that of a `BlockPlan`.
        self.worked = 0
        self.loops_wanted: Any = None
        self.loops: Any = None
        # Powers of Python floats and of arrays differ in the last bit.
        self._has_powers = "**" in plan.source.partition("def run0")[0]

    @property
    def block(self) -> int:
        """The number of elements of a block."""
        return self.plan.block

    def tiles(self, arrays: Sequence[Any], gradients: Sequence[Any], start: int) -> Iterator[Tile]:
        """Yield the blocks of an ensemble of flat arrays; see the function `tiles`."""
        return tiles(arrays, gradients, start, self.block)

    def prepare(self, *numbers: Any) -> list[Any]:
        """Return what is computed from the numbers: a float, or a column with one a member.

        Parameters
        ----------
        *numbers : float or list of float
        """
        count = next((len(x) for x in numbers if isinstance(x, list)), 0)
        if not count:
            return list(self.plan.prepare(*numbers))
        if not self._has_powers:
            with np.errstate(all="ignore"):
                given = [np.array(x) if isinstance(x, list) else x for x in numbers]
                found = list(self.plan.prepare(*given))
                if all(np.isfinite(x).all() for x in found):
                    return [self._column(x) if isinstance(x, np.ndarray) else x for x in found]
        # One after another, as single runs: Python's floats raise where arrays become infinite.
        each = [
            self.plan.prepare(*[x[k] if isinstance(x, list) else x for x in numbers])
            for k in range(count)
        ]
        return [self._column(np.array(values, float)) for values in zip(*each, strict=True)]

    def _column(self, values: Any) -> Any:
        return values.astype(self.dtype)[:, None]

    def phase(self, number: int, prepared: Sequence[Any]) -> RunsBlock:
        """Return the function that runs the plan on a `Tile`."""
        calls, dtypes = self.plan.calls[number], [*self.plan.kept, *self.plan.scratch]

        def block(arrays: Any, progress: Progress | None = None) -> list[Any]:
            progress = progress or Progress()
            shape = arrays[0].shape
            memory = [one.reshape(shape) for one in scratch(dtypes, arrays[0].size)]
            of_rows = [x[arrays.rows] if isinstance(x, np.ndarray) else x for x in prepared]
            progress.do(calls(*arrays, *memory, *of_rows))
            return []

        return block


def tiles(
    arrays: Sequence[Any],
    gradients: Sequence[Any],
    start: int,
    block: int | None = None,
    joined: int | None = None,
) -> Iterator[Tile]:
    """Yield the blocks of an ensemble of flat arrays.

    Parameters
    ----------
    arrays : sequence of array, shape (members, elements)
        Values and slots; the gradient comes second in a block.
    gradients : sequence of array, shape (members, ...)
        Of neighboring parts of the arrays.
    start : int
        The element at which the first of these parts begins.
    block : int, optional
        The most elements of a block.
    joined : int, optional
        The most elements a member of neighboring gradients that are concatenated; by default those
        of a block.

    Examples
    --------
    >>> p, g = np.zeros((4, 5)), np.ones((4, 2, 2))
    >>> [(one.rows, one[0].shape) for one in tiles([p], [g], 1, block=8)]
    [(slice(0, 2, None), (2, 4)), (slice(2, 4, None), (2, 4))]
    """
    block = block or sizes.BLOCK
    count = len(arrays[0])
    for g in _joined(gradients, count, joined or block):
        length = g.shape[1]
        width = min(length, block)
        height = max(1, block // width)
        for left in range(0, length, width):
            part = slice(left, min(left + width, length))
            here = slice(start + part.start, start + part.stop)
            for top in range(0, count, height):
                rows = slice(top, min(top + height, count))
                first, *others = [array[rows, here] for array in arrays]
                yield Tile([first, g[rows, part], *others], rows)
        start += length


def _joined(gradients: Sequence[Any], count: int, block: int) -> Iterator[Any]:
    """Yield gradients as rows; neighbors are concatenated up to the length of a block.

    Blocks of whole members lie in one piece of memory, which NumPy passes over in one loop.
    """
    small: list[Any] = []
    together = 0
    for one in gradients:
        g = one.reshape(count, -1)
        if small and together + g.shape[1] > block:
            yield small[0] if len(small) == 1 else np.concatenate(small, axis=1)
            small, together = [], 0
        small.append(g)
        together += g.shape[1]
    if small:
        yield small[0] if len(small) == 1 else np.concatenate(small, axis=1)
