"""Averages over the same parameters, applied on top of each other: the weights are restored."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give, random

EMA, ModelAverage = ol.optimizer.ExponentialMovingAverage, ol.optimizer.ModelAverage


def weights():
    return [ol.Parameter(random(3, seed=1), name="a"), ol.Parameter(random(2, seed=2), name="b")]


def averages(a, b):
    """Build three averages over different parameters, and update them at three points."""
    made = [EMA(0.5, parameters=[a, b]), ModelAverage(0.5, [b, a], 2, 4), EMA(0.9, parameters=[b])]
    for t in range(3):
        for p in (a, b):
            p.set_value(random(*p.shape, seed=10 + t + p.size))
        made[0].update()
        made[1].step()
        made[2].update()
    return made


def place_of(p, average):
    return [q is p for q in average.parameters].index(True)


@pytest.mark.parametrize("applied", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("restored", list(itertools.permutations(range(3))))
def test_any_order_gives_the_weights_back(applied, restored):
    a, b = weights()
    made = averages(a, b)
    own = [a.numpy(), b.numpy()]
    shown = {n: average.averages() for n, average in enumerate(made)}
    for n in applied:
        made[n].apply(need_restore=False)
        place = place_of(b, made[n])
        np.testing.assert_array_equal(b.numpy(), shown[n][place])
    left = list(applied)
    for n in restored:
        made[n].restore()
        left.remove(n)
        if left:  # the one applied last is visible
            place = place_of(b, made[left[-1]])
            np.testing.assert_array_equal(b.numpy(), shown[left[-1]][place])
    np.testing.assert_array_equal(a.numpy(), own[0])
    np.testing.assert_array_equal(b.numpy(), own[1])
    for average in made:
        average.restore()  # no effect any more
    np.testing.assert_array_equal(b.numpy(), own[1])


@pytest.mark.parametrize("first", [0, 1])
def test_no_average_takes_what_another_has_lent_for_weights(first):
    a, b = weights()
    made = averages(a, b)
    name = type(made[first]).__name__
    with made[first].apply():
        for average in made:
            take = average.step if isinstance(average, ModelAverage) else average.update
            with pytest.raises(RuntimeError, match=rf"\(\) while the averages of {name}"):
                take()
    apart = EMA(0.5, parameters=[ol.Parameter([1.0])])
    with made[first].apply():
        apart.update()


def test_an_average_of_nothing_yet_is_the_weights_under_all_loans():
    w = ol.Parameter([1.0])
    first, second = EMA(0.5, parameters=[w]), EMA(0.5, parameters=[w])
    first.update()
    w.set_value([3.0])
    with first.apply(), second.apply():
        assert w.numpy() == [3.0]
    assert w.numpy() == [3.0]


def test_both_around_one_optimizer():
    w = ol.Parameter([1.0])
    inner = ModelAverage.around(ol.optimizer.SGD(0.5, parameters=[w]), 0.15)
    both = EMA.around(inner, decay=0.5)
    for _ in range(2):
        give(w, [1.0])
        both.step()
        both.clear_grad()
    both.apply(need_restore=False)
    inner.apply(need_restore=False)
    assert w.numpy() == [0.25]
    with pytest.raises(RuntimeError, match="averages of ModelAverage"):
        both.step()
    both.restore()
    inner.restore()
    assert w.numpy() == [0.0]


def test_what_moved_the_weights_under_another_loan_is_told():
    w = ol.Parameter([1.0], name="w")
    lower, upper = EMA(0.5, parameters=[w]), ModelAverage(0.5, [w], 2, 4)
    lower.update()
    upper.step()
    w.set_value([2.0])
    lower.apply(need_restore=False)
    w.set_value([5.0])
    upper.apply(need_restore=False)
    with pytest.raises(RuntimeError, match="w was moved by something while"):
        lower.restore()
    upper.restore()
    assert w.numpy() == [2.0]


def test_weights_come_back_where_another_array_was_put():
    w = ol.Parameter([1.0, 2.0], name="w")
    ema = EMA(0.5, parameters=[w])
    ema.update()
    ema.apply(need_restore=False)
    w.data = np.zeros(3, "float32")
    with pytest.raises(RuntimeError, match="w was moved"):
        ema.restore()
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])


def test_a_group_that_comes_while_averages_are_applied():
    w, late = ol.Parameter([1.0]), ol.Parameter([7.0])
    both = EMA.around(ol.optimizer.SGD(0.5, parameters=[w]), decay=0.5)
    give(w, [1.0])
    both.step()
    with both.apply():
        both.add_param_group({"params": [late]})
        with both.apply():
            assert late.numpy() == [7.0]
    assert (w.numpy(), late.numpy()) == ([0.5], [7.0])


def test_copies_of_applied_averages_lend_to_copies():
    a, b = weights()
    made = averages(a, b)
    own = a.numpy()
    made[0].apply(need_restore=False)
    made[1].apply(need_restore=False)
    (a2, _), copies = copy.deepcopy(([a, b], made))
    for average in (*copies[:2], *made[:2]):
        average.restore()
    np.testing.assert_array_equal(a.numpy(), own)
    np.testing.assert_array_equal(a2.numpy(), own)


def test_how_to_end_a_loan_is_said_in_words_that_can_be_written():
    w = ol.Parameter([1.0])
    ema = ol.optimizer.ExponentialMovingAverage(0.5, parameters=[w])
    ema.update()
    with (
        ema.apply(),
        pytest.raises(RuntimeError, match=r"Leave the `with` block of its apply\(\) first"),
    ):
        ema.update()
