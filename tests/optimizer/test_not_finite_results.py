"""``not_finite`` looks at what a step writes, too: finite gradients may overflow in the rule."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer.step import fused
from optlab.plan import sizes
from tests.optimizer.interrupts import same, values_of

optim = ol.optimizer
HUGE = 3e38  # finite in float32; its square is not

RULES = {
    "Muon": lambda ps, **more: optim.Muon(0.1, parameters=ps, **more),
    "Ftrl": lambda ps, **more: optim.Ftrl(0.1, parameters=ps, **more),
    "Adam": lambda ps, **more: optim.Adam(0.1, parameters=ps, **more),
    "Lamb": lambda ps, **more: optim.Lamb(0.1, parameters=ps, **more),
    "LarsMomentum": lambda ps, **more: optim.LarsMomentum(10.0, 0.9, parameters=ps, **more),
    "SGD": lambda ps, **more: optim.SGD(10.0, parameters=ps, **more),
    "LookAhead(SGD)": lambda ps, **more: optim.LookAhead(
        optim.SGD(10.0, parameters=ps, **more), k=1
    ),
    "EMA(SGD)": lambda ps, **more: optim.ExponentialMovingAverage.around(
        optim.SGD(10.0, parameters=ps, **more)
    ),
}
WAYS = {"plain": (8192, 1 << 40), "blocks": (0, 1 << 40), "threads": (0, 8)}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    small, large = WAYS[request.param]
    monkeypatch.setattr(fused, "SMALL", small)
    monkeypatch.setattr(sizes, "BLOCK", 8)
    monkeypatch.setattr(sizes, "LARGE", large)
    with np.errstate(all="ignore"):
        yield request.param


def make(name, policy, dtype="float32", **more):
    ps = [ol.Parameter(np.ones((4, 5), dtype), name="a"), ol.Parameter(np.ones(3, dtype), name="b")]
    return ps, RULES[name](ps, not_finite=policy, **more)


def step(ps, optimizer, g):
    for p in ps:
        p.grad = np.full(p.shape, g, p.dtype)
    optimizer.step()


@pytest.mark.parametrize("name", [name for name in RULES if name != "LarsMomentum"])
def test_a_step_that_would_write_no_numbers_is_refused(name, way):
    ps, optimizer = make(name, "raise")
    step(ps, optimizer, 0.5)
    before = values_of(ps, optimizer)
    with pytest.raises(FloatingPointError, match=r"would write \d+ elements that are not finite"):
        step(ps, optimizer, HUGE)
    assert same(values_of(ps, optimizer), before)
    step(ps, optimizer, 0.5)


@pytest.mark.parametrize("name", [name for name in RULES if name != "LarsMomentum"])
def test_a_step_that_would_write_no_numbers_is_skipped(name, way):
    ps, optimizer = make(name, "skip")
    step(ps, optimizer, 0.5)
    before = values_of(ps, optimizer)
    step(ps, optimizer, HUGE)
    assert optimizer.skipped == 1
    assert same(values_of(ps, optimizer), before)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_other_steps_are_the_same_to_the_bit(name, policy, way):
    runs = []
    for one in ("pass", policy):
        ps, optimizer = make(name, one)
        for g in (0.5, -0.25, 0.125):
            step(ps, optimizer, g)
        runs.append(values_of(ps, optimizer))
    assert same(*runs)


def test_the_message_names_the_slot_and_the_parameter(way):
    a, b = ol.Parameter(np.ones(9, "float32"), name="a"), ol.Parameter(np.ones(9, "float32"))
    b.name = "b"
    optimizer = optim.Adam(0.1, parameters=[a, b], not_finite="raise")
    a.grad, b.grad = np.full(9, 0.5, "float32"), np.full(9, 0.5, "float32")
    b.grad = np.array([0.5] * 8 + [HUGE], "float32")
    with pytest.raises(
        FloatingPointError, match=r"1 element .* slot 'moment2' of b \(shape \(9,\)"
    ):
        optimizer.step()


@pytest.mark.parametrize("multi_precision", [False, True])
def test_sixteen_bits_that_overflow(multi_precision, way):
    ps, optimizer = make("SGD", "raise", "float16", multi_precision=multi_precision)
    before = values_of(ps, optimizer)
    with pytest.raises(FloatingPointError, match="not finite into a"):
        step(ps, optimizer, 6e4)
    assert same(values_of(ps, optimizer), before)


def test_what_was_not_finite_before_may_stay(way):
    """A mask of infinities in a parameter, a slot that begins at infinity."""

    class Least(optim.Optimizer):
        hyperparameters = {"learning_rate": 0.1}
        slots = {"least": np.inf}

        def update(self, p, g, s, h, c):
            return p - h.learning_rate * g, {"least": s.least + 0 * g}

    p = ol.Parameter(np.array([1.0, -np.inf] * 10), name="p")
    optimizer = Least(parameters=[p], not_finite="raise")
    p.grad = np.ones(20)
    optimizer.step()
    assert p.numpy()[0] == 0.9


def test_rows_are_looked_at():
    table = ol.Parameter(np.ones((5, 2), "float32"), name="table")
    optimizer = optim.SGD(10.0, parameters=[table], not_finite="raise")
    rows = ol.nn.functional.embedding(ol.to_tensor([1, 3]), table, sparse=True)
    before = table.numpy()
    with np.errstate(all="ignore"):
        (rows * np.float32(HUGE)).sum().backward()
        with pytest.raises(FloatingPointError, match="would write 4"):
            optimizer.step()
    np.testing.assert_array_equal(table.numpy(), before)


def test_lbfgs_looks_at_the_point_that_a_step_leads_to():
    p = ol.Parameter(np.array([1.0], "float32"), name="p")
    optimizer = optim.LBFGS(1e30, max_iter=3, parameters=[p], not_finite="raise")

    def closure():
        optimizer.clear_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    def steps():
        for _ in range(5):
            optimizer.step(closure)

    with np.errstate(all="ignore"), pytest.raises(FloatingPointError):
        steps()
    assert np.isfinite(p.numpy()).all()
