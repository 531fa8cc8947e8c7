"""Adamax: Adam with the infinity norm in place of the root mean square."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer


class Adamax(Optimizer):
    r"""Adamax: the mean gradient divided by an exponentially weighted infinity norm.

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        u &\leftarrow \max(|g|, \beta_2 u + \epsilon) \\
        p &\leftarrow p - \frac{\eta}{1 - \beta_1^t} \frac{m}{u}

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    beta1 : float
        Decay rate of the moment, in [0, 1).
    beta2 : float
        Decay rate of the maximum, in [0, 1).
    epsilon : float
        Added to the old maximum, so that it is never 0.

    Notes
    -----
    Source: Kingma and Ba 2015, arXiv 1412.6980, algorithm 2.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.Adamax(0.1, parameters=[w])
    >>> (5 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([0.9], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
    }
    slots: ClassVar[dict[str, float]] = {"moment": 0.0, "inf_norm": 0.0}

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Return the rate with the bias correction of the moment."""
        return {"rate": h.learning_rate / (1 - h.beta1**t)}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update the moment, and divide by the decayed maximum."""
        moment = h.beta1 * s.moment + (1 - h.beta1) * g
        largest = np.maximum(np.abs(g), h.beta2 * s.inf_norm + h.epsilon)
        step = c.rate * moment / largest
        slots = {"moment": moment, "inf_norm": largest}
        return p - step, slots, {"update": -step}
