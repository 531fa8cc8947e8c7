"""Other values for the second run of a call.

What a run computed without the recorder's knowledge (with NumPy, from the array inside a Tensor)
looks like a constant to it. On other values it is another constant, and the plan is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase, new_tensor
from optlab.backend.call_recorder import LiveCount
from optlab.plan.calls.recording.recorder import Recorder

#: Floats are multiplied by this, which keeps what is zero, positive or definite.
FACTOR = 1.00390625


def other_values(x: Any, number: int) -> Any:
    """Return an array of other values: those of `x` in another order, floats a bit larger.

    Of whole numbers and truth values a largest becomes a smallest: their sum changes, and they are
    still indices of what they were.
    """
    moved = np.roll(x, number, axis=0) if np.ndim(x) else x
    if np.asarray(x).dtype.kind == "f":
        moved = (moved * FACTOR**number).astype(x.dtype)
    elif np.size(x) > 1 and np.asarray(x).dtype.kind in "iub":
        moved.flat[np.argmax(moved)] = np.min(moved)
    if isinstance(x, np.ndarray):
        if not _dense(x):
            return x  # another array would have another layout
        made = np.empty_like(x)  # of the same memory order
        made[...] = moved
        return made
    return np.asarray(moved, np.asarray(x).dtype)[()]


@contextmanager
def perturbed(
    recorder: Recorder, tensors: Any, outside: Any, args: Any, kwargs: Any, number: int,
    *, blank: bool = False,
) -> Iterator[tuple[Any, Any]]:  # fmt: skip
    """Give other arguments, and other values to all Tensors and arrays that the call has read.

    With `blank`, the arrays from outside are zeros.
    """
    given: set[int] = set()
    others = [_other(x, given, number, recorder.live_floats) for x in args]
    named = {name: _other(x, given, number, recorder.live_floats) for name, x in kwargs.items()}
    arrays: dict[int, Any] = {}
    for tensor in (*recorder.sources.values(), *tensors):
        if isinstance(tensor.data, np.ndarray) and id(tensor.data) not in given:
            arrays[id(tensor.data)] = tensor.data
    for array in outside:
        if id(array) not in given:
            arrays[id(array)] = array
    before = []
    for array in arrays.values():
        if array.flags.writeable and array.dtype.kind in "fiub" and _dense(array):
            before.append((array, array.copy()))
    zeros = {id(array) for array in outside} if blank else set()
    for array, values in before:
        array[...] = 0 if id(array) in zeros else other_values(values, number)
    try:
        yield others, named
    finally:
        for array, values in before:
            array[...] = values


def _dense(array: Any) -> bool:
    return 0 not in array.strides or array.size <= 1


def _other(x: Any, given: set[int], number: int, live: bool) -> Any:
    if isinstance(x, TensorBase):
        if x.node is not None:
            return x  # a leaf, whose gradient is collected; its values are changed in place
        given.add(id(x.data))
        made = other_values(x.data, number)
        return new_tensor(made if x.data.base is None else made.view())
    if isinstance(x, np.generic) and not live:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        return other_values(x, number)
    if type(x) is float and live:
        return x * FACTOR**number
    if type(x) is LiveCount and live:
        return LiveCount(x + number)
    if type(x) in (tuple, list):
        return type(x)([_other(part, given, number, live) for part in x])
    if type(x) is dict:
        return {name: _other(part, given, number, live) for name, part in x.items()}
    return x
