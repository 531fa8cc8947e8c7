"""Finding where a number first stopped being finite: forward, or on the way back."""

from __future__ import annotations

import linecache
import sys
import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from optlab.autograd.base import raw
from optlab.autograd.extras import slow_path
from optlab.backend.callers import frame_outside, location_of
from optlab.backend.dtypes import is_floating
from optlab.backend.ensemble import EnsembleArray


class AnomalyError(FloatingPointError):
    """An operation, or its derivative, made a number that is NaN or infinite out of finite ones.

    Examples
    --------
    >>> import optlab as ol
    >>> issubclass(ol.autograd.AnomalyError, FloatingPointError)
    True
    """


#: What rules multiply and divide with (see `rules.guarded`), in words.
_ARITHMETIC = {"product": "a multiplication, a * b", "quotient": "a division, a / b"}


class _Mode(threading.local):
    depth = 0


mode = _Mode()

#: The code of the backward pass, which registers it.
backward_code: Any = None

#: Where each operation was called, in anomaly mode.
_lines: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class detect_anomaly:
    """Stop at the first operation that makes NaN or infinity out of finite numbers.

    Inside the block every recorded operation is checked when it runs, and every derivative rule
    when backward comes to it. What was infinite already (a mask of ``-inf``, for instance) passes.
    Inside `vmap`, and of an ensemble, each example is checked by itself, and the error says which.
    Checking takes time: use it to find an error, not to train.

    Raises
    ------
    AnomalyError
        It names the operation, the line that called it, the first element that went wrong and the
        numbers it was made of.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor([4.0, 0.0], requires_grad=True)
    >>> with np.errstate(divide="ignore"), ol.autograd.detect_anomaly():
    ...     y = np.log(x)
    Traceback (most recent call last):
        ...
    optlab.autograd.anomaly.AnomalyError: 'log' gave -inf at element [1] of shape (2,)...
    """

    def __enter__(self) -> detect_anomaly:
        mode.depth += 1
        slow_path.enter(needs_values=True)
        return self

    def __exit__(self, *error: object) -> None:
        mode.depth -= 1
        slow_path.leave(needs_values=True)


def check_forward(node: Any, values: Any, y: Any) -> None:
    """Note where an operation was called, and check what it gave against what it was given."""
    frame = frame_outside("optlab", "numpy")
    name, number = frame.f_code.co_filename, frame.f_lineno
    code = linecache.getline(name, number).strip()
    _lines[node] = location_of(frame) + (f": {code}" if code else "")
    names = node.operation.inputs
    values = _flat(values)
    for i, output in enumerate(y if isinstance(y, tuple) else (y,)):
        which = f" (output {i})" if isinstance(y, tuple) else ""
        _check(node, "", output, values, names, which)


def check_backward(node: Any, position: int, part: Any, g: Any, saved: Any) -> None:
    """Check the gradient that a derivative rule gives against what it was made of."""
    operation, sources = node.operation, node.recipe.sources
    inputs = operation.inputs
    known = {**dict(enumerate(inputs)), len(inputs): "y"}
    names = ["the arriving gradient", *(known.get(source, "") for source in sources)]
    what = f"the derivative of {_named(operation)} for {inputs[position]} is"
    arrived = list(g.arrived.values()) if hasattr(g, "arrived") else [g]
    others = _flat([*arrived[1:], *saved])
    values = [raw(x) for x in (arrived[0], *saved, *others)]
    for gradient in part.arrived.values() if hasattr(part, "arrived") else (part,):
        _check(node, what, raw(gradient), values, names, "")


def _flat(values: Any) -> list[Any]:
    """Give values with tuples taken apart: the outputs of an operation that has several."""
    return [x for value in values for x in (_flat(value) if isinstance(value, tuple) else [value])]


def _check(
    node: Any, what: str, y: Any, values: Any, names: Any, which: str, example: tuple[int, ...] = ()
) -> None:
    if isinstance(y, EnsembleArray):
        for k in _suspects(y):
            alone = [_example(value, y.level, k) for value in values]
            _check(node, what, y.members[k], alone, names, which, (k, *example))
        return
    finite = np.isfinite(y)
    if bool(finite.all()):
        return
    if not all(map(_is_finite, values)):
        return  # it was not finite before
    place = tuple(int(i) for i in np.argwhere(~finite)[0])
    at = f" at element [{', '.join(map(str, place))}]" if place else ""
    parts = [
        f"{name} = {number}"
        for name, value in zip(names, values, strict=False)
        if name and (number := _at(value, place, np.shape(y))) is not None
    ]
    if not _is_elementwise(node.operation):
        parts = []
    made_of = f", from {' and '.join(parts)}" if parts else ""
    # Inside vmap, and of an ensemble; of vmap in vmap, the outer one's comes first.
    among = f", in example {example[0] if len(example) == 1 else example}" if example else ""
    if not what:
        if _derivative_running():
            return  # a step of a rule, such as its division; check_backward looks at what it gives
        what = f"{_named(node.operation)} gave"
    where = _lines.get(node)
    line = f" It was called in {where}." if where else ""
    count = int(np.size(finite) - np.count_nonzero(finite))
    more = f" ({count} of {np.size(finite)} elements)" if count > 1 else ""
    raise AnomalyError(
        f"{what} {float(y[place]) if place else float(y)}{at}{which} of shape "
        f"{np.shape(y)}{among}{made_of}{more}.{line}"
    )


def _suspects(y: EnsembleArray) -> Any:
    """Give the examples, or members of an ensemble, that have numbers which are not finite."""
    finite = np.isfinite(_plain(y))
    if bool(finite.all()):
        return ()
    if isinstance(y.members, EnsembleArray):
        return range(y.member_count)  # its own first axis stands for other examples
    return [k for k, one in enumerate(finite) if not bool(one.all())]


def _example(value: Any, level: int, k: int) -> Any:
    """Give what one example of a level computes with; what all share stays as it is."""
    mine = isinstance(value, EnsembleArray) and value.level == level
    return value.members[k] if mine else value


def _plain(value: Any) -> Any:
    """Give all numbers as a plain array: those of an ensemble stacked."""
    while isinstance(value, EnsembleArray):
        value = value.members
    return value


def _is_finite(value: Any) -> bool:
    """Say whether a number or an array of floating numbers is finite; anything else counts so."""
    value = _plain(value)
    if isinstance(getattr(value, "dtype", None), np.dtype):
        return not is_floating(value.dtype) or bool(np.isfinite(value).all())
    return not isinstance(value, float) or bool(np.isfinite(value))


def _named(operation: Any) -> str:
    said = _ARITHMETIC.get(operation.name)
    return f"{operation.name!r}" + (f" ({said}, inside a derivative rule)" if said else "")


def _is_elementwise(operation: Any) -> bool:
    """Say whether an element of the output is made of the elements of the inputs beside it."""
    if operation.name in _ARITHMETIC:
        return True
    return operation.name != "matmul" and isinstance(getattr(np, operation.name, None), np.ufunc)


def _derivative_running() -> bool:
    """Say whether a derivative rule is running now, and is nobody's own code.

    Only an error asks, so the stack is read instead of every walk noting where it is.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not backward_code:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("optlab", "numpy"):
            return False  # in a Function or a hook of the user
        frame = frame.f_back
    return frame is not None


def _at(value: Any, place: tuple[int, ...], shape: tuple[int, ...]) -> float | None:
    """Give the number of an input that the element at `place` of the output was made of."""
    try:
        return float(np.broadcast_to(value, shape)[place])
    except (ValueError, TypeError):
        return None
