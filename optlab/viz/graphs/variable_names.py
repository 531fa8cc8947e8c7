"""Names of Tensors, from the variables of the calling frame."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType
from typing import Any

import numpy as np

from optlab.autograd import Tensor

_MOST_MEMBERS = 64


def names_in(frame: FrameType) -> dict[str, Any]:
    """Return the Tensors and arrays among the variables of a frame, local ones first.

    Examples
    --------
    >>> import sys
    >>> import optlab as ol
    >>> weights = [ol.to_tensor(1.0), ol.to_tensor(2.0)]
    >>> sorted(name for name in names_in(sys._getframe()) if name.startswith("weights"))
    ['weights[0]', 'weights[1]']
    """
    # Up to Python 3.12 a frame keeps the dict of `f_locals` until its function ends.
    found: dict[str, Any] = {}
    for variables in (frame.f_locals, frame.f_globals):
        for name, held in list(variables.items()):
            if not name.startswith("_") and name not in ("In", "Out"):
                _collect(name, held, found)
    return found


def _collect(name: str, held: Any, found: dict[str, Any]) -> None:
    if isinstance(held, (Tensor, np.ndarray)):
        found.setdefault(name, held)
    elif isinstance(held, (list, tuple)) and len(held) <= _MOST_MEMBERS:
        for i, part in enumerate(held):
            if isinstance(part, (Tensor, np.ndarray)):
                found.setdefault(f"{name}[{i}]", part)
    elif isinstance(held, Mapping) and len(held) <= _MOST_MEMBERS:
        for key, part in held.items():
            if isinstance(part, (Tensor, np.ndarray)):
                found.setdefault(f"{name}[{key!r}]", part)
