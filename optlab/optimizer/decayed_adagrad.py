"""Decayed Adagrad: Adagrad with an exponential moving average of squares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.hyperparameters import REQUIRED


class DecayedAdagrad(Optimizer):
    r"""Decayed Adagrad: gradients divided elementwise by the root of their running mean square.

    .. math::
        m &\leftarrow \delta m + (1 - \delta) g^2 \\
        p &\leftarrow p - \frac{\eta g}{\sqrt{m} + \epsilon}

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    decay : float
        Decay rate of the mean square, :math:`\delta` in [0, 1).
    epsilon : float
        Added to the root.

    Notes
    -----
    Source: Duchi, Hazan and Singer 2011, with a running mean in place of the sum. It differs from
    `RMSProp` without momentum in the place of epsilon, which RMSProp has inside the root.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.DecayedAdagrad(0.1, decay=0.75, parameters=[w])
    >>> (4 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy().round(6)
    array([0.8], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": REQUIRED,
        "decay": 0.95,
        "epsilon": 1e-6,
    }
    slots: ClassVar[dict[str, float]] = {"moment": 0.0}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update the mean square, and divide by its root."""
        moment = h.decay * s.moment + (1 - h.decay) * (g * g)
        root = np.sqrt(moment)
        step = h.learning_rate * g / (root + h.epsilon)
        return p - step, {"moment": moment}, {"root": root, "update": -step}
