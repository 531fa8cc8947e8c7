"""ASGD: the stochastic average gradient method, which stores a gradient per batch."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from optlab.optimizer.optimizer import Optimizer


class ASGD(Optimizer):
    r"""Stochastic average gradient: steps against the mean of the last gradients of all batches.

    .. math::
        i &= (t - 1) \bmod n \\
        d &\leftarrow d - y_i + g, \qquad y_i \leftarrow g \\
        p &\leftarrow p - \eta \left( \frac{d}{\min(t, n)} + \lambda p \right)

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    batch_num : int
        Number n of batches in an epoch, which must recur in the same order. Memory grows with it:
        one slot per batch.
    parameters : sequence of Tensor or of dict, optional
        As of every `Optimizer`.
    weight_decay : float, L1Decay or L2Decay, optional
        The decay :math:`\lambda`, or that of the penalty. It is not part of the stored gradients.
    grad_clip, multi_precision, name, not_finite
        As of every `Optimizer`.

    Notes
    -----
    Source: Schmidt, Le Roux and Bach 2017, "Minimizing finite sums with the stochastic average
    gradient", arXiv 1309.2388, algorithm 1. With n = 1 it is `SGD`. PyTorch's
    rule of this name differs: it is the averaged SGD of Polyak and Juditsky; for averages of
    weights see `ModelAverage`. Paddle stores gradients with the decay; here it stands beside their
    mean, as its documentation prints it.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.optimizer.ASGD(0.25, batch_num=2, parameters=[w])
    >>> for slope in (1.0, 0.0, 1.0):
    ...     (slope * w).sum().backward()
    ...     optimizer.step()
    ...     optimizer.clear_grad()
    >>> w.numpy()
    array([0.5], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {"learning_rate": 0.001, "batch_num": 1}
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"batch_num": (1, math.inf)}
    slots: ClassVar[dict[str, float]] = {"d": 0.0}
    separate_decay: ClassVar[bool] = True
    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate", "batch_num", "parameters", "weight_decay", "grad_clip", "multi_precision",
        "name",
    )  # fmt: skip

    def slots_for(self, h: Any) -> dict[str, float]:
        """Return the sum, and one slot for the last gradient of each batch."""
        return {**self.slots, **{f"y{i}": 0.0 for i in range(h.batch_num)}}

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return the current batch, and the rate divided by the number of batches seen."""
        return {
            "index": (t - 1) % h.batch_num,
            "rate": h.learning_rate / min(t, h.batch_num),
        }

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Replace the previous gradient of the same batch, and step against the mean."""
        name = f"y{c.index}"
        d = s.d - getattr(s, name) + g
        step = c.rate * d
        if c.decay is not None:
            step = step + h.learning_rate * c.decay
        slots = {**vars(s), "d": d, name: g}
        return p - step, slots, {"update": -step}
