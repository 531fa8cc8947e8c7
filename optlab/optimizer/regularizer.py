"""Regularizers: penalties whose gradient is added to that of the loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import raw
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.wrong_arguments import explain_all as _explain_all

__all__ = ["L1Decay", "L2Decay", "Regularizer"]


class Regularizer:
    """Base class: a penalty on the parameters. Its gradient is not clipped."""

    def __init__(self, coeff: float = 0.0) -> None:
        self.coeff = _coefficient(coeff, "coeff")

    def add_to(self, g: Any, p: Any) -> Any:
        """Return the gradient plus that of the penalty."""
        raise NotImplementedError(f"{type(self).__name__} has no add_to(g, p) method.")

    def penalty(self, p: Any) -> Any:
        """Return the penalty, one number, for optimizers that evaluate the loss."""
        raise NotImplementedError(f"{type(self).__name__} has no penalty(p) method.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.coeff})"


class L2Decay(Regularizer):
    r"""L2 penalty :math:`\frac{c}{2} \sum p^2`: adds c p to the gradient.

    Examples
    --------
    >>> import numpy as np
    >>> L2Decay(0.1).add_to(np.zeros(2), np.array([1.0, -2.0]))
    array([ 0.1, -0.2])
    """

    def add_to(self, g: Any, p: Any) -> Any:
        """Return g + c p."""
        return g + self.coeff * p

    def penalty(self, p: Any) -> Any:
        """Return c / 2 times the sum of squares."""
        return 0.5 * self.coeff * (p * p).sum()


class L1Decay(Regularizer):
    r"""L1 penalty :math:`c \sum |p|`: adds c sign(p) to the gradient.

    Examples
    --------
    >>> import numpy as np
    >>> L1Decay(0.1).add_to(np.zeros(2), np.array([1.0, -2.0]))
    array([ 0.1, -0.1])
    """

    def add_to(self, g: Any, p: Any) -> Any:
        """Return g + c sign(p)."""
        return g + self.coeff * np.sign(p)

    def penalty(self, p: Any) -> Any:
        """Return c times the sum of absolute values."""
        return self.coeff * np.abs(p).sum()


def with_decay(regularizer: Any, g: Any, p: Any, separate: bool = False) -> tuple[Any, Any]:
    """Return a gradient with the decay in it, or, if `separate`, gradient and decay apart.

    Examples
    --------
    >>> import numpy as np
    >>> p, g = np.array([1.0, -2.0]), np.array([3.0, 3.0])
    >>> with_decay(L2Decay(0.5), g, p)
    (array([3.5, 2. ]), None)
    >>> with_decay(L2Decay(0.5), g, p, separate=True)
    (array([3., 3.]), array([ 0.5, -1. ]))
    """
    if regularizer is None:
        return g, None
    return (g, regularizer.add_to(0.0, p)) if separate else (regularizer.add_to(g, p), None)


def as_regularizer(value: Any) -> Regularizer | None:
    """Convert a ``weight_decay`` argument to a regularizer: a number means L2Decay."""
    if value is None or isinstance(value, Regularizer):
        return value
    return L2Decay(_coefficient(value, "weight_decay"))


def _coefficient(value: Any, name: str) -> float:
    if isinstance(raw(value), EnsembleArray):
        raise TypeError(
            f"{name} takes one number for all members of an ensemble; for one a member, use a rule "
            "whose decay is a setting, as AdamW's weight_decay."
        )
    number = as_setting(
        value, name, "g + t * w, with g the gradient of w, for optimizer.functional_step"
    )
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and at least 0; got {number!r}.")
    return number


_explain_all(globals())


def __dir__() -> list[str]:
    return __all__
