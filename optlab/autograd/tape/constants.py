"""Saved NumPy arrays that are not Tensors: the user may write to them before backward reads them.

``loss += np.sum(batch @ W)`` with one buffer for every batch would give the last batch's gradient
for all of them. Writes to plain arrays are not tracked. So the tape copies small arrays, and keeps
samples of large ones, by which backward detects a write.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Arrays of up to this many bytes are copied when an operation saves them.
COPIED = 1 << 20

#: The approximate number of elements sampled from a larger array.
SAMPLED = 1000


class SampledConstants:
    """The saved values of a node, with samples of large plain arrays among them."""

    __slots__ = ("name", "samples", "values")

    def __init__(self, name: str, values: tuple[Any, ...], samples: dict[int, bytes]) -> None:
        self.name = name
        self.values = values
        self.samples = samples

    def restored(self) -> tuple[Any, ...]:
        """Return the saved values after checking that none was written to.

        Raises
        ------
        RuntimeError
            With the operation and the shape of the array that changed.
        """
        for i, sample in self.samples.items():
            if sample_of(self.values[i]) != sample:
                raise RuntimeError(
                    f"backward needs the NumPy array of shape {self.values[i].shape} that "
                    f"{self.name!r} was given, but it has been written to since. Run backward "
                    "before that, or give the operation a copy (batch.copy())."
                )
        return self.values


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
        if x.nbytes > COPIED:
            large = True
        elif x.flags.writeable or x.base is not None:  # else never written to
            values = (*values[:i], x.copy(), *values[i + 1 :])
    return values, large


def with_samples(
    name: str, saved: tuple[Any, ...], sources: tuple[int, ...], inputs: Any
) -> SampledConstants:
    """Return the saved values with samples of the large plain arrays among them."""
    samples = {
        i: sample_of(x)
        for i, (x, source) in enumerate(zip(saved, sources, strict=True))
        if source < len(inputs) and x is inputs[source] and type(x) is np.ndarray
    }
    return SampledConstants(name, saved, samples)
