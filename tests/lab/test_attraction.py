"""Basins of attraction: equal to single runs, minima that nobody named, and starts that fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol

O = ol.optimizer  # noqa: E741


def test_each_start_ends_where_its_own_run_does() -> None:
    found = ol.basins("himmelblau", O.Momentum(0.01), grid=7, steps=150)
    x, y = found.axes
    for j, i in [(0, 0), (3, 2), (6, 6), (1, 5)]:
        race = ol.compare("himmelblau", {"run": O.Momentum(0.01)}, start=(x[i], y[j]), steps=150)
        path = race["run"].parameters["point"]
        np.testing.assert_array_equal(found.final_point[j, i], path[-1])
        assert found.final_loss[j, i] == race.final_loss["run"]
        number = found.basin[j, i]
        assert number >= 0
        apart = np.linalg.norm(path - found.minima[number], axis=1)
        assert apart[-1] <= found.tolerance
        outside = np.flatnonzero(apart > found.tolerance)
        assert found.arrival[j, i] == (outside[-1] + 1 if len(outside) else 0)


def test_minima_that_the_problem_does_not_name_are_found() -> None:
    wells = ol.problems.Surface(
        lambda x, y: (x * x - 1) ** 2 + (y * y - 2) ** 2, domain=[(-2, 2), (-2, 2)]
    )
    found = ol.basins(wells, O.SGD(0.02), grid=11, steps=300)
    corners = sorted((round(a, 6), round(b, 6)) for a, b in found.minima)
    root = round(2**0.5, 6)
    assert corners == [(-1, -root), (-1, root), (1, -root), (1, root)]
    # The starts on the ridges between the wells stay there, or go down only in the other direction.
    on_ridge = (found.axes[0] == 0)[None, :] | (found.axes[1] == 0)[:, None]
    assert (found.basin[on_ridge] == -1).all()
    assert (found.basin[~on_ridge] >= 0).all()
    np.testing.assert_allclose(found.shares.sum(), np.mean(~on_ridge))


def test_starts_that_diverge_and_starts_that_have_not_arrived() -> None:
    steep = ol.problems.Surface(lambda x, y: x**4 + y**2, domain=[(-10, 10), (-1, 1)])
    found = ol.basins(steep, O.SGD(0.05), grid=9, steps=12)
    far = np.abs(found.axes[0]) > 3.2
    assert (found.basin[:, far] == -2).all()
    assert np.isinf(found.final_loss[:, far]).all()
    assert (found.basin[:, ~far] != -2).all()
    assert (found.basin == -1).any()
    assert np.isnan(found.arrival[found.basin < 0]).all()
    assert "not arrived" in repr(found)
    assert "diverged" in repr(found)


def test_a_curve_and_a_rule_that_runs_by_itself() -> None:
    loop = ol.basins("double_well", O.SGD(0.02), grid=15, steps=80)
    assert loop.basin.shape == (15,)
    assert len(loop.minima) == 2
    alone = ol.basins("booth", O.Lamb(0.05), grid=3, steps=40)
    assert "one after another" in alone.execution
    x, y = alone.axes
    race = ol.compare("booth", {"run": O.Lamb(0.05)}, start=(x[1], y[2]), steps=40)
    np.testing.assert_array_equal(alone.final_point[2, 1], race["run"].parameters["point"][-1])


def with_a_branch(x: Any, y: Any) -> Any:
    return x * x + y * y if x > 0 else x * x + 2 * y * y


def test_runs_that_take_long_one_after_another_are_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("optlab.lab.progress.LONG", 0.0)
    with pytest.warns(UserWarning, match=r"16 runs .* one after another.*np\.where") as warned:
        found = ol.basins(with_a_branch, O.SGD(0.1), grid=4, steps=3)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert found.execution.startswith("16 cells one after another: ")


def test_short_runs_are_not_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    ol.basins(with_a_branch, O.SGD(0.1), grid=4, steps=3)
    assert not recwarn.list


@pytest.mark.parametrize("schedule", [True, False])
def test_schedules_and_wrappers(schedule: bool) -> None:
    rate: Any = O.lr.StepDecay(0.02, step_size=10) if schedule else 0.01
    template = O.LookAhead(O.SGD(rate), 0.5, 3)
    found = ol.basins("six_hump_camel", template, grid=3, steps=30)
    x, y = found.axes
    race = ol.compare("six_hump_camel", {"run": template}, start=(x[2], y[0]), steps=30)
    np.testing.assert_array_equal(found.final_point[0, 2], race["run"].parameters["point"][-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("booth", O.SGD), "with its settings"),
        (("digits_mlp", O.SGD(0.1)), "network"),
        (("booth", O.SGD(0.1), 1), "grid must be"),
        (("booth", O.SGD(0.1, parameters=[ol.Parameter([1.0])])), "template"),
    ],
)
def test_bad_input(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ol.basins(*arguments)
    with pytest.raises(ValueError, match="tolerance"):
        ol.basins("booth", O.SGD(0.1), tolerance=0.0)
