"""Lookup of problems, problems of one number, and noise."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol

SGD = ol.optimizer.SGD


class TestFind:
    def test_objects_are_themselves(self):
        for problem in (ol.problems.beale, ol.problems.quadratic(3.0), ol.problems.digits_mlp()):
            assert ol.problems.find(problem) is problem

    def test_names(self):
        assert set(ol.problems.names()) >= {
            "rosenbrock", "beale", "himmelblau", "quadratic", "digits_mlp",
        }  # fmt: skip
        for name in ol.problems.names():
            assert ol.problems.find(name).name == name
        assert ol.problems.find("Rosenbrock") is ol.problems.rosenbrock
        assert ol.problems.find("Digits MLP").kind == "network"

    def test_functions_that_make_problems(self):
        assert ol.problems.find(ol.problems.quadratic).name == "quadratic"
        assert ol.problems.find(ol.problems.digits_mlp).kind == "network"

    def test_functions_of_ones_own(self):
        found = ol.problems.find(lambda x, y: x**2 + y**2)
        assert found.kind == "surface"
        assert found(3.0, 4.0) == 25.0

    @pytest.mark.parametrize(
        ("name", "meant"),
        [("rosenbrok", "rosenbrock"), ("himelblau", "himmelblau"), ("digits", "digits_mlp"),
         ("Rosenbrok", "rosenbrock"), ("BEAL", "beale")],
    )  # fmt: skip
    def test_a_name_that_is_close(self, name, meant):
        with pytest.raises(ValueError, match=f"no problem named '{name}'.*Did you mean '{meant}'"):
            ol.problems.find(name)

    def test_a_name_that_is_far_lists_all(self):
        with pytest.raises(ValueError, match="there is no problem named 'xyz'") as caught:
            ol.problems.find("xyz")
        for name in ol.problems.names():
            assert name in str(caught.value)

    @pytest.mark.parametrize("wrong", [None, 3, [1, 2], {"a": 1}])
    def test_what_is_no_problem(self, wrong):
        with pytest.raises(TypeError, match=r"its name as text, or a function f\(x, y\)"):
            ol.problems.find(wrong)


class TestOneNumber:
    def test_a_function_of_one_number_is_a_curve(self):
        race = ol.compare(lambda x: (x - 1) ** 2, {"d": SGD(0.25)}, start=3.0, steps=4)
        np.testing.assert_allclose(
            race["d"].parameters["point"][:, 0], [3, 2, 1.5, 1.25, 1.125], rtol=1e-14
        )
        assert race.start == (3.0,)
        assert race.problem.dimension == 1
        assert race.final_loss["d"] == pytest.approx(1 / 64)

    @pytest.mark.parametrize("start", [2, 2.0, [2.0], (2.0,), np.array(2.0), np.array([2.0])])
    def test_its_start_is_one_number(self, start):
        assert ol.compare(np.square, {"d": SGD(0.1)}, start=start, steps=1).start == (2.0,)

    @pytest.mark.parametrize("start", [(1.0, 2.0), [], "1", float("nan")])
    def test_and_no_other(self, start):
        with pytest.raises(ValueError, match=r"one number|must be finite"):
            ol.compare(lambda x: x * x, {"d": SGD(0.1)}, start=start, steps=1)

    def test_values_on_a_line(self):
        x = np.linspace(-1, 1, 5)
        assert np.array_equal(ol.problems.Surface(lambda x: x * x).values(x), x * x)

    def test_distance_to_the_minimum(self):
        curve = ol.problems.Surface(lambda x: (x - 1) ** 2, minima=[(1.0,)])
        race = ol.compare(curve, {"d": SGD(0.25)}, start=3.0, steps=1)
        assert race.table().loc["d", "distance to the minimum"] == pytest.approx(1.0)


class TestNoise:
    def test_losses_are_exact_and_gradients_are_not(self):
        race = ol.compare(ol.problems.noisy("quadratic", 0.5), {"d": SGD(0.001)}, steps=400)
        points = race["d"].parameters["point"][:-1]
        np.testing.assert_allclose(
            race["d"].loss, [ol.problems.quadratic()(*p) for p in points], rtol=1e-12
        )
        noise = race["d"].gradients["point"] - points * [1.0, 100.0]
        assert noise.std() == pytest.approx(0.5, rel=0.1)
        assert abs(noise.mean()) < 5 * 0.5 / np.sqrt(noise.size)
        assert abs(np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]) < 0.25

    def test_all_runs_of_a_seed_meet_the_same(self):
        def noise(seed, rate):
            race = ol.compare(
                ol.problems.noisy("quadratic", 0.5), {"d": SGD(rate)}, steps=300, seed=seed
            )
            trace = race["d"]
            return trace.gradients["point"] - trace.parameters["point"][:-1] * [1.0, 100.0]

        np.testing.assert_allclose(noise(1, 0.001), noise(1, 0.002), atol=1e-9)
        assert not np.allclose(noise(1, 0.001), noise(2, 0.001))

    def test_the_problem_itself_stays_exact(self):
        ol.problems.noisy(ol.problems.beale, 3.0)
        assert ol.problems.beale.noise == 0.0
        one, other = (
            ol.compare(problem, {"d": SGD(0.001)}, steps=20)
            for problem in ("beale", ol.problems.noisy("beale", 0.0))
        )
        assert np.array_equal(one["d"].loss, other["d"].loss)

    def test_of_a_function_of_ones_own(self):
        noisy = ol.problems.noisy(lambda x, y: x * x + y * y, 1.0)
        race = ol.compare(noisy, {"d": SGD(0.1)}, steps=5)
        assert race["d"].stopped is None

    @pytest.mark.parametrize("sigma", [-1.0, float("nan"), float("inf")])
    def test_sigma_is_finite_and_not_negative(self, sigma):
        with pytest.raises(ValueError, match="sigma must be a finite number of at least 0"):
            ol.problems.noisy("beale", sigma)

    def test_not_of_networks(self):
        with pytest.raises(TypeError, match="is a network"):
            ol.problems.noisy("digits_mlp", 1.0)
