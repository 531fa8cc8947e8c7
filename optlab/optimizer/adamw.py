"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from optlab.autograd.tensor.conversions import is_tracked, refusal
from optlab.optimizer.adam import Adam
from optlab.optimizer.params.groups import checked_rate
from optlab.optimizer.params.labels import (
    Asked,
    as_named,
    by_rule,
    label_of,
    tells_structural_names_apart,
)
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
        Takes the name of a parameter, such as ``"linear_0.w_0"``, and returns whether it decays.
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
    ...     apply_decay_param_fun=lambda name: not name.endswith(".b_0"),
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
            own["learning_rate"] = _ratio(h.lr_ratio(as_named(parameter)), parameter)
        chosen = h.apply_decay_param_fun
        if chosen is not None and not chosen(as_named(parameter).name):
            own["weight_decay"] = 0.0
        return own

    def _idle_rules(self, asked: Sequence[Asked]) -> Iterator[tuple[str, str, list[Asked]]]:
        for choose, concerned in by_rule(asked, "apply_decay_param_fun"):
            decay = ["weight_decay" not in own for _, _, own in concerned]
            if not any(decay):
                does = "chooses no parameter: none of them decays"
                yield "apply_decay_param_fun", does, concerned
            # To choose all of them is usual, unless it is a mistake about names.
            elif all(decay) and tells_structural_names_apart(choose, [p for p, *_ in concerned]):
                does = "chooses every parameter: all of them decay"
                yield "apply_decay_param_fun", does, concerned
        for _, concerned in by_rule(asked, "lr_ratio"):
            if all(own.get("learning_rate") == 1.0 for _, _, own in concerned):
                yield "lr_ratio", "is 1.0 for every parameter, which changes nothing", concerned

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
    if is_tracked(value):
        raise refusal(
            value,
            f"lr_ratio, whose factor for {label_of(parameter, 'a parameter')} is read as a plain "
            "number,",
            "optimizer.functional_step(parameters, gradients, state, learning_rate=t), which can "
            "be differentiated by the rate; or return t.item() where no gradient is wanted",
        )
    try:
        return checked_rate(value)
    except (TypeError, ValueError):
        name = label_of(parameter, f"a parameter of shape {parameter.shape}")
        kind = TypeError if value is None or isinstance(value, str) else ValueError
        raise kind(
            f"lr_ratio gave {value!r} for {name}; it gives a finite factor of at least 0 for every "
            "parameter: return 1.0 where the rate is to stay."
        ) from None
