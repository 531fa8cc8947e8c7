"""Ctrl-C at any line leaves a step before or after, and the run goes on to the bit."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from optlab.optimizer.step import bound, fused
from optlab.plan import sizes
from tests.optimizer.helpers import random
from tests.optimizer.interrupts import interrupted_at, lines_of, same, values_of

optim = ol.optimizer
EMA = optim.ExponentialMovingAverage

RULES = {
    "SGD": lambda ps, **more: optim.SGD(0.1, parameters=ps, **more),
    "Momentum": lambda ps, **more: optim.Momentum(0.1, parameters=ps, **more),
    "Adam": lambda ps, **more: optim.Adam(0.1, parameters=ps, **more),
    "AMSGrad": lambda ps, **more: optim.Adam(0.1, amsgrad=True, parameters=ps, **more),
    "AdamW": lambda ps, **more: optim.AdamW(0.1, parameters=ps, **more),
    "Adamax": lambda ps, **more: optim.Adamax(0.1, parameters=ps, **more),
    "Adagrad": lambda ps, **more: optim.Adagrad(0.1, parameters=ps, **more),
    "DecayedAdagrad": lambda ps, **more: optim.DecayedAdagrad(0.1, parameters=ps, **more),
    "Adadelta": lambda ps, **more: optim.Adadelta(0.1, parameters=ps, **more),
    "RMSProp": lambda ps, **more: optim.RMSProp(0.1, centered=True, parameters=ps, **more),
    "NAdam": lambda ps, **more: optim.NAdam(0.1, parameters=ps, **more),
    "RAdam": lambda ps, **more: optim.RAdam(0.1, parameters=ps, **more),
    "Rprop": lambda ps, **more: optim.Rprop(0.1, parameters=ps, **more),
    "ASGD": lambda ps, **more: optim.ASGD(0.1, parameters=ps, **more),
    "Lion": lambda ps, **more: optim.Lion(0.1, parameters=ps, **more),
    "Ftrl": lambda ps, **more: optim.Ftrl(0.1, l1=0.01, parameters=ps, **more),
    "Lamb": lambda ps, **more: optim.Lamb(0.1, parameters=ps, **more),
    "LarsMomentum": lambda ps, **more: optim.LarsMomentum(0.1, 0.9, parameters=ps, **more),
    "Dpsgd": lambda ps, **more: optim.Dpsgd(0.1, parameters=ps, **more),
    "Muon": lambda ps, **more: optim.Muon(0.1, parameters=ps, **more),
    "LookAhead(Momentum)": lambda ps, **more: optim.LookAhead(
        optim.Momentum(0.1, parameters=ps, **more), k=2
    ),
    "EMA(Adam)": lambda ps, **more: EMA.around(optim.Adam(0.1, parameters=ps, **more), decay=0.5),
    "ModelAverage(SGD)": lambda ps, **more: optim.ModelAverage.around(
        optim.SGD(0.1, parameters=ps, **more), 0.5, min_average_window=2, max_average_window=3
    ),
    "EMA(LookAhead(Adam))": lambda ps, **more: EMA.around(
        optim.LookAhead(optim.Adam(0.1, parameters=ps, **more), k=2), decay=0.5
    ),
    "Recompute(EMA(SGD))": lambda ps, **more: optim.RecomputeOptimizer(
        EMA.around(optim.SGD(0.1, parameters=ps, **more), decay=0.5)
    ),
}
#: How a step runs: as it is written, in blocks of one thread, in blocks of several threads.
#: Fewest elements that are fused, fewest for threads, steps before the calls are bound.
WAYS = {
    "plain": (8192, 1 << 40, 1 << 40),
    "bound": (8192, 1 << 40, 0),
    "blocks": (0, 1 << 40, 1 << 40),
    "threads": (0, 8, 1 << 40),
}
STEPS = 7


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def choose(monkeypatch, way):
    small, large, after = WAYS[way]
    monkeypatch.setattr(fused, "SMALL", small)
    monkeypatch.setattr(bound, "AFTER", after)
    monkeypatch.setattr(sizes, "BLOCK", 8)
    monkeypatch.setattr(sizes, "LARGE", large)
    monkeypatch.setattr(sizes, "cores", lambda: 2)


class Run:
    """A run of some steps, from given gradients."""

    def __init__(self, make, listened=False, **more):
        ol.seed(0)
        self.parameters = [
            ol.Parameter(random(5, 4, seed=1), name="a"),
            ol.Parameter(random(3, 3, seed=2), name="b"),
        ]
        self.optimizer = make(self.parameters, **more)
        if isinstance(self.optimizer, optim.RecomputeOptimizer):
            self.optimizer.set_checkpoints([])
        self.listened = listened
        self.taken = 0

    def step(self):
        for number, p in enumerate(self.parameters):
            p.grad = random(*p.shape, seed=100 + 10 * self.taken + number)
        listening = contextlib.nullcontext()
        if self.listened:
            listening = events.step_taken.subscribed(lambda *told: None)
        with listening:
            yield self.optimizer.step
        self.taken += 1

    def take(self, steps):
        for _ in range(steps):
            for step in self.step():
                step()
        return self

    @property
    def state(self):
        return values_of(self.parameters, self.optimizer)


def check_interrupts(make, at, most=None, **more):
    """Interrupt the step after `at` others at each of its lines, or at about `most` of them."""
    before, after = Run(make, **more).take(at).state, Run(make, **more).take(at + 1).state
    end = Run(make, **more).take(STEPS).state
    assert not same(before, after)
    counted = Run(make, **more).take(at)
    (lines,) = [lines_of(step) for step in counted.step()]
    torn = []
    stride = 1 if most is None else max(1, lines // most)
    for number in range((7 * at + 3) % stride, lines, stride):
        run = Run(make, **more).take(at)
        for step in run.step():
            assert interrupted_at(number, step)
        weights = values_of(run.parameters)
        found = run.state
        if same(found, before) and same(weights, {k: before[k] for k in weights}):
            run.taken = at
        elif not same(found, after) or not same(weights, {k: after[k] for k in weights}):
            torn.append(number)
            continue
        if not same(run.take(STEPS - run.taken).state, end):
            torn.append(number)
    assert not torn, f"{len(torn)} of {lines} lines tear the step: {torn[:10]}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RULES)
def test_an_interrupt_leaves_the_step_before_or_after(name, way, monkeypatch):
    choose(monkeypatch, way)
    check_interrupts(RULES[name], at=0, most=10)
    check_interrupts(RULES[name], at=3, most=25)


@pytest.mark.parametrize("listened", [False, True], ids=["alone", "listened"])
@pytest.mark.parametrize("name", ["Adam", "Lamb", "LookAhead(Momentum)", "EMA(LookAhead(Adam))"])
def test_an_interrupt_of_a_step_with_a_clip(name, listened, monkeypatch):
    clip = ol.nn.ClipGradByGlobalNorm(0.5)
    check_interrupts(RULES[name], at=1, most=25, grad_clip=clip, listened=listened)
    for way in ("bound", "blocks"):
        choose(monkeypatch, way)
        check_interrupts(RULES[name], at=3, most=25, grad_clip=clip, listened=listened)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("listened", [False, True], ids=["alone", "listened"])
@pytest.mark.parametrize("name", RULES)
def test_an_interrupt_at_every_line(name, listened):
    check_interrupts(RULES[name], at=3, listened=listened)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("way", ["bound", "blocks", "threads"])
@pytest.mark.parametrize("name", ["Adam", "LookAhead(Momentum)", "EMA(Adam)"])
def test_an_interrupt_at_every_line_of_a_step_in_blocks(name, way, monkeypatch):
    choose(monkeypatch, way)
    check_interrupts(RULES[name], at=3)


SIGNALED = """
import signal, sys
import numpy as np
import optlab as ol
from optlab.optimizer.step import bound, fused
from optlab.plan import sizes

size = int(sys.argv[1])
bound.AFTER = 10
fused.SMALL, sizes.BLOCK, sizes.LARGE = 2000, 1000, 20_000
sizes.cores = lambda: 2
optim, EMA = ol.optimizer, ol.optimizer.ExponentialMovingAverage
rules = {
    "Adam": lambda ps: optim.Adam(0.1, parameters=ps),
    "Lamb": lambda ps: optim.Lamb(0.1, parameters=ps),
    "Muon": lambda ps: optim.Muon(0.1, parameters=ps),
    "LookAhead(Momentum)": lambda ps: optim.LookAhead(optim.Momentum(0.1, parameters=ps), k=2),
    "EMA(Adam)": lambda ps: EMA.around(optim.Adam(0.1, parameters=ps), decay=0.5),
}
draw = np.random.default_rng(0)
start = draw.standard_normal((4, size // 4))
gradients = draw.standard_normal((40, 4, size // 4))


def interrupted(optimizer, delay):
    def stop(*_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    came = False
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            optimizer.step()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        came = True
    return came


def run(make, delays=None):
    w = ol.Parameter(start.copy(), name="w")
    optimizer, came = make([w]), 0
    before = [w.numpy()]
    for number, g in enumerate(gradients):
        w.grad = g
        if delays is None:
            optimizer.step()
        elif interrupted(optimizer, delays[number]):
            came += 1
            if np.array_equal(w.numpy(), before[-1]):
                optimizer.step()
        before.append(w.numpy())
    return before, came


for name, make in rules.items():
    expected, _ = run(make)
    for seed in range(3):
        draw = np.random.default_rng(seed)
        found, came = run(make, draw.uniform(1e-6, 1.5e-3 if size > 4000 else 3e-4, 40))
        torn = [n for n, (a, b) in enumerate(zip(expected, found)) if not np.array_equal(a, b)]
        print(f"{name}: {came} came, torn at {torn[:1]}")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
@pytest.mark.parametrize("size", [40, 8000, 40_000])
def test_signals_at_random_moments(size):
    given = [sys.executable, "-c", SIGNALED, str(size)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == 15
    assert all(line.endswith("torn at []") for line in told), done.stdout
    assert not all(" 0 came" in line for line in told)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_is_left_between_two_of_its_steps(search):
    """One call takes several steps: an interrupt in it leaves what some of them have made."""

    def make():
        p = ol.Parameter(np.array([-1.2, 1.0]), name="p")
        return p, optim.LBFGS(
            0.5, max_iter=4, tolerance_grad=0.0, line_search_fn=search, parameters=[p]
        )

    def step(p, optimizer, watch=lambda: None):
        def closure():
            watch()
            optimizer.clear_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            loss.backward()
            return loss

        optimizer.step(closure)

    def state(p, optimizer):
        found = values_of([p], optimizer)
        found.pop("0 state func_evals")
        return {k: v for k, v in found.items() if not k.endswith("evaluations")}

    def lines(p, optimizer):
        return lines_of(lambda: step(p, optimizer))

    p, optimizer = make()
    allowed = [state(p, optimizer)]
    with events.step_finished.subscribed(lambda who: allowed.append(state(p, who))):
        for _ in range(3):
            step(p, optimizer)
    p, optimizer = make()
    step(p, optimizer)
    torn = []
    for number in range(5, lines(p, optimizer), 61):
        p, optimizer = make()
        step(p, optimizer)
        assert interrupted_at(number, lambda p=p, o=optimizer: step(p, o))
        found = state(p, optimizer)
        places = [n for n, one in enumerate(allowed) if same(one, found)]
        if not places:
            torn.append(number)
    assert not torn


SCHEDULES = {
    "StepDecay": lambda: optim.lr.StepDecay(0.5, step_size=2),
    "LinearWarmup": lambda: optim.lr.LinearWarmup(
        optim.lr.StepDecay(0.5, step_size=2), warmup_steps=2, start_lr=0.0, end_lr=0.5
    ),
    "CosineAnnealingWarmRestarts": lambda: optim.lr.CosineAnnealingWarmRestarts(0.5, T_0=2),
    "ReduceOnPlateau": lambda: optim.lr.ReduceOnPlateau(0.5, patience=0),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_interrupt_leaves_a_schedule_before_or_after(name):
    def make(steps):
        schedule = SCHEDULES[name]()
        for _ in range(steps):
            step(schedule)()
        return schedule

    def step(schedule):
        return (lambda: schedule.step(1.0)) if name == "ReduceOnPlateau" else schedule.step

    before, after = make(3).state_dict(), make(4).state_dict()
    for number in range(lines_of(step(make(3)))):
        schedule = make(3)
        assert interrupted_at(number, step(schedule))
        assert schedule.state_dict() in (before, after)


@pytest.mark.parametrize("way", ["step", "minimize"])
def test_an_interrupt_leaves_a_scaled_step_before_or_after(way):
    def make(steps):
        p = ol.Parameter(random(3, dtype="float32"), name="p")
        optimizer = optim.Adam(0.1, parameters=[p])
        scaler = ol.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2)
        for _ in range(steps):
            prepare(p, optimizer, scaler)()
            finish(scaler)
        return p, optimizer, scaler

    def prepare(p, optimizer, scaler):
        optimizer.clear_grad()
        loss = scaler.scale((p * p).sum())
        if way == "minimize":
            return lambda: scaler.minimize(optimizer, loss)
        loss.backward()
        return lambda: scaler.step(optimizer)

    def finish(scaler):
        if way == "step":
            scaler.update()

    def state(p, optimizer, scaler):
        return values_of([p], optimizer, scaler)

    before, after, end = (state(*make(n)) for n in (1, 2, 4))
    for number in range(0, lines_of(prepare(*make(1))), 3):
        run = make(1)
        take = prepare(*run)
        assert interrupted_at(number, take)
        if same(values_of([run[0]]), {"p0": before["p0"]}):
            if way == "minimize" and run[0].grad is not None:
                take = prepare(*run)  # the backward pass may have been interrupted
            take()
        finish(run[2])
        assert same(state(*run), after)
        for _ in range(2):
            prepare(*run)()
            finish(run[2])
        assert same(state(*run), end)
