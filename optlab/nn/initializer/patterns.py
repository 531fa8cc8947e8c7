"""Structured initializers: orthogonal matrices, identity and interpolation kernels."""

from __future__ import annotations

import math

import numpy as np

from optlab.backend.random import next_key
from optlab.nn.initializer.laws import Initializer


class Orthogonal(Initializer):
    """Random matrix with orthogonal rows (or columns, if there are fewer) of norm `gain`.

    Axes after the first are flattened. Source: Saxe, McClelland and Ganguli 2014.

    Examples
    --------
    >>> import numpy as np
    >>> q = Orthogonal()((2, 3), "float64")
    >>> np.allclose(q @ q.T, np.eye(2))
    True
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the values with the next random key."""
        if len(shape) < 2:
            raise ValueError(f"Orthogonal starts weights of two axes or more; got shape {shape}.")
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = next_key().generator().standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)  # uniform over all rotations
        return self.gain * (q if rows >= columns else q.T).reshape(shape)


class Dirac(Initializer):
    """Identity convolution: 1 in the center of the kernel from input i to output i, 0 elsewhere.

    Parameters
    ----------
    groups : int
        Groups of the convolution; each is the identity on its own channels.

    Examples
    --------
    >>> Dirac()((2, 2, 3)).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """

    def __init__(self, groups: int = 1) -> None:
        if groups < 1:
            raise ValueError(f"Dirac takes at least one group; got {groups!r}.")
        self.groups = groups

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the weight, of shape [out, in, ...]."""
        if not 3 <= len(shape) <= 5 or shape[0] % self.groups:
            raise ValueError(
                f"Dirac starts weights of convolutions, [out, in, ...], whose {self.groups} groups "
                f"divide the outputs; got shape {shape}."
            )
        weight = np.zeros(shape)
        outputs = shape[0] // self.groups
        middle = tuple(length // 2 for length in shape[2:])
        for i in range(shape[0]):
            if i % outputs < shape[1]:
                weight[(i, i % outputs, *middle)] = 1.0
        return weight


class Bilinear(Initializer):
    """Transposed convolution that upsamples images by bilinear interpolation.

    For the factor f, the weight has the shape [out, in, k, k] with k = 2 f - f % 2, and the stride
    is f.

    Examples
    --------
    >>> Bilinear()((1, 1, 4, 4))[0, 0, 1].tolist()
    [0.1875, 0.5625, 0.5625, 0.1875]
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the weight."""
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"Bilinear starts weights of shape [out, in, k, k]; got {shape}.")
        factor = (shape[3] + 1) // 2
        center = (2 * factor - 1 - factor % 2) / (2 * factor)
        profile = 1 - np.abs(np.arange(shape[3]) / factor - center)
        return np.broadcast_to(np.outer(profile, profile), shape).copy()
