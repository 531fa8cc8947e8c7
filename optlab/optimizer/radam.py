"""RAdam: Adam with a rectified adaptive rate."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.traced import square_root


class RAdam(Optimizer):
    r"""RAdam: Adam with a correction for the variance of its divisor, large in the first steps.

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        \rho_t &= \rho_\infty - \frac{2 t \beta_2^t}{1 - \beta_2^t},
            \qquad \rho_\infty = \frac{2}{1 - \beta_2} - 1 \\
        r_t &= \sqrt{\frac{(\rho_t - 4)(\rho_t - 2) \rho_\infty}
            {(\rho_\infty - 4)(\rho_\infty - 2) \rho_t}} \\
        p &\leftarrow p - \frac{\eta}{1 - \beta_1^t} \begin{cases}
            r_t \sqrt{1 - \beta_2^t} \; m / (\sqrt{v} + \epsilon) & \rho_t > 5 \\
            m & \text{otherwise}
        \end{cases}

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    beta1, beta2 : float
        Decay rates of the two moments, in [0, 1).
    epsilon : float
        Added to the root before its correction.

    Notes
    -----
    Source: Liu et al. 2020, arXiv 1908.03265, algorithm 2. With :math:`\beta_2` = 0.999 the first
    five steps are momentum without a divisor.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.RAdam(0.1, parameters=[w])
    >>> (5 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([0.5], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
    }
    slots: ClassVar[dict[str, float]] = {"moment1": 0.0, "moment2": 0.0}

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return whether the variance of the divisor is tractable, and the corrected rate."""
        rate = h.learning_rate / (1 - h.beta1**t)
        forgotten = h.beta2**t
        longest = 2 / (1 - h.beta2) - 1
        length = longest - 2 * t * forgotten / (1 - forgotten)
        if length <= 5:
            return {"rectified": False, "rate": rate}
        variance = (length - 4) * (length - 2) * longest
        variance /= (longest - 4) * (longest - 2) * length
        return {"rectified": True, "rate": rate * square_root(variance * (1 - forgotten))}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update both moments; divide once the variance of the divisor is tractable."""
        moment1 = h.beta1 * s.moment1 + (1 - h.beta1) * g
        moment2 = h.beta2 * s.moment2 + (1 - h.beta2) * (g * g)
        step = c.rate * moment1
        if c.rectified:
            step = step / (np.sqrt(moment2) + h.epsilon)
        return p - step, {"moment1": moment1, "moment2": moment2}, {"update": -step}
