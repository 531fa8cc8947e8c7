"""Errors for bad arguments of averages and of wrappers around optimizers."""

from __future__ import annotations

import pytest

import optlab as ol

EMA, ModelAverage = ol.optimizer.ExponentialMovingAverage, ol.optimizer.ModelAverage

W = [ol.Parameter([1.0], name="w")]


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: EMA(1.0), ValueError, r"decay must be in \[0, 1\); got 1.0"),
        (lambda: EMA(-0.1), ValueError, "got -0.1"),
        (lambda: EMA(None), TypeError, "decay must be one number"),
        (lambda: EMA(0.9, thres_steps=-1), ValueError, "thres_steps must be finite.*got -1"),
        (lambda: EMA(0.9, thres_steps="t"), TypeError, "thres_steps must be one number"),
        (lambda: EMA(0.9, parameters=W[0]), TypeError, r"got Parameter. Write parameters=\[w\]"),
        (lambda: EMA(0.9, parameters=ol.nn.Linear(1, 1)), TypeError, r"model.parameters\(\)"),
        (lambda: EMA(0.9, parameters=set(W)), TypeError, "must be a list of Tensors; got set"),
        (lambda: EMA(0.9, parameters=[]), ValueError, "nothing to average"),
        (lambda: EMA(0.9, parameters=[1.0]), TypeError, "parameter 0 is a float"),
        (lambda: EMA(0.9, parameters=W * 2), ValueError, "twice"),
        (lambda: EMA().update(), RuntimeError, "has no parameters; give it parameters="),
        (lambda: EMA().apply(), RuntimeError, "has no parameters"),
        (lambda: EMA(parameters=W).apply(object()), TypeError, "executor belongs to static"),
        (lambda: ModelAverage(-1.0), ValueError, "average_window_rate must be finite"),
        (lambda: ModelAverage(0.1, W, 0), ValueError, "min_average_window must be a whole"),
        (lambda: ModelAverage(0.1, W, 2, 2.5), ValueError, "max_average_window.*got 2.5"),
        (
            lambda: ModelAverage(0.1, W, 5, 4),
            ValueError,
            "min_average_window=5 and max_average_window=4",
        ),
        (
            lambda: ModelAverage(0.1, max_average_window=100),
            ValueError,
            "min_average_window=10000 and max_average_window=100.*give both",
        ),
        (lambda: ModelAverage(0.1).step(), RuntimeError, "has no parameters"),
        (lambda: EMA.around(None), TypeError, "wraps an optimizer.*got NoneType"),
        (
            lambda: EMA.around(ol.optimizer.SGD(0.1), parameters=W),
            TypeError,
            "leave parameters out",
        ),
        (
            lambda: EMA.around(ol.optimizer.SGD(0.1)).step(),
            RuntimeError,
            "has no parameters",
        ),
        (lambda: ol.optimizer.LookAhead(EMA()), TypeError, "got ExponentialMovingAverage"),
        (lambda: ol.optimizer.Averaged(ol.optimizer.SGD(0.1), 0.9), TypeError, "got 0.9"),
    ],
)
def test_bad_input_is_named(make, kind, said):
    with pytest.raises(kind, match=said):
        make()


def test_steps_that_cannot_be_had_after_a_step_say_that_it_was_taken() -> None:
    w = ol.Parameter([1.0])
    count: list[float] = []
    optimizer = EMA.around(ol.optimizer.SGD(0.5, parameters=[w]), 0.5, lambda: count[-1])
    w.grad = ol.to_tensor([1.0])
    with pytest.raises(IndexError) as caught:
        optimizer.step()
    assert "The step of SGD was taken before; the average is as it was" in caught.value.__notes__[0]
    assert optimizer.state_dict()["parameter 0.ema_decays"] == 1
    count.append(90.0)
    optimizer.step()
    assert optimizer.average.averages()[0] == w.numpy() == [0.0]


@pytest.mark.parametrize("name", ["ExponentialMovingAverage", "ModelAverage"])
def test_the_functional_step_is_that_of_an_optimizer_around_which_it_is(name):
    make = getattr(ol.optimizer, name)
    with pytest.raises(AttributeError, match=rf"{name}.around\(optimizer, ...\) is an optimizer"):
        _ = make(0.15, parameters=[ol.Parameter([1.0])]).functional_step
