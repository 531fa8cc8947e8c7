"""Runs in JavaScript: optimizers, wrappers and schedules on surfaces have the engine's bits."""

from __future__ import annotations

import itertools
import json
import math
from contextlib import ExitStack
from typing import Any, ClassVar

import numpy as np
import pytest

import optlab as ol
from optlab.lab.problems.surface import Noise
from optlab.lab.sweep import LADDER
from optlab.nn import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from optlab.optimizer import capture_rule, lr
from optlab.plan import CaptureError, capture_value_and_grad, javascript_module
from optlab.plan.javascript import module
from tests.plan.javascript import as_javascript, evaluated, needs_node, same_bits

OPT = ol.optimizer
EMA, Average = OPT.ExponentialMovingAverage, OPT.ModelAverage
RATES = (0.001, 0.02, 0.5)
STEPS = 300

#: Optimizers by what they show; a rate is filled in.
OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda r: OPT.SGD(r),
    "SGD with L2": lambda r: OPT.SGD(r, weight_decay=0.01),
    "SGD with L1": lambda r: OPT.SGD(r, weight_decay=ol.regularizer.L1Decay(0.05)),
    "SGD, clipped by value": lambda r: OPT.SGD(r, grad_clip=ClipGradByValue(1.5, -0.5)),
    "SGD, clipped by norm": lambda r: OPT.SGD(r, grad_clip=ClipGradByNorm(2.0)),
    "Momentum, clipped by global norm": lambda r: OPT.Momentum(
        r, grad_clip=ClipGradByGlobalNorm(2.0), weight_decay=0.1
    ),
    "Momentum": lambda r: OPT.Momentum(r),
    "Nesterov": lambda r: OPT.Momentum(r, use_nesterov=True, rescale_grad=0.7),
    "Adam": lambda r: OPT.Adam(r),
    "AMSGrad": lambda r: OPT.Adam(r, amsgrad=True, beta2=0.9),
    "AdamW": lambda r: OPT.AdamW(r, weight_decay=0.1),
    "AdamW, ratio": lambda r: OPT.AdamW(r, lr_ratio=lambda p: 0.3),
    "AdamW, no decay": lambda r: OPT.AdamW(r, apply_decay_param_fun=lambda name: False),
    "Adamax": lambda r: OPT.Adamax(r),
    "NAdam": lambda r: OPT.NAdam(r),
    "RAdam": lambda r: OPT.RAdam(r),
    "Adagrad": lambda r: OPT.Adagrad(r, initial_accumulator_value=0.1),
    "DecayedAdagrad": lambda r: OPT.DecayedAdagrad(r),
    "Adadelta": lambda r: OPT.Adadelta(r),
    "RMSProp": lambda r: OPT.RMSProp(r, momentum=0.5),
    "RMSProp, centered": lambda r: OPT.RMSProp(r, centered=True),
    "Rprop": lambda r: OPT.Rprop(r),
    "Lion": lambda r: OPT.Lion(r, weight_decay=0.02),
    "Ftrl": lambda r: OPT.Ftrl(r, l1=0.01, l2=0.02),
    "ASGD": lambda r: OPT.ASGD(r, batch_num=3, weight_decay=0.01),
    "Lamb": lambda r: OPT.Lamb(r),
    "LarsMomentum": lambda r: OPT.LarsMomentum(r, momentum=0.9),
    "Muon": lambda r: OPT.Muon(r),
    "LookAhead": lambda r: OPT.LookAhead(OPT.Adam(r), alpha=0.3, k=4),
    "LookAhead of alpha 1": lambda r: OPT.LookAhead(OPT.SGD(r), alpha=1.0, k=3),
    "LookAhead of LookAhead": lambda r: OPT.LookAhead(OPT.LookAhead(OPT.Momentum(r)), k=7),
    "EMA": lambda r: EMA.around(OPT.RMSProp(r), decay=0.9),
    "EMA, early": lambda r: EMA.around(OPT.SGD(r), decay=0.99, thres_steps=3),
    "ModelAverage": lambda r: Average.around(
        OPT.Adam(r), 0.15, min_average_window=5, max_average_window=20
    ),
    "EMA of LookAhead": lambda r: EMA.around(OPT.LookAhead(OPT.Adam(r)), decay=0.8),
}

#: The library's problems of sums, products, quotients and whole powers.
EXACT = ("rosenbrock", "beale", "himmelblau", "quadratic", "booth", "matyas", "styblinski_tang",
         "six_hump_camel", "monkey_saddle", "parabola", "double_well")  # fmt: skip


def engine_run(
    problem: Any, template: Any, steps: int, recorded: bool = False, seed: int = 0
) -> dict[str, Any]:
    """Return the engine's own run, as a page has it."""
    run = problem.run(None, seed)
    optimizer = template.bind(run.parameters)
    path, losses, gradients = [run.point.numpy()], [], []
    with np.errstate(all="ignore"), ExitStack() as stack:
        trace = stack.enter_context(ol.record(optimizer)) if recorded else None
        for step in range(steps + 1):
            losses.append(float(run.backward(step)))
            if not np.isfinite(losses[-1]) or step == steps:
                break
            gradients.append(np.array(run.point.grad))
            optimizer.step()
            if optimizer.schedule is not None:
                optimizer.schedule.step()
            path.append(run.point.numpy())
        final = losses[-1]
        if hasattr(optimizer, "apply") and len(losses) > steps and np.isfinite(final):
            with optimizer.apply():
                final = run.loss()
    slots = {name: np.asarray(trace[name]) for name in trace.slots} if recorded and trace else {}
    return {
        "path": np.array(path), "loss": losses, "gradient": np.array(gradients),
        "slots": slots, "finalLoss": final,
        "stopped": -1 if np.isfinite(losses[-1]) else len(losses) - 1,
    }  # fmt: skip


def assert_equal_runs(found: Any, wanted: dict[str, Any], what: str) -> None:
    """Raise if a page has not the bits of the engine, up to where a run diverges."""
    n, taken = wanted["path"].shape[1], len(wanted["loss"])
    assert found["stopped"] == wanted["stopped"], what
    assert same_bits(found["loss"][:taken], wanted["loss"]), what
    assert same_bits(found["path"].reshape(-1, n)[:taken], wanted["path"][:taken]), what
    slopes = wanted["gradient"]
    if len(slopes):
        assert same_bits(found["gradient"].reshape(-1, n)[: len(slopes)], slopes), what
    for rest in (found["loss"][taken:], found["path"][taken * n :]):
        assert np.isnan(rest).all(), what
    if found["stopped"] < 0:
        assert same_bits(found["finalLoss"], wanted["finalLoss"]), what
    for name, rows in wanted["slots"].items():
        same = same_bits(found["slots"][name].reshape(-1, n)[: len(rows)], rows.reshape(-1, n))
        assert same, (what, name)


def runs_of(source: str, calls: list[dict[str, Any]], folder: Any) -> list[Any]:
    """Return what the runs of a module give: each a name, and options."""
    listed = json.dumps(calls)
    return list(evaluated(source, f"{listed}.map((one) => run(one.name, one))", folder))


@pytest.fixture(scope="module")
def rules() -> dict[int, dict[str, Any]]:
    """All optimizers as data, by the number of coordinates."""
    return {
        n: {
            name: capture_rule(make(RATES[0]), STEPS, {"learning_rate": RATES}, n)
            for name, make in OPTIMIZERS.items()
        }
        for n in (1, 2)
    }


@needs_node
@pytest.mark.filterwarnings("ignore:apply_decay_param_fun of this AdamW")
@pytest.mark.parametrize(
    "name",
    [
        name
        if name in EXACT[:2]
        else pytest.param(name, marks=[pytest.mark.nightly, pytest.mark.slow])
        for name in EXACT
    ],
)
def test_every_optimizer_has_the_bits_of_the_engine(name: str, rules: Any, tmp_path: Any) -> None:
    problem = ol.problems.find(name)
    source = javascript_module(problem.plan, rules[problem.dimension])
    pairs = list(itertools.product(OPTIMIZERS, RATES))
    calls = [
        {"name": label, "start": problem.start, "steps": STEPS, "settings": {"learning_rate": rate}}
        for label, rate in pairs
    ]
    for (label, rate), found in zip(pairs, runs_of(source, calls, tmp_path), strict=True):
        recorded = name == "parabola" and rate == RATES[1]  # slots, too
        wanted = engine_run(problem, OPTIMIZERS[label](rate), STEPS, recorded)
        assert_equal_runs(found, wanted, f"{label} at {rate} on {name}")


@needs_node
def test_optimizers_are_all_there() -> None:
    names = {name for name in OPT.__all__ if isinstance(getattr(OPT, name), type)}
    optimizers = {name for name in names if issubclass(getattr(OPT, name), OPT.Optimizer)}
    made = {type(layer).__name__ for make in OPTIMIZERS.values() for layer in [make(0.1)]}
    inside = {type(m.inner_optimizer).__name__ for m in (f(0.1) for f in OPTIMIZERS.values())
              if m.layers()}  # fmt: skip
    # These draw random numbers, have a step of their own, or need other ranks or workers.
    assert optimizers - made - inside == {
        "Optimizer", "Dpsgd", "LBFGS", "RecomputeOptimizer", "SAM", "DGCMomentum",
        "PipelineOptimizer",
    }  # fmt: skip


# Settings, schedules, noise, other surfaces.


NOTCHES: dict[str, Any] = {
    "Adam": (lambda **h: OPT.Adam(**{"learning_rate": 0.1, **h}),
             {"beta1": [0.0, 0.5], "beta2": [0.9, 0.99], "epsilon": [1e-3], "amsgrad": [True]}),
    "RAdam": (lambda **h: OPT.RAdam(**{"learning_rate": 0.1, **h}),
              {"beta1": [0.5], "beta2": [0.9, 0.5]}),
    "NAdam": (lambda **h: OPT.NAdam(**{"learning_rate": 0.1, **h}),
              {"beta1": [0.5], "momentum_decay": [0.1]}),
    "RMSProp": (lambda **h: OPT.RMSProp(**{"learning_rate": 0.1, **h}),
                {"centered": [True], "momentum": [0.9], "rho": [0.5]}),
    "Momentum": (lambda **h: OPT.Momentum(**{"learning_rate": 0.001, **h}),
                 {"use_nesterov": [True], "momentum": [0.5, 1.0]}),
    "Ftrl": (lambda **h: OPT.Ftrl(**{"learning_rate": 0.1, **h}), {"l1": [0.1], "l2": [0.1]}),
    "Lion": (lambda **h: OPT.Lion(**{"learning_rate": 0.01, **h}), {"weight_decay": [0.1]}),
    "Adagrad": (lambda **h: OPT.Adagrad(**{"learning_rate": 0.5, **h}),
                {"initial_accumulator_value": [0.5]}),
    "Rprop": (lambda **h: OPT.Rprop(**{"learning_rate": 0.1, **h}), {"etas": [(0.25, 2.0)]}),
    "ASGD": (lambda **h: OPT.ASGD(**{"learning_rate": 0.001, **h}), {"batch_num": [2, 5]}),
    "SGD": (lambda **h: OPT.SGD(0.001, **{"weight_decay": 0.5, **h}), {"weight_decay": [0.1]}),
    "LookAhead": (lambda **h: OPT.LookAhead(OPT.SGD(0.001), **h),
                  {"alpha": [1.0, 0.8], "k": [2, 3]}),
    "EMA": (lambda **h: EMA.around(OPT.SGD(0.001), **h), {"decay": [0.5, 0.9]}),
}  # fmt: skip


@needs_node
def test_every_notch_of_a_setting_has_the_bits_of_the_engine(tmp_path: Any) -> None:
    problem = ol.problems.rosenbrock
    rules = {name: capture_rule(make(), 60, notches) for name, (make, notches) in NOTCHES.items()}
    calls, wanted = [], []
    for name, (make, notches) in NOTCHES.items():
        for h in [*({k: x} for k, values in notches.items() for x in values), {}]:
            calls.append({"name": name, "start": problem.start, "steps": 60, "settings": h})
            wanted.append((f"{name} {h}", engine_run(problem, make(**h), 60)))
    source = javascript_module(problem.plan, rules)
    for (what, other), found in zip(wanted, runs_of(source, calls, tmp_path), strict=True):
        assert_equal_runs(found, other, what)


@needs_node
def test_a_setting_without_a_table_takes_any_value(tmp_path: Any) -> None:
    problem = ol.problems.himmelblau
    source = javascript_module(problem.plan, {"Adam": capture_rule(OPT.Adam(0.1), 50)})
    h = {"learning_rate": 0.03, "epsilon": 0.01}
    calls = [{"name": "Adam", "start": problem.start, "steps": 50, "settings": h}]
    (found,) = runs_of(source, calls, tmp_path)
    assert_equal_runs(found, engine_run(problem, OPT.Adam(**h), 50), "Adam")


@needs_node
def test_tables_are_short_and_keep_their_bits(tmp_path: Any) -> None:
    t = np.arange(1.0, 301)
    rows = {
        "powers": 0.9**t, "to zero": 0.01**t, "wavy": np.sin(t), "signs": (-0.5) ** t,
        "some": 0.3 + 1e-4 * np.cos(t), "zeros": 0 * t, "not finite": [1.0, math.nan, -math.inf],
        "one": [0.1], "two": [0.1, -0.0], "none": [],
    }  # fmt: skip
    texts = {name: module._packed(row) for name, row in rows.items()}
    assert len(texts["powers"]) < 450 < 3000 < len(texts["wavy"])
    source = javascript_module(ol.problems.parabola.plan, {"SGD": capture_rule(OPT.SGD(0.1), 5)})
    every = f"Object.entries({json.dumps(texts)}).map(([name, text]) => [name, numbersOf(text)])"
    found = evaluated(source, f"Object.fromEntries({every})", tmp_path)
    for name, row in rows.items():
        assert same_bits(np.array(found[name], float), np.array(row, float)), name


SCHEDULES: dict[str, Any] = {
    "cosine": lambda: lr.CosineAnnealingDecay(0.01, T_max=40),
    "steps": lambda: lr.StepDecay(0.01, step_size=7),
    "warm-up": lambda: lr.LinearWarmup(0.01, warmup_steps=20, start_lr=0.0, end_lr=0.01),
}


@needs_node
def test_schedules_are_tables(tmp_path: Any) -> None:
    problem = ol.problems.rosenbrock
    makers = {"Adam": OPT.Adam, "AdamW": OPT.AdamW, "SGD": OPT.SGD, "NAdam": OPT.NAdam}
    rules, calls, wanted = {}, [], []
    for name, make in makers.items():
        notches = [schedule() for schedule in SCHEDULES.values()]
        rules[name] = capture_rule(make(0.02), 80, {"learning_rate": notches})
        for schedule in notches:
            settings = {"learning_rate": repr(schedule)}
            calls.append({"name": name, "start": problem.start, "steps": 80, "settings": settings})
            wanted.append(engine_run(problem, make(schedule), 80))
    rules["its own"] = capture_rule(OPT.Adam(SCHEDULES["cosine"]()), 80)
    calls.append({"name": "its own", "start": problem.start, "steps": 80})
    wanted.append(engine_run(problem, OPT.Adam(SCHEDULES["cosine"]()), 80))
    source = javascript_module(problem.plan, rules)
    for call, other, found in zip(calls, wanted, runs_of(source, calls, tmp_path), strict=True):
        assert_equal_runs(found, other, str(call))


@needs_node
def test_noise_is_rows_of_unit_normals(tmp_path: Any) -> None:
    problem = ol.problems.noisy("rosenbrock", 0.3)
    unit = Noise(1.0, 2, 5)
    rows = np.concatenate([unit.at(step) for step in range(40)])
    source = javascript_module(problem.plan, {"Adam": capture_rule(OPT.Adam(0.05), 40)})
    start = list(problem.start)
    found = evaluated(
        source,
        f"run('Adam', {{ start: {start}, steps: 40, noise: {as_javascript(rows)}, sigma: 0.3 }})",
        tmp_path,
    )
    assert_equal_runs(found, engine_run(problem, OPT.Adam(0.05), 40, seed=5), "noise")


@needs_node
def test_a_surface_of_a_vector_and_several_surfaces(tmp_path: Any) -> None:
    f = lambda p: np.sum((p - 1) ** 2) + 3 * p[0] * p[2] ** 2  # noqa: E731
    plans = {
        "of three": capture_value_and_grad(f, np.ones(3)),
        "of two": ol.problems.beale.plan,
    }
    source = javascript_module(plans, {"Momentum": capture_rule(OPT.Momentum(0.01), 30)})
    start = [0.5, -1.0, 0.3]
    calls = [
        {"name": "Momentum", "start": start, "steps": 30},
        {"name": "Momentum", "start": [1.0, 1.5], "steps": 30, "surface": "of two"},
    ]
    first, second = runs_of(source, calls, tmp_path)
    p = ol.Parameter(np.array(start))
    optimizer = OPT.Momentum(0.01, parameters=[p])
    path = [p.numpy()]
    for _ in range(30):
        f(p).backward()
        optimizer.step()
        optimizer.clear_grad()
        path.append(p.numpy())
    assert same_bits(first["path"].reshape(-1, 3), path)
    assert_equal_runs(second, engine_run(ol.problems.beale, OPT.Momentum(0.01), 30), "beale")


@needs_node
@pytest.mark.parametrize("name", ["ripples", "cliff", "rastrigin", "ackley"])
def test_runs_on_other_surfaces_are_close(name: str, tmp_path: Any) -> None:
    problem = ol.problems.find(name)
    template = OPT.Adam(0.01)
    rules = {"Adam": capture_rule(template, 100, dimension=problem.dimension)}
    calls = [{"name": "Adam", "start": problem.start, "steps": 100}]
    (found,) = runs_of(javascript_module(problem.plan, rules), calls, tmp_path)
    wanted = engine_run(problem, template, 100)
    np.testing.assert_allclose(found["path"], wanted["path"].ravel(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["loss"], wanted["loss"], rtol=0, atol=1e-9)


class Own(OPT.Optimizer):
    """A rule of a user's own, whose scalars call functions of Python."""

    hyperparameters: ClassVar[dict[str, Any]] = {"learning_rate": 0.1, "power": 0.5, "warm": 3}
    slots: ClassVar[dict[str, float]] = {"mean": 1.0}

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        return {
            "rate": h.learning_rate / (t + 1) ** h.power, "warm": t <= h.warm,
            "wave": math.sin(t), "both": (h.learning_rate * h.power) ** t,
        }  # fmt: skip

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        mean = 0.9 * s.mean + h.power * np.abs(g) * c.wave
        step = 0.1 * c.rate * g if c.warm else c.rate * g / np.maximum(np.sqrt(mean * mean), 1.0)
        return p - step - c.both, {"mean": mean}, {"update": -step}


@needs_node
def test_a_rule_of_ones_own(tmp_path: Any) -> None:
    problem = ol.problems.rosenbrock
    notches = {"learning_rate": [0.05], "power": [0.25], "warm": [1, 10]}
    source = javascript_module(problem.plan, {"Own": capture_rule(Own(0.01), 40, notches)})
    calls = [
        {"name": "Own", "start": problem.start, "steps": 40,
         "settings": {"learning_rate": rate, "power": power, "warm": warm}}
        for rate in (0.01, 0.05) for power in (0.5, 0.25) for warm in (1, 3, 10)
    ]  # fmt: skip
    for call, found in zip(calls, runs_of(source, calls, tmp_path), strict=True):
        wanted = engine_run(problem, Own(**call["settings"]), 40, recorded=True)
        assert_equal_runs(found, wanted, str(call))


# What is refused, and how much there is of it.


class Counting(Own):
    """A rule with a state of its own."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.seen: list[int] = []


class Branching(OPT.Optimizer):
    """A rule that branches on values."""

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        return (p - g if (g > 0).all() else p), {}, {}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (OPT.Dpsgd(0.1), "draws random numbers"),
        (OPT.LBFGS(), "a step.. of its own"),
        (OPT.SGD(0.1, not_finite="skip"), "not_finite"),
        (Counting(), "may change its 'seen'"),
        (Branching(), "Branching cannot be captured: .*all"),
        (OPT.SGD(lr.ReduceOnPlateau(0.1)), "ReduceOnPlateau"),
        (EMA.around(OPT.SGD(0.1), thres_steps=lambda: 3), "thres_steps of this average is a func"),
    ],
)
def test_what_cannot_be_captured_is_refused_by_name(template: Any, why: str) -> None:
    with pytest.raises(CaptureError, match=why):
        capture_rule(template, 10)


def test_notches_are_checked() -> None:
    with pytest.raises(ValueError, match=r"no setting 'beta3'"):
        capture_rule(OPT.Adam(0.1), 10, {"beta3": [0.5]})
    with pytest.raises(ValueError, match=r"beta1 must be in \[0, 1\)"):
        capture_rule(OPT.Adam(0.1), 10, {"beta1": [1.5]})
    with pytest.raises(ValueError, match="steps and dimension are at least 1"):
        capture_rule(OPT.Adam(0.1), 0)


def test_a_rule_of_norms_is_for_one_number_of_elements() -> None:
    rule = capture_rule(OPT.Lamb(0.1), 10, dimension=1)
    with pytest.raises(ValueError, match="dimension=2"):
        javascript_module(ol.problems.rosenbrock.plan, {"Lamb": rule})


@needs_node
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("'Eve', { start: [0, 0], steps: 3 }", "there is no optimizer Eve"),
        ("'Adam', { start: [0, 0, 0], steps: 3 }", "has 2 numbers, not 3"),
        ("'Adam', { start: [0, 0], steps: 11 }", "at most 10 steps"),
        ("'Adam', { start: [0, 0], steps: 3, surface: 'moon' }", "there is no surface moon"),
        ("'Adam', { start: [0, 0], steps: 3, settings: { beta1: 0.7 } }", "beta1 = [0.9], not 0.7"),
        ("'Adam', { start: [0, 0], steps: 3, settings: { amsgrad: true } }", "not true"),
        ("'Adam', { start: [0, 0], steps: 3, settings: { beta: 0.7 } }", "no setting beta"),
        ("'Adam', { start: [0, 0], steps: 3, settings: { learning_rate: 'slow' } }", "schedules"),
    ],
)
def test_a_page_refuses_what_it_was_not_written_for(options: str, said: str, tmp_path: Any) -> None:
    source = javascript_module(ol.problems.booth.plan, {"Adam": capture_rule(OPT.Adam(0.1), 10)})
    call = f"(() => {{ try {{ run({options}) }} catch (error) {{ return error.message; }} }})()"
    assert said in evaluated(source, call, tmp_path)


def test_a_page_of_one_optimizer_is_small(rules: Any) -> None:
    betas = {"beta1": [0.0, 0.5, 0.8, 0.95, 0.99], "beta2": [0.9, 0.99, 0.9999]}
    notches = {"learning_rate": LADDER, **betas}
    source = javascript_module(
        ol.problems.rosenbrock.plan, {"Adam": capture_rule(OPT.Adam(0.1), 500, notches)}
    )
    assert len(source) < 64_000
    assert len(javascript_module(ol.problems.rosenbrock.plan, rules[2])) < 400_000


@needs_node
def test_many_starts_end_where_single_runs_do_and_rates_may_change(tmp_path: Any) -> None:
    surface = ol.problems.find("x**4/8 - x*y + 2*y**2 + sign(x)").plan
    assert surface is not None
    rules = {
        "Adam": capture_rule(ol.optimizer.Adam(0.1), 40),
        "EMA": capture_rule(
            ol.optimizer.ExponentialMovingAverage.around(ol.optimizer.SGD(0.05)), 40
        ),
    }
    source = javascript_module(surface, rules)
    starts = [[-1.5, 0.75], [0.25, 2.0], [1.0, -1.0]]
    for name in rules:
        calls = f"""(() => {{
          const end = ends("{name}", {{ start: [0, 0], steps: 40 }}), last = new Float64Array(2);
          return {json.dumps(starts)}.map((start) => [end(start, last), ...last,
            run("{name}", {{ start, steps: 40 }}).finalLoss]);
        }})()"""
        for value, *_, wanted in evaluated(source, calls, tmp_path):
            assert value == wanted
    rates = np.geomspace(0.001, 0.3, 40)
    rising = f"run('Adam', {{ start: [-1.5, 0.75], steps: 40, rates: {as_javascript(rates)} }})"
    found = evaluated(source, rising, tmp_path)
    test = ol.lab.lr_range_test(
        "x**4/8 - x*y + 2*y**2 + sign(x)", ol.optimizer.Adam(0.1), 0.001, 0.3, 40, (-1.5, 0.75)
    )
    assert len(test.loss) > 20
    np.testing.assert_allclose(found["loss"][: len(test.loss)], test.loss, rtol=1e-12)


@needs_node
def test_more_starts_forget_what_those_before_have_gathered(tmp_path: Any) -> None:
    surface = ol.problems.find("x**2 + 3*y**2").plan
    assert surface is not None
    source = javascript_module(surface, {"A": capture_rule(ol.optimizer.Adagrad(0.1), 20)})
    same = "(() => { const end = ends('A', { start: [0, 0], steps: 20 }), p = new Float64Array(2);"
    same += " return [end([1, 2], p), end([-3, 1], p), end([1, 2], p), end([1e200, 0], p)]; })()"
    first, other, again, lost = evaluated(source, same, tmp_path)
    assert first == again != other
    assert np.isnan(lost)
