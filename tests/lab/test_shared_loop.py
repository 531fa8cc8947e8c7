"""Entries of a race as one loop over steps and members: the traces of single runs, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.lab import recorded_path, shared_loop
from tests.lab.test_recorded_path import assert_same
from tests.optimizer.helpers import EACH

O = ol.optimizer  # noqa: E741
STEPS = 120
RATES = np.geomspace(1e-4, 0.5, 5).tolist()
TOGETHER = "as one loop over steps and members"


@pytest.fixture(autouse=True)
def _small_races_share_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_loop, "FEWEST_ON_FLOATS", 3)
    monkeypatch.setattr(shared_loop, "FEWEST_GENERAL", 3)


def only(race: Any, name: str) -> Any:
    """Return a race with one of its entries, as if it had been alone."""
    alone = ol.lab.Comparison(race.problem, race.steps, race.seed, race.start)
    alone.traces["it"] = race.traces[name]
    alone.final_loss["it"] = race.final_loss[name]
    alone.evaluations["it"] = race.evaluations[name]
    return alone


def assert_rows_are_single_runs(
    problem: Any, entries: dict[str, Any], expected: int, monkeypatch: Any, **more: Any
) -> Any:
    """Compare a race with one whose entries run step by step; so many share a loop."""
    race = ol.compare(problem, entries, steps=STEPS, **more)
    assert sum(how.startswith(TOGETHER) for how in race.execution.values()) == expected
    with monkeypatch.context() as patch:
        patch.setattr(shared_loop, "FEWEST_ON_FLOATS", 1 << 40)
        patch.setattr(shared_loop, "FEWEST_GENERAL", 1 << 40)
        patch.setattr(recorded_path, "why_not", lambda *_: "to compare")
        single = ol.compare(problem, entries, steps=STEPS, **more)
    assert all(how == "step by step: to compare" for how in single.execution.values())
    for name in entries:
        assert_same(only(race, name), only(single, name))
    return race


RULES = ["SGD", "Momentum", "Adam", "AMSGrad", "AdamW", "RMSProp", "Adagrad", "Lion", "RAdam"]


@pytest.mark.parametrize("problem", ["rosenbrock", "ackley"])
@pytest.mark.parametrize("name", RULES)
def test_rates_of_one_rule(name: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    template = EACH[name]()
    settings = {k: v for k, v in template.settings.items() if k != "learning_rate"}
    entries = {f"{rate:.3g}": type(template)(rate, **settings) for rate in RATES}
    assert_rows_are_single_runs(problem, entries, len(RATES) - 1, monkeypatch)


def test_kinds_of_their_own_have_loops_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    entries: dict[str, Any] = {}
    for rate in RATES[:3]:
        entries[f"SGD {rate:.2g}"] = O.SGD(rate)
        entries[f"Adam {rate:.2g}"] = O.Adam(rate, beta1=0.5 + rate, weight_decay=0.01)
    entries |= {"LookAhead": O.LookAhead(O.SGD(1e-3)), "Lamb": O.Lamb(0.01)}
    race = assert_rows_are_single_runs("himmelblau", entries, 4, monkeypatch)
    assert list(race.traces) == list(entries)
    assert race.execution["LookAhead"].startswith("step by step: LookAhead is around another")
    assert "with 2 others of its kind" in race.execution[f"Adam {RATES[2]:.2g}"]
    assert race.execution[f"Adam {RATES[0]:.2g}"] == "as a program of floats"


def test_schedules_and_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {f"{rate:.3g}": O.Momentum(O.lr.StepDecay(rate / 100, step_size=7)) for rate in RATES}
    problem = ol.problems.noisy("rosenbrock", 0.5)
    assert_rows_are_single_runs(problem, entries, len(RATES) - 1, monkeypatch, seed=3)


def test_runs_that_diverge(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {str(rate): O.SGD(rate) for rate in (1e-3, 0.01, 1.0, 1e150, 1e250)}
    race = assert_rows_are_single_runs("rosenbrock", entries, 4, monkeypatch)
    assert sum("diverged" in (trace.stopped or "") for trace in race.traces.values()) >= 3


def test_a_first_run_that_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {str(rate): O.SGD(rate) for rate in (1.0, 1e-3, 0.002)}
    assert_rows_are_single_runs("rosenbrock", entries, 2, monkeypatch)


def test_what_looks_at_the_loss_of_a_run_runs_by_itself() -> None:
    entries = {f"{rate:.3g}": O.SGD(O.lr.ReduceOnPlateau(rate / 100)) for rate in RATES}
    race = ol.compare("rosenbrock", entries, steps=STEPS)
    *_, last = race.execution.values()
    assert last.startswith("as a program of floats (no loop for its kind: ReduceOnPlateau looks")


def test_a_loop_with_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = shared_loop.replay

    def other(*args: Any) -> Any:
        run = replay(*args)
        run.loss[0, 7] = np.nextafter(run.loss[0, 7], 1)
        return run

    entries = {f"{rate:.3g}": O.Adam(rate) for rate in RATES}
    wanted = ol.compare("rosenbrock", entries, steps=STEPS)
    monkeypatch.setattr(shared_loop, "replay", other)
    race = ol.compare("rosenbrock", entries, steps=STEPS)
    for name in entries:
        assert_same(only(race, name), only(wanted, name))
    *_, last = race.execution.values()
    assert last == (
        "as a program of floats (one loop gave other numbers than the first of its kind by itself)"
    )


def test_while_something_listens_each_runs_by_itself() -> None:
    entries = {f"{rate:.3g}": O.Adam(rate) for rate in RATES}
    heard = []
    with ol.backend.events.step_taken.subscribed(lambda who, updates: heard.append(who)):
        race = ol.compare("rosenbrock", entries, steps=STEPS)
    assert len(heard) == STEPS * len(RATES)
    assert set(race.execution.values()) == {"step by step: something else listens to the engine"}


def test_an_interrupt_of_the_loop_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(shared_loop, "replay", interrupted)
    race = ol.compare("rosenbrock", {str(rate): O.Adam(rate) for rate in RATES}, steps=STEPS)
    first, second = race.traces.values()
    assert first.stopped is None
    assert len(first) == STEPS
    assert second.stopped == "interrupted in step 1"


def test_few_entries_and_short_races_have_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    entries = {f"{rate:.3g}": O.Adam(rate) for rate in RATES}
    race = ol.compare("rosenbrock", entries, steps=STEPS)
    assert set(race.execution.values()) == {"as a program of floats"}
    race = ol.compare("rosenbrock", entries, steps=5)
    assert set(race.execution.values()) == {"step by step: fewer than 100 steps"}


def test_a_fault_of_the_loop_is_not_taken_for_a_rule_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*args: Any) -> Any:
        raise AttributeError("a fault of ours")

    monkeypatch.setattr(shared_loop, "replay", broken)
    entries = {str(rate): O.SGD(rate / 1000) for rate in RATES}
    with pytest.warns(ol.lab.RaceWarning, match="AttributeError: a fault of ours"):
        race = ol.compare("rosenbrock", entries, steps=STEPS)
    first, *others = race.traces.values()
    assert first.error is None
    assert all(isinstance(trace.error, AttributeError) for trace in others)


def test_floating_point_errors_are_those_of_single_runs() -> None:
    entries = {str(rate): O.SGD(rate) for rate in (1e-3, 0.002, 1e150, 1e250)}
    with np.errstate(all="raise"):
        race = ol.compare("rosenbrock", entries, steps=STEPS)
    assert [trace.stopped is None for trace in race.traces.values()] == [True, True, False, False]
