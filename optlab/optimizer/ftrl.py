"""FTRL-Proximal: follow the regularized leader, with sparse weights."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.hyperparameters import REQUIRED


class Ftrl(Optimizer):
    r"""Follow the regularized leader: the minimizer of all past gradients and a penalty.

    .. math::
        n_{new} &= n + g^2, \qquad q = -\text{lr\_power} \\
        z &\leftarrow z + g - \frac{n_{new}^q - n^q}{\eta} p \\
        p &\leftarrow \begin{cases}
            \dfrac{\lambda_1 \text{sign}(z) - z}{n_{new}^q / \eta + 2 \lambda_2}
                & |z| > \lambda_1 \\ 0 & \text{otherwise}
        \end{cases} \\
        n &\leftarrow n_{new}

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`, greater than 0.
    l1, l2 : float
        The strengths :math:`\lambda_1` and :math:`\lambda_2` of the penalties on the absolute value
        (which makes weights exactly 0) and on the square.
    lr_power : float
        Power of the squared gradients in the rate of an element, at most 0; -0.5 is Adagrad's.

    Notes
    -----
    Source: McMahan et al. 2013, "Ad click prediction: a view from the trenches", algorithm 1. The
    point is recomputed from n and z: the first step discards the initial value of the parameter.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0, 1.0])
    >>> optimizer = ol.optimizer.Ftrl(0.5, l1=3.0, parameters=[w])
    >>> (w * ol.to_tensor([4.0, 0.25])).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([0.125, 0.   ], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": REQUIRED,
        "l1": 0.0,
        "l2": 0.0,
        "lr_power": -0.5,
    }
    slots: ClassVar[dict[str, float]] = {"squared": 0.0, "linear": 0.0}
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "l1": (0.0, math.inf),
        "l2": (0.0, math.inf),
    }

    def check(self, h: Any) -> None:
        """Validate that the rate does not grow with the gradients."""
        if h.lr_power > 0:
            raise ValueError(f"lr_power must be at most 0, such as -0.5; got {h.lr_power!r}.")

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Raise for a rate of 0, a divisor; return whether the power is a square root.

        A power that is differentiated is one at -0.5, too.
        """
        if not h.learning_rate > 0:
            raise ValueError(
                "Ftrl divides by its rate, which is 0 for a parameter in this step; use a small "
                "rate, such as 1e-8, or take the parameter out."
            )
        return {"by_root": not isinstance(h.lr_power, Tensor) and h.lr_power == -0.5}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update both sums, and solve for the point."""
        squared = s.squared + g * g
        if c.by_root:
            before, after = np.sqrt(s.squared), np.sqrt(squared)
        else:
            before, after = s.squared**-h.lr_power, squared**-h.lr_power
        linear = s.linear + g - (after - before) / h.learning_rate * p
        strength = after / h.learning_rate + 2 * h.l2
        # l1 sign(z) - z where |z| > l1, else 0; there the divisor may be 0 as well.
        pull = np.clip(linear, -h.l1, h.l1) - linear
        new = pull / np.maximum(strength, float(np.finfo(p.dtype).tiny))
        return new, {"squared": squared, "linear": linear}, {"update": new - p}
