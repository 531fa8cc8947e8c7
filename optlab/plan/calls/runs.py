"""One run of a function with a recorder: its arguments are recorded arrays, its result is plain."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from optlab.autograd.tape import saved_tensors
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import random
from optlab.backend.call_recorder import LiveCount, here
from optlab.plan.calls.outputs import Output
from optlab.plan.calls.recording.arrays import CallArray
from optlab.plan.calls.recording.containers import Container, changed_container
from optlab.plan.calls.recording.numbers import CallNumber
from optlab.plan.calls.recording.output_watch import watch_output
from optlab.plan.calls.recording.recorder import Recorder
from optlab.plan.plan import Place


def record(
    recorder: Recorder, f: Any, args: Any, kwargs: Any, quiet: bool = False
) -> tuple[Any, Output]:
    """Call a function, and record what it does; return its result, and the result for a plan."""
    inputs: list[Place] = []
    given = [_wrapped(recorder, x, inputs) for x in args]
    named = {name: kwargs[name] for name in sorted(kwargs)}
    named = {name: _wrapped(recorder, x, inputs) for name, x in named.items()}
    named = {name: named[name] for name in kwargs}
    slow_path.enter()
    here.recorder = recorder
    try:
        with saved_tensors.without_ambient():
            if quiet:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    result = f(*given, **named)
            else:
                with watch_output(recorder):
                    result = f(*given, **named)
            recorder.changed_container = changed_container(recorder.containers)
            output = Output(recorder, inputs, result)
    finally:
        here.recorder = None
        recorder.closed = True
        slow_path.leave()
    return output.plain, output


def undone(recorder: Recorder, f: Any, args: Any, kwargs: Any, number: int) -> Output:
    """Record a call with other random numbers, and undo what it changed in the engine."""
    random.stream_of_this_thread().draws += number
    try:
        return record(recorder, f, args, kwargs, quiet=True)[1]
    finally:
        recorder.undo.restore()


def _wrapped(recorder: Recorder, x: Any, inputs: list[Place]) -> Any:
    """Return an argument whose arrays are recorded."""
    if isinstance(x, TensorBase):
        inputs.append(recorder.know(x.data))
        return x
    if isinstance(x, np.generic) and not recorder.live_floats:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        place = recorder.know(x)
        inputs.append(place)
        if isinstance(x, np.generic):
            recorder.numbers.add(place)
        return CallArray(recorder, place, x)
    if type(x) in (float, LiveCount) and recorder.live_floats:
        number = CallNumber(recorder, recorder.place(), x, argument=True)
        inputs.append(number.place)
        return number
    if type(x) in (tuple, list):
        parts = [_wrapped(recorder, part, inputs) for part in x]
        if type(x) is tuple:
            return tuple(parts)
        recorder.containers.append(Container(parts, list(parts), x))
        return parts
    if type(x) is dict:
        named = {name: _wrapped(recorder, part, inputs) for name, part in x.items()}
        recorder.containers.append(Container(named, dict(named), x))
        return named
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return type(x)._make([_wrapped(recorder, part, inputs) for part in x])
    return x
