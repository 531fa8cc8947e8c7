"""Saved NumPy arrays that are not Tensors: the user may write to them before backward reads them.

``loss += np.sum(batch @ W)`` with one buffer for every batch would give the last batch's gradient
for all of them. Writes to plain arrays are not tracked. So the tape copies small arrays, and keeps
a checksum of every large one, by which backward detects a write to any of its elements, and rows or
elements that change places (other than two elements whose distance is a multiple of 2039).

The checksum is taken at the speed of memory: of 16 MB in 0.6 ms, the time of a copy (`zlib.crc32`
takes 2.3 ms), when the operation is recorded and again when backward reads the array. An array that
is read-only (``x.flags.writeable = False``) and owns its memory needs neither copy nor checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

#: Arrays of up to this many bytes are copied when an operation saves them.
COPIED = 1 << 20

#: The approximate number of elements in a sample.
SAMPLED = 1000

#: A checksum lays words out as rows of this length, a prime, which no usual matrix has, and reads
#: blocks of rows that fit in the cache.
_ROW = 2039
_ROWS_OF_BLOCK = 32
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplication loses nothing


class CheckedConstants:
    """The saved values of a node, with checksums of large plain arrays among them."""

    __slots__ = ("checksums", "name", "values")

    def __init__(self, name: str, values: tuple[Any, ...], checksums: dict[int, bytes]) -> None:
        self.name = name
        self.values = values
        self.checksums = checksums

    def restored(self) -> tuple[Any, ...]:
        """Return the saved values after checking that none was written to.

        Raises
        ------
        RuntimeError
            With the operation and the shape of the array that changed.
        """
        for i, checksum in self.checksums.items():
            if checksum_of(self.values[i]) != checksum:
                raise RuntimeError(
                    f"backward needs the NumPy array of shape {self.values[i].shape} that "
                    f"{self.name!r} was given, but it has been written to since. Run backward "
                    "before that, or give the operation a copy (batch.copy())."
                )
        return self.values


def checksum_of(x: Any) -> bytes:
    """Return a checksum of all elements of an array.

    The words of 8 bytes are laid out as rows of a prime length, and added up by column. A change of
    one word changes the sum of its column, whatever the change (sums are modulo 2**64); words that
    are exchanged, as by a shuffle, change those of their columns, unless they are in one column.
    Between blocks of rows the sums are multiplied, so that blocks are told apart.

    Examples
    --------
    >>> x = np.arange(10**5)
    >>> before = checksum_of(x)
    >>> x[[7, 70_000]] = x[[70_000, 7]]
    >>> checksum_of(x) == before
    False
    """
    if x.dtype.hasobject:
        return sample_of(x)
    columns = np.zeros(_ROW, np.uint64)
    for words in _blocks_of_words(x):
        whole = words.size // _ROW * _ROW
        columns *= _FACTOR
        columns += np.add.reduce(words[:whole].reshape(-1, _ROW), axis=0)
        columns[: words.size - whole] += words[whole:]
    return columns.tobytes()


def _blocks_of_words(x: Any) -> Iterator[Any]:
    """Return the memory of an array in blocks of unsigned integers; only blocks are copied."""
    if x.flags.forc:
        flat = x.ravel(order="K").view(np.uint8)
        step = _ROW * _ROWS_OF_BLOCK * 8
        for start in range(0, flat.size, step):
            yield _words(flat[start : start + step])
        return
    # The rest has gaps, or axes in another order: the axis of the longest steps is cut.
    x = x.transpose(sorted(range(x.ndim), key=lambda i: -abs(x.strides[i])))
    rows = max(1, _ROW * _ROWS_OF_BLOCK * 8 // max(x[:1].nbytes, 1))
    for start in range(0, len(x), rows):
        yield _words(np.ascontiguousarray(x[start : start + rows]).reshape(-1).view(np.uint8))


def _words(memory: Any) -> Any:
    """Return bytes as words of 8, the last of them filled up with zeros."""
    rest = memory.size % 8
    if not rest and memory.ctypes.data % 8 == 0:
        return memory.view(np.uint64)
    return np.concatenate([memory, np.zeros(-memory.size % 8, np.uint8)]).view(np.uint64)


def sample_of(x: Any) -> bytes:
    """Return the bytes of elements sampled evenly from the array, including its ends.

    Examples
    --------
    >>> sample_of(np.zeros(10)) == sample_of(np.zeros(10)), len(sample_of(np.zeros(10**6))) < 10**5
    (True, True)
    """
    step = max(1, int((x.size / SAMPLED) ** (1 / max(x.ndim, 1))))
    spread = x[tuple(slice(None, None, min(step, n) or 1) for n in x.shape)]
    ends: bytes = x[(-1,) * x.ndim].tobytes()
    return bytes(spread.tobytes()) + ends


def copy_constants(values: Any, inputs: Any, places: tuple[int, ...]) -> tuple[Any, bool]:
    """Copy small plain arrays at `places`; return the values and whether a large one is left."""
    large = False
    for i in places:
        x = values[i]
        if type(x) is not np.ndarray or x is not inputs[i]:
            continue  # a number, or an array made here
        if not x.flags.writeable and x.base is None:
            continue  # never written to
        if x.nbytes > COPIED:
            large = True
        else:
            values = (*values[:i], x.copy(), *values[i + 1 :])
    return values, large


def with_checksums(
    name: str, saved: tuple[Any, ...], sources: tuple[int, ...], inputs: Any
) -> CheckedConstants:
    """Return the saved values with checksums of the large plain arrays among them."""
    checksums = {
        i: checksum_of(x)
        for i, (x, source) in enumerate(zip(saved, sources, strict=True))
        if source < len(inputs)
        and x is inputs[source]
        and type(x) is np.ndarray
        and (x.flags.writeable or x.base is not None)
    }
    return CheckedConstants(name, saved, checksums)
