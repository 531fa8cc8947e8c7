"""Our optimizers follow the trajectories that Paddle recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.golden import ARRAYS, DESCRIPTION, Replay

NOT_YET = ("lookahead", "model_average", "ema", "sparse")


def is_covered(case: dict[str, Any]) -> bool:
    """Say whether everything that a case uses is in the library."""
    known = hasattr(ol.optimizer, case["optimizer"])
    fluid = case["case"].startswith("fluid/")
    return known and not fluid and not any(case.get(key) for key in NOT_YET)


CASES = [case for case in DESCRIPTION["cases"] if is_covered(case)]


def test_cases_of_all_four_optimizers_are_there() -> None:
    assert {case["optimizer"] for case in CASES} >= {"SGD", "Momentum", "RMSProp", "Adam"}


def names_all_roundings(case: dict[str, Any]) -> bool:
    """Say whether the rounded settings are the whole story (those of decay and groups are not)."""
    return case["weight_decay"] is None and not case.get("param_groups")


RUNS = [pytest.param(case, False, id=case["case"]) for case in CASES] + [
    pytest.param(case, True, id=f"{case['case']}, settings rounded to float32")
    for case in CASES
    if names_all_roundings(case)
]


@pytest.mark.parametrize(("case", "rounded"), RUNS)
def test_trajectory(case: dict[str, Any], rounded: bool) -> None:
    tolerance = case["atol_rounded"] if rounded else case["atol"]
    replay = Replay(case, rounded)
    path = replay.run()
    for name, key in case["trajectory"].items():
        difference = np.max(np.abs(path[name].astype(np.float64) - ARRAYS[key]))
        assert difference <= tolerance, f"{name} differs by {difference:.3g}"
        assert path[name].dtype == case["dtype"]
