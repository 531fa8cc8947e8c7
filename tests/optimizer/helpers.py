"""Helpers shared by the tests of optimizers."""

from __future__ import annotations

import numpy as np

import optlab as ol


def give(p, g) -> None:
    """Set the gradient of `p` to exactly `g`, by a backward pass."""
    (p * np.asarray(g, p.dtype)).sum().backward()


def random(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def _without_decay(common: dict) -> dict:
    """Return the settings without the decay that rules with their own decay do not accept."""
    decay = common.get("weight_decay", 0.0)
    if isinstance(decay, (int, float)):
        return common
    return {name: value for name, value in common.items() if name != "weight_decay"}


#: A constructor for each class, used wherever the rule should not matter.
EACH = {
    "SGD": lambda **common: ol.optimizer.SGD(0.1, **common),
    "Momentum": lambda **common: ol.optimizer.Momentum(0.1, momentum=0.8, **common),
    "Nesterov": lambda **common: ol.optimizer.Momentum(0.1, use_nesterov=True, **common),
    "RMSProp": lambda **common: ol.optimizer.RMSProp(0.1, momentum=0.5, centered=True, **common),
    "Adam": lambda **common: ol.optimizer.Adam(0.1, **common),
    "AMSGrad": lambda **common: ol.optimizer.Adam(0.1, amsgrad=True, **common),
    "Adagrad": lambda **common: ol.optimizer.Adagrad(0.3, initial_accumulator_value=0.1, **common),
    "DecayedAdagrad": lambda **common: ol.optimizer.DecayedAdagrad(0.1, **common),
    "Adadelta": lambda **common: ol.optimizer.Adadelta(1.0, epsilon=1e-3, **common),
    "AdamW": lambda **common: ol.optimizer.AdamW(0.1, **_without_decay(common)),
    "AMSGradW": lambda **common: ol.optimizer.AdamW(0.1, amsgrad=True, **_without_decay(common)),
    "Adamax": lambda **common: ol.optimizer.Adamax(0.1, **common),
    "NAdam": lambda **common: ol.optimizer.NAdam(0.05, **common),
    "RAdam": lambda **common: ol.optimizer.RAdam(0.05, beta2=0.9, **common),
    "Rprop": lambda **common: ol.optimizer.Rprop(0.1, **common),
    "Ftrl": lambda **common: ol.optimizer.Ftrl(0.5, l1=0.01, l2=0.02, **common),
    "Ftrl of another power": lambda **common: ol.optimizer.Ftrl(0.5, lr_power=-0.25, **common),
    "ASGD": lambda **common: ol.optimizer.ASGD(0.1, batch_num=3, **common),
    "Lion": lambda **common: ol.optimizer.Lion(0.05, **_without_decay(common)),
    "Lamb": lambda **common: ol.optimizer.Lamb(0.02, **common),
    "LarsMomentum": lambda **common: ol.optimizer.LarsMomentum(
        0.1, 0.5, lars_coeff=0.5, lars_weight_decay=0.01, **common
    ),
    "Dpsgd": lambda **common: ol.optimizer.Dpsgd(0.1, sigma=0.0, **common),
    "Muon": lambda **common: ol.optimizer.Muon(0.05, **_without_decay(common)),
    "fluid Adam": lambda **common: ol.fluid.optimizer.Adam(0.1, **common),
    "fluid Lamb": lambda **common: ol.fluid.optimizer.Lamb(0.02, **common),
}


class WithNorms(ol.optimizer.Optimizer):
    """A rule that needs each parameter separately: the step is as long as the parameter."""

    hyperparameters = {"learning_rate": 0.1}
    slots = {"average": 0.0}
    kind = "tensor"

    def update(self, p, g, s, h, c):
        average = 0.5 * s.average + 0.5 * g
        length = float(np.linalg.norm(p)) / (float(np.linalg.norm(average)) + 1e-12)
        step = h.learning_rate * length * average
        return p - step, {"average": average}, {"update": -step}
