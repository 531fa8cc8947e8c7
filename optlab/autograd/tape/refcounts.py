"""Whether an array is somebody's alone, or others hold it too and would see it written to."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import Leaf


def _references_of_one_holder() -> int:
    """Count what `getrefcount` says of an array that a local name and one slot refer to."""
    leaf = Leaf((), np.dtype(float))
    leaf.grad = np.zeros(1)
    g: Any = leaf.grad
    return getrefcount(g)


#: What `getrefcount` says of a gradient that only its leaf holds, and who asks.
REFERENCES_WHEN_ALONE = _references_of_one_holder()
#: The same of an array that one local name refers to, and nothing else.
REFERENCES_OF_A_LOCAL = REFERENCES_WHEN_ALONE - 1
