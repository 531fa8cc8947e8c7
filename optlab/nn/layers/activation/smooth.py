"""Smooth activation layers."""

from __future__ import annotations

from optlab.nn import functional
from optlab.nn.layers.configured import Unary


class GELU(Unary, function=functional.gelu):
    """Apply the Gaussian error linear unit: x times the standard normal CDF of x.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.GELU()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    approximate: bool = False
    name: str | None = None


class LogSigmoid(Unary, function=functional.log_sigmoid):
    """Apply the log-sigmoid.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LogSigmoid()(ol.to_tensor([1000.0, -1000.0]))
    Tensor([    0., -1000.], dtype=float32)
    """

    name: str | None = None


class Mish(Unary, function=functional.mish):
    """Apply Mish: x tanh(log(1 + e^x)).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Mish()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    name: str | None = None


class Sigmoid(Unary, function=functional.sigmoid):
    """Apply the logistic sigmoid: 1 / (1 + e^-x).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Sigmoid()(ol.to_tensor([0.0, 1000.0]))
    Tensor([0.5, 1. ], dtype=float32)
    """

    name: str | None = None


class Silu(Unary, function=functional.silu):
    """Apply the sigmoid linear unit (SiLU, also swish): x / (1 + e^-x).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Silu()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    inplace: bool = False
    name: str | None = None


class Softplus(Unary, function=functional.softplus):
    """Apply softplus, a smooth max(x, 0): log(1 + e^(beta x)) / beta.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softplus()(ol.to_tensor([-1000.0, 1000.0]))
    Tensor([   0., 1000.], dtype=float32)
    """

    beta: float = 1
    threshold: float = 20
    name: str | None = None


class Softsign(Unary, function=functional.softsign):
    """Apply softsign: ``x / (1 + |x|)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softsign()(ol.to_tensor([-1.0, 3.0]))
    Tensor([-0.5 ,  0.75], dtype=float32)
    """

    name: str | None = None


class Swish(Unary, function=functional.swish):
    """Apply swish, another name of `Silu`: x / (1 + e^-x).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Swish()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    name: str | None = None


class Tanh(Unary, function=functional.tanh):
    """Apply the hyperbolic tangent.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Tanh()(ol.to_tensor([0.0]))
    Tensor([0.], dtype=float32)
    """

    name: str | None = None
