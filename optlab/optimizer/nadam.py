"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.traced import square_root, traced

_growing = threading.Lock()


class NAdam(Optimizer):
    r"""NAdam: Adam with Nesterov momentum that increases from half of :math:`\beta_1` to all of it.

    .. math::
        \mu_t &= \beta_1 (1 - \tfrac{1}{2} \, 0.96^{t \psi}), \qquad P_t = \mu_1 \cdots \mu_t \\
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \eta \, \frac{\mu_{t+1} m / (1 - P_{t+1}) + (1 - \mu_t) g / (1 - P_t)}
            {\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    beta1, beta2 : float
        Decay rates of the two moments, in [0, 1).
    epsilon : float
        Added to the root.
    momentum_decay : float
        Speed :math:`\psi` at which :math:`\mu_t` increases to :math:`\beta_1`, at least 0.

    Notes
    -----
    Source: Dozat 2016, "Incorporating Nesterov momentum into Adam", algorithm 2.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.NAdam(0.1, beta1=0.0, parameters=[w])
    >>> (5 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([0.9], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.002,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "momentum_decay": 0.004,
    }
    slots: ClassVar[dict[str, float]] = {"moment1": 0.0, "moment2": 0.0}
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"momentum_decay": (0.0, math.inf)}

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Return the rates along momentum and gradient, and the bias correction of the root."""
        ahead = momentum_at(t + 1, h.beta1, h.momentum_decay)
        here = momentum_at(t, h.beta1, h.momentum_decay)
        return {
            "along_moment": (
                h.learning_rate * ahead / (1 - product_to(t + 1, h.beta1, h.momentum_decay))
            ),
            "along_gradient": (
                h.learning_rate * (1 - here) / (1 - product_to(t, h.beta1, h.momentum_decay))
            ),
            "root": 1 / square_root(1 - h.beta2**t),
        }

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update both moments, and step along the Nesterov direction."""
        moment1 = h.beta1 * s.moment1 + (1 - h.beta1) * g
        moment2 = h.beta2 * s.moment2 + (1 - h.beta2) * (g * g)
        root = np.sqrt(moment2) * c.root
        step = (c.along_moment * moment1 + c.along_gradient * g) / (root + h.epsilon)
        slots = {"moment1": moment1, "moment2": moment2}
        return p - step, slots, {"root": root, "update": -step}


def momentum_at(t: int, beta1: Any, momentum_decay: Any) -> Any:
    """Return the momentum of step t."""
    value = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))
    return value if isinstance(value, Tensor) else float(value)


def product_to(t: int, beta1: Any, momentum_decay: Any) -> Any:
    """Return the product of the momenta of steps 1 to t, multiplied in order: exact for any t."""
    if isinstance(beta1, Tensor) or isinstance(momentum_decay, Tensor):  # differentiated
        steps = np.arange(1.0, t + 1)
        return traced(np.cumprod(beta1 * (1 - 0.5 * 0.96 ** (steps * momentum_decay)))[-1])
    products = _products(beta1, momentum_decay)
    if t >= len(products) and products[-1]:
        with _growing:
            while t >= len(products) and products[-1]:
                mu = momentum_at(len(products), beta1, momentum_decay)
                products.append(products[-1] * mu)
    return products[t] if t < len(products) else 0.0


@lru_cache(maxsize=1024)
def _products(beta1: float, momentum_decay: float) -> list[float]:
    """Return the cached products; the list ends where they have underflowed to 0."""
    return [1.0]
