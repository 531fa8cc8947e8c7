"""Sweeps are bitwise equal to their separate runs, in one pass or one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.lab import LADDER

OPTIMIZERS = [ol.optimizer.SGD, ol.optimizer.Momentum, ol.optimizer.RMSProp, ol.optimizer.Adam]
SURFACES = [name for name in ol.problems.names() if ol.problems.find(name).kind == "surface"]


class ScaledByNorm(ol.optimizer.Optimizer):
    """A rule that needs each parameter separately."""

    hyperparameters = {"learning_rate": 0.1}
    kind = "tensor"

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        step = h.learning_rate * g / (np.sqrt(np.sum(g * g)) + 1e-8)
        return p - step, {}, {"update": -step}


def branching(x: Any, y: Any) -> Any:
    """Return the value at one point only: it branches on x."""
    return x * x + y * y if x > 0 else 2 * x * x + y * y


def mixing(x: Any, y: Any) -> Any:
    """Return values of arrays that depend on all points."""
    return (x - np.mean(x)) ** 2 + x * x + y * y


def assert_equals_separate_runs(sweep: Any, place: Any, race: Any) -> None:
    trace = race["run"]
    n = len(trace)
    np.testing.assert_array_equal(sweep.loss[place][:n], trace.loss)
    np.testing.assert_array_equal(sweep.loss[place][n], race.final_loss["run"])
    np.testing.assert_array_equal(sweep.point[place][: n + 1], trace.parameters["point"])
    np.testing.assert_array_equal(sweep.gradient[place][:n], trace.gradients["point"])
    assert sweep.slots.keys() == trace.slots.keys()
    assert sweep.terms.keys() == trace.terms.keys()
    for name, array in {**sweep.slots, **sweep.terms}.items():
        np.testing.assert_array_equal(array[place][:n], trace[name])
        assert np.isnan(array[place][n:]).all()
    assert sweep.stopped[place] == (n if trace.stopped else -1)


#: For each further rule one ladder, and one setting that makes another variant of it.
FURTHER = {
    "Adagrad": {"initial_accumulator_value": [0.0, 0.5]},
    "DecayedAdagrad": {"decay": [0.5, 0.9]},
    "Adadelta": {"epsilon": [1e-6, 1e-2]},
    "AdamW": {"weight_decay": [0.0, 0.1]},
    "Adamax": {"beta2": [0.5, 0.999]},
    "NAdam": {"momentum_decay": [0.004, 0.5]},
    "RAdam": {"beta2": [0.5, 0.999]},
    "Rprop": {},
    "Ftrl": {"lr_power": [-0.5, -0.75]},
    "ASGD": {"batch_num": [1, 3]},
    "Lion": {"weight_decay": [0.0, 0.1]},
    "Lamb": {"lamb_weight_decay": [0.0, 0.1]},
    "Muon": {"momentum": [0.5, 0.9]},
    "Dpsgd": {"sigma": [0.0, 0.5]},
}


@pytest.mark.parametrize("name", list(FURTHER))
def test_rates_and_settings_of_every_rule(name: str) -> None:
    cls: Any = getattr(ol.optimizer, name)
    rates = [0.001, 0.01, 0.1]
    sweep = ol.sweep("rosenbrock", cls, {"learning_rate": rates, **FURTHER[name]}, steps=25)
    [(setting, values)] = FURTHER[name].items() or [("", [None])]
    for i, rate in enumerate(rates):
        for j, value in enumerate(values):
            template = cls(rate, **({setting: value} if setting else {}))
            race = ol.compare("rosenbrock", {"run": template}, steps=25)
            place = (i, j) if setting else (i,)
            n = len(race["run"])
            np.testing.assert_array_equal(sweep.loss[place][:n], race["run"].loss)
            path = race["run"].parameters["point"]
            np.testing.assert_array_equal(sweep.point[place][: n + 1], path)


def test_a_rate_that_depends_on_the_parameter_is_asked_for() -> None:
    ratio = lambda p: 0.5  # noqa: E731
    sweep = ol.sweep("rosenbrock", ol.optimizer.AdamW, {"lr_ratio": [ratio]}, steps=10)
    race = ol.compare("rosenbrock", {"run": ol.optimizer.AdamW(lr_ratio=ratio)}, steps=10)
    np.testing.assert_array_equal(sweep.loss[0, :-1], race["run"].loss)


@pytest.mark.parametrize("cls", OPTIMIZERS)
@pytest.mark.parametrize("problem", SURFACES)
def test_a_ladder_of_rates(problem: str, cls: Any) -> None:
    sweep = ol.sweep(problem, cls, {"learning_rate": LADDER}, steps=60)
    for i, rate in enumerate(LADDER):
        race = ol.compare(problem, {"run": cls(rate)}, steps=60)
        assert_equals_separate_runs(sweep, (i,), race)


@pytest.mark.parametrize("cls", [ol.optimizer.SGD, ScaledByNorm])
@pytest.mark.parametrize(
    "problem",
    [
        "beale",
        branching,
        mixing,
        lambda x, y: np.sin(x) * y + y**2,
        ol.problems.noisy("booth", 2.0),
    ],
)
def test_rates_and_starts(problem: Any, cls: Any) -> None:
    starts = np.array([[0.5, 1.0], [-0.5, 0.2], [0.25, -0.75]])
    rates = [0.001, 0.01, 10.0]
    sweep = ol.sweep(problem, cls, {"learning_rate": rates}, start=starts, steps=30, seed=3)
    assert sweep.loss.shape == (3, 3, 31)
    for i, rate in enumerate(rates):
        for j, start in enumerate(starts):
            race = ol.compare(problem, {"run": cls(rate)}, start=start, steps=30, seed=3)
            assert_equals_separate_runs(sweep, (i, j), race)


def test_settings_of_every_kind() -> None:
    settings = {"beta1": [0.0, 0.9], "learning_rate": [0.1, 0.2], "amsgrad": [False, True]}
    sweep = ol.sweep("rosenbrock", ol.optimizer.Adam, settings, steps=20)
    for i, beta1 in enumerate(settings["beta1"]):
        for j, rate in enumerate(settings["learning_rate"]):
            run = ol.optimizer.Adam(rate, beta1, amsgrad=False)
            race = ol.compare("rosenbrock", {"run": run}, steps=20)
            np.testing.assert_array_equal(sweep.loss[i, j, 0][:20], race["run"].loss)


def test_an_executor_runs_what_cannot_go_at_once() -> None:
    with ThreadPoolExecutor(2) as executor:
        sent = ol.sweep(
            branching, ol.optimizer.SGD, {"learning_rate": [0.1, 0.2]}, steps=9, executor=executor
        )
    here = ol.sweep(branching, ol.optimizer.SGD, {"learning_rate": [0.1, 0.2]}, steps=9)
    np.testing.assert_array_equal(sent.loss, here.loss)


def test_best_and_xarray() -> None:
    sweep = ol.sweep(
        "parabola", ol.optimizer.SGD, {"learning_rate": [0.1, 0.25, 0.6]}, start=[1.0, 2.0], steps=9
    )
    assert sweep.best() == {"learning_rate": 0.25, "start": (1.0,)}
    data = sweep.to_xarray()
    assert float(data.loss.sel(learning_rate=0.25).isel(start=1, time=0)) == 8.0
    assert dict(data.sizes)["coordinate"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rosenbrock", "Adam", {"learning_rate": [0.1]}), "class"),
        (("rosenbrock", ol.optimizer.Adam, {}), "dict"),
        (("rosenbrock", ol.optimizer.Adam, {"rate": [0.1]}), "no setting 'rate'"),
        (("rosenbrock", ol.optimizer.Adam, {"learning_rate": 0.1}), "list"),
        (("rosenbrock", ol.optimizer.Adam, {"learning_rate": [-0.1]}), "at least 0"),
        (("digits_mlp", ol.optimizer.Adam, {"learning_rate": [0.1]}, (0, 0)), "leave start"),
        ((lambda x, y: None, ol.optimizer.Adam, {"learning_rate": [0.1]}), "one number a point"),
    ],
)
def test_bad_input(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ol.sweep(*arguments, steps=5)


def test_a_start_that_is_not_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        ol.sweep(
            "rosenbrock", ol.optimizer.SGD, {"learning_rate": [0.1]}, start=[[0, 1], [np.nan, 0]]
        )


class TestNoise:
    def test_is_the_same_for_everybody_and_leaves_losses_exact(self) -> None:
        noisy = ol.problems.noisy("rosenbrock", 0.5)
        race = ol.compare(
            noisy, {"a": ol.optimizer.SGD(0.001), "b": ol.optimizer.SGD(0.0)}, steps=4, seed=1
        )
        exact = ol.problems.rosenbrock
        moved = race["a"]
        for point, loss in zip(moved.parameters["point"], moved.loss, strict=False):
            assert loss == exact.value_and_gradient(point)[0]
        still = race["b"].gradients["point"] - exact.value_and_gradient(exact.start)[1]
        first = moved.gradients["point"][0] - exact.value_and_gradient(exact.start)[1]
        np.testing.assert_allclose(first, still[0])
        assert 0.1 < np.std(still) < 2

    def test_depends_on_the_seed(self) -> None:
        noisy = ol.problems.noisy("booth", 1.0)
        one, two = (
            ol.compare(noisy, {"a": ol.optimizer.SGD(0.01)}, steps=300, seed=seed)["a"].loss
            for seed in (1, 2)
        )
        assert not np.array_equal(one, two)

    @pytest.mark.parametrize("sigma", [-1.0, np.nan, np.inf])
    def test_of_impossible_size(self, sigma: float) -> None:
        with pytest.raises(ValueError, match="sigma"):
            ol.problems.noisy("rosenbrock", sigma)

    def test_of_a_network(self) -> None:
        with pytest.raises(TypeError, match="network"):
            ol.problems.noisy("digits_mlp", 1.0)


class Normalised(ol.optimizer.Optimizer):
    """A rule that takes a norm, but does not declare that it is not elementwise."""

    hyperparameters = {"learning_rate": 0.1}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        return p - h.learning_rate * g / (np.sqrt(np.sum(g * g)) + 1e-12), {}


def test_a_rule_that_mixes_its_members_is_told_to_say_so() -> None:
    with pytest.raises(ValueError, match=r"Normalised.update computes with np.sum .*'tensor'"):
        ol.sweep("booth", Normalised, {"learning_rate": [0.01, 0.1]}, steps=20)


def test_a_rule_that_says_so_runs_one_by_one() -> None:
    class Tensorwise(Normalised):
        kind = "tensor"

    rates = [0.01, 0.1, 0.5]
    sweep = ol.sweep("booth", Tensorwise, {"learning_rate": rates}, steps=20)
    for i, rate in enumerate(rates):
        race = ol.compare("booth", {"run": Tensorwise(rate)}, steps=20)
        np.testing.assert_array_equal(sweep.loss[i][:20], race["run"].loss)


def test_a_function_that_looks_at_all_points_runs_one_by_one() -> None:
    def peeks(x: Any, y: Any) -> Any:
        return x**2 + 3 * y**2 if np.any(x > 0) else -2 * x + y**2

    rates = [1e-3, 0.6, 0.9]
    sweep = ol.sweep(peeks, ol.optimizer.SGD, {"learning_rate": rates}, start=(1, 1), steps=10)
    for i, rate in enumerate(rates):
        race = ol.compare(peeks, {"run": ol.optimizer.SGD(rate)}, start=(1, 1), steps=10)
        np.testing.assert_array_equal(sweep.loss[i][:10], race["run"].loss)


def test_a_sweep_is_a_frame_in_the_order_of_its_grid():
    grid = {"learning_rate": [0.001, 0.1], "beta1": [0.5, 0.9, 0.99]}
    found = ol.sweep("booth", ol.optimizer.Adam, grid, steps=4)
    frame = found.to_dataframe()
    assert frame.index.names[:2] == ["learning_rate", "beta1"]
    np.testing.assert_array_equal(frame["final loss"], np.ravel(found.final_loss))
    assert sorted(frame["final loss"]) == list(found.table()["final loss"])
