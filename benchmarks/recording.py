"""What a recording costs: the same run with `ol.record` around it and without, in one process.

Ratios near 1 are asked for, and two processes differ by more than that. So one model and one
optimizer take turns in one process: so many steps without a recorder, as many inside of
``with ol.record(...)``, which is opened and closed in the turn. The ratio of a pair of neighboring
turns counts; the median of all pairs is reported, with its quartiles.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.report import duration
from benchmarks.runner import Spread

NAME = "recording"
TITLE = "training steps and 2-D paths inside of ol.record, beside the same without it"

PAIRS = 31
"""Pairs of turns; each second one begins with the recorded turn."""
TURN_SECONDS = 0.05


class Case(NamedTuple):
    """One run, and how it is recorded.

    Attributes
    ----------
    name : str
    build : callable
        Returns the optimizer, and a function that takes one step.
    probes : str
    bound : float
        The most times the time without a recorder.
    """

    name: str
    build: Callable[[], tuple[Any, Callable[[], object]]]
    probes: str
    bound: float


def mlp(capture: bool) -> tuple[Any, Callable[[], object]]:
    """Return Adam on the network of 32x64-32-32-10, and its step."""
    import optlab as ol
    from benchmarks.rows.captured_step import SMALL, training

    optimizer, step, x, y = training(SMALL)
    run = ol.capture(step) if capture else step
    return optimizer, lambda: run(x, y)


def gpt(capture: bool) -> tuple[Any, Callable[[], object]]:
    """Return AdamW on a GPT of two blocks (width 64, 4 heads) and 8 texts of 32, and its step."""
    import numpy as np

    import optlab as ol

    ol.seed(0)
    model = ol.lab.models.GPT(65, 32, width=64, depth=2, heads=4)
    optimizer = ol.optimizer.AdamW(1e-3, parameters=model.parameters())
    tokens = np.random.default_rng(0).integers(0, 65, (8, 33))
    x, y = ol.to_tensor(tokens[:, :-1]), ol.to_tensor(tokens[:, 1:].reshape(-1))

    def step(x: Any, y: Any) -> Any:
        loss = ol.nn.functional.cross_entropy(model(x).reshape([-1, 65]), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = ol.capture(step) if capture else step
    return optimizer, lambda: run(x, y)


def path() -> tuple[Any, Callable[[], object]]:
    """Return Adam on the Rosenbrock function, and its step."""
    import numpy as np

    import optlab as ol

    point = ol.Parameter(np.array([-1.5, 2.0]), name="point")
    optimizer = ol.optimizer.Adam(1e-4, parameters=[point])

    def step() -> None:
        x, y = point[0], point[1]
        across = y - x * x
        ((1 - x) ** 2 + 100 * across * across).backward()
        optimizer.step()
        optimizer.clear_grad()

    return optimizer, step


CASES = (
    Case("light, MLP, eager", lambda: mlp(False), "light", 1.05),
    Case("light, MLP, captured", lambda: mlp(True), "light", 1.05),
    Case("light, GPT, eager", lambda: gpt(False), "light", 1.05),
    Case("light, GPT, captured", lambda: gpt(True), "light", 1.05),
    Case("toy, 2-D path", path, "toy", 1.3),
)


def ratio_of(case: Case, pairs: int = PAIRS) -> tuple[Spread, Spread]:
    """Return the seconds of a step without a recorder, and the ratio of a step with one."""
    import optlab as ol

    optimizer, step = case.build()

    def plain(steps: int) -> float:
        started = perf_counter()
        for _ in range(steps):
            step()
        return perf_counter() - started

    def recorded(steps: int) -> float:
        started = perf_counter()
        with ol.record(optimizer, probes=case.probes):
            for _ in range(steps):
                step()
        return perf_counter() - started

    plain(300)  # until steps are bound, and kernels compiled
    recorded(50)
    until = perf_counter() + 10 * TURN_SECONDS
    while perf_counter() < until:
        plain(50)
    steps = max(20, round(TURN_SECONDS / (plain(100) / 100)))
    seconds, ratios = [], []
    was_on = gc.isenabled()
    try:
        for number in range(pairs):
            gc.collect()
            gc.disable()
            if number % 2:
                with_recorder, without = recorded(steps), plain(steps)
            else:
                without, with_recorder = plain(steps), recorded(steps)
            seconds.append(without / steps)
            ratios.append(with_recorder / without)
    finally:
        if was_on:
            gc.enable()
    return Spread.of(seconds), Spread.of(ratios)


def measure(python: str = "") -> list[dict[str, Any]]:
    """Measure all cases in this process."""
    found = []
    for case in CASES:
        seconds, ratio = ratio_of(case)
        found.append(
            {"case": case.name, "seconds": seconds.median, "ratio": ratio.median,
             "lower": ratio.lower, "upper": ratio.upper, "bound": case.bound}
        )  # fmt: skip
    return found


def as_table(found: list[dict[str, Any]]) -> str:
    """Format the cases for the terminal."""
    lines = [f"{NAME}: {TITLE}", f"  {'':<22}{'a step without':>16}{'with it, times':>26}"]
    for one in found:
        spread = f"{one['ratio']:.3f} ({one['lower']:.3f} to {one['upper']:.3f})"
        met = "met" if one["ratio"] <= one["bound"] else "missed"
        lines.append(
            f"  {one['case']:<22}{duration(one['seconds']):>16}{spread:>26}"
            f"  target at most {one['bound']:g}: {met}"
        )
    return "\n".join(lines)
