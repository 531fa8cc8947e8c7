"""Gradient descent with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from optlab.optimizer.optimizer import Optimizer


class Momentum(Optimizer):
    r"""Gradient descent with momentum (heavy ball), or with Nesterov momentum.

    .. math::
        v &\leftarrow \mu v + g \\
        p &\leftarrow p - \eta v \qquad \text{(Nesterov: } p - \eta (g + \mu v))

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    momentum : float
        Decay rate of the velocity, :math:`\mu` in [0, 1].
    use_nesterov : bool
        Nesterov momentum (Nesterov 1983, in the form of Sutskever et al. 2013).
    rescale_grad : float
        Multiplies the gradient first.
    use_multi_tensor : bool
        Accepted for compatibility; a step updates all parameters at once in either case.

    Notes
    -----
    Source: Polyak 1964, "Some methods of speeding up the convergence of iteration methods".

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[w])
    >>> for _ in range(2):
    ...     w.sum().backward()
    ...     optimizer.step()
    ...     optimizer.clear_grad()
    >>> w.numpy()
    array([0.75], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "momentum": 0.9,
        "use_nesterov": False,
        "rescale_grad": 1.0,
    }
    slots: ClassVar[dict[str, float]] = {"velocity": 0.0}
    ignored_options: ClassVar[tuple[str, ...]] = ("use_multi_tensor",)

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Add the gradient to the velocity, and step along it."""
        g = h.rescale_grad * g
        velocity = h.momentum * s.velocity + g
        if h.use_nesterov:
            step = h.learning_rate * (g + h.momentum * velocity)
        else:
            step = h.learning_rate * velocity
        return p - step, {"velocity": velocity}, {"update": -step}
