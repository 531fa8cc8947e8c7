"""Paddle's names for attributes and methods of Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape import nodes
from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.conversions import refuse_unrecorded
from optlab.backend.arrays import as_array, placed_beside
from optlab.backend.call_recorder import effect


class PaddleNames:
    """``t.stop_gradient``, ``t.set_value`` and ``t.clear_gradient``, as Paddle's examples use them.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> x.requires_grad, (x * 2).stop_gradient, x.detach().stop_gradient
    (True, False, True)
    """

    __slots__ = ()

    node: Any
    data: Any
    shape: Any
    grad: Any
    is_leaf: Any
    astype: Any
    requires_grad: Any

    @property
    def stop_gradient(self) -> bool:
        """Whether this Tensor needs no gradient: the opposite of ``requires_grad``."""
        return self.node is None

    @stop_gradient.setter
    def stop_gradient(self, wanted: bool) -> None:
        self.requires_grad = not wanted

    def _grad_ivar(self) -> Any:
        """Return ``grad``."""
        return self.grad

    @effect
    def set_value(self, value: Any) -> None:
        """Overwrite the values, off the tape; shape and dtype stay.

        Raises
        ------
        ValueError
            If the shape differs. Nothing has changed then.
        TypeError
            If this Tensor is not a leaf.
        SilentDetachError
            If the value depends on an argument of a running transform (`grad`, `vjp`, ...), whose
            gradient would be lost. Leaves, other computed values, and all values under ``no_grad``
            are copied.

        Examples
        --------
        >>> import optlab as ol
        >>> x = ol.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> x.set_value([3.0, 4.0])
        >>> x.numpy()
        array([3., 4.], dtype=float32)
        """
        if not self.is_leaf:
            raise TypeError(
                f"this Tensor of shape {self.shape} was made by an operation on the tape, whose "
                "gradient is not that of other values. Write t[...] = value, which is recorded, or "
                "t.detach().set_value(value)."
            )
        refuse_unrecorded(
            value,
            "set_value()",
            "ol.nn.functional_call(layer, parameters, x), or a function of w itself, to "
            "differentiate with respect to values of parameters; or w.set_value(value.detach())",
        )
        given = as_array(value.data if isinstance(value, PaddleNames) else value)
        array = placed_beside(self.data, given, "the value")
        if array.shape != self.shape:
            name = getattr(self, "structural_name", None)
            who = f"parameter {name}" if name else "this Tensor"
            raise ValueError(
                f"{who} has shape {self.shape}; a value of shape {array.shape} does not fit."
            )
        in_place.overwrite(self, array, "set_value()")  # type: ignore[arg-type]

    def cast(self, dtype: Any) -> Any:
        """Cast to another dtype: ``astype``.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.to_tensor([1, 2]).cast("float32")
        Tensor([1., 2.], dtype=float32)
        """
        return self.astype(dtype)

    def unsqueeze(self, axis: Any) -> Any:
        """Insert axes of length 1, several one after the other.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.to_tensor([1.0, 2.0]).unsqueeze(0).shape
        (1, 2)
        """
        made: Any = self
        for one in axis if isinstance(axis, (list, tuple)) else (axis,):
            made = np.expand_dims(made, one)
        return made

    @effect
    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Clear the gradient: set it to zeros, if there is one, or to None.

        Examples
        --------
        >>> import optlab as ol
        >>> x = ol.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> x.sum().backward()
        >>> x.clear_gradient()
        >>> x.grad
        Tensor([0., 0.], dtype=float32)
        """
        if self.node is not None and self.is_leaf and self.node.grad is not None:
            self.node.grad = nodes.ZERO if set_to_zero else None

    clear_grad = clear_gradient
