"""The rules in plain NumPy, written from the formulas, one parameter at a time."""

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


def adagrad(p, g, s: State, t: int, learning_rate, epsilon, initial_accumulator_value):
    s["sum"] = s.get("sum", initial_accumulator_value) + g**2
    return p - learning_rate * g / (np.sqrt(s["sum"]) + epsilon)


def decayed_adagrad(p, g, s: State, t: int, learning_rate, decay, epsilon):
    s["mean"] = decay * s.get("mean", 0.0) + (1 - decay) * g**2
    return p - learning_rate * g / (np.sqrt(s["mean"]) + epsilon)


def adadelta(p, g, s: State, t: int, learning_rate, epsilon, rho):
    s["g"] = rho * s.get("g", 0.0) + (1 - rho) * g**2
    steps = s.get("steps", 0.0)
    delta = np.sqrt(steps + epsilon) / np.sqrt(s["g"] + epsilon) * g
    s["steps"] = rho * steps + (1 - rho) * delta**2
    return p - learning_rate * delta


def adamw(
    p, g, s: State, t: int, learning_rate, beta1, beta2, epsilon, weight_decay, lr_ratio,
    apply_decay_param_fun, lazy_mode, amsgrad,
):  # fmt: skip
    p = p - learning_rate * weight_decay * p
    return adam(p, g, s, t, learning_rate, beta1, beta2, epsilon, lazy_mode, amsgrad)


def adamax(p, g, s: State, t: int, learning_rate, beta1, beta2, epsilon):
    s["m"] = beta1 * s.get("m", 0.0) + (1 - beta1) * g
    s["u"] = np.maximum(np.abs(g), beta2 * s.get("u", np.zeros_like(p)) + epsilon)
    return p - learning_rate / (1 - beta1**t) * s["m"] / s["u"]


def nadam(p, g, s: State, t: int, learning_rate, beta1, beta2, epsilon, momentum_decay):
    mu = [beta1 * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in range(1, t + 2)]
    s["m"] = beta1 * s.get("m", 0.0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0.0) + (1 - beta2) * g**2
    ahead = float(mu[t] / (1 - np.prod(mu))) * s["m"]
    now = float((1 - mu[t - 1]) / (1 - np.prod(mu[:t]))) * g
    return p - learning_rate * (ahead + now) / (np.sqrt(s["v"] / (1 - beta2**t)) + epsilon)


def radam(p, g, s: State, t: int, learning_rate, beta1, beta2, epsilon):
    s["m"] = beta1 * s.get("m", 0.0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0.0) + (1 - beta2) * g**2
    m = s["m"] / (1 - beta1**t)
    longest = 2 / (1 - beta2) - 1
    rho = longest - 2 * t * beta2**t / (1 - beta2**t)
    if rho <= 5:
        return p - learning_rate * m
    r = (((rho - 4) * (rho - 2) * longest) / ((longest - 4) * (longest - 2) * rho)) ** 0.5
    return p - learning_rate * r * m * (1 - beta2**t) ** 0.5 / (np.sqrt(s["v"]) + epsilon)


def rprop(p, g, s: State, t: int, learning_rate, learning_rate_range, etas):
    new, g = p.copy(), g.copy()
    rates = s.setdefault("rates", np.full_like(p, learning_rate))
    last = s.get("last", np.zeros_like(p))
    for i in np.ndindex(p.shape):
        if g[i] * last[i] < 0:
            rates[i] *= etas[0]
            g[i] = 0
        elif g[i] * last[i] > 0:
            rates[i] *= etas[1]
        rates[i] = min(max(rates[i], learning_rate_range[0]), learning_rate_range[1])
        new[i] -= np.sign(g[i]) * rates[i]
    s["last"] = g
    return new


def ftrl(p, g, s: State, t: int, learning_rate, l1, l2, lr_power):
    n, z = s.get("n", np.zeros_like(p)), s.get("z", np.zeros_like(p))
    new_n = n + g**2
    sigma = (new_n**-lr_power - n**-lr_power) / learning_rate
    s["z"] = z = z + g - sigma * p
    s["n"] = new_n
    curve = new_n**-lr_power / learning_rate + 2 * l2
    return np.asarray((np.abs(z) > l1) * (np.sign(z) * l1 - z) / curve, p.dtype)


def lamb(
    p, g, s: State, t: int, learning_rate, lamb_weight_decay, beta1, beta2, epsilon,
    exclude_from_weight_decay_fn, always_adapt,
):  # fmt: skip
    s["m"] = beta1 * s.get("m", 0.0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0.0) + (1 - beta2) * g**2
    r = s["m"] / (1 - beta1**t) / (np.sqrt(s["v"] / (1 - beta2**t)) + epsilon)
    r = r + lamb_weight_decay * p
    long, wide = float(np.linalg.norm(p)), float(np.linalg.norm(r))
    ratio = long / wide if long > 0 < wide and (always_adapt or lamb_weight_decay > 0) else 1.0
    return p - learning_rate * ratio * r


def lars(
    p, g, s: State, t: int, learning_rate, momentum, lars_coeff, lars_weight_decay,
    exclude_from_weight_decay, epsilon, rescale_grad,
):  # fmt: skip
    g = rescale_grad * g
    long, steep = float(np.linalg.norm(p)), float(np.linalg.norm(g))
    rate = learning_rate
    if lars_weight_decay > 0 and long > 0 and steep > 0:
        rate *= lars_coeff * long / (steep + lars_weight_decay * long + epsilon)
    s["v"] = momentum * s.get("v", 0.0) + rate * (g + lars_weight_decay * p)
    return p - s["v"]


def asgd(p, g, s: State, t: int, learning_rate, batch_num):
    table = s.setdefault("table", {})
    table[(t - 1) % batch_num] = g
    return p - learning_rate * sum(table.values()) / len(table)


def dpsgd(p, g, s: State, t: int, learning_rate, clip, batch_size, sigma):
    assert sigma == 0
    return p - learning_rate * g / max(1.0, float(np.linalg.norm(g)) / clip)


def lion(p, g, s: State, t: int, learning_rate, beta1, beta2, weight_decay):
    m = s.get("m", np.zeros_like(p))
    s["m"] = beta2 * m + (1 - beta2) * g
    return p - learning_rate * (np.sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)


def muon(
    p, g, s: State, t: int, learning_rate, momentum, use_nesterov, newton_schulz_steps,
    weight_decay, epsilon,
):  # fmt: skip
    """Apply Muon by singular values: the Newton-Schulz iteration is a polynomial of them."""
    s["v"] = momentum * s.get("v", 0.0) + g
    x = g + momentum * s["v"] if use_nesterov else s["v"]
    matrix = x.reshape(len(x), -1) if x.ndim > 1 else x.reshape(-1, 1)
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / (np.linalg.norm(matrix) + epsilon)
    for _ in range(newton_schulz_steps if min(matrix.shape) > 1 else 0):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    direction = ((left * values) @ right).reshape(p.shape).astype(p.dtype)
    scale = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
    return p - learning_rate * (scale * direction + weight_decay * p)


#: Name of the class, formula, and settings that differ from the defaults.
RULES: dict[str, Any] = {
    "SGD": (sgd, [{}]),
    "Momentum": (momentum, [{}, {"use_nesterov": True}, {"rescale_grad": 0.25, "momentum": 0.5}]),
    "RMSProp": (rmsprop, [{}, {"centered": True}, {"momentum": 0.9, "epsilon": 1e-3}]),
    "Adam": (adam, [{}, {"amsgrad": True}, {"beta1": 0.0, "beta2": 0.5, "epsilon": 0.1}]),
    "Adagrad": (adagrad, [{}, {"initial_accumulator_value": 0.5, "epsilon": 0.01}]),
    "DecayedAdagrad": (decayed_adagrad, [{}, {"decay": 0.5, "epsilon": 0.01}]),
    "Adadelta": (adadelta, [{}, {"rho": 0.5, "epsilon": 0.01}]),
    "AdamW": (adamw, [{}, {"weight_decay": 0.5, "amsgrad": True}, {"weight_decay": 0.0}]),
    "Adamax": (adamax, [{}, {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.1}]),
    "NAdam": (nadam, [{}, {"momentum_decay": 0.5}, {"beta1": 0.5, "momentum_decay": 0.0}]),
    "RAdam": (radam, [{}, {"beta2": 0.9, "epsilon": 0.01}, {"beta2": 0.5}]),
    "Rprop": (rprop, [{}, {"etas": (0.1, 2.5), "learning_rate_range": (0.01, 0.2)}]),
    "Ftrl": (ftrl, [{}, {"l1": 0.3, "l2": 0.1}, {"l1": 0.1, "lr_power": -0.75}]),
    "Lamb": (
        lamb,
        [{}, {"lamb_weight_decay": 0.0}, {"lamb_weight_decay": 0.0, "always_adapt": True}],
    ),
    "LarsMomentum": (
        lars,
        [
            {"momentum": 0.9},
            {"momentum": 0.5, "lars_coeff": 0.5, "lars_weight_decay": 0.1, "epsilon": 0.1},
            {"momentum": 0.5, "lars_weight_decay": 0.0, "rescale_grad": 0.25},
        ],
    ),
    "ASGD": (asgd, [{}, {"batch_num": 4}]),
    "Dpsgd": (dpsgd, [{"sigma": 0.0}, {"sigma": 0.0, "clip": 100.0}]),
    "Lion": (lion, [{}, {"beta1": 0.5, "weight_decay": 0.5}]),
    "Muon": (muon, [{}, {"use_nesterov": False, "newton_schulz_steps": 3, "weight_decay": 0.5}]),
}


def path(formula, start, gradients, settings: dict[str, Any]) -> list[np.ndarray]:
    """Return the parameter after each of the gradients; step counts start at 1."""
    p, state, found = start, {}, []
    for t, g in enumerate(gradients, 1):
        p = formula(p, g, state, t, **settings)
        found.append(p)
    return found
