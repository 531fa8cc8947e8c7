"""Smooth activations as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layers.shown import Shown


class GELU(Shown):
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

    def __init__(self, approximate: bool = False, name: str | None = None) -> None:
        super().__init__(name, approximate=approximate)

    def forward(self, x: Any) -> Tensor:
        """Give x times the share of the standard normal distribution below x."""
        return functional.gelu(x, self.approximate)


class GLU(Shown):
    """Give the first half of x, times the sigmoid of the second half.

    Parameters
    ----------
    axis : int
        Which axis is halved.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.glu : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.GLU()(ol.to_tensor([2.0, 4.0, 0.0, 1000.0]))
    Tensor([1., 4.], dtype=float32)
    """

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, axis=axis)

    def forward(self, x: Any) -> Tensor:
        """Give the first half of x, times the sigmoid of the second half."""
        return functional.glu(x, self.axis)


class LogSigmoid(Shown):
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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give the logarithm of the sigmoid."""
        return functional.log_sigmoid(x)


class LogSoftmax(Shown):
    """Give the logarithms of softmax.

    Parameters
    ----------
    axis : int
        Along which the probabilities add up to 1.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.log_softmax : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LogSoftmax()(ol.to_tensor([0.0, 1000.0]))
    Tensor([-1000.,     0.], dtype=float32)
    """

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, axis=axis)

    def forward(self, x: Any) -> Tensor:
        """Give the logarithms of softmax."""
        return functional.log_softmax(x, self.axis)


class Maxout(Shown):
    """Give the largest of every group of neighbouring channels.

    Parameters
    ----------
    groups : int
        How many neighbouring channels make a group.
    axis : int
        Which axis holds the channels.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.maxout : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Maxout(2)(ol.to_tensor([[1.0, 5.0, 2.0, 0.0]]))
    Tensor([[5., 2.]], dtype=float32)
    """

    def __init__(self, groups: int, axis: int = 1, name: str | None = None) -> None:
        super().__init__(name, groups=groups, axis=axis)

    def forward(self, x: Any) -> Tensor:
        """Give the largest of every group of neighbouring channels."""
        return functional.maxout(x, self.groups, self.axis)


class Mish(Shown):
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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give x tanh(log(1 + e^x))."""
        return functional.mish(x)


class Sigmoid(Shown):
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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give 1 / (1 + e^-x)."""
        return functional.sigmoid(x)


class Silu(Shown):
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

    def __init__(self, inplace: bool = False, name: str | None = None) -> None:
        super().__init__(name, inplace=inplace)

    def forward(self, x: Any) -> Tensor:
        """Give x / (1 + e^-x), also called swish."""
        return functional.silu(x, self.inplace)


class Softmax(Shown):
    """Give exp(x) / sum(exp(x)).

    Parameters
    ----------
    axis : int
        Along which the probabilities add up to 1.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.softmax : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softmax()(ol.to_tensor([0.0, 0.0]))
    Tensor([0.5, 0.5], dtype=float32)
    """

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, axis=axis)

    def forward(self, x: Any) -> Tensor:
        """Give exp(x) / sum(exp(x))."""
        return functional.softmax(x, self.axis)


class Softplus(Shown):
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

    def __init__(self, beta: float = 1, threshold: float = 20, name: str | None = None) -> None:
        super().__init__(name, beta=beta, threshold=threshold)

    def forward(self, x: Any) -> Tensor:
        """Give log(1 + e^(beta x)) / beta."""
        return functional.softplus(x, self.beta, self.threshold)


class Softsign(Shown):
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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give x / (1 + |x|)."""
        return functional.softsign(x)


class Swish(Shown):
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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give x / (1 + e^-x), also called SiLU."""
        return functional.swish(x)


class Tanh(Shown):
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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give the hyperbolic tangent."""
        return functional.tanh(x)


class Softmax2D(Shown):
    """Give softmax over the channels of pictures, of shape [N, C, H, W] or [C, H, W].

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softmax2D()(ol.zeros([1, 2, 1, 1])).tolist()
    [[[[0.5]], [[0.5]]]]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give softmax over the channels."""
        if len(x.shape) not in (3, 4):
            raise ValueError(
                f"Softmax2D takes x of shape [N, C, H, W] or [C, H, W]; got {x.shape}."
            )
        return functional.softmax(x, -3)
