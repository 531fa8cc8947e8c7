"""Optimizers in the forms in which users give them: named, listed, alone; other settings of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.lab.templates import named_optimizers, with_settings

O = ol.optimizer  # noqa: E741
EMA = O.ExponentialMovingAverage
RATES = [0.01, 0.1]


def test_a_list_and_one_optimizer_are_compared_by_their_classes() -> None:
    race = ol.compare("booth", [O.Adam(0.1), O.SAM(O.SGD(0.01)), O.Adam(0.2)], steps=3)
    assert list(race) == ["Adam, learning_rate=0.1", "SAM SGD", "Adam, learning_rate=0.2"]
    named = ol.compare("booth", {"one": O.Adam(0.1)}, steps=3)
    alone = ol.compare("booth", O.Adam(0.1), steps=3)
    assert list(alone) == ["Adam"]
    assert alone.final_loss["Adam"] == named.final_loss["one"] == race.final_loss[next(iter(race))]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([O.SGD(0.1), O.SGD(0.1)], ["SGD 1", "SGD 2"]),
        ([O.SGD(0.1, name="mine"), O.SGD(0.2)], ["mine, learning_rate=0.1",
                                                 "SGD, learning_rate=0.2"]),
        ((O.LookAhead(O.SGD(0.1), k=3), O.LookAhead(O.SGD(0.1))),
         ["LookAhead SGD, k=3", "LookAhead SGD, k=5"]),
        ([EMA.around(O.LookAhead(O.Adam(0.1)), 0.9)],
         ["ExponentialMovingAverage LookAhead Adam"]),
        ([O.SGD(0.1, weight_decay=0.5), O.SGD(0.1)], None),
    ],
)  # fmt: skip
def test_every_optimizer_of_a_list_has_a_name_of_its_own(given: Any, names: Any) -> None:
    found = named_optimizers(given, "compare")
    assert list(found.values()) == list(given)
    if names is not None:
        assert list(found) == names


@pytest.mark.parametrize(
    "template",
    [
        O.Adam(0.3, beta2=0.9, weight_decay=0.1),
        O.Momentum(0.3, grad_clip=ol.nn.ClipGradByValue(0.5)),
        O.LookAhead(O.Momentum(0.3), k=3),
        EMA.around(O.Adam(0.3), 0.9),
        O.SAM(O.SGD(0.3), rho=0.1),
        lambda learning_rate: O.Adam(learning_rate, beta2=0.9),
    ],
    ids=["Adam", "Momentum", "LookAhead", "average", "SAM", "function"],
)
def test_a_sweep_of_a_template_keeps_its_other_settings(template: Any) -> None:
    make = template if callable(template) else None
    sweep = ol.sweep("booth", template, {"learning_rate": RATES}, steps=9)
    for i, rate in enumerate(RATES):
        one = make(rate) if make else with_settings(template, learning_rate=rate)
        race = ol.compare("booth", {"run": one}, steps=9)
        assert sweep.final_loss[i] == race.final_loss["run"]
    assert sweep.optimizer is type(one)


def test_settings_of_wrappers_are_swept_beside_those_of_the_rule() -> None:
    template = O.LookAhead(O.Momentum(0.3, momentum=0.5), k=3)
    sweep = ol.sweep("booth", template, {"alpha": [0.2, 0.8], "learning_rate": RATES}, steps=9)
    for i, alpha in enumerate([0.2, 0.8]):
        for j, rate in enumerate(RATES):
            one = O.LookAhead(O.Momentum(rate, momentum=0.5), alpha, 3)
            race = ol.compare("booth", {"run": one}, steps=9)
            assert sweep.final_loss[i, j] == race.final_loss["run"]
    averaged = with_settings(EMA.around(O.Adam(0.1), 0.9), decay=0.5, beta1=0.2)
    assert averaged.own_settings["decay"] == 0.5
    assert averaged.inner_optimizer.settings["beta1"] == 0.2
    assert template.own_settings == {"alpha": 0.5, "k": 3}  # it is as it was


def test_a_schedule_stays_unless_schedules_are_swept() -> None:
    StepDecay = O.lr.StepDecay
    template = O.Momentum(StepDecay(0.02, 3), momentum=0.5)
    sweep = ol.sweep("booth", template, {"momentum": [0.1, 0.8]}, steps=9)
    for i, momentum in enumerate([0.1, 0.8]):
        race = ol.compare("booth", {"run": O.Momentum(StepDecay(0.02, 3), momentum)}, steps=9)
        assert sweep.final_loss[i] == race.final_loss["run"]
    others = ol.sweep("booth", template, {"learning_rate": [StepDecay(0.01, 2)]}, steps=9)
    race = ol.compare("booth", {"run": O.Momentum(StepDecay(0.01, 2), 0.5)}, steps=9)
    assert others.final_loss[0] == race.final_loss["run"]
    with pytest.raises(TypeError, match=r"comes from a schedule.*Give schedules: \{'learning_rat"):
        ol.sweep("booth", template, {"learning_rate": RATES})


def test_a_network_is_swept_with_a_template() -> None:
    template = O.Momentum(0.1, momentum=0.5)
    found = ol.sweep("digits_mlp", template, {"learning_rate": RATES}, steps=2)
    settings = {"learning_rate": RATES, "momentum": [0.5]}
    by_class = ol.sweep("digits_mlp", O.Momentum, settings, steps=2)
    np.testing.assert_array_equal(found.loss, by_class.loss[:, 0])
    assert found.optimizer is O.Momentum


@pytest.mark.parametrize(
    ("optimizer", "settings", "error", "message"),
    [
        (O.Adam(0.1), {"momentum": [0.5]}, TypeError, "no setting 'momentum'. There are, of Adam:"),
        (O.SAM(O.RMSProp(0.1)), {"rho": [0.5]}, ValueError, "RMSProp and SAM RMSProp both have a"),
        (O.SGD(0.1, parameters=[ol.Parameter([1.0])]), {"learning_rate": RATES}, TypeError,
         "already has some"),
        ("Adam", {"learning_rate": RATES}, TypeError, "or a function; got 'Adam'"),
        (lambda learning_rate: learning_rate, {"learning_rate": RATES}, TypeError,
         "the function makes 0.01"),
        (O.LookAhead, {"k": [3]}, TypeError, "by itself: give what it wraps"),
    ],
)  # fmt: skip
def test_what_cannot_be_swept(optimizer: Any, settings: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        ol.sweep("booth", optimizer, settings, steps=3)
