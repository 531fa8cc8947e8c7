"""The presets of the explorer: each claim is true of the numbers that are shown."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import optlab as ol
from optlab.viz.explorer.presets import PLACES, PRESETS, ShownRun
from optlab.viz.explorer.runs import with_rate

presets = pytest.mark.parametrize("name", PRESETS)


@pytest.fixture(scope="module")
def explorer():
    return ol.explore()


@presets
def test_the_claim_is_proved_by_what_is_shown(explorer, name):
    explorer.change(preset=name)
    text, holds = explorer.model.claim
    assert holds
    assert text == PRESETS[name].claim == PRESETS[name].says
    assert explorer.model.claim == (text, True)


@presets
def test_the_claim_is_a_sentence_or_two(name):
    claim = PRESETS[name].claim
    assert claim.endswith(".")
    assert len(claim) <= 190
    assert claim.count(". ") <= 1


@presets
def test_the_claim_is_not_true_of_any_race(explorer, name):
    """A predicate that is always true proves nothing: other rates, or fewer steps, refute it."""
    explorer.change(preset=name)
    explorer.change(rate={entry.name: 0.0001 for entry in explorer.now.optimizers})
    shown = explorer.model.shown_runs()
    assert not PRESETS[name].is_true_of(shown)
    assert not PRESETS[name].is_true_of(dict(list(shown.items())[1:]))


@presets
def test_the_claim_names_the_numbers_of_the_engine(explorer, name):
    """What is shown is what `compare` computes, to the bit: the claim is about optimizers."""
    explorer.change(preset=name)
    model = explorer.model
    templates = {
        entry.name: with_rate(model.runs[entry.name].template, entry.rate)
        for entry in model.state.optimizers
    }
    race = ol.compare(
        model.problem, templates, start=model.start, steps=model.state.steps, seed=model.state.seed
    )
    for label, run in model.shown_runs().items():
        np.testing.assert_array_equal(race[label].loss, run.loss[:-1])


def test_a_preset_sets_rates_wrappers_seed_and_start(explorer):
    state = explorer.change(preset="LookAhead").now
    assert [entry.rate for entry in state.optimizers] == [0.02, 0.02]
    assert state.optimizers[1].around == {"kind": "LookAhead", "alpha": 0.5, "k": 5}
    assert explorer.change(seed=3, preset="stability limit").now.seed == 3
    assert explorer.change(preset="stability limit").now.seed == 0
    assert explorer.now.start == [-1.0]


def test_without_a_preset_there_is_no_claim(explorer):
    explorer.change(preset="noise")
    explorer.change(steps=50)
    assert explorer.model.claim is None
    assert explorer.model.claim is None


def test_a_run_that_diverged_is_never_settled():
    loss = np.array([1.0, 0.1, np.inf, np.nan])
    run = ShownRun(1.0, loss, np.zeros((4, 2)), np.zeros((3, 2)))
    assert run.settled(0.5) == 4


def test_parts_of_a_run_are_where_the_claims_have_them(explorer):
    def shown(name):
        explorer.change(preset=name)
        return explorer.model.shown_runs(), PRESETS[name].parts

    runs, parts = shown("conditioning")
    run = runs["SGD"]
    across, along = (run.coordinate_settled(i, abs(run.path[0, i]) / 1000) for i in (1, 0))
    assert [part[1:] for part in parts] == [(0, across), (across, along)]

    runs, parts = shown("saddle escape")
    near = np.flatnonzero(np.linalg.norm(runs["SGD"].path, axis=1) < 0.3)
    arrived = runs["SGD"].settled(-6.74)
    assert [part[1:] for part in parts] == [
        (0, near[0]), (near[0], near[-1]), (near[-1], arrived),
    ]  # fmt: skip
    assert np.all(np.diff(near) == 1)

    runs, parts = shown("noise")
    large, small = (int(np.argmax(runs[f"{name} rate"].loss < 0.1)) for name in ("large", "small"))
    assert large < small
    assert [part[1:] for part in parts] == [(0, small), (small, PRESETS["noise"].steps)]


def test_named_places_have_no_slope_and_are_no_minima():
    for problem, places in PLACES.items():
        surface = ol.problems.find(problem)
        for text, x, y in places:
            assert text == "saddle"
            _, slope = surface.value_and_gradient(np.array([x, y]))
            assert not np.any(slope)
            around = np.linspace(0, 2 * np.pi, 24, endpoint=False)
            beside = surface.values(x + 0.1 * np.cos(around), y + 0.1 * np.sin(around))
            here = surface.values(np.array(x), np.array(y))
            assert beside.min() < here < beside.max()


@presets
def test_parts_follow_each_other_within_the_run(name):
    parts = PRESETS[name].parts
    for text, first, last in parts:
        assert text
        assert 0 <= first < last <= PRESETS[name].steps
    assert all(one[2] == other[1] for one, other in pairwise(parts))
