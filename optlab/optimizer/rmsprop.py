"""RMSProp: gradients divided by their running root mean square."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.hyperparameters import REQUIRED


class RMSProp(Optimizer):
    r"""RMSProp: gradients divided elementwise by the root of their running mean square.

    .. math::
        s &\leftarrow \rho s + (1 - \rho) g^2 \\
        m &\leftarrow \rho m + (1 - \rho) g \qquad \text{(centered only; otherwise } m = 0) \\
        v &\leftarrow \mu v + \frac{\eta g}{\sqrt{s - m^2 + \epsilon}} \\
        p &\leftarrow p - v

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    rho : float
        Decay rate of the running means, in [0, 1).
    epsilon : float
        Added inside the root.
    momentum : float
        Momentum :math:`\mu` of the steps, in [0, 1].
    centered : bool
        Divide by the running standard deviation instead.

    Notes
    -----
    Source: Tieleman and Hinton 2012, lecture 6.5; centered form: Graves 2013, arXiv 1308.0850.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.RMSProp(0.1, rho=0.75, parameters=[w])
    >>> (4 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([0.8], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": REQUIRED,
        "rho": 0.95,
        "epsilon": 1e-6,
        "momentum": 0.0,
        "centered": False,
    }
    slots: ClassVar[dict[str, float]] = {"momentum": 0.0, "mean_square": 0.0}

    def slots_for(self, h: Any) -> dict[str, float]:
        """Return the slots, with an additional one for the centered form."""
        return self.slots | ({"mean_grad": 0.0} if h.centered else {})

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Divide the gradient by its running RMS, and add the momentum."""
        mean_square = h.rho * s.mean_square + (1 - h.rho) * (g * g)
        slots = {"mean_square": mean_square}
        spread = mean_square
        if h.centered:
            mean_grad = h.rho * s.mean_grad + (1 - h.rho) * g
            slots["mean_grad"] = mean_grad
            # Rounding may make the variance of a constant gradient negative.
            spread = np.maximum(mean_square - mean_grad * mean_grad, 0.0)
        root = np.sqrt(spread + h.epsilon)
        step = h.momentum * s.momentum + h.learning_rate * g / root
        slots["momentum"] = step
        return p - step, slots, {"root": root, "update": -step}
