"""Initial values of parameters.

An initializer is called with a shape and a dtype and gives an array; the fans are those of a weight
of shape [in, out].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.backend.random import next_key


class Initializer:
    """Gives the initial value of a parameter of a given shape."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> np.ndarray:
        """Give an array of `shape`."""
        return np.asarray(self.draw(tuple(shape)), dtype=dtype)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Give the values in float64. Subclasses say how."""
        raise NotImplementedError(f"{type(self).__name__} has no draw(shape) method.")


class Constant(Initializer):
    """Every element has the same value.

    Examples
    --------
    >>> Constant(2.0)((2,))
    array([2., 2.], dtype=float32)
    """

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Give the constant everywhere."""
        return np.full(shape, self.value)


class Assign(Initializer):
    """A given array.

    Examples
    --------
    >>> Assign([1.0, 2.0])((2,))
    array([1., 2.], dtype=float32)
    """

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Give the array, whose shape must fit."""
        if self.value.shape != shape:
            raise ValueError(
                f"an array of shape {self.value.shape} cannot start a parameter of {shape}."
            )
        return self.value


class Uniform(Initializer):
    """Uniform on [low, high).

    Examples
    --------
    >>> bool(abs(Uniform(-0.5, 0.5)((100,))).max() <= 0.5)
    True
    """

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low, self.high = low, high

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw from the next random key."""
        return next_key().generator().uniform(self.low, self.high, shape)


class Normal(Initializer):
    """Normal with the given mean and standard deviation.

    Examples
    --------
    >>> Normal(5.0, 0.0)((2,))
    array([5., 5.], dtype=float32)
    """

    def __init__(self, mean: float = 0.0, std: float = 1.0) -> None:
        self.mean, self.std = mean, std

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw from the next random key."""
        return next_key().generator().normal(self.mean, self.std, shape)


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Give how many inputs and outputs a weight of shape [in, out] has."""
    return (shape[0], shape[1]) if len(shape) == 2 else (math.prod(shape), math.prod(shape))


class XavierUniform(Initializer):
    r"""Uniform on :math:`\pm\sqrt{6 / (in + out)}`.

    It keeps the variance of activations and gradients about equal across layers of tanh.
    Source: Glorot and Bengio 2010.

    Examples
    --------
    >>> bool(abs(XavierUniform()((3, 3))).max() <= 1.0)
    True
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw from the next random key."""
        bound = math.sqrt(6 / sum(_fans(shape)))
        return next_key().generator().uniform(-bound, bound, shape)


class XavierNormal(Initializer):
    r"""Normal with standard deviation :math:`\sqrt{2 / (in + out)}`.

    Source: Glorot and Bengio 2010.

    Examples
    --------
    >>> XavierNormal()((3, 4)).shape
    (3, 4)
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw from the next random key."""
        return next_key().generator().normal(0.0, math.sqrt(2 / sum(_fans(shape))), shape)


class KaimingUniform(Initializer):
    r"""Uniform on :math:`\pm\sqrt{6 / in}`, made for layers of ReLU. Source: He et al. 2015.

    Examples
    --------
    >>> bool(abs(KaimingUniform()((6, 3))).max() <= 1.0)
    True
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw from the next random key."""
        bound = math.sqrt(6 / _fans(shape)[0])
        return next_key().generator().uniform(-bound, bound, shape)


class KaimingNormal(Initializer):
    r"""Normal with standard deviation :math:`\sqrt{2 / in}`, made for layers of ReLU.

    Source: He et al. 2015.

    Examples
    --------
    >>> KaimingNormal()((6, 3)).shape
    (6, 3)
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw from the next random key."""
        return next_key().generator().normal(0.0, math.sqrt(2 / _fans(shape)[0]), shape)
