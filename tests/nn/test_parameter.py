"""Parameter: a Tensor that an optimizer may change."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol


def test_copies_what_it_is_given():
    given = np.array([1.0, 2.0])
    p = ol.Parameter(given)
    given[...] = 9.0
    assert p.numpy().tolist() == [1.0, 2.0]
    other = ol.Parameter(p)
    p.set_value([3.0, 4.0])
    assert other.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1.0, 2.0], "float32"),
        (np.ones(2), "float64"),
        (np.ones(2, "float16"), "float16"),
        (0.5, "float32"),
    ],
)
def test_dtype(data, dtype):
    assert ol.Parameter(data).dtype == dtype


def test_defaults():
    p = ol.Parameter([1.0])
    assert p.trainable
    assert p.requires_grad
    assert p.is_leaf
    assert p.grad is None
    assert p.structural_name is None
    assert p.learning_rate == 1.0
    assert p.regularizer is None
    assert p.need_clip


def test_collects_gradients_and_they_add_up():
    p = ol.Parameter([1.0, 2.0])
    (p * p).sum().backward()
    (3 * p).sum().backward()
    assert p.grad.tolist() == [5.0, 7.0]


def test_numpy_is_a_copy():
    p = ol.Parameter([1.0, 2.0])
    before = p.numpy()
    p.set_value([5.0, 6.0])
    assert before.tolist() == [1.0, 2.0]
    before[0] = 7.0
    assert p.numpy().tolist() == [5.0, 6.0]


def test_a_parameter_that_is_not_trained():
    p = ol.Parameter([1.0, 2.0], trainable=False)
    q = ol.Parameter([3.0, 4.0])
    (p * q).sum().backward()
    assert not p.trainable
    assert p.grad is None
    assert q.grad.tolist() == [1.0, 2.0]


def test_trainable_can_be_switched():
    p = ol.Parameter([1.0])
    p.trainable = False
    assert not p.requires_grad
    p.trainable = True
    (p * 3).sum().backward()
    assert p.grad.tolist() == [3.0]


class TestSetValue:
    @pytest.mark.parametrize(
        "value", [[3.0, 4.0], (3, 4), np.array([3.0, 4.0]), ol.to_tensor([3.0, 4.0])]
    )
    def test_takes_what_has_the_shape_and_keeps_the_dtype(self, value):
        p = ol.Parameter([1.0, 2.0])
        p.set_value(value)
        assert p.numpy().tolist() == [3.0, 4.0]
        assert p.dtype == np.float32

    @pytest.mark.parametrize("value", [[1.0], 1.0, [[1.0, 2.0]], [1.0, 2.0, 3.0]])
    def test_another_shape_is_refused_and_nothing_changed(self, value):
        p = ol.Parameter([1.0, 2.0], name="w")
        with pytest.raises(ValueError, match=r"parameter w has shape \(2,\)") as caught:
            p.set_value(value)
        assert str(np.shape(value)) in str(caught.value)
        assert p.numpy().tolist() == [1.0, 2.0]

    def test_does_not_keep_the_array(self):
        p, value = ol.Parameter([1.0, 2.0]), np.array([3.0, 4.0], np.float32)
        p.set_value(value)
        value[...] = 9.0
        assert p.numpy().tolist() == [3.0, 4.0]


def test_repr_shows_name_values_and_dtype():
    assert repr(ol.Parameter([1.0], name="w")) == (
        "Parameter 'w' ([1.], dtype=float32, requires_grad=True)"
    )
    assert repr(ol.Parameter([1.0], trainable=False)) == (
        "Parameter ([1.], dtype=float32, requires_grad=False)"
    )


@pytest.mark.parametrize("rate", [-0.1, float("nan"), "fast", None, float("inf")])
def test_a_rate_that_cannot_be(rate):
    with pytest.raises((ValueError, TypeError), match="learning_rate"):
        ol.Parameter([1.0], learning_rate=rate)


@pytest.mark.parametrize("regularizer", ["l2", [0.1], object()])
def test_a_regularizer_that_is_none_is_refused_at_once(regularizer):
    with pytest.raises(TypeError, match="regularizer"):
        ol.Parameter([1.0], regularizer=regularizer)
    p = ol.Parameter([1.0])
    with pytest.raises(TypeError, match=r"regularizer is optlab.regularizer.L1Decay\(c\)"):
        p.regularizer = regularizer
    assert p.regularizer is None


def test_a_number_as_regularizer_means_l2_decay_or_is_refused():
    try:
        p = ol.Parameter([2.0], regularizer=0.5)
    except TypeError as error:
        assert "regularizer" in str(error)  # noqa: PT017 - a refusal is one of two right answers
        return
    optimizer = ol.optimizer.SGD(1.0, parameters=[p])
    p.grad = [0.0]
    optimizer.step()
    assert p.numpy().tolist() == [1.0]


@pytest.mark.parametrize("data", [[1, 2], np.arange(1, 3), [True, True]])
def test_whole_numbers_become_floats_which_have_gradients(data):
    p = ol.Parameter(data)
    assert p.dtype == np.float32
    (p * p).sum().backward()
    assert p.grad.tolist() == [2.0 * x for x in data]


@pytest.mark.parametrize("data", ["text", [1j], [[1.0], [1.0, 2.0]], None])
def test_what_is_no_array_of_real_numbers(data):
    with pytest.raises((TypeError, ValueError), match=r"real numbers|inhomogeneous"):
        ol.Parameter(data)
