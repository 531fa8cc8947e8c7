"""The four rules in plain NumPy, written from the formulas, one parameter at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

State = dict[str, Any]


def sgd(p, g, s: State, t: int, learning_rate):
    return p - learning_rate * g


def momentum(p, g, s: State, t: int, learning_rate, momentum, use_nesterov, rescale_grad):
    g = rescale_grad * g
    s["v"] = momentum * s.get("v", 0.0) + g
    if use_nesterov:
        return p - learning_rate * (g + momentum * s["v"])
    return p - learning_rate * s["v"]


def rmsprop(p, g, s: State, t: int, learning_rate, rho, epsilon, momentum, centered):
    s["square"] = rho * s.get("square", 0.0) + (1 - rho) * g**2
    spread = s["square"]
    if centered:
        s["mean"] = rho * s.get("mean", 0.0) + (1 - rho) * g
        spread = spread - s["mean"] ** 2
    s["v"] = momentum * s.get("v", 0.0) + learning_rate * g / np.sqrt(spread + epsilon)
    return p - s["v"]


def adam(p, g, s: State, t: int, learning_rate, beta1, beta2, epsilon, lazy_mode, amsgrad):
    s["m"] = beta1 * s.get("m", 0.0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0.0) + (1 - beta2) * g**2
    s["largest"] = np.maximum(s.get("largest", 0.0), s["v"])
    v = s["largest"] if amsgrad else s["v"]
    corrected = s["m"] / (1 - beta1**t)
    return p - learning_rate * corrected / (np.sqrt(v / (1 - beta2**t)) + epsilon)


#: Name of the class, formula, and settings that differ from a plain call.
RULES = {
    "SGD": (sgd, [{}]),
    "Momentum": (momentum, [{}, {"use_nesterov": True}, {"rescale_grad": 0.25, "momentum": 0.5}]),
    "RMSProp": (rmsprop, [{}, {"centered": True}, {"momentum": 0.9, "epsilon": 1e-3}]),
    "Adam": (adam, [{}, {"amsgrad": True}, {"beta1": 0.0, "beta2": 0.5, "epsilon": 0.1}]),
}


def path(formula, start, gradients, settings: dict[str, Any]) -> list[np.ndarray]:
    """Give the parameter after each of the gradients, step counts from 1."""
    p, state, found = start, {}, []
    for t, g in enumerate(gradients, 1):
        p = formula(p, g, state, t, **settings)
        found.append(p)
    return found
