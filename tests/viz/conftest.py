"""Stand-ins for races: real paths, from plain NumPy, with the attributes of real results."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest


@dataclass
class Surface:
    name: str
    title: str
    function: object
    gradient: object
    domain: tuple
    start: tuple
    minima: list = field(default_factory=list)
    minimum_value: float | None = None
    dimension: int = 2
    formula: str = ""
    kind: str = "surface"

    def values(self, x, y):
        return self.function(x, y)


def rosenbrock():
    return Surface(
        name="rosenbrock",
        title="Rosenbrock valley",
        function=lambda x, y: (1 - x) ** 2 + 100 * (y - x * x) ** 2,
        gradient=lambda x, y: np.array([-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)]),
        domain=((-2.0, 2.0), (-1.0, 3.0)),
        start=(-0.35, 1.75),
        minima=[(1.0, 1.0)],
        minimum_value=0.0,
    )


def himmelblau():
    def gradient(x, y):
        first, second = x * x + y - 11, x + y * y - 7
        return np.array([4 * x * first + 2 * second, 2 * first + 4 * y * second])

    return Surface(
        name="himmelblau",
        title="Himmelblau's four minima",
        function=lambda x, y: (x * x + y - 11) ** 2 + (x + y * y - 7) ** 2,
        gradient=gradient,
        domain=((-5.0, 5.0), (-5.0, 5.0)),
        start=(-0.5, -1.2),
        minima=[(3.0, 2.0), (-2.805118, 3.131312), (-3.77931, -3.283186), (3.584428, -1.848127)],
        minimum_value=0.0,
    )


def quadratic():
    return Surface(
        name="quadratic",
        title="Long quadratic, condition number 100",
        function=lambda x, y: 0.5 * (x * x + 100 * y * y) - 3,
        gradient=lambda x, y: np.array([x, 100 * y]),
        domain=((-10.0, 10.0), (-4.0, 4.0)),
        start=(-8.0, 2.0),
        minima=[(0.0, 0.0)],
        minimum_value=-3.0,
    )


def descent(rule, rate):
    """Return a step function from point, gradient, state and step number to the new point."""

    def step(p, g, s, t):
        if rule == "SGD":
            return p - rate * g
        if rule == "Momentum":
            s["v"] = 0.9 * s.get("v", 0) + g
            return p - rate * s["v"]
        if rule == "RMSProp":
            s["v"] = 0.9 * s.get("v", 0) + 0.1 * g * g
            return p - rate * g / (np.sqrt(s["v"]) + 1e-8)
        s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
        s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
        root = np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8
        return p - rate * s["m"] / (1 - 0.9**t) / root

    return step


def run(surface, name, rule, rate, steps):
    point, state = np.array(surface.start, dtype=float), {}
    points, losses, stopped = [point], [], None
    final = float(surface.function(*point))
    advance = descent(rule, rate)
    with np.errstate(all="ignore"):
        for t in range(1, steps + 1):
            losses.append(final)
            point = advance(point, surface.gradient(*point), state, t)
            points.append(point)
            final = float(surface.function(*point))
            if not np.isfinite(final):
                stopped = f"diverged at step {t}: the loss is not finite"
                break
    taken = len(losses)
    trace = SimpleNamespace(
        name=name,
        step=np.arange(1, taken + 1),
        loss=np.array(losses),
        learning_rate=np.full(taken, rate),
        parameters={"point": np.array(points)},
        settings={"class": rule, "learning_rate": rate},
        stopped=stopped,
    )
    return trace, final


def surface_race(surface, runs, steps=500):
    """Return a stand-in for a race; `runs`: for each name, the rule and its rate."""
    results = {name: run(surface, name, *how, steps) for name, how in runs.items()}
    return SimpleNamespace(
        problem=surface,
        traces={name: trace for name, (trace, _) in results.items()},
        steps=steps,
        seed=0,
        final_loss={name: final for name, (_, final) in results.items()},
        accuracy={},
    )


def network_race(accuracy, steps=400, diverged=()):
    random = np.random.default_rng(3)
    traces, final = {}, {}
    for place, name in enumerate(accuracy):
        t = np.arange(1, steps + 1)
        loss = 2.3 * np.exp(-t / (30 + 30 * place)) + 0.03 + 0.02 * place
        loss = loss * np.exp(0.35 * random.standard_normal(steps))
        stopped = None
        if name in diverged:
            t, loss = t[:12], np.append(np.exp(np.arange(11.0)), np.inf)
            stopped = "diverged at step 12: the loss is not finite"
        traces[name] = SimpleNamespace(
            name=name,
            step=t,
            loss=loss,
            learning_rate=np.full(len(t), 0.01),
            parameters={},
            settings={"class": name, "learning_rate": 0.01},
            stopped=stopped,
        )
        final[name] = float(loss[-1])
    problem = SimpleNamespace(
        kind="network", name="digits_mlp", title="Handwritten digits, network 64-32-10"
    )
    return SimpleNamespace(
        problem=problem,
        traces=traces,
        steps=steps,
        seed=0,
        final_loss=final,
        accuracy=dict(accuracy),
    )


FOUR = {
    "SGD": ("SGD", 0.002),
    "Momentum": ("Momentum", 0.0005),
    "RMSProp": ("RMSProp", 0.01),
    "Adam": ("Adam", 0.2),
}


@pytest.fixture(scope="session")
def rosenbrock_race():
    return surface_race(rosenbrock(), FOUR)


@pytest.fixture(scope="session")
def diverging_race():
    return surface_race(rosenbrock(), {**FOUR, "SGD": ("SGD", 0.02)})


@pytest.fixture(scope="session")
def four_minima_race():
    return surface_race(himmelblau(), FOUR)


@pytest.fixture(scope="session")
def quadratic_race():
    return surface_race(quadratic(), {**FOUR, "SGD": ("SGD", 0.0195)})


@pytest.fixture(scope="session")
def digits_race():
    accuracy = {"SGD": 0.889, "Momentum": 0.961, "RMSProp": 0.975, "Adam": 0.978}
    return network_race(accuracy)


@pytest.fixture(scope="session")
def broken_network_race():
    return network_race({"SGD": float("nan"), "Adam": 0.978}, diverged=["SGD"])
