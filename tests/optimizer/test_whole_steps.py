"""A step is applied completely or not at all, also where a warning is turned into an error."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.plan import sizes, threads
from tests.optimizer.helpers import random

SIZES = [4, 20_000, 300_000]  # plain, in blocks, on all cores
HUGE = 1e30  # its square overflows float32


def weights(size, dtype="float32"):
    return ol.Parameter(random(size, dtype=dtype), name="w"), np.full(size, HUGE, "float32")


def step_with_errors(optimizer, p, g, kind=RuntimeWarning):
    p.grad = g.astype(p.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", kind)
        optimizer.step()


def state(optimizer):
    return dict(flat(optimizer.state_dict(), ""))


def flat(values, name):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{name}{key} ")
        else:
            yield name + key, value.numpy() if isinstance(value, ol.Tensor) else value


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


WRAPPED = {
    "alone": lambda inner: inner,
    "LookAhead": lambda inner: ol.optimizer.LookAhead(inner, k=2),
    "EMA": lambda inner: ol.optimizer.ExponentialMovingAverage.around(inner, decay=0.5),
    "ModelAverage": lambda inner: ol.optimizer.ModelAverage.around(inner, 0.15),
    "both": lambda inner: ol.optimizer.ExponentialMovingAverage.around(
        ol.optimizer.LookAhead(inner, k=2), decay=0.5
    ),
}


@pytest.mark.parametrize("listened", [False, True])
@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("size", SIZES)
def test_a_warning_that_is_an_error_leaves_the_step_before_or_after(size, wrap, listened):
    def run(errors, steps):
        p, huge = weights(size)
        optimizer = WRAPPED[wrap](ol.optimizer.Adam(0.1, parameters=[p]))
        for number in range(steps):
            g = huge if number == 2 else random(size, seed=number, dtype="float32")
            if errors and number == 2:
                with pytest.raises(RuntimeWarning, match="overflow"):
                    step_with_errors(optimizer, p, g)
                continue
            p.grad = g
            with np.errstate(over="ignore"):
                optimizer.step()
        return {"p": p.numpy(), **state(optimizer)}

    if listened:
        from optlab.backend import events

        with events.step_taken.subscribed(lambda *told: None):
            found, before, after = run(True, 3), run(False, 2), run(False, 3)
    else:
        found, before, after = run(True, 3), run(False, 2), run(False, 3)
    assert same(found, before) or same(found, after)


@pytest.mark.parametrize("size", SIZES)
def test_float16_that_overflows(size):
    def run(errors):
        p = ol.Parameter(np.ones(size, "float16"), name="w")
        optimizer = ol.optimizer.Momentum(1.0, parameters=[p], multi_precision=True)
        p.grad = np.full(size, 6e4, "float16")
        optimizer.step()
        if not errors:
            return {"p": p.numpy(), **state(optimizer)}
        before = {"p": p.numpy(), **state(optimizer)}
        with pytest.raises(RuntimeWarning, match="overflow"):
            step_with_errors(optimizer, p, np.full(size, 6e4, "float16"))
        return before, {"p": p.numpy(), **state(optimizer)}

    before, found = run(True)
    if not same(found, before):
        assert found["w.t"] == 2
        assert np.isinf(found["p"]).all()
        np.testing.assert_array_equal(found["w.velocity"], np.float32(6e4) * np.float32(1.9))
        assert found["master_weights w"][0] < -1e5


@pytest.mark.parametrize("size", SIZES)
def test_float16_that_overflows_warns_once(size):
    p = ol.Parameter(np.ones(size, "float16"))
    optimizer = ol.optimizer.SGD(10.0, parameters=[p], multi_precision=True)
    p.grad = np.full(size, 6e4, "float16")
    with pytest.warns(RuntimeWarning, match="overflow") as caught:
        optimizer.step()
    assert len(caught) == 1


def test_a_loan_that_overflows_leaves_the_weights():
    p = ol.Parameter(np.ones(3, "float16"))
    ema = ol.optimizer.ExponentialMovingAverage(0.5, parameters=[p])
    ema.update()
    ema.memories[0]["ema"][...] = 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="overflow"):
            ema.apply()
    assert p.tolist() == [1, 1, 1]
    ema.update()  # no average is applied


def test_closures_that_fail_after_an_update():
    """Updates that LBFGS made before the failure count for its wrapper."""
    p = ol.Parameter([3.0, 4.0], name="p")
    inner = ol.optimizer.LBFGS(0.1, max_iter=5, parameters=[p])
    ema = ol.optimizer.ExponentialMovingAverage.around(inner, decay=0.5)
    calls = []

    def closure():
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError
        ema.clear_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with pytest.raises(ZeroDivisionError):
        ema.step(closure)
    counts = inner.state_dict()["p.t"]
    decays = ema.state_dict()["p.ema_decays"]
    assert (decays == 1.0) == (counts == 0)


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("clip", [None, ol.nn.ClipGradByGlobalNorm(1.0)], ids=["plain", "clip"])
def test_float16_needs_no_memory_but_blocks(clip):
    size = 2_000_000
    p = ol.Parameter(np.ones(size, "float16"))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p], multi_precision=True, grad_clip=clip)
    p.grad = np.ones(size, "float16")
    optimizer.step()
    optimizer.step()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    optimizer.step()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < 4 * size  # less than one float32 array; the plain rule takes nine


def test_all_threads_have_ended_when_an_error_is_raised(monkeypatch):
    import threading
    import time

    monkeypatch.setattr(sizes, "cores", lambda: 2)
    ended = []
    gate = threading.Event()

    def fails():
        gate.wait(60)
        raise ZeroDivisionError

    def lasts():
        gate.set()
        time.sleep(0.2)
        ended.append(1)

    with pytest.raises(ZeroDivisionError):
        threads.on_all_cores(iter([fails, lasts]), sizes.LARGE)
    assert ended == [1]
