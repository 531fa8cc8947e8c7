"""Lion: evolved sign momentum."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer


class Lion(Optimizer):
    r"""Lion: steps by the sign of momentum and gradient, so every element moves by the rate.

    .. math::
        p &\leftarrow p - \eta \, (\text{sign}(\beta_1 m + (1 - \beta_1) g) + \lambda p) \\
        m &\leftarrow \beta_2 m + (1 - \beta_2) g

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`; the paper recommends a third to a tenth of AdamW's.
    beta1 : float
        Weight of the momentum in the step, in [0, 1).
    beta2 : float
        Decay rate of the momentum, in [0, 1).
    weight_decay : float
        The decay :math:`\lambda`, a number, decoupled as in `AdamW`; the paper recommends three to
        ten times AdamW's.

    Notes
    -----
    Source: Chen et al. 2023, "Symbolic discovery of optimization algorithms", arXiv 2302.06675,
    algorithm 2. Without decay the path is invariant to a positive scaling of all gradients.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0, -1.0])
    >>> optimizer = ol.optimizer.Lion(0.1, parameters=[w])
    >>> (w * ol.to_tensor([5.0, -0.01])).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([ 0.9, -0.9], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.0001,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.0,
    }
    slots: ClassVar[dict[str, float]] = {"moment": 0.0}
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"weight_decay": (0.0, math.inf)}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Step by the sign, then update the momentum."""
        direction = np.sign(h.beta1 * s.moment + (1 - h.beta1) * g)
        step = h.learning_rate * (direction + h.weight_decay * p)
        moment = h.beta2 * s.moment + (1 - h.beta2) * g
        return p - step, {"moment": moment}, {"update": -step}
