"""Gradient clipping: what an optimizer does to raw gradients before it uses them.

A clip is called with a list of (parameter, gradient) pairs and returns such a list. Parameters with
``need_clip=False`` pass untouched. The gradients that the parameters hold are never changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor import Tensor, raw
from optlab.backend.arrays import as_float
from optlab.backend.device import place_of
from optlab.plan.reductions import Reduction, sum_of_squares

Pairs = Sequence[tuple[Any, Any]]

#: The sum of squares of an array, in float64, where the squares of float32 cannot overflow.
_squared_norm = Reduction(sum_of_squares, lambda total, dtype: total, "squared_norm")


def _limit(value: Any, name: str) -> float:
    limit = as_float(value, name)
    if not 0 < limit < math.inf:
        raise ValueError(f"{name} must be finite and greater than 0; got {limit!r}.")
    return limit


class GradientClip:
    """What the three clips have in common: which gradients they touch."""

    def __call__(self, params_grads: Pairs) -> list[tuple[Any, Any]]:
        """Give the same pairs with clipped gradients."""
        pairs = list(params_grads)
        chosen = [
            i for i, (p, g) in enumerate(pairs) if g is not None and getattr(p, "need_clip", True)
        ]
        clipped = self.clip([raw(pairs[i][1]) for i in chosen])
        for i, g in zip(chosen, clipped, strict=True):
            pairs[i] = (pairs[i][0], Tensor(g) if isinstance(pairs[i][1], Tensor) else g)
        return pairs

    def common_factor(self, params_grads: Pairs) -> Any:
        """Give the one number that all these gradients are to be multiplied with.

        None where there is none: the gradients have to be given to the clip then.
        """
        return None

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Give new arrays for the gradients of one group."""
        raise NotImplementedError(f"{type(self).__name__} has no clip(gradients) method.")


class ClipGradByValue(GradientClip):
    """Limit every element to the interval from `min` to `max`.

    Parameters
    ----------
    max : float
    min : float, optional
        By default ``-max``.

    Examples
    --------
    >>> import numpy as np
    >>> clip = ClipGradByValue(1.0)
    >>> clip([(None, np.array([-3.0, 0.5]))])[0][1]
    array([-1. ,  0.5])
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = as_float(max, "max")
        self.min = -self.max if min is None else as_float(min, "min")
        if not self.min <= self.max:
            raise ValueError(f"min must not exceed max; got min={self.min!r} and max={self.max!r}.")

    def __repr__(self) -> str:
        below = "" if self.min == -self.max else f", {self.min}"
        return f"ClipGradByValue({self.max}{below})"

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Limit each element."""
        return [np.clip(g, self.min, self.max) for g in gradients]


class _NormClip(GradientClip):
    """Scale gradients down to a norm."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = _limit(clip_norm, "clip_norm")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.clip_norm})"

    def _factor(self, norm: Any) -> Any:
        """Give c / max(norm, c); it stays where the norm is."""
        if type(norm) is float:
            return self.clip_norm / max(norm, self.clip_norm)
        return self.clip_norm / np.maximum(norm, self.clip_norm)


def scaled(g: Any, factor: Any) -> Any:
    """Give a gradient times a factor, in the gradient's dtype."""
    return g * (factor if type(factor) is float else factor.astype(g.dtype))


class ClipGradByNorm(_NormClip):
    r"""Scale each gradient whose norm exceeds `clip_norm` down to it: g c / max(norm(g), c).

    Examples
    --------
    >>> import numpy as np
    >>> clip = ClipGradByNorm(1.0)
    >>> clip([(None, np.array([3.0, 4.0]))])[0][1]
    array([0.6, 0.8])
    """

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Scale each gradient by itself."""
        return [scaled(g, self._factor(np.sqrt(_squared_norm(g)))) for g in gradients]


class ClipGradByGlobalNorm(_NormClip):
    r"""Scale all gradients of a group together: g c / max(N, c), N the norm of them all.

    Source: Pascanu, Mikolov and Bengio 2013.

    Examples
    --------
    >>> import numpy as np
    >>> clip = ClipGradByGlobalNorm(1.0)
    >>> pairs = clip([(None, np.array([3.0])), (None, np.array([4.0]))])
    >>> [g for _, g in pairs]
    [array([0.6]), array([0.8])]
    """

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Scale all gradients by one factor."""
        factor = self._factor(self._norm(gradients))
        return [scaled(g, factor) for g in gradients]

    def common_factor(self, params_grads: Pairs) -> Any:
        """Give the factor of all, where none is left out."""
        if any(g is not None and not getattr(p, "need_clip", True) for p, g in params_grads):
            return None
        gradients = [g for _, g in params_grads if g is not None]
        return self._factor(self._norm(gradients)) if gradients else None

    @staticmethod
    def _norm(gradients: list[Any]) -> Any:
        squares = [_squared_norm(g) for g in gradients]
        if len({place_of(g) for g in gradients}) > 1:  # numbers of several devices meet on the host
            return math.sqrt(sum(map(float, squares)))
        return np.sqrt(sum(squares))
