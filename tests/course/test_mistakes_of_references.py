"""The references with each of their mistakes: all are told apart, and far from rounding."""

import numpy as np
import pytest

from optlab.course.catalogue import CHECKS
from optlab.course.judging import judge
from optlab.course.sessions import Local, run

#: Checks with many mistakes; Adam's are all among AdamW's.
LONG = {"adamw": pytest.mark.slow}
NAMES = [pytest.param(name, marks=LONG.get(name, ())) for name in CHECKS if name != "adam"]


@pytest.mark.parametrize("name", NAMES)
def test_each_mistake_of_a_check_is_named(name):
    check = CHECKS[name]
    for mistake, pieces in check.mistakes:
        report = judge(check, Local(check.reference(pieces)))
        assert report.mistake == mistake, (mistake, list(pieces), str(report))


def distance(check, pieces, seed):
    """Return the largest difference that pieces make in the probes of a seed."""
    largest = 0.0
    for scenario in check.scenarios(seed):
        right = run(scenario.run, Local(check.reference({}))).entries
        other = run(scenario.run, Local(check.reference(pieces))).entries
        for a, b in zip(right, other, strict=False):
            if a.values is None or b.values is None:
                return np.inf
            for x, y in zip(a.values, b.values, strict=True):
                apart = abs(x - y).max() if x.shape == y.shape else np.inf
                largest = max(largest, np.inf if np.isnan(apart) else apart)
    return largest


@pytest.mark.parametrize("name", ["momentum", "rmsprop", "adamw", "lookahead", "ema"])
def test_mistakes_are_further_from_the_reference_than_rounding(name):
    check = CHECKS[name]
    assert min(distance(check, pieces, seed=5) for _, pieces in check.mistakes) > 1e-4
