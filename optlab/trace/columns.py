"""Columns: arrays that grow by a row per step, in memory and, beyond it, in a file."""

from __future__ import annotations

from typing import Any

import numpy as np


class Column:
    """An array that grows by one row per step.

    Rows are stored by reference and joined in blocks, so that appending is cheap. Its first rows
    may lie in a file: `stored` of them, read when they are asked for.

    Attributes
    ----------
    count : int
        The number of rows.
    stored : int
        How many of them lie in `file`.
    file : array-like or None
        Anything that slices into arrays and has a dtype; it may have more rows than are used.
    """

    __slots__ = ("_read", "blocks", "count", "file", "rows", "stored")

    BLOCK = 512

    def __init__(self, file: Any = None, stored: int = 0) -> None:
        self.rows: list[Any] = []
        self.blocks: list[np.ndarray] = []
        self.file, self.stored = file, stored
        self.count = stored
        #: The rows of the file, once they have been read.
        self._read: np.ndarray | None = None

    def append(self, row: Any) -> None:
        """Append a row; it is stored, not copied, and must not change later."""
        self.rows.append(row)
        self.count += 1
        if len(self.rows) >= self.BLOCK:
            self._join()

    def append_all(self, rows: list[Any]) -> None:
        """Append a list of rows, as `append` does one."""
        self.rows += rows
        self.count += len(rows)
        if len(self.rows) >= self.BLOCK:
            self._join()

    def extend(self, rows: np.ndarray) -> None:
        """Append many rows at once; they are stored, not copied."""
        self._join()
        self.blocks.append(rows)
        self.count += len(rows)

    def fill(self, count: int, like: Any) -> None:
        """Append rows of NaN of the given shape until there are `count`."""
        while self.count < count:
            self.append(np.full_like(like, np.nan))

    def fill_as_before(self, count: int) -> None:
        """Append rows of NaN like the last row until there are `count`."""
        if self.count < count:
            self.fill(count, self.last())

    def last(self) -> Any:
        """Return the last row."""
        if self.rows:
            return self.rows[-1]
        if self.blocks and len(self.blocks[-1]):
            return self.blocks[-1][-1]
        return self.file[self.stored - 1]

    def __len__(self) -> int:
        return self.count

    def _join(self) -> None:
        if self.rows:
            self.blocks.append(_joined(self.rows))
            self.rows = []

    def in_memory(self, dtype: Any = None) -> np.ndarray:
        """Return the rows that do not lie in the file."""
        if self.rows or not self.blocks:
            self.blocks.append(_joined(self.rows, dtype))
            self.rows = []
        if len(self.blocks) > 1:
            self.blocks = [np.concatenate([block for block in self.blocks if len(block)])]
        return self.blocks[0]

    def array(self, dtype: Any = None) -> np.ndarray:
        """Return all rows as one array."""
        if self.file is None:
            return self.in_memory(dtype)
        if self._read is None or len(self._read) != self.stored:
            self._read = np.asarray(self.file[: self.stored])
        if self.count == self.stored:
            return self._read
        return np.concatenate([self._read, self.in_memory()])

    def settle(self, file: Any, stored: int) -> None:
        """Forget rows that lie in a file now."""
        self.file, self.stored = file, stored
        self.rows, self.blocks, self._read = [], [], None


def _joined(rows: list[Any], dtype: Any = None) -> np.ndarray:
    """Return rows as one array.

    Of short vectors `np.concatenate` makes it in a third of the time that `np.array` takes.
    """
    if rows and dtype is None and set(map(type, rows)) == {np.ndarray} and rows[0].ndim == 1:
        shapes, dtypes = {row.shape for row in rows}, {row.dtype for row in rows}
        if len(shapes) == len(dtypes) == 1:
            return np.concatenate(rows).reshape(len(rows), -1)
    return np.array(rows, dtype=dtype)
