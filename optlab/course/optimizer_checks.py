"""The checks of the eight optimizers: how their objects are made, and which steps they take.

The settings are far from the defaults (an epsilon of 0.3, betas of 0.6 and 0.8), so that each
mistake moves the parameters by far more than rounding does. The gradients shrink from step to step,
for averages of rising and of falling sizes differ in other terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.course.averaging_rules import EMA, LOOKAHEAD, LookAhead, MovingAverage
from optlab.course.moment_rules import ADAM, ADAMW, RMSPROP, RMSPROP_PIECES, Moments
from optlab.course.plan import Check, Scenario
from optlab.course.sessions import Session
from optlab.course.velocity_rules import MOMENTUM_ALONE, NESTEROV, SGD, Mistake, Velocity

Settings = dict[str, Any]
Pieces = dict[str, Callable[..., Any]]
Shapes = list[tuple[int, ...]]

#: One shape broadcasts into the next: state that is shared between parameters then raises nothing.
SHAPES: Shapes = [(4,), (1, 4), (3, 4), ()]

STEPS, FEW_STEPS, MANY_STEPS = 12, 5, 60


def draws(seed: int, name: str, shapes: Shapes, steps: int, scale: float = 1.0) -> Any:
    """Return start and gradients: of all signs, between 0.3 and 2, shrinking."""
    rng = np.random.default_rng([seed, *name.encode()])

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.uniform(0.3, 2.0, shape))

    start = [draw(shape) for shape in shapes]
    gradients = [
        [np.asarray(draw(shape) * scale * 0.85**t) for shape in shapes] for t in range(steps)
    ]
    return start, gradients


def steps(
    session: Session, key: str, start: list[np.ndarray], gradients: Any, said: str = ""
) -> list[np.ndarray]:
    """Take steps with an object and return the parameters."""
    params = start
    for t, grads in enumerate(gradients):
        params = session.call(key, "step", params, grads, like=params, label=f"{said}step {t + 1}")
    return params


def varied(settings: Settings, seed: int) -> Settings:
    """Return settings of a seed: up to 8 % from the given ones, which are those of the seed 0."""
    if seed == 0:
        return settings
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.92, 1.08, len(settings))
    return {
        name: value if isinstance(value, int) else round(value * float(factor), 3)
        for (name, value), factor in zip(settings.items(), factors, strict=True)
    }


def _path(
    seed: int, shapes: Shapes, count: int, settings: Settings, scale: float = 1.0
) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        session.make("optimizer", **settings)
        # Scenarios of the same seed and shapes begin alike: those that differ in one setting.
        start, gradients = draws(seed, str(shapes), shapes, count, scale)
        steps(session, "optimizer", start, gradients)

    return run


def _in_order(seed: int, settings: Settings) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        session.make("optimizer", *settings.values())
        start, gradients = draws(seed, "order", [(2,)], FEW_STEPS)
        steps(session, "optimizer", start, gradients)

    return run


def _scenarios(settings: Settings, others: Settings, needed: tuple[str, ...]) -> Any:
    """Return the function of scenarios of an optimizer with settings, and others of each."""

    def scenarios(seed: int) -> list[Scenario]:
        most, rest = varied(settings, seed), varied(others, seed)
        told = {name: most[name] for name in needed}
        return [
            Scenario("first", f"{STEPS} steps of one parameter", 0.3,
                     _path(seed, [(3,)], STEPS, most)),
            Scenario("shapes", "parameters of several shapes, numbers among them", 0.2,
                     _path(seed, SHAPES, STEPS, most)),
            Scenario("defaults", f"{MANY_STEPS} steps with the default settings", 0.15,
                     _path(seed, [(2,)], MANY_STEPS, told)),
            Scenario("tiny", "tiny gradients", 0.05,
                     _path(seed, [(2,)], STEPS, most, 1e-3)),
            Scenario("order", "settings in the order of the signature", 0.05,
                     _in_order(seed, most)),
            *(
                Scenario(name, f"another {name}", 0.15 / len(rest),
                         _path(seed, [(3,)], FEW_STEPS, {**most, name: value}), varies=name)
                for name, value in rest.items()
            ),
        ]  # fmt: skip

    return scenarios


def _inner(seed: int) -> Velocity:
    return Velocity(0.1 + 0.01 * (seed % 3), 0.5)


def _lookahead_path(
    seed: int, shapes: Shapes, count: int, settings: Settings, ordered: bool = False
) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        inner = session.give("inner", _inner(seed))
        if ordered:
            session.make("optimizer", inner, *settings.values())
        else:
            session.make("optimizer", inner, **settings)
        start, gradients = draws(seed, str(shapes), shapes, count)
        steps(session, "optimizer", start, gradients)

    return run


def _lookahead_scenarios(seed: int) -> list[Scenario]:
    most = varied({"alpha": 0.3, "k": 4}, seed)
    return [
        Scenario("first", "13 steps of one parameter", 0.35,
                 _lookahead_path(seed, [(3,)], 13, most)),
        Scenario("shapes", "parameters of several shapes, numbers among them", 0.2,
                 _lookahead_path(seed, SHAPES, 9, most)),
        Scenario("defaults", "16 steps with the default settings", 0.15,
                 _lookahead_path(seed, [(2,)], 16, {})),
        Scenario("order", "settings in the order of the signature", 0.05,
                 _lookahead_path(seed, [(2,)], 7, {"alpha": 0.4, "k": 3}, ordered=True)),
        Scenario("alpha", "another alpha", 0.1,
                 _lookahead_path(seed, [(3,)], 9, {**most, "alpha": 0.8}), varies="alpha"),
        Scenario("k", "another k", 0.05,
                 _lookahead_path(seed, [(3,)], 13, {**most, "k": 3}), varies="k"),
    ]  # fmt: skip


def _ema_path(
    seed: int, shapes: Shapes, count: int, settings: Settings, ordered: bool = False
) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        if ordered:
            session.make("average", *settings.values())
        else:
            session.make("average", **settings)
        start, weights = draws(seed, str(shapes), shapes, count)
        for t, params in enumerate([start, *weights]):
            session.call("average", "update", params, label=f"update {t + 1}")
            if t != 2:  # an average that is asked for changes nothing, nor does one that is not
                session.call(
                    "average", "average", like=params, label=f"average after update {t + 1}"
                )

    return run


def _ema_scenarios(seed: int) -> list[Scenario]:
    most = varied({"decay": 0.7}, seed)
    return [
        Scenario("first", "9 updates of one parameter", 0.4,
                 _ema_path(seed, [(3,)], 8, most)),
        Scenario("shapes", "parameters of several shapes, numbers among them", 0.25,
                 _ema_path(seed, SHAPES, 6, most)),
        Scenario("defaults", "13 updates with the default decay", 0.1,
                 _ema_path(seed, [(2,)], 12, {})),
        Scenario("order", "the decay without its name", 0.05,
                 _ema_path(seed, [(2,)], 4, {"decay": 0.6}, ordered=True)),
        Scenario("decay", "another decay", 0.1,
                 _ema_path(seed, [(3,)], 8, {"decay": 0.4}), varies="decay"),
    ]  # fmt: skip


def _sgd(pieces: Pieces) -> Any:
    return lambda learning_rate: Velocity(learning_rate, pieces=pieces)


def _momentum(nesterov: bool) -> Any:
    def reference(pieces: Pieces) -> Any:
        return lambda learning_rate, momentum=0.9: Velocity(
            learning_rate, momentum, nesterov, pieces
        )

    return reference


def _rmsprop(pieces: Pieces) -> Any:
    return lambda learning_rate, rho=0.95, epsilon=1e-6: Moments(
        learning_rate, 0.0, rho, epsilon, pieces={**RMSPROP_PIECES, **pieces}
    )


def _adam(pieces: Pieces) -> Any:
    return lambda learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8: Moments(
        learning_rate, beta1, beta2, epsilon, pieces=pieces
    )


def _adamw(pieces: Pieces) -> Any:
    return lambda learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01: (
        Moments(learning_rate, beta1, beta2, epsilon, weight_decay, pieces)
    )


TERMS = {
    "gradient": "the gradient",
    "repeats": "the update",
    "velocity": "the velocity",
    "direction": "the direction of the step",
    "moved": "the step",
    "after": "the step",
    "first": "the first moment",
    "second": "the second moment",
    "first_corrected": "the corrected first moment",
    "second_corrected": "the corrected second moment",
    "exponent": "the step count of the corrections",
    "count_parameter": "the step count of the corrections",
    "quotient": "the denominator",
    "decayed": "the decay",
    "begin": "what is kept between steps",
    "slot": "what is kept for each parameter",
    "started": "the start of the slow weights",
    "due": "the step of the synchronization",
    "mixed": "the average",
    "inner_step": "the inner step",
    "corrected": "the correction of the average",
    "taken": "what is averaged",
}

_STEP = "step(params, grads) on lists of arrays returns a list of new arrays"
_MOMENTS = {"learning_rate": 0.2, "beta1": 0.6, "beta2": 0.8, "epsilon": 0.3}
_OTHER_MOMENTS = {"learning_rate": 0.25, "beta1": 0.3, "beta2": 0.5, "epsilon": 0.9}


def _check(
    name: str, title: str, made: str, reference: Any, mistakes: list[Mistake], scenarios: Any
) -> Check:
    return Check(name, title, f"{made}; {_STEP}", scenarios, reference, mistakes, TERMS)


OPTIMIZERS: list[Check] = [
    _check(
        "sgd", "Gradient descent", "SGD(learning_rate)", _sgd, SGD,
        _scenarios({"learning_rate": 0.2}, {"learning_rate": 0.25}, ("learning_rate",)),
    ),
    _check(
        "momentum", "Momentum", "Momentum(learning_rate, momentum=0.9)",
        _momentum(False), MOMENTUM_ALONE,
        _scenarios(
            {"learning_rate": 0.2, "momentum": 0.7}, {"learning_rate": 0.25, "momentum": 0.4},
            ("learning_rate",),
        ),
    ),
    _check(
        "nesterov", "Nesterov's momentum", "Nesterov(learning_rate, momentum=0.9)",
        _momentum(True), NESTEROV,
        _scenarios(
            {"learning_rate": 0.2, "momentum": 0.7}, {"learning_rate": 0.25, "momentum": 0.4},
            ("learning_rate",),
        ),
    ),
    _check(
        "rmsprop", "RMSProp", "RMSProp(learning_rate, rho=0.95, epsilon=1e-6)", _rmsprop, RMSPROP,
        _scenarios(
            {"learning_rate": 0.2, "rho": 0.8, "epsilon": 0.3},
            {"learning_rate": 0.25, "rho": 0.5, "epsilon": 0.9},
            ("learning_rate",),
        ),
    ),
    _check(
        "adam", "Adam", "Adam(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8)",
        _adam, ADAM, _scenarios(_MOMENTS, _OTHER_MOMENTS, ()),
    ),
    _check(
        "adamw", "AdamW",
        "AdamW(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01)",
        _adamw, ADAMW,
        _scenarios(
            {**_MOMENTS, "weight_decay": 0.4}, {**_OTHER_MOMENTS, "weight_decay": 0.9}, ()
        ),
    ),
    _check(
        "lookahead", "LookAhead", "LookAhead(inner, alpha=0.5, k=5)",
        lambda pieces: lambda inner, alpha=0.5, k=5: LookAhead(inner, alpha, k, pieces),
        LOOKAHEAD, _lookahead_scenarios,
    ),
    Check(
        "ema", "An exponential moving average of weights",
        "EMA(decay=0.999); update(params) takes weights in, average() returns a list of arrays",
        _ema_scenarios, lambda pieces: lambda decay=0.999: MovingAverage(decay, pieces), EMA, TERMS,
    ),
]  # fmt: skip
