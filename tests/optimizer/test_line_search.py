"""The search for a point that satisfies the strong Wolfe conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optlab.optimizer.quasi_newton.line_search import Trial, strong_wolfe


def walked(f, slope_of, alpha):
    seen = []

    def evaluate(a):
        seen.append(a)
        return Trial(a, f(a), slope_of(a), None)

    start = Trial(0.0, f(0.0), slope_of(0.0), None)
    found, count = strong_wolfe(evaluate, start, alpha, 1.0)
    assert count == len(seen)
    return start, found


LINES = {
    "parabola": (lambda a: (a - 3) ** 2, lambda a: 2 * (a - 3)),
    "valley": (lambda a: a**4 - 2 * a**3 - a, lambda a: 4 * a**3 - 6 * a**2 - 1),
    "steep": (lambda a: np.exp(5 * a) - 20 * a, lambda a: 5 * np.exp(5 * a) - 20),
}


@pytest.mark.parametrize("name", ["parabola", "valley", "steep"])
@given(power=st.floats(-4, 2))
def test_a_point_that_is_found_fulfils_both_conditions(name, power):
    f, slope_of = LINES[name]
    with np.errstate(over="ignore", invalid="ignore"):
        start, found = walked(f, slope_of, 10.0**power)
    assert found.loss <= start.loss + 1e-4 * found.alpha * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)


@pytest.mark.parametrize("wall", [np.inf, np.nan])
def test_it_comes_back_from_where_the_loss_is_no_number(wall):
    f = lambda a: (a - 1) ** 2 if a < 1.5 else wall  # noqa: E731
    slope_of = lambda a: 2 * (a - 1) if a < 1.5 else np.nan  # noqa: E731
    start, found = walked(f, slope_of, 8.0)
    assert found.loss < start.loss
    assert found.alpha < 1.5
