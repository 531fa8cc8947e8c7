"""Adagrad: adaptive rates from accumulated squared gradients."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.hyperparameters import REQUIRED


class Adagrad(Optimizer):
    r"""Adagrad: gradients divided elementwise by the root of the sum of their past squares.

    .. math::
        m &\leftarrow m + g^2 \\
        p &\leftarrow p - \frac{\eta g}{\sqrt{m} + \epsilon}

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    epsilon : float
        Added to the root.
    initial_accumulator_value : float
        Initial value of the sum, at least 0.

    Notes
    -----
    Source: Duchi, Hazan and Singer 2011, "Adaptive subgradient methods for online learning and
    stochastic optimization", figure 1 (diagonal form). Steps decrease like :math:`1 / \sqrt{t}`.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.Adagrad(0.1, parameters=[w])
    >>> (5 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy().round(6)
    array([0.9], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": REQUIRED,
        "epsilon": 1e-6,
        "initial_accumulator_value": 0.0,
    }
    slots: ClassVar[dict[str, float]] = {"moment": 0.0}
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "initial_accumulator_value": (0.0, math.inf)
    }
    by_rows: ClassVar[bool] = True

    def slots_for(self, h: Any) -> dict[str, float]:
        """Return the initial value of the sum."""
        return {"moment": h.initial_accumulator_value}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Accumulate the squared gradient, and divide by the root."""
        moment = s.moment + g * g
        root = np.sqrt(moment)
        step = h.learning_rate * g / (root + h.epsilon)
        return p - step, {"moment": moment}, {"root": root, "update": -step}
