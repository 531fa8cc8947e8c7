"""LookAhead: its formula, around any optimizer, skipped parameters, groups, errors."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optlab as ol
from tests.guarded import guarded
from tests.optimizer.helpers import EACH, give, random

LookAhead = ol.optimizer.LookAhead


def parameters(dtype="float64"):
    return [
        ol.Parameter(random(2, 3, seed=1, dtype=dtype), name="a"),
        ol.Parameter(random(4, seed=2, dtype=dtype), name="b"),
        ol.Parameter(np.asarray(0.5, dtype), name="c"),
    ]


def steps(optimizer, weights, count, first=0):
    """Take steps with fixed random gradients; return the weights after each."""
    path = []
    for t in range(first, first + count):
        for i, p in enumerate(weights):
            give(p, random(*p.shape, seed=10 * t + i))
        optimizer.step()
        optimizer.clear_grad()
        path.append([p.numpy() for p in weights])
    return path


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EACH)
def test_the_formula_around_every_optimizer(name, dtype):
    inner, mine = parameters(dtype), parameters(dtype)
    plain = EACH[name](parameters=inner)
    path = steps(LookAhead(EACH[name](parameters=mine), alpha=0.3, k=3), mine, 7)
    slow = [p.numpy() for p in inner]
    for t in range(7):
        steps(plain, inner, 1, first=t)
        if t % 3 == 2:
            slow = [s + 0.3 * (p.numpy() - s) for s, p in zip(slow, inner, strict=True)]
            for p, s in zip(inner, slow, strict=True):
                p.set_value(s)
        assert_same([path[t]], [[p.numpy() for p in inner]])


@given(st.sampled_from(list(EACH)), st.integers(1, 6), st.integers(1, 9))
def test_alpha_1_equals_the_inner_optimizer(name, k, count):
    one, other = parameters("float32"), parameters("float32")
    assert_same(
        steps(LookAhead(EACH[name](parameters=one), alpha=1, k=k), one, count),
        steps(EACH[name](parameters=other), other, count),
    )


@given(st.floats(0, 1), st.integers(1, 4))
def test_slow_weights_stay_between_where_a_lap_began_and_ended(alpha, k):
    mine = parameters()
    begin = [p.numpy() for p in mine]
    with ol.record(
        optimizer := LookAhead(ol.optimizer.SGD(0.1, parameters=mine), alpha, k)
    ) as trace:
        steps(optimizer, mine, k)
    for start, p in zip(begin, mine, strict=True):
        ends = np.stack([start, trace["fast"][p.name][-1]])
        assert np.all(p.numpy() >= ends.min(0) - 1e-12)
        assert np.all(p.numpy() <= ends.max(0) + 1e-12)


def test_alpha_0_comes_back_to_the_start():
    mine = parameters("float32")
    begin = [p.numpy() for p in mine]
    optimizer = LookAhead(ol.optimizer.SGD(0.1, parameters=mine), alpha=0, k=2)
    assert_same([steps(optimizer, mine, 4)[-1]], [begin])


def test_slow_weights_begin_where_the_first_step_begins():
    w = ol.Parameter([1.0])
    optimizer = LookAhead(ol.optimizer.SGD(0.1, parameters=[w]), alpha=0.5, k=1)
    w.set_value([3.0])  # weights that were loaded later
    give(w, [1.0])
    optimizer.step()
    assert w.numpy() == np.float32(2.95)


def test_a_parameter_without_gradient_is_left_alone_and_counts_its_own_steps():
    a, b = ol.Parameter([1.0], name="a"), ol.Parameter([1.0], name="b")
    optimizer = LookAhead(ol.optimizer.SGD(0.25, parameters=[a, b]), alpha=0.5, k=2)
    seen = []
    for t in range(4):
        give(a, [1.0])
        if t != 1:
            give(b, [1.0])
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        seen.append((a.item(), b.item()))
    assert seen == [(0.75, 0.75), (0.75, 0.75), (0.5, 0.75), (0.5, 0.5)]


def test_a_step_that_is_skipped_does_not_count():
    w = ol.Parameter([1.0])
    sgd = ol.optimizer.SGD(0.25, parameters=[w], not_finite="skip")
    optimizer = LookAhead(sgd, alpha=0.5, k=2)
    for g in (1.0, np.inf, 1.0):
        give(w, [g])
        optimizer.step()
        optimizer.clear_grad()
    assert w.item() == 0.75


def test_nested():
    w = ol.Parameter([1.0])
    inner = LookAhead(ol.optimizer.SGD(0.25, parameters=[w]), alpha=0.5, k=2)
    optimizer = LookAhead(inner, alpha=0.5, k=2)
    seen = []
    for _ in range(4):
        give(w, [1.0])
        optimizer.step()
        optimizer.clear_grad()
        seen.append(w.item())
    # Step 2: the inner one goes from 0.5 to 0.75, the outer one from there to 0.875. Step 4: from
    # 0.375 to 0.5625, since the inner slow weights are still 0.75; halfway between that and 0.875.
    assert seen == [0.75, 0.875, 0.625, 0.71875]


def test_groups_schedules_and_rates_are_the_inner_optimizer_s():
    a, b = ol.Parameter([1.0], name="a"), ol.Parameter([1.0], name="b")
    sgd = ol.optimizer.SGD(0.5, parameters=[a])
    optimizer = LookAhead(sgd, k=2)
    give(a, [1.0])
    optimizer.step()
    optimizer.clear_grad()
    optimizer.add_param_group({"params": [b], "learning_rate": 0.5})
    assert optimizer.groups is sgd.groups
    assert optimizer.parameters == [a, b]
    optimizer.set_lr(0.25)
    assert (optimizer.get_lr(), sgd.get_lr()) == (0.25, 0.25)
    for p in (a, b):
        give(p, [1.0])
    optimizer.step()
    optimizer.clear_grad()
    assert (a.item(), b.item()) == (1 - 0.5 * 0.75, 0.875)
    give(b, [1.0])
    optimizer.step()
    assert b.item() == 0.875  # halfway between 1 and 0.75
    schedule = ol.optimizer.lr.StepDecay(0.5, 1)
    optimizer.set_lr_scheduler(schedule)
    assert sgd.schedule is optimizer.schedule is schedule
    with pytest.raises(RuntimeError, match="schedule"):
        optimizer.set_lr(0.1)


def test_minimize_backward_and_apply_gradients():
    w, v = ol.Parameter([1.0]), ol.Parameter([1.0])
    one = LookAhead(ol.optimizer.SGD(0.25, parameters=[w]), k=1)
    other = LookAhead(ol.optimizer.SGD(0.25, parameters=[v]), k=1)
    operations, pairs = one.minimize((2 * w).sum())
    assert operations == []
    assert pairs[0][0] is w
    assert other.apply_gradients(other.backward((2 * v).sum())) == []
    assert w.item() == v.item() == 0.75
    one.clear_grad(set_to_zero=False)
    assert w.grad is None
    one.step()  # no effect
    assert w.item() == 0.75


def test_parameters_stay_in_the_flat_array_and_the_tape_notices():
    a, b = parameters()[:2]
    optimizer = LookAhead(ol.optimizer.SGD(0.1, parameters=[a, b]), k=1)
    arrays = a.data, b.data
    kept = (a * a).sum()
    steps(optimizer, [a, b], 2)
    assert a.data is arrays[0]
    assert b.data is arrays[1]
    with pytest.raises(RuntimeError, match="LookAhead"):
        kept.backward()


def test_float16_through_a_float32_copy():
    half = ol.Parameter(random(5, seed=1).astype("float16"))
    single = ol.Parameter(half.numpy().astype("float32"))
    one = LookAhead(ol.optimizer.SGD(1e-3, parameters=[half], multi_precision=True), k=2)
    other = LookAhead(ol.optimizer.SGD(1e-3, parameters=[single]), k=2)
    for t in range(6):
        g = random(5, seed=t, dtype="float16")
        for p, optimizer in ((half, one), (single, other)):
            give(p, g)
            optimizer.step()
            optimizer.clear_grad()
        np.testing.assert_array_equal(half.numpy(), single.numpy().astype("float16"))
    slow = [v for k, v in one.state_dict().items() if k.endswith(".slow")]
    assert slow[0].dtype == np.float32
    np.testing.assert_array_equal(one.arenas[0].master, single.numpy())


def test_row_sparse_gradients():
    table = np.random.default_rng(0).standard_normal((6, 3))
    paths = []
    for sparse in (False, True):
        layer = ol.nn.Embedding(6, 3, sparse=sparse)
        layer.weight.set_value(table)
        adam = ol.optimizer.Adam(0.1, lazy_mode=False, parameters=layer.parameters())
        optimizer = LookAhead(adam, k=2)
        for t in range(5):
            (layer(np.array([t % 3, 4, 4])) ** 2).sum().backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
        paths.append(layer.weight.numpy())
    np.testing.assert_allclose(*paths, rtol=1e-6)


def test_arrays_that_refuse_numpy():
    p = ol.Tensor(guarded(np.array([1.0, 2.0])))
    p.requires_grad = True
    optimizer = LookAhead(ol.optimizer.Adam(0.1, parameters=[p]), k=2)
    for _ in range(4):
        (p * p).sum().backward()
        with ol.record(optimizer):
            optimizer.step()
        optimizer.clear_grad()
    assert type(p.data) is type(guarded())
    optimizer.set_state_dict(optimizer.state_dict())


def test_templates_are_bound():
    template = LookAhead(ol.optimizer.Adam(0.1), alpha=0.8, k=3)
    assert template.is_template
    with pytest.raises(RuntimeError, match="no parameters"):
        template.step()
    one, other = template.bind([ol.Parameter([1.0])]), template.bind([ol.Parameter([1.0])])
    steps(one, one.parameters, 3)
    assert other.parameters[0].item() == 1
    assert (one.alpha, one.k) == (0.8, 3)
    assert template.is_template
    race = ol.compare(
        "rosenbrock",
        {"alone": ol.optimizer.Adam(0.1), "with": LookAhead(ol.optimizer.Adam(0.1), alpha=1)},
        steps=20,
    )
    np.testing.assert_array_equal(race["alone"]["parameter"], race["with"]["parameter"])


def test_copies_go_on_by_themselves():
    mine = parameters()
    optimizer = LookAhead(ol.optimizer.Momentum(0.1, parameters=mine), k=3)
    steps(optimizer, mine, 2)
    weights, other = copy.deepcopy((mine, optimizer))
    assert_same(steps(optimizer, mine, 3, 2), steps(other, weights, 3, 2))


def test_sweeps_over_alpha_run_one_by_one():
    sweep = ol.sweep(
        "rosenbrock",
        LookAhead,
        {"inner_optimizer": [ol.optimizer.SGD(1e-3)], "alpha": [0.2, 0.5], "k": [2, 5]},
        steps=12,
    )
    race = ol.compare("rosenbrock", {"one": LookAhead(ol.optimizer.SGD(1e-3), 0.5, 2)}, steps=12)
    np.testing.assert_array_equal(sweep.point[0, 1, 0], race["one"]["parameter"])


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"alpha": 1.5}, ValueError, r"alpha must be in \[0, 1\]; got 1.5"),
        ({"alpha": -0.1}, ValueError, "got -0.1"),
        ({"alpha": float("nan")}, ValueError, "got nan"),
        ({"alpha": "big"}, TypeError, "alpha must be one number"),
        ({"k": 0}, ValueError, "k must be a whole number of at least 1; got 0"),
        ({"k": 2.5}, ValueError, "got 2.5"),
        ({"k": None}, TypeError, "k must be one number"),
        ({"inner_optimizer": None}, TypeError, "wraps an optimizer.*got NoneType"),
        ({"inner_optimizer": ol.optimizer.Adam}, TypeError, "not a class.*Adam"),
    ],
)
def test_bad_arguments_are_named(arguments, kind, said):
    with pytest.raises(kind, match=said):
        LookAhead(**{"inner_optimizer": ol.optimizer.SGD(0.1), **arguments})


def test_an_error_of_the_step_changes_nothing():
    a, b = ol.Parameter([1.0]), ol.Parameter([1.0])
    optimizer = LookAhead(ol.optimizer.SGD(0.1, parameters=[a, b], not_finite="raise"), k=1)
    give(a, [1.0])
    give(b, [np.nan])
    with pytest.raises(FloatingPointError):
        optimizer.step()
    assert (a.item(), b.item()) == (1, 1)
    assert optimizer.state_dict()["parameter 0.slow_steps"] == 0


def test_the_incubator_has_it_too():
    assert ol.incubate.LookAhead is LookAhead
    assert ol.incubate.ModelAverage is ol.optimizer.ModelAverage
    assert ol.incubate.optimizer.LookAhead is LookAhead
    assert ol.incubate.optimizer.ModelAverage is ol.optimizer.ModelAverage
    assert ol.incubate.optimizer.RecomputeOptimizer is ol.optimizer.RecomputeOptimizer
    assert ol.incubate.optimizer.LBFGS is ol.optimizer.LBFGS
    for place in (ol.incubate, ol.incubate.optimizer):
        with pytest.raises(AttributeError, match=r"has no 'Lookahead'. Did you mean 'LookAhead'"):
            place.Lookahead  # noqa: B018


def test_words():
    optimizer = LookAhead(ol.optimizer.SGD(0.1), alpha=0.2)
    assert repr(optimizer) == "LookAhead(SGD(learning_rate=0.1), alpha=0.2, k=5)"
    assert "\\alpha" in optimizer.formula
    assert "A template" in optimizer._repr_html_()
    page = optimizer.bind([ol.Parameter(np.zeros(256, "float32"))])._repr_html_()
    assert "alpha = 0.2" in page
    assert "keeps 1 KiB for 1 KiB of parameters" in page


def test_around_an_optimizer_that_calls_a_closure():
    points, lengths = [], []
    for wrapped in (False, True):
        w = ol.Parameter(np.array([3.0, -2.0]), name="w")
        optimizer = ol.optimizer.LBFGS(0.5, max_iter=3, parameters=[w])
        if wrapped:
            optimizer = LookAhead(optimizer, alpha=0.25, k=1)

        def closure(w=w, optimizer=optimizer):
            optimizer.clear_grad()
            loss = ((w - 1) ** 4).sum()
            loss.backward()
            return loss

        with ol.record(optimizer) as trace:
            first = optimizer.step(closure)
        assert first.item() == 97
        assert trace.loss[0] == 97
        points.append(w.numpy())
        lengths.append(len(trace))
    start = np.array([3.0, -2.0])
    np.testing.assert_allclose(points[1], start + 0.25 * (points[0] - start), rtol=1e-14)
    assert lengths[0] == lengths[1] > 1
    assert trace.synchronisations.tolist() == [lengths[1]]  # once, after all of its own steps
    race = ol.compare(
        "rosenbrock", {"both": LookAhead(ol.optimizer.LBFGS(1.0, max_iter=2), k=2)}, steps=12
    )
    assert race["both"].stopped is None


@pytest.mark.parametrize("kind", ["LookAhead", "EMA"])
def test_many_rates_at_once(kind):
    def wrap(optimizer):
        if kind == "LookAhead":
            return LookAhead(optimizer, 0.3, 2)
        return ol.optimizer.ExponentialMovingAverage.around(optimizer, 0.7)

    def run(rate, start):
        w = ol.Parameter(start)
        optimizer = wrap(ol.optimizer.Adam(rate, parameters=[w]))
        for _ in range(5):
            ((w - 1) ** 2).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        if kind == "EMA":
            with optimizer.apply():
                return w.detach()
        return w.detach()

    rates, start = [0.1, 0.2, 0.5], np.array([3.0, -1.0])
    together = run(ol.ensemble(rates), ol.ensemble([start] * 3))
    for rate, member in zip(rates, ol.members(together), strict=True):
        np.testing.assert_array_equal(np.asarray(member), run(rate, start).numpy())
