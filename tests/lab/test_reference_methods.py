"""Steepest descent, conjugate gradient and Newton beside optimizers, on a budget of gradients."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.viz.explorer.state import optimizer_classes, usual_template

METHODS = {
    "line search": ol.lab.SteepestDescent,
    "CG": ol.lab.ConjugateGradient,
    "Newton": ol.lab.Newton,
}
each = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))


def turned_bowl(x, y):
    return 3 * x**2 + 2 * x * y + 2 * y**2


class TestOnQuadratics:
    def test_newton_takes_one_step(self):
        race = ol.compare(turned_bowl, {"N": ol.lab.Newton()}, start=(3.0, -2.0), steps=20)
        assert np.abs(race["N"].parameters["point"][1]).max() < 1e-9

    def test_conjugate_gradient_takes_as_many_steps_as_numbers(self):
        for problem in (ol.problems.quadratic(100.0), turned_bowl):
            race = ol.compare(problem, {"CG": ol.lab.ConjugateGradient()}, steps=40)
            found = race["CG"].parameters["point"][min(2, len(race["CG"]))]
            # The search is exact on a parabola to the rounding of its interpolation.
            assert np.abs(found).max() < 1e-6

    def test_directions_of_steepest_descent_are_at_right_angles(self):
        race = ol.compare(turned_bowl, {"d": ol.lab.SteepestDescent()}, start=(3.0, -2.0), steps=30)
        moves = np.diff(race["d"].parameters["point"], axis=0)[:6]
        moves /= np.linalg.norm(moves, axis=1, keepdims=True)
        assert np.abs((moves[1:] * moves[:-1]).sum(axis=1)).max() < 1e-4

    def test_directions_of_conjugate_gradient_are_conjugate(self):
        race = ol.compare(turned_bowl, {"d": ol.lab.ConjugateGradient()}, start=(3.0, -2.0),
                          steps=30)  # fmt: skip
        first, second = np.diff(race["d"].parameters["point"], axis=0)[:2]
        hessian = np.array([[6.0, 2.0], [2.0, 4.0]])
        cosine = first @ hessian @ second / np.linalg.norm(first) / np.linalg.norm(second)
        assert abs(cosine) < 1e-5


class TestBudget:
    @each
    @pytest.mark.parametrize("steps", [1, 3, 7, 50])
    def test_every_gradient_is_paid(self, method, steps):
        calls = []

        def counted(x, y):
            calls.append(1)
            return (1 - x) ** 2 + 100 * (y - x**2) ** 2

        ol.compare(counted, {"d": ol.optimizer.SGD(1e-4)}, start=(-1.0, 1.0), steps=steps)
        plain = len(calls)
        calls.clear()
        race = ol.compare(counted, {"d": method()}, start=(-1.0, 1.0), steps=steps)
        assert len(calls) <= plain
        assert (np.diff(race.evaluations["d"]) >= 1).all()
        assert all(race.evaluations["d"] <= steps)

    def test_newton_pays_for_its_hessian(self):
        race = ol.compare("rosenbrock", {"N": ol.lab.Newton(line_search_fn=None)}, steps=30)
        # A gradient, and two for each of the two numbers; the next step has its gradient already.
        assert np.diff(race.evaluations["N"]).tolist() == [5] * (len(race["N"]) - 1)
        assert race.evaluations["N"][0] == 5

    @each
    def test_the_same_twice_to_the_bit(self, method):
        one, two = (ol.compare("beale", {"d": method()}, steps=60) for _ in range(2))
        np.testing.assert_array_equal(one["d"].loss, two["d"].loss)


class TestElsewhere:
    @each
    def test_leaves_a_saddle_downhill(self, method):
        race = ol.compare("monkey_saddle", {"d": method()}, start=(0.3, 0.1), steps=200)
        assert race.final_loss["d"] == pytest.approx(-6.75, abs=1e-4)
        assert (np.diff(race["d"].loss) <= 0).all()

    @each
    def test_one_number(self, method):
        race = ol.compare("parabola", {"d": method()}, steps=20)
        assert race.final_loss["d"] < 1e-20

    @each
    def test_at_the_minimum_nothing_moves(self, method):
        race = ol.compare(turned_bowl, {"d": method()}, start=(0.0, 0.0), steps=10)
        assert race.final_loss["d"] == 0.0
        assert not race["d"]["update"]["point"].any()
        assert len(race["d"]) == 1  # the call that finds nothing to do

    def test_a_flat_direction_is_no_infinite_step(self):
        race = ol.compare("x**2 + 0*y", {"d": ol.lab.Newton()}, steps=20)
        assert race.final_loss["d"] < 1e-12
        assert np.isfinite(race["d"].parameters["point"]).all()

    @pytest.mark.parametrize("method", [ol.lab.SteepestDescent, ol.lab.ConjugateGradient])
    def test_a_search_is_needed(self, method):
        with pytest.raises(ValueError, match="without a search it does not know how far to go"):
            method(line_search_fn=None)

    def test_newton_refuses_many_numbers(self):
        w = ol.Parameter(np.ones(101))
        optimizer = ol.lab.Newton(parameters=[w])

        def closure():
            optimizer.clear_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        with pytest.raises(ValueError, match=r"101 numbers, more than 100\. LBFGS is made for"):
            optimizer.step(closure)
        assert (w.numpy() == 1).all()

    def test_a_closure_that_fails_leaves_the_point(self):
        w = ol.Parameter(np.ones(2))
        optimizer = ol.lab.Newton(parameters=[w])
        calls = []

        def closure():
            calls.append(1)
            if len(calls) == 3:
                raise KeyError("in the middle of the Hessian")
            optimizer.clear_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        with pytest.raises(KeyError):
            optimizer.step(closure)
        assert (w.numpy() == 1).all()


class TestExplorer:
    def test_a_run_has_one_column_a_gradient(self):
        explorer = ol.explore("rosenbrock", {"N": ol.lab.Newton()}, steps=60)
        run = explorer.model.shown_runs()["N"]
        race = ol.compare("rosenbrock", {"N": ol.lab.Newton()}, steps=60)
        counts = race.evaluations["N"]
        assert np.isfinite(run.loss).all()
        for count, loss in zip(counts, [*race["N"].loss[1:], race.final_loss["N"]], strict=True):
            assert run.loss[count] == loss
            assert run.loss[count - 1] > run.loss[count]
            assert run.update[count - 1].any()
        assert not run.update[[k for k in range(60) if k + 1 not in counts]].any()

    def test_the_best_rate_of_lbfgs_is_found(self):
        explorer = ol.explore("rosenbrock", ["LBFGS", "Newton"], steps=120)
        for name in ("LBFGS", "Newton"):
            settings = explorer.model.runs[name].template.settings
            assert settings["line_search_fn"] == "strong_wolfe"
            assert explorer.model.shown_runs()[name].loss[-1] < 1e-6

    def test_they_can_be_added(self):
        assert {"Newton", "ConjugateGradient", "SteepestDescent"} <= set(optimizer_classes())
        assert usual_template(ol.lab.Newton).settings["learning_rate"] == 1.0
