"""What parameters must have in common to go along one direction, as those of L-BFGS do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optlab.optimizer.groups import Group


def check_alike(groups: list[Group]) -> None:
    """Refuse parameters that cannot go along one direction.

    Raises
    ------
    ValueError
        If parameters have rates of their own, or differ in dtype or device.
    """
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
