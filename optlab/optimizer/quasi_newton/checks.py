"""Checks of parameters that are all moved along one line."""

from __future__ import annotations

from typing import Any

from optlab.backend.ensemble import EnsembleArray
from optlab.optimizer.params.groups import Group
from optlab.optimizer.rule.members import PerMember


def check_one_run(value: Any) -> None:
    """Raise TypeError for an ensemble: its members would need different step lengths."""
    if isinstance(value, (EnsembleArray, PerMember)):
        raise TypeError(
            "LBFGS takes no ensembles: each member would need steps, searches and an end of its "
            "own. Make one LBFGS for each run, or race them: ol.compare(problem, {'a': LBFGS(1.0), "
            "'b': LBFGS(0.1)})."
        )


def check_same_kind(groups: list[Group]) -> None:
    """Raise ValueError for parameters that cannot be moved along one direction."""
    kinds = set()
    for group in groups:
        for p in group.parameters:
            kinds.add((str(p.dtype), str(p.device)))
            if group.multiplier * getattr(p, "learning_rate", 1.0) != 1:
                raise ValueError(
                    "LBFGS moves all parameters along one direction: "
                    f"{getattr(p, 'name', None) or 'a parameter'} cannot have a learning rate "
                    "of its own. Use one optimizer for each."
                )
    if len(kinds) > 1:
        found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise ValueError(f"LBFGS needs all parameters in one dtype and on one device; got {found}.")
