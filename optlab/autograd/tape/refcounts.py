"""Reference counts: an array without other references may be written to in place."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import Leaf


def _references_of_one_holder() -> int:
    """Return `getrefcount` of an array that a local name and one slot refer to."""
    leaf = Leaf((), np.dtype(float))
    leaf.grad = np.zeros(1)
    g: Any = leaf.grad
    return getrefcount(g)


#: `getrefcount` of a gradient that only its leaf and one local name refer to.
REFERENCES_WHEN_ALONE = _references_of_one_holder()
#: `getrefcount` of an array that only one local name refers to.
REFERENCES_OF_A_LOCAL = REFERENCES_WHEN_ALONE - 1
