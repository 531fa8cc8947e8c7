"""Batching rules of elementwise functions: align the axes of one member, and call."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.backend.ensemble.array import EnsembleArray
from optlab.backend.ensemble.batched_call import Call
from optlab.backend.ensemble.registry import batched, bind, numpy_function
from optlab.backend.errors import EnsembleError


def call_aligned(ufunc: Any, inputs: tuple[Any, ...]) -> Any:
    """Call a ufunc on members of one level and plain arrays: the most common case, fast."""
    first, ndim, arrays, shared, differ = None, 0, [], 0, False
    for x in inputs:
        if type(x) is EnsembleArray:
            members = x.members
            if first is None:
                first, ndim, length = x, members.ndim, len(members)
            elif x.level != first.level or len(members) != length:
                return None
            elif members.ndim != ndim:
                differ, ndim = True, max(ndim, members.ndim)
            arrays.append(members)
        elif type(x) is np.ndarray:
            shared = max(shared, x.ndim)
            arrays.append(x)
        elif type(x) in _NUMBERS:
            arrays.append(x)
        else:
            return None
    if first is None or shared >= ndim:
        return None
    if differ:  # axes of length 1 between members and their axes
        for i, x in enumerate(inputs):
            if type(x) is EnsembleArray and (missing := ndim - x.members.ndim):
                members = x.members
                arrays[i] = members.reshape((length,) + (1,) * missing + members.shape[1:])
    return EnsembleArray(ufunc(*arrays), first.level)


_NUMBERS = frozenset([int, float, bool, np.float64, np.float32])


def universal(call: Call, ufunc: Any, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """Call any elementwise ufunc."""
    out = kwargs.get("out")
    if out is None and "where" not in kwargs:
        return call.wrap(ufunc(*call.aligned(inputs), **kwargs))
    arrays = [*inputs, kwargs["where"]] if "where" in kwargs else list(inputs)
    arrays = call.aligned([*arrays, *[target for target in out or () if target is not None]])
    options = dict(kwargs)
    if "where" in kwargs:
        options["where"] = arrays[len(inputs)]
    if out is not None:
        for target in out:
            if target is not None and not call.has(target):
                raise EnsembleError(
                    f"np.{ufunc.__name__} was asked to write values that differ from member to "
                    "member into an array that all members share (out=, or += on that array). "
                    "Write a = a + b instead of a += b."
                )
        options["out"] = tuple(None if target is None else target.members for target in out)
    y = ufunc(*arrays[: len(inputs)], **options)
    if out is None or any(target is None for target in out):
        return call.wrap(y)
    return out[0] if len(out) == 1 else tuple(out)


def _elementwise(path: str, arrays: str) -> None:
    """Register the rule of a function that works element by element on the named arrays."""
    function = numpy_function(path)
    names = arrays.split()

    @batched(path)
    def rule(call: Call, *args: Any, **kwargs: Any) -> Any:
        given = bind(function, args, kwargs)
        present = [name for name in names if given.get(name) is not None]
        given |= zip(present, call.aligned([given[name] for name in present]), strict=True)
        return call.wrap(function(**given))


for path, arrays in {
    "round": "a", "around": "a", "nan_to_num": "x", "angle": "z", "sinc": "x",
    "i0": "x", "isneginf": "x", "isposinf": "x", "isclose": "a b rtol atol", "iscomplex": "x",
    "isreal": "x", "real": "val", "imag": "val",
}.items():  # fmt: skip
    _elementwise(path, arrays)


@batched("fix")
def _fix(call: Call, x: Any, out: Any = None) -> Any:
    if out is not None:
        raise EnsembleError("np.fix on ensembles takes no out; use the value that it returns.")
    return call.wrap(np.trunc(*call.aligned([x])))  # NumPy 2.5 deprecates fix


@batched("clip")
def _clip(
    call: Call, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any
) -> Any:
    low = options.pop("min", None) if a_min is None or a_min is np._NoValue else a_min
    high = options.pop("max", None) if a_max is None or a_max is np._NoValue else a_max
    low, high = (None if x is np._NoValue else x for x in (low, high))
    if out is not None or options:
        raise EnsembleError("np.clip on ensembles takes an array, a_min (min) and a_max (max).")
    bounds = [x for x in (low, high) if x is not None]
    a, *bounds = call.aligned([a, *bounds])
    low = bounds.pop(0) if low is not None else None
    high = bounds.pop(0) if high is not None else None
    return call.wrap(np.clip(a, low, high))


@batched("where")
def _where(call: Call, condition: Any, *choices: Any) -> Any:
    if not choices:
        raise EnsembleError(
            "np.where(condition) gives each member of an ensemble a length of its own; use the "
            "condition itself, or np.where(condition, a, b)."
        )
    return call.wrap(np.where(*call.aligned([condition, *choices])))


@batched("select")
def _select(call: Call, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    n = len(condlist)
    arrays = call.aligned([*condlist, *choicelist, default])
    # NumPy wants every condition to have one shape.
    masks = np.broadcast_arrays(*arrays[:n])
    return call.wrap(np.select(list(masks), arrays[n:-1], arrays[-1]))


@batched("choose")
def _choose(call: Call, a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    if out is not None:
        raise EnsembleError("np.choose on ensembles takes no out=; use what it returns.")
    numbers, *arrays = call.aligned([a, *choices])
    options: Any = {"mode": mode}
    return call.wrap(np.choose(numbers, arrays, **options))


@batched("copyto")
def _copyto(call: Call, dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if not call.has(dst):
        raise EnsembleError(
            "np.copyto cannot write values that differ from member to member into an array that "
            "all members share."
        )
    target, values, mask = call.aligned([dst, src, where])
    np.copyto(target, values, casting=casting, where=mask)
