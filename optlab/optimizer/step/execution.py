"""How a rule runs, fused or operation by operation, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.backend.arrays import unwrapped
from optlab.backend.ensemble import EnsembleArray
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step import fused
from optlab.plan.cuda.kernels import has_kernels, kernels_of

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
    on_cpu = type(values) is np.ndarray
    if not on_cpu and not (has_kernels(values) or type(values) is EnsembleArray):
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
    if type(values) is EnsembleArray:
        return _of_members(optimizer, values)
    if not on_cpu:
        return _on_device(optimizer, values)
    if flat.bounds[-1] < fused.SMALL:
        if optimizer.bound_step is not None:
            return FAST
        return f"as it is written: fewer than {fused.SMALL:,} elements"
    refused = optimizer.refused.get(values.dtype)
    captured = [plan for key, plan in optimizer.plans.items() if plan and key[0] == values.dtype]
    compiled = bool(captured) and all(plan.loops for plan in captured)
    fast = f"{FAST}, compiled by numba" if compiled else FAST
    if refused:
        way = f"{fast}; at times as it is written" if captured else "as it is written"
        return f"{way}: {refused.removesuffix('.').removesuffix(': a plan cannot repeat it')}"
    return fast if captured else UNKNOWN


def _of_members(optimizer: UpdateRule, values: Any) -> str:
    """Describe an update of the members of an ensemble."""
    if optimizer.kind != "elementwise":
        return "as it is written, all members at once: the rule is not elementwise"
    if not optimizer.built_in or optimizer.not_finite != "pass":
        return "as it is written, all members at once"
    if values.members.size < fused.SMALL:
        return f"as it is written, all members at once: fewer than {fused.SMALL:,} elements"
    if refused := optimizer.refused.get(values.dtype):
        return f"as it is written, all members at once: {refused.removesuffix('.')}"
    if not any(plan and key[0] == values.dtype for key, plan in optimizer.plans.items()):
        return UNKNOWN
    return f"{FAST}, all members at once"


def _on_device(optimizer: UpdateRule, values: Any) -> str:
    """Describe an update on a device that compiles kernels."""
    if not optimizer.built_in:
        return "as it is written: on a GPU, kernels are made of optlab's own rules"
    if optimizer.not_finite != "pass":
        return f"as it is written: not_finite={optimizer.not_finite!r} looks at its results first"
    if refused := optimizer.refused.get(values.dtype):
        return f"as it is written: {refused.removesuffix('.')}"
    plans = [plan for key, plan in optimizer.plans.items() if plan and key[0] == values.dtype]
    if not plans:
        return UNKNOWN
    if any(kernels_of(plan, values) is None for plan in plans):
        return "as it is written: it needs a norm, or a function that has no form in CUDA"
    return "captured, one kernel on the GPU"
