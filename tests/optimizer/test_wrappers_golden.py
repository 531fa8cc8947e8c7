"""Wrappers follow the trajectories recorded with Paddle: weights and averages after every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.golden import ARRAYS, DESCRIPTION, Replay

KINDS = ("lookahead", "ema", "model_average")
CASES = [case for case in DESCRIPTION["cases"] if any(kind in case for kind in KINDS)]


def close(path: list[np.ndarray], key: str, tolerance: float) -> None:
    values = np.stack(path)
    assert np.max(np.abs(values.astype(np.float64) - ARRAYS[key])) <= tolerance


def test_every_wrapper_is_there() -> None:
    assert {kind for kind in KINDS for case in CASES if kind in case} == set(KINDS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_trajectory(case: dict[str, Any]) -> None:
    replay = Replay(case, rounded=False)
    optimizer, parameters = replay.optimizer, replay.parameters
    average: Any = None
    if "lookahead" in case:
        optimizer = ol.optimizer.LookAhead(optimizer, **case["lookahead"])
    elif "ema" in case:
        average = ol.optimizer.ExponentialMovingAverage(
            **case["ema"], parameters=list(parameters.values())
        )
    else:
        average = ol.optimizer.ModelAverage(
            **case["model_average"], parameters=list(parameters.values())
        )
    path: dict[str, list[np.ndarray]] = {name: [] for name in parameters}
    averages: dict[str, list[np.ndarray]] = {name: [] for name in parameters}
    for t in range(case["steps"]):
        replay.loss(t).backward()
        optimizer.step()
        if average is not None:
            (average.step if "model_average" in case else average.update)()
            with average.apply():
                for name, p in parameters.items():
                    averages[name].append(p.numpy())
        for name, p in parameters.items():
            path[name].append(p.numpy())
        optimizer.clear_grad(replay.zero)
    for name in parameters:
        close(path[name], case["trajectory"][name], case["atol"])
        assert path[name][0].dtype == case["dtype"]
        if average is not None:
            close(averages[name], case["avg"][name], case["atol"])
            assert averages[name][0].dtype == case["dtype"]
    for name, state in (case["state"] or {}).items():
        if "model_average" in case:
            given = average.state_dict()
            for label in ("sum_1", "sum_2", "sum_3"):
                found = given[f"{name}.{label}"].numpy()
                assert np.allclose(found, ARRAYS[state[f"model_average.{label}"]], rtol=1e-5)
            for label in ("num_accumulates", "old_num_accumulates", "num_updates"):
                assert given[f"{name}.{label}"] == ARRAYS[state[f"model_average.{label}"]].item()
        elif "lookahead" in case:
            slow = optimizer.state_dict()[f"{name}.slow"].numpy()
            assert np.allclose(slow, ARRAYS[state["lookahead.slow"]], rtol=1e-5, atol=1e-6)
