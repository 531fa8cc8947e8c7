"""Adadelta: adaptive steps without a global scale."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer


class Adadelta(Optimizer):
    r"""Adadelta: gradients scaled by the ratio of the RMS of past steps to that of gradients.

    .. math::
        a &\leftarrow \rho a + (1 - \rho) g^2 \\
        \Delta &= \sqrt{\frac{u + \epsilon}{a + \epsilon}} \, g \\
        u &\leftarrow \rho u + (1 - \rho) \Delta^2 \\
        p &\leftarrow p - \eta \Delta

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`; the paper has none, which corresponds to 1.
    epsilon : float
        Added to both means; its root determines the size of the first steps.
    rho : float
        Decay rate of the running means, in [0, 1).

    Notes
    -----
    Source: Zeiler 2012, arXiv 1212.5701, algorithm 1. The step uses the u from before its update.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.Adadelta(1.0, epsilon=0.25, rho=0.75, parameters=[w])
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> round(float(w.item()), 6)  # 1 - sqrt(0.25 / 0.5)
    0.292893
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "epsilon": 1e-6,
        "rho": 0.95,
    }
    slots: ClassVar[dict[str, float]] = {"avg_squared_grad": 0.0, "avg_squared_update": 0.0}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Scale the gradient by the RMS of past steps over that of gradients."""
        squares = h.rho * s.avg_squared_grad + (1 - h.rho) * (g * g)
        scale = np.sqrt((s.avg_squared_update + h.epsilon) / (squares + h.epsilon))
        delta = scale * g
        steps = h.rho * s.avg_squared_update + (1 - h.rho) * (delta * delta)
        step = h.learning_rate * delta
        slots = {"avg_squared_grad": squares, "avg_squared_update": steps}
        return p - step, slots, {"scale": scale, "update": -step}
