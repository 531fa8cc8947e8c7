"""Initializers whose scale depends on the fans, the numbers of inputs and outputs of a weight."""

from __future__ import annotations

import math

import numpy as np

from optlab.backend.random import next_key
from optlab.nn.docstrings import inherit_docstring
from optlab.nn.initializer.laws import Initializer


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the numbers of inputs and outputs of a weight of this shape."""
    if len(shape) < 2:
        return math.prod(shape), math.prod(shape)
    if len(shape) == 2:
        return shape[0], shape[1]
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor of the weights that keeps the variance through an activation.

    Parameters
    ----------
    nonlinearity : str
        'sigmoid', 'linear', 'conv1d' and the like, 'tanh', 'relu', 'leaky_relu' or 'selu'.
    param : float, optional
        Slope of 'leaky_relu', by default 0.01.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the activation is not known.

    Examples
    --------
    >>> round(calculate_gain("relu"), 4), round(calculate_gain("leaky_relu", 1.0), 4)
    (1.4142, 1.0)
    """
    slope = 0.01 if param is None else float(param)
    gains = {
        "sigmoid": 1.0, "linear": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75,
        "leaky_relu": math.sqrt(2 / (1 + slope**2)),
    }  # fmt: skip
    for n in (1, 2, 3):
        gains |= {f"conv{n}d": 1.0, f"conv{n}d_transpose": 1.0, f"conv_transpose{n}d": 1.0}
    if nonlinearity not in gains:
        raise ValueError(f"calculate_gain knows {', '.join(sorted(gains))}; got {nonlinearity!r}.")
    return gains[nonlinearity]


class _Xavier(Initializer):
    """Base class of Xavier initialization.

    Parameters
    ----------
    fan_in, fan_out : float, optional
        Numbers of inputs and outputs; by default those of the shape.
    gain : float
        Factor g, see `calculate_gain`.
    """

    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, gain: float = 1.0
    ) -> None:
        self.fan_in, self.fan_out, self.gain = fan_in, fan_out, gain

    def deviation(self, shape: tuple[int, ...]) -> float:
        """Return the standard deviation for a weight of this shape."""
        fan_in, fan_out = _fans(shape)
        fan_in = fan_in if self.fan_in is None else self.fan_in  # type: ignore[assignment]
        fan_out = fan_out if self.fan_out is None else self.fan_out  # type: ignore[assignment]
        if not fan_in + fan_out > 0:
            raise ValueError(
                f"{type(self).__name__} needs inputs or outputs: the fans of a weight of shape "
                f"{shape} are {fan_in!r} and {fan_out!r}."
            )
        return self.gain * math.sqrt(2 / (fan_in + fan_out))


@inherit_docstring
class XavierUniform(_Xavier):
    r"""Uniform distribution on :math:`\pm g \sqrt{6 / (in + out)}`.

    It keeps the variance of activations and gradients about equal across layers of tanh.
    Source: Glorot and Bengio 2010.

    Examples
    --------
    >>> bool(abs(XavierUniform()((3, 3))).max() <= 1.0)
    True
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the values with the next random key."""
        bound = math.sqrt(3) * self.deviation(shape)
        return next_key().generator().uniform(-bound, bound, shape)


@inherit_docstring
class XavierNormal(_Xavier):
    r"""Normal distribution with standard deviation :math:`g \sqrt{2 / (in + out)}`.

    Source: Glorot and Bengio 2010.

    Examples
    --------
    >>> XavierNormal()((3, 4)).shape
    (3, 4)
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the values with the next random key."""
        return next_key().generator().normal(0.0, self.deviation(shape), shape)


class _Kaiming(Initializer):
    """Base class of Kaiming initialization.

    Parameters
    ----------
    fan_in : float, optional
        Number of inputs; by default that of the shape.
    negative_slope : float
        Slope of 'leaky_relu'.
    nonlinearity : str
        Activation that follows; its gain is g, see `calculate_gain`.
    mode : {'fan_in', 'fan_out'}
        Whether to keep the variance of activations or of gradients.
    """

    def __init__(
        self, fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu",
        mode: str = "fan_in",
    ) -> None:  # fmt: skip
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(f"mode must be 'fan_in' or 'fan_out'; got {mode!r}.")
        self.gain = calculate_gain(nonlinearity, negative_slope)
        self.fan_in, self.mode = fan_in, mode

    def deviation(self, shape: tuple[int, ...]) -> float:
        """Return the standard deviation for a weight of this shape."""
        fan: float = _fans(shape)[0 if self.mode == "fan_in" else 1]
        if self.mode == "fan_in" and self.fan_in is not None:
            fan = self.fan_in
        return self.gain / math.sqrt(fan)


@inherit_docstring
class KaimingUniform(_Kaiming):
    r"""Uniform distribution on :math:`\pm g \sqrt{3 / in}`, for layers of ReLU.

    Source: He et al. 2015.

    Examples
    --------
    >>> bool(abs(KaimingUniform()((6, 3))).max() <= 1.0)
    True
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the values with the next random key."""
        bound = math.sqrt(3) * self.deviation(shape)
        return next_key().generator().uniform(-bound, bound, shape)


@inherit_docstring
class KaimingNormal(_Kaiming):
    r"""Normal distribution with standard deviation :math:`g / \sqrt{in}`, for layers of ReLU.

    Source: He et al. 2015.

    Examples
    --------
    >>> KaimingNormal()((6, 3)).shape
    (6, 3)
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the values with the next random key."""
        return next_key().generator().normal(0.0, self.deviation(shape), shape)
