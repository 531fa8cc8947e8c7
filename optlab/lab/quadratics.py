"""Curvature at a point, and the closed form of gradient descent and momentum on quadratics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.autograd.transforms.jacobian import hessian
from optlab.backend.display import Rendered
from optlab.lab.compare import run_race
from optlab.lab.problems.lookup import find
from optlab.lab.problems.surface import Point, Surface
from optlab.optimizer import SGD, Momentum, Optimizer


@dataclass(frozen=True)
class Curvature:
    """The quadratic around a point of a surface.

    Attributes
    ----------
    point : tuple of float
    value : float
    gradient : array, shape (n,)
    hessian : array, shape (n, n)
    curvatures : array, shape (n,)
        The eigenvalues of the Hessian, lowest first.
    axes : array, shape (n, n)
        Their directions, as columns of length 1.
    """

    point: Point
    value: float
    gradient: np.ndarray
    hessian: np.ndarray
    curvatures: np.ndarray
    axes: np.ndarray

    @property
    def kind(self) -> str:
        """The shape of the quadratic: "bowl", "saddle", "dome" or "flat" along a direction."""
        low, high = float(self.curvatures[0]), float(self.curvatures[-1])
        if low > 0:
            return "bowl"
        if high < 0:
            return "dome"
        return "saddle" if low < 0 < high else "flat"

    @property
    def condition(self) -> float:
        """The largest curvature over the smallest; NaN where one is not above 0."""
        low, high = float(self.curvatures[0]), float(self.curvatures[-1])
        return high / low if low > 0 else math.nan

    @property
    def stability_limit(self) -> float:
        """The rate 2 / curvature, above which gradient descent leaves along the steepest axis."""
        high = float(self.curvatures[-1])
        return 2 / high if high > 0 else math.inf

    def ellipse(self, level: float = 1.0, count: int = 65) -> np.ndarray:
        """Return the line on which the quadratic is `level` above its minimum, around the point.

        Parameters
        ----------
        level : float
        count : int
            The number of points; the last is the first.

        Returns
        -------
        array, shape (count, 2)

        Raises
        ------
        ValueError
            If the quadratic is no bowl of two numbers.
        """
        if self.kind != "bowl" or len(self.point) != 2:
            raise ValueError(
                f"the curvatures {self.curvatures.tolist()} are no ellipse: it takes two above 0."
            )
        turn = np.linspace(0, 2 * math.pi, count)
        circle = np.stack([np.cos(turn), np.sin(turn)])
        lengths = np.sqrt(2 * level / self.curvatures)
        found: np.ndarray = np.array(self.point) + (self.axes @ (lengths[:, None] * circle)).T
        return found


def curvature(problem: Any, point: Any = None) -> Curvature:
    """Return value, slope and curvatures of a surface at a point.

    Parameters
    ----------
    problem : Surface, str or callable
        What `optlab.compare` accepts, except networks.
    point : one or two numbers, optional
        By default the start of the problem.

    Returns
    -------
    Curvature
        With ``.curvatures``, ``.axes``, ``.condition``, ``.kind``, ``.stability_limit`` and
        ``.ellipse()``.

    Raises
    ------
    TypeError
        If the problem is a network.

    Examples
    --------
    >>> import optlab as ol
    >>> at = ol.lab.curvature("valley", (1.0, 1.0))
    >>> at.curvatures, at.condition
    (array([ 1., 36.]), 36.0)
    >>> ol.lab.curvature("monkey_saddle", (0.5, 0.1)).kind
    'saddle'
    """
    surface = _surface(problem, "curvature")
    place = surface.start if point is None else surface.checked_start(point)
    value, gradient = surface.value_and_gradient(place)

    def along(p: Any) -> Any:
        return surface.function(*(p[i] for i in range(surface.dimension)))

    matrix = np.asarray(hessian(along)(np.array(place)), dtype=float)
    matrix = (matrix + matrix.T) / 2
    curvatures, axes = np.linalg.eigh(matrix)
    return Curvature(place, value, gradient, matrix, curvatures, axes)


@dataclass(frozen=True, repr=False)
class ClosedForm(Rendered):
    r"""What gradient descent or momentum does on a quadratic, from its formula.

    Along each axis of the Hessian the distance to the minimum is a sum of two geometric series,
    :math:`a \sigma_1^k + b \sigma_2^k`, of one for gradient descent: :math:`(1 - \eta \lambda)^k`.

    Attributes
    ----------
    problem : Surface
    optimizer : Optimizer
        SGD or Momentum.
    curvatures : array, shape (n,)
    axes : array, shape (n, n)
    minimum : array, shape (n,)
    factors : complex array, shape (n, 2)
        The two factors of each axis, the larger first; of gradient descent the second is 0.
    modes : array, shape (steps + 1, n)
        The distance from the minimum along each axis.
    path : array, shape (steps + 1, n)
    loss : array, shape (steps + 1,)
    """

    problem: Surface
    optimizer: Optimizer
    curvatures: np.ndarray
    axes: np.ndarray
    minimum: np.ndarray
    factors: np.ndarray
    modes: np.ndarray
    path: np.ndarray
    loss: np.ndarray

    drawn_as = "closed_form"

    @property
    def convergence(self) -> np.ndarray:
        """The factor by which each mode shrinks (or grows) a step, in the long run."""
        found: np.ndarray = np.abs(self.factors).max(axis=1)
        return found

    @property
    def kinds(self) -> list[str]:
        """What each mode does: "shrinks", "changes sides", "swings", "stays" or "diverges"."""
        found = []
        for first, size in zip(self.factors[:, 0], self.convergence, strict=True):
            if size > 1 + 1e-12:
                found.append("diverges")
            elif size > 1 - 1e-12:
                found.append("stays")
            elif abs(first.imag) > 1e-12:
                found.append("swings")
            else:
                found.append("changes sides" if first.real < 0 else "shrinks")
        return found

    @property
    def stability_limit(self) -> float:
        """The rate above which it diverges: 2 / curvature, with momentum (2 + 2 mu) / curvature."""
        mu, nesterov = _momentum_of(self.optimizer)
        high = float(self.curvatures[-1])
        return (2 + 2 * mu) / (1 + 2 * mu) / high if nesterov else (2 + 2 * mu) / high

    def computed(self) -> np.ndarray:
        """Return the path that the optimizer computes, step by step, shape (steps + 1, n)."""
        race = run_race(
            self.problem, {"it": self.optimizer}, start=self.path[0], steps=len(self.path) - 1
        )
        found: np.ndarray = race["it"].parameters["point"]
        return found

    def __repr__(self) -> str:
        name, rate = type(self.optimizer).__name__, self.optimizer.settings["learning_rate"]
        modes = ", ".join(
            f"{kind} by {factor:.4g}"
            for kind, factor in zip(self.kinds, self.convergence, strict=True)
        )
        return (
            f"<ClosedForm of {name} at rate {rate:g} on {self.problem.title}: {modes} a step; "
            f"diverges above {self.stability_limit:.4g}>"
        )

    @property
    def difference(self) -> float:
        """The largest distance between the predicted and the computed path."""
        computed = self.computed()
        return float(np.abs(computed - self.path[: len(computed)]).max())


def closed_form(
    problem: Any, optimizer: Optimizer, start: Any = None, steps: int = 100
) -> ClosedForm:
    r"""Predict gradient descent or momentum on a quadratic from the eigenvalues of its Hessian.

    Parameters
    ----------
    problem : Surface, str or callable
        A quadratic; "valley", "quadratic", "booth", "parabola" are.
    optimizer : SGD or Momentum
        A template, with a constant rate.
    start : one or two numbers, optional
    steps : int

    Returns
    -------
    ClosedForm
        With ``.modes``, ``.path``, ``.loss``, ``.factors``, ``.convergence``, ``.kinds``,
        ``.stability_limit``, ``.difference`` from what the optimizer computes, and ``.figure()``,
        which a notebook displays.

    Raises
    ------
    TypeError
        If it is another optimizer, or a network.
    ValueError
        If the problem is no quadratic with one stationary point.

    Notes
    -----
    For a curvature :math:`\lambda`, rate :math:`\eta` and momentum :math:`\mu` the factors are the
    roots of :math:`\sigma^2 - (1 + \mu - \eta \lambda) \sigma + \mu`; with Nesterov's momentum of
    :math:`\sigma^2 - (1 + \mu)(1 - \eta \lambda) \sigma + \mu (1 - \eta \lambda)`. Source: Polyak
    1964; G. Goh, "Why momentum really works" (Distill, 2017).

    Examples
    --------
    >>> import optlab as ol
    >>> predicted = ol.lab.closed_form("valley", ol.optimizer.SGD(0.05), steps=50)
    >>> predicted.convergence.round(3), predicted.kinds
    (array([0.95, 0.8 ]), ['shrinks', 'changes sides'])
    >>> predicted.difference < 1e-12
    True
    >>> round(predicted.stability_limit, 4)  # 2 / 36
    0.0556
    >>> predicted  # doctest: +NORMALIZE_WHITESPACE
    <ClosedForm of SGD at rate 0.05 on Straight valley, curvature 36 : 1:
     shrinks by 0.95, changes sides by 0.8 a step; diverges above 0.05556>
    """
    surface = _surface(problem, "closed_form")
    mu, nesterov = _momentum_of(optimizer)
    rate = float(optimizer.settings["learning_rate"]) * _rescaled(optimizer)
    at = curvature(surface, start)
    minimum = _stationary(surface, at)
    axes, curvatures = at.axes, at.curvatures
    first = axes.T @ (np.array(at.point) - minimum)
    k = np.arange(int(steps) + 1)
    factors, modes = [], []
    for curve, distance in zip(curvatures, first, strict=True):
        shrink = 1 - rate * curve
        trace = (1 + mu) * shrink if nesterov else 1 + mu - rate * curve
        product = mu * shrink if nesterov else mu
        roots = np.array([trace, 0.0], complex) if not mu else _roots(trace, product)
        second = distance * (shrink - mu * rate * curve if nesterov else shrink)
        factors.append(roots)
        modes.append(_series(roots, distance, second, k))
    found = np.stack(modes, axis=1)
    path = minimum + found @ axes.T
    floor = float(surface.values(*minimum[:, None])[0])
    loss = floor + 0.5 * (found**2) @ curvatures
    return ClosedForm(
        surface, optimizer, curvatures, axes, minimum, np.array(factors), found, path, loss
    )


def _roots(trace: float, product: float) -> np.ndarray:
    """Return the roots of x^2 - trace x + product, the larger first."""
    half = complex(trace / 2)
    root = np.sqrt(half * half - product)
    first = half + root if half.real >= 0 else half - root
    return np.array([first, product / first if first else 0.0])


def _series(roots: np.ndarray, zeroth: float, first: float, k: np.ndarray) -> np.ndarray:
    """Return a s^k + b t^k with the given first two values; (a + b k) s^k for a double root."""
    s, t = roots
    with np.errstate(all="ignore"):
        if abs(s - t) < 1e-7 * max(1.0, abs(s)):
            s = (s + t) / 2
            slope = first / s - zeroth if s else 0.0
            return np.real((zeroth + slope * k) * s**k)
        b = (first - s * zeroth) / (t - s)
        return np.real((zeroth - b) * s**k + b * t**k)


def _surface(problem: Any, what: str) -> Surface:
    found = find(problem)
    if not isinstance(found, Surface):
        raise TypeError(f"{what} is of surfaces; {found.title} is a network.")
    return found


def _momentum_of(optimizer: Any) -> tuple[float, bool]:
    """Return momentum, and whether it is Nesterov's; raise for other optimizers."""
    if type(optimizer) is SGD or type(optimizer) is Momentum:
        if optimizer.schedule is None and optimizer.decay_and_clip == (None, None):
            settings = optimizer.settings
            return float(settings.get("momentum", 0.0)), bool(settings.get("use_nesterov", False))
        raise TypeError("closed_form takes a constant rate, without weight_decay and grad_clip.")
    raise TypeError(
        "closed_form takes SGD or Momentum, made without parameters, such as "
        f"ol.optimizer.SGD(0.1); got {optimizer!r}."
    )


def _rescaled(optimizer: Optimizer) -> float:
    return float(optimizer.settings.get("rescale_grad", 1.0))


def _stationary(surface: Surface, at: Curvature) -> np.ndarray:
    """Return the stationary point of a quadratic; raise if the surface is none."""
    spread = np.abs(at.curvatures).max()
    refusal = ValueError(
        f"{surface.title} is no quadratic with one stationary point; closed_form needs one, such "
        'as ol.problems.quadratic(50.0) or "x**2 + 10*y**2". Around a point of another surface, '
        "ol.lab.curvature says what the quadratic there is."
    )
    if not np.isfinite(at.hessian).all() or not np.abs(at.curvatures).min() > 1e-12 * spread:
        raise refusal
    minimum: np.ndarray = np.array(at.point) - np.linalg.solve(at.hessian, at.gradient)
    scale = np.abs(minimum).max() + np.abs(np.array(at.point)).max() + 1.0
    for moved in (minimum, minimum + 0.7 * scale, minimum - np.arange(1, len(minimum) + 1) * scale):
        here = curvature(surface, moved)
        expected = at.hessian @ (moved - minimum)
        same = np.allclose(here.hessian, at.hessian, rtol=1e-9, atol=1e-9 * spread)
        if not (
            same and np.allclose(here.gradient, expected, rtol=1e-9, atol=1e-9 * spread * scale)
        ):
            raise refusal
    return minimum
