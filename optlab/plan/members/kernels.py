"""Machine loops for the members of an ensemble: rows of elements, each with numbers of its own.

The loop of a phase (`optlab.plan.numba_codegen`) runs over the rows of a tile. Its numbers are an
array with one line a row, where a single run passes them one by one; elements go through the same
operations, so a member's bits are those of its own run. What `optlab.plan.numba_kernels` says of
floating-point errors and of the verification holds here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from optlab.plan.blocks import RunsBlock
from optlab.plan.members.blocks import MemberBlocks, Tile, tiles
from optlab.plan.numba_cache import kernel_of
from optlab.plan.numba_codegen import CHUNK, Loop, loop_of
from optlab.plan.numba_kernels import COUNTS, MachineLoops, gives_same_bits, memory_of
from optlab.plan.progress import Progress
from optlab.plan.scratch import scratch

#: Gradients of fewer elements a member are concatenated: a call takes as long as this many copied.
_SMALL = 1024


class MemberLoops(MachineLoops):
    """Runs a block plan on blocks of members, like `MemberBlocks`, by one machine loop.

    Examples
    --------
    >>> from optlab.plan import capture_blocks
    >>> example = np.ones(2)
    >>> plan = capture_blocks(
    ...     lambda a, n: {"p": a["p"] - n["rate"] * a["g"]},
    ...     {"p": example, "g": example},
    ...     {"rate": 0.1},
    ... )
    >>> loops = MemberLoops(MemberBlocks(plan, np.dtype(float)))
    >>> print(loops.loops[0].body)
    v3 = n0 * v1
    v4 = v0 - v3
    """

    def __init__(self, members: MemberBlocks) -> None:
        self.members, self.plan = members, members.plan
        self.prepare, self.afters = members.prepare, members.afters
        loop = loop_of(members.plan, 0, rows=True)
        if loop is not None and any(number.dtype != members.dtype for number in loop.numbers):
            loop = None  # a column of numbers has the dtype of the parameters
        self.loops = [loop]
        self.kernels = {} if loop is None else {0: kernel_of(loop.source, _parameters(loop))}
        self._checked: set[int] = set()

    @property
    def block(self) -> int:
        """The number of elements of a block."""
        return self.members.block

    def tiles(self, arrays: Sequence[Any], gradients: Sequence[Any], start: int) -> Iterator[Tile]:
        """Yield the blocks of an ensemble of flat arrays, as `MemberBlocks.tiles`."""
        return tiles(arrays, gradients, start, self.block, joined=_SMALL)

    def phase(self, number: int, prepared: Sequence[Any]) -> RunsBlock:
        """Return the function that runs the plan on a `Tile`."""
        by_numpy = self.members.phase(number, prepared)
        loop = self.loops[number]
        numbers = None if loop is None else self._numbers(loop, prepared)
        if loop is None or numbers is None:
            return by_numpy
        block = self._run_rows(loop, numbers, prepared, by_numpy)

        def as_rows(arrays: Sequence[Any]) -> Tile:
            count = len(numbers)
            return Tile([np.stack([x] * count) for x in arrays], slice(0, count))

        if not self.is_verified(
            number, lambda: gives_same_bits(self.plan, block, by_numpy, as_rows)
        ):
            return by_numpy
        return block

    def _numbers(self, loop: Loop, prepared: Sequence[Any]) -> Any:
        """Return the numbers of each row, None if one is not finite."""
        columns = [
            float(number.constant) if number.place is None else prepared[number.place]
            for number in loop.numbers
        ]
        count = next((len(x) for x in prepared if isinstance(x, np.ndarray)), 1)
        found = np.empty((count, max(len(columns), 1)), self.members.dtype)
        with np.errstate(all="ignore"):
            for place, column in enumerate(columns):
                found[:, place] = column[:, 0] if isinstance(column, np.ndarray) else column
        return found if np.isfinite(found[:, : len(columns)]).all() else None

    def _run_rows(
        self, loop: Loop, numbers: Any, prepared: Sequence[Any], by_numpy: RunsBlock
    ) -> RunsBlock:
        plan, calls = self.plan, self.plan.calls[0]
        function = self.kernels[0].function
        assert function is not None
        places = [*loop.read, *loop.written]
        offsets = np.cumsum([0, *(loop.old_size * dtype.itemsize for dtype in loop.old_dtypes)])
        old_offsets, old_bytes = offsets[:-1].tolist(), int(offsets[-1])
        one_for_all = len(numbers) == 1

        def block(arrays: Any, progress: Progress | None = None) -> list[Any]:
            progress = progress or Progress()
            rows, size = arrays[0].shape
            held = [arrays[place] for place in places]
            if not size or not all(map(_has_rows, held)):
                return by_numpy(arrays, progress)
            own = numbers[:1].repeat(rows, axis=0) if one_for_all else numbers[arrays.rows]
            # The first row is in one piece, which a pointer is made of.
            memory = [memory_of(array[0]) for array in held]
            apart = [array.strides[0] // array.itemsize for array in held]
            first = 8 * (rows * (size // CHUNK + 1) + 1)  # bytes of count and places of faults
            (faulty,) = scratch(COUNTS, (first + old_bytes + 7) // 8, "machine loops")
            memory.append(memory_of(faulty, 8))
            memory += [memory_of(faulty, first + offset) for offset in old_offsets]
            _, count, faulty = progress.do(
                [
                    (function, memory_of(faulty), None, size, rows, *apart, *memory,
                     memory_of(own)),
                    (faulty.item, 0),
                    # That of the call above, also if this is made again after an exception.
                    (np.asarray, faulty),
                ]
            )  # fmt: skip
            if count:
                for place in progress.do([(np.ndarray.tolist, faulty[1 : count + 1])])[0]:
                    row, start = divmod(place, size)
                    again = [array[row : row + 1, start : start + CHUNK] for array in arrays]
                    top = arrays.rows.start + row
                    of_row = [
                        x[top : top + 1] if isinstance(x, np.ndarray) else x for x in prepared
                    ]
                    dtypes = [*plan.kept, *plan.scratch]
                    spare = scratch(dtypes, again[0].size, "again")
                    progress.do(calls(*again, *(x.reshape(1, -1) for x in spare), *of_row))
            return []

        return block


def _has_rows(array: Any) -> bool:
    """Return whether the elements of a row lie side by side, and may be written."""
    flags = array.flags
    return bool(
        flags.writeable
        and flags.aligned
        and array.strides[1] == array.itemsize
        and array.strides[0] % array.itemsize == 0
        and array.strides[0] >= 0
    )


def _parameters(loop: Loop) -> list[str]:
    """Return the kinds of the parameters of a loop over rows."""
    arrays = [*loop.read_dtypes, *loop.written_dtypes]
    numbers = next((number.dtype for number in loop.numbers), arrays[0])
    memory = [*arrays, np.dtype(np.int64), *loop.old_dtypes, numbers]
    return [*["int64"] * (2 + len(arrays)), *(f"{kind}*" for kind in memory)]
