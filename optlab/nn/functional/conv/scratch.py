"""Memory for work on blocks of images, which each thread reuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from optlab.backend.arrays import Shape
from optlab.plan.scratch import noted, scratch

#: Larger arrays are made anew each time, so that no memory of their size is kept.
KEPT_BYTES = 2_500_000

#: Views are made anew when there are more.
MOST_VIEWS = 64


class _Scratch:
    """Makes the arrays of one block; those of the next block on the same thread reuse them.

    Pages of fresh memory are zeroed when they are first written, which takes as long as the copies
    of im2col themselves.
    """

    __slots__ = ()

    def __call__(self, beside: Any, shape: Shape, role: str) -> Any:
        """Return an array of a shape, with the dtype of another array and arbitrary values.

        It overwrites the one that this thread had for the same role before.
        """
        size, known = math.prod(shape), noted("convolution, arrays")
        if size * beside.itemsize > KEPT_BYTES:
            known["too large"] = True
            return np.empty(shape, beside.dtype)
        # Rounded up to three binary digits: a block that is a little larger finds room.
        step = 1 << max(size.bit_length() - 3, 0)
        found = scratch([beside.dtype], -(-size // step) * step, f"convolution, {role}")[0]
        whole = found if found.base is None else found.base
        if known.get((role, beside.dtype)) is not whole:
            known[role, beside.dtype] = whole
            noted("convolution, views").clear()  # some are of the array before
        return found[:size].reshape(shape)

    def views(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` returns, views of scratch arrays, as long as these are kept.

        Making views takes as long as the copies of small images, and two threads wait for each
        other meanwhile.
        """
        kept = noted("convolution, views")
        if (found := kept.get(key)) is None:
            known = noted("convolution, arrays")
            known["too large"] = False
            found = make()
            if not known["too large"]:
                if len(kept) >= MOST_VIEWS:
                    kept.clear()
                kept[key] = found
        return found


SCRATCH = _Scratch()
