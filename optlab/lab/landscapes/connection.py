"""Between two solutions: the straight line, and a curve along which the loss stays low."""

from __future__ import annotations

import operator
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import enable_grad
from optlab.backend.display import Rendered
from optlab.backend.random import Bookmark, Key, bookmark, replayed
from optlab.lab.interrupts import stopped_between_steps
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
    execution : str
        How the points on the line and on the curve were evaluated, and why.
    interrupted : bool
        Whether Ctrl-C ended it early; :meth:`resume` goes on.

    See Also
    --------
    connect : makes one.
    """

    drawn_as = "connection"

    def __init__(
        self, model: Layer, loss: Loss, start: Weights, end: Weights, t: np.ndarray, seed: int,
        training: _Training | None,
    ) -> None:  # fmt: skip
        self._model, self._function, self._seed, self._training = model, loss, seed, training
        self.start, self.end, self.t = start, end, t
        self.line = np.full(t.shape, np.nan)
        self.curve: np.ndarray | None = None
        self.bend: Weights | None = None
        self.training_loss = np.zeros(0) if training is None else training.losses
        self.execution = ""
        self.interrupted = False

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

    def resume(self, progress: bool | None = None, executor: Executor | None = None) -> Connection:
        """Evaluate and train what is missing, after Ctrl-C; return this connection.

        The training of the curve goes on from its last whole step, to the bit.
        """
        self._evaluate(executor, progress)
        return self

    def _evaluate(self, executor: Executor | None, progress: bool | None) -> None:
        size, training = len(self.t), self._training
        steps = 0 if training is None else len(training.losses)
        bar = ProgressBar((1 + (training is not None)) * size + steps, "Connection", progress)
        self.interrupted = False
        try:
            straight = Plane(self.start, [difference(self.end, self.start)])
            self._along(straight, self.t[:, None], self.line, executor, lambda n: bar.update(n))
            if training is not None:
                training.run(self._model, self._function, lambda n: bar.update(size + n))
                if self.bend is None:
                    self.bend, self.curve = training.weights(), np.full(size, np.nan)
                # The curve lies in the plane of its three control points.
                bent = Plane(self.start, [difference(w, self.start) for w in (self.bend, self.end)])
                at = np.stack([2 * self.t * (1 - self.t), self.t**2], axis=1)
                assert self.curve is not None
                self._along(bent, at, self.curve, executor, lambda n: bar.update(size + steps + n))
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            bar.close()

    def _along(
        self, plane: Plane, at: np.ndarray, losses: np.ndarray, executor: Executor | None,
        done: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Evaluate the points of a way that are missing."""
        missing = np.flatnonzero(np.isnan(losses))
        evaluator = Evaluator(self._model, self._function, plane, self._seed, executor)
        for rows, values in evaluator.values(at[missing]) if len(missing) else ():
            losses[missing[rows]] = values
            done(int(np.sum(~np.isnan(losses))))
        self.execution = evaluator.execution or self.execution

    def __repr__(self) -> str:
        if self.interrupted:
            return "<Connection, interrupted: .resume() goes on>"
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
    executor: Executor | None = None,
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
    executor : concurrent.futures.Executor, optional
        Evaluates parts of the line and of the curve on copies of the model; the curve is trained
        here, a step after the other.
    progress : bool, optional
        Whether to show a progress bar. By default in notebooks, if it takes long.

    Returns
    -------
    Connection
        After Ctrl-C what there is so far; its ``resume()`` goes on.

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
    training = None
    if curve:
        template = Momentum(0.05, 0.9) if optimizer is None else optimizer
        training = _Training(first, last, template, steps, seed)
    found = Connection(model, loss, first, last, np.linspace(0.0, 1.0, size), seed, training)
    found._evaluate(executor, progress)
    return found


def _bezier(start: Weights, bend: Weights, end: Weights, t: float) -> Weights:
    return {
        name: (
            (1 - t) ** 2 * w + 2 * t * (1 - t) * np.asarray(bend[name]) + t**2 * end[name]
        ).astype(w.dtype)
        for name, w in start.items()
    }


class _Training:
    """The training of the control point of a curve, which may be interrupted.

    Attributes
    ----------
    losses : array
        Of the steps; NaN of those that are missing.
    """

    def __init__(
        self, start: Weights, end: Weights, template: Optimizer, steps: int, seed: int
    ) -> None:
        self.start, self.end, self.seed = start, end, seed
        self.bends = {
            name: Parameter((w.astype(np.float64) + end[name]).astype(w.dtype) / 2, name=name)
            for name, w in start.items()
        }
        self._optimizer = template.bind(list(self.bends.values()))
        self._at = Key(seed).fold("curve").generator().random(steps)
        self.losses = np.full(steps, np.nan)
        self._done = 0
        #: Where the random numbers of the loss go on.
        self._draws: Bookmark | None = None

    def weights(self) -> Weights:
        """Return the control point."""
        return {name: p.numpy() for name, p in self.bends.items()}

    def run(self, model: Layer, loss: Loss, done: Callable[[int], None]) -> None:
        """Take the steps that are missing."""
        if self._done == len(self._at):
            return
        with (
            lent(model, self.seed) as parameters,
            replayed(self._draws or bookmark()),
            enable_grad(),
            np.errstate(all="ignore"),
        ):
            for step in range(self._done, len(self._at)):
                self._step(parameters, loss, step)
                done(step + 1)

    def _step(self, parameters: dict[str, Any], loss: Loss, step: int) -> None:
        t = float(self._at[step])
        now = {name: p.data for name, p in self.bends.items()}
        for name, value in _bezier(self.start, now, self.end, t).items():
            parameters[name].data = value
            parameters[name].grad = None
        self._draws = bookmark()  # of a step that is interrupted, the next one begins here again
        value = loss()
        found = as_number(value)
        if not np.isfinite(found):
            raise ValueError(
                f"the loss on the curve was {found} in step {step} of its training. "
                f"Give a smaller rate: optimizer=ol.optimizer.Momentum(0.005)."
            )
        value.backward()
        for name, p in self.bends.items():
            gradient = parameters[name].grad
            p.grad = None if gradient is None else gradient * (2 * t * (1 - t))
        with stopped_between_steps() as stop:  # a step that is taken is counted
            self._optimizer.step()
            self._done = step + 1
            self.losses[step] = found
            self._draws = bookmark()
        if stop:
            raise KeyboardInterrupt
