"""Plain NumPy arrays beside Tensors: backward reads them again, and their owner may write to them.

``loss += np.sum(batch @ W)`` with one buffer for every batch would give the last batch's gradient
for all of them. Nobody tells the tape of a write to a plain array. So it keeps a copy of a small
one, and of a large one a sample, by which backward notices that it was written to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Up to this many bytes an array is copied when an operation saves it.
COPIED = 1 << 20

#: About how many elements of a larger one are remembered.
SAMPLED = 1000


class SampledConstants:
    """The saved values of a node, with samples of large plain arrays among them."""

    __slots__ = ("name", "samples", "values")

    def __init__(self, name: str, values: tuple[Any, ...], samples: dict[int, bytes]) -> None:
        self.name = name
        self.values = values
        self.samples = samples

    def restored(self) -> tuple[Any, ...]:
        """Give the saved values, if nobody has written to them.

        Raises
        ------
        RuntimeError
            It names the operation and the shape of the array.
        """
        for i, sample in self.samples.items():
            if sample_of(self.values[i]) != sample:
                raise RuntimeError(
                    f"backward needs the NumPy array of shape {self.values[i].shape} that "
                    f"{self.name!r} was given, but somebody has written to it since. Run backward "
                    "before that, or give the operation a copy (batch.copy())."
                )
        return self.values


def sample_of(x: Any) -> bytes:
    """Give the bytes of some elements, spread over the whole array, its ends among them.

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
    """Copy small plain arrays at `places` of the values; say also whether there is a large one."""
    large = False
    for i in places:
        x = values[i]
        if type(x) is not np.ndarray or x is not inputs[i]:
            continue  # a number, or made here
        if x.nbytes > COPIED:
            large = True
        elif x.flags.writeable or x.base is not None:  # else frozen for good
            values = (*values[:i], x.copy(), *values[i + 1 :])
    return values, large


def with_samples(
    name: str, saved: tuple[Any, ...], sources: tuple[int, ...], inputs: Any
) -> SampledConstants:
    """Give what a node keeps: the saved values, with samples of large plain arrays."""
    samples = {
        i: sample_of(x)
        for i, (x, source) in enumerate(zip(saved, sources, strict=True))
        if source < len(inputs) and x is inputs[source] and type(x) is np.ndarray
    }
    return SampledConstants(name, saved, samples)
