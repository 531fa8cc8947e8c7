"""Initializers whose distribution does not depend on the shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.backend.dtypes import dtype_named
from optlab.backend.random import next_key


class Initializer:
    """Base class of initializers, which are called with a shape and a dtype."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> np.ndarray:
        """Return an initial array of this shape and dtype."""
        return np.asarray(self.draw(tuple(shape)), dtype=dtype_named(dtype))

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the values in float64. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no draw(shape) method.")


class Constant(Initializer):
    """The same value in every element.

    Examples
    --------
    >>> Constant(2.0)((2,))
    array([2., 2.], dtype=float32)
    """

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the constant everywhere."""
        return np.full(shape, self.value)


class Assign(Initializer):
    """The values of a given array.

    Examples
    --------
    >>> Assign([1.0, 2.0])((2,))
    array([1., 2.], dtype=float32)
    """

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the array; its shape must be equal."""
        if self.value.shape != shape:
            raise ValueError(
                f"an array of shape {self.value.shape} cannot start a parameter of {shape}."
            )
        return self.value


class Uniform(Initializer):
    """Uniform distribution on [low, high).

    Examples
    --------
    >>> bool(abs(Uniform(-0.5, 0.5)((100,))).max() <= 0.5)
    True
    """

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low, self.high = low, high

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the values with the next random key."""
        return next_key().generator().uniform(self.low, self.high, shape)


class Normal(Initializer):
    """Normal distribution with the given mean and standard deviation.

    Examples
    --------
    >>> Normal(5.0, 0.0)((2,))
    array([5., 5.], dtype=float32)
    """

    def __init__(self, mean: float = 0.0, std: float = 1.0) -> None:
        self.mean, self.std = mean, std

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the values with the next random key."""
        return next_key().generator().normal(self.mean, self.std, shape)


class TruncatedNormal(Initializer):
    """Normal distribution truncated to [a, b].

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
        """Draw the values with the next random key."""
        numbers = next_key().generator()
        low, high = (self.a - self.mean) / self.std, (self.b - self.mean) / self.std
        inside = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
        nearest = min(max(low, 0.0), high)  # the mode
        if (
            inside <= 0.25
        ):  # so far out, or so narrow, that uniform proposals are accepted more often
            reach = 40 / max(abs(nearest), 1.0)  # beyond it the density is e^-40 of the largest
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
