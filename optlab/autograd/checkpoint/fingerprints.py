"""Fingerprints: a few bytes by which the replay of an operation is compared with its first run.

A fingerprint consists of the shape, the dtype and a checksum of an array: of all elements of a
small one, of some thousand of a large one, spread so that every column is included. It detects
another random mask, an overwritten buffer, a branch that went the other way; it cannot detect a
change of single elements of a large array that does not spread.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from optlab.autograd.tape.constants import sample_of
from optlab.backend.arrays import Shape, on_host

#: Approximate number of elements in the sample of a large array.
SAMPLE = 4096


class Fingerprint(NamedTuple):
    """Fingerprint of the result of an operation."""

    operation: str
    shape: Shape
    dtype: str
    bytes: int

    def difference(self, other: Fingerprint) -> str:
        """Describe how the replay, `other`, differs from this one.

        Examples
        --------
        >>> first = fingerprint("exp", np.ones(3))
        >>> first.difference(fingerprint("exp", np.ones(4)))
        "'exp' gave shape (3,) the first time and (4,) the second"
        """
        if self.operation != other.operation:
            return f"{self.operation!r} ran the first time and {other.operation!r} the second"
        for what in ("shape", "dtype"):
            first, second = getattr(self, what), getattr(other, what)
            if first != second:
                return (
                    f"{self.operation!r} gave {what} {first} the first time and {second} the second"
                )
        return f"{self.operation!r} gave other numbers the second time (shape {self.shape})"


def fingerprint(operation: str, y: Any) -> Fingerprint:
    """Return the fingerprint of the result of an operation: an array, or a tuple of several.

    Examples
    --------
    >>> fingerprint("exp", np.ones(3)) == fingerprint("exp", np.ones(3))
    True
    >>> fingerprint("exp", np.ones(3)) == fingerprint("exp", np.zeros(3))
    False
    """
    if isinstance(y, tuple):
        sums = [_checksum(part) for part in y]
        shapes = tuple(size for part in y for size in part.shape)
        return Fingerprint(operation, shapes, str(y[0].dtype), hash(tuple(sums)))
    return Fingerprint(operation, y.shape, str(y.dtype), _checksum(y))


def _checksum(array: Any) -> int:
    """Return the CRC-32 of an array, of a sample if it is large."""
    while (name := getattr(type(array), "holds", None)) is not None:  # an ensemble
        array = getattr(array, name)
    if getattr(array, "ndim", 0) and array.size > SAMPLE:
        if array.flags.c_contiguous:
            array = array.reshape(-1)[:: sampling_step(array.size, array.shape[-1])]
        else:
            return crc32(sample_of(on_host(array)))
    return crc32(np.asarray(on_host(array)).tobytes())


def sampling_step(size: int, columns: int) -> int:
    """Return a step that samples some thousand of `size` elements, and visits every column.

    Examples
    --------
    >>> sampling_step(512 * 1024, 1024)
    129
    """
    step = max(1, size // SAMPLE)
    while math.gcd(step, columns) > 1:
        step += 1
    return step
