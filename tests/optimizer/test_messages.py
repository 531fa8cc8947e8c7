"""What the library says to those who write what another library, or a hurried hand, would write."""

from __future__ import annotations

import re

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import (
    LBFGS,
    SGD,
    Adam,
    AdamW,
    Momentum,
)


def says(kind, *parts):
    """Expect an error that holds these parts, on few lines."""
    return pytest.raises(kind, match="(?s)" + ".*".join(re.escape(part) for part in parts))


# Arguments of optimizers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda p: Adam(0.1, 0.9, 0.999, 1e-8, p, 0.01), "lazy_mode"),
        (lambda p: AdamW(0.1, 0.9, 0.999, 1e-8, p, 0.01), "weight_decay"),
        (lambda p: AdamW(0.1, 0.9, 0.999, 1e-8, 0.01, p), "lr_ratio"),
        (lambda p: Momentum(0.1, 0.9, p), "use_nesterov"),
        (lambda p: LBFGS(0.1, p), "max_iter"),
        (lambda p: SGD(p), "learning_rate"),
        (lambda p: SGD(iter_of(p)), "learning_rate"),
    ],
)
def test_parameters_in_the_place_of_a_setting(make, place):
    parameters = ol.nn.Linear(40, 40).parameters()
    with says(TypeError, f"in the place of {place}", "parameters=model.parameters()") as caught:
        make(parameters)
    assert len(str(caught.value)) < 250


def iter_of(parameters):
    return (p for p in parameters)


def test_parameters_beyond_the_last_place():
    with says(TypeError, "SGD takes at most 1 arguments", "parameters=model.parameters()"):
        SGD(0.1, ol.nn.Linear(2, 2).parameters())


def test_a_rate_may_be_a_tensor_of_one_number():
    assert SGD(ol.to_tensor(0.5)).get_lr() == 0.5


def test_what_is_no_switch_is_written_short():
    with says(TypeError, "lazy_mode must be True or False") as caught:
        Adam(lazy_mode=list(range(10000)))
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("cls", "named", "hint"),
    [
        (Adam, {"params": []}, "Did you mean 'parameters'?"),
        (Adam, {"paramters": []}, "Did you mean 'parameters'?"),
        (Adam, {"betas": (0.9, 0.99)}, "beta1=... and beta2=..."),
        (Adam, {"momentum": 0.9}, "beta1"),
        (SGD, {"momentum": 0.9}, "ol.optimizer.Momentum("),
        (SGD, {"nesterov": True}, "ol.optimizer.Momentum("),
        (Momentum, {"nesterov": True}, "Did you mean 'use_nesterov'?"),
    ],
)
def test_the_names_of_other_libraries(cls, named, hint):
    with says(TypeError, f"{cls.__name__} has no setting {next(iter(named))!r}", hint):
        cls(0.1, **named)


def test_decoupled_decay_is_a_number():
    with says(TypeError, "must be a number", "decoupled", "Adam(weight_decay=L1Decay(0.1))"):
        AdamW(0.1, weight_decay=ol.regularizer.L1Decay(0.1))
    with says(TypeError, "must be a number", "write weight_decay=0.1"):
        AdamW(0.1, weight_decay=ol.regularizer.L2Decay(0.1))


@pytest.mark.parametrize("rates", [np.geomspace(1e-4, 1, 5), [0.1, 0.2], (1, 2)])
def test_many_rates_are_an_ensemble(rates):
    with says(TypeError, "learning_rate must be one number", "ol.ensemble("):
        Adam(rates)
