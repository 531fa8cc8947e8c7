"""Schedules against Paddle's own, where Paddle is installed, with random settings."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.schedules import SETTINGS, drive, expr, holds, make, metrics, of

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("paddle").optimizer.lr


def drawn(name, random):
    """Return a description of a class with random settings."""
    rate = round(float(random.uniform(0.01, 2)), 3)
    share = round(float(random.uniform(0.05, 0.95)), 3)
    low = round(float(random.uniform(0, 0.3)), 3)
    length, other = (int(n) for n in random.integers(1, 120, 2))
    coin = bool(random.integers(2))
    marks = sorted({int(n) for n in random.integers(0, 300, 4)})
    values = [round(float(v), 3) for v in random.uniform(0, 1, len(marks) + 1)]
    kwargs = {
        "NoamDecay": {"d_model": length, "warmup_steps": other, "learning_rate": rate},
        "PiecewiseDecay": {"boundaries": marks, "values": values},
        "NaturalExpDecay": {"learning_rate": rate, "gamma": share},
        "InverseTimeDecay": {"learning_rate": rate, "gamma": share},
        "PolynomialDecay": {"learning_rate": rate, "decay_steps": length, "end_lr": low,
                            "power": 3 * share, "cycle": coin},
        "LinearWarmup": {"learning_rate": rate, "warmup_steps": length, "start_lr": low,
                         "end_lr": low + rate},
        "ExponentialDecay": {"learning_rate": rate, "gamma": share},
        "MultiStepDecay": {"learning_rate": rate, "milestones": marks, "gamma": share},
        "StepDecay": {"learning_rate": rate, "step_size": length, "gamma": share},
        "LambdaDecay": {"learning_rate": rate, "lr_lambda": expr(f"{share} ** epoch")},
        "MultiplicativeDecay": {"learning_rate": rate, "lr_lambda": expr(f"{share} + x % 2 / 2")},
        "CosineAnnealingDecay": {"learning_rate": rate, "T_max": length, "eta_min": low},
        "CosineAnnealingWarmRestarts": {"learning_rate": rate, "T_0": length,
                                        "T_mult": int(random.integers(1, 4)), "eta_min": low},
        "OneCycleLR": {"max_learning_rate": rate, "total_steps": 300 + length,
                       "phase_pct": share / 2, "three_phase": coin, "end_learning_rate": low / 9,
                       "anneal_strategy": ("cos", "linear")[int(random.integers(2))]},
        "CyclicLR": {"base_learning_rate": low, "max_learning_rate": low + rate,
                     "step_size_up": length, "step_size_down": other if coin else None,
                     "mode": ("triangular", "triangular2", "exp_range")[int(random.integers(3))],
                     "exp_gamma": share},
        "LinearLR": {"learning_rate": rate, "total_steps": length, "start_factor": share,
                     "end_factor": 1 - share},
        "ReduceOnPlateau": {"learning_rate": rate, "mode": ("min", "max")[coin], "factor": share,
                            "patience": int(random.integers(0, 6)), "threshold": low,
                            "threshold_mode": ("rel", "abs")[int(random.integers(2))],
                            "cooldown": int(random.integers(0, 6)), "min_lr": low / 30},
    }[name]  # fmt: skip
    return of(name, **kwargs)


def program(name, random):
    """Return steps, and jumps where Paddle's rate after a jump is that of the epoch."""
    if name == "ReduceOnPlateau":
        return {"metrics": metrics(int(random.integers(1000)), 300)}
    if name == "LinearLR" or random.integers(2):
        return {"steps": 300}
    epochs = random.integers(0, 300, 200)
    return {"epochs": [int(e) if e % 5 == 0 and e < 290 else None for e in epochs]}


NAMES = sorted({case["class"] for case in SETTINGS} | {"ReduceOnPlateau"})


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", NAMES)
def test_the_rates_are_paddle_s(theirs, name, seed):
    random = np.random.default_rng([seed, NAMES.index(name)])
    case = drawn(name, random)
    plan = program(name, random)
    their, our = make(theirs, case), make(ol.optimizer.lr, case)
    if name == "CosineAnnealingWarmRestarts" and "epochs" in plan:
        for epoch in plan["epochs"]:  # theirs misses restarts by the rounding of a logarithm
            their.step(epoch)
            our.step(epoch)
            if not 0 <= their.T_cur < their.T_i:
                pytest.skip("Paddle is outside of its own cycle here")
            assert our() == pytest.approx(their(), rel=1e-13, abs=1e-15)
        return
    np.testing.assert_allclose(drive(our, plan), drive(their, plan), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", SETTINGS, ids=lambda case: case["class"])
def test_states_of_paddle_are_taken(theirs, case):
    their, our = make(theirs, case), make(ol.optimizer.lr, case)
    for _ in range(41):
        their.step()
    our.set_state_dict(their.state_dict())
    if holds(case, ("CosineAnnealingWarmRestarts",)):
        reference = make(theirs, case)
        for _ in range(41):
            reference.step()
        their = reference
    plan = {"steps": 100}
    np.testing.assert_allclose(drive(our, plan), drive(their, plan), rtol=1e-12, atol=1e-14)


def test_what_is_printed_is_paddle_s(theirs, capsys):
    said = []
    for module in (theirs, ol.optimizer.lr):
        for case in SETTINGS[:40:3]:
            schedule = make(module, case, verbose=True)
            for _ in range(3):
                schedule.step()
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert said[0].count("\n") > 40
