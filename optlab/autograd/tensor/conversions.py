"""Conversions of Tensors to Python numbers, lists and NumPy arrays.

A conversion that would silently lose a gradient raises an error that says what to write instead.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from optlab.autograd.tape import views
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.nodes import InputLeaf, Leaf
from optlab.backend.arrays import MixedArraysError, as_float, is_on_device, on_host
from optlab.backend.call_recorder import here


def taken(t: Any, call: str) -> None:
    """Tell the recorder of a captured call that a value becomes one of Python."""
    if here.recorder is not None:
        here.recorder.taken(t, call)


class SilentDetachError(TypeError):
    """The error for a call that would silently detach a Tensor from its graph."""


def refusal(t: Any, call: str, instead: str) -> SilentDetachError:
    """Return the error for a call that would lose a gradient, with what to write instead."""
    return SilentDetachError(
        f"{call} would silently cut a Tensor of shape {t.shape} off from its gradient. "
        f"Write {instead}."
    )


def as_setting(value: Any, name: str, instead: str = "") -> float:
    """Convert a setting to a Python float, as `as_float` does; refuse one that needs a gradient.

    Parameters
    ----------
    value
        One number: a float, an int, a NumPy scalar, a one-element array or Tensor.
    name : str
        The name of the setting, for messages.
    instead : str
        What to write for a setting that is differentiated.

    Raises
    ------
    SilentDetachError
        If it is a Tensor that needs a gradient. Under ``no_grad`` its value is taken.
    TypeError, ValueError
        If it is not one number.

    Examples
    --------
    >>> as_setting(2, "alpha")
    2.0
    """
    refuse_setting(value, name, instead)
    return as_float(value, name)


def refuse_setting(value: Any, name: str, instead: str = "") -> None:
    """Raise SilentDetachError if a setting that becomes a plain number needs a gradient."""
    if is_tracked(value):
        plain = f"{name}=t.item() where no gradient is wanted"
        what = f"{instead}; or {plain}" if instead else plain
        raise refusal(value, f"{name}=t, which is read as a plain number,", what)


def is_tracked(value: Any) -> bool:
    """Return whether something is a Tensor that needs a gradient, where gradients are recorded."""
    return isinstance(value, TensorBase) and recording.on and views.is_recorded(value)


def has_history(value: Any) -> bool:
    """Return whether something was computed on the tape, or is an argument of a transform.

    Leaves of the user, with ``requires_grad=True``, have none: copies of them lose nothing.
    """
    if not is_tracked(value):
        return False
    node = value.node
    return node.live if isinstance(node, InputLeaf) else not isinstance(node, Leaf)


def is_differentiated(value: Any) -> bool:
    """Return whether a running transform (`grad`, `vjp`, ...) differentiates with respect to it.

    Values that depend on leaves of the user alone, or were computed before the transform began, are
    not; nor is anything under ``no_grad``.
    """
    if not is_tracked(value):
        return False
    found, waiting = set(), [value.node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, InputLeaf):
            if node.live:
                return True
            continue
        for edge in node.edges:
            if edge is not None and edge not in found:
                found.add(edge)
                waiting.append(edge)
    return False


def refuse_unrecorded(value: Any, call: str, instead: str) -> None:
    """Raise SilentDetachError if an unrecorded write would lose what a transform follows."""
    if is_differentiated(value):
        raise refusal(value, call, instead)


#: Functions of scipy.special that are no ufuncs, so that NumPy dispatches nothing.
_OF_SCIPY = frozenset(["logsumexp", "softmax", "log_softmax", "polygamma"])


def _calling_function_of_scipy() -> str | None:
    """Return the function of scipy.special that makes an array of a Tensor, if one does."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith("scipy.special") and frame.f_code.co_name in _OF_SCIPY:
            return frame.f_code.co_name
        if not module.startswith(("scipy", "numpy")):
            return None
        frame = frame.f_back
    return None


class Conversions:
    """``float(t)``, ``t.item()``, ``t.tolist()`` and the like."""

    __slots__ = ()

    data: Any
    node: Any

    def numpy(self) -> np.ndarray:
        """Return the values as a NumPy array, detached from the tape.

        A copy if an optimizer may write to the memory, or if the values are on a device; else a
        read-only view.
        """
        if here.recorder is not None:
            own = isinstance(self.node, Leaf) or getattr(self.data, "base", None) is not None
            return here.recorder.as_array(self, own)  # type: ignore[no-any-return]
        if is_on_device(self.data):
            return on_host(self.data)  # type: ignore[no-any-return]
        if isinstance(self.node, Leaf) or getattr(self.data, "base", None) is not None:
            return np.array(self.data)
        view = np.asarray(self.data).view()
        view.flags.writeable = False
        return view

    def item(self, *position: int) -> Any:
        """Return the only element, or that at a position, as a Python number."""
        if here.recorder is not None:
            return here.recorder.item(self, position)
        return on_host(self.data).item(*position) if position else self.data.item()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    def tolist(self) -> Any:
        """Return the values as nested Python lists."""
        taken(self, ".tolist()")
        return self.data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if views.is_recorded(self):
            function = _calling_function_of_scipy()
            if function is not None:
                raise refusal(self, f"scipy.special.{function}", f"optlab.special.{function}(...)")
            raise refusal(
                self,
                "making a NumPy array of it",
                "np.stack([...]), or import optlab.numpy as np, whose array, full, sum and random "
                "keep the gradient; .detach() or .numpy() where no gradient is wanted",
            )
        if is_on_device(self.data):
            raise MixedArraysError(
                f"a Tensor of shape {self.data.shape} that lies on a device does not become a "
                "NumPy array by itself; t.numpy() brings it to the host."
            )
        taken(self, "np.array(), or a function of NumPy that makes an array of it,")
        if copy:
            return np.array(self.data, dtype=dtype)
        return np.asarray(self.numpy(), dtype=dtype)

    def __float__(self) -> float:
        if views.is_recorded(self):
            raise refusal(
                self,
                "float()",
                ".item() to print a number, to plot it or to add up losses; np.exp(t) in place of "
                "math.exp(t); np.stack a list, or start from ol.to_tensor(np.zeros(n)), to fill an "
                "array step by step",
            )
        taken(self, "float()")
        return float(self.data)

    def __int__(self) -> int:
        if views.is_recorded(self):
            raise refusal(self, "int()", "int(t.item()) (or .detach() first)")
        taken(self, "int()")
        return int(self.data)

    def __complex__(self) -> complex:
        return complex(float(self))

    def __bool__(self) -> bool:
        if views.is_recorded(self):
            raise refusal(
                self, "using it as a condition", "a comparison (t > 0), np.where(...), or .item()"
            )
        taken(self, "a condition (if, while, and)")
        return bool(self.data)

    def __index__(self) -> int:
        if views.is_recorded(self):
            raise refusal(self, "using it as an index", ".item()")
        taken(self, "an index")
        return int(self.data.__index__())
