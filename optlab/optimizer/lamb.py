"""LAMB: layer-wise adaptive moments for large batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.params.labels import Asked, as_named, by_rule
from optlab.optimizer.rule.hyperparameters import checked_callable
from optlab.optimizer.rule.norms import norm, quotient_or_one
from optlab.optimizer.rule.traced import square_root


class Lamb(Optimizer):
    r"""LAMB: Adam's direction with decay, scaled by the norm of each parameter.

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        r &= \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon} + \lambda p \\
        p &\leftarrow p - \eta \frac{\lVert p \rVert}{\lVert r \rVert} r

    The ratio of the norms is 1 if one of them is 0, and for parameters without decay unless
    `always_adapt` is set.

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    lamb_weight_decay : float
        The decay :math:`\lambda`, which is part of the direction.
    beta1, beta2 : float
        Decay rates of the two moments, in [0, 1).
    epsilon : float
        Added to the root.
    exclude_from_weight_decay_fn : callable, optional
        Takes a parameter and returns whether it is excluded from the decay, such as ``lambda p:
        p.name.endswith(".b_0")`` for the biases of layers.
    always_adapt : bool
        Use the ratio of norms for parameters without decay as well.

    Notes
    -----
    Source: You et al. 2020, "Large batch optimization for deep learning: training BERT in 76
    minutes", arXiv 1904.00962, algorithm 2.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0, 4.0])
    >>> optimizer = ol.optimizer.Lamb(0.1, parameters=[w], always_adapt=True, lamb_weight_decay=0.0)
    >>> w.sum().backward()
    >>> optimizer.step()  # 0.1 * 5 along (1, 1) / sqrt(2)
    >>> w.numpy().round(3)
    array([2.646, 3.646], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "lamb_weight_decay": 0.01,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-6,
        "exclude_from_weight_decay_fn": None,
        "always_adapt": False,
    }
    slots: ClassVar[dict[str, float]] = {"moment1": 0.0, "moment2": 0.0}
    kind: ClassVar[str] = "tensor"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"lamb_weight_decay": (0.0, math.inf)}

    def check(self, h: Any) -> None:
        """Validate that the function is callable."""
        checked_callable(
            "exclude_from_weight_decay_fn",
            h.exclude_from_weight_decay_fn,
            "a parameter, and says if it is left out of the decay",
        )

    def for_parameter(self, parameter: Any, h: Any) -> dict[str, Any]:
        """Return a decay of 0 for excluded parameters."""
        excluded = h.exclude_from_weight_decay_fn
        if excluded is None or not excluded(as_named(parameter)):
            return {}
        return {"lamb_weight_decay": 0.0}

    def _idle_rules(self, asked: Sequence[Asked]) -> Iterator[tuple[str, str, list[Asked]]]:
        setting = "exclude_from_weight_decay_fn"
        for _, concerned in by_rule(asked, setting):
            if not any(own for _, _, own in concerned):
                yield setting, "excludes no parameter: all of them decay", concerned

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return the bias corrections of the two moments, and whether the norm ratio is used."""
        return {
            "moment": 1 / (1 - h.beta1**t),
            "root": 1 / square_root(1 - h.beta2**t),
            "adapts": bool(h.lamb_weight_decay or h.always_adapt),
        }

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update both moments, and scale the step by the ratio of norms."""
        moment1 = h.beta1 * s.moment1 + (1 - h.beta1) * g
        moment2 = h.beta2 * s.moment2 + (1 - h.beta2) * (g * g)
        root = np.sqrt(moment2) * c.root
        direction = c.moment * moment1 / (root + h.epsilon) + h.lamb_weight_decay * p
        slots = {"moment1": moment1, "moment2": moment2}
        if not c.adapts:
            step = h.learning_rate * direction
            return p - step, slots, {"root": root, "update": -step}
        ratio = quotient_or_one(norm(p), norm(direction))
        step = h.learning_rate * ratio * direction
        return p - step, slots, {"root": root, "ratio": ratio, "update": -step}
