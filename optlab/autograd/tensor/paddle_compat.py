"""Paddle's names for attributes and methods of Tensors."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tape import nodes
from optlab.autograd.tensor import in_place
from optlab.backend.arrays import as_array, placed_beside


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

    def set_value(self, value: Any) -> None:
        """Overwrite the values, off the tape; shape and dtype stay.

        Raises
        ------
        ValueError
            If the shape differs. Nothing has changed then.
        TypeError
            If this Tensor is not a leaf.

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
        given = as_array(value.data if isinstance(value, PaddleNames) else value)
        array = placed_beside(self.data, given, "the value")
        if array.shape != self.shape:
            name = getattr(self, "name", None)
            who = f"parameter {name}" if name else "this Tensor"
            raise ValueError(
                f"{who} has shape {self.shape}; a value of shape {array.shape} does not fit."
            )
        in_place.overwrite(self, array, "set_value()")  # type: ignore[arg-type]

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
