"""Norms of every tenth step by pinned arrays, and by a compiled call, are those of others."""

import gc
import weakref

import numpy as np
import pytest

import optlab as ol
from optlab.plan.executors import has_numba, use_executor
from optlab.trace.probes.compiled_norms import CompiledNorms
from optlab.trace.probes.rows import BLOCK, Norms, _SumsOfSquares
from optlab.trace.recordings.pinned_rows import PinnedRows
from tests.optimizer.helpers import give
from tests.trace.test_plain_steps import steps_of

#: The steps of "light", by a schedule that does not pin.
SAME_STEPS = range(1, 2000, 10)


needs_numba = pytest.mark.skipif(not has_numba(), reason="needs numba")


def bits(trace):
    found = {"loss": trace.loss, "rate": trace.learning_rate, "steps": trace.steps("norms")}
    for kind, norms in trace.norms.items():
        found |= {(kind, name): array for name, array in norms.items()}
    return {name: (x.dtype, x.shape, x.tobytes()) for name, x in found.items()}


@pytest.fixture
def taken(monkeypatch):
    """Count the steps that were taken by pinned arrays, and those that could not be."""
    found, take = [], PinnedRows.take

    def counted(self, plain):
        found.append(take(self, plain))
        return found[-1]

    monkeypatch.setattr(PinnedRows, "take", counted)
    return found


def recorded(captured, probes, count=150, between=lambda number, optimizer: None, **settings):
    optimizer, step = steps_of(captured, **settings)
    for _ in range(160):  # until steps are bound to their arrays
        step()
    with ol.record(optimizer, probes=probes) as trace:
        for number in range(1, count + 1):
            step()
            between(number, optimizer)
    return trace, [p.numpy().tobytes() for p in optimizer.parameters]


@pytest.mark.parametrize(
    ("captured", "executor"),
    [(False, "numpy"), (True, "numpy"), pytest.param(False, "numba", marks=needs_numba)],
)
def test_pinned_arrays_have_the_norms_of_others(captured, executor, taken):
    with use_executor("numpy"):
        trace, weights = recorded(captured, [Norms(terms=False, steps=SAME_STEPS)])
    assert not taken
    with use_executor(executor):
        other, same = recorded(captured, "light")
    assert bits(other) == bits(trace)
    assert same == weights
    assert taken == [True] * len(taken)
    assert len(taken) > 20


def given_gradients(number, optimizer):
    if number in (20, 59):  # the next step but one is observed
        optimizer.apply_gradients([(p, np.ones(p.shape, p.dtype)) for p in optimizer.parameters])


def loaded_state(number, optimizer):
    if number in (9, 10, 40):
        optimizer.set_state_dict(optimizer.state_dict())


def listened(number, optimizer):
    if number in (19, 49):
        listened.handle = ol.events.subscribe("step_taken", lambda who, updates: None)
    if number in (25, 55):
        listened.handle.remove()


def without_a_gradient(number, optimizer):
    if number in (29, 30):
        give(optimizer.parameters[0], np.ones(optimizer.parameters[0].shape))
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)


def other_values(number, optimizer):
    if number in (19, 20, 30):
        p = optimizer.parameters[0]
        p.set_value(p.numpy() + 1)


def other_rate(number, optimizer):
    optimizer.set_lr(0.01 / number)


CASES = [given_gradients, loaded_state, listened, without_a_gradient, other_values, other_rate]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("between", CASES, ids=[case.__name__ for case in CASES])
def test_what_happens_between_steps(between, captured, taken):
    found = [
        recorded(captured, probes, 90, between)
        for probes in ([Norms(terms=False, steps=SAME_STEPS)], "light")
    ]
    assert bits(found[0][0]) == bits(found[1][0])
    assert found[0][1] == found[1][1]
    assert True in taken


@pytest.mark.parametrize("captured", [False, True])
def test_a_trace_is_read_while_it_grows(captured, taken):
    optimizer, step = steps_of(captured)
    for _ in range(160):
        step()
    lengths, norms = [], []
    with ol.record(optimizer, probes="light") as trace:
        for number in range(1, 700):
            step()
            if number % 7 == 0 or number in (20, 21, 22, 30, 31):
                lengths.append((number, len(trace)))
                norms.append(
                    (number, len(trace.steps("norms")), len(trace["norm of update"]["0.bias"]))
                )
    assert all(number == length for number, length in lengths)
    assert all((number + 9) // 10 == count == rows for number, count, rows in norms)
    assert True in taken


def test_every_few_steps_and_a_limit():
    for every in (1, 2, 3):
        optimizer, step = steps_of(False)
        for _ in range(160):
            step()
        with ol.record(optimizer, probes=[Norms(terms=False, every=every)]) as trace:
            for _ in range(30):
                step()
        assert trace.steps("norms").tolist() == list(range(1, 31, every))
    optimizer, step = steps_of(False)
    with ol.record(optimizer, probes="light", limit="2 KB") as trace:
        for _ in range(300):
            step()
    assert len(trace) == 300
    assert 1 < len(trace.steps("norms")) < 30
    assert "the limit of" in trace.left_out[-1]


def test_a_store_has_every_step_up_to_its_last_flush(tmp_path, taken):
    pytest.importorskip("zarr")
    optimizer, step = steps_of(True)
    for _ in range(160):
        step()
    with ol.record(optimizer, probes="light", to=tmp_path / "run.zarr", flush=35) as trace:
        for number in range(1, 201):
            step()
            if number in (36, 71, 141):
                assert len(ol.load_trace(tmp_path / "run.zarr")) >= number - 36
    assert bits(ol.load_trace(tmp_path / "run.zarr")) == bits(trace)
    assert len(trace) == 200
    assert True in taken


def test_no_circle_keeps_a_trace():
    optimizer, step = steps_of(True)
    gc.disable()
    try:
        with ol.record(optimizer, probes="light") as trace:
            for _ in range(200):
                step()
        alive = weakref.ref(trace)
        del trace
        assert alive() is None
    finally:
        gc.enable()


SHAPES = {
    "small": [6, 1, 40],
    "with an empty one": [5, 0, 7],
    "several blocks": [3, BLOCK, 2 * BLOCK + 5, 17],
}


@needs_numba
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SHAPES.values(), ids=list(SHAPES))
def test_the_compiled_call_has_numpys_bits(sizes, dtype):
    sums = _SumsOfSquares(np.cumsum([0, *sizes]).tolist())
    compiled = CompiledNorms(sums.pieces(), sums.count, BLOCK)
    rng = np.random.default_rng(0)
    now, m, v, before, g = (rng.standard_normal(sum(sizes)).astype(dtype) for _ in range(5))
    now[2], m[0], before[3] = np.inf, np.nan, np.inf
    v[:] *= 1e-30
    apart = np.split(g, np.cumsum(sizes)[:-1])
    with use_executor("numba"), np.errstate(all="ignore"):
        expected = np.sqrt(sums.of([now, g, m, v, now - before]))
        for gradients in ([g], apart, [g.copy()]):
            found = compiled.of(now, gradients, [m, v], before)
            assert np.array_equal(found, expected, equal_nan=True)
        assert compiled.of(now, [g.astype("int32")], [m, v], before) is None
        assert compiled.of(now, [x.astype("float16") for x in apart], [m, v], before) is None
        assert compiled.of(now, [g], [m[::-1], v], before) is None
    assert compiled.of(now.astype("float16"), [g], [m, v], before) is None


def test_numpy_goes_on_where_the_bits_are_others(monkeypatch):
    probe = Norms(terms=False, every=10)
    w = ol.Parameter(np.arange(4.0), name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    with ol.record(optimizer, probes=[probe]):
        pass
    (compiled,) = probe._compiled
    wrong = np.zeros((3, 1))
    monkeypatch.setattr(compiled, "of", lambda *given: wrong)
    compiled.refused = False
    arrays = np.arange(4.0), [np.ones(4)], [], np.zeros(4)
    found = probe.live_rows(0, *arrays)
    np.testing.assert_allclose(found[:, 0], [np.sqrt(14), 2, np.sqrt(14)])
    assert compiled.refused
