"""Small things that the tests of optimizers share."""

from __future__ import annotations

import numpy as np

import optlab as ol


def give(p, g) -> None:
    """Leave exactly the gradient `g` on `p`, by way of the tape."""
    (p * np.asarray(g, p.dtype)).sum().backward()


def random(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


#: An optimizer of each class, ready for parameters; used wherever a rule should not matter.
EACH = {
    "SGD": lambda **common: ol.optimizer.SGD(0.1, **common),
    "Momentum": lambda **common: ol.optimizer.Momentum(0.1, momentum=0.8, **common),
    "Nesterov": lambda **common: ol.optimizer.Momentum(0.1, use_nesterov=True, **common),
    "RMSProp": lambda **common: ol.optimizer.RMSProp(0.1, momentum=0.5, centered=True, **common),
    "Adam": lambda **common: ol.optimizer.Adam(0.1, **common),
    "AMSGrad": lambda **common: ol.optimizer.Adam(0.1, amsgrad=True, **common),
}


class WithNorms(ol.optimizer.Optimizer):
    """A rule that needs one parameter at a time: the step is as long as the parameter."""

    hyperparameters = {"learning_rate": 0.1}
    slots = {"average": 0.0}
    kind = "tensor"

    def update(self, p, g, s, h, c):
        average = 0.5 * s.average + 0.5 * g
        length = float(np.linalg.norm(p)) / (float(np.linalg.norm(average)) + 1e-12)
        step = h.learning_rate * length * average
        return p - step, {"average": average}, {"update": -step}
