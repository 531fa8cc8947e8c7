"""Captured steps of wrappers, averages, loss scaling, accumulation and schedules."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH
from tests.plan.capture import interventions as between
from tests.plan.capture.twins import (
    NETWORKS,
    Program,
    batches,
    equal_runs,
    run,
    same,
    train_step,
)

F = ol.nn.functional
lr = ol.optimizer.lr


def adam(model: Any, rate: Any = 0.01, **common: Any) -> Any:
    return ol.optimizer.Adam(rate, parameters=model.parameters(), **common)


def wrapped(network: str, wrap: Callable[[Any, Any], Any]) -> Program:
    """Return a network trained by a wrapper around Adam."""
    model = NETWORKS[network][0]()
    optimizer = wrap(adam(model), model)
    return Program(model, optimizer, train_step(model, optimizer), batches(network))


def recompute(optimizer: Any, model: Any) -> Any:
    optimizer = ol.optimizer.RecomputeOptimizer(optimizer)
    optimizer.set_checkpoints(list(model.children())[1:3])
    return optimizer


def lookahead_of_an_averaged(optimizer: Any, _: Any) -> Any:
    return ol.optimizer.LookAhead(
        ol.optimizer.ExponentialMovingAverage.around(optimizer, 0.9), alpha=0.4, k=3
    )


WRAPPERS: dict[str, Callable[[Any, Any], Any]] = {
    "LookAhead": lambda inner, _: ol.optimizer.LookAhead(inner, alpha=0.5, k=5),
    "LookAhead at every step": lambda inner, _: ol.optimizer.LookAhead(inner, alpha=0.8, k=1),
    "LookAhead of LookAhead": lambda inner, _: ol.optimizer.LookAhead(
        ol.optimizer.LookAhead(inner, alpha=0.5, k=3), alpha=0.6, k=4
    ),
    "EMA around": lambda inner, _: ol.optimizer.ExponentialMovingAverage.around(inner, 0.95),
    "ModelAverage around": lambda inner, _: ol.optimizer.ModelAverage.around(
        inner, 0.5, min_average_window=3, max_average_window=7
    ),
    "LookAhead of an average": lookahead_of_an_averaged,
    "RecomputeOptimizer": recompute,
    "LookAhead of RecomputeOptimizer": lambda inner, model: ol.optimizer.LookAhead(
        recompute(inner, model), k=4
    ),
}


def is_planned(name: str) -> bool:
    """Return whether steps run by a plan: a `RecomputeOptimizer` decides what operations save."""
    gc.collect()  # one of an earlier test does so as long as it lives
    return "RecomputeOptimizer" not in name


@pytest.mark.parametrize("name", WRAPPERS)
def test_200_steps_of_every_wrapper(name: str) -> None:
    events = [(41, between.evaluate), (47, between.train), (62, between.set_value),
              (80, between.save), (90, between.set_rate), (123, between.load)]  # fmt: skip
    equal_runs(partial(wrapped, "mlp", WRAPPERS[name]), 200, events, planned=is_planned(name))


@pytest.mark.parametrize("network", ["cnn", "lstm", "transformer"])
@pytest.mark.parametrize("name", ["LookAhead", "EMA around", "RecomputeOptimizer"])
def test_wrappers_on_other_networks(network: str, name: str) -> None:
    equal_runs(partial(wrapped, network, WRAPPERS[name]), 14, planned=is_planned(name))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", WRAPPERS)
def test_200_steps_of_every_wrapper_on_every_network(network: str, name: str) -> None:
    equal_runs(
        partial(wrapped, network, WRAPPERS[name]),
        200,
        between.ON_THE_WAY,
        planned=is_planned(name),
    )


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_look_ahead_around_every_optimizer(name: str) -> None:
    def build() -> Program:
        model = NETWORKS["mlp"][0]()
        inner = EACH[name](parameters=model.parameters())
        inner.set_lr(0.2 * inner.get_lr())
        optimizer = ol.optimizer.LookAhead(inner, k=4)
        return Program(model, optimizer, train_step(model, optimizer), batches("mlp"))

    equal_runs(build, 200)


# Averages beside the optimizer: their updates inside and outside of what is captured.

AVERAGES: dict[str, Callable[[Any], Any]] = {
    "EMA": lambda ps: ol.optimizer.ExponentialMovingAverage(0.9, parameters=ps),
    "EMA of a count": lambda ps: ol.optimizer.ExponentialMovingAverage(
        0.99, thres_steps=20, parameters=ps
    ),
    "ModelAverage": lambda ps: ol.optimizer.ModelAverage(
        0.5, parameters=ps, min_average_window=3, max_average_window=9
    ),
}


def averaged(make: Callable[[Any], Any], inside: bool) -> Program:
    model = NETWORKS["mlp"][0]()
    optimizer, average = adam(model), make(model.parameters())
    move = getattr(average, "update", None) or average.step
    plain = train_step(model, optimizer)

    def step(x: Any, y: Any) -> Any:
        loss = plain(x, y)
        move()
        return loss

    others = {"average": average}
    if inside:
        return Program(model, optimizer, step, batches("mlp"), others)
    return Program(model, optimizer, plain, batches("mlp"), others, after=move)


def evaluate_the_average(p: Program) -> Any:
    """Swap the averaged weights in, and back."""
    with p.others["average"].apply():
        p.model.eval()
        found = p.model(p.batches[0][0])
        p.model.train()
    return found


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("name", AVERAGES)
def test_averages_beside_the_optimizer(name: str, inside: bool) -> None:
    events = [(7, evaluate_the_average), (20, between.evaluate), (24, between.train),
              (33, evaluate_the_average), (39, between.set_value)]  # fmt: skip
    equal_runs(partial(averaged, AVERAGES[name], inside), 60, events)


@pytest.mark.parametrize("name", AVERAGES)
def test_a_captured_evaluation_sees_the_averaged_weights(name: str) -> None:
    """Weights that are swapped in between two calls are side inputs as any other write."""

    def values(how: Any) -> list[bytes]:
        ol.seed(0)
        p = averaged(AVERAGES[name], inside=True)
        average = p.others["average"]
        p.model.eval()
        evaluate = how(lambda x: p.model(x))
        x, found = p.batches[0][0], []
        for i in range(4):
            p.step(*p.batches[i])
            found.append(evaluate(x))
            with average.apply():
                found.append(evaluate(x))
            found.append(evaluate(x))
        return [y.detach().numpy().tobytes() for y in found]

    captured, eager = values(ol.capture), values(lambda f: f)
    assert captured == eager
    assert len(set(eager)) > 4


# Loss scaling and 16 bits.


def scaled(
    scaler_options: dict[str, Any], cast: str | None, dtype: str = "float32", **common: Any
) -> Program:
    model = NETWORKS["mlp"][0]()
    model.to(dtype=dtype)
    optimizer = adam(model, **common)
    scaler = ol.amp.GradScaler(**scaler_options)

    def step(x: Any, y: Any) -> Any:
        if cast is None:
            loss = F.cross_entropy(model(x.astype(dtype)), y)
        else:
            with ol.amp.auto_cast(dtype=cast):
                loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        return loss

    return Program(model, optimizer, step, batches("mlp"), {"scaler": scaler})


SCALED: dict[str, Callable[[], Program]] = {
    "a constant scale": partial(scaled, {"use_dynamic_loss_scaling": False}, None),
    "off": partial(scaled, {"enable": False}, None),
    "auto_cast to float16": partial(scaled, {"init_loss_scaling": 64.0}, "float16"),
    "auto_cast to bfloat16": partial(scaled, {"enable": False}, "bfloat16"),
    "float16 with copies of 32 bits": partial(
        scaled, {"init_loss_scaling": 64.0}, None, "float16", multi_precision=True
    ),
}


@pytest.mark.parametrize("name", SCALED)
def test_steps_with_loss_scaling(name: str) -> None:
    if "bfloat16" in name:
        pytest.importorskip("ml_dtypes")
    equal_runs(SCALED[name], 40, [(11, between.set_rate), (20, between.set_value)])


def test_the_scale_grows_and_shrinks_and_steps_are_skipped_as_eagerly() -> None:
    """The scale, the counts and the skipped steps depend on values: as eagerly, or refused."""
    build = partial(
        scaled, {"init_loss_scaling": 2.0**18, "incr_every_n_steps": 4}, None, "float16"
    )
    try:
        equal_runs(build, 60)
    except ol.CaptureError as error:
        assert "test_wrappers.py" in str(error)  # noqa: PT017 (one of two right ways)
        equal_runs_not_strictly(build, 60)


def equal_runs_not_strictly(build: Callable[[], Program], steps: int) -> None:
    found, _ = run(build, steps, how=partial(ol.capture, strict=False))
    same(found, run(build, steps)[0])


# Gradient accumulation.


def accumulated(parts: int, inside: bool) -> Program:
    model = NETWORKS["mlp"][0]()
    optimizer = adam(model)

    def micro(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y) / parts
        loss.backward()
        return loss

    def several(x: Any, y: Any) -> Any:
        losses = [micro(x[i::parts], y[i::parts]) for i in range(parts)]
        optimizer.step()
        optimizer.clear_grad()
        return losses

    if inside:
        return Program(model, optimizer, several, batches("mlp"))
    calls = iter(range(10**9))

    def after() -> None:
        if next(calls) % parts == parts - 1:
            optimizer.step()
            optimizer.clear_grad()

    return Program(model, optimizer, micro, batches("mlp"), after=after)


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "across calls"])
def test_gradients_accumulated_over_micro_batches(inside: bool) -> None:
    equal_runs(partial(accumulated, 2, inside), 40, [(13, between.set_rate)])


@pytest.mark.parametrize("set_to_zero", [True, False])
def test_two_captured_functions_share_gradients(set_to_zero: bool) -> None:
    """One accumulates, one steps: `p.grad` is what they share, and what the user reads between."""

    def values(how: Any) -> list[Any]:
        ol.seed(0)
        model = NETWORKS["mlp"][0]()
        optimizer = adam(model)

        def add(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        def finish() -> None:
            optimizer.step()
            optimizer.clear_grad(set_to_zero=set_to_zero)

        add, finish = how(add), how(finish)
        found: list[Any] = []
        for i in range(12):
            found.append(add(*batches("mlp")[i % 4]).item())
            found += [p.grad.numpy().tobytes() for p in model.parameters()]
            if i % 3 == 2:
                finish()
                grads = [p.grad for p in model.parameters()]
                found += [None if g is None else g.numpy().tobytes() for g in grads]
        return found

    assert values(ol.capture) == values(lambda f: f)


# Schedules.

SCHEDULES: dict[str, Callable[[], Any]] = {
    "NoamDecay": lambda: lr.NoamDecay(16, 20),
    "PiecewiseDecay": lambda: lr.PiecewiseDecay([8, 20], [0.02, 0.01, 0.005]),
    "NaturalExpDecay": lambda: lr.NaturalExpDecay(0.02, 0.05),
    "InverseTimeDecay": lambda: lr.InverseTimeDecay(0.02, 0.1),
    "PolynomialDecay": lambda: lr.PolynomialDecay(0.02, 12, cycle=True),
    "LinearWarmup": lambda: lr.LinearWarmup(lr.CosineAnnealingDecay(0.02, 20), 10, 0.001, 0.02),
    "ExponentialDecay": lambda: lr.ExponentialDecay(0.02, 0.97),
    "MultiStepDecay": lambda: lr.MultiStepDecay(0.02, [5, 11, 30]),
    "StepDecay": lambda: lr.StepDecay(0.02, 7),
    "LambdaDecay": lambda: lr.LambdaDecay(0.02, lambda e: 1 / (1 + e)),
    "MultiplicativeDecay": lambda: lr.MultiplicativeDecay(0.02, lambda _: 0.98),
    "CosineAnnealingDecay": lambda: lr.CosineAnnealingDecay(0.02, 9),
    "CosineAnnealingWarmRestarts": lambda: lr.CosineAnnealingWarmRestarts(0.02, 6, 2),
    "OneCycleLR": lambda: lr.OneCycleLR(0.03, 60),
    "CyclicLR": lambda: lr.CyclicLR(0.005, 0.02, 6),
    "LinearLR": lambda: lr.LinearLR(0.02, 15),
}


def scheduled(make: Callable[[], Any], inside: bool) -> Program:
    model = NETWORKS["mlp"][0]()
    schedule = make()
    optimizer = adam(model, schedule)
    plain = train_step(model, optimizer)

    def step(x: Any, y: Any) -> Any:
        loss = plain(x, y)
        schedule.step()
        return loss

    others = {"schedule": schedule}
    if inside:
        return Program(model, optimizer, step, batches("mlp"), others)
    return Program(model, optimizer, plain, batches("mlp"), others, after=schedule.step)


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str, inside: bool) -> None:
    captured = equal_runs(partial(scheduled, SCHEDULES[name], inside), 40)
    assert len(captured.plans) == 2  # a rate is an input of the plan


def test_a_schedule_that_watches_the_loss_outside() -> None:
    def build() -> Program:
        model = NETWORKS["mlp"][0]()
        schedule = lr.ReduceOnPlateau(0.02, patience=2, factor=0.5)
        optimizer = adam(model, schedule)
        plain = train_step(model, optimizer)
        p = Program(model, optimizer, plain, batches("mlp"), {"schedule": schedule})
        p.after = lambda: schedule.step(F.cross_entropy(model(p.batches[0][0]), p.batches[0][1]))
        return p

    equal_runs(build, 60)


def test_a_schedule_that_is_replaced_and_loaded_on_the_way() -> None:
    def replace(p: Program) -> None:
        p.optimizer.set_lr_scheduler(lr.ExponentialDecay(0.03, 0.9))

    events = [(5, between.save), (9, between.load), (14, replace)]
    equal_runs(partial(scheduled, SCHEDULES["StepDecay"], inside=False), 24, events)


# Clips, regularizers, groups, frozen parameters.

CLIPS: dict[str, Callable[[], Any]] = {
    "global norm": lambda: ol.nn.ClipGradByGlobalNorm(0.3),
    "global norm never reached": lambda: ol.nn.ClipGradByGlobalNorm(1e6),
    "norm": lambda: ol.nn.ClipGradByNorm(0.1),
    "value": lambda: ol.nn.ClipGradByValue(0.02),
}
DECAYS: dict[str, Any] = {
    "none": None, "number": 0.02,
    "L1": ol.regularizer.L1Decay(0.01), "L2": ol.regularizer.L2Decay(0.02),
}  # fmt: skip


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("name", ["Momentum", "Adam", "Lamb"])
def test_clips_and_regularizers(clip: str, decay: str, name: str) -> None:
    def build() -> Program:
        model = NETWORKS["mlp"][0]()
        common = {"grad_clip": CLIPS[clip](), "weight_decay": DECAYS[decay]}
        optimizer = EACH[name](parameters=model.parameters(), **common)
        return Program(model, optimizer, train_step(model, optimizer), batches("mlp"))

    equal_runs(build, 12)


def grouped() -> Program:
    """Groups of other rates, decays and clips, with parameters of their own settings."""
    model = NETWORKS["mlp"][0]()
    for name, parameter in model.named_parameters():
        parameter.name = name
    first, last = model[0], model[4]
    first.bias.learning_rate = 0.5
    first.weight.regularizer = ol.regularizer.L1Decay(0.003)
    last.bias.need_clip = False
    groups = [
        {"params": list(first.parameters()), "learning_rate": 0.5, "weight_decay": 0.03},
        {"params": list(model[1].parameters()), "beta1": 0.8},
        {"params": list(last.parameters()), "grad_clip": ol.nn.ClipGradByValue(0.01)},
    ]
    optimizer = ol.optimizer.Adam(
        0.02, parameters=groups, grad_clip=ol.nn.ClipGradByGlobalNorm(0.4)
    )
    return Program(model, optimizer, train_step(model, optimizer), batches("mlp"))


def test_parameter_groups() -> None:
    events = [(7, between.set_rate), (12, between.save), (20, between.load)]
    equal_runs(grouped, 40, events)


def test_a_group_that_is_added_on_the_way() -> None:
    def build() -> Program:
        model = NETWORKS["mlp"][0]()
        optimizer = ol.optimizer.Momentum(0.05, parameters=model[4].parameters())
        return Program(model, optimizer, train_step(model, optimizer), batches("mlp"))

    def add(p: Program) -> None:
        p.optimizer.add_param_group({"params": list(p.model[0].parameters())})

    equal_runs(build, 20, [(9, add)])


def test_gradients_that_are_not_finite_are_treated_as_eagerly() -> None:
    def build() -> Program:
        model = NETWORKS["mlp"][0]()
        optimizer = adam(model, not_finite="skip")
        step = train_step(model, optimizer)
        good = batches("mlp", 3)
        bad = (ol.to_tensor(np.full((8, 6), np.inf, "float32")), good[0][1])
        model.eval()  # running statistics would stay infinite
        return Program(model, optimizer, step, [*good, bad])

    with np.errstate(all="ignore"):
        eager, _ = run(build, 12)
        try:
            found, _ = run(build, 12, how=ol.capture)
        except ol.CaptureError:
            found, _ = run(build, 12, how=partial(ol.capture, strict=False))
    same(found, eager)
