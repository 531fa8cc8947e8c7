"""Hyper-parameters: their types and ranges, signature, repr, templates."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give

nan, inf = float("nan"), float("inf")

CLASSES = [ol.optimizer.SGD, ol.optimizer.Momentum, ol.optimizer.RMSProp, ol.optimizer.Adam]
classes = pytest.mark.parametrize("cls", CLASSES)


@classes
@pytest.mark.parametrize("rate", [-0.1, nan, -inf, np.float32(-1), -1])
def test_a_rate_out_of_range(cls, rate):
    with pytest.raises(ValueError, match=r"learning_rate must be .*at least 0"):
        cls(rate)


@classes
@pytest.mark.parametrize("rate", [inf, np.float32(inf)])
def test_an_infinite_rate_is_called_so(cls, rate):
    with pytest.raises(ValueError, match=r"learning_rate must be .*finite.*got inf"):
        cls(rate)


@classes
@pytest.mark.parametrize("rate", ["0.1", [0.1, 0.2], True, {}, 1j])
def test_a_rate_of_the_wrong_type(cls, rate):
    with pytest.raises(TypeError, match="learning_rate must be one number"):
        cls(rate)


@classes
@pytest.mark.parametrize("rate", [-0.1, nan, inf, "0.1", None])
def test_set_lr_checks_and_leaves_the_old_rate(cls, rate):
    p = ol.Parameter([1.0])
    optimizer = cls(0.5, parameters=[p])
    with pytest.raises((ValueError, TypeError), match="learning_rate"):
        optimizer.set_lr(rate)
    assert optimizer.get_lr() == 0.5
    assert p.numpy().tolist() == [1.0]


def test_set_lr_counts_from_the_next_step():
    p = ol.Parameter([0.0])
    optimizer = ol.optimizer.SGD(1.0, parameters=[p])
    give(p, [-1.0])
    optimizer.step()
    optimizer.set_lr(0.25)
    optimizer.step()
    assert p.numpy().tolist() == [1.25]
    assert optimizer.get_lr() == 0.25


def test_a_rate_of_zero_moves_nothing():
    p = ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(0, parameters=[p])
    give(p, [1.0])
    optimizer.step()
    assert p.numpy().tolist() == [1.0]


@pytest.mark.parametrize(
    ("cls", "name"),
    [(ol.optimizer.Adam, "beta1"), (ol.optimizer.Adam, "beta2"), (ol.optimizer.RMSProp, "rho"),
     (ol.optimizer.DecayedAdagrad, "decay")],
)  # fmt: skip
@pytest.mark.parametrize("value", [1.0, 1.5, -0.1, nan, inf])
def test_what_forgets_lies_in_zero_to_one(cls, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be in \[0, 1\); got"):
        cls(0.1, **{name: value})


@pytest.mark.parametrize("cls", [ol.optimizer.RMSProp, ol.optimizer.Momentum])
@pytest.mark.parametrize("value", [1 + 1e-9, 1.5, -0.1, nan, inf])
def test_momentum_lies_in_zero_to_one(cls, value):
    with pytest.raises(ValueError, match=r"momentum must be in \[0, 1\]; got"):
        cls(0.1, momentum=value)


def test_momentum_of_one_keeps_all_of_the_velocity():
    p = ol.Parameter([0.0])
    optimizer = ol.optimizer.Momentum(0.5, momentum=1.0, parameters=[p])
    for gradient in (1.0, 0.0, 0.0):
        optimizer.apply_gradients([(p, np.float32([gradient]))])
    assert p.numpy().tolist() == [-1.5]


@pytest.mark.parametrize(
    ("cls", "name"),
    [(ol.optimizer.SGD, "learning_rate"), (ol.optimizer.Momentum, "momentum"),
     (ol.optimizer.Adam, "beta1"), (ol.optimizer.Adadelta, "rho"), (ol.optimizer.ASGD, "batch_num"),
     (ol.optimizer.LarsMomentum, "momentum"), (ol.optimizer.AdamW, "weight_decay")],
)  # fmt: skip
def test_a_number_that_is_none_is_named(cls, name):
    with pytest.raises(ValueError, match=f"{name} of {cls.__name__} must be one number, not None"):
        cls(**{"learning_rate": 0.1, name: None})


@pytest.mark.parametrize("cls", [ol.optimizer.Adam, ol.optimizer.Momentum])
def test_how_tensors_are_updated_changes_no_bit(cls):
    found = []
    for given in ({}, {"use_multi_tensor": True}, {"use_multi_tensor": False}):
        p, q = ol.Parameter([1.0, 2.0]), ol.Parameter([[3.0]])
        optimizer = cls(0.1, parameters=[p, q], **given)
        for _ in range(2):
            optimizer.apply_gradients([(p, np.float32([1, -2])), (q, np.float32([[0.5]]))])
        found.append([*p.tolist(), *q.ravel().tolist(), repr(optimizer)])
    assert found[0] == found[1] == found[2]
    with pytest.raises(TypeError, match=r"use_multi_tensor of .* must be True or False"):
        cls(0.1, use_multi_tensor=1)
    with pytest.raises(TypeError, match="AdamW has no setting 'use_multi_tensor'"):
        ol.optimizer.AdamW(0.1, use_multi_tensor=True)


@pytest.mark.parametrize("cls", [ol.optimizer.Adam, ol.optimizer.RMSProp])
@pytest.mark.parametrize("value", [-1e-8, nan])
def test_epsilon_is_not_negative(cls, value):
    with pytest.raises(ValueError, match=r"epsilon must be .*at least 0"):
        cls(0.1, epsilon=value)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_setting_without_range_is_still_finite(value):
    with pytest.raises(ValueError, match=r"rescale_grad must be .*finite"):
        ol.optimizer.Momentum(0.1, rescale_grad=value)


@pytest.mark.parametrize(
    ("cls", "name"),
    [(ol.optimizer.Momentum, "use_nesterov"), (ol.optimizer.RMSProp, "centered"),
     (ol.optimizer.Adam, "amsgrad")],
)  # fmt: skip
@pytest.mark.parametrize("value", ["False", [1.0], None, 0.5])
def test_a_switch_is_true_or_false(cls, name, value):
    with pytest.raises(TypeError, match=name):
        cls(0.1, **{name: value})


def test_parameters_by_position_are_not_taken_for_a_switch():
    """In Paddle's signature the parameters are the third argument."""
    with pytest.raises(TypeError, match=r"use_nesterov|parameters"):
        ol.optimizer.Momentum(0.1, 0.9, [ol.Parameter([1.0])])


@classes
def test_settings_that_do_not_exist_are_named_with_a_suggestion(cls):
    with pytest.raises(
        TypeError, match=r"has no setting 'learning_rte'.*Did you mean 'learning_ra"
    ):
        cls(learning_rte=0.1)


def test_too_many_or_doubled_arguments():
    with pytest.raises(TypeError, match=r"SGD takes at most 1 arguments? by position"):
        ol.optimizer.SGD(0.1, [ol.Parameter([1.0])])
    with pytest.raises(TypeError, match="learning_rate twice, by position and by name"):
        ol.optimizer.SGD(0.1, learning_rate=0.2)
    with pytest.raises(TypeError, match="RMSProp needs learning_rate"):
        ol.optimizer.RMSProp()


@pytest.mark.parametrize("value", [-0.1, nan, inf])
def test_weight_decay_out_of_range_is_named(value):
    with pytest.raises(ValueError, match="weight_decay"):
        ol.optimizer.SGD(0.1, weight_decay=value)


@pytest.mark.parametrize("value", ["0.1", [0.1, 0.2], True])
def test_weight_decay_of_the_wrong_type_is_named(value):
    with pytest.raises(TypeError, match="weight_decay"):
        ol.optimizer.SGD(0.1, weight_decay=value)


@pytest.mark.parametrize("cls", [ol.regularizer.L1Decay, ol.regularizer.L2Decay])
def test_the_coefficient_of_a_regularizer(cls):
    assert repr(cls(0.5)) == f"{cls.__name__}(0.5)"
    with pytest.raises(ValueError, match="coeff must be finite and at least 0"):
        cls(-1.0)
    with pytest.raises(TypeError, match="coeff must be one number"):
        cls("1")


@pytest.mark.parametrize("value", [1.0, "norm", True])
def test_a_clip_of_the_wrong_type_names_the_clips(value):
    with pytest.raises(TypeError, match="grad_clip takes ClipGradByValue, ClipGradByNorm or"):
        ol.optimizer.SGD(0.1, grad_clip=value)


@classes
def test_the_signature_shows_the_settings_with_their_defaults(cls):
    shown = inspect.signature(cls).parameters
    common = ["parameters", "weight_decay", "grad_clip", "name", "multi_precision", "not_finite"]
    assert list(shown) == [*cls(0.1).settings, *common]
    assert [shown[name].default for name in common] == [None] * 4 + [False, "pass"]
    for name in common:
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_defaults_are_those_of_the_documents():
    assert str(inspect.signature(ol.optimizer.Adam)) == (
        "(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, lazy_mode=False, "
        "amsgrad=False, *, "
        "parameters=None, weight_decay=None, grad_clip=None, name=None, multi_precision=False, "
        "not_finite='pass')"
    )
    assert ol.optimizer.SGD().settings == {"learning_rate": 0.001}
    assert ol.optimizer.Momentum().settings == {
        "learning_rate": 0.001, "momentum": 0.9, "use_nesterov": False, "rescale_grad": 1.0,
    }  # fmt: skip
    assert ol.optimizer.RMSProp(0.1).settings == {
        "learning_rate": 0.1, "rho": 0.95, "epsilon": 1e-6, "momentum": 0.0, "centered": False,
    }  # fmt: skip
    required = inspect.signature(ol.optimizer.RMSProp).parameters["learning_rate"]
    assert required.default is inspect.Parameter.empty


@classes
def test_repr(cls):
    template = cls(0.25)
    assert repr(template).startswith(f"{cls.__name__}(learning_rate=0.25")
    assert repr(template).endswith(")")
    bound = template.bind([ol.Parameter(np.ones((2, 3))), ol.Parameter([1.0])])
    assert repr(bound) == repr(template) + ", 2 parameters of 7 elements"


class TestTemplate:
    def test_is_one_until_it_has_parameters(self):
        template = ol.optimizer.SGD(0.1)
        assert template.is_template
        assert template.parameters == []
        bound = template.bind([ol.Parameter([1.0])])
        assert not bound.is_template
        assert template.is_template

    @classes
    def test_copies_are_independent(self, cls):
        template = cls(0.1, weight_decay=0.1, name="mine")
        p, q = ol.Parameter([1.0, 2.0]), ol.Parameter([1.0, 2.0])
        one, other = template.bind([p]), template.bind([q])
        one.set_lr(0.5)
        assert other.get_lr() == template.get_lr() == 0.1
        assert other.name == "mine"
        for _ in range(3):
            give(p, [1.0, -1.0])
            one.step()
        assert q.numpy().tolist() == [1.0, 2.0]
        give(q, [1.0, -1.0])
        other.step()
        fresh = ol.Parameter([1.0, 2.0])
        third = template.bind([fresh])
        give(fresh, [1.0, -1.0])
        third.step()
        assert np.array_equal(q.numpy(), fresh.numpy())

    def test_checks_its_settings_before_it_is_bound(self):
        with pytest.raises(ValueError, match="beta1"):
            ol.optimizer.Adam(beta1=2.0)
        with pytest.raises(TypeError, match="grad_clip"):
            ol.optimizer.Adam(grad_clip=3)

    def test_binds_groups(self):
        p, q = ol.Parameter([0.0]), ol.Parameter([0.0])
        template = ol.optimizer.SGD(1.0)
        optimizer = template.bind([{"params": [p]}, {"params": [q], "learning_rate": 0.5}])
        give(p, [1.0])
        give(q, [1.0])
        optimizer.step()
        assert (p.item(), q.item()) == (-1.0, -0.5)


def test_a_whole_number_that_no_float_holds_is_out_of_range():
    with pytest.raises(ValueError, match="learning_rate must be a number that a float can hold"):
        ol.optimizer.Adam(10**400)
