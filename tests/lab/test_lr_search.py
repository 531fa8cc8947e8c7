"""The search for a learning rate: the lowest loss on data outside the race wins."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optlab as ol

optimizer = ol.optimizer
best_rate = ol.lab.best_rate


def test_a_run_is_that_of_compare_to_the_bit():
    found = best_rate("beale", optimizer.Adam, rates=[0.1, 0.01], steps=30)
    assert found.rates == (0.01, 0.1)
    race = ol.compare("beale", {f"{rate}": optimizer.Adam(rate) for rate in found.rates}, steps=30)
    assert found.loss[:, 0].tolist() == list(race.final_loss.values())
    assert found.rate == found.rates[int(np.argmin(list(race.final_loss.values())))]
    assert found.optimizer.get_lr() == found.rate


def test_seeds_are_averaged():
    problem = ol.problems.noisy("parabola", 0.5)
    found = best_rate(problem, optimizer.SGD, rates=[0.01, 0.1], steps=20, seeds=[3, 4, 5])
    assert found.loss.shape == (2, 3)
    assert found.best_loss == found.loss.mean(axis=1).min()
    assert len(set(found.loss[0])) == 3
    assert found.table().loc[0.1, "seed 4"] == found.loss[1, 1]


@pytest.mark.parametrize(
    "given", [optimizer.Rprop(0.5, etas=(0.4, 1.3)), lambda r: optimizer.Rprop(r, etas=(0.4, 1.3))]
)
def test_a_template_and_a_function_of_the_rate_do_the_same(given):
    found = best_rate("beale", given, rates=[0.01], steps=20)
    race = ol.compare("beale", {"Rprop": optimizer.Rprop(0.01, etas=(0.4, 1.3))}, steps=20)
    assert found.best_loss == race.final_loss["Rprop"]
    assert found.end == "lowest"


def test_a_given_template_keeps_its_rate():
    template = optimizer.Adam(0.3, amsgrad=True)
    found = best_rate("beale", template, rates=[0.01, 0.1], steps=5)
    assert template.get_lr() == 0.3
    assert found.optimizer.settings["amsgrad"] is True


def test_the_ladder_is_widened_until_the_best_is_inside():
    found = best_rate("parabola", optimizer.SGD, rates=[0.001, 0.002], steps=20, widen=9)
    assert found.rates[:5] == (0.001, 0.002, 0.005, 0.01, 0.02)
    assert found.end is None
    down = best_rate("parabola", optimizer.SGD, rates=[5.0, 10.0], steps=20, widen=2)
    assert down.rates == (1.0, 2.0, 5.0, 10.0)
    assert down.end == "lowest"
    assert "lowest of them" in repr(down)


def test_what_diverges_loses_and_if_all_do_it_says_so():
    found = best_rate("parabola", optimizer.SGD, rates=[0.1, 1e6], steps=200)
    assert found.rate == 0.1
    assert math.isinf(found.loss[1, 0])
    with pytest.raises(ValueError, match="lower rates"):
        best_rate("parabola", optimizer.SGD, rates=[1e6, 1e7], steps=200, widen=3)
    strict = optimizer.SGD(0.1, not_finite="raise")
    assert best_rate("parabola", strict, rates=[0.1, 1e6], steps=400).rate == 0.1


def test_budgets_count_evaluations_of_the_gradient():
    lbfgs = optimizer.LBFGS(1.0, line_search_fn="strong_wolfe")
    found = best_rate("rosenbrock", lbfgs, rates=[0.5], steps=15)
    race = ol.compare("rosenbrock", {"LBFGS": lbfgs}, steps=15)
    again = ol.compare("rosenbrock", {"LBFGS": found.optimizer}, steps=15)
    assert found.best_loss == again.final_loss["LBFGS"] != race.final_loss["LBFGS"]


def test_a_network_is_judged_on_a_part_of_its_training_data():
    network = ol.problems.digits_mlp()
    found = best_rate(network, optimizer.Adam, rates=[0.01], steps=40, seeds=[7])
    assert found.criterion == "validation loss"
    whole, part = network.data(), found.problem.data()
    rows = {row.tobytes() for row in whole.test_x}
    both = np.concatenate([part.train_x, part.test_x])
    assert not rows & {row.tobytes() for row in both}
    order = np.lexsort(both.T), np.lexsort(whole.train_x.T)
    np.testing.assert_array_equal(both[order[0]], whole.train_x[order[1]])

    run = found.problem.run(seed=7)
    bound = optimizer.Adam(0.01, parameters=run.parameters)
    for step in range(40):
        run.backward(step)
        bound.step()
    assert run.held_out_loss() == found.best_loss
    with ol.no_grad():
        scores = run.model(part.test_x).numpy().astype(np.float64)
    likely = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    expected = -likely[np.arange(len(likely)), part.test_y].mean()
    assert found.best_loss == pytest.approx(expected, rel=1e-5)


def test_the_validation_part_is_always_the_same_and_of_the_asked_size():
    network = ol.problems.digits_mlp()
    one, other = network.with_validation(0.25).data(), network.with_validation(0.25).data()
    assert len(one.test_x) == 359
    assert len(one.train_x) == 1437 - 359
    for here, there in zip(one, other, strict=True):
        np.testing.assert_array_equal(here, there)
    assert len(network.data().train_x) == 1437


@pytest.mark.parametrize("share", [0, 1, -0.1, 1e-6])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(ValueError, match=r"share|empty"):
        ol.problems.digits_mlp().with_validation(share).data()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"steps": 0}, ValueError, "steps"),
        ({"widen": -1}, ValueError, "widen"),
        ({"rates": []}, ValueError, "at least one rate"),
        ({"seeds": []}, ValueError, "at least one rate and one seed"),
        ({"validation": 0.3}, TypeError, "validation=0.3 is the share of a network's"),
        ({"validation": 0.2}, TypeError, "Leave validation out"),
        ({"seeds": [1, 2]}, ValueError, r"seeds=\[1, 2\] would be the same run 2 times"),
        ({"rates": [0.1, -1.0]}, ValueError, "greater than 0"),
        ({"rates": [0.1, 0.0]}, ValueError, "greater than 0"),
        ({"optimizer": "Adam"}, TypeError, "ol.optimizer.Adam"),
        ({"optimizer": lambda rate: rate}, TypeError, "without parameters"),
        (
            {"optimizer": optimizer.SGD(optimizer.lr.StepDecay(0.1, 5))},
            TypeError,
            "function of the rate",
        ),
        (
            {"optimizer": optimizer.SGD(0.1, parameters=[ol.Parameter([1.0])])},
            TypeError,
            "without parameters",
        ),
    ],
)
def test_bad_input_is_refused_by_name(arguments, error, words):
    given = {"optimizer": optimizer.SGD} | arguments
    with pytest.raises(error, match=words):
        best_rate("parabola", **given)


def test_seeds_count_for_a_rule_that_draws():
    def private(rate):
        return optimizer.LookAhead(optimizer.Dpsgd(rate, sigma=1.0))

    found = best_rate("parabola", private, rates=[0.1], steps=5, seeds=[1, 2])
    assert found.loss[0, 0] != found.loss[0, 1]


def test_an_average_is_judged_by_its_averages_where_the_comparison_does():
    ema = optimizer.ExponentialMovingAverage
    problem = ol.problems.digits_mlp()
    settings = {"rates": [0.1], "steps": 30, "seeds": [1]}
    plain = best_rate(problem, optimizer.SGD, **settings)
    same = best_rate(problem, lambda r: ema.around(optimizer.SGD(r), decay=0.0), **settings)
    smooth = best_rate(problem, lambda r: ema.around(optimizer.SGD(r), decay=0.9), **settings)
    assert same.best_loss == pytest.approx(plain.best_loss, rel=1e-6)
    assert smooth.best_loss != pytest.approx(plain.best_loss, rel=1e-3)


@pytest.mark.parametrize("rates", [0.1, "0.1"])
def test_rates_are_a_list(rates):
    with pytest.raises(TypeError, match=r"rates must be a list of rates to try, such as"):
        ol.lab.best_rate("beale", ol.optimizer.Adam, rates=rates)
