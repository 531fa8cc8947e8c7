"""Our optimizers follow the trajectories recorded with Paddle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.golden import ARRAYS, DESCRIPTION, Replay

#: Cases of wrappers are in test_wrappers_golden.py.
WRAPPERS = ("lookahead", "model_average", "ema")


def is_covered(case: dict[str, Any]) -> bool:
    """Return whether a case is of an optimizer without a wrapper."""
    return not any(case.get(key) for key in WRAPPERS)


CASES = [case for case in DESCRIPTION["cases"] if is_covered(case)]


def test_cases_of_all_optimizers_are_there() -> None:
    assert {case["optimizer"] for case in CASES} == {
        "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "DecayedAdagrad", "Dpsgd", "Ftrl",
        "LBFGS", "Lamb", "LarsMomentum", "Momentum", "NAdam", "RAdam", "RMSProp", "Rprop", "SGD",
    }  # fmt: skip
    assert sum(case["case"].startswith("fluid/") for case in CASES) > 30


def names_all_roundings(case: dict[str, Any]) -> bool:
    """Return whether all rounded settings are known (those of decay and groups are not)."""
    settled = case["weight_decay"] is None and not case.get("param_groups")
    documented = "trajectory_documented" in case  # computed from the settings as they are
    known = bool(case.get("kwargs_rounded")) and not documented
    return settled and known and not case.get("lr_schedule")


RUNS = [pytest.param(case, False, id=case["case"]) for case in CASES] + [
    pytest.param(case, True, id=f"{case['case']}, settings rounded to float32")
    for case in CASES
    if names_all_roundings(case)
]


@pytest.mark.parametrize(("case", "rounded"), RUNS)
def test_trajectory(case: dict[str, Any], rounded: bool) -> None:
    exact = rounded or "trajectory_documented" in case
    tolerance = case["atol_rounded"] if exact else case["atol"]
    replay = Replay(case, rounded)
    path = replay.run()
    # Where Paddle's kernel differs from its documents, the documents count.
    for name, key in (case.get("trajectory_documented") or case["trajectory"]).items():
        difference = np.max(np.abs(path[name].astype(np.float64) - ARRAYS[key]))
        assert difference <= tolerance, f"{name} differs by {difference:.3g}"
        assert path[name].dtype == case["dtype"]
