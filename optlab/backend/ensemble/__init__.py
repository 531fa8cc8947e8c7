"""Ensemble arrays: many copies of one computation at once, each as if it ran alone.

An `EnsembleArray` holds one array a member, stacked along a leading axis that no function of NumPy
sees: shape, axes, broadcasting and indices are those of one member. Every function that it knows
has a batching rule (the files beside this one); what has none is refused by name.
"""

from typing import Any

from optlab.backend.ensemble.array import EnsembleArray, EnsembleError
from optlab.backend.ensemble.indexing import getitem, members_of

__all__ = ["RULES", "EnsembleArray", "EnsembleError", "covered", "getitem", "members_of"]


def __getattr__(name: str) -> Any:
    """Read the table of rules when it is first asked for: most programs have no ensembles."""
    if name in ("RULES", "covered"):
        from optlab.backend.ensemble import batching

        return getattr(batching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
