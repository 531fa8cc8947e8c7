"""Steps by bound calls show their arrays to a recording: the same trace as of general steps."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from optlab.optimizer.step import bound
from tests.optimizer.helpers import EACH, WithNorms

every_rule = pytest.mark.parametrize("make", [*EACH.values(), WithNorms], ids=[*EACH, "WithNorms"])
STEPS = bound.AFTER + 30


def started(make, name="point"):
    p = ol.Parameter(np.array([-1.2, 1.0]), name=name)
    optimizer = make(parameters=[p])
    optimizer.set_lr(1e-3)
    return p, optimizer


def go_on(p, optimizer, steps=STEPS):
    for _ in range(steps):
        x, y = p
        ((1 - x) ** 2 + 100 * (y - x**2) ** 2).backward()
        optimizer.step()
        optimizer.clear_grad()


def bits(trace):
    """Return all arrays of a trace but the times, as bytes, by their names."""
    found = {"loss": trace.loss, "rate": trace.learning_rate, "step": trace.step}
    for kind in ("parameters", "gradients"):
        found |= {(kind, name): array for name, array in getattr(trace, kind).items()}
    for kind in ("slots", "terms"):
        for quantity, named in getattr(trace, kind).items():
            found |= {(quantity, name): array for name, array in named.items()}
    return {name: (x.dtype, x.shape, x.tobytes()) for name, x in found.items()}


@contextlib.contextmanager
def general_steps():
    """Listen to what a step by bound calls does not have."""
    with events.step_taken.subscribed(lambda optimizer, updates: None):
        yield


@pytest.fixture
def shown():
    """Count the steps that are shown."""
    counts = []
    with events.step_shown.subscribed(lambda optimizer, arrays: counts.append(optimizer)):
        yield counts


@every_rule
def test_the_trace_is_that_of_general_steps(make):
    traces, points = [], []
    for around in (contextlib.nullcontext, general_steps):
        p, optimizer = started(make)
        with around(), ol.record(optimizer, probes="toy") as trace:
            go_on(p, optimizer)
        traces.append(bits(trace))
        points.append(p.numpy().tobytes())
    p, optimizer = started(make)
    go_on(p, optimizer)
    assert traces[0] == traces[1]
    assert points == [p.numpy().tobytes()] * 2


@pytest.mark.parametrize("make", [ol.optimizer.SGD, ol.optimizer.Adam, ol.optimizer.RMSProp])
def test_recorded_steps_are_shown_once_calls_are_bound(make, shown):
    p, optimizer = started(lambda parameters: make(0.1, parameters=parameters))
    with ol.record(optimizer):
        go_on(p, optimizer)
    assert len(shown) == STEPS - bound.AFTER


def adam(parameters, **options):
    return ol.optimizer.Adam(0.1, parameters=parameters, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"weight_decay": 0.1},
        {"grad_clip": ol.nn.ClipGradByGlobalNorm(0.5)},
        {"not_finite": "skip"},
    ],
    ids=str,
)
def test_steps_that_change_their_gradients_are_general(options, shown):
    p, optimizer = started(lambda parameters: adam(parameters, **options))
    with ol.record(optimizer):
        go_on(p, optimizer)
    assert not shown


def test_a_trace_that_is_read_on_the_way_goes_on():
    p, optimizer = started(adam)
    q, other = started(adam)
    with ol.record(optimizer) as trace, general_steps():
        go_on(p, optimizer)
    with ol.record(optimizer) as late, general_steps():
        go_on(p, optimizer, 40)
    with ol.record(other) as read:
        for k in range(STEPS):
            go_on(q, other, 1)
            assert len(read.loss) == len(read.parameters["point"]) - 1 == k + 1
    assert bits(read) == bits(trace)
    with ol.record(other) as later:
        go_on(q, other, 40)
    assert bits(later) == bits(late)


def test_general_and_shown_steps_take_turns():
    runs = []
    for around in (general_steps, contextlib.nullcontext):
        p, optimizer = started(adam)
        with ol.record(optimizer) as trace:
            go_on(p, optimizer)
            with around():
                go_on(p, optimizer, 5)
            go_on(p, optimizer)
        runs.append(bits(trace))
    assert runs[0] == runs[1]


def test_the_limit_of_bytes_holds():
    p, optimizer = started(adam)
    go_on(p, optimizer)
    with ol.record(optimizer, limit=9600) as trace:
        go_on(p, optimizer, 1500)
    assert len(trace) == 1500
    assert len(trace.parameters["point"]) - 1 == len(trace.steps("parameter")) == 100
    assert "Values: steps from 101 on" in trace.left_out[0]


def test_a_store_is_written_as_the_run_goes(tmp_path):
    pytest.importorskip("zarr")
    p, optimizer = started(adam)
    q, other = started(adam)
    with ol.record(optimizer, to=tmp_path / "run.zarr", flush=10) as stored:
        go_on(p, optimizer, STEPS - 5)
        assert len(ol.load_trace(tmp_path / "run.zarr")) >= STEPS - 15
        go_on(p, optimizer, 5)
    with ol.record(other) as kept:
        go_on(q, other)
    assert bits(ol.load_trace(tmp_path / "run.zarr")) == bits(stored) == bits(kept)


def test_two_recordings_at_once():
    p, optimizer = started(adam)
    with ol.record(optimizer) as one, ol.record(optimizer) as other:
        go_on(p, optimizer)
    assert bits(one) == bits(other)


def test_where_floating_point_errors_raise_steps_are_general(shown):
    p, optimizer = started(adam)
    with ol.record(optimizer) as trace:
        go_on(p, optimizer)
        before = len(shown)
        with np.errstate(all="raise", under="ignore"):
            go_on(p, optimizer, 3)
    assert before == len(shown) == STEPS - bound.AFTER
    assert len(trace) == STEPS + 3


def test_a_subscription_to_shown_steps_alone_is_called_by_none(shown):
    p, optimizer = started(adam)
    go_on(p, optimizer)
    assert not shown
