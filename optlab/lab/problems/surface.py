"""Surface: a function of one or two numbers, or of a vector, to minimize."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from optlab.autograd import Tensor
from optlab.autograd.tape.backward import backpropagate
from optlab.autograd.tape.grad_mode import enable_grad, no_grad
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tensor.tensor import SilentDetachError, raw
from optlab.backend import events, random
from optlab.backend.text import one_line
from optlab.lab.problems.arguments import (
    OfVector,
    as_function_of_numbers,
    dimension_of_start,
)
from optlab.lab.problems.formula import Formula
from optlab.nn import Parameter
from optlab.plan import CaptureError, Plan, capture_value_and_grad

Point = tuple[float, ...]
Interval = tuple[float, float]

_FLOAT64 = np.dtype("float64")
_NUMBERS = {1: "one number x", 2: "two numbers (x, y)"}
#: Points of more coordinates are cut off in texts.
_MOST_SHOWN = 4


class Surface:
    """A function f(x, y), f(x), or f(p) of a vector, with its domain, start, minima and source.

    Parameters
    ----------
    function : callable or str
        Maps one or two numbers (or arrays, element by element) to one, in plain NumPy: ``f(x, y)``
        or ``f(x)``. A function of one argument that maps a vector of two numbers to one number is
        ``f(p)``, of a vector; it is called with one to find out. With a start of more than two
        numbers it is ``f(p)`` of a vector of that length. Or a formula as text,
        ``"(1 - x)**2 + 100*(y - x**2)**2"``.
    title, name : str, optional
        For display, and for code. By default the name of the function.
    domain : one or two intervals, optional
        The part of the plane or line that figures show. By default from -3 to 3. A function of more
        than two numbers has none, and no map.
    start : vector of numbers, optional
        The default start of runs.
    minima : sequence of points
        Known global minima.
    minimum_value : float, optional
        The value there.
    formula : str
        LaTeX, without dollar signs.
    source : str
        The reference of the function.
    shows : str
        What it demonstrates, in one sentence.
    repeatable : bool
        Promise that the function is pure: no branches on values, no counters, no fresh random
        numbers. Runs then replay it as a plan instead of calling it at every step.
    tolerance : float
        The distance of the loss from the minimum that has to be reached.

    Attributes
    ----------
    dimension : int
        How many numbers the function takes.
    noise : float
        Standard deviation of the noise on every element of the gradient; see `noisy`.
    pattern : tuple of float
        Where it is not empty, the noise is not drawn: step t gets the standard deviation times
        element t modulo the length.

    Examples
    --------
    >>> import optlab as ol
    >>> bowl = ol.problems.Surface(lambda x, y: x**2 + 3 * y**2, start=(1.0, 1.0))
    >>> bowl(1.0, 2.0)
    13.0
    >>> value, gradient = bowl.value_and_gradient((1.0, 2.0))
    >>> value, gradient
    (13.0, array([ 2., 12.]))

    The same, of a vector and as text:

    >>> float(ol.problems.Surface(lambda p: p[0]**2 + 3 * p[1]**2)(1.0, 2.0))
    13.0
    >>> ol.problems.Surface("x**2 + 3*y**2")(1.0, 2.0)
    13.0
    """

    kind = "surface"
    noise = 0.0
    pattern: tuple[float, ...] = ()

    def __init__(
        self,
        function: Callable[..., Any] | str,
        *,
        title: str | None = None,
        name: str | None = None,
        domain: Sequence[Interval] | None = None,
        start: Sequence[float] | None = None,
        minima: Sequence[Point] = (),
        minimum_value: float | None = None,
        formula: str = "",
        source: str = "",
        shows: str = "",
        repeatable: bool = False,
        tolerance: float = 1e-3,
    ) -> None:
        if isinstance(function, str):
            title, repeatable = title or function.strip(), True  # it is a formula: sums, products
            function = Formula(function)
        own = getattr(function, "__name__", type(function).__name__)
        known = dimension_of_start(function, start) if domain is None else len(domain)
        self.function, self.dimension = as_function_of_numbers(function, known)
        letters = "p" if self.function is not function else "x, y"[: 3 * self.dimension - 2]
        self.name = name or ("f" if own == "<lambda>" else own)
        self.title = one_line(title or (f"f({letters})" if own == "<lambda>" else own), 80)
        if domain is None:
            domain = [(-3.0, 3.0)] * self.dimension if self.dimension <= 2 else []
        if (domain or self.dimension <= 2) and (
            len(domain) not in (1, 2) or not all(low < high for low, high in domain)
        ):
            raise ValueError(
                f"domain must be one or two intervals (low, high), low < high; got {domain!r}."
            )
        self.domain = tuple((float(low), float(high)) for low, high in domain)
        self.start = self.checked_start((-2.0, 2.0)[: self.dimension] if start is None else start)
        self.minima = [tuple(map(float, point)) for point in minima]
        self.minimum_value = minimum_value
        if minimum_value is None and self.minima:
            self.minimum_value = float(function(*map(np.float64, self.minima[0])))
        self.formula = formula
        self.source = source
        self.shows = shows
        self.repeatable = repeatable
        self.tolerance = tolerance

    def __call__(self, *point: Any) -> Any:
        """Return the value of the function."""
        return self.function(*point)

    def __repr__(self) -> str:
        return f"<Surface {self.title!r}, start {format_coordinates(self.start)}>"

    def checked_start(self, start: Any) -> Point:
        """Return a start as finite floats, or raise an error that says what is wrong with it."""
        try:
            values = np.asarray(raw(start))
        except ValueError:  # rows of different length
            values = np.empty((0, 0))
        if self.dimension == 1 and values.ndim == 0:
            values = values.reshape(1)
        if values.shape != (self.dimension,) or values.dtype.kind not in "fiu":
            given = f"{self.dimension} numbers" if self.dimension > 2 else _NUMBERS[self.dimension]
            raise ValueError(
                f"a start on {self.title} is {given}; got {reprlib.repr(start)}. (A "
                "function of two numbers is written f(x, y), or f(p) of a vector; of one f(x).)"
            )
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"the start on {self.title} must be finite, but it is "
                f"{format_coordinates(values)}. Choose numbers of ordinary size."
            )
        return tuple(values.astype(float).tolist())

    def nearest_defined(self, start: Any = None) -> Point:
        """Return a start at which the function has a value and a slope: the nearest of a grid.

        Parameters
        ----------
        start : one or two numbers, optional
            The wanted start, which is returned if it is one; by default that of the surface.

        Raises
        ------
        ValueError
            If the function is defined nowhere on its domain.

        Examples
        --------
        >>> import optlab as ol
        >>> surface = ol.problems.Surface("x - log(x) + y**2")
        >>> surface.nearest_defined()
        (0.15, 2.0)
        """
        wanted = self.start if start is None else self.checked_start(start)
        if self._is_defined(wanted):
            return wanted
        axes = [
            np.unique([at, *np.linspace(low, high, 41)])
            for at, (low, high) in zip(wanted, self.domain, strict=True)
        ]
        points = np.stack([mesh.reshape(-1) for mesh in np.meshgrid(*axes)], axis=1)
        points = points[np.isfinite(self.values(*points.T))]
        lengths = np.array([high - low for low, high in self.domain])
        distances = np.abs((points - np.array(wanted)) / lengths).sum(axis=1)
        for i in np.argsort(distances, kind="stable"):
            point: Point = tuple(np.round(points[i], 12).tolist())
            if self._is_defined(point):
                return point
        raise ValueError(
            f"{self.title} has no value and slope anywhere on {self.domain}; give another domain: "
            "ol.problems.Surface(f, domain=[(0, 1), (0, 1)])."
        )

    def _is_defined(self, point: Point) -> bool:
        with np.errstate(all="ignore"):
            value, gradient = self.value_and_gradient(point)
        return bool(np.isfinite(value) and np.isfinite(gradient).all())

    def values(self, *coordinates: Any) -> np.ndarray:
        """Return the values at many points, also if the function takes one point at a time.

        Points at which it fails, or is not a number, get NaN.
        """
        # Copies: a function that writes into its arguments must not reach the caller's.
        arrays = [
            np.array(c) for c in np.broadcast_arrays(*[np.asarray(c, float) for c in coordinates])
        ]
        shape = arrays[0].shape
        with np.errstate(all="ignore"), no_grad():
            try:
                found = np.asarray(raw(self.function(*arrays)), dtype=float)
                if found.shape == shape:
                    return found
            except Exception:  # noqa: BLE001 - a user's function; retried point by point
                pass
            found = np.full(shape, np.nan)
            for i in np.ndindex(shape):
                try:
                    found[i] = float(raw(self.function(*[c[i] for c in arrays])))
                except Exception:  # noqa: BLE001 - figures leave this point out
                    continue
        return found

    def value_and_gradient(self, point: Sequence[float]) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at one point.

        Raises
        ------
        TypeError
            If the value is not one number, or was not computed from its inputs by NumPy functions.
        """
        value, *gradient = self.differentiate(*(np.float64(c) for c in point))
        return float(value), np.array([float(part) for part in gradient])

    def differentiate(self, *point: Any) -> tuple[Any, ...]:
        """Return the value and its derivative for each coordinate, by calling the function.

        Coordinates may be arrays of one shape, for many points at once; the value must then have
        their shape.
        """
        return self._differentiated(self.function, point[0].shape, *point)

    def differentiate_vector(self, point: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the value of a function of a vector, and the gradient, by calling the function."""
        assert isinstance(self.function, OfVector)
        value, gradient = self._differentiated(self.function.function, (), point)
        return value, gradient

    def _differentiated(
        self, function: Callable[..., Any], shape: tuple[int, ...], *point: Any
    ) -> tuple[Any, ...]:
        """Return the value, which has to have a shape, and its derivative by each argument."""
        inputs = [Tensor(c, Leaf(np.shape(c), _FLOAT64)) for c in point]
        place = point[0] if len(point) == 1 and np.ndim(point[0]) == 1 else point
        try:
            with enable_grad():
                value = function(*inputs)
        except SilentDetachError as error:
            mend = (
                "write np.exp in place of math.exp, and a comparison such as x > 0 in place of "
                "float(x) > 0"
                if "float()" in str(error)
                else "build arrays with np.stack([x, y]), or import optlab.numpy as np"
            )
            raise TypeError(
                f"{self.title} takes plain numbers out of its inputs, so that nothing can be "
                f"differentiated: {mend}. ({error})"
            ) from error
        except Exception as error:
            if not shape:
                error.add_note(f"{self.title} raised this at {format_coordinates(place)}.")
            raise
        if not isinstance(value, Tensor):
            raise self._not_differentiable(value, place)
        if value.shape != shape and (shape or value.size != 1):
            raise TypeError(
                f"{self.title} must give one number a point, but at {format_coordinates(place)} it "
                f"gives an array of shape {value.shape}. Add it up, or take one element."
            )
        if value.node is None:
            raise self._not_differentiable(value.data, place)
        gradient = backpropagate(
            value.node, np.ones(value.shape)[()], targets=[t.node for t in inputs]
        )
        return value.data.reshape(shape)[()], *(
            np.zeros(np.shape(c))[()] if g is None else g
            for c, g in zip(point, gradient, strict=True)
        )

    def _not_differentiable(self, value: Any, point: Any) -> TypeError:
        what = f"{value!r} of type {type(value).__name__}"
        return TypeError(
            f"{self.title} must give one number a point, computed from its inputs by NumPy "
            f"functions; at {format_coordinates(point)} it gives {what}. (A missing return? "
            "math.exp in place of np.exp?)"
        )

    @cached_property
    def plan(self) -> Plan | None:
        """Value and gradient as a plan, if the function promises to be repeatable."""
        if not self.repeatable:
            return None
        if isinstance(self.function, OfVector):  # replayed on many points, a sum would mix them
            return None
        start = [np.float64(c) for c in self.start]
        with np.errstate(all="ignore"):  # a formula may not be defined at the usual start
            try:
                plan = capture_value_and_grad(self.function, *start)
            except CaptureError:
                return None
            return plan if np.shape(plan.replay(*start)[0]) == () else None

    def noise_of(self, seed: int) -> Noise | None:
        """Return the noise of a run with this seed; None if the gradients are exact."""
        return Noise(self.noise, self.dimension, seed, self.pattern) if self.noise else None

    def __getstate__(self) -> dict[str, Any]:
        # A plan has functions that no other process can load; it is captured again there.
        return {name: value for name, value in vars(self).items() if name != "plan"}

    def run(self, start: Any = None, seed: int = 0) -> SurfaceRun:
        """Return a point on the surface that an optimizer can move."""
        return SurfaceRun(self, self.start if start is None else self.checked_start(start), seed)


class Noise:
    """The gradient noise of a run: one row per step, a function of seed and step alone.

    With a `pattern`, of the step alone.
    """

    BLOCK = 256

    def __init__(
        self, sigma: float, dimension: int, seed: int, pattern: Sequence[float] = ()
    ) -> None:
        self.sigma = sigma
        self.pattern = np.array(pattern, dtype=float)
        self.dimension = dimension
        self.key = random.Key(seed).fold("gradient noise")
        self.block = -1
        self.rows = np.empty((0, dimension))

    def at(self, step: int) -> np.ndarray:
        """Return the noise of step `step`, from 0."""
        if len(self.pattern):
            element = self.sigma * self.pattern[step % len(self.pattern)]
            return np.full(self.dimension, element)
        block, row = divmod(step, self.BLOCK)
        if block != self.block:
            drawn = self.key.fold(block).generator().standard_normal((self.BLOCK, self.dimension))
            self.block, self.rows = block, self.sigma * drawn
        return self.rows[row]  # type: ignore[no-any-return]


class SurfaceRun:
    """One point that moves over a surface.

    Attributes
    ----------
    parameters : list of Parameter
        One, named "point", of dtype float64.
    evaluate : callable
        Maps the coordinates to the value and the gradient.
    on_floats : bool
        Whether `evaluate` takes Python's floats.
    noise : Noise or None
        Added to the gradient.
    """

    accuracy: float | None = None

    def __init__(self, surface: Surface, start: Point, seed: int = 0) -> None:
        self.surface = surface
        self.point = Parameter(np.array(start, dtype=float), name="point")
        self.parameters = [self.point]
        plan = surface.plan
        self.evaluate = surface.differentiate if plan is None else plan.replay
        self.on_floats = plan is not None and _takes_floats(plan)
        self.noise = surface.noise_of(seed)
        self._leaf = self.point.node
        self._leaves = [self._leaf]

    def backward(self, step: int) -> Any:
        """Compute the loss at the point, and set the gradient of the point."""
        point = self.point.data
        if self.surface.dimension > 2:
            value, g = self.surface.differentiate_vector(point.copy())
        else:
            if self.on_floats:
                point = point.tolist()
            value, *gradient = self.evaluate(*point)
            if self.on_floats:
                value = np.float64(value)
            g = np.array(gradient)
        self._leaf.grad = g if self.noise is None else g + self.noise.at(step)
        if events.backward_finished.listeners:
            events.backward_finished.publish(value, self._leaves)
        return value

    def loss(self) -> float:
        """Return the loss at the point."""
        function, point = self.surface.function, self.point.data
        with no_grad():
            if isinstance(function, OfVector) and self.surface.dimension > 2:
                value = function.function(Tensor(point.copy()))
            else:
                value = function(*(Tensor(np.float64(c)) for c in point))
        return float(np.asarray(raw(value)).item())

    def place(self) -> str:
        """Return the position of the point, for messages."""
        return f"at {format_coordinates(self.point.data)}"


def _takes_floats(plan: Plan) -> bool:
    """Return whether a plan gives the same bits on Python's floats, which take a third of the time.

    Sums and products are the same. Quotients by 0 are not, nor are powers.
    """
    return all(
        step.name in ("add", "sub", "mul", "neg")
        if step.function is None
        else isinstance(step.function, np.ufunc)
        for step in plan.instructions
    )


def format_coordinates(point: Any, digits: int = 6) -> str:
    """Return the coordinates of a point as text; of a long vector the first ones.

    Examples
    --------
    >>> format_coordinates((1.5, 2.0)), format_coordinates(np.ones(100))
    ('(1.5, 2)', '(1, 1, 1, ..., 100 numbers)')
    """
    shown = point if len(point) <= _MOST_SHOWN else point[: _MOST_SHOWN - 1]
    words = [f"{float(c):.{digits}g}" if np.ndim(c) == 0 else "..." for c in shown]
    if len(words) < len(point):
        words += ["...", f"{len(point)} numbers"]
    return f"({', '.join(words)})"
