"""Ctrl-C at any line of loading a state, or of swapping averages in and out, tears nothing."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import random
from tests.optimizer.interrupts import interrupted_at, lines_of, same, values_of

optim = ol.optimizer
MAKERS = {
    "Adam": lambda ps: optim.Adam(0.1, parameters=ps),
    "schedule": lambda ps: optim.Momentum(optim.lr.StepDecay(0.1, step_size=2), parameters=ps),
    "float32 copies": lambda ps: optim.Momentum(0.1, parameters=ps, multi_precision=True),
    "LookAhead(Adam)": lambda ps: optim.LookAhead(optim.Adam(0.1, parameters=ps), k=2),
    "EMA(Adam)": lambda ps: optim.ExponentialMovingAverage.around(
        optim.Adam(0.1, parameters=ps), decay=0.5
    ),
    "LBFGS": lambda ps: optim.LBFGS(0.1, parameters=ps),
}


def made(name, seed):
    dtype = "float16" if name == "float32 copies" else "float32"
    parameters = [
        ol.Parameter(random(*s, seed=seed, dtype=dtype), name=f"p{s}") for s in [(3, 2), (4,)]
    ]
    optimizer = MAKERS[name](parameters)
    for t in range(3):

        def loss():
            return sum((p.astype("float32") ** 2).sum() for p in parameters)

        def closure():
            optimizer.clear_grad()
            value = loss()
            value.backward()
            return value

        if name == "LBFGS":
            optimizer.step(closure)
        else:
            for i, p in enumerate(parameters):
                p.grad = random(*p.shape, seed=seed + 10 * t + i, dtype=dtype)
            optimizer.step()
    if name == "schedule":
        for _ in range(seed):
            optimizer.schedule.step()
    return parameters, optimizer


def some(count, most=60):
    return range(0, count, max(1, count // most))


@pytest.mark.parametrize("name", MAKERS)
def test_a_state_of_an_optimizer(name):
    state = made(name, 1)[1].state_dict()
    _, optimizer = made(name, 2)
    before = values_of([], optimizer)
    lines = lines_of(lambda: optimizer.set_state_dict(state))
    after = values_of([], optimizer)
    assert not same(before, after)
    told = set()
    for number in some(lines):
        _, optimizer = made(name, 2)
        if not interrupted_at(number, lambda o=optimizer: o.set_state_dict(state)):
            break  # the call whose lines were counted had some of first uses
        found = values_of([], optimizer)
        assert same(found, before) or same(found, after), f"torn at line {number} of {lines}"
        told.add(same(found, after))
    assert told == {True, False}


def test_a_state_of_a_layer():
    def network(seed):
        ol.seed(seed)
        return ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.BatchNorm1D(4), ol.nn.Linear(4, 2))

    def values(model):
        return {name: np.array(value.numpy()) for name, value in model.state_dict().items()}

    state = {name: value.detach().numpy() + 1 for name, value in network(1).state_dict().items()}
    model = network(2)
    before = values(model)
    lines = lines_of(lambda: model.set_state_dict(state))
    after = values(model)
    told = set()
    for number in some(lines, 120):
        model = network(2)
        if not interrupted_at(number, lambda m=model: m.set_state_dict(state)):
            break
        found = values(model)
        assert same(found, before) or same(found, after), f"torn at line {number} of {lines}"
        told.add(same(found, after))
    assert told == {True, False}


def averaged(kind):
    parameters = [ol.Parameter(random(*s, seed=1, dtype="float32")) for s in [(3, 2), (4,), (5,)]]
    if kind == "EMA":
        average = optim.ExponentialMovingAverage(0.5, parameters=parameters)
        update = average.update
    else:
        average = optim.ModelAverage(0.5, parameters=parameters, min_average_window=2)
        update = average.step
    for t in range(3):
        for p in parameters:
            p.set_value(p.numpy() * (t + 2))
        update()
    return parameters, average


def block(average):
    with average.apply():
        pass


@pytest.mark.parametrize("use", ["block", "apply", "restore"])
@pytest.mark.parametrize("kind", ["EMA", "ModelAverage"])
def test_averages_are_swapped_in_and_out_whole(kind, use):
    parameters, average = averaged(kind)
    own = values_of(parameters)
    average.apply()
    lent = values_of(parameters)
    average.restore()
    assert not same(own, lent)

    def run(average):
        if use == "block":
            block(average)
        elif use == "apply":
            average.apply()
        else:
            average.restore()

    lines = lines_of(lambda: run(average))
    average.restore()
    if use == "restore":
        parameters, average = averaged(kind)
        average.apply()
        lines = lines_of(lambda: run(average))
    for number in range(lines):
        parameters, average = averaged(kind)
        if use == "restore":
            average.apply()
        if not interrupted_at(number, lambda a=average: run(a)):
            assert number > 20
            break
        found = values_of(parameters)
        assert same(found, own) or same(found, lent), f"torn at line {number} of {lines}"
        if use == "apply":
            assert same(found, own), f"applied at line {number} of {lines}, with no block around"
        average.restore()
        assert same(values_of(parameters), own)
        with average.apply():  # and the next block works as any
            assert same(values_of(parameters), lent)
        assert same(values_of(parameters), own)
