"""`TensorBase`, the base class of `Tensor`, and helpers of the tape and the rules.

The tape knows an array and its node. The class with operators and methods is registered from above
(see `apply.register`), as ``torch.Tensor`` derives from ``torch._C.TensorBase``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.half_precision import enable_half
from optlab.backend.arrays import copied, spread_beside


class TensorBase:
    """An array and its node on the tape.

    Parameters
    ----------
    data : array
    node : Node or Leaf, optional
        None for a value that needs no gradient.

    Attributes
    ----------
    viewed : tuple
        What it is a view of (see `views.View`); not set for others.
    """

    __slots__ = ("__weakref__", "data", "node", "viewed")

    data: Any
    node: Any
    viewed: tuple[Any, Any, dict[str, Any]]

    def __init__(self, data: Any, node: Any = None) -> None:
        self.data = data
        self.node = node
        try:
            if data.dtype.itemsize == 2:
                enable_half(data.dtype)
        except AttributeError:
            raise TypeError(
                f"a Tensor is made of an array; got {type(data).__name__}. ol.to_tensor(data) "
                "takes numbers and lists."
            ) from None


#: The class of Tensors. `isinstance` with it takes 13 ns, with `TensorBase` 16 ns.
Tensor: Any = TensorBase


def register(cls: type[TensorBase]) -> None:
    """Register the class of Tensors; `apply.register` calls this."""
    global Tensor
    Tensor = cls


def new_tensor(data: Any, node: Any = None) -> Any:
    """Return a Tensor of an array and its node."""
    return Tensor(data, node)


def raw(x: Any) -> Any:
    """Return the array of a Tensor; return anything else unchanged."""
    return x.data if isinstance(x, Tensor) else x


def needs_grad(x: Any) -> bool:
    """Return whether nested tuples, lists and dicts hold a Tensor that needs a gradient."""
    if isinstance(x, Tensor):
        return x.node is not None
    if isinstance(x, dict):
        x = x.values()
    elif not isinstance(x, (tuple, list)):
        return False
    return any(needs_grad(part) for part in x)


class MetPair(TypeError):
    """Raised by `as_operand` for complex numbers on the tape, which are pairs of Tensors."""


#: Runs an operation that met a pair: ``(operation, inputs, static)``; registered from above.
answer_pair: Any = None


def answer_pairs_with(answer: Any) -> None:
    """Register the function that runs operations on pairs."""
    global answer_pair
    answer_pair = answer


def as_operand(x: Any) -> Any:
    """Convert an operand to an array: lists, tables of pandas, arrays of xarray.

    Device arrays and ensembles are returned unchanged.
    """
    if getattr(type(x), "is_pair", False):
        raise MetPair
    if isinstance(x, (list, tuple)):
        return np.asarray(x)
    if type(x) is complex:
        return np.complex128(x)
    foreign = hasattr(x, "__array__") and not hasattr(x, "__array_function__")
    return np.asarray(x) if foreign else x


def first_gradient(data: Any, grad: Any) -> Any:
    """Return the gradient that a backward pass starts from, of the shape and type of `data`."""
    if isinstance(grad, Tensor) and grad.node is None:
        grad = grad.data
    if grad.__class__ is np.ndarray and grad.dtype is data.dtype and grad.shape == data.shape:
        # A copy: the caller may still write to the array. A scalar where the value is a scalar of
        # NumPy (usually a loss): rules are faster on it.
        if data.__class__ is np.ndarray:
            return grad.copy()
        if isinstance(data, np.generic):
            return grad[()]
    if grad is None:
        return data.dtype.type(1) if isinstance(data, np.generic) else np.ones_like(data)
    if isinstance(grad, Tensor):
        seed: Any = grad if grad.dtype == data.dtype else grad.astype(data.dtype)
    else:
        seed = copied(grad, data.dtype)
    if seed.shape != data.shape:
        raise ValueError(
            f"the gradient to start from must have the shape of the Tensor, {data.shape}; "
            f"got {seed.shape}."
        )
    return seed if isinstance(seed, Tensor) else spread_beside(seed, data)


def not_real(name: str, dtype: Any) -> TypeError:
    """Return the error for an operation whose output is integer or complex."""
    complex_numbers = (
        " Complex numbers come from np.fft only: else write the real and imaginary parts by "
        "themselves (np.cos(x) and np.sin(x) for np.exp(1j * x))."
        if dtype.kind == "c"
        else ""
    )
    return TypeError(
        f"{name} gives {dtype} here; gradients are for real floating numbers. Use .detach() where "
        f"no gradient is wanted.{complex_numbers}"
    )
