"""The documented path of `optlab.autograd.checkpoint.schedules.theory`."""

from optlab.autograd.checkpoint.schedules.theory import (
    Bound,
    bounds,
    reach,
    recomputations,
    repetitions,
)

__all__ = ["Bound", "bounds", "reach", "recomputations", "repetitions"]
