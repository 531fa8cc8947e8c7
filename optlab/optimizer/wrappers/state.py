"""The state of wrappers and averages: arrays and numbers of each parameter, in state dicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from operator import setitem
from typing import Any

import numpy as np

from optlab.autograd.tensor.conversions import refuse_unrecorded
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, copied, placed_beside
from optlab.backend.ensemble import EnsembleArray
from optlab.optimizer.state_dict import nan_fault, stack_members, unstack_like
from optlab.plan import sizes
from optlab.plan.progress import Progress

#: The state of one parameter: arrays and numbers (whole, or floats in [0, 1]) by name.
Memory = dict[str, Any]


def memories_to_state(names: list[str], memories: list[Memory]) -> dict[str, Any]:
    """Return memories as entries of a state dict, as ``"fc.weight.slow"``; arrays are copies."""
    return {
        f"{name}.{label}": Tensor(copied(stack_members(value)))
        if hasattr(value, "dtype")
        else value
        for name, memory in zip(names, memories, strict=True)
        for label, value in memory.items()
    }


def memories_from_state(
    names: list[str], memories: list[Memory], given: Mapping[str, Any]
) -> tuple[list[Memory], list[str]]:
    """Read memories like `memories` from a state dict; return them and a list of faults."""
    faults = []
    found: list[Memory] = []
    known = set()
    for name, memory in zip(names, memories, strict=True):
        taken: Memory = {}
        for label, present in memory.items():
            key = f"{name}.{label}"
            known.add(key)
            if key not in given:
                faults.append(f"{key} is missing")
                continue
            value, fault = _read_value(present, given[key])
            taken[label] = value
            if fault:
                faults.append(f"{key} {fault}")
        found.append(taken)
    faults += [f"{key} is unexpected" for key in given if key not in known]
    return found, faults


def _read_value(present: Any, value: Any) -> tuple[Any, str]:
    """Return a value in the form of the present one, and its fault or an empty text."""
    refuse_unrecorded(
        value,
        "set_state_dict()",
        "optimizer.functional_step(parameters, gradients, state), or give value.detach()",
    )
    if hasattr(present, "dtype"):
        array = unstack_like(present, as_array(raw(value)))
        if array.shape != present.shape or array.dtype != present.dtype:
            return None, (
                f"is {array.dtype} of shape {array.shape} in place of {present.dtype} of shape "
                f"{stack_members(present).shape}"
            )
        if isinstance(present, EnsembleArray) and not isinstance(array, EnsembleArray):
            every = copied(present)  # the state of one run, for every member
            every[...] = array
            return every, nan_fault(array)
        return copied(placed_beside(present, array, "the state")), nan_fault(array)
    kinds = (int, np.integer) if isinstance(present, int) else (int, float, np.number)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return None, f"must be a {'whole ' * isinstance(present, int)}number; it is {value!r}"
    most = math.inf if isinstance(present, int) else 1.0
    if not 0 <= value <= most:
        return None, f"must be at least 0{' and at most 1' * (most == 1)}; it is {value!r}"
    return type(present)(value), ""


def move_arrays(
    memory: Memory,
    names: list[str],
    values: Any,
    moved: Callable[..., list[Any]],
    numbers: Memory,
    progress: Progress,
) -> None:
    """Write new arrays and numbers into a memory, all by calls of `progress`.

    Parameters
    ----------
    memory : dict
    names : list of str
        The arrays to write.
    values : array
        The weights.
    moved : callable
        Maps these arrays and the values, element by element, to the new arrays.
    numbers : dict
        The new numbers.
    progress : Progress
    """
    arrays = [memory[name] for name in names]
    parts: Any = [[*arrays, values]]
    whole = all(type(x) is np.ndarray and x.flags.c_contiguous for x in parts[0])
    if whole and values.size > sizes.BLOCK:  # needs memory for a block alone
        parts = _blocks_of(*arrays, values)
    for *places, new in parts:
        progress.do(
            [(setitem, place, ..., x) for place, x in zip(places, moved(*places, new), strict=True)]
        )
    progress.do([(memory.update, numbers)])


def _blocks_of(*arrays: Any) -> Iterator[list[Any]]:
    """Yield the blocks of arrays of one shape."""
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, sizes.BLOCK):
        yield [array[start : start + sizes.BLOCK] for array in flat]
