"""How a rule runs, fused or operation by operation, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.backend.arrays import unwrapped
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step import fused

FAST = "captured, in place and block by block"
UNKNOWN = "not known before a step"


def execution(optimizer: UpdateRule) -> dict[str, str]:
    """Return how the rule runs over each array of parameters.

    Parameters
    ----------
    optimizer

    Returns
    -------
    dict of str to str
        One entry per group and dtype.
    """
    return {
        f"group {number}, {params.flat.dtype}": _describe(optimizer, params)
        for number, group in enumerate(optimizer.groups)
        for params in group.arenas
    }


def _describe(optimizer: UpdateRule, flat: FlatParameters) -> str:
    values: Any = flat.values
    if type(values) is not np.ndarray:
        return f"as it is written: the parameters are a {type(unwrapped(values)).__name__}"
    if optimizer.custom_step:
        return "as it is written: it has a step of its own"
    if optimizer.kind == "matrix":
        return "as it is written: a rule of kind 'matrix' runs one parameter at a time"
    if optimizer.draws:
        return "as it is written: it draws random numbers"
    if values.dtype.itemsize < 4:
        return (
            f"as it is written: {values.dtype} is updated by way of float32; multi_precision=True "
            "keeps a float32 copy, which can be updated in place"
        )
    if flat.bounds[-1] < fused.SMALL:
        return f"as it is written: fewer than {fused.SMALL:,} elements"
    refused = optimizer.refused.get(values.dtype)
    captured = [plan for key, plan in optimizer.plans.items() if plan and key[0] == values.dtype]
    compiled = bool(captured) and all(plan.loops for plan in captured)
    fast = f"{FAST}, compiled by numba" if compiled else FAST
    if refused:
        way = f"{fast}; at times as it is written" if captured else "as it is written"
        return f"{way}: {refused.removesuffix('.').removesuffix(': a plan cannot repeat it')}"
    return fast if captured else UNKNOWN
