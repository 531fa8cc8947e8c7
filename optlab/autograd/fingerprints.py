"""Fingerprints: a few bytes by which the second run of an operation is compared with the first.

What is computed again has to be what it was. A fingerprint is made of the shape, the dtype and the
bytes of an array: all of a small one, some thousand elements of a large one, spread so that every
column is among them. It finds another random mask, a buffer that was written to, a branch that went
the other way; it cannot find a change of single elements of a large array that nothing spreads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from optlab.autograd.constants import sample_of
from optlab.backend.arrays import Shape, on_host

#: So many elements of an array are looked at, about.
LOOKED_AT = 4096


class Fingerprint(NamedTuple):
    """What is remembered of the result of an operation."""

    operation: str
    shape: Shape
    dtype: str
    bytes: int

    def difference(self, other: Fingerprint) -> str:
        """Say in words how the second run, `other`, differs from this one.

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
    """Give the fingerprint of what an operation gave: an array, or a tuple of several.

    Examples
    --------
    >>> fingerprint("exp", np.ones(3)) == fingerprint("exp", np.ones(3))
    True
    >>> fingerprint("exp", np.ones(3)) == fingerprint("exp", np.zeros(3))
    False
    """
    if isinstance(y, tuple):
        sums = [_bytes_of(part) for part in y]
        shapes = tuple(size for part in y for size in part.shape)
        return Fingerprint(operation, shapes, str(y[0].dtype), hash(tuple(sums)))
    return Fingerprint(operation, y.shape, str(y.dtype), _bytes_of(y))


def _bytes_of(array: Any) -> int:
    """Sum up the bytes of some elements."""
    while (name := getattr(type(array), "holds", None)) is not None:  # an ensemble
        array = getattr(array, name)
    if getattr(array, "ndim", 0) and array.size > LOOKED_AT:
        if array.flags.c_contiguous:
            array = array.reshape(-1)[:: step_over(array.size, array.shape[-1])]
        else:
            return crc32(sample_of(on_host(array)))
    return crc32(np.asarray(on_host(array)).tobytes())


def step_over(size: int, columns: int) -> int:
    """Give a step that looks at some thousand of `size` elements, and comes by every column.

    Examples
    --------
    >>> step_over(512 * 1024, 1024)
    129
    """
    step = max(1, size // LOOKED_AT)
    while math.gcd(step, columns) > 1:
        step += 1
    return step
