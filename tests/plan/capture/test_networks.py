"""Captured steps of networks equal eager ones to the bit, whatever happens between the steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import optlab as ol
from tests.optimizer.helpers import EACH
from tests.plan.capture import interventions as between
from tests.plan.capture.twins import (
    NETWORKS,
    RUNS_PER_PLAN,
    Program,
    counted,
    equal_runs,
    program,
    run,
    same,
    train_step,
)

every_network = pytest.mark.parametrize("network", NETWORKS)


def calm(name: str) -> Any:
    """Return the constructor of an optimizer at a tenth of its usual rate."""

    def make(**common: Any) -> Any:
        optimizer = EACH[name](**common)
        optimizer.set_lr(0.1 * optimizer.get_lr())
        return optimizer

    return make


@every_network
@pytest.mark.parametrize("name", ["Momentum", "Adam", "Lamb"])
def test_steps_with_dropout_batch_normalization_and_a_smaller_last_batch(
    network: str, name: str
) -> None:
    captured = equal_runs(partial(program, network, calm(name)), 24)
    assert len(captured.plans) == 2


@every_network
def test_the_function_runs_to_be_captured_and_then_no_more(network: str) -> None:
    build = partial(program, network, calm("AdamW"))
    eager, _ = run(build, 24)
    with counted(build().step) as runs:
        found, _ = run(build, 24, how=ol.capture)
    same(found, eager)
    assert 1 <= runs[0] <= 2 * RUNS_PER_PLAN


@every_network
def test_200_steps_with_everything_on_the_way(network: str) -> None:
    equal_runs(partial(program, network, calm("Adam")), 200, between.ON_THE_WAY)


@pytest.mark.nightly
@pytest.mark.slow
@every_network
@pytest.mark.parametrize("name", EACH)
def test_200_steps_of_every_optimizer_with_everything_on_the_way(network: str, name: str) -> None:
    equal_runs(partial(program, network, calm(name)), 200, between.ON_THE_WAY)


#: One thing at a time, so that a failure has a name: at step 5, and undone at step 9.
SINGLE: dict[str, list[Any]] = {
    "set_lr": [(5, between.set_rate)],
    "eval and train": [(5, between.evaluate), (9, between.train)],
    "eval before the first step": [(0, between.evaluate), (5, between.train)],
    "state dicts": [(5, between.save), (9, between.load)],
    "state dicts and the random state": [(5, between.save), (9, between.load_with_random_state)],
    "set_value": [(5, between.set_value)],
    "a write in place": [(5, between.write_in_place)],
    "frozen": [(5, between.freeze)],
    "frozen and free again": [(5, between.freeze), (9, between.thaw)],
    "frozen first": [(0, between.freeze), (5, between.thaw)],
    "a seed": [(5, between.seed)],
    "a draw": [(5, between.draw)],
    "an eager step": [(5, between.step_eagerly), (9, between.step_eagerly)],
    "gradients that were there": [(5, between.leave_gradients)],
    "gradients that were there first": [(0, between.leave_gradients)],
    "gradients that are None": [(5, between.drop_gradients)],
    "a recording": [(5, between.start_recording), (9, between.stop_recording)],
    "a recording from the start": [(0, between.start_recording), (9, between.stop_recording)],
}


@pytest.mark.parametrize("name", SINGLE)
def test_one_thing_on_the_way(name: str) -> None:
    equal_runs(partial(program, "mlp", calm("Adam")), 14, SINGLE[name])


@pytest.mark.parametrize("name", ["SGD", "Momentum", "AdamW", "RMSProp", "NAdam", "Lamb", "Muon"])
def test_a_recorded_run_of_other_rules(name: str) -> None:
    events = [(3, between.start_recording), (9, between.stop_recording)]
    equal_runs(partial(program, "mlp", calm(name)), 14, events)


def test_captured_while_recording_and_replayed_without() -> None:
    """A trace that was left is not written to, and one that starts later misses no step."""
    seen: list[Any] = []

    def build() -> Program:
        return program("mlp", calm("Adam"))

    def lengths(p: Program) -> int:
        seen.append(p.kept["trace"])
        return len(p.kept["trace"])

    events = [
        (0, between.start_recording), (6, between.stop_recording), (13, lengths),
        (13, between.start_recording), (19, between.stop_recording),
    ]  # fmt: skip
    equal_runs(build, 21, events)
    assert [len(trace) for trace in seen] == [6, 6]


def test_two_models_of_one_function_do_not_meet() -> None:
    """The same code, called for two closures: each has its own parameters."""

    def both(how: Any) -> Any:
        ol.seed(1)
        pair = [program("mlp", calm("Adam")) for _ in range(2)]
        steps = [how(p.step) for p in pair]
        results = [
            step(*p.batches[i % 4])
            for i in range(10) for p, step in zip(pair, steps, strict=True)
        ]  # fmt: skip
        return [r.numpy().tobytes() for r in results], [
            value.numpy().tobytes() for p in pair for value in p.model.state_dict().values()
        ]

    assert both(ol.capture) == both(lambda f: f)


def test_sparse_gradients_of_an_embedding() -> None:
    def build(lazy: bool) -> Program:
        p = program("transformer", EACH["SGD"])
        p.model.words = ol.nn.Embedding(11, 8, sparse=True)
        p.optimizer = ol.optimizer.Adam(0.01, parameters=p.model.parameters(), lazy_mode=lazy)
        p.step = train_step(p.model, p.optimizer)
        return p

    for lazy in (False, True):
        equal_runs(partial(build, lazy), 12)
