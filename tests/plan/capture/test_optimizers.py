"""Captured steps equal eager ones to the bit: every optimizer, on a multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import optlab as ol
from tests.optimizer.helpers import EACH
from tests.plan.capture.twins import (
    RUNS_PER_PLAN,
    counted,
    equal_runs,
    program,
    run,
    same,
    train_step,
)

#: Constructors beside those of all tests: noise, schedules inside a rule, rates of their own.
MORE = {
    "Dpsgd with noise": lambda **common: ol.optimizer.Dpsgd(0.05, sigma=0.1, **common),
    "Adam in lazy mode": lambda **common: ol.optimizer.Adam(0.02, lazy_mode=True, **common),
    "AdamW without biases": lambda **common: ol.optimizer.AdamW(
        0.02, apply_decay_param_fun=lambda name: "w_0" in name, **common
    ),
    "AdamW by layers": lambda **common: ol.optimizer.AdamW(
        0.02, lr_ratio=lambda p: 0.5 if p.ndim == 1 else 1.0, **common
    ),
    "Lamb without biases": lambda **common: ol.optimizer.Lamb(
        0.02, exclude_from_weight_decay_fn=lambda p: p.ndim == 1, **common
    ),
    "RAdam that rectifies soon": lambda **common: ol.optimizer.RAdam(0.02, beta2=0.8, **common),
    "fluid LarsMomentum": lambda **common: ol.fluid.optimizer.LarsMomentum(0.1, 0.5, **common),
}

ALL = EACH | MORE


@pytest.mark.parametrize("name", ALL)
def test_200_steps_of_every_optimizer_are_those_of_eager_running(name: str) -> None:
    build = partial(program, "mlp", ALL[name])
    captured = equal_runs(build)
    assert len(captured.plans) == 2  # the smaller last batch has a plan of its own


@pytest.mark.parametrize("name", ALL)
def test_clipped_and_decayed_steps_of_every_optimizer(name: str) -> None:
    common: dict[str, Any] = {"grad_clip": ol.nn.ClipGradByGlobalNorm(0.5), "weight_decay": 0.01}
    if name in MORE and "AdamW" in name:
        del common["weight_decay"]
    equal_runs(partial(program, "mlp", ALL[name], **common), 40)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Lamb", "Muon", "Rprop"])
def test_the_function_runs_to_be_captured_and_then_no_more(name: str) -> None:
    build = partial(program, "mlp", ALL[name])
    eager, _ = run(build, 60)
    with counted(build().step) as runs:
        found, captured = run(build, 60, how=ol.capture)
    same(found, eager)
    assert 1 <= runs[0] <= RUNS_PER_PLAN * len(captured.plans) == RUNS_PER_PLAN * 2


def test_the_body_of_an_eager_step_is_counted() -> None:
    build = partial(program, "mlp", EACH["SGD"])
    with counted(build().step) as runs:
        run(build, 7)
    assert runs == [7]


WIDE: dict[str, Callable[..., Any]] = {name: EACH[name] for name in ("SGD", "Adam", "Lamb", "Muon")}


@pytest.mark.parametrize("name", WIDE)
def test_steps_large_enough_for_blocks_and_threads(name: str) -> None:
    """Eager steps over many parameters are fused into blocks: the same bits are asked of plans."""

    def build() -> Any:
        p = program("mlp", WIDE[name])
        nn = ol.nn
        p.model = nn.Sequential(
            nn.Linear(6, 500), nn.Tanh(), nn.Linear(500, 150), nn.Linear(150, 4)
        )
        p.optimizer = WIDE[name](parameters=p.model.parameters())
        p.step = train_step(p.model, p.optimizer)
        return p

    equal_runs(build, 6)
