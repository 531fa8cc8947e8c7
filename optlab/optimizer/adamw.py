"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from optlab.optimizer.adam import Adam
from optlab.optimizer.params.groups import checked_rate
from optlab.optimizer.rule.hyperparameters import checked_callable


class AdamW(Adam):
    r"""AdamW: decoupled weight decay, then a step of `Adam`.

    .. math::
        p &\leftarrow p - \eta \lambda p \\
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
    weight_decay : float
        The decay :math:`\lambda`, a number: it is not a regularizer, and not part of the moments.
    lr_ratio : callable, optional
        Takes a parameter and returns a factor for its rate, in decay and step.
    apply_decay_param_fun : callable, optional
        Takes the name of a parameter and returns whether it decays.
    lazy_mode : bool
        With row-sparse gradients, leave moments and values of rows without a gradient unchanged.
        Otherwise their gradient is zero, and they decay.
    amsgrad : bool
        Divide by the largest v so far.

    Notes
    -----
    Source: Loshchilov and Hutter 2019, arXiv 1711.05101, algorithm 2.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.AdamW(0.1, weight_decay=0.5, parameters=[w])
    >>> (5 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy().round(6)
    array([0.85], dtype=float32)

    Without decay of biases:

    >>> layer = ol.nn.Linear(3, 2)
    >>> optimizer = ol.optimizer.AdamW(
    ...     0.1,
    ...     parameters=layer.parameters(),
    ...     apply_decay_param_fun=lambda name: "bias" not in name,
    ... )
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "weight_decay": 0.01,
        "lr_ratio": None,
        "apply_decay_param_fun": None,
        "lazy_mode": False,
        "amsgrad": False,
    }
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"weight_decay": (0.0, math.inf)}
    ignored_options: ClassVar[tuple[str, ...]] = ()

    def check(self, h: Any) -> None:
        """Validate that the two functions are callable."""
        checked_callable("lr_ratio", h.lr_ratio, "a parameter, and gives a factor for its rate")
        checked_callable(
            "apply_decay_param_fun", h.apply_decay_param_fun, "a name, and says if it decays"
        )

    def for_parameter(self, parameter: Any, h: Any) -> dict[str, Any]:
        """Return the factor of this parameter's rate, and a decay of 0 if it is excluded."""
        own: dict[str, Any] = {}
        if h.lr_ratio is not None:
            own["learning_rate"] = _ratio(h.lr_ratio(parameter), parameter)
        chosen = h.apply_decay_param_fun
        if chosen is not None and not chosen(getattr(parameter, "name", None) or ""):
            own["weight_decay"] = 0.0
        return own

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Return Adam's corrections, and the decay factor of the parameter."""
        return {**super().scalars(t, h), "kept": 1 - h.learning_rate * h.weight_decay}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Decay the parameter, then take Adam's step."""
        shrunk = c.kept * p
        new, slots, terms = super().update(shrunk, g, s, h, c)
        return new, slots, {**terms, "decay": shrunk - p, "update": new - p}


def _ratio(value: Any, parameter: Any) -> Any:
    """Validate the result of lr_ratio for a parameter, and return it."""
    try:
        return checked_rate(value)
    except (TypeError, ValueError):
        name = getattr(parameter, "name", None) or f"a parameter of shape {parameter.shape}"
        kind = TypeError if value is None or isinstance(value, str) else ValueError
        raise kind(
            f"lr_ratio gave {value!r} for {name}; it gives a finite factor of at least 0 for every "
            "parameter: return 1.0 where the rate is to stay."
        ) from None
