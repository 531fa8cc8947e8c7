"""Many learning rates at once, with a wrapper around each: bitwise equal to separate runs."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.lab.problems.lookup import find
from optlab.lab.vectorized import NotOnePassError, run_ensemble

O = ol.optimizer  # noqa: E741
EMA = O.ExponentialMovingAverage

WRAPPED = {
    "LookAhead": lambda rate: O.LookAhead(O.Momentum(rate), 0.3, 4),
    "LookAhead, alpha 1": lambda rate: O.LookAhead(O.Adam(rate), 1, 3),
    "LookAhead twice": lambda rate: O.LookAhead(O.LookAhead(O.SGD(rate), 0.5, 2), 0.8, 3),
    "EMA": lambda rate: EMA.around(O.Adam(rate), 0.9),
    "EMA, thres_steps": lambda rate: EMA.around(O.Adam(rate), 0.9, 3),
    "ModelAverage": lambda rate: O.ModelAverage.around(O.RMSProp(rate), 0.3, min_average_window=3),
    "EMA around LookAhead": lambda rate: EMA.around(O.LookAhead(O.Adam(rate), 0.5, 3), 0.8),
}
RATES = (1e-4, 1e-3, 0.05, 1.0)


@pytest.mark.parametrize("name", WRAPPED)
def test_equal_to_separate_runs(name):
    surface = find("rosenbrock")
    templates = [WRAPPED[name](rate) for rate in RATES]
    starts = np.tile(np.asarray(surface.start, float), (len(RATES), 1))
    run = run_ensemble(surface, templates, starts, 25, 0)
    race = ol.compare(
        surface, {str(rate): t for rate, t in zip(RATES, templates, strict=True)}, steps=25
    )
    for i, trace in enumerate(race.traces.values()):
        n = len(trace)
        np.testing.assert_array_equal(run.point[i, : n + 1], trace.parameters["point"])
        np.testing.assert_array_equal(run.loss[i, :n], trace.loss)
        assert (run.stopped[i] >= 0) == (trace.stopped is not None)
        assert list(run.slots) == list(trace.slots)
        assert list(run.terms) == list(trace.terms)
        for kind, recorded in ((run.slots, trace.slots), (run.terms, trace.terms)):
            for label, arrays in recorded.items():
                np.testing.assert_array_equal(kind[label][i, :n], arrays["point"], err_msg=label)


def test_wrappers_that_differ_run_one_by_one():
    surface = find("rosenbrock")
    starts = np.tile(np.asarray(surface.start, float), (2, 1))
    for pair in (
        [O.LookAhead(O.SGD(0.1), k=2), O.LookAhead(O.SGD(0.1), k=3)],
        [O.SGD(0.1), O.LookAhead(O.SGD(0.1))],
        [EMA.around(O.SGD(0.1), 0.9, lambda: 3)] * 2,
    ):
        with pytest.raises(NotOnePassError, match="wrapper"):
            run_ensemble(surface, pair, starts, 3, 0)
