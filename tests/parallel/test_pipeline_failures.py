"""Sections that fail: the others end, the error names who is missing, and nothing has changed."""

import _thread
import os
import threading
import time
import types

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer.wrappers.pipeline import board
from optlab.parallel import RankError, StalledError
from tests.parallel import pipelines
from tests.stopwatch import Stopwatch

CRITERION = ol.nn.CrossEntropyLoss()


def left_over(before=()):
    """Return the workers that have not ended; give them time, for a busy machine."""
    ends = time.monotonic() + 30
    while True:
        left = {t for t in threading.enumerate() if t.name.startswith("optlab pipeline")}
        left -= set(before)
        if not left or time.monotonic() > ends:
            return left
        time.sleep(0.01)


@pytest.fixture
def clock_of_this_process(monkeypatch):
    """Let deadlines count the processor time of this process, which other ones do not use."""
    clocks = {name: getattr(time, name) for name in dir(time) if not name.startswith("_")}
    clocks["monotonic"] = time.process_time
    monkeypatch.setattr(board, "time", types.SimpleNamespace(**clocks))


def step_of(fault, where=1, **settings):
    """Take a step that fails in the forward pass of a section; return the error and the rest."""
    model = pipelines.network(lambda: fault if where is None else ol.nn.Identity())
    if where is not None:
        model[3 * where + 2] = fault
    model.add_sublayer("norm", ol.nn.BatchNorm1D(pipelines.CLASSES))
    optimizer = ol.optimizer.PipelineOptimizer(
        pipelines.adam(model), ["2", "5", "8"], num_microbatches=8, **settings
    )
    before = pipelines.values(model)
    state = optimizer.state_dict()["inner_optimizer"]
    with Stopwatch() as watch, pytest.raises(RankError) as caught:
        optimizer.step(model, CRITERION, *pipelines.data())
    for a, b in zip(before, pipelines.values(model), strict=True):
        np.testing.assert_array_equal(a, b)
    assert all(p.grad is None or not p.grad.numpy().any() for p in model.parameters())
    assert str(optimizer.state_dict()["inner_optimizer"]) == str(state)
    return caught.value, watch.seconds, optimizer, model


@pytest.mark.parametrize("where", [0, 1, 3])
@pytest.mark.parametrize("queue_size", [1, 30])
def test_a_section_that_raises_ends_the_others_and_is_named(where, queue_size):
    error, seconds, optimizer, model = step_of(
        pipelines.Faulty("raise"), where, queue_size=queue_size
    )
    assert f"section {where} (" in str(error)
    assert "ArithmeticError: the third one in the forward pass of micro-batch 2" in str(error)
    assert isinstance(error.__cause__, ArithmeticError)
    assert error.section == where
    assert seconds < 10
    assert not left_over()
    # The next step is as if the failed one had not been.
    assert np.isfinite(float(optimizer.step(model, CRITERION, *pipelines.data())))


def test_a_backward_pass_that_raises_is_named():
    class Fault(ol.nn.Layer):
        def forward(self, x):
            x.register_hook(self.fail)
            return x * 1

        def fail(self, g):
            raise ZeroDivisionError("in a hook")

    error, *_ = step_of(Fault(), 2)
    assert "ZeroDivisionError: in a hook in the backward pass of micro-batch 0" in str(error)
    assert error.section == 2


def test_a_worker_that_ends_itself_is_an_error():
    error, seconds, *_ = step_of(pipelines.Faulty("exit"), 2)
    assert "section 2 (" in str(error)
    assert "SystemExit" in str(error)
    assert seconds < 10


def test_a_section_that_stalls_ends_the_others_within_the_deadline():
    error, seconds, *_ = step_of(pipelines.Faulty("stall"), 1, timeout=1.0)
    assert isinstance(error, StalledError)
    assert error.section == 1
    assert "gave no sign of life" in str(error)
    assert "section" in str(error).partition("waited")[0]
    assert seconds < 10


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="threads have no clock")
@pytest.mark.usefixtures("clock_of_this_process")
def test_a_section_that_computes_longer_than_the_deadline_is_no_stall():
    class Busy(ol.nn.Layer):
        def forward(self, x):
            ends = time.thread_time() + 0.5
            while time.thread_time() < ends:
                np.ones(1000).sum()
            return x

    model = pipelines.network(lambda: ol.nn.Identity())
    model[2] = Busy()
    optimizer = ol.optimizer.PipelineOptimizer(
        pipelines.adam(model), ["5"], num_microbatches=1, timeout=0.2
    )
    optimizer.step(model, CRITERION, *pipelines.data())
    optimizer = ol.optimizer.PipelineOptimizer(
        pipelines.adam(model), ["5"], num_microbatches=1, longest=0.2
    )
    with pytest.raises(
        StalledError, match=r"section 0 .*(has computed for|did not come)"
    ) as caught:
        optimizer.step(model, CRITERION, *pipelines.data())
    assert caught.value.section == 0


def test_an_optimizer_that_refuses_the_step_leaves_nothing_changed():
    model = pipelines.network()
    optimizer = pipelines.pipeline(model, 2, inner=lambda m: pipelines.adam(m, not_finite="raise"))
    before = pipelines.values(model)
    x, y = pipelines.data()
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError):  # workers inherit it
        optimizer.step(model, CRITERION, x * np.inf, y)
    for a, b in zip(before, pipelines.values(model), strict=True):
        np.testing.assert_array_equal(a, b)
    assert all(p.grad is None or not p.grad.numpy().any() for p in model.parameters())


@pytest.mark.parametrize("schedule", ["1F1B", "GPipe"])
def test_queues_of_one_place_hold_under_a_slow_consumer(schedule):
    class Slow(ol.nn.Layer):
        def forward(self, x):
            time.sleep(0.01)
            return x

    counts = []

    class Ahead(ol.nn.Layer):
        """Counts how far the first section is ahead of the slow one."""

        ahead, lock = 0, threading.Lock()

        def __init__(self, by):
            super().__init__()
            self.by = by

        def forward(self, x):
            with Ahead.lock:
                Ahead.ahead += self.by
                counts.append(Ahead.ahead)
            return x

    Ahead.ahead = 0
    model = pipelines.network(lambda: ol.nn.Identity())
    model[2], model[8] = Ahead(1), ol.nn.Sequential(Ahead(-1), Slow())
    model[5] = ol.nn.Identity()
    optimizer = ol.optimizer.PipelineOptimizer(
        pipelines.adam(model), ["5"], num_microbatches=16, queue_size=1, schedule=schedule
    )
    optimizer.step(model, CRITERION, *pipelines.data())
    assert max(counts) <= 3  # one in the queue, one waits to be put, one is computed
    assert len(counts) == 32


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity of threads here")
def test_workers_are_pinned_from_a_core_on():
    seen = []

    class Where(ol.nn.Layer):
        def forward(self, x):
            seen.append(os.sched_getaffinity(0))
            return x

    before = os.sched_getaffinity(0)
    model = pipelines.network(Where)
    optimizer = pipelines.pipeline(model, 2, 1, start_cpu_core_id=1)
    optimizer.step(model, CRITERION, *pipelines.data())
    assert all(len(cores) == 1 for cores in seen)
    assert os.sched_getaffinity(0) == before
    seen.clear()
    pipelines.pipeline(model, 2, 1).step(model, CRITERION, *pipelines.data())
    assert all(cores == before for cores in seen)


def test_ctrl_c_ends_the_workers():
    seen, others = [], set(threading.enumerate())
    model = pipelines.network(lambda: ol.nn.Identity())

    class Interrupts(ol.nn.Layer):
        def forward(self, x):
            if not seen:
                seen.append(_thread.interrupt_main())
            time.sleep(0.2)
            return x

    model[2] = Interrupts()
    optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(model), ["5"], num_microbatches=8)
    before = pipelines.values(model)
    with pytest.raises(KeyboardInterrupt):
        optimizer.step(model, CRITERION, *pipelines.data())
    for a, b in zip(before, pipelines.values(model), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not left_over(others)
