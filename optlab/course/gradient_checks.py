"""The checks of the first two assignments: reverse mode on numbers, vector-Jacobian products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.course.plan import Check, Scenario
from optlab.course.sessions import Session, an_object
from optlab.course.velocity_rules import Mistake, Pieces

# Reverse mode on numbers.


class Number(Pieces):
    """A number that knows what it was computed from: the reference of "reverse_mode"."""

    def __init__(
        self,
        data: float,
        parents: tuple[tuple[Number, float], ...] = (),
        pieces: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.data, self.parents, self.grad, self.pieces = float(data), parents, 0.0, pieces or {}

    def _made(self, name: str, data: float, *parents: tuple[Any, float]) -> Number:
        known = [(p, self.piece("slope", name, i, d)) for i, (p, d) in enumerate(parents)]
        return Number(data, tuple(x for x in known if isinstance(x[0], Number)), self.pieces)

    def slope(self, name: str, i: int, derivative: float) -> float:
        """Return the derivative of an operation to an input."""
        return derivative

    def __add__(self, other: Any) -> Number:
        return self._made("add", self.data + _data(other), (self, 1.0), (other, 1.0))

    def __mul__(self, other: Any) -> Number:
        b = _data(other)
        return self._made("multiply", self.data * b, (self, b), (other, self.data))

    def __sub__(self, other: Any) -> Number:
        return self._made("subtract", self.data - _data(other), (self, 1.0), (other, -1.0))

    def __rsub__(self, other: Any) -> Number:
        result: Number = self.piece("subtracted_from", other)
        return result

    def __rtruediv__(self, other: Any) -> Number:
        result: Number = self.piece("dividing", other)
        return result

    def subtracted_from(self, other: float) -> Number:
        """Return a plain number minus this one."""
        return self._made("subtract", _data(other) - self.data, (other, 1.0), (self, -1.0))

    def __truediv__(self, other: Any) -> Number:
        a, b = self.data, _data(other)
        return self._made("divide", a / b, (self, 1 / b), (other, -a / b**2))

    def dividing(self, other: float) -> Number:
        """Return a plain number divided by this one."""
        a, b = _data(other), self.data
        return self._made("divide", a / b, (other, 1 / b), (self, -a / b**2))

    def __neg__(self) -> Number:
        return self._made("subtract", -self.data, (self, -1.0))

    def __pow__(self, n: float) -> Number:
        return self._made("power", self.data**n, (self, n * self.data ** (n - 1)))

    __radd__, __rmul__ = __add__, __mul__

    def exp(self) -> Number:
        """Return e to this number."""
        y = math.exp(self.data)
        return self._made("exp", y, (self, y))

    def tanh(self) -> Number:
        """Return the hyperbolic tangent."""
        y = math.tanh(self.data)
        return self._made("tanh", y, (self, self.piece("tanh_slope", y)))

    def tanh_slope(self, y: float) -> float:
        """Return the derivative of tanh by its value."""
        return 1 - y * y

    def backward(self) -> None:
        """Add the derivative of this number to the `grad` of all that it was computed from."""
        passed: dict[int, float] = {id(self): 1.0}
        for node in self.piece("order"):
            g = passed.pop(id(node), 0.0)
            node.grad = self.piece("kept", node.grad, g)
            for parent, derivative in node.parents:
                old = passed.get(id(parent), 0.0)
                passed[id(parent)] = self.piece("gathered", old, g * derivative)

    def order(self) -> list[Number]:
        """Return this number and its ancestors, each before what it was computed from."""
        done: list[Number] = []
        seen: set[int] = set()
        stack: list[tuple[Number, bool]] = [(self, False)]
        while stack:
            node, left = stack.pop()
            if left:
                done.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack += [(parent, False) for parent, _ in node.parents]
        return done[::-1]

    def gathered(self, old: float, new: float) -> float:
        """Return the gradient of a number that a further path has reached."""
        return old + new

    def kept(self, old: float, new: float) -> float:
        """Return the gradient after a backward pass."""
        return old + new


def _data(value: Any) -> float:
    return value.data if isinstance(value, Number) else float(value)


def _breadth_first(self: Number) -> list[Number]:
    """Return ancestors level by level: some come before all of their children have."""
    order, seen = [self], {id(self)}
    for node in order:
        for parent, _ in node.parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                order.append(parent)
    return order


def _slope(**wrong: Callable[[int, float], float]) -> dict[str, Callable[..., Any]]:
    """Return the piece that replaces derivatives of some operations."""
    return {"slope": lambda self, name, i, d: wrong.get(name, lambda i, d: d)(i, d)}


NUMBER_MISTAKES: list[Mistake] = [
    ("gradient_overwritten", {"gathered": lambda self, old, new: new}),
    ("wrong_order", {"order": _breadth_first}),
    ("wrong_sign", _slope(subtract=lambda i, d: 1.0)),
    ("wrong_sign", _slope(divide=lambda i, d: d if i == 0 else -d)),
    ("wrong_sign", {"subtracted_from": lambda self, other: self + other}),
    ("wrong_order", {"subtracted_from": lambda self, other: self - other}),
    ("wrong_order", {"dividing": lambda self, other: self / other}),
    ("wrong_rule", {"tanh_slope": lambda self, y: 1 - y}),
    ("wrong_rule", {"tanh_slope": lambda self, y: y}),
    ("wrong_rule", {"tanh_slope": lambda self, y: 1 - math.tanh(y) ** 2}),
    ("wrong_rule", _slope(exp=lambda i, d: 1.0)),
    ("wrong_rule", _slope(power=lambda i, d: 1.0)),
    ("wrong_rule", _slope(multiply=lambda i, d: 1.0)),
    ("state_not_kept", {"kept": lambda self, old, new: new}),
]


def _expression(draw: Any, build: Callable[[Session], list[str]]) -> Callable[[Session], None]:
    """Return a scenario: inputs, an expression of them, backward, and the gradients."""

    def run(session: Session) -> None:
        for name, value in draw.items():
            session.make(name, value)
        for result in build(session):
            session.get(result, "data", like=0.0, label=f"the value of {result}")
            session.call(result, "backward", label=f"{result}.backward()")
            for name in draw:
                session.get(name, "grad", like=0.0, label=f"{name}.grad after {result}.backward()")

    return run


def _number_scenarios(seed: int) -> list[Scenario]:
    a, b, c = (float(v) for v in np.random.default_rng(seed).uniform(0.4, 1.6, 3))

    def op(session: Session, x: str, method: str, y: Any, to: str) -> None:
        arguments = [] if y is None else [an_object(y) if isinstance(y, str) else y]
        session.call(x, method, *arguments, keep=to, label=f"{x}.{method}")

    def paths(session: Session) -> list[str]:
        op(session, "x", "__mul__", "x", "x*x")
        op(session, "x*x", "__mul__", "y", "x*x*y")
        op(session, "x*x*y", "__add__", "x", "x*x*y + x")
        return ["x*x*y + x"]

    def operators(session: Session) -> list[str]:
        op(session, "x", "__sub__", "y", "x-y")
        op(session, "x-y", "__truediv__", "z", "(x-y)/z")
        op(session, "(x-y)/z", "tanh", None, "tanh")
        op(session, "z", "exp", None, "exp(z)")
        op(session, "exp(z)", "__pow__", 3, "exp(z)**3")
        op(session, "tanh", "__add__", "exp(z)**3", "sum")
        op(session, "sum", "__neg__", None, "-sum")
        return ["-sum"]

    def order(session: Session) -> list[str]:
        op(session, "x", "__mul__", "y", "a")
        op(session, "a", "__mul__", "a", "b")
        op(session, "b", "tanh", None, "c")
        op(session, "c", "__mul__", "a", "d")
        op(session, "a", "__add__", "d", "e")
        return ["e"]

    def numbers(session: Session) -> list[str]:
        op(session, "x", "__rmul__", 2.0, "2x")
        op(session, "2x", "__rsub__", 1.0, "1-2x")
        op(session, "1-2x", "__rtruediv__", 3.0, "3/(1-2x)")
        op(session, "3/(1-2x)", "__radd__", 1.0, "r")
        return ["r"]

    def twice(session: Session) -> list[str]:
        op(session, "x", "__mul__", "y", "first")
        op(session, "x", "__add__", "y", "second")
        return ["first", "second"]

    def chain(session: Session) -> list[str]:
        last = "x"
        for i in range(1200):
            op(session, last, "__add__", 0.001, f"x{i}")
            last = f"x{i}"
        return [last]

    two, three = {"x": a, "y": b}, {"x": a, "y": b, "z": c}
    return [
        Scenario("paths", "a number that is used more than once", 0.25, _expression(two, paths)),
        Scenario("operators", "every operation", 0.3, _expression(three, operators)),
        Scenario("order", "gradients are complete before they are passed on", 0.15,
                 _expression(two, order)),
        Scenario("numbers", "plain numbers on the left", 0.1, _expression({"x": a}, numbers)),
        Scenario("twice", "two backward passes add up", 0.1, _expression(two, twice)),
        Scenario("chain", "1,200 operations in a row", 0.1, _expression({"x": a}, chain)),
    ]  # fmt: skip


# Products with arrays.


class Products(Pieces):
    """Vector-Jacobian products of a few functions: the reference of "vjp"."""

    def __init__(self, pieces: dict[str, Callable[..., Any]] | None = None) -> None:
        self.pieces = pieces or {}

    def add(self, g: Any, x: Any, y: Any) -> list[Any]:
        """Return the gradients of both inputs of x + y."""
        return [self.piece("summed", g, x.shape), self.piece("summed", g, y.shape)]

    def multiply(self, g: Any, x: Any, y: Any) -> list[Any]:
        """Return the gradients of both inputs of x * y."""
        return [
            self.piece("summed", g * self.piece("factor", x, y), x.shape),
            self.piece("summed", g * self.piece("factor", y, x), y.shape),
        ]

    def factor(self, own: Any, other: Any) -> Any:
        """Return what the gradient of an input of a product is multiplied by."""
        return other

    def matmul(self, g: Any, a: Any, b: Any) -> list[Any]:
        """Return the gradients of both inputs of a @ b, two matrices."""
        products: list[Any] = self.piece("matrices", g, a, b)
        return products

    def matrices(self, g: Any, a: Any, b: Any) -> list[Any]:
        """Return the gradients of two matrices."""
        return [g @ b.T, a.T @ g]

    def sum(self, g: Any, x: Any, axis: int) -> list[Any]:
        """Return the gradient of x.sum(axis)."""
        return [self.piece("spread", g, x, axis)]

    def spread(self, g: Any, x: Any, axis: int) -> Any:
        """Return the gradient of the input of a sum."""
        return np.expand_dims(g, axis) + 0 * x

    def tanh(self, g: Any, y: Any) -> list[Any]:
        """Return the gradient of x where y = tanh(x) is known."""
        return [g * self.piece("tanh_slope", y)]

    def tanh_slope(self, y: Any) -> Any:
        """Return the derivative of tanh by its value."""
        return 1 - y * y

    def summed(self, g: Any, shape: tuple[int, ...]) -> Any:
        """Return a gradient of the shape of an input that was broadcast."""
        return unbroadcast(g, shape, self.pieces.get("axis_reduced"))


def unbroadcast(g: Any, shape: tuple[int, ...], reduce: Any = None) -> Any:
    """Return a gradient summed to the shape of what was broadcast."""
    reduce = reduce or (lambda self, g, axis, keep: g.sum(axis=axis, keepdims=keep))
    while g.ndim > len(shape):
        g = reduce(None, g, 0, False)
    for axis, n in enumerate(shape):
        if n == 1 and g.shape[axis] != 1:
            g = reduce(None, g, axis, True)
    return g


def _mean(self: Any, g: Any, axis: int, keep: bool) -> Any:
    return g.mean(axis=axis, keepdims=keep)


def _first(self: Any, g: Any, axis: int, keep: bool) -> Any:
    return g.take([0] if keep else 0, axis=axis)


def _mean_spread(self: Any, g: Any, x: Any, axis: int) -> Any:
    return np.expand_dims(g, axis) / x.shape[axis] + 0 * x


VJP_MISTAKES: list[Mistake] = [
    ("averages_wrong_weights", {"axis_reduced": _mean}),
    ("hidden_broadcast", {"axis_reduced": _first}),
    ("wrong_rule", {"factor": lambda self, own, other: own}),
    ("wrong_rule", {"factor": lambda self, own, other: 1.0}),
    ("wrong_rule", {"tanh_slope": lambda self, y: 1 - y}),
    ("wrong_rule", {"tanh_slope": lambda self, y: 1 - np.tanh(y) ** 2}),
    ("wrong_sign", {"tanh_slope": lambda self, y: y * y - 1}),
    ("averages_wrong_weights", {"spread": _mean_spread}),
]  # fmt: skip

#: Shapes of two inputs that broadcast.
_PAIRS = [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((4, 1, 3), (2, 1))]


def _drawn(seed: int) -> Callable[[tuple[int, ...]], Any]:
    rng = np.random.default_rng(seed)
    return lambda shape: np.asarray(rng.uniform(0.3, 1.5, shape) * rng.choice([-1.0, 1.0], shape))


def _pairs_of(method: str, seed: int) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        draw = _drawn(seed)
        session.make("rules")
        for x_shape, y_shape in _PAIRS:
            x, y = draw(x_shape), draw(y_shape)
            g = draw(np.broadcast_shapes(x_shape, y_shape))
            label = f"{method} of shapes {x_shape} and {y_shape}"
            session.call("rules", method, g, x, y, like=[x, y], label=label)

    return run


def _matmul(seed: int) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        draw = _drawn(seed)
        session.make("rules")
        for shapes in (
            ((2, 2), (2, 2), (2, 2)),
            ((2, 3), (3, 4), (2, 4)),
            ((1, 3), (3, 2), (1, 2)),
        ):
            a, b, g = map(draw, shapes)
            label = f"matmul of shapes {a.shape} and {b.shape}"
            session.call("rules", "matmul", g, a, b, like=[a, b], label=label)

    return run


def _sums(seed: int) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        draw = _drawn(seed)
        session.make("rules")
        for axis in (0, 1):
            x = draw((2, 3))
            g = draw(x.sum(axis).shape)
            session.call("rules", "sum", g, x, axis, like=[x], label=f"sum along axis {axis}")
        y, g = draw((3,)) / 2, draw((3,))
        session.call("rules", "tanh", g, y, like=[y], label="tanh")

    return run


def _vjp_scenarios(seed: int) -> list[Scenario]:
    return [
        Scenario(
            "multiply", "products of arrays that broadcast", 0.35, _pairs_of("multiply", seed)
        ),
        Scenario("add", "sums of arrays that broadcast", 0.2, _pairs_of("add", seed)),
        Scenario("matmul", "products of matrices", 0.25, _matmul(seed)),
        Scenario("sum", "sums along an axis, and tanh", 0.2, _sums(seed)),
    ]


def _unbroadcast_scenarios(seed: int) -> list[Scenario]:
    cases: list[tuple[str, str, list[Any], float]] = [
        ("axes", "axes of length 1", [((2, 3), (2, 1)), ((2, 3), (1, 1)), ((3,), (1,))], 0.5),
        ("leading", "axes that were put in front", [((4, 2, 3), (3,)), ((2, 3), ())], 0.3),
        ("both", "both, and neither", [((4, 2, 3), (2, 1)), ((2, 3), (2, 3))], 0.2),
    ]

    def runs(pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Callable[[Session], None]:
        def run(session: Session) -> None:
            draw = _drawn(seed)
            for shape, wanted in pairs:
                label = f"from shape {shape} to {wanted}"
                g = draw(shape)
                session.call("", "__call__", g, wanted, like=np.zeros(wanted), label=label)

        return run

    return [Scenario(name, part, weight, runs(pairs)) for name, part, pairs, weight in cases]


def _unbroadcast_reference(pieces: dict[str, Callable[..., Any]]) -> Any:
    return lambda g, shape: unbroadcast(g, shape, pieces.get("axis_reduced"))


GRADIENTS: list[Check] = [
    Check(
        "reverse_mode", "Reverse mode on numbers",
        "Value(number) with .data, .grad, + - * / (numbers on either side), **, -x, .exp(), "
        ".tanh() and .backward(), which adds to .grad",
        _number_scenarios, lambda pieces: lambda data: Number(data, pieces=pieces),
        NUMBER_MISTAKES,
        {"gathered": "the sum over all paths", "order": "the order of the backward pass",
         "slope": "a derivative", "tanh_slope": "the derivative of tanh",
         "kept": "the gradient of two passes"},
    ),
    Check(
        "unbroadcast", "The gradient of what was broadcast",
        "unbroadcast(gradient, shape) returns the gradient, summed to the shape",
        _unbroadcast_scenarios, _unbroadcast_reference, VJP_MISTAKES[:2],
        {"axis_reduced": "the sum over an axis"},
    ),
    Check(
        "vjp", "Vector-Jacobian products",
        "Rules() with add(g, x, y), multiply(g, x, y), matmul(g, a, b), sum(g, x, axis) and "
        "tanh(g, y); each returns a list of the inputs' gradients",
        _vjp_scenarios, lambda pieces: lambda: Products(pieces), VJP_MISTAKES,
        {"axis_reduced": "the sum over an axis", "factor": "the rule of a product",
         "tanh_slope": "the rule of tanh", "spread": "the rule of a sum",
         "matrices": "the rule of a matrix product"},
    ),
]  # fmt: skip
