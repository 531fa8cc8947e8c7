"""Ensemble arrays: many copies of one computation at once, each as if it ran alone.

An `EnsembleArray` holds one array per member, stacked along a leading axis that no NumPy function
sees: shape, axes, broadcasting and indices are those of one member. Every supported function has a
batching rule (in the files of this package); others are refused by name.
"""

from typing import Any

from optlab.backend.ensemble.array import EnsembleArray, register
from optlab.backend.ensemble.indexing import getitem, members_of
from optlab.backend.errors import EnsembleError

__all__ = ["RULES", "EnsembleArray", "EnsembleError", "covered", "getitem", "members_of"]


@register
def load_rules() -> Any:
    """Import the batching rules; most programs have no ensembles and never do."""
    from optlab.backend.ensemble import dispatch

    return dispatch


def __getattr__(name: str) -> Any:
    if name in ("RULES", "covered"):
        return getattr(load_rules(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
