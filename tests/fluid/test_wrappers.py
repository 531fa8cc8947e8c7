"""LookAhead and the averages under their old names are those of optlab.optimizer."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give

F = ol.fluid.optimizer


def train(make):
    p = ol.Parameter([1.0, -2.0])
    steps, average = make(p)
    for t in range(7):
        give(p, [1.0 + t, -0.5])
        steps()
        p.grad = None
    if average is not None:
        with average.apply():
            return p.numpy()
    return p.numpy()


@pytest.mark.parametrize("name", ["LookaheadOptimizer", "LookAhead", "LookAheadOptimizer"])
def test_look_ahead(name):
    def old(p):
        return getattr(F, name)(F.SGD(0.1, parameter_list=[p]), alpha=0.25, k=3).step, None

    def new(p):
        inner = ol.optimizer.SGD(0.1, parameters=[p])
        return ol.optimizer.LookAhead(inner, alpha=0.25, k=3).step, None

    np.testing.assert_array_equal(train(old), train(new))


@pytest.mark.parametrize("argument", ["parameter_list", "parameters"])
@pytest.mark.parametrize("name", ["ModelAverage", "ExponentialMovingAverage"])
def test_averages(name, argument):
    def steps_of(optimizer, average):
        follow = getattr(average, "update", None) or average.step

        def steps():
            optimizer.step()
            follow()

        return steps

    def old(p):
        optimizer = F.SGD(0.1, parameter_list=[p])
        settings = (0.5, 2, 4) if name == "ModelAverage" else (0.9,)
        average = getattr(F, name)(*settings, **{argument: [p]})
        return steps_of(optimizer, average), average

    def new(p):
        optimizer = ol.optimizer.SGD(0.1, parameters=[p])
        if name == "ModelAverage":
            average = ol.optimizer.ModelAverage(0.5, [p], 2, 4)
        else:
            average = ol.optimizer.ExponentialMovingAverage(0.9, parameters=[p])
        return steps_of(optimizer, average), average

    np.testing.assert_array_equal(train(old), train(new))


def test_what_they_refuse():
    p = ol.Parameter([1.0])
    with pytest.raises(TypeError, match="give the decay to the optimizer"):
        F.ModelAverage(0.5, regularization=ol.regularizer.L2Decay(0.1), parameter_list=[p])
    with pytest.raises(TypeError, match="are the same; give one"):
        F.ExponentialMovingAverage(0.9, parameter_list=[p], parameters=[p])
