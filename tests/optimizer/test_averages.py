"""ModelAverage and ExponentialMovingAverage: formulas, apply and restore, around optimizers."""

from __future__ import annotations

import copy
from html import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optlab as ol
from tests.guarded import guarded
from tests.optimizer.helpers import EACH, give, random

EMA, ModelAverage = ol.optimizer.ExponentialMovingAverage, ol.optimizer.ModelAverage

MAKE = {
    "EMA": lambda parameters: EMA(0.8, parameters=parameters),
    "ModelAverage": lambda parameters: ModelAverage(0.5, parameters, 2, 4),
}


def weights(dtype="float64"):
    return [
        ol.Parameter(random(2, 3, seed=1, dtype=dtype), name="a"),
        ol.Parameter(np.asarray(0.5, dtype), name="b"),
    ]


def visit(average, parameters, points):
    """Set the parameters to each of the points, and update the average."""
    for values in points:
        for p, value in zip(parameters, values, strict=True):
            p.set_value(value)
        (average.step if isinstance(average, ModelAverage) else average.update)()


def points(count, seed=0):
    return [(random(2, 3, seed=seed + t), random(seed=seed + t + 90)) for t in range(count)]


def applied(average, parameters):
    with average.apply():
        return [p.numpy() for p in parameters]


@pytest.mark.parametrize("thres", [None, 3, "counter"])
def test_the_formula_of_ema(thres):
    mine = weights()
    count = iter(range(100))
    ema = EMA(0.9, (lambda: next(count)) if thres == "counter" else thres, mine)
    e, product = 0.0, 1.0
    for t, point in enumerate(points(6)):
        visit(ema, mine, [point])
        s = t if thres == "counter" else thres
        d = 0.9 if s is None else min(0.9, (1 + s) / (10 + s))
        e, product = d * e + (1 - d) * point[0], product * d
        np.testing.assert_allclose(applied(ema, mine)[0], e / (1 - product), rtol=1e-13)


def test_the_formula_of_model_average():
    mine, all_points = weights(), points(20)
    average = ModelAverage(0.5, mine, min_average_window=2, max_average_window=4)
    window, aside = [], []
    for t, point in enumerate(all_points, 1):
        visit(average, mine, [point])
        window.append(point[0])
        if len(window) >= 2 and len(window) >= min(4, int(t * 0.5)):
            window, aside = [], window
        expected = np.mean(window + aside, axis=0)
        np.testing.assert_allclose(applied(average, mine)[0], expected, rtol=1e-12)


def test_a_long_sum_is_split_and_stays_precise():
    w = ol.Parameter([1.1])
    average = ModelAverage(1.0, [w], 10**6, 10**6)
    for _ in range(16384 + 10):
        average.step()
    state = average.state_dict()
    assert state["parameter 0.sum_1"].item() == pytest.approx(11, rel=1e-6)
    assert state["parameter 0.sum_2"].item() == pytest.approx(16384 * 1.1, rel=1e-3)


@given(
    st.sampled_from(["float32", "float64"]),
    st.tuples(st.just("EMA"), st.floats(0, 0.99)) | st.tuples(st.just("MA"), st.integers(1, 5)),
    st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=12),
)  # fmt: skip
def test_the_average_stays_in_the_convex_hull(dtype, kind, values):
    w = ol.Parameter(np.zeros(1, dtype))
    average = EMA(kind[1], parameters=[w]) if kind[0] == "EMA" else ModelAverage(0.3, [w], kind[1])
    visit(average, [w], [(np.asarray([v], dtype),) for v in values])
    [found] = applied(average, [w])
    room = (2e-4 if dtype == "float32" else 1e-12) * max(map(abs, values))
    assert min(values) - room <= found <= max(values) + room
    assert found.dtype == dtype


@pytest.mark.parametrize("kind", MAKE)
def test_apply_is_idempotent_and_restore_exact(kind):
    mine = weights("float32")
    average = MAKE[kind](mine)
    visit(average, mine, points(5))
    before = [p.numpy() for p in mine]
    state = average.state_dict()
    inside = applied(average, mine)
    average.apply(need_restore=False)
    average.apply(need_restore=False)  # the averages are already applied
    for p, lent in zip(mine, inside, strict=True):
        np.testing.assert_array_equal(p.numpy(), lent)
    with average.apply(), average.apply():
        np.testing.assert_array_equal(mine[0].numpy(), inside[0])
    for p, own in zip(mine, before, strict=True):
        np.testing.assert_array_equal(p.numpy(), own)
    average.restore()  # no effect
    np.testing.assert_array_equal(mine[0].numpy(), before[0])
    for name, value in average.state_dict().items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(state[name]))


def test_need_restore_false():
    w = ol.Parameter([1.0])
    average = ModelAverage(0.15, [w])
    average.step()
    w.set_value([2.0])
    with average.apply(need_restore=False):
        pass
    assert w.item() == 1
    with pytest.raises(RuntimeError, match="restore"):
        average.step()
    average.restore()
    assert w.item() == 2
    with average.apply(False):
        pass
    assert w.item() == 1
    average.restore()
    assert w.item() == 2


def test_the_weights_come_back_after_an_exception():
    w = ol.Parameter([1.0])
    ema = EMA(0.5, parameters=[w])
    ema.update()
    w.set_value([2.0])
    seen = []

    def fail():
        seen.append(w.item())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), ema.apply():
        fail()
    assert seen == [1]
    assert w.item() == 2
    ema.update()


@pytest.mark.parametrize("kind", MAKE)
def test_averaging_while_the_averages_are_applied_is_an_error(kind):
    w = ol.Parameter([1.0])
    average = MAKE[kind]([w])
    visit(average, [w], [([2.0],)])
    with average.apply(), pytest.raises(RuntimeError, match=r"\(\) while the averages"):
        visit(average, [w], [([2.0],)])


def test_a_step_inside_apply_is_told_and_undone():
    w = ol.Parameter([1.0], name="w")
    sgd = ol.optimizer.SGD(0.1, parameters=[w])
    ema = EMA(0.5, parameters=[w])
    ema.update()
    give(w, [1.0])
    with pytest.raises(RuntimeError, match=r"w was moved by SGD.step\(\)"), ema.apply():
        sgd.step()
    assert w.item() == 1


def test_one_average_inside_another_s_block():
    w = ol.Parameter([1.0])
    ema, mean = EMA(0.5, parameters=[w]), ModelAverage(0.15, [w])
    for value in (1.0, 2.0, 6.0):
        w.set_value([value])
        ema.update()
        mean.step()
    with ema.apply():
        lent = w.item()
        with mean.apply():
            assert w.item() == 3
        assert w.item() == lent
    assert w.item() == 6


def test_before_any_update_the_weights_are_their_own_average():
    w = ol.Parameter([1.5])
    for average in (EMA(0.5, parameters=[w]), ModelAverage(0.15, [w])):
        with average.apply():
            assert w.item() == 1.5
        assert w.item() == 1.5


def test_the_tape_notices():
    w = ol.Parameter([1.0])
    ema = EMA(0.5, parameters=[w])
    ema.update()
    w.set_value([2.0])
    loss = (w * w).sum()
    with ema.apply(), pytest.raises(RuntimeError, match="apply"):
        loss.backward()


def test_parameters_stay_in_the_optimizer_s_flat_array():
    mine = weights()
    sgd = ol.optimizer.SGD(0.1, parameters=mine)
    ema = EMA(0.5, parameters=mine)
    arrays = [p.data for p in mine]
    for p in mine:
        give(p, np.ones(p.shape))
    sgd.step()
    ema.update()
    with ema.apply():
        pass
    sgd.step()
    assert all(p.data is array for p, array in zip(mine, arrays, strict=True))


@pytest.mark.parametrize("name", EACH)
def test_around_an_optimizer_equals_beside_it(name):
    beside, within = weights("float32"), weights("float32")
    optimizer = EACH[name](parameters=beside)
    ema = EMA(0.8, parameters=beside)
    both = EMA.around(EACH[name](parameters=within), decay=0.8)
    for t in range(5):
        for p, q in zip(beside, within, strict=True):
            g = random(*p.shape, seed=t)
            give(p, g)
            give(q, g)
        optimizer.step()
        ema.update()
        both.step()
        optimizer.clear_grad()
        both.clear_grad()
        np.testing.assert_array_equal(beside[0].numpy(), within[0].numpy())
        for one, other in zip(applied(ema, beside), applied(both, within), strict=True):
            np.testing.assert_array_equal(one, other)
    with both.apply(), pytest.raises(RuntimeError, match=r"step\(\) while"):
        both.step()


def test_a_step_that_moves_nothing_is_not_averaged():
    w = ol.Parameter([1.0])
    both = ModelAverage.around(
        ol.optimizer.SGD(0.5, parameters=[w], not_finite="skip"), average_window_rate=0.15
    )
    for g in (1.0, np.nan, 1.0):
        give(w, [g])
        both.step()
        both.clear_grad()
    assert applied(both, [w])[0] == np.float32((0.5 + 0.0) / 2)


def test_the_float32_copies_are_averaged_and_keep_their_bits():
    w = ol.Parameter(random(4, seed=1, dtype="float16"), name="w")
    both = EMA.around(ol.optimizer.SGD(1e-4, parameters=[w], multi_precision=True), decay=0.5)
    [flat] = both.arenas
    for t in range(4):
        give(w, random(4, seed=t, dtype="float16"))
        both.step()
        both.clear_grad()
        if t == 1:
            before, half = flat.master.copy(), w.numpy()
            with both.apply():
                assert w.dtype == np.float16
            np.testing.assert_array_equal(w.numpy(), half)
            both.inner_optimizer.clear_grad(set_to_zero=False)
            flat.make_ready()
            np.testing.assert_array_equal(flat.master, before)
    state = both.state_dict()["w.ema"]
    assert state.dtype == np.float32
    assert not np.array_equal(state.numpy(), state.numpy().astype("float16"))


@pytest.mark.parametrize("kind", MAKE)
def test_float16_is_averaged_in_float32(kind):
    w = ol.Parameter(random(4, dtype="float16"))
    average = MAKE[kind]([w])
    visit(average, [w], [(random(4, seed=t, dtype="float16"),) for t in range(3)])
    assert average.averages()[0].dtype == np.float32
    assert applied(average, [w])[0].dtype == np.float16


@pytest.mark.parametrize("kind", MAKE)
def test_arrays_that_refuse_numpy(kind):
    p = ol.Tensor(guarded(np.array([1.0, 2.0])))
    p.requires_grad = True
    average = MAKE[kind]([p])
    for _ in range(6):
        (average.step if kind == "ModelAverage" else average.update)()
    with average.apply():
        assert type(p.data) is type(guarded())
    average.set_state_dict(average.state_dict())


def test_around_wrappers_and_templates():
    template = EMA.around(
        ol.optimizer.LookAhead(ol.optimizer.Adam(0.1), k=2), decay=0.5, name="smooth"
    )
    assert template.is_template
    assert template.name == "smooth"
    race = ol.compare("rosenbrock", {"both": template}, steps=6)
    trace = race["both"]
    assert trace["average"].shape == trace["slow"].shape == (6, 2)
    points = trace["parameter"][1:]
    e, product = 0.0, 1.0
    for point, average in zip(points, trace["average"], strict=True):
        e, product = 0.5 * e + 0.5 * point, product * 0.5
        np.testing.assert_allclose(average, e / (1 - product), rtol=1e-13)
    assert template.average.sources == []
    nested = ol.optimizer.LookAhead(ModelAverage.around(ol.optimizer.SGD(0.1), 0.15), k=2)
    assert nested.bind(weights()).settings["inner_optimizer"] == "Averaged(SGD)"


def test_minimize_and_clear_grad_of_the_documents():
    ol.seed(0)
    linear = ol.nn.Linear(10, 1)
    sgd = ol.optimizer.SGD(learning_rate=0.1, parameters=linear.parameters())
    average = ModelAverage(
        0.15, parameters=linear.parameters(), min_average_window=2, max_average_window=4
    )
    loss = ol.mean(linear(ol.rand([2, 10])))
    loss.backward()
    sgd.minimize(loss)
    operations, pairs = average.minimize(loss)
    assert operations == []
    assert pairs[0][0] is linear.weight
    average.clear_grad()
    assert not linear.weight.grad.any()
    assert average.state_dict()["weight.num_updates"] == 1
    with pytest.raises(TypeError, match="no_grad_set"):
        average.minimize(loss, no_grad_set=[linear.bias])


def test_copies_go_on_by_themselves():
    mine = weights()
    ema = EMA(0.5, parameters=mine)
    visit(ema, mine, points(2))
    theirs, other = copy.deepcopy((mine, ema))
    visit(ema, mine, points(1, seed=7))
    visit(other, theirs, points(1, seed=7))
    np.testing.assert_array_equal(applied(ema, mine)[0], applied(other, theirs)[0])
    visit(other, theirs, points(1, seed=8))
    assert not np.array_equal(applied(ema, mine)[0], applied(other, theirs)[0])


def test_a_parameter_of_another_shape_is_refused():
    w = ol.Parameter([1.0], name="w")
    ema = EMA(0.5, parameters=[w])
    w.data = np.zeros(2, "float32")
    with pytest.raises(ValueError, match=r"w has shape \(2,\)"):
        ema.update()


def test_words():
    assert (
        repr(EMA(0.9, parameters=[ol.Parameter([1.0])]))
        == "ExponentialMovingAverage(decay=0.9), 1 parameter"
    )
    around = ModelAverage.around(ol.optimizer.SGD(0.1), 0.15)
    assert repr(around).startswith("ModelAverage.around(SGD(learning_rate=0.1), average_window_")
    assert "\\theta" in EMA.formula
    assert escape(ModelAverage.formula) in around.bind(weights())._repr_html_()
