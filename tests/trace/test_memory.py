"""Reports of ol.memory about a step, and that measuring changes nothing."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events

F = ol.nn.functional


def training(optimizer_class=ol.optimizer.Adam, seed=0, **settings):
    """Return a network, its optimizer, and a training step."""
    ol.seed(seed)
    model = ol.nn.Sequential(
        ol.nn.Linear(64, 256), ol.nn.GELU(), ol.nn.Dropout(0.3), ol.nn.Linear(256, 10)
    )
    optimizer = optimizer_class(0.01, parameters=model.parameters(), **settings)
    x = np.random.default_rng(0).normal(size=(128, 64)).astype("float32")
    y = np.arange(128) % 10
    losses = []

    def step():
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())

    return model, optimizer, step, losses


def size(model):
    return sum(p.size * 4 for p in model.parameters())


def test_what_is_there_all_the_time_is_counted_from_the_start():
    model, _, step, _ = training()
    step()
    trace = ol.memory.report(step)
    roles = trace.by_role()
    assert set(roles["parameter"]) == {size(model)}
    assert set(roles["slot"]) == {2 * size(model)}
    assert roles["data"][0] >= 128 * 64 * 4  # the batch, made before the step


def test_gradients_come_in_backward_and_go_when_they_are_cleared():
    model, _, step, _ = training()
    step()
    trace = ol.memory.report(step)
    gradient = trace.by_role()["gradient"]
    assert set(gradient[[p == "forward" for p in trace.phase]]) == {0}
    assert gradient[trace.operation.index("Adam")] == size(model)
    assert gradient[trace.operation.index("clear_grad")] == 0
    backward = gradient[[p == "backward" for p in trace.phase]]
    assert (np.diff(backward) >= 0).all()


def test_saved_values_pile_up_in_forward_and_are_freed_in_backward():
    _, _, step, _ = training()
    step()
    trace = ol.memory.report(step)
    saved = trace.by_role()["saved"]
    forward = saved[[p == "forward" for p in trace.phase]]
    backward = saved[[p == "backward" for p in trace.phase]]
    assert (np.diff(forward) >= 0).all()
    assert (np.diff(backward) <= 0).all()
    # Saved are the copied batch, and the inputs of GELU, dropout and the second layer.
    assert forward[-1] >= (128 * 64 + 2 * 128 * 256) * 4
    assert saved[-1] == 0


def test_a_graph_that_is_dropped_frees_what_it_saved():
    w = ol.to_tensor(np.ones((256, 256)), requires_grad=True)
    with ol.memory.ledger() as trace:
        y = np.sum(np.exp(np.tanh(w)))
        np.sum(ol.ones([2]))
        del y
        np.sum(ol.ones([2]))
    saved = trace.by_role()["saved"]
    assert saved.max() == 2 * 256 * 256 * 8
    assert saved[-2:].tolist() == [0, 0]


def test_a_graph_that_is_retained_keeps_what_it_saved():
    w = ol.to_tensor(np.ones((256, 256)), requires_grad=True)
    with ol.memory.ledger() as trace:
        y = np.sum(np.exp(w))
        y.backward(retain_graph=True)
        w.grad = None
        y.backward()
        del y
    saved = trace.by_role()["saved"]
    ends = [i for i, phase in enumerate(trace.phase) if phase == "backward"]
    assert saved[ends[0]] == saved[ends[2]] == 256 * 256 * 8
    assert saved[-1] == 0


def test_views_count_once_and_keep_the_whole_alive():
    w = ol.to_tensor(np.ones((256, 256)), requires_grad=True)
    with ol.memory.ledger(verify=True) as trace:
        part = np.exp(w)[:1]
        np.sum(part)
    assert trace.total[-1] - trace.total[0] == trace.measured[-1] == 256 * 256 * 8
    del part


def test_the_peak_inside_an_operation_is_seen_and_told_of():
    def wasteful(x):
        big = np.zeros((64, 1024, 16))
        return x + big[0, 0, 0]

    class Waste(ol.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return ol.Tensor(wasteful(x.data))

        @staticmethod
        def backward(ctx, g):
            return g

    w = ol.to_tensor(np.ones(10), requires_grad=True)
    trace = ol.memory.report(lambda: Waste.apply(w))
    assert trace.peak - trace.total[0] == pytest.approx(64 * 1024 * 16 * 8, rel=0.001)
    assert trace.operation[trace.peak_event] == "Waste"
    first = trace.by_operation()[0]
    assert (first.name, first.role, first.arrays) == ("Waste", "temporary", 0)
    assert first.share > 0.99


@pytest.mark.usefixtures("traced_memory")
def test_the_peak_is_that_of_a_step_that_nobody_watches():
    _, _, step, _ = training()
    step()
    trace = ol.memory.report(step)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    step()
    unwatched = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert trace.peak - trace.total[0] == pytest.approx(unwatched, rel=0.03)


def test_what_makes_up_the_peak_adds_up_to_it():
    _, _, step, _ = training()
    step()
    trace = ol.memory.report(step)
    held = trace.by_operation()
    assert sum(one.nbytes for one in held) == trace.peak
    assert sum(one.share for one in held) == pytest.approx(1)
    assert [one.nbytes for one in held] == sorted((one.nbytes for one in held), reverse=True)
    for event in range(len(trace)):
        held = trace.by_operation(event)
        assert sum(one.nbytes for one in held) == trace.during[event].sum()
        by_role = dict.fromkeys(trace.roles, 0)
        for one in held:
            by_role[one.role] += one.nbytes
        assert list(by_role.values()) == trace.during[event].tolist()


def test_layers_are_named_in_forward_and_in_backward():
    _, _, step, _ = training()
    step()
    trace = ol.memory.report(step)
    told = set(zip(trace.operation, trace.phase, trace.layer, strict=True))
    assert ("gelu", "forward", "1: GELU") in told
    assert ("gelu", "backward", "1: GELU") in told


@pytest.mark.parametrize("optimizer", [ol.optimizer.Adam, ol.optimizer.SGD, ol.optimizer.Muon])
def test_a_watched_run_is_equal_to_the_bit(optimizer):
    plain, _, step, losses = training(optimizer)
    for _ in range(3):
        step()
    watched, _, step, others = training(optimizer)
    for _ in range(3):
        ol.memory.report(step)
    assert losses == others
    for a, b in zip(plain.parameters(), watched.parameters(), strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


def test_nothing_is_left_behind_and_nothing_is_kept_alive():
    listening = {name: e.listeners for name, e in vars(events).items() if hasattr(e, "listeners")}
    call, made = ol.nn.Layer.__call__, ol.Tensor.__init__
    on = slow_path.any, slow_path.needs_values
    w = ol.to_tensor(np.ones(1000), requires_grad=True)
    kept = []
    with ol.memory.ledger():
        y = np.exp(w)
        kept.append(weakref.ref(y.data))
        del y
        assert kept[0]() is None
    with pytest.raises(ZeroDivisionError), ol.memory.ledger():
        raise ZeroDivisionError
    assert listening == {
        name: e.listeners for name, e in vars(events).items() if hasattr(e, "listeners")
    }
    assert ol.nn.Layer.__call__ is call
    assert ol.Tensor.__init__ is made
    assert (slow_path.any, slow_path.needs_values) == on
    assert not tracemalloc.is_tracing()


@pytest.mark.usefixtures("traced_memory")
def test_tracing_of_the_user_goes_on_with_its_peak():
    _, _, step, _ = training()
    step()
    tracemalloc.start()
    try:
        np.empty(30_000_000, np.uint8)
        before = tracemalloc.get_traced_memory()[1]
        trace = ol.memory.report(step, verify=True)
        assert tracemalloc.is_tracing()
        assert tracemalloc.get_traced_memory()[1] == pytest.approx(before, rel=1e-4)
        assert trace.peak < 2_000_000
        grown = trace.total - trace.total[0]
        assert np.abs(grown - trace.measured).max() <= 0.02 * trace.measured.max()
        assert trace.by_role()["slot"][0] > 0
    finally:
        tracemalloc.stop()


def test_two_ledgers_at_a_time_are_refused():
    with ol.memory.ledger(), pytest.raises(RuntimeError, match="open already"):
        ol.memory.report(lambda: None)
    ol.memory.report(lambda: None)  # afterwards another may be opened


def test_what_is_no_step_is_refused():
    with pytest.raises(TypeError, match=r"report\(step\), not report\(step\(\)\)"):
        ol.memory.report(None)


def test_the_table_says_roles_and_operations():
    _, _, step, _ = training()
    step()
    said = str(ol.memory.report(step))
    assert said.startswith("Memory of a step: peak ")
    for words in ("slots of the optimizer", "saved for backward", "4 parameters", "moment1"):
        assert words in said
    total = next(line for line in said.splitlines() if line.startswith("total"))
    assert total.count("KiB") == 3


def test_the_table_says_what_ran_again_and_what_was_checked():
    w = ol.to_tensor(np.ones((256, 256)), requires_grad=True)

    def step():
        with ol.rematerialize():
            y = np.sum(np.exp(np.tanh(w)))
        y.backward()

    step()
    said = str(ol.memory.report(step, verify=True))
    assert "2 operations ran again in backward, and gave 1 MiB." in said
    assert "Checked against the allocators at every event: off by at most" in said
    assert "ran again" not in str(ol.memory.report(lambda: np.sum(np.exp(w)).backward()))


def test_the_table_in_a_notebook_escapes_names():
    w = ol.Parameter(np.ones(1000), name="<b>w</b>")
    page = ol.memory.report(lambda: np.sum(np.exp(w)).backward())._repr_html_()
    assert "&lt;b&gt;w&lt;/b&gt;" in page
    assert "<b>w</b>" not in page


def test_as_xarray_and_as_table():
    pytest.importorskip("xarray")
    _, _, step, _ = training()
    trace = ol.memory.report(step)
    data = trace.to_xarray()
    assert data["bytes"].sel(role="slot").values.tolist() == trace.by_role()["slot"].tolist()
    assert data.attrs["peak"] == data["during"].sum("role").max()
    assert trace.table()["bytes"].sum() == trace.peak


def test_arrays_that_die_in_another_thread_and_in_cycles_are_counted_until_they_die():
    w = ol.to_tensor(np.ones((128, 128)), requires_grad=True)
    gc.collect()
    with ol.memory.ledger(verify=True) as trace:
        cycle = [np.exp(w)]
        cycle.append(cycle)
        held = [np.tanh(w)]
        del cycle
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        np.sum(ol.ones([2]))
        gc.collect()
        np.sum(ol.ones([2]))
    assert trace.made.tolist() == trace.measured.tolist()
    assert trace.made[-2] < 128 * 128 * 8 <= trace.made.max()


def test_derivatives_of_higher_order_and_transforms_are_followed():
    x = np.linspace(0, 1, 20_000)
    trace = ol.memory.report(
        lambda: ol.grad(lambda x: np.sum(ol.grad(lambda x: np.sum(np.tanh(x)))(x) ** 2))(x),
        verify=True,
    )
    assert np.abs(trace.made - trace.measured).max() <= 0.02 * trace.measured.max()
    assert trace.made[-1] == 0


def test_an_event_that_is_not_there_is_named():
    trace = ol.memory.report(lambda: None)
    with pytest.raises(IndexError, match="events 0 to 1"):
        trace.by_operation(7)


def recorded_run(probes):
    model, optimizer, step, losses = training()
    with ol.record(optimizer, probes=probes) as trace:
        for _ in range(4):
            step()
    return model, trace, losses


def test_a_recording_keeps_the_bytes_of_each_step():
    model, trace, losses = recorded_run(["norms", "memory"])
    assert set(trace.memory["parameter"]) == {size(model)}
    assert trace.memory["slot"][1:].tolist() == [2 * size(model)] * 3
    assert (trace.memory["saved"] + trace.memory["temporary"] > 0).all()
    assert list(trace.norms) == list(recorded_run(["norms"])[1].norms)
    assert losses == recorded_run(["norms"])[2] == trace.loss.tolist()
    assert recorded_run("light")[1].memory == {}


def test_a_recording_of_memory_does_not_grow_with_what_is_over():
    _, optimizer, step, _ = training()
    recorder = ol.record(optimizer, probes=["norms", "memory"])
    with recorder:
        step()
        step()
        before = len(recorder.bytes.entries)
        for _ in range(10):
            step()
        assert len(recorder.bytes.entries) == before


def test_the_bytes_of_a_recording_as_xarray():
    pytest.importorskip("xarray")
    _, trace, _ = recorded_run(["norms", "memory"])
    data = trace.to_xarray()
    assert data["memory"].sel(role="saved").values.tolist() == trace.memory["saved"].tolist()


def test_an_unknown_probe_names_those_that_there_are():
    _, optimizer, _, _ = training()
    with pytest.raises(ValueError, match="'values', 'norms' and 'memory'"):
        ol.record(optimizer, probes=["bytes"])


def test_the_scratch_of_an_optimizer_is_of_the_step():
    _, _, step, _ = training()
    traces = []
    thread = threading.Thread(target=lambda: traces.append(ol.memory.report(step)))
    thread.start()  # a new thread has no scratch arrays yet
    thread.join()
    made = [entry for entry in traces[0].entries if entry.name.startswith("scratch of")]
    assert made
    assert {(entry.phase, entry.present_role) for entry in made} == {("step", "temporary")}


def test_what_lbfgs_holds_while_it_calls_the_closure_is_of_the_step():
    w = ol.to_tensor(np.ones(1000), requires_grad=True)
    optimizer = ol.optimizer.LBFGS(parameters=[w])

    def closure():
        optimizer.clear_grad()
        loss = np.sum(w * w)
        loss.backward()
        return loss

    trace = ol.memory.report(lambda: optimizer.step(closure))
    assert {entry.phase for entry in trace.entries if entry.name == "LBFGS"} == {"step"}


def test_the_weights_that_an_average_keeps_while_it_lends_are_slots():
    w = ol.Parameter(np.ones(50_000, np.float32))
    ema = ol.optimizer.ExponentialMovingAverage(0.5, parameters=[w])
    ema.update()

    def step():
        with ema.apply():
            return ol.mean(w).item()

    found = ol.memory.report(step, verify=True)
    assert found.by_role()["slot"].max() >= w.data.nbytes
    assert (abs(found.made - found.measured) <= 0.02 * found.measured.max()).all()
