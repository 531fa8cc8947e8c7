"""Conversions of Tensors to Python numbers, lists and NumPy arrays.

A conversion that would silently lose a gradient raises an error that says what to write instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import Leaf
from optlab.backend.arrays import MixedArraysError, is_on_device, on_host


class SilentDetachError(TypeError):
    """The error for a call that would silently detach a Tensor from its graph."""


def refusal(t: Any, call: str, instead: str) -> SilentDetachError:
    """Return the error for a call that would lose a gradient, with what to write instead."""
    return SilentDetachError(
        f"{call} would silently cut a Tensor of shape {t.shape} off from its gradient. "
        f"Write {instead}."
    )


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
        if is_on_device(self.data):
            return on_host(self.data)  # type: ignore[no-any-return]
        if isinstance(self.node, Leaf) or getattr(self.data, "base", None) is not None:
            return np.array(self.data)
        view = np.asarray(self.data).view()
        view.flags.writeable = False
        return view

    def item(self, *position: int) -> Any:
        """Return the only element, or that at a position, as a Python number."""
        return on_host(self.data).item(*position) if position else self.data.item()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    def tolist(self) -> Any:
        """Return the values as nested Python lists."""
        return self.data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.node is not None:
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
        if copy:
            return np.array(self.data, dtype=dtype)
        return np.asarray(self.numpy(), dtype=dtype)

    def __float__(self) -> float:
        if self.node is not None:
            raise refusal(
                self,
                "float()",
                ".item() to print a number, to plot it or to add up losses; np.exp(t) in place of "
                "math.exp(t); np.stack a list, or start from ol.to_tensor(np.zeros(n)), to fill an "
                "array step by step",
            )
        return float(self.data)

    def __int__(self) -> int:
        if self.node is not None:
            raise refusal(self, "int()", "int(t.item()) (or .detach() first)")
        return int(self.data)

    def __complex__(self) -> complex:
        return complex(float(self))

    def __bool__(self) -> bool:
        if self.node is not None:
            raise refusal(
                self, "using it as a condition", "a comparison (t > 0), np.where(...), or .item()"
            )
        return bool(self.data)

    def __index__(self) -> int:
        if self.node is not None:
            raise refusal(self, "using it as an index", ".item()")
        return int(self.data.__index__())
