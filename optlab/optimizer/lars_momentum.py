"""LARS: momentum with layer-wise adaptive rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.params.labels import Asked, by_rule, names_of
from optlab.optimizer.rule.hyperparameters import REQUIRED
from optlab.optimizer.rule.norms import norm


class LarsMomentum(Optimizer):
    r"""LARS: momentum with the rate scaled by the ratio of parameter norm to gradient norm.

    .. math::
        \gamma &= \frac{c \lVert p \rVert}
            {\lVert g \rVert + \lambda \lVert p \rVert + \epsilon} \\
        v &\leftarrow \mu v + \eta \gamma (g + \lambda p) \\
        p &\leftarrow p - v

    The ratio :math:`\gamma` is 1 if a norm or the decay :math:`\lambda` is 0.

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    momentum : float
        Decay rate of the velocity, :math:`\mu` in [0, 1].
    lars_coeff : float
        The trust coefficient c.
    lars_weight_decay : float
        The decay :math:`\lambda`.
    exclude_from_weight_decay : list of str, optional
        Parts of names; parameters whose names contain one of them are excluded from the decay, and
        so use the unscaled rate: ``[".b_0"]``, the biases of layers, or ``["bias"]``, as the name
        in the model counts as well.
    epsilon : float
        Added to the divisor.
    rescale_grad : float
        Multiplies the gradient first.

    Notes
    -----
    Source: You, Gitman and Ginsburg 2017, "Large batch training of convolutional networks", arXiv
    1708.03888, algorithm 1.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0, 4.0])
    >>> optimizer = ol.optimizer.LarsMomentum(
    ...     0.5, 0.9, lars_coeff=0.5, lars_weight_decay=0.25, parameters=[w]
    ... )
    >>> (w * ol.to_tensor([0.0, 3.75])).sum().backward()
    >>> optimizer.step()  # 0.5 * 0.5 * 5 / (3.75 + 0.25 * 5) = 0.25 along (0.75, 4.75)
    >>> w.numpy()
    array([2.8125, 2.8125], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": REQUIRED,
        "momentum": REQUIRED,
        "lars_coeff": 0.001,
        "lars_weight_decay": 0.0005,
        "exclude_from_weight_decay": None,
        "epsilon": 0.0,
        "rescale_grad": 1.0,
    }
    slots: ClassVar[dict[str, float]] = {"velocity": 0.0}
    kind: ClassVar[str] = "tensor"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "lars_coeff": (0.0, math.inf),
        "lars_weight_decay": (0.0, math.inf),
    }

    def check(self, h: Any) -> None:
        """Validate that the parts of names are a list of strings."""
        parts = h.exclude_from_weight_decay
        if parts is None:
            return
        if isinstance(parts, (str, Tensor)) or not isinstance(parts, Iterable):
            raise TypeError(
                f"exclude_from_weight_decay must be a list of parts of names; got {parts!r}. For "
                "one, write ['bias']."
            )
        for part in parts:
            if not isinstance(part, str):
                raise TypeError(f"exclude_from_weight_decay is a list of text; got {part!r} in it.")

    def for_parameter(self, parameter: Any, h: Any) -> dict[str, Any]:
        """Return a decay of 0 for excluded names."""
        parts = h.exclude_from_weight_decay or ()
        excluded = any(part in name for name in names_of(parameter) for part in parts)
        return {"lars_weight_decay": 0.0} if excluded else {}

    def _idle_rules(self, asked: Sequence[Asked]) -> Iterator[tuple[str, str, list[Asked]]]:
        setting = "exclude_from_weight_decay"
        for parts, concerned in by_rule(asked, setting):
            if not any(own for _, _, own in concerned):
                does = f"is {parts!r} and excludes no parameter: all of them decay"
                yield setting, does, concerned

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return whether the norm ratio is used."""
        return {"adapts": h.lars_weight_decay > 0}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Scale the step by the norm ratio, and add it to the velocity."""
        g = h.rescale_grad * g
        share = self._share(p, g, h) if c.adapts else 1.0
        decayed = g + h.lars_weight_decay * p
        velocity = h.momentum * s.velocity + h.learning_rate * share * decayed
        return p - velocity, {"velocity": velocity}, {"share": share, "update": -velocity}

    def _share(self, p: Any, g: Any, h: Any) -> Any:
        """Return the factor of the rate of this parameter."""
        size, slope = norm(p), norm(g)
        both = (size > 0) & (slope > 0)
        divisor = slope + h.lars_weight_decay * size + h.epsilon
        return np.where(both, h.lars_coeff * size / np.where(both, divisor, 1.0), 1.0)
