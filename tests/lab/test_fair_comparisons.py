"""Comparisons over seeds and budgets: tuning by one budget, times to target, profiles."""

from __future__ import annotations

import functools
import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import optlab as ol
from optlab.lab.fair_comparisons import result as results_module
from optlab.lab.fair_comparisons.trainees import RecipeRun, recipe_data
from optlab.lab.recipes.catalogue import Corpus, _last_tenth

SGD, Adam = ol.optimizer.SGD, ol.optimizer.Adam
MOONS = ol.lab.recipe("moons")


@pytest.fixture(scope="module")
def fair():
    rules = {"SGD": SGD, "Adam": Adam, "SAM": lambda rate: ol.optimizer.SAM(SGD(rate))}
    return ol.compare(MOONS, rules, budgets=[30, 60], seeds=2, trials=3, target=0.8)


def test_each_optimizer_is_tuned_by_the_same_budget(fair):
    assert fair.trials == 3
    assert fair.trial_steps == 30  # the lowest budget
    assert len(fair.tried) == 9
    for name in fair.optimizers:
        assert fair.tuning_cost(name) == 90
        assert fair.tuning_cost(name, by="seconds") > 0
    assert fair.trial_seed not in fair.seeds


def test_the_best_trial_is_chosen(fair):
    for name in fair.optimizers:
        trials = [fair.tried["moons", name, k] for k in range(3)]
        best = max(trials, key=lambda trial: (trial.run.score, -trial.run.loss))
        assert fair.settings["moons", name] == best.settings


def test_trials_are_judged_on_examples_that_were_split_off():
    whole, judged = recipe_data(MOONS, False), recipe_data(MOONS, True)
    assert len(judged.train_x) + len(judged.test_x) == len(whole.train_x)
    assert not {row.tobytes() for row in judged.test_x} & {row.tobytes() for row in whole.test_x}
    assert not {row.tobytes() for row in judged.test_x} & {row.tobytes() for row in judged.train_x}


def test_a_text_is_split_by_its_characters():
    recipe = ol.lab.recipe("char_lstm")
    whole, judged = recipe_data(recipe, False), recipe_data(recipe, True)
    [reading] = whole.readings
    joined = np.concatenate([judged.readings[0], judged.validation])
    assert len(joined) in (len(reading), len(reading) - 1)
    np.testing.assert_array_equal(judged.readings[0], reading[: len(judged.readings[0])])
    np.testing.assert_array_equal(judged.validation, reading[-len(judged.validation) :])
    assert judged.characters == len(judged.validation)


def test_no_reading_of_a_text_has_what_is_held_out():
    pairs = ol.data.BytePairs("the cat sat on the mat and ate the rat " * 30, 40)
    text = "the cat sat on the mat and ate the rat " * 30
    readings = [pairs.encode(text, skip=0.3, seed=seed) for seed in range(3)]
    found = _last_tenth(Corpus(pairs, readings, readings[0][:5], 9))
    held_out = pairs.decode(found.validation)
    assert text.endswith(held_out)
    assert found.characters == len(held_out)
    for reading in found.readings:
        assert text.startswith(pairs.decode(reading))
        assert len(pairs.decode(reading)) <= len(text) - len(held_out)


def test_a_run_is_the_training_of_the_recipe_to_the_bit():
    """The recipe's own optimizer and schedule give the recipe's own numbers."""
    own = MOONS.run(steps=60)
    race = ol.compare(replace(MOONS, every=20), {"Adam": Adam(0.01)}, steps=60)
    run = race.runs["moons", "Adam", 60, 0]
    assert run.scores[-1] == own.score
    assert run.loss == pytest.approx(np.mean(own.losses[-6:]), rel=1e-6)


def test_an_optimizer_with_a_schedule_keeps_it():
    rate = ol.optimizer.lr.StepDecay(0.05, step_size=10)
    race = ol.compare(MOONS, {"own": Adam(rate)}, steps=30)
    model = RecipeRun(MOONS, MOONS.data(), 0)
    with ol.random_scope("optimizer", seed=0):
        adam = Adam(ol.optimizer.lr.StepDecay(0.05, step_size=10), parameters=model.parameters)
    for step in range(30):
        model.backward(step)
        adam.step()
        adam.schedule.step()
    assert race.scores("own")[0] == model.score()


def test_second_gradients_are_paid_for(fair):
    run = fair.runs["moons", "SAM", 60, 0]
    assert run.evaluated == 60
    assert (run.gradients % 2 == 0).all()


def test_scores_bands_and_times(fair):
    runs = [fair.runs["moons", "Adam", 60, seed] for seed in fair.seeds]
    np.testing.assert_array_equal(fair.scores("Adam"), [run.scores[-1] for run in runs])
    band = fair.band("Adam")
    at = runs[0].gradients
    np.testing.assert_array_equal(band.gradients, at)
    rows = np.stack([run.scores for run in runs])
    np.testing.assert_array_equal(band.low, rows.min(axis=0))
    np.testing.assert_array_equal(band.high, rows.max(axis=0))
    for run, found in zip(runs, fair.times_to_target("Adam"), strict=True):
        reached = [g for g, s in zip(run.gradients, run.scores, strict=True) if s >= 0.8]
        assert found == (reached[0] if reached else math.inf)


def test_the_table_has_a_row_for_each_problem_budget_and_optimizer(fair):
    table = fair.table()
    assert list(table.index.names) == ["problem", "budget", "optimizer"]
    assert len(table) == 6
    row = table.loc[("moons", 60, "Adam")]
    assert row["tuning gradients"] == 90
    assert row["median"] == np.median(fair.scores("Adam"))
    assert row["settings"].startswith("learning_rate")
    assert "the best of 3 settings each, tried for 30 gradients" in repr(fair)


def test_surfaces_are_compared_by_their_distance_from_the_minimum():
    rules = {"SGD": SGD(0.05), "Adam": Adam(0.1)}
    fair = ol.compare(["booth", "beale"], rules, steps=40, target=0.5)
    race = ol.compare("booth", rules, steps=40)
    for name in rules:
        run = fair.runs["booth", name, 40, 0]
        np.testing.assert_allclose(run.scores[:-1], race[name].loss, rtol=1e-12)
        assert run.scores[-1] == pytest.approx(race.final_loss[name], rel=1e-12)
        first = np.flatnonzero(np.append(race[name].loss, race.final_loss[name]) <= 0.5)
        expected = float(first[0]) if len(first) else math.inf
        assert fair.times_to_target(name, "booth")[0] == expected
    assert fair.profile().problems == 2


def test_a_line_search_pays_for_what_it_evaluates():
    rules = {"LBFGS": ol.optimizer.LBFGS(1.0, line_search_fn="strong_wolfe")}
    fair = ol.compare("rosenbrock", rules, steps=60, seeds=[0], target=1e-3)
    run = fair.runs["rosenbrock", "LBFGS", 60, 0]
    assert run.evaluated <= 60
    assert np.diff(run.gradients).max() > 1


def test_a_network_is_compared_over_seeds():
    network = ol.problems.digits_mlp(hidden=16)
    network.data = functools.cache(network.data)
    fair = ol.compare(network, {"SGD": SGD, "Adam": Adam}, steps=20, seeds=2, trials=2)
    assert fair.problems["digits_mlp"].target is None
    accuracy = ol.compare(
        network, {"SGD": SGD(fair.settings["digits_mlp", "SGD"]["learning_rate"])}, steps=20
    ).accuracy["SGD"]
    assert fair.scores("SGD")[0] == accuracy
    with pytest.raises(ValueError, match="states no score to reach: give target="):
        fair.profile()
    assert "Last scores" in fair.figure().to_json()


def test_runs_that_diverge_end_early_and_are_paid_for():
    fair = ol.compare(
        "rosenbrock", {"SGD": SGD}, steps=30, trials=4, space={"learning_rate": (1e-4, 10)}
    )
    ended = [trial for trial in fair.tried.values() if trial.run.stopped]
    assert ended
    assert all("diverged" in trial.run.stopped for trial in ended)
    assert fair.settings["rosenbrock", "SGD"] not in [trial.settings for trial in ended]
    assert fair.tuning_cost("SGD") > sum(
        t.run.evaluated for t in fair.tried.values() if not t.run.stopped
    )


def test_settings_beside_the_rate_are_tuned():
    space = {
        "Momentum": {"learning_rate": (1e-3, 1.0), "momentum": [0.5, 0.9]},
        "SGD": {"learning_rate": (1e-3, 1.0)},
    }
    rules = {"Momentum": ol.optimizer.Momentum, "SGD": SGD(0.1)}
    fair = ol.compare("booth", rules, steps=20, trials=4, space=space)
    tried = [fair.tried["booth", "Momentum", k].settings for k in range(4)]
    assert {one["momentum"] for one in tried} == {0.5, 0.9}
    assert len({one["learning_rate"] for one in tried}) == 4
    assert list(fair.settings["booth", "SGD"]) == ["learning_rate"]


def test_the_rate_at_an_end_is_told():
    fair = ol.compare(
        "booth", {"SGD": SGD}, steps=5, trials=3, space={"learning_rate": (1e-6, 1e-4)}
    )
    assert fair.table()["settings"].iloc[0].endswith("(highest tried)")


# Performance profiles -----------------------------------------------------------------------------


def test_profiles_against_their_definition():
    draws = np.random.default_rng(0)
    costs = {name: draws.lognormal(size=40) for name in "ABC"}
    costs["A"][draws.random(40) < 0.2] = np.inf
    costs["B"][3] = costs["A"][3] = costs["C"][3] = np.inf  # a problem that all fail
    found = ol.lab.performance_profile(costs)
    for name, shares in found.shares.items():
        for factor, share in zip(found.factors, shares, strict=True):
            best = [min(costs[other][p] for other in costs) for p in range(40)]
            solved = sum(
                math.isfinite(costs[name][p]) and costs[name][p] / best[p] <= factor
                for p in range(40)
            )
            assert share == solved / 40
        assert (np.diff(shares) >= 0).all()
    assert sum(shares[0] for shares in found.shares.values()) == pytest.approx(39 / 40)


def test_the_cost_of_tuning_enters_a_profile(fair):
    plain, paid = fair.profile(), fair.profile(tuning=True)
    both = {name: fair.times_to_target(name) + fair.tuning_cost(name) for name in fair.optimizers}
    expected = ol.lab.performance_profile(both)
    np.testing.assert_array_equal(paid.factors, expected.factors)
    assert paid.factors[-1] < plain.factors[-1]  # what all pay makes them more alike


@pytest.mark.parametrize("costs", [{}, {"A": []}, {"A": [1, 2], "B": [1]}, {"A": [0.0]}])
def test_profiles_need_costs(costs):
    with pytest.raises(ValueError, match=r"cost"):
        ol.lab.performance_profile(costs)


# Executors, interrupts, errors --------------------------------------------------------------------


def test_an_executor_gives_the_same_numbers():
    rules = {"SGD": SGD, "Adam": Adam}
    here = ol.compare(MOONS, rules, steps=12, seeds=2, trials=2)
    with ThreadPoolExecutor(1) as executor:
        there = ol.compare(MOONS, rules, steps=12, seeds=2, trials=2, executor=executor)
    assert here.settings == there.settings
    for key, run in here.runs.items():
        np.testing.assert_array_equal(run.scores, there.runs[key].scores)


@pytest.mark.nightly
@pytest.mark.slow
def test_other_processes_give_the_same_numbers():
    rules = {"SGD": lambda rate: SGD(rate)}
    here = ol.compare(MOONS, rules, steps=12, trials=2)
    with ProcessPoolExecutor(1) as executor:
        there = ol.compare(MOONS, rules, steps=12, trials=2, executor=executor)
    np.testing.assert_array_equal(here.scores("SGD"), there.scores("SGD"))


def test_an_interrupted_one_goes_on(monkeypatch):
    rules = {"SGD": SGD, "Adam": Adam}
    whole = ol.compare(MOONS, rules, steps=10, seeds=2, trials=2)
    original, calls = results_module.results, []

    def cut(tasks, executor):
        for pair in original(tasks, executor):
            calls.append(pair)
            yield pair
            if len(calls) == 6:
                raise KeyboardInterrupt

    monkeypatch.setattr(results_module, "results", cut)
    half = ol.compare(MOONS, rules, steps=10, seeds=2, trials=2)
    assert half.interrupted
    assert len(half.runs) == 2
    assert "interrupted" in repr(half)
    half.figure()
    half.resume()
    assert not half.interrupted
    assert half.runs.keys() == whole.runs.keys()
    for key, run in whole.runs.items():
        np.testing.assert_array_equal(run.scores, half.runs[key].scores)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ol.compare(MOONS, {"SGD": SGD}, steps=5), "give trials=8"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, start=[1.0], steps=5), "leave start out"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, seeds=[], steps=5), "at least one"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, seeds=[1, 1], steps=5), "each once"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, budgets=[0]), "at least 1"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, budgets=100), "list of whole numbers"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, trials=-1), "trials is how many"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, space={"learning_rate": (1e-3, 1)}),
         "say how many: trials=8"),
        (lambda: ol.compare(MOONS, {"SGD": SGD}, trials=2, space={"learning_rate": (1, 0.1)}),
         "0 < low < high"),
        (lambda: ol.compare(MOONS, {"SGD": SGD(0.1)}, trials=2, space={"momentum": [0.9]}),
         "the learning rate alone is tuned"),
        (lambda: ol.compare(MOONS, {"A": SGD}, trials=2, space={"B": {"learning_rate": [1.0]}}),
         "names B, which is none of A"),
        (lambda: ol.compare(MOONS, {"A": SGD(ol.optimizer.lr.StepDecay(0.1, 5))}, trials=2),
         "comes from a schedule"),
        (lambda: ol.compare(MOONS, {"A": lambda rate: 3}, trials=2), "optimizers made without"),
        (lambda: ol.compare(MOONS, {"A": 3}, trials=2), "its class, or a function"),
        (lambda: ol.compare([], {"A": SGD(0.1)}), "at least one problem"),
        (lambda: ol.compare(["booth", "booth"], {"A": SGD(0.1)}), "different names"),
    ],
)  # fmt: skip
def test_errors_say_what_to_give(call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert message in str(caught.value)


def test_what_is_not_there_is_named(fair):
    with pytest.raises(KeyError, match="problems moons and the budgets 30, 60"):
        fair.scores("Adam", budget=31)
    with pytest.raises(KeyError, match="there is no 'Lion'; there are SGD, Adam, SAM"):
        fair.scores("Lion")
    with pytest.raises(ValueError, match='by is "gradients" or "seconds"'):
        fair.times_to_target("Adam", by="hours")
