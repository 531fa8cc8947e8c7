"""What Paddle's documents call things that a Tensor has under another name."""

from __future__ import annotations

from typing import Any


class PaddleNames:
    """``t.stop_gradient``, which Paddle's examples set where others set ``requires_grad``.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> x.requires_grad, (x * 2).stop_gradient, x.detach().stop_gradient
    (True, False, True)
    """

    __slots__ = ()

    node: Any
    grad: Any
    requires_grad: Any

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient comes here: the opposite of ``requires_grad``."""
        return self.node is None

    @stop_gradient.setter
    def stop_gradient(self, wanted: bool) -> None:
        self.requires_grad = not wanted

    def _grad_ivar(self) -> Any:
        """Give ``grad``."""
        return self.grad
