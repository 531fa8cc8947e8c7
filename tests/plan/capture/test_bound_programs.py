"""Programs bound to their memory, with kernels and without: eager runs to the bit, at once."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer.step import bound
from optlab.plan import use_executor
from optlab.plan.calls import bound_program
from tests.optimizer.helpers import EACH
from tests.plan.capture.twins import F, given, nn, run, same, train_step
from tests.plan.capture.twins import Program as Training

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bind programs, and steps of optimizers, after the first replay."""
    for name in ("AFTER", "EACH"):
        monkeypatch.setattr(bound_program, name, 1)
    monkeypatch.setattr(bound, "AFTER", 1)


@pytest.fixture(params=["numpy", "numba"])
def executor(request: pytest.FixtureRequest) -> Iterator[str]:
    with use_executor(request.param):
        yield request.param


def classifier(rule: str = "Adam", rows: int = 8, **options: Any) -> Any:
    """Return what builds a network with a step of it."""

    def build() -> Training:
        ol.seed(0)
        model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
        optimizer = EACH[rule](parameters=model.parameters(), **options)
        rng = np.random.default_rng(0)
        batches = [
            (
                ol.to_tensor(rng.standard_normal((rows, 6)).astype("float32")),
                ol.to_tensor(rng.integers(0, 4, rows)),
            )
            for _ in range(3)
        ]
        return Training(model, optimizer, train_step(model, optimizer), batches)

    return build


def captured(build: Any, steps: int = 8) -> tuple[Any, Any]:
    """Return a training, and its step captured and replayed some times."""
    p = build()
    step = ol.capture(p.step)
    for i in range(steps):
        step(*p.batches[i % len(p.batches)])
    return p, step


@pytest.mark.parametrize("rule", ["Adam", "AdamW", "SGD", "Momentum", "RMSProp", "Lamb"])
def test_runs_are_those_of_eager_steps(rule: str, executor: str) -> None:
    build = classifier(rule)
    same(run(build, 12, [], ol.capture)[0], run(build, 12, [])[0])


def test_a_step_gathers_its_gradients(executor: str) -> None:
    _, step = captured(classifier())
    now = step.plan.binding.bound
    assert now.tail is not None
    assert step.plan.binding.compiled is (executor == "numba")
    assert "collect" not in now.source
    assert ("k0()" in now.source) is (executor == "numba")


def test_the_groups_that_are_shown_are_the_kernels() -> None:
    with use_executor("numba"):
        _, step = captured(classifier())
        plan = step.plan
        kernels = [one for one in plan.binding.bound.schedule.actions if hasattr(one, "kernel")]
        several = [one.entries for one in kernels if len(one.entries) > 1]
        found: dict[Any, list[int]] = {}
        for i, group in enumerate(plan.groups()):
            found.setdefault(group, []).append(i)
        found.pop(None)
        assert several
        assert sorted(found.values()) == sorted(several)
        assert "compiled" in str(plan).splitlines()[0]


def test_parameters_with_other_memory(executor: str) -> None:
    build = classifier()
    found = []
    for how in (lambda f: f, ol.capture):
        p = build()
        step = how(p.step)
        for i in range(9):
            if i == 5:
                for one in p.model.parameters():
                    one.data = one.data * np.float32(0.5)
            found.append(step(*p.batches[i % 3]).numpy().copy())
    assert all(np.array_equal(a, b) for a, b in zip(found[:9], found[9:], strict=True))


def test_gradients_that_are_there_are_added_to(executor: str) -> None:
    build = classifier()
    found = []
    for how in (lambda f: f, ol.capture):
        p = build()
        step = how(p.step)
        for i in range(9):
            if i == 6:
                F.cross_entropy(p.model(p.batches[0][0]), p.batches[0][1]).backward()
            step(*p.batches[i % 3])
        found.append([x.numpy().copy() for x in p.model.parameters()])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_cleared_gradients_are_zeros_afterwards(executor: str) -> None:
    p, _ = captured(classifier())
    for one in p.model.parameters():
        assert one.grad is not None
        assert not one.grad.numpy().any()


def test_a_label_out_of_bounds_raises_as_in_an_eager_call(executor: str) -> None:
    p, step = captured(classifier())
    x, y = p.batches[0]
    wrong = ol.to_tensor(np.where(np.arange(8) == 3, 4, y.numpy()))
    before = [one.numpy().copy() for one in p.model.parameters()]
    with pytest.raises(ValueError, match="labels must lie in"):
        step(x, wrong)
    after = [one.numpy() for one in p.model.parameters()]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    step(x, y)


@pytest.mark.parametrize("value", [1e30, np.inf, np.nan])
def test_floating_point_errors_are_reported_once_and_values_are_the_same(
    value: float, executor: str
) -> None:
    build = classifier("SGD")
    found, said = [], []
    for how in (lambda f: f, ol.capture):
        p = build()
        step = how(p.step)
        for i in range(6):
            step(*p.batches[i % 3])
        x, y = p.batches[0]
        large = ol.to_tensor(x.numpy() * np.float32(value))
        with warnings.catch_warnings(record=True) as given_out:
            warnings.simplefilter("always")
            loss = step(large, y)
        said.append(Counter(str(w.message) for w in given_out))
        found.append([loss.numpy(), *[one.numpy() for one in p.model.parameters()]])
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    assert bool(said[0]) == bool(said[1])
    # Products warn once each, and on some processors several of them do.
    assert all(count <= max(1, said[0][message]) for message, count in said[1].items())


def test_many_values_that_are_not_finite_end_the_kernels() -> None:
    with use_executor("numba"), np.errstate(all="ignore"):
        p, step = captured(classifier("SGD"))
        assert step.plan.binding.compiled
        x, y = p.batches[0]
        bad = ol.to_tensor(np.full_like(x.numpy(), np.nan))
        for _ in range(bound_program.MOST_FAULTS + 2):
            step(bad, y)
        assert not step.plan.binding.compiled
        assert step.plan.groups() == [None] * len(step.plan.entries)


def test_numpy_alone_where_it_is_chosen() -> None:
    build = classifier()
    with use_executor("numba"):
        p, step = captured(build)
        binding = step.plan.binding
        assert binding.compiled
        calls = []
        real = binding._missed
        binding.bound.link(lambda *given: calls.append(1) or real(*given), binding._faulted)
        step.plan.run = binding.bound.replay
        with use_executor("numpy"):
            step(*p.batches[0])
        assert calls


@pytest.mark.parametrize("state", [{"all": "ignore"}, {"over": "raise"}, {"under": "warn"}])
def test_every_treatment_of_floating_point_errors(state: Any, executor: str) -> None:
    build = classifier()
    found = []
    for how in (lambda f: f, ol.capture):
        p = build()
        step = how(p.step)
        for i in range(9):
            with np.errstate(**(state if i > 4 else {})):
                step(*p.batches[i % 3])
        found.append([x.numpy().copy() for x in p.model.parameters()])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_large_parameters_are_stepped_by_a_compiled_loop() -> None:
    rows = np.random.default_rng(0).standard_normal((4, 300)).astype("float32")

    def losses(how: Any) -> list[Any]:
        ol.seed(0)
        model = nn.Sequential(nn.Linear(300, 200), nn.ReLU(), nn.Linear(200, 3))
        optimizer = EACH["Adam"](parameters=model.parameters())
        step = how(train_step(model, optimizer))
        x, y = ol.to_tensor(rows), ol.to_tensor([0, 1, 2, 1])
        found = [step(x, y).numpy().copy() for _ in range(8)]
        if how is ol.capture:
            tail = step.plan.binding.bound.tail
            assert tail is not None
            assert tail.step is not optimizer.bound_step
        return found

    with use_executor("numba"):
        assert losses(lambda f: f) == losses(ol.capture)


def test_a_clip_and_a_schedule(executor: str) -> None:
    def build() -> Training:
        p = classifier(grad_clip=nn.ClipGradByGlobalNorm(0.1))()
        schedule = ol.optimizer.lr.ExponentialDecay(0.1, 0.9)
        p.optimizer.set_lr_scheduler(schedule)
        inner = p.step

        def step(x: Any, y: Any) -> Any:
            loss = inner(x, y)
            schedule.step()
            return loss

        p.step = step
        return p

    same(run(build, 12, [], ol.capture)[0], run(build, 12, [])[0])


def test_random_numbers_are_drawn_once_where_a_value_is_not_finite() -> None:
    found = []
    for how in (lambda f: f, ol.capture):
        ol.seed(3)
        model = nn.Sequential(nn.Linear(6, 12), nn.Dropout(0.5), nn.ReLU(), nn.Linear(12, 4))
        optimizer = EACH["SGD"](parameters=model.parameters())
        step = how(train_step(model, optimizer))
        x, y = given(8, 6), ol.to_tensor(np.arange(8) % 4)
        with use_executor("numba"), np.errstate(all="ignore"):
            for i in range(8):
                step(ol.to_tensor(x * np.float32(1e38 if i == 6 else 1)), y)
        found.append(str(ol.get_rng_state()))
    assert found[0] == found[1]


def test_a_copy_of_an_optimizer_has_no_bound_memory() -> None:
    p, step = captured(classifier())
    twin = copy.deepcopy(p.optimizer)
    step(*p.batches[0])
    assert twin.bound_step is None
