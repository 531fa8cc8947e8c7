"""Anomaly mode: find the first operation, or derivative rule, whose result is not finite."""

from __future__ import annotations

import linecache
import sys
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend.dtypes import is_floating
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.threads import PerThread
from optlab.backend.user_frames import frame_outside, location_of


class AnomalyError(FloatingPointError):
    """The error for an operation, or its derivative, that makes NaN or infinity of finite numbers.

    Examples
    --------
    >>> import optlab as ol
    >>> issubclass(ol.autograd.AnomalyError, FloatingPointError)
    True
    """


#: Descriptions of the guarded product and quotient of rules (see `rules.guarded`).
_ARITHMETIC = {"product": "a multiplication, a * b", "quotient": "a division, a / b"}


#: How many blocks of `detect_anomaly` this thread is inside.
depth = PerThread(0)

#: The code of the backward pass, which registers it.
backward_code: Any = None

#: The line that called each operation, in anomaly mode.
_lines: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class detect_anomaly:
    """Raise an error at the first operation that makes NaN or infinity of finite numbers.

    Inside the block every recorded operation is checked when it runs, and every derivative rule
    when the backward pass runs it. Values that were infinite before (a mask of ``-inf``, for
    instance) pass. In `vmap`, and in an ensemble, each example is checked separately, and the error
    names it. Checking takes time: use it to find an error, not to train.

    Raises
    ------
    AnomalyError
        With the operation, the line that called it, the first element that is not finite and the
        numbers it was computed from.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor([4.0, 0.0], requires_grad=True)
    >>> with np.errstate(divide="ignore"), ol.autograd.detect_anomaly():
    ...     y = np.log(x)
    Traceback (most recent call last):
        ...
    optlab.autograd.AnomalyError: 'log' gave -inf at element [1] of shape (2,)...
    """

    def __enter__(self) -> detect_anomaly:
        depth.value += 1
        slow_path.enter(needs_values=True)
        return self

    def __exit__(self, *error: object) -> None:
        depth.value -= 1
        slow_path.leave(needs_values=True)


def check_forward(node: Any, values: Any, y: Any) -> None:
    """Record the line that called an operation, and check its output against its inputs."""
    frame = frame_outside("optlab", "numpy")
    name, number = frame.f_code.co_filename, frame.f_lineno
    code = linecache.getline(name, number).strip()
    _lines[node] = location_of(frame) + (f": {code}" if code else "")
    names = node.operation.inputs
    values = _flatten(values)
    for i, output in enumerate(y if isinstance(y, tuple) else (y,)):
        which = f" (output {i})" if isinstance(y, tuple) else ""
        _check(node, "", output, values, names, which)


def check_backward(node: Any, position: int, part: Any, g: Any, saved: Any) -> None:
    """Check the gradient that a derivative rule returns against the values that it reads."""
    operation, sources = node.operation, node.recipe.sources
    inputs = operation.inputs
    known = {**dict(enumerate(inputs)), len(inputs): "y"}
    names = ["the arriving gradient", *(known.get(source, "") for source in sources)]
    what = f"the derivative of {_operation_name(operation)} for {inputs[position]} is"
    arrived = list(g.arrived.values()) if hasattr(g, "arrived") else [g]
    others = _flatten([*arrived[1:], *saved])
    values = [raw(x) for x in (arrived[0], *saved, *others)]
    for gradient in part.arrived.values() if hasattr(part, "arrived") else (part,):
        _check(node, what, raw(gradient), values, names, "")


def _flatten(values: Any) -> list[Any]:
    """Flatten tuples: the outputs of an operation with several."""
    return [
        x for value in values for x in (_flatten(value) if isinstance(value, tuple) else [value])
    ]


def _check(
    node: Any, what: str, y: Any, values: Any, names: Any, which: str, example: tuple[int, ...] = ()
) -> None:
    if isinstance(y, EnsembleArray):
        for k in _nonfinite_members(y):
            alone = [_member(value, y.level, k) for value in values]
            _check(node, what, y.members[k], alone, names, which, (k, *example))
        return
    finite = np.isfinite(y)
    if bool(finite.all()):
        return
    if not all(map(_is_finite, values)):
        return  # an input was not finite
    place = tuple(int(i) for i in np.argwhere(~finite)[0])
    at = f" at element [{', '.join(map(str, place))}]" if place else ""
    parts = [
        f"{name} = {number}"
        for name, value in zip(names, values, strict=False)
        if name and (number := _input_at(value, place, np.shape(y))) is not None
    ]
    if not _is_elementwise(node.operation):
        parts = []
    made_of = f", from {' and '.join(parts)}" if parts else ""
    # In vmap, and in an ensemble; for nested vmaps the index of the outer one comes first.
    among = f", in example {example[0] if len(example) == 1 else example}" if example else ""
    if not what:
        if _derivative_running():
            return  # a step of a rule, such as its division; check_backward checks the result
        what = f"{_operation_name(node.operation)} gave"
    where = _lines.get(node)
    line = f" It was called in {where}." if where else ""
    count = int(np.size(finite) - np.count_nonzero(finite))
    more = f" ({count} of {np.size(finite)} elements)" if count > 1 else ""
    raise AnomalyError(
        f"{what} {float(y[place]) if place else float(y)}{at}{which} of shape "
        f"{np.shape(y)}{among}{made_of}{more}.{line}"
    )


def _nonfinite_members(y: EnsembleArray) -> Any:
    """Return the indices of the examples, or members, with values that are not finite."""
    finite = np.isfinite(_plain_array(y))
    if bool(finite.all()):
        return ()
    if isinstance(y.members, EnsembleArray):
        return range(y.member_count)  # the first axis of the array is that of the inner level
    return [k for k, one in enumerate(finite) if not bool(one.all())]


def _member(value: Any, level: int, k: int) -> Any:
    """Return the value of one example of a level; a value that all share is returned unchanged."""
    mine = isinstance(value, EnsembleArray) and value.level == level
    return value.members[k] if mine else value


def _plain_array(value: Any) -> Any:
    """Return the array of an ensemble, with members stacked; return anything else unchanged."""
    while isinstance(value, EnsembleArray):
        value = value.members
    return value


def _is_finite(value: Any) -> bool:
    """Return whether a float or a floating array is finite; True for anything else."""
    value = _plain_array(value)
    if isinstance(getattr(value, "dtype", None), np.dtype):
        return not is_floating(value.dtype) or bool(np.isfinite(value).all())
    return not isinstance(value, float) or bool(np.isfinite(value))


def _operation_name(operation: Any) -> str:
    words = _ARITHMETIC.get(operation.name)
    return f"{operation.name!r}" + (f" ({words}, inside a derivative rule)" if words else "")


def _is_elementwise(operation: Any) -> bool:
    """Return whether an output element depends only on the input elements at its position."""
    if operation.name in _ARITHMETIC:
        return True
    return operation.name != "matmul" and isinstance(getattr(np, operation.name, None), np.ufunc)


def _derivative_running() -> bool:
    """Return whether a derivative rule of optlab is running, not a Function or hook of the user.

    Only an error calls this, so it inspects the stack; the backward pass keeps no record.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not backward_code:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("optlab", "numpy"):
            return False
        frame = frame.f_back
    return frame is not None


def _input_at(value: Any, place: tuple[int, ...], shape: tuple[int, ...]) -> float | None:
    """Return the element of an input that the output at `place` was computed from, if any."""
    try:
        return float(np.broadcast_to(value, shape)[place])
    except (ValueError, TypeError):
        return None
