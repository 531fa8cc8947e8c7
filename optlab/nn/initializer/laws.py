"""Initial values that do not depend on the shape of the parameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.backend.dtypes import dtype_named
from optlab.backend.random import next_key


class Initializer:
    """Gives the initial value of a parameter of a given shape."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> np.ndarray:
        """Give an array of `shape`."""
        return np.asarray(self.draw(tuple(shape)), dtype=dtype_named(dtype))

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


class TruncatedNormal(Initializer):
    """Normal, drawn again until it lies from `a` to `b`.

    Raises
    ------
    ValueError
        If `a` is not less than `b`, or `std` is not positive.

    Examples
    --------
    >>> bool(abs(TruncatedNormal(0.0, 1.0, a=-0.5, b=0.5)((100,))).max() <= 0.5)
    True
    """

    def __init__(
        self, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
    ) -> None:
        if not (a < b and std > 0):
            raise ValueError(
                f"TruncatedNormal takes a < b and std > 0; got a={a!r}, b={b!r} and std={std!r}."
            )
        self.mean, self.std, self.a, self.b = mean, std, a, b

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw from the next random key."""
        numbers = next_key().generator()
        low, high = (self.a - self.mean) / self.std, (self.b - self.mean) / self.std
        inside = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
        nearest = min(max(low, 0.0), high)  # where the density is largest
        if inside <= 0.25:  # so far out, or so narrow, that even draws are kept more often
            reach = 40 / max(abs(nearest), 1.0)  # beyond, the density is e^-40 of the largest
            low, high = max(low, nearest - reach), min(high, nearest + reach)
        drawn = np.empty(math.prod(shape))
        missing = np.arange(drawn.size)
        while missing.size:
            if inside > 0.25:
                z = numbers.standard_normal(missing.size)
                good = (z >= low) & (z <= high)
            else:
                z = numbers.uniform(low, high, missing.size)
                good = numbers.random(missing.size) < np.exp((nearest**2 - z * z) / 2)
            drawn[missing] = z
            missing = missing[~good]
        return np.clip(self.mean + self.std * drawn, self.a, self.b).reshape(shape)
