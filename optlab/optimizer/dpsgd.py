"""DP-SGD: differentially private stochastic gradient descent."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import constants_beside
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rule.norms import norm


class Dpsgd(Optimizer):
    r"""DP-SGD: steps against a clipped gradient with Gaussian noise.

    .. math::
        p \leftarrow p - \eta \left( \frac{g}{\max(1, \lVert g \rVert / C)} + \frac{z}{B} \right),
            \qquad z_i \sim \mathcal{N}(0, \sigma^2)

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    clip : float
        The bound C of the gradient norm of each parameter.
    batch_size : float
        The divisor B of the noise.
    sigma : float
        Standard deviation of the noise, independent for each element.

    Notes
    -----
    Source: Abadi et al. 2016, "Deep learning with differential privacy", arXiv 1607.00133,
    algorithm 1, of which this is the last two lines: there the gradients of single examples are
    clipped, here that of the batch. This alone guarantees no privacy; `optlab.vmap` computes
    gradients of single examples. The noise depends only on the seed, the parameter and the step.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0, 1.0])
    >>> optimizer = ol.optimizer.Dpsgd(0.5, clip=1.0, batch_size=1.0, sigma=0.0, parameters=[w])
    >>> (w * ol.to_tensor([3.0, 4.0])).sum().backward()
    >>> optimizer.step()
    >>> w.numpy()
    array([0.7, 0.6], dtype=float32)
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.001,
        "clip": 0.9,
        "batch_size": 0.999,
        "sigma": 1e-8,
    }
    kind: ClassVar[str] = "tensor"
    draws: ClassVar[bool] = True
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"sigma": (0.0, math.inf)}

    def check(self, h: Any) -> None:
        """Validate that clip and batch size are positive."""
        for name in ("clip", "batch_size"):
            if not getattr(h, name) > 0:
                raise ValueError(f"{name} must be greater than 0; got {getattr(h, name)!r}.")

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Clip the gradient, and add noise."""
        cut = g / np.maximum(norm(g) / h.clip, 1.0)
        if h.sigma == 0 and not isinstance(h.sigma, Tensor):
            step = h.learning_rate * cut
            return p - step, {}, {"update": -step}
        noise = h.sigma / h.batch_size * noise_beside(p, c.key)
        step = h.learning_rate * (cut + noise)
        return p - step, {}, {"noise": noise, "update": -step}


def noise_beside(p: Any, key: Any) -> Any:
    """Draw a standard normal array of the shape, dtype and device of `p`."""
    precision = np.float64 if p.dtype == np.float64 else np.float32
    drawn = np.asarray(key.generator().standard_normal(p.shape, precision))
    return constants_beside(raw(p), drawn.astype(p.dtype, copy=False))
