"""The fused step gives the bits of the plain one, for all parameters and gradients."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.backend import events
from optlab.optimizer.step import fused
from optlab.plan import sizes, threads, use_executor
from optlab.plan.executors import has_numba
from tests.optimizer.helpers import EACH, random


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let small parameters take the fused step, in many blocks and over several threads."""
    monkeypatch.setattr(fused, "SMALL", 0)
    monkeypatch.setattr(sizes, "BLOCK", 16)
    monkeypatch.setattr(sizes, "LARGE", 64)
    monkeypatch.setattr(sizes, "cores", lambda: 2)


NEEDS_NUMBA = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")


BY_NUMBA = pytest.param("numba", marks=NEEDS_NUMBA)


@pytest.fixture(autouse=True)
def executor(request):
    """Use the NumPy executor, or numba from the first step if a test requests it."""
    name = getattr(request, "param", "numpy")
    with use_executor(name):
        yield name


by_both = pytest.mark.parametrize("executor", ["numpy", BY_NUMBA], indirect=True)


@pytest.fixture(scope="module", autouse=True)
def own_pool():
    yield
    threads._forget_pool()


SHAPES = [(3,), (5, 7), (), (40,), (2, 3, 4), (16,), (33,), (1,), (4, 4)]


def train(
    make, dtype, steps, listen, shapes=SHAPES, skip=(), multi_precision=False, clip=None, apart=()
):
    """Take steps with recorded gradients; return the parameters and the optimizer."""
    tensors = [
        ol.Parameter(random(*shape, seed=i, dtype=dtype), name=f"p{i}")
        for i, shape in enumerate(shapes)
    ]
    tensors[1].learning_rate = 0.5
    tensors[2].regularizer = ol.regularizer.L1Decay(0.1)
    groups = [
        {"params": tensors[:6]},
        {"params": tensors[6:], "learning_rate": 2.0, "weight_decay": 0.25},
    ]
    for i in apart:
        tensors[i].need_clip = False
    common = {"multi_precision": multi_precision, "grad_clip": clip}
    optimizer = make(parameters=groups, weight_decay=0.01, **common)
    ignore = lambda optimizer, updates: None  # noqa: E731
    if listen:
        events.step_taken.subscribe(ignore)
    try:
        for t in range(steps):
            for i, p in enumerate(tensors):
                if (t, i) in skip:
                    p.grad = None
                else:
                    p.grad = random(*p.shape, seed=100 * t + i, dtype="float64").astype(dtype)
            optimizer.step()
    finally:
        if listen:
            events.step_taken.unsubscribe(ignore)
    return tensors, optimizer


def assert_same(one, other):
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), strict=True)
    state, its = one[1].state_dict(), other[1].state_dict()
    assert state.keys() == its.keys()
    for name, value in state.items():
        if name.endswith(".t") or name == "learning_rate":
            assert value == its[name]
        elif isinstance(value, ol.Tensor):
            np.testing.assert_array_equal(value.numpy(), its[name].numpy(), strict=True)


def counted(monkeypatch):
    """Count the fused passes."""
    calls = []
    original = fused.prepare_fused

    def counting(*args):
        found = original(*args)
        calls.append(found is not None)
        return found

    monkeypatch.setattr("optlab.optimizer.step.step.prepare_fused", counting)
    return calls


ELEMENTWISE = [name for name, make in EACH.items() if make().kind != "matrix" and not make().draws]


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize(
    ("executor", "dtype"),
    [
        ("numpy", "float32"),
        ("numpy", "float64"),
        pytest.param("numba", "float32", marks=NEEDS_NUMBA),
        pytest.param(
            "numba", "float64", marks=[NEEDS_NUMBA, pytest.mark.nightly, pytest.mark.slow]
        ),
    ],
    indirect=["executor"],
)
def test_every_rule(name, dtype, executor, monkeypatch):
    calls = counted(monkeypatch)
    fast = train(EACH[name], dtype, 4, listen=False)
    assert calls
    assert all(calls), "the rule was not captured"
    if executor == "numba" and name != "Ftrl of another power":
        plans = fast[1].plans.values()
        assert all(plan.loops and all(plan.loops.loops) for plan in plans), "no machine loop"
    assert_same(fast, train(EACH[name], dtype, 4, listen=True))


@by_both
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(ELEMENTWISE),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, len(SHAPES) - 1))),
)
@pytest.mark.filterwarnings("ignore:no parameter of this")
def test_parameters_left_out_for_a_step_or_more(name, skip):
    fast = train(EACH[name], "float32", 4, listen=False, skip=skip)
    assert_same(fast, train(EACH[name], "float32", 4, listen=True, skip=skip))


@by_both
@pytest.mark.parametrize("apart", [(), (0, 7)])
@pytest.mark.parametrize(
    "clip",
    [ol.nn.ClipGradByGlobalNorm(1.0), ol.nn.ClipGradByNorm(0.5), ol.nn.ClipGradByValue(0.25)],
    ids=lambda clip: type(clip).__name__,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_clips(clip, apart, dtype):
    kwargs = {"clip": clip, "apart": apart, "skip": {(1, 3)}}
    fast = train(EACH["Adam"], dtype, 3, listen=False, **kwargs)
    assert_same(fast, train(EACH["Adam"], dtype, 3, listen=True, **kwargs))


@by_both
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_float16_through_a_float32_copy(name):
    fast = train(EACH[name], "float16", 3, listen=False, multi_precision=True)
    assert_same(fast, train(EACH[name], "float16", 3, listen=True, multi_precision=True))
    assert fast[0][0].dtype == "float16"


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_fast_and_recorded_steps_by_turns(name):
    """Arrays that a listener keeps do not change."""
    kept = []

    def keep(optimizer, updates):
        for update in updates:
            arrays = [update.parameter, *update.slots.values()]
            kept.extend((array, array.copy()) for array in arrays)

    p = ol.Parameter(random(100, dtype="float32"))
    optimizer = EACH[name](parameters=[p])
    for t in range(6):
        p.grad = random(100, seed=t, dtype="float32")
        if t % 2:
            events.step_taken.subscribe(keep)
        optimizer.step()
        if t % 2:
            events.step_taken.unsubscribe(keep)
    assert kept
    for array, copy in kept:
        np.testing.assert_array_equal(array, copy)


def test_a_state_dict_stays_as_it_was():
    p = ol.Parameter(random(100))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p])
    p.grad = random(100, seed=1)
    optimizer.step()
    state = optimizer.state_dict()
    before = {name: np.array(value) for name, value in state.items()}
    optimizer.step()
    for name, value in state.items():
        np.testing.assert_array_equal(np.array(value), before[name])


@by_both
def test_an_optimizer_says_who_runs_it(executor):
    p = ol.Parameter(random(100))
    optimizer = ol.optimizer.SGD(0.1, parameters=[p])
    p.grad = random(100, seed=1)
    optimizer.step()
    [way] = optimizer.execution.values()
    assert way.endswith(", compiled by numba") == (executor == "numba")


def test_a_rate_that_changes_needs_no_new_capture():
    p = ol.Parameter(random(100))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p])
    for t in range(10):
        p.grad = random(100, seed=t)
        optimizer.set_lr(0.1 / (t + 1))
        optimizer.step()
    assert len(optimizer.plans) == 1


class Choosing(ol.optimizer.Optimizer):
    """A rule that selects elements by a mask, so that it cannot be captured."""

    hyperparameters = {"learning_rate": 0.1}

    def update(self, p, g, s, h, c):
        new = p.copy()
        new[g > 0] -= h.learning_rate * g[g > 0]
        return new, {}


class Rising(ol.optimizer.Optimizer):
    """A rule whose formula changes in every step."""

    hyperparameters = {"learning_rate": 0.1}

    def scalars(self, t, h):
        return {"t": t}

    def update(self, p, g, s, h, c):
        return p - h.learning_rate / c.t * g, {}


@pytest.mark.parametrize("rule", [Choosing, Rising])
def test_a_rule_that_cannot_be_captured_runs_as_it_is_written(rule):
    fast = train(rule, "float32", 80, listen=False)
    assert_same(fast, train(rule, "float32", 80, listen=True))
    assert len(fast[1].plans) <= fused._MOST_FORMS


@by_both
def test_overflow_is_said_once_and_the_step_is_whole():
    p = ol.Parameter(np.ones(100, np.float32))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p])
    p.grad = np.full(100, 1e30, np.float32)
    with pytest.warns(RuntimeWarning, match="overflow encountered in Adam.update") as caught:
        optimizer.step()
    assert len(caught) == 1
    assert optimizer.state_dict()["parameter 0.t"] == 1


@by_both
@pytest.mark.parametrize(
    ("make", "gradient", "words"),
    [
        (ol.optimizer.SGD, np.inf, set()),
        (ol.optimizer.SGD, np.nan, set()),
        (ol.optimizer.Momentum, 3e38, {"overflow"}),
        (ol.optimizer.Adam, 1e30, {"overflow"}),
        (ol.optimizer.Adam, np.inf, {"invalid value"}),
        (ol.optimizer.Adam, 1e-30, set()),
        (partial(ol.optimizer.Adagrad, epsilon=0.0), 0.0, {"invalid value"}),
        (partial(ol.optimizer.Adagrad, epsilon=0.0), 1e-25, {"divide by zero"}),
        (partial(ol.optimizer.Adamax, epsilon=0.0), 0.0, {"invalid value"}),
        (ol.optimizer.Rprop, np.inf, set()),
        (ol.optimizer.Lamb, 1e30, {"overflow"}),
        (ol.optimizer.Lamb, np.nan, set()),
    ],
)
def test_the_same_is_said_and_done_about_a_few_peculiar_gradients(make, gradient, words):
    """The results and warnings are equal if a few values in the middle of a block are special."""

    def run(listen):
        p = ol.Parameter(np.arange(200, dtype=np.float32))
        optimizer = make(1.5, parameters=[p])
        p.grad = random(200, seed=1, dtype="float32")
        p.grad[[25, 70]] = gradient
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if listen:
                events.step_taken.subscribe(print_nothing)
            optimizer.step()
            if listen:
                events.step_taken.unsubscribe(print_nothing)
        return ([p], optimizer), {str(w.message).partition(" encountered")[0] for w in caught}

    fast, said = run(listen=False)
    assert said == words
    assert_same(fast, run(listen=True)[0])


@by_both
@pytest.mark.parametrize("name", ["Lamb", "LarsMomentum"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_cores_share_one_large_parameter_and_norms_are_added_in_order(name, dtype):
    shapes = [(3,), (5, 200), (1000,), *SHAPES[3:]]
    fast = train(EACH[name], dtype, 3, listen=False, shapes=shapes)
    assert_same(fast, train(EACH[name], dtype, 3, listen=True, shapes=shapes))


def test_errors_asked_of_numpy_come_before_anything_changes():
    p = ol.Parameter(np.ones(100, np.float32))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p])
    p.grad = np.full(100, 1e30, np.float32)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        optimizer.step()
    np.testing.assert_array_equal(p.numpy(), 1.0)
    assert optimizer.state_dict()["parameter 0.t"] == 0


@by_both
def test_a_gradient_that_is_not_contiguous():
    def run(listen):
        p = ol.Parameter(random(20, 30))
        optimizer = ol.optimizer.Momentum(0.1, parameters=[p])
        x = ol.to_tensor(random(30, 20, seed=1))
        if listen:
            events.step_taken.subscribe(print_nothing)
        for _ in range(3):
            (p * x.T).sum().backward()
            optimizer.step()
        if listen:
            events.step_taken.unsubscribe(print_nothing)
        return p.numpy()

    np.testing.assert_array_equal(run(False), run(True))


def print_nothing(optimizer, updates):
    """Do nothing; having a listener selects the plain step."""


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("clip", [None, ol.nn.ClipGradByGlobalNorm(1.0)], ids=["plain", "clip"])
def test_no_memory_beyond_the_slots_but_blocks(clip):
    import tracemalloc

    n = 400_000
    p = ol.Parameter(np.ones(n, np.float32))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p], grad_clip=clip)
    p.grad = np.ones(n, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        optimizer.step()
        tracemalloc.start()
        optimizer.step()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < n  # bytes: a quarter of one array of the parameters
