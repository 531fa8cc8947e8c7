"""Muon: momentum with orthogonalized matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.norms import norm

#: Coefficients of x, x^3 and x^5: iterated, they quickly move every singular value close to 1.
QUINTIC = (3.4445, -4.7750, 2.0315)


class Muon(Optimizer):
    r"""Muon: steps along the nearest matrix to the momentum with all singular values near 1.

    .. math::
        v &\leftarrow \mu v + g \\
        o &= \text{orthogonalised}(g + \mu v) \\
        p &\leftarrow p - \eta \left( \sqrt{\max(1, \tfrac{rows}{columns})} \; o
            + \lambda p \right)

    A gradient often has few large singular values; equalizing them strengthens rare directions.
    Orthogonalization uses the Newton-Schulz iteration
    :math:`x \leftarrow a x + b (x x^T) x + c (x x^T)^2 x`, which needs matrix products only and
    moves singular values near 1 (0.7 to 1.2), not to 1.

    A parameter with more than two axes (a kernel) is reshaped to a matrix of its first axis by all
    others. One with fewer (a bias, a scalar) is a matrix of one column, whose orthogonalization is
    the vector divided by its norm: its steps are normalized momentum. The paper uses AdamW for
    biases, embeddings and the last layer; use two optimizers for that.

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    momentum : float
        Decay rate of the velocity, :math:`\mu` in [0, 1].
    use_nesterov : bool
        Nesterov momentum; otherwise v itself is orthogonalized.
    newton_schulz_steps : int
        Number of iterations.
    weight_decay : float
        The decay :math:`\lambda`, a number, decoupled as in `AdamW`.
    epsilon : float
        Added to the norm by which the matrix is divided first.

    Notes
    -----
    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks",
    https://kellerjordan.github.io/posts/muon. With `epsilon` 0 and no decay the path is invariant
    to a positive scaling of all gradients.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.Parameter(np.zeros((2, 2)))
    >>> optimizer = ol.optimizer.Muon(0.1, parameters=[w])
    >>> (w * ol.to_tensor([[100.0, 0.0], [0.0, 1.0]])).sum().backward()
    >>> optimizer.step()
    >>> np.linalg.svd(w.numpy())[1].round(2)  # of the gradient: 100 and 1
    array([0.07, 0.07])
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.02,
        "momentum": 0.95,
        "use_nesterov": True,
        "newton_schulz_steps": 5,
        "weight_decay": 0.0,
        "epsilon": 1e-7,
    }
    slots: ClassVar[dict[str, float]] = {"velocity": 0.0}
    kind: ClassVar[str] = "matrix"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "newton_schulz_steps": (1, math.inf),
        "weight_decay": (0.0, math.inf),
    }

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Add the gradient to the velocity, and step along its orthogonalization."""
        velocity = h.momentum * s.velocity + g
        ahead = g + h.momentum * velocity if h.use_nesterov else velocity
        rows = p.shape[0] if len(p.shape) > 1 else math.prod(p.shape)
        matrix = ahead.reshape(rows, math.prod(p.shape) // max(rows, 1))
        scale = math.sqrt(max(1.0, matrix.shape[0] / max(matrix.shape[1], 1)))
        direction = orthogonalised(matrix, h.newton_schulz_steps, h.epsilon).reshape(p.shape)
        step = h.learning_rate * (scale * direction + h.weight_decay * p)
        return p - step, {"velocity": velocity}, {"direction": direction, "update": -step}


def orthogonalised(matrix: Any, steps: int, epsilon: float = 1e-7) -> Any:
    """Approximate the nearest matrix with singular values of 1, by Newton-Schulz iteration.

    Zeros stay zeros. A single row or column is divided by its norm, which is exact.

    Examples
    --------
    >>> import numpy as np
    >>> x = orthogonalised(np.array([[3.0, 1.0], [0.0, 2.0]]), 5)
    >>> np.all(np.abs(np.linalg.svd(x)[1] - 1) < 0.35)
    np.True_
    """
    rows, columns = matrix.shape
    length = norm(matrix)
    x = matrix / (length + epsilon + (length == 0))
    if min(rows, columns) < 2:
        return x
    a, b, c = QUINTIC
    # The Gram matrix of the short side is the smaller one.
    tall = rows > columns
    if tall:
        x = x.T
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if tall else x
