"""Adam: adaptive moment estimation with bias correction."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.traced import square_root


class Adam(Optimizer):
    r"""Adam: the mean gradient divided by the root of the mean square, both bias-corrected.

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \eta \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    beta1, beta2 : float
        Decay rates of the two moments, in [0, 1).
    epsilon : float
        Added to the root.
    lazy_mode : bool
        With row-sparse gradients, leave moments and values of rows without a gradient unchanged.
        Otherwise their gradient is zero.
    amsgrad : bool
        Divide by the largest v so far (Reddi et al. 2018, arXiv 1904.09237).
    use_multi_tensor : bool
        Accepted for compatibility; a step updates all parameters at once in either case.

    Notes
    -----
    Source: Kingma and Ba 2015, arXiv 1412.6980, algorithm 1.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.Adam(0.1, parameters=[w])
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
        "lazy_mode": False,
        "amsgrad": False,
    }
    slots: ClassVar[dict[str, float]] = {"moment1": 0.0, "moment2": 0.0}
    ignored_options: ClassVar[tuple[str, ...]] = ("use_multi_tensor",)

    def slots_for(self, h: Any) -> dict[str, float]:
        """Return the slots, with an additional one for AMSGrad."""
        return self.slots | ({"moment2_max": 0.0} if h.amsgrad else {})

    def applies_by_rows(self, h: Any) -> bool:
        """Return whether rows without a gradient are left unchanged."""
        return bool(h.lazy_mode)

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Return the bias corrections of the two moments."""
        return {
            "rate": h.learning_rate / (1 - h.beta1**t),
            "root": 1 / square_root(1 - h.beta2**t),
        }

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update both moments, and step along their quotient."""
        moment1 = h.beta1 * s.moment1 + (1 - h.beta1) * g
        moment2 = h.beta2 * s.moment2 + (1 - h.beta2) * (g * g)
        slots = {"moment1": moment1, "moment2": moment2}
        size = moment2
        if h.amsgrad:
            slots["moment2_max"] = size = np.maximum(s.moment2_max, moment2)
        root = np.sqrt(size) * c.root
        update = -c.rate * moment1 / (root + h.epsilon)
        return p + update, slots, {"root": root, "update": update}
