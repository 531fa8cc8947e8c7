"""Methods of the textbooks to draw beside optimizers: line searches, conjugate gradient, Newton."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from optlab.optimizer import LBFGS
from optlab.optimizer.quasi_newton.flat_point import read_point, write_point
from optlab.optimizer.quasi_newton.history import History

#: Newton's method computes a Hessian with two gradients for every number.
MOST_NUMBERS = 100


class LineSearchMethod(LBFGS):
    """A method that chooses a direction, and searches along it for a point of the Wolfe conditions.

    The base of the methods below. Every evaluation of a gradient counts: those of the line search,
    and those of Newton's Hessian.
    """

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": 1.0,
        "max_iter": 100,
        "max_eval": None,
        "tolerance_grad": 1e-10,
        "tolerance_change": 1e-15,
        "line_search_fn": "strong_wolfe",
    }
    _wolfe_curvature: ClassVar[float] = 0.1
    #: Whether the first length of a step is good enough without a search.
    _knows_its_length: ClassVar[bool] = False

    def check(self, h: Any) -> None:
        """Raise for an unknown line search, and where there must be one."""
        super().check(h)
        if h.line_search_fn is None and not self._knows_its_length:
            raise ValueError(
                f"{type(self).__name__} needs line_search_fn='strong_wolfe': without a search it "
                "does not know how far to go. Gradient descent with a fixed rate is SGD."
            )

    def _choose_direction(self, known: History, g: Any, start: Any, rate: float) -> float:
        """Choose direction and first length of the next step; return the slope."""
        last = None if known.iterations == 0 else known.dot(known.gradient, known.direction)
        direction = self._direction_from(known, g)
        slope = known.dot(g, direction)
        if not slope < 0:  # no way down: begin again along the gradient
            direction, slope = -g, -known.dot(g, g)
        known.alpha = self._first_length(known, g, slope, last) * rate
        known.direction, known.gradient, known.start = direction, g, start
        known.iterations += 1
        return slope

    def _direction_from(self, known: History, g: Any) -> Any:
        """Return the direction of the next step; `known` holds the last one."""
        raise NotImplementedError

    def _first_length(self, known: History, g: Any, slope: float, last: float | None) -> float:
        """Return the length to try first: the decrease that the last step has brought."""
        if last is None or not slope:
            return min(1.0, 1.0 / (known.total(np.abs(g)) or 1.0))
        return min(1e6, max(1e-12, known.alpha * last / slope))


class SteepestDescent(LineSearchMethod):
    r"""Gradient descent with a line search instead of a rate.

    .. math::
        p \leftarrow p - \alpha g, \qquad
        \alpha : \; f(p - \alpha g) \text{ is nearly lowest along the line}

    Parameters
    ----------
    learning_rate : float
        The first length tried, in units of what the last step suggests.
    max_iter, max_eval, tolerance_grad, tolerance_change
        As of `optlab.optimizer.LBFGS`: limits of one call of `step`.
    line_search_fn : "strong_wolfe"
        There is no other.

    Notes
    -----
    Source: Nocedal and Wright 2006, "Numerical optimization", chapter 3; strong Wolfe conditions
    with c1 = 1e-4 and c2 = 0.1. In a valley it still zigzags: consecutive directions are nearly at
    right angles.

    Examples
    --------
    >>> import optlab as ol
    >>> methods = {"line search": ol.lab.SteepestDescent(), "Newton": ol.lab.Newton()}
    >>> race = ol.compare("quadratic", methods, steps=60)
    >>> race.final_loss["Newton"] < 1e-5 * race.final_loss["line search"]
    True
    """

    def _direction_from(self, known: History, g: Any) -> Any:
        """Return minus the gradient."""
        return -g


class ConjugateGradient(LineSearchMethod):
    r"""Nonlinear conjugate gradient of Polak and Ribiere, restarted where it does not go down.

    .. math::
        d &\leftarrow -g + \max\left(0, \frac{g^T (g - g_{-1})}{g_{-1}^T g_{-1}}\right) d \\
        p &\leftarrow p + \alpha d

    Parameters
    ----------
    learning_rate, max_iter, max_eval, tolerance_grad, tolerance_change, line_search_fn
        As of `SteepestDescent`.

    Notes
    -----
    Source: Nocedal and Wright 2006, "Numerical optimization", section 5.2, PR+ (5.45). On a
    quadratic of n numbers, with exact searches, n steps reach the minimum.

    Examples
    --------
    >>> import optlab as ol
    >>> race = ol.compare("rosenbrock", {"CG": ol.lab.ConjugateGradient()}, steps=100)
    >>> race.final_loss["CG"] < 1e-6
    True
    """

    def _direction_from(self, known: History, g: Any) -> Any:
        """Return the gradient's opposite, made conjugate to the last direction."""
        if known.iterations == 0:
            return -g
        before = known.gradient
        beta = max(0.0, known.dot(g, g - before) / known.dot(before, before))
        return -g + beta * known.direction


class Newton(LineSearchMethod):
    r"""Newton's method: the step to the minimum of the local quadratic.

    .. math::
        p \leftarrow p - \alpha |H|^{-1} g

    Along a direction of negative curvature it goes down, by the absolute value of the curvature,
    where the pure method climbs to the saddle.

    Parameters
    ----------
    learning_rate : float
        The first length tried; 1 is the whole step.
    max_iter, max_eval, tolerance_grad, tolerance_change
        As of `SteepestDescent`.
    line_search_fn : "strong_wolfe" or None
        None takes the whole step.

    Raises
    ------
    ValueError
        If there are more than 100 numbers.

    Notes
    -----
    The Hessian comes from central differences of gradients: 2n evaluations a step for n numbers,
    which the budget of a comparison pays like all others. Source: Nocedal and Wright 2006, chapter
    3; absolute values as in Dauphin et al. 2014, arXiv 1406.2572.

    Examples
    --------
    >>> import optlab as ol
    >>> race = ol.compare("rosenbrock", {"Newton": ol.lab.Newton()}, steps=120)
    >>> race.final_loss["Newton"] < 1e-12
    True
    """

    _wolfe_curvature: ClassVar[float] = 0.9
    _knows_its_length: ClassVar[bool] = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` steps; the closure computes loss and gradients."""
        self._closure: Any = closure
        try:
            return super().step(closure)
        finally:
            del self._closure

    def _direction_from(self, known: History, g: Any) -> Any:
        """Return the step to the minimum of the quadratic around the point."""
        hessian = self._hessian(len(g))
        if not np.isfinite(hessian).all():
            return -g
        curvature, axes = np.linalg.eigh(hessian)
        curvature = np.abs(curvature)
        # A direction without curvature would take an infinite step.
        curvature = np.maximum(curvature, max(1e-8 * float(curvature.max()), 1e-30))
        return -(axes @ ((axes.T @ g) / curvature))

    def _first_length(self, known: History, g: Any, slope: float, last: float | None) -> float:
        """Return 1, the whole step."""
        return 1.0

    def _hessian(self, count: int) -> np.ndarray:
        """Return the Hessian by central differences of the gradient."""
        if count > MOST_NUMBERS:
            raise ValueError(
                f"Newton computes a Hessian with two gradients for every number, and there are "
                f"{count:,} numbers, more than {MOST_NUMBERS}. LBFGS is made for that."
            )
        start = read_point(self.groups)
        widths = np.cbrt(np.finfo(start.dtype).eps) * np.maximum(np.abs(start), 1.0)
        columns = []
        try:
            for i, width in enumerate(widths):
                each = []
                for sign in (1.0, -1.0):
                    moved = start.copy()
                    moved[i] += sign * width
                    write_point(self.groups, moved)
                    each.append((moved[i], self._evaluate(self._closure).gradient))
                (up, above), (down, below) = each
                columns.append((above - below) / (up - down))
        finally:
            write_point(self.groups, start)
        hessian = np.stack(columns)
        return (hessian + hessian.T) / 2
