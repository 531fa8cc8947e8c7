"""Rprop: resilient backpropagation, steps by the sign of the gradient alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tensor.conversions import as_setting
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.traced import TracedNumber


class Rprop(Optimizer):
    r"""Rprop: a rate per element that increases while its gradient keeps the sign.

    .. math::
        r &\leftarrow \text{clamp}(r \cdot \begin{cases}
            \eta^+ & g \, g_{old} > 0 \\ \eta^- & g \, g_{old} < 0 \\ 1 & \text{otherwise}
        \end{cases}) \\
        g &\leftarrow 0 \qquad \text{where } g \, g_{old} < 0 \\
        p &\leftarrow p - r \, \text{sign}(g), \qquad g_{old} \leftarrow g

    Parameters
    ----------
    learning_rate : float
        The initial rate of every element. Later rates are computed by the rule, so a schedule or
        `set_lr` has no effect after the first step.
    learning_rate_range : two floats
        The smallest and the largest rate.
    etas : two floats
        The factors of a rate if the sign of the gradient flips, in (0, 1), and if it stays, above
        1.

    Notes
    -----
    Source: Riedmiller and Braun 1993, "A direct adaptive method for faster backpropagation
    learning", without backtracking after a flip (the form iRprop- of Igel and Hüsken 2000). For
    full batches: the noise of mini-batches flips signs.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.Rprop(0.25, etas=(0.5, 2.0), parameters=[w])
    >>> for _ in range(2):
    ...     (5 * w).sum().backward()
    ...     optimizer.step()
    ...     optimizer.clear_grad()
    >>> w.numpy()
    array([0.25], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "learning_rate_range": (1e-5, 50.0),
        "etas": (0.5, 1.2),
    }
    slots: ClassVar[dict[str, float]] = {"previous": 0.0, "rates": 0.0}

    def check(self, h: Any) -> None:
        """Validate that the range contains the rate, and the two factors."""
        lowest, highest = pair("learning_rate_range", h.learning_rate_range)
        if not 0 < lowest <= h.learning_rate <= highest:
            raise ValueError(
                "learning_rate_range must be (lowest, highest) with 0 < lowest <= learning_rate <= "
                f"highest; got {h.learning_rate_range!r} with learning_rate={h.learning_rate!r}."
            )
        shrink, grow = pair("etas", h.etas)
        if not 0 < shrink < 1 < grow:
            raise ValueError(
                "etas must be (shrink, grow) with 0 < shrink < 1 < grow, such as (0.5, 1.2); got "
                f"{h.etas!r}."
            )

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return whether this is the first step, and the settings of the pairs."""
        lowest, highest = pair("learning_rate_range", h.learning_rate_range)
        shrink, grow = pair("etas", h.etas)
        return {
            "first": t == 1, "lowest": lowest, "highest": highest, "shrink": shrink, "grow": grow
        }  # fmt: skip

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Update the rates, and step by the sign alone."""
        rates = s.rates + h.learning_rate if c.first else s.rates
        sign = np.sign(g)
        # 1 where the sign stays, or flips, and 0 elsewhere: products with these are faster than
        # `where`, and exact.
        agreement = sign * np.sign(s.previous)
        stays, flips = np.maximum(agreement, 0.0), np.maximum(-agreement, 0.0)
        factor = c.grow * stays + c.shrink * flips + (1 - stays - flips)
        rates = np.clip(factor * rates, c.lowest, c.highest)
        kept = 1 - flips
        step = kept * sign * rates
        return p - step, {"previous": kept * g, "rates": rates}, {"update": -step}


def pair(name: str, value: Any) -> tuple[Any, Any]:
    """Validate a setting of two numbers, and return them, Python floats unless differentiated.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise TypeError(f"{name} must be two numbers, such as (0.5, 1.2); got {value!r}.")
    first, second = (x if isinstance(x, TracedNumber) else as_setting(x, name) for x in value)
    return first, second
