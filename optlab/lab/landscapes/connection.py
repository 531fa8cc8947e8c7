"""Between two solutions: the straight line, and a curve along which the loss stays low."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import enable_grad
from optlab.backend.display import Rendered
from optlab.backend.random import Key
from optlab.lab.landscapes.evaluation import Evaluator, Loss, Plane, as_number
from optlab.lab.landscapes.weights import (
    Weights,
    check_model,
    checked_weights,
    difference,
    inner,
    lent,
)
from optlab.lab.progress import ProgressBar
from optlab.nn import Layer, Parameter
from optlab.optimizer import Momentum, Optimizer


class Connection(Rendered):
    r"""The loss on the way from one set of weights to another.

    Attributes
    ----------
    t : array, shape (size,)
        From 0 (`start`) to 1 (`end`).
    line : array, shape (size,)
        The loss on the straight line, at :math:`(1 - t) \theta_0 + t \theta_1`.
    curve : array, shape (size,) or None
        The loss on the trained curve; None if none was trained.
    bend : dict of str to array or None
        The control point :math:`\theta` of the curve.
    start, end : dict of str to array
    training_loss : array
        The loss at the random point of the curve of each training step.
    """

    drawn_as = "connection"

    def __init__(self, start: Weights, end: Weights, t: np.ndarray) -> None:
        self.start, self.end, self.t = start, end, t
        self.line = np.full(t.shape, np.nan)
        self.curve: np.ndarray | None = None
        self.bend: Weights | None = None
        self.training_loss = np.zeros(0)

    @staticmethod
    def _barrier(loss: np.ndarray) -> float:
        return float(np.max(loss) - max(loss[0], loss[-1]))

    @property
    def line_barrier(self) -> float:
        """How far the loss on the line rises above its higher end."""
        return self._barrier(self.line)

    @property
    def curve_barrier(self) -> float:
        """How far the loss on the curve rises above its higher end; NaN without a curve."""
        return np.nan if self.curve is None else self._barrier(self.curve)

    def weights(self, t: float) -> Weights:
        """Return the weights on the curve (on the line, if there is none) at t."""
        if self.bend is None:
            return Plane(self.start, [difference(self.end, self.start)]).point([t])
        return _bezier(self.start, self.bend, self.end, t)

    def __repr__(self) -> str:
        curve = "" if self.curve is None else f", of the curve {self.curve_barrier:.4g}"
        return (
            f"<Connection from {self.line[0]:.4g} to {self.line[-1]:.4g}, barrier of the line "
            f"{self.line_barrier:.4g}{curve}>"
        )


def connect(
    model: Layer,
    loss: Loss,
    start: Any,
    end: Any,
    size: int = 41,
    curve: bool = True,
    steps: int = 300,
    optimizer: Optimizer | None = None,
    seed: int = 0,
    *,
    progress: bool | None = None,
) -> Connection:
    r"""Connect two solutions by the straight line, and by a curve of low loss.

    The curve is a quadratic Bezier curve with one free control point :math:`\theta`,

    .. math:: \phi_\theta(t) = (1 - t)^2 \theta_0 + 2 t (1 - t) \theta + t^2 \theta_1,

    which is trained to have a low loss everywhere, a random t a step:
    :math:`\min_\theta E_{t \sim U(0, 1)} L(\phi_\theta(t))`.

    Parameters
    ----------
    model : Layer
        Its weights are afterwards what they were.
    loss : callable
        Without arguments; evaluates the model on data and returns one number. It may take another
        batch at each call while the curve is trained.
    start, end : dict of str to array, or Layer
        Weights by parameter name, or a model of the same kind that has them.
    size : int
        The number of points along the way.
    curve : bool
        Whether to train a curve; without, only the line is evaluated.
    steps : int
        Of training.
    optimizer : Optimizer, optional
        A template; Momentum with the rate 0.05 by default.
    seed : int
    progress : bool, optional

    Returns
    -------
    Connection

    Raises
    ------
    TypeError, ValueError
        If the weights are not those of the model, are the same, or the loss is not one number.

    References
    ----------
    Garipov, Izmailov, Podoprikhin, Vetrov and Wilson, Loss surfaces, mode connectivity, and fast
    ensembling of DNNs, 2018.

    Examples
    --------
    Two points of a ring of minima, and a way around the hill inside:

    >>> import optlab as ol
    >>> class Hill(ol.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = self.create_parameter([2])
    ...     def forward(self):
    ...         x, y = self.w[0], self.w[1]
    ...         return (x**2 + y**2 - 1) ** 2
    >>> model = Hill()
    >>> way = ol.lab.connect(model, model, {"w": [-1.0, 0.0]}, {"w": [1.0, 0.1]}, steps=200)
    >>> way.line_barrier > 0.9, way.curve_barrier < 0.2
    (True, True)
    """
    check_model(model, "connect")
    size, steps = operator.index(size), operator.index(steps)
    if size < 2 or steps < 1:
        raise ValueError(f"connect needs size >= 2 and steps >= 1; got {size} and {steps}.")
    own = {name: p.numpy() for name, p in model.named_parameters()}
    first, last = (
        {name: np.asarray(known.get(name, w), w.dtype) for name, w in own.items()}
        for known in (checked_weights(start, model, "start"), checked_weights(end, model, "end"))
    )
    between = difference(last, first)
    if inner(between, between) == 0:
        raise ValueError("start and end are the same weights: there is no way between them.")
    found = Connection(first, last, np.linspace(0.0, 1.0, size))
    bar = ProgressBar(2 * size + steps * curve, "Connection", progress)
    try:
        evaluator = Evaluator(model, loss, Plane(first, [between]), seed)
        for rows, values in evaluator.values(found.t[:, None]):
            found.line[rows] = values
            bar.update(int(rows[-1]) + 1)
        if curve:
            template = Momentum(0.05, 0.9) if optimizer is None else optimizer
            found.bend, found.training_loss = _trained(
                model, loss, first, last, template, steps, seed,
                lambda done: bar.update(size + done),
            )  # fmt: skip
            found.curve = _along(model, loss, found, seed)
    finally:
        bar.close()
    return found


def _bezier(start: Weights, bend: Weights, end: Weights, t: float) -> Weights:
    return {
        name: (
            (1 - t) ** 2 * w + 2 * t * (1 - t) * np.asarray(bend[name]) + t**2 * end[name]
        ).astype(w.dtype)
        for name, w in start.items()
    }


def _along(model: Layer, loss: Loss, way: Connection, seed: int) -> np.ndarray:
    """Return the loss along the curve, which lies in the plane of its three control points."""
    assert way.bend is not None
    directions = [difference(way.bend, way.start), difference(way.end, way.start)]
    evaluator = Evaluator(model, loss, Plane(way.start, directions), seed)
    at = np.stack([2 * way.t * (1 - way.t), way.t**2], axis=1)
    found = np.full(len(at), np.nan)
    for rows, values in evaluator.values(at):
        found[rows] = values
    return found


def _trained(
    model: Layer, loss: Loss, start: Weights, end: Weights, template: Optimizer, steps: int,
    seed: int, done: Callable[[int], None],
) -> tuple[Weights, np.ndarray]:  # fmt: skip
    """Return the trained control point, and the losses of the steps."""
    bends = {
        name: Parameter((w.astype(np.float64) + end[name]).astype(w.dtype) / 2, name=name)
        for name, w in start.items()
    }
    bound = template.bind(list(bends.values()))
    draws = Key(seed).fold("curve").generator().random(steps)
    losses = np.full(steps, np.nan)
    with lent(model, seed) as parameters, enable_grad(), np.errstate(all="ignore"):
        for step, t in enumerate(draws):
            now = {name: p.data for name, p in bends.items()}
            for name, value in _bezier(start, now, end, float(t)).items():
                parameters[name].data = value
                parameters[name].grad = None
            value = loss()
            losses[step] = as_number(value)
            if not np.isfinite(losses[step]):
                raise ValueError(
                    f"the loss on the curve was {losses[step]} in step {step} of its training. "
                    f"Give a smaller rate: optimizer=ol.optimizer.Momentum(0.005)."
                )
            value.backward()
            for name, p in bends.items():
                gradient = parameters[name].grad
                p.grad = None if gradient is None else gradient * (2 * float(t) * (1 - float(t)))
            bound.step()
            done(step + 1)
    return {name: p.numpy() for name, p in bends.items()}, losses
