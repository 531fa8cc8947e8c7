"""Gradient clipping, by value, by norm and by global norm.

A clip is called with a list of (parameter, gradient) pairs and returns such a list. Parameters with
``need_clip=False`` are left out. Gradients are never changed in place; one within the limit is
returned itself, not copied.
"""

from __future__ import annotations

import functools
import math
import operator
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import unwrapped
from optlab.backend.device import device_of
from optlab.backend.ensemble import EnsembleArray
from optlab.plan.reductions import Reduction, sum_of_squares

Pairs = Sequence[tuple[Any, Any]]

#: From this size on, a copy takes longer than checking whether one is needed.
_LARGE = 8192

#: The sum of squares of an array, in float64: squares of float32 cannot overflow.
_squared_norm = Reduction(sum_of_squares, lambda total, dtype: total, "squared_norm")


#: What to write for bounds that are differentiated.
_CUT = "np.clip(g, low, high), with g a gradient"


def _limit(value: Any, name: str) -> float:
    limit = as_setting(value, name, f"g * np.minimum(1, {name} / norm), with g a gradient")
    if not 0 < limit < math.inf:
        raise ValueError(f"{name} must be finite and greater than 0; got {limit!r}.")
    return limit


def checked_pairs(params_grads: Any, who: str) -> list[tuple[Any, Any]]:
    """Return pairs as a list of tuples; raise if they are none."""
    what = f"{who} takes a list of (parameter, gradient) pairs, as optimizer.backward(loss) gives"
    if isinstance(params_grads, (Tensor, str)) or not isinstance(params_grads, Iterable):
        raise TypeError(f"{what}; got {reprlib.repr(params_grads)}.")
    pairs = list(params_grads)
    for number, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            hint = " Write [(p, p.grad) for p in parameters]." * isinstance(pair, Tensor)
            raise TypeError(f"{what}; entry {number} is {reprlib.repr(pair)}.{hint}")
        g = pair[1]
        if g is not None and not hasattr(g, "dtype"):
            raise TypeError(
                f"{what}; the gradient of entry {number} is {reprlib.repr(g)}, of type "
                f"{type(g).__name__}. Give an array or a Tensor."
            )
    return [(p, g) for p, g in pairs]


def _operand(g: Any) -> Any:
    """Return the array of a gradient; a Tensor that is itself differentiated stays one."""
    return g if getattr(g, "node", None) is not None else raw(g)


class GradientClip:
    """Base class of gradient clips, which selects the gradients to clip."""

    def __call__(self, params_grads: Pairs) -> list[tuple[Any, Any]]:
        """Return the pairs that have a gradient, clipped, in their order.

        Parameters
        ----------
        params_grads : sequence of (parameter, gradient)
            Gradients are arrays or Tensors. A pair with None is left out, as
            ``optimizer.backward(loss)`` does.

        Raises
        ------
        TypeError
            If an entry is no such pair.
        """
        pairs = [
            pair for pair in checked_pairs(params_grads, type(self).__name__) if pair[1] is not None
        ]
        chosen = [i for i, (p, _) in enumerate(pairs) if getattr(p, "need_clip", True)]
        given = [_operand(pairs[i][1]) for i in chosen]
        clipped = self.clip(given)
        for i, before, g in zip(chosen, given, clipped, strict=True):
            p, was = pairs[i]
            if g is not before:
                pairs[i] = (p, Tensor(g) if isinstance(was, Tensor) and g is raw(g) else g)
        return pairs

    def common_factor(self, params_grads: Pairs) -> Any:
        """Return the one number that multiplies all of these gradients.

        None if there is none: the gradients must be passed to the clip then.
        """
        return None

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Return the gradients of one group clipped: new arrays, or the same if unchanged."""
        raise NotImplementedError(f"{type(self).__name__} has no clip(gradients) method.")


class ClipGradByValue(GradientClip):
    """Clip every element to the interval from `min` to `max`.

    Parameters
    ----------
    max : float
        Upper bound.
    min : float, optional
        Lower bound; by default ``-max``.

    Examples
    --------
    >>> import numpy as np
    >>> clip = ClipGradByValue(1.0)
    >>> clip([(None, np.array([-3.0, 0.5]))])[0][1]
    array([-1. ,  0.5])
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = as_setting(max, "max", _CUT)
        self.min = -self.max if min is None else as_setting(min, "min", _CUT)
        if not self.min <= self.max:
            raise ValueError(f"min must not exceed max; got min={self.min!r} and max={self.max!r}.")

    def __repr__(self) -> str:
        below = "" if self.min == -self.max else f", {self.min}"
        return f"ClipGradByValue({self.max}{below})"

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Clip each element."""
        return [g if self._holds(g) else np.clip(g, self.min, self.max) for g in gradients]

    def _holds(self, g: Any) -> bool:
        """Return whether all elements are in bounds, where checking is cheaper than a copy."""
        if type(g) is not np.ndarray or g.size < _LARGE or not self.min < 0 < self.max:
            return False  # a bound of zero may turn -0.0 into 0.0
        return bool(g.min() >= self.min and g.max() <= self.max)


class _NormClip(GradientClip):
    """Base class of clips that scale gradients down to a norm."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = _limit(clip_norm, "clip_norm")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.clip_norm})"

    def _factor(self, norm: Any) -> Any:
        """Return c / max(norm, c), on the device of the norm."""
        if type(norm) is float:
            return self.clip_norm / max(norm, self.clip_norm)
        return self.clip_norm / np.maximum(norm, self.clip_norm)


def scaled(g: Any, factor: Any) -> Any:
    """Return a gradient times a factor in the gradient's dtype; unchanged if the factor is 1."""
    if type(factor) is not float and g.dtype.kind not in "iub":  # whole numbers become floats
        factor = factor.astype(g.dtype)
    if isinstance(factor, (float, np.generic)) and factor == 1:
        return g
    return g * factor


class ClipGradByNorm(_NormClip):
    r"""Scale each gradient whose norm exceeds `clip_norm` down to it: g c / max(norm(g), c).

    Parameters
    ----------
    clip_norm : float
        Largest norm c.

    Examples
    --------
    >>> import numpy as np
    >>> clip = ClipGradByNorm(1.0)
    >>> clip([(None, np.array([3.0, 4.0]))])[0][1]
    array([0.6, 0.8])
    """

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Scale each gradient by its own factor."""
        return [scaled(g, self._factor(np.sqrt(_squared_norm(g)))) for g in gradients]


class ClipGradByGlobalNorm(_NormClip):
    r"""Scale all gradients of a group by one factor: g c / max(N, c), with their global norm N.

    Parameters
    ----------
    clip_norm : float
        Largest norm c.
    group_name : str
        A label without effect: the gradients clipped together are the list of one call, and an
        optimizer makes one call for each parameter group. (In Paddle's static graphs, which optlab
        does not have, clips of one name share a norm.)
    auto_skip_clip : bool
        Skip the multiplication where the norm is within the limit, with bitwise the same result.
        On the CPU it is skipped in either case; on a GPU this synchronizes at every step.

    Notes
    -----
    Source: Pascanu, Mikolov and Bengio 2013, arXiv 1211.5063.

    Examples
    --------
    >>> import numpy as np
    >>> clip = ClipGradByGlobalNorm(1.0)
    >>> pairs = clip([(None, np.array([3.0])), (None, np.array([4.0]))])
    >>> [g for _, g in pairs]
    [array([0.6]), array([0.8])]
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        super().__init__(clip_norm)
        if not isinstance(group_name, str):
            raise TypeError(f"group_name must be text; got {reprlib.repr(group_name)}.")
        if not isinstance(auto_skip_clip, (bool, np.bool_)):
            raise TypeError(f"auto_skip_clip must be True or False; got {auto_skip_clip!r}.")
        self.group_name = group_name
        self.auto_skip_clip = bool(auto_skip_clip)

    def __repr__(self) -> str:
        named = f", {self.group_name!r}" if self.group_name != "default_group" else ""
        skips = ", auto_skip_clip=True" if self.auto_skip_clip else ""
        return f"ClipGradByGlobalNorm({self.clip_norm}{named}{skips})"

    def clip(self, gradients: list[Any]) -> list[Any]:
        """Scale all gradients by one factor."""
        if not gradients:
            return []
        factor = self._factor(self._norm(gradients))
        if self.skips(factor):
            return gradients
        return [scaled(g, factor) for g in gradients]

    def skips(self, factor: Any) -> bool:
        """Return whether the multiplication by this factor is to be skipped."""
        return self.auto_skip_clip and bool(np.all(unwrapped(factor) == 1.0))

    def common_factor(self, params_grads: Pairs) -> Any:
        """Return the factor of all gradients; None if a parameter (`need_clip`) is left out."""
        if any(g is not None and not getattr(p, "need_clip", True) for p, g in params_grads):
            return None
        gradients = [g for _, g in params_grads if g is not None]
        return self._factor(self._norm(gradients)) if gradients else None

    @staticmethod
    def _norm(gradients: list[Any]) -> Any:
        squares = [_squared_norm(g) for g in gradients]
        if all(isinstance(square, float) for square in squares):
            return math.sqrt(sum(sorted(squares)))  # independent of their order
        if any(isinstance(square, Tensor) for square in squares):  # sorted likewise
            ordered = np.sort(np.stack(squares))
            return np.sqrt(
                functools.reduce(operator.add, [ordered[i] for i in range(len(squares))])
            )
        if all(isinstance(getattr(square, "members", None), np.ndarray) for square in squares):
            rows = np.sort(np.stack([square.members for square in squares]), axis=0)
            return np.sqrt(EnsembleArray(functools.reduce(operator.add, rows), squares[0].level))
        if len({device_of(g) for g in gradients}) > 1:  # sums of several devices add up on the host
            return math.sqrt(sum(map(float, squares)))
        return np.sqrt(sum(squares))
