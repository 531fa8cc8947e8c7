"""The checks of the last three assignments: recording, recomputation, landscapes and curvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.course.plan import Check, Scenario
from optlab.course.sessions import Session
from optlab.course.velocity_rules import Mistake, Pieces

PieceTable = dict[str, Callable[..., Any]]

# Recording.


class Recorder(Pieces):
    """Copies of parameters, every so many steps: the reference of "recorder"."""

    def __init__(self, every: int = 1, pieces: PieceTable | None = None) -> None:
        self.every, self.pieces = every, pieces or {}
        self.kept: list[tuple[int, list[np.ndarray]]] = []

    def record(self, step: int, params: list[np.ndarray]) -> None:
        """Keep the parameters of a step, if it is its turn."""
        if self.piece("due", step):
            self.kept.append((step, self.piece("copied", params)))

    def due(self, step: int) -> bool:
        """Return whether a step is kept."""
        return step % self.every == 0

    def copied(self, params: list[np.ndarray]) -> list[np.ndarray]:
        """Return what is kept of the parameters."""
        return [p + 0.0 for p in params]

    def steps(self) -> list[int]:
        """Return the numbers of the steps that are kept."""
        return [step for step, _ in self.kept]

    def series(self, i: int) -> np.ndarray:
        """Return the values of a parameter, one row a step."""
        return np.asarray([params[i] for _, params in self.kept])


RECORDER: list[Mistake] = [
    ("reference_kept", {"copied": lambda self, params: list(params)}),
    ("step_count_off_by_one", {"due": lambda self, step: (step + 1) % self.every == 0}),
    ("step_count_off_by_one", {"due": lambda self, step: (step - 1) % self.every == 0}),
]


def _recording(seed: int, every: int | None, steps: int) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        rng = np.random.default_rng(seed)
        session.make("recorder", **({} if every is None else {"every": every}))
        for t in range(steps):
            params = [rng.normal(size=(3,)), np.asarray(rng.normal())]
            session.call("recorder", "record", t, params, label=f"record, step {t}")
            session.overwrite(t, [np.full(3, 9.0), np.asarray(9.0)])
        session.call("recorder", "steps", like=..., label="steps()")
        session.call("recorder", "series", 0, like=..., label="series(0)")
        session.call("recorder", "series", 1, like=..., label="series(1)")

    return run


def _recorder_scenarios(seed: int) -> list[Scenario]:
    return [
        Scenario("all", "every step is kept, as it was then", 0.5, _recording(seed, None, 8)),
        Scenario("third", "every third step", 0.3, _recording(seed, 3, 8), varies="every"),
        Scenario("second", "every second step", 0.2, _recording(seed, 2, 6)),
    ]


# Recomputation.


class Recompute(Pieces):
    """A chain of functions that keeps the inputs of its segments: the reference of "recompute"."""

    def __init__(
        self, functions: list[Any], vjps: list[Any], segments: int, pieces: PieceTable | None = None
    ) -> None:
        self.functions, self.vjps, self.pieces = functions, vjps, pieces or {}
        n = len(functions)
        self.bounds = [n * i // segments for i in range(segments + 1)]
        self.inputs: list[Any] = []

    def forward(self, x: Any) -> Any:
        """Return the value of the chain; keep the input of each segment."""
        self.inputs = []
        for start, end in zip(self.bounds, self.bounds[1:], strict=False):
            self.inputs.append(x)
            for f in self.functions[start:end]:
                x = f(x)
        return x

    def backward(self, g: Any) -> Any:
        """Return the gradient of the input; run each segment again."""
        for start, end, x in reversed(
            list(zip(self.bounds, self.bounds[1:], self.inputs, strict=False))
        ):
            values = [x]
            for f in self.functions[start : end - 1]:
                values.append(f(values[-1]))
            inputs = self.piece("inputs_of", self.functions[start:end], values)
            pairs = list(zip(self.vjps[start:end], inputs, strict=True))
            for vjp, value in self.piece("backwards", pairs):
                g = self.piece("passed", vjp, value, g)
        return g

    def inputs_of(self, functions: list[Any], values: list[Any]) -> list[Any]:
        """Return where the derivative of each function of a segment is taken."""
        return values

    def backwards(self, pairs: list[Any]) -> list[Any]:
        """Return the functions of a segment in the order in which a gradient passes them."""
        return pairs[::-1]

    def passed(self, vjp: Any, x: Any, g: Any) -> Any:
        """Return the gradient of the input of a function."""
        return vjp(x, g)


RECOMPUTE: list[Mistake] = [
    ("wrong_order", {"passed": lambda self, vjp, x, g: vjp(g, x)}),
    ("wrong_sign", {"passed": lambda self, vjp, x, g: -vjp(x, g)}),
    ("gradient_twice", {"passed": lambda self, vjp, x, g: 2 * vjp(x, g)}),
    ("wrong_order", {"backwards": lambda self, pairs: pairs}),
    (
        "wrong_input",
        {"inputs_of": lambda self, fs, values: [f(x) for f, x in zip(fs, values, strict=True)]},
    ),
    ("wrong_input", {"inputs_of": lambda self, fs, values: values[:1] * len(values)}),
    ("wrong_input", {"inputs_of": lambda self, fs, values: values[-1:] * len(values)}),
]


class _Counted:
    """A function of the check that counts how often it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self.function(*arguments)


def _chain(seed: int, n: int, segments: int, counted: bool = True) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        rng = np.random.default_rng(seed)
        # Matrices, since products with element-wise derivatives are the same in any order.
        matrices = rng.uniform(0.5, 1.5, n)[:, None, None] * np.eye(3) + rng.normal(
            scale=0.3, size=(n, 3, 3)
        )
        x, g = rng.normal(size=3), rng.normal(size=3)

        def function(a: np.ndarray) -> Callable[[Any], Any]:
            return lambda x: np.tanh(a @ np.asarray(x)) + 0.1

        def product(a: np.ndarray) -> Callable[[Any, Any], Any]:
            return lambda x, g: a.T @ ((1 - np.tanh(a @ np.asarray(x)) ** 2) * np.asarray(g))

        functions = [_Counted(function(a)) for a in matrices]
        given = [session.give(f"f{i}", f) for i, f in enumerate(functions)]
        vjps = [session.give(f"vjp{i}", product(a)) for i, a in enumerate(matrices)]
        session.make("chain", given, vjps, segments)
        session.call("chain", "forward", x, like=x, label="forward")
        if counted:
            session.note("calls in forward", sum(f.calls for f in functions))
        session.call("chain", "backward", g, like=x, label="backward")
        again = sum(f.calls for f in functions) - n
        # The last function of a segment need not run again; no function runs more than once more.
        if counted:
            session.note("functions run again in backward", float(n - segments <= again <= n))

    return run


def _recompute_scenarios(seed: int) -> list[Scenario]:
    return [
        Scenario("two", "6 functions in 2 segments", 0.4, _chain(seed, 6, 2)),
        Scenario("three", "7 functions in 3 segments", 0.2, _chain(seed, 7, 3)),
        Scenario("one", "4 functions in 1 segment", 0.1, _chain(seed, 4, 1)),
        Scenario("gradient", "the gradient alone, however often functions run", 0.3,
                 _chain(seed, 8, 2, counted=False)),
    ]  # fmt: skip


# Landscapes and curvature.


class Direction(Pieces):
    """A direction with the filter norms of the weights: the reference of "direction"."""

    def __init__(self, pieces: PieceTable | None = None) -> None:
        self.pieces = pieces or {}

    def __call__(self, weights: list[np.ndarray], direction: list[np.ndarray]) -> list[np.ndarray]:
        """Return the direction, scaled filter by filter; zero for what has no filters."""
        return [
            self.piece("scaled", w, d) if w.ndim > 1 else self.piece("of_bias", w, d)
            for w, d in zip(weights, direction, strict=True)
        ]

    def of_bias(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return the direction of a bias."""
        return 0 * d

    def scaled(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return the direction of weights with filters along the first axis."""
        axes = tuple(range(1, w.ndim))
        return d * self.piece(
            "ratio", (w * w).sum(axes, keepdims=True), (d * d).sum(axes, keepdims=True)
        )

    def ratio(self, of_weight: Any, of_direction: Any) -> Any:
        """Return the factor of a filter from two sums of squares."""
        return (of_weight / of_direction) ** 0.5


def _by_layer(self: Direction, w: np.ndarray, d: np.ndarray) -> np.ndarray:
    return d * ((w * w).sum() / (d * d).sum()) ** 0.5


DIRECTION: list[Mistake] = [
    ("missing_root", {"ratio": lambda self, w, d: w / d}),
    ("not_normalized", {"ratio": lambda self, w, d: w**0.5}),
    ("not_normalized", {"ratio": lambda self, w, d: 1 / d**0.5}),
    ("not_normalized", {"scaled": lambda self, w, d: d}),
    ("hidden_broadcast", {"scaled": _by_layer}),
    ("bias_moved", {"of_bias": lambda self, w, d: d}),
    ("bias_moved", {"of_bias": _by_layer}),
]  # fmt: skip


def _directions(seed: int, shapes: list[tuple[int, ...]]) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        rng = np.random.default_rng(seed)
        weights = [rng.normal(size=shape) * 2 for shape in shapes]
        direction = [rng.normal(size=shape) for shape in shapes]
        session.call("", "__call__", weights, direction, like=weights, label="direction")

    return run


def _direction_scenarios(seed: int) -> list[Scenario]:
    return [
        Scenario("layer", "a layer and its bias", 0.5, _directions(seed, [(3, 4), (3,)])),
        Scenario("filters", "filters of images", 0.3, _directions(seed, [(2, 3, 2, 2), (2,)])),
        Scenario("network", "several layers", 0.2, _directions(seed, [(4, 2), (4,), (1, 4), (1,)])),
    ]


class Curvature(Pieces):
    """The largest curvature by power iteration: the reference of "curvature"."""

    def __init__(self, pieces: PieceTable | None = None) -> None:
        self.pieces = pieces or {}

    def __call__(self, product: Any, start: np.ndarray, steps: int) -> Any:
        """Return the Rayleigh quotient after some products with the Hessian."""
        v = self.piece("normalized", start)
        for _ in range(int(steps)):
            v = self.piece("again", product(v))
        return self.piece("quotient", v, product(v))

    def normalized(self, v: Any) -> Any:
        """Return a vector of length 1."""
        return v / (v * v).sum() ** 0.5

    def again(self, v: Any) -> Any:
        """Return a product with the Hessian, of length 1."""
        return self.piece("normalized", v)

    def quotient(self, v: Any, hv: Any) -> Any:
        """Return the curvature along a vector."""
        return (v * hv).sum()


def _rayleigh(self: Curvature, v: Any, hv: Any) -> Any:
    return (v * hv).sum() / (v * v).sum() ** 0.5


CURVATURE: list[Mistake] = [
    ("wrong_sign", {"quotient": lambda self, v, hv: (hv * hv).sum() ** 0.5}),
    ("wrong_sign", {"quotient": lambda self, v, hv: abs((v * hv).sum())}),
    ("missing_root", {"quotient": lambda self, v, hv: (hv * hv).sum()}),
    ("not_normalized", {"normalized": lambda self, v: v}),
    ("not_normalized", {"again": lambda self, v: v}),
    ("not_normalized", {"again": lambda self, v: v, "quotient": _rayleigh}),
    ("not_normalized", {"normalized": lambda self, v: v / (v * v).sum()}),
    ("not_normalized", {"normalized": lambda self, v: v / abs(v).max()}),
]


def _iteration(seed: int, curvatures: list[float], steps: int) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        rng = np.random.default_rng(seed)
        axes, _ = np.linalg.qr(rng.normal(size=(len(curvatures), len(curvatures))))
        hessian = (axes * np.asarray(curvatures)) @ axes.T
        product = session.give("product", lambda v: hessian @ np.asarray(v))
        start = rng.normal(size=len(curvatures))
        session.call("", "__call__", product, start, steps, like=0.0, label=f"{steps} products")

    return run


def _curvature_scenarios(seed: int) -> list[Scenario]:
    return [
        Scenario("bowl", "a bowl", 0.4, _iteration(seed, [4.0, 1.0, 0.5], 6)),
        Scenario("saddle", "the largest curvature is negative", 0.4,
                 _iteration(seed, [-5.0, 2.0, 1.0, 0.3], 8)),
        Scenario("few", "two products", 0.2, _iteration(seed, [3.0, 2.0, 1.0], 2)),
    ]  # fmt: skip


INSTRUMENTS: list[Check] = [
    Check(
        "recorder", "Recording a run",
        "Recorder(every=1) with record(step, params), steps() and series(i), one row a step",
        _recorder_scenarios, lambda pieces: lambda every=1: Recorder(every, pieces), RECORDER,
        {"copied": "what is kept of the parameters", "due": "which steps are kept"},
    ),
    Check(
        "recompute", "A chain that computes again",
        "Recompute(functions, vjps, segments) with forward(x) and backward(g); vjps[i](x, g) takes "
        "the input of functions[i]",
        _recompute_scenarios,
        lambda pieces: lambda fs, vjps, segments: Recompute(fs, vjps, segments, pieces),
        RECOMPUTE,
        {
            "passed": "the gradient that is passed on",
            "inputs_of": "the numbers at which derivatives are taken",
            "backwards": "the order of the functions",
        },
    ),
    Check(
        "direction", "A direction of a landscape",
        "direction(weights, random) returns a list: filter by filter as long as the weights",
        _direction_scenarios, lambda pieces: Direction(pieces), DIRECTION,
        {"ratio": "the factor of a filter", "scaled": "the filters", "of_bias": "the biases"},
    ),
    Check(
        "curvature", "The largest curvature",
        "curvature(product, start, steps): power iteration with product(v), the Hessian times v",
        _curvature_scenarios, lambda pieces: Curvature(pieces), CURVATURE,
        {"quotient": "the curvature along the vector", "normalized": "the length of the vector"},
    ),
]  # fmt: skip
