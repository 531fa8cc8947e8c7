"""Descriptions of schedules, from which ours and Paddle's are built and run alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Case = dict[str, Any]


def of(cls: str, **kwargs: Any) -> Case:
    """Describe a schedule."""
    return {"class": cls, "kwargs": kwargs}


def expr(text: str) -> Case:
    """Describe a function of `x` or `epoch`."""
    return {"expr": text}


class Expression:
    """A function defined by its text; unlike a lambda it can be pickled."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, x: float) -> Any:
        return eval(self.text, {"math": math}, {"x": x, "epoch": x})


def make(module: Any, case: Case, **more: Any) -> Any:
    """Build a schedule of `module` (``ol.optimizer.lr`` or Paddle's) from its description."""
    kwargs = {name: _value(module, value) for name, value in case["kwargs"].items()}
    return getattr(module, case["class"])(**kwargs, **more)


def _value(module: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return Expression(value["expr"]) if "expr" in value else make(module, value)
    return value


def drive(schedule: Any, program: dict[str, Any]) -> list[float]:
    """Run a program; return the rates after construction and after every step."""
    rates = [schedule()]
    for _ in range(program.get("steps", 0)):
        schedule.step()
        rates.append(schedule())
    for epoch in program.get("epochs", ()):
        schedule.step(epoch)
        rates.append(schedule())
    for metric in program.get("metrics", ()):
        schedule.step(metric)
        rates.append(schedule())
    return [float(rate) for rate in rates]


WAVE = expr("0.5 * (1 + math.sin(x * math.pi / 2))")

#: Settings of every class that counts epochs.
SETTINGS: list[Case] = [
    of("NoamDecay", d_model=64, warmup_steps=30),
    of("NoamDecay", d_model=0.01, warmup_steps=100, learning_rate=2.0),
    of("PiecewiseDecay", boundaries=[3, 6, 90], values=[0.1, 0.2, 0.05, 0.0]),
    of("PiecewiseDecay", boundaries=[0], values=[1.0, 0.5]),
    of("NaturalExpDecay", learning_rate=0.5, gamma=0.1),
    of("NaturalExpDecay", learning_rate=1, gamma=3.7),
    of("InverseTimeDecay", learning_rate=0.5, gamma=0.1),
    of("InverseTimeDecay", learning_rate=0.5, gamma=0),
    of("PolynomialDecay", learning_rate=0.5, decay_steps=120),
    of("PolynomialDecay", learning_rate=0.5, decay_steps=120, power=0.5, end_lr=0.01),
    of("PolynomialDecay", learning_rate=0.5, decay_steps=17, power=2.0, cycle=True),
    of("PolynomialDecay", learning_rate=0.1, decay_steps=40, power=3.0, end_lr=0.4, cycle=True),
    of("LinearWarmup", learning_rate=0.3, warmup_steps=25, start_lr=0.0, end_lr=0.3),
    of("LinearWarmup", learning_rate=0.3, warmup_steps=1, start_lr=0.1, end_lr=0.7),
    of("LinearWarmup", learning_rate=of("StepDecay", learning_rate=0.5, step_size=9),
       warmup_steps=20, start_lr=0.0, end_lr=0.5),
    of("LinearWarmup", learning_rate=of("CosineAnnealingDecay", learning_rate=0.5, T_max=30),
       warmup_steps=7, start_lr=0.01, end_lr=0.5),
    of("LinearWarmup", learning_rate=of("LinearLR", learning_rate=0.5, total_steps=50),
       warmup_steps=11, start_lr=0.01, end_lr=0.5),
    of("LinearWarmup",
       learning_rate=of("LinearWarmup", learning_rate=of("ExponentialDecay", learning_rate=1.0,
                                                         gamma=0.97),
                        warmup_steps=10, start_lr=0.5, end_lr=1.0),
       warmup_steps=10, start_lr=0.0, end_lr=0.5),
    of("ExponentialDecay", learning_rate=0.5, gamma=0.9),
    of("ExponentialDecay", learning_rate=0.5, gamma=0.0625),
    of("MultiStepDecay", learning_rate=0.5, milestones=[2, 4, 6, 125], gamma=0.8),
    of("MultiStepDecay", learning_rate=0.5, milestones=[30, 80]),
    of("StepDecay", learning_rate=0.5, step_size=5),
    of("StepDecay", learning_rate=0.5, step_size=1, gamma=0.97),
    of("LambdaDecay", learning_rate=0.5, lr_lambda=expr("0.95 ** epoch")),
    of("LambdaDecay", learning_rate=0.5, lr_lambda=expr("abs(math.sin(epoch))")),
    of("MultiplicativeDecay", learning_rate=0.5, lr_lambda=expr("0.95")),
    of("MultiplicativeDecay", learning_rate=0.5, lr_lambda=expr("0.9 if epoch % 3 else 1.05")),
    of("CosineAnnealingDecay", learning_rate=0.5, T_max=100),
    of("CosineAnnealingDecay", learning_rate=0.5, T_max=7, eta_min=0.1),
    of("CosineAnnealingDecay", learning_rate=0.5, T_max=1),
    of("CosineAnnealingDecay", learning_rate=0.1, T_max=16, eta_min=0.3),
    of("CosineAnnealingWarmRestarts", learning_rate=0.5, T_0=10),
    of("CosineAnnealingWarmRestarts", learning_rate=0.5, T_0=5, T_mult=2, eta_min=0.01),
    of("CosineAnnealingWarmRestarts", learning_rate=0.5, T_0=1, T_mult=3),
    of("OneCycleLR", max_learning_rate=1.0, total_steps=250),
    of("OneCycleLR", max_learning_rate=1.0, total_steps=251, anneal_strategy="linear",
       divide_factor=10, end_learning_rate=0.01),
    of("OneCycleLR", max_learning_rate=1.0, total_steps=250, three_phase=True, phase_pct=0.4),
    of("OneCycleLR", max_learning_rate=0.2, total_steps=255, three_phase=True, phase_pct=0.13,
       anneal_strategy="linear", divide_factor=2),
    of("OneCycleLR", max_learning_rate=1.0, total_steps=250, phase_pct=0.0),
    of("CyclicLR", base_learning_rate=0.1, max_learning_rate=0.9, step_size_up=15),
    of("CyclicLR", base_learning_rate=0.1, max_learning_rate=0.9, step_size_up=15,
       step_size_down=4, mode="triangular2"),
    of("CyclicLR", base_learning_rate=0, max_learning_rate=0.9, step_size_up=3,
       step_size_down=22, mode="exp_range", exp_gamma=0.99),
    of("CyclicLR", base_learning_rate=0.1, max_learning_rate=0.9, step_size_up=6, scale_fn=WAVE),
    of("CyclicLR", base_learning_rate=0.1, max_learning_rate=0.9, step_size_up=6, scale_fn=WAVE,
       scale_mode="iterations"),
    of("LinearLR", learning_rate=0.5, total_steps=100),
    of("LinearLR", learning_rate=0.5, total_steps=33, start_factor=1.0, end_factor=0.2),
    of("LinearLR", learning_rate=0.5, total_steps=1, start_factor=0.1, end_factor=0.9),
]  # fmt: skip

#: Settings of the class that reads metrics.
PLATEAUS: list[Case] = [
    of("ReduceOnPlateau", learning_rate=0.5),
    of("ReduceOnPlateau", learning_rate=0.5, patience=3, factor=0.5, cooldown=4),
    of("ReduceOnPlateau", learning_rate=0.5, patience=0, factor=0.9, min_lr=0.1),
    of("ReduceOnPlateau", learning_rate=0.5, mode="max", patience=2, threshold=0.05),
    of("ReduceOnPlateau", learning_rate=0.5, mode="max", patience=2, threshold=0.1,
       threshold_mode="abs"),
    of("ReduceOnPlateau", learning_rate=0.5, mode="MIN", patience=1, threshold=0.1,
       threshold_mode="ABS", cooldown=2, epsilon=0.01),
]  # fmt: skip

#: Classes whose rate Paddle derives from the rate before, wherever it jumps from or starts.
#: Ours is that of the epoch instead, as Paddle documents; see test_schedules.py.
BEGINS_ANYWHERE = ("CosineAnnealingDecay", "CosineAnnealingWarmRestarts", "LinearLR")
JUMPS_ANYWHERE = ("LinearLR",)

EPOCHS = [7, None, None, 3, 40, None, 0, None, 100, 100, None, 99, None, 12, 11, 10, None, 63, None]


def holds(case: Case, classes: tuple[str, ...]) -> bool:
    """Return whether a schedule, or one nested in it, is of one of these classes."""
    inner = case["kwargs"].get("learning_rate")
    return case["class"] in classes or (isinstance(inner, dict) and holds(inner, classes))


def metrics(seed: int, count: int = 250) -> list[float]:
    """Return a noisy loss that falls, stalls and rises; also below zero."""
    random = np.random.default_rng(seed)
    fall = 3 * np.exp(-np.arange(count) / 20) - 1 + np.arange(count) / 400
    return [round(float(m), 3) for m in fall + 0.1 * random.standard_normal(count)]


def programs() -> list[Case]:
    """Return every case that is compared with Paddle, with its program."""
    found = [{**case, "program": {"steps": 250}} for case in SETTINGS]
    found += [
        {**case, "program": {"epochs": EPOCHS}}
        for case in SETTINGS
        if not holds(case, JUMPS_ANYWHERE)
    ]
    found += [
        {**of(case["class"], **case["kwargs"], last_epoch=start), "program": {"steps": 60}}
        for case in SETTINGS
        if case["class"] not in BEGINS_ANYWHERE and not holds(case, JUMPS_ANYWHERE)
        for start in (0, 4, 57)
    ]
    return found + [
        {**case, "program": {"metrics": metrics(seed)}}
        for case in PLATEAUS
        for seed in (0, 1)
    ]  # fmt: skip
