"""What several functions of networks share."""

from __future__ import annotations

from typing import Any

from optlab.autograd.creation import DEFAULT_DTYPE
from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import as_array


def scores(x: Any) -> Tensor:
    """Give scores as a Tensor of floating numbers."""
    scores: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    return scores if scores.dtype.kind == "f" else scores.astype(DEFAULT_DTYPE)
