"""Networks of linear layers: perceptrons, logistic regression, a network that obeys an equation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optlab.autograd import grad
from optlab.nn import GELU, Embedding, Layer, Linear, ReLU, Sequential, Sigmoid, Tanh
from optlab.nn.initializer import Normal

_ACTIVATIONS: dict[str, Callable[[], Layer]] = {
    "relu": ReLU, "tanh": Tanh, "gelu": GELU, "sigmoid": Sigmoid,
}  # fmt: skip


class MLP(Layer):
    """A multilayer perceptron: linear layers with activations in between.

    Parameters
    ----------
    sizes : sequence of int
        Of the input, of each hidden layer, of the output.
    activation : {"relu", "tanh", "gelu", "sigmoid"} or callable
        A callable makes a layer: ``lambda: ol.nn.LeakyReLU(0.1)``.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, or the activation is unknown.

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.models.MLP([64, 32, 10])
    >>> model(ol.zeros([5, 64])).shape
    (5, 10)
    """

    def __init__(
        self, sizes: Sequence[int], activation: str | Callable[[], Layer] = "relu"
    ) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(
                "MLP takes the sizes of input, hidden layers and output, such as [64, 32, 10]; "
                f"got {sizes!r}."
            )
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise ValueError(
                    f"activation is one of {', '.join(_ACTIVATIONS)}, or a callable that makes a "
                    f"layer; got {activation!r}."
                )
            activation = _ACTIVATIONS[activation]
        layers: list[Layer] = []
        for before, after in itertools.pairwise(sizes[:-1]):
            layers += [Linear(before, after), activation()]
        self.layers = Sequential(*layers, Linear(sizes[-2], sizes[-1]))

    def forward(self, x: Any) -> Any:
        """Return the output of the last linear layer, [batch, sizes[-1]]."""
        return self.layers(x)


class LogisticRegression(Layer):
    r"""A linear classifier: scores whose softmax is the probability of each class.

    .. math:: p(c \mid x) = \mathrm{softmax}(x W + b)_c

    Parameters
    ----------
    features, classes : int

    Notes
    -----
    Weights start at zero, where the loss of all classes is the same; the loss (cross entropy) is
    convex.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.models.LogisticRegression(30, 2)(ol.zeros([4, 30])).shape
    (4, 2)
    """

    def __init__(self, features: int, classes: int = 2) -> None:
        super().__init__()
        self.linear = Linear(features, classes, weight_attr=Normal(0.0, 0.0))

    def forward(self, x: Any) -> Any:
        """Return the scores, [batch, classes]."""
        return self.linear(x)


class MatrixFactorization(Layer):
    r"""A matrix of ratings as a product of two thin ones, with a bias for each row and column.

    .. math:: \hat r_{ij} = \mu + b_i + c_j + u_i \cdot v_j

    Parameters
    ----------
    rows, columns : int
        Users and items.
    rank : int
        The length of each :math:`u_i` and :math:`v_j`.
    mean : float
        :math:`\mu`, the mean of the ratings.
    sparse : bool
        Whether the gradients of the tables are `RowSparse`: of the rows of a batch alone.

    References
    ----------
    Koren, Bell and Volinsky, Matrix factorization techniques for recommender systems, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model = ol.models.MatrixFactorization(100, 50, rank=4)
    >>> model(np.array([[3, 7], [99, 0]])).shape
    (2,)
    """

    def __init__(
        self, rows: int, columns: int, rank: int = 8, mean: float = 0.0, sparse: bool = True
    ) -> None:
        super().__init__()
        start = Normal(0.0, 0.1)
        self.mean = float(mean)
        self.left = Embedding(rows, rank, sparse=sparse, weight_attr=start)
        self.right = Embedding(columns, rank, sparse=sparse, weight_attr=start)
        self.row_bias = Embedding(rows, 1, sparse=sparse, weight_attr=Normal(0.0, 0.0))
        self.column_bias = Embedding(columns, 1, sparse=sparse, weight_attr=Normal(0.0, 0.0))

    def forward(self, pairs: Any) -> Any:
        """Return the ratings of pairs of a row and a column, [batch, 2] of int; [batch]."""
        i, j = pairs[:, 0], pairs[:, 1]
        product = (self.left(i) * self.right(j)).sum(axis=1)
        return self.mean + self.row_bias(i)[:, 0] + self.column_bias(j)[:, 0] + product


class PhysicsInformed(Layer):
    r"""A network u(x) on an interval that is trained to obey a differential equation.

    The boundary values are met exactly, by

    .. math:: u(x) = \ell(x) + (x - a)(b - x)\, n(x)

    with a straight line :math:`\ell` through them and a network n. For :math:`-u'' = f` the loss is
    the mean of :math:`(u''(x) + f(x))^2` over points of the interval, by the engine's own second
    derivatives.

    Parameters
    ----------
    hidden : sequence of int
        Sizes of the hidden layers, with tanh.
    interval : (float, float)
    boundary : (float, float)
        Values of u at both ends.

    References
    ----------
    Raissi, Perdikaris and Karniadakis, Physics-informed neural networks, 2019; Lagaris, Likas and
    Fotiadis, Artificial neural networks for solving ordinary and partial differential equations,
    1998 (boundary values).

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model = ol.models.PhysicsInformed()
    >>> x = np.linspace(-1, 1, 5, dtype="float32")[:, None]
    >>> model(x)[[0, -1], 0].tolist(), model.second_derivative(x).shape
    ([0.0, 0.0], (5, 1))
    """

    def __init__(
        self,
        hidden: Sequence[int] = (32, 32),
        interval: tuple[float, float] = (-1.0, 1.0),
        boundary: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__()
        if not interval[0] < interval[1]:
            raise ValueError(f"interval is (a, b) with a < b; got {interval!r}.")
        self.interval, self.boundary = interval, boundary
        self.network = MLP([1, *hidden, 1], "tanh")

    def forward(self, x: Any) -> Any:
        """Return u at points [batch, 1]."""
        (a, b), (first, last) = self.interval, self.boundary
        line = first + (last - first) / (b - a) * (x - a)
        return line + (x - a) * (b - x) * self.network(x)

    def second_derivative(self, x: Any) -> Any:
        """Return u'' at points [batch, 1], which depends on the weights and can be trained on."""

        def summed(x: Any) -> Any:
            return self(x).sum()  # a point's output depends on that point alone

        def slope(x: Any) -> Any:
            return grad(summed)(x).sum()

        return grad(slope)(x)

    def residual(self, x: Any, f: Callable[[Any], Any]) -> Any:
        """Return u'' + f at points [batch, 1]; zero for a solution of -u'' = f."""
        return self.second_derivative(x) + f(x)


def poisson_source(x: Any) -> Any:
    r"""Return :math:`f(x) = \pi^2 \sin(\pi x)`; the solution of -u'' = f on [-1, 1] is sin(pi x).

    Examples
    --------
    >>> import numpy as np
    >>> float(poisson_source(np.array(0.5)).round(4))
    9.8696
    """
    return np.pi**2 * np.sin(np.pi * x)
