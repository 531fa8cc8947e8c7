"""Smooth activations as layers."""

from __future__ import annotations

from optlab.nn import functional
from optlab.nn.layers.applied import Applied


class GELU(Applied, function=functional.gelu):
    """Give x times the share of the standard normal distribution below x.

    Parameters
    ----------
    approximate : bool
        Use the formula with tanh, which differs by 0.0005 at most.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.gelu : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.GELU()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    approximate: bool = False
    name: str | None = None


class LogSigmoid(Applied, function=functional.log_sigmoid):
    """Give the logarithm of the sigmoid.

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.log_sigmoid : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LogSigmoid()(ol.to_tensor([1000.0, -1000.0]))
    Tensor([    0., -1000.], dtype=float32)
    """

    name: str | None = None


class Mish(Applied, function=functional.mish):
    """Give x tanh(log(1 + e^x)).

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.mish : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Mish()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    name: str | None = None


class Sigmoid(Applied, function=functional.sigmoid):
    """Give 1 / (1 + e^-x).

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.sigmoid : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Sigmoid()(ol.to_tensor([0.0, 1000.0]))
    Tensor([0.5, 1. ], dtype=float32)
    """

    name: str | None = None


class Silu(Applied, function=functional.silu):
    """Give x / (1 + e^-x), also called swish.

    Parameters
    ----------
    inplace : bool
        True is refused: the rule reads the input.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.silu : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Silu()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    inplace: bool = False
    name: str | None = None


class Softplus(Applied, function=functional.softplus):
    """Give log(1 + e^(beta x)) / beta: a smooth max(x, 0).

    Parameters
    ----------
    beta : float
        How sharply it bends at 0; greater than 0.
    threshold : float
        Where beta * x is greater, x itself is given.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.softplus : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softplus()(ol.to_tensor([-1000.0, 1000.0]))
    Tensor([   0., 1000.], dtype=float32)
    """

    beta: float = 1
    threshold: float = 20
    name: str | None = None


class Softsign(Applied, function=functional.softsign):
    """Give x / (1 + |x|).

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.softsign : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softsign()(ol.to_tensor([-1.0, 3.0]))
    Tensor([-0.5 ,  0.75], dtype=float32)
    """

    name: str | None = None


class Swish(Applied, function=functional.swish):
    """Give x / (1 + e^-x), also called SiLU.

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.swish : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Swish()(ol.to_tensor([0.0, 100.0]))
    Tensor([  0., 100.], dtype=float32)
    """

    name: str | None = None


class Tanh(Applied, function=functional.tanh):
    """Give the hyperbolic tangent.

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.tanh : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Tanh()(ol.to_tensor([0.0]))
    Tensor([0.], dtype=float32)
    """

    name: str | None = None
