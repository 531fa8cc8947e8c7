"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from optlab.optimizer.optimizer import Optimizer


class SGD(Optimizer):
    r"""Stochastic gradient descent.

    .. math::
        p \leftarrow p - \eta g

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.

    Notes
    -----
    Source: Robbins and Monro 1951, "A stochastic approximation method". On a quadratic of
    curvature :math:`\lambda` it is stable for :math:`\eta < 2 / \lambda`.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([0.7], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {"learning_rate": 0.001}
    by_rows: ClassVar[bool] = True

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Return p - rate g."""
        step = h.learning_rate * g
        return p - step, {}, {"update": -step}
