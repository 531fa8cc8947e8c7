"""Probes of the update: its angle to the gradient, its size, the noise of gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optlab.trace.probes.base import Arrays, Probe, Run, Step, chosen_names, documented


class _OfUpdates(Probe):
    """A probe that computes a number for each parameter from its gradient and its update."""

    fits_plans = True
    shown = ("parameters",)

    def __init__(self, parameters: Sequence[str] | str | None = None, **schedule: Any) -> None:
        super().__init__(**schedule)
        self.parameters = parameters
        self._names: list[str] = []
        self._missing = False

    def start(self, run: Run) -> None:
        """Look up the parameters."""
        self._names = chosen_names(self.parameters, run, type(self).__name__)

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return one number for each parameter."""
        self._missing = not step.updates
        if self._missing:
            return {}
        return {self._quantity: {name: self._compute(step, name) for name in self._names}}

    def left_out(self) -> list[str]:
        """Return that the rule does not name its update, if so."""
        if not self._missing:
            return []
        return [f"{self.label}: the rule has no term named 'update' that could be compared."]

    _quantity = ""

    def _compute(self, step: Step, name: str) -> np.float64:
        raise NotImplementedError


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sum(np.multiply(a, b, dtype=np.float64)))


@documented
class Angle(_OfUpdates):
    r"""The angle between the update and the negative gradient, in degrees.

    .. math:: \angle = \arccos \frac{\langle u, -g \rangle}{\lVert u \rVert \lVert g \rVert}

    It is 0 for gradient descent, and above 90 where the update climbs. NaN where either is 0.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0, 1.0], name="w")
    >>> optimizer = ol.optimizer.Adam(0.1, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.Angle()]) as trace:
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> round(float(trace["angle"]["w"][0]), 1)
    26.6
    """

    _quantity = "angle"

    def _compute(self, step: Step, name: str) -> np.float64:
        update, gradient = step.updates[name], step.gradients[name]
        sizes = math.sqrt(_dot(update, update)) * math.sqrt(_dot(gradient, gradient))
        if not sizes > 0:
            return np.float64(np.nan)
        cosine = min(1.0, max(-1.0, -_dot(update, gradient) / sizes))
        return np.float64(math.degrees(math.acos(cosine)))


@documented
class UpdateRatio(_OfUpdates):
    r"""The norm of the update over the norm of the parameter before it.

    .. math:: r = \lVert u \rVert / \lVert p \rVert

    About 1e-3 is usual in the training of networks. NaN where the parameter is 0.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([4.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.UpdateRatio()]) as trace:
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> float(trace["update ratio"]["w"][0])
    0.5
    """

    _quantity = "update ratio"

    def _compute(self, step: Step, name: str) -> np.float64:
        update = step.updates[name]
        parameter = np.subtract(step.parameters[name], update, dtype=np.float64)
        size = math.sqrt(_dot(parameter, parameter))
        return np.float64(math.sqrt(_dot(update, update)) / size if size > 0 else np.nan)


@documented
class EffectiveRate(_OfUpdates):
    r"""The learning rate with which gradient descent would move as far along the gradient.

    .. math:: \eta = -\langle u, g \rangle / \langle g, g \rangle

    For gradient descent it is the learning rate. NaN where the gradient is 0.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([4.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.EffectiveRate()]) as trace:
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> float(trace["effective rate"]["w"][0])
    0.25
    """

    _quantity = "effective rate"

    def _compute(self, step: Step, name: str) -> np.float64:
        gradient = step.gradients[name]
        square = _dot(gradient, gradient)
        return np.float64(-_dot(step.updates[name], gradient) / square if square > 0 else np.nan)


@documented
class GradientNoise(Probe):
    r"""The noise of the gradient, estimated from those of successive observed steps.

    Exponential averages with weights :math:`w_i` that sum to 1 estimate, for gradients
    :math:`g_i` that scatter around :math:`G` with covariance :math:`\Sigma`,

    .. math::

        m = \sum w_i g_i, \quad s = \sum w_i \lVert g_i \rVert^2, \quad r = \sum w_i^2,

        \operatorname{tr} \Sigma = \frac{s - \lVert m \rVert^2}{1 - r}, \quad
        \lVert G \rVert^2 = s - \operatorname{tr} \Sigma

    without bias. "noise" is :math:`\operatorname{tr} \Sigma`, "signal" is
    :math:`\lVert G \rVert^2`, each summed over the chosen parameters, and "noise scale" their
    quotient, the simple noise scale of McCandlish et al. 2018 in units of the batch size. The first
    observed step has NaN.

    Parameters
    ----------
    decay : float
        The factor between the weights of successive gradients, at least 0 and below 1.
    parameters : str or list of str, optional
        The names of the parameters; all by default. A step without a gradient for one of them is
        left out of the averages.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([4.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.0, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.GradientNoise(decay=0.9)]) as trace:
    ...     for sign in (1.0, -1.0, 1.0):
    ...         optimizer.clear_grad()
    ...         (w * (2.0 + sign)).sum().backward()
    ...         optimizer.step()
    >>> trace["noise"].round(2)
    array([ nan, 2.  , 1.34])
    """

    shown = ("decay", "parameters")

    def __init__(
        self, decay: float = 0.9, parameters: Sequence[str] | str | None = None, **schedule: Any
    ) -> None:
        super().__init__(**schedule)
        if not (isinstance(decay, (int, float)) and 0 <= decay < 1):
            raise ValueError(f"decay must be at least 0 and below 1; got {decay!r}.")
        self.decay, self.parameters = float(decay), parameters
        self._names: list[str] = []
        self._mean: Arrays = {}
        self._square = self._weight = self._squared_weights = 0.0

    def start(self, run: Run) -> None:
        """Look up the parameters, and begin the averages."""
        self._names = chosen_names(self.parameters, run, "GradientNoise")
        self._mean = {}
        self._square = self._weight = self._squared_weights = 0.0

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return noise, signal and noise scale."""
        gradients = {name: np.asarray(step.gradients[name], np.float64) for name in self._names}
        square = sum(_dot(g, g) for g in gradients.values())
        if math.isfinite(square):
            b = self.decay
            for name, g in gradients.items():
                before = self._mean.get(name)
                self._mean[name] = (1 - b) * g if before is None else b * before + (1 - b) * g
            self._square = b * self._square + (1 - b) * square
            self._weight = b * self._weight + (1 - b)
            self._squared_weights = b * b * self._squared_weights + (1 - b) ** 2
        noise = signal = math.nan
        if self._weight and (r := self._squared_weights / self._weight**2) < 1 - 1e-12:
            mean = sum(_dot(m, m) for m in self._mean.values()) / self._weight**2
            average = self._square / self._weight
            noise = (average - mean) / (1 - r)
            signal = average - noise
        scale = noise / signal if signal else math.nan
        return {
            "noise": np.float64(noise),
            "signal": np.float64(signal),
            "noise scale": np.float64(scale),
        }


@documented
class Compression(Probe):
    """What `DGCMomentum` sends and holds back of each parameter: a few numbers a step.

    The quantities, by parameter: "bytes_sent", "entries_sent" (those that are not zero),
    "sent_norm", "residual_norm" (of v, what is held back) and "sparsity". `optlab.viz.dgc` draws
    them. Where other probes record the terms of `DGCMomentum`, this one is there by itself.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> def train(comm):
    ...     w = ol.Parameter(np.zeros(20_000, np.float32), name="w")
    ...     dgc = ol.optimizer.DGCMomentum(0.5, 0.9, 1, sparsity=[0.999], parameters=[w])
    ...     with ol.record(dgc, probes=[ol.probes.Compression()]) as trace:
    ...         for _ in range(3):
    ...             dgc.minimize((w - 1.0).sum())
    ...     return trace["bytes_sent"]["w"].tolist()
    >>> ol.parallel.LocalWorld(2).run(train)[0]
    [80000.0, 160.0, 160.0]
    """

    def __init__(self, **schedule: Any) -> None:
        super().__init__(**schedule)
        self._missing = False

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return the numbers of the exchange, by parameter."""
        self._missing = "sent" not in step.terms
        if self._missing:
            return {}
        found = {
            term: {name: np.float64(x.flat[0]) for name, x in step.terms[term].items()}
            for term in ("bytes_sent", "residual_norm", "sparsity")
        }
        sent = step.terms["sent"]
        found["entries_sent"] = {n: np.float64(np.count_nonzero(x)) for n, x in sent.items()}
        found["sent_norm"] = {n: np.float64(math.sqrt(_dot(x, x))) for n, x in sent.items()}
        return found

    def left_out(self) -> list[str]:
        """Return that the optimizer exchanges nothing, if so."""
        if not self._missing:
            return []
        return [f"{self.label}: the optimizer sends nothing; DGCMomentum does."]
