"""Surface: a function of two numbers to walk down on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from optlab.autograd import Tensor
from optlab.autograd.mode import enable_grad, no_grad
from optlab.autograd.tape import Leaf, backpropagate
from optlab.autograd.tensor import raw
from optlab.backend import events
from optlab.nn import Parameter
from optlab.plan import CaptureRefusedError, Plan, capture_value_and_grad

Point = tuple[float, ...]
Interval = tuple[float, float]

_FLOAT64 = np.dtype("float64")


class Surface:
    """A function f(x, y) with what is worth knowing about it.

    Parameters
    ----------
    function : callable
        Takes two numbers (or arrays, element by element), gives one; plain NumPy.
    title, name : str, optional
        For people, and for code. By default the name of the function.
    domain : two intervals
        The part of the plane that pictures show.
    start : two numbers
        Where races start by default.
    minima : sequence of points
        Known global minima.
    minimum_value : float, optional
        The value there.
    formula : str
        LaTeX, without dollar signs.
    source : str
        Where it comes from.
    shows : str
        In one sentence, what it is good for showing.
    repeatable : bool
        Promise that the function only computes: no branches on values, no counters, no fresh
        random numbers. Races then replay it as a plan instead of calling it at every step.
    tolerance : float
        A loss so close to the minimum counts as having arrived.

    Examples
    --------
    >>> import optlab as ol
    >>> bowl = ol.problems.Surface(lambda x, y: x**2 + 3 * y**2, start=(1.0, 1.0))
    >>> bowl(1.0, 2.0)
    13.0
    >>> value, gradient = bowl.value_and_gradient((1.0, 2.0))
    >>> value, gradient
    (13.0, array([ 2., 12.]))
    """

    kind = "surface"
    dimension = 2

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        title: str | None = None,
        name: str | None = None,
        domain: Sequence[Interval] = ((-3.0, 3.0), (-3.0, 3.0)),
        start: Sequence[float] = (-2.0, 2.0),
        minima: Sequence[Point] = (),
        minimum_value: float | None = None,
        formula: str = "",
        source: str = "",
        shows: str = "",
        repeatable: bool = False,
        tolerance: float = 1e-3,
    ) -> None:
        self.function = function
        own = getattr(function, "__name__", type(function).__name__)
        self.name = name or ("f" if own == "<lambda>" else own)
        self.title = title or ("f(x, y)" if own == "<lambda>" else own)
        (x_low, x_high), (y_low, y_high) = domain
        if not (x_low < x_high and y_low < y_high):
            raise ValueError(
                f"domain must be two intervals (low, high), low < high; got {domain!r}."
            )
        self.domain = ((float(x_low), float(x_high)), (float(y_low), float(y_high)))
        self.start = self.checked_start(start)
        self.minima = [tuple(map(float, point)) for point in minima]
        self.minimum_value = minimum_value
        if minimum_value is None and self.minima:
            self.minimum_value = float(function(*map(np.float64, self.minima[0])))
        self.formula = formula
        self.source = source
        self.shows = shows
        self.repeatable = repeatable
        self.tolerance = tolerance

    def __call__(self, x: Any, y: Any) -> Any:
        """Give f(x, y)."""
        return self.function(x, y)

    def __repr__(self) -> str:
        return f"<Surface {self.title!r}, start ({self.start[0]:g}, {self.start[1]:g})>"

    def checked_start(self, start: Any) -> Point:
        """Give a start as two finite floats, or say what is wrong with it."""
        values = np.asarray(start.data if isinstance(start, Tensor) else start)
        if values.shape != (2,) or values.dtype.kind not in "fiu":
            raise ValueError(f"a start on {self.title} is two numbers (x, y); got {start!r}.")
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"the start on {self.title} must be finite, but it is "
                f"({values[0]}, {values[1]}). Choose two ordinary numbers."
            )
        return tuple(values.astype(float).tolist())

    def values(self, x: Any, y: Any) -> np.ndarray:
        """Give f at many points, also where the function itself takes one point at a time.

        Points where it fails or is not a number get NaN.
        """
        x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
        with np.errstate(all="ignore"), no_grad():
            try:
                found = np.asarray(self.function(x, y), dtype=float)
                if found.shape == x.shape:
                    return found
            except Exception:  # noqa: BLE001 - a user's function; asked again point by point
                pass
            found = np.full(x.shape, np.nan)
            for i in np.ndindex(x.shape):
                try:
                    found[i] = float(self.function(x[i], y[i]))
                except Exception:  # noqa: BLE001 - the picture leaves this point out
                    continue
        return found

    def value_and_gradient(self, point: Sequence[float]) -> tuple[float, np.ndarray]:
        """Give f and its gradient at one point.

        Raises
        ------
        TypeError
            If the value is not one number, or was not computed from x and y by NumPy functions.
        """
        value, *gradient = self._differentiate(*(np.float64(c) for c in point))
        return float(value), np.array([float(part) for part in gradient])

    def _differentiate(self, *point: Any) -> tuple[Any, ...]:
        """Give the value and its derivative for each coordinate, by calling the function."""
        inputs = [Tensor(c, Leaf((), _FLOAT64)) for c in point]
        with enable_grad():
            value = self.function(*inputs)
        if not isinstance(value, Tensor):
            raise self._not_differentiable(value, point)
        if value.data.size != 1:
            raise TypeError(
                f"{self.title} must give one number a point, but at {_text(point)} it gives an "
                f"array of shape {value.shape}. Add it up, or take one element."
            )
        if value.node is None:
            raise self._not_differentiable(value.data, point)
        gradient = backpropagate(
            value.node, np.ones(value.shape)[()], targets=[t.node for t in inputs]
        )
        return value.data.reshape(())[()], *(0.0 if g is None else g for g in gradient)

    def _not_differentiable(self, value: Any, point: Any) -> TypeError:
        what = f"{value!r} of type {type(value).__name__}"
        return TypeError(
            f"{self.title} must give one number a point, computed from x and y by NumPy functions; "
            f"at {_text(point)} it gives {what}. (A missing return? math.exp in place of np.exp?)"
        )

    def run(self, start: Any = None, seed: int = 0) -> SurfaceRun:
        """Put a point on the surface, ready to be moved by an optimizer."""
        return SurfaceRun(self, self.start if start is None else self.checked_start(start))

    @cached_property
    def plan(self) -> Plan | None:
        """Value and gradient as a plan, if the function promises to be repeatable."""
        if not self.repeatable:
            return None
        try:
            return capture_value_and_grad(self.function, *(np.float64(c) for c in self.start))
        except CaptureRefusedError:
            return None


class SurfaceRun:
    """One point on its way over a surface.

    Attributes
    ----------
    parameters : list of Parameter
        One, named "point", of dtype float64.
    """

    accuracy: float | None = None

    def __init__(self, surface: Surface, start: Point) -> None:
        self.surface = surface
        self.point = Parameter(np.array(start, dtype=float), name="point")
        self.parameters = [self.point]
        plan = surface.plan
        self._evaluate = surface._differentiate if plan is None else plan.replay
        self._leaf = self.point.node
        self._leaves = [self._leaf]

    def backward(self, step: int) -> Any:
        """Compute the loss where the point stands, and leave the gradient on it."""
        value, *gradient = self._evaluate(*self.point.data)
        self._leaf.grad = np.array(gradient)
        if events.backward_finished.listeners:
            events.backward_finished.publish(value, self._leaves)
        return value

    def loss(self) -> float:
        """Give the loss where the point stands."""
        with no_grad():
            value = self.surface.function(*(np.float64(c) for c in self.point.data))
        return float(np.asarray(raw(value)).item())

    def place(self) -> str:
        """Say where the point stands."""
        return f"at {_text(self.point.data)}"


def _text(point: Any) -> str:
    return f"({', '.join(f'{float(c):.6g}' for c in point)})"
