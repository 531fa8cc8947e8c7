"""Functional steps: to the bit those of `step`, pure, in the containers that were given."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend.ensemble import EnsembleError
from tests.optimizer.helpers import EACH, random

EMA, ModelAverage = ol.optimizer.ExponentialMovingAverage, ol.optimizer.ModelAverage
FLUID = ol.fluid.optimizer

WRAPPERS: dict[str, Any] = {
    "alone": lambda inner: inner,
    "LookAhead": lambda inner: ol.optimizer.LookAhead(inner, alpha=0.4, k=3),
    "LookAhead that follows": lambda inner: ol.optimizer.LookAhead(inner, alpha=1.0, k=2),
    "EMA": lambda inner: EMA.around(inner, 0.9),
    "an early EMA": lambda inner: EMA.around(inner, 0.9, thres_steps=3),
    "ModelAverage": lambda inner: ModelAverage.around(
        inner, 0.5, min_average_window=2, max_average_window=4
    ),
    "EMA of LookAhead": lambda inner: EMA.around(ol.optimizer.LookAhead(inner, k=2), 0.9),
    "fluid Lookahead": lambda inner: FLUID.LookaheadOptimizer(inner, 0.3, 2),
}
CLIPS: dict[str, Any] = {
    "no clip": lambda: None,
    "by value": lambda: ol.nn.ClipGradByValue(0.5),
    "by norm": lambda: ol.nn.ClipGradByNorm(0.8),
    "by global norm": lambda: ol.nn.ClipGradByGlobalNorm(1.5),
    "skipped": lambda: ol.nn.ClipGradByGlobalNorm(1.5, auto_skip_clip=True),
    "a function": lambda: lambda pairs: [(p, g * 0.5) for p, g in pairs],
}
DECAYS: dict[str, Any] = {
    "no decay": lambda: None,
    "L2": lambda: 0.01,
    "L1": lambda: ol.regularizer.L1Decay(0.02),
}
MORE = {
    **EACH,
    "noisy Dpsgd": lambda **common: ol.optimizer.Dpsgd(0.1, 2.0, 4.0, 0.3, **common),
    "fluid Momentum": lambda **common: FLUID.Momentum(0.1, 0.9, **common),
    "fluid Dpsgd": lambda **common: FLUID.Dpsgd(0.1, 2.0, 4.0, 0.3, **common),
    "fluid LarsMomentum": lambda **common: FLUID.LarsMomentum(0.1, 0.9, **common),
    "fluid Ftrl": lambda **common: FLUID.Ftrl(0.1, l1=0.1, **common),
}
SHAPES = ((3, 4), (), (5,), (2, 3, 2))
STEPS = 10


def starts(dtype: str) -> list[np.ndarray]:
    return [random(*shape, seed=i, dtype=dtype) for i, shape in enumerate(SHAPES)]


def gradients(step: int, dtype: str) -> list[np.ndarray]:
    return [random(*shape, seed=100 * step + i, dtype=dtype) for i, shape in enumerate(SHAPES)]


def give(p: Any, g: Any) -> None:
    """Set the gradient of a parameter; None takes it away."""
    p.node.grad = None if g is None else np.array(g)


def memory_of(optimizer: Any) -> dict[str, bytes]:
    """Return all that a saved optimizer consists of, as bits."""
    flat: dict[str, Any] = {}

    def walk(name: str, x: Any) -> None:
        if isinstance(x, dict):
            for key, part in x.items():
                walk(f"{name}.{key}", part)
        else:
            flat[name] = x.numpy().tobytes() if isinstance(x, ol.Tensor) else repr(x)

    walk("", optimizer.state_dict())
    return flat


def compare(make: Any, dtype: str, steps: int = STEPS, skips: bool = False) -> None:
    """Hold that `step` and `functional_step` go the same way, to the bit."""
    ol.seed(3)
    parameters = [ol.Parameter(x) for x in starts(dtype)]
    stepped = make(parameters)
    pure = copy.deepcopy(stepped)
    before = memory_of(pure)
    values: Any = starts(dtype)
    state = pure.functional_init(values)
    for t in range(steps):
        slopes: list[Any] = gradients(t, dtype)
        if skips and t % 3 == 1:
            slopes[1] = None
        for p, g in zip(parameters, slopes, strict=True):
            give(p, g)
        stepped.step()
        kept = [x.copy() for x in values]
        old, old_state = values, copy.deepcopy(state)
        values, new_state = pure.functional_step(values, slopes, state)
        assert same(old, kept)
        assert same(state, old_state)
        state = new_state
        for p, x in zip(parameters, values, strict=True):
            assert x.dtype == p.dtype
            assert np.array_equal(p.numpy(), x), (t, np.max(np.abs(p.numpy() - x)))
    assert memory_of(pure) == before


def same(a: Any, b: Any) -> bool:
    """Return whether two trees hold the same bits."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


#: Every wrapper, clip and decay, and each of two of them together at least once over the rules.
SOME = [
    (wrap, list(CLIPS)[i % len(CLIPS)], list(DECAYS)[(i + i // 3) % len(DECAYS)])
    for i, wrap in enumerate([*WRAPPERS, "alone", "LookAhead"])
]


def made(rule: str, wrap: str, clip: str, decay: str) -> Any:
    return lambda parameters: WRAPPERS[wrap](
        MORE[rule](grad_clip=CLIPS[clip](), weight_decay=DECAYS[decay](), parameters=parameters)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", MORE)
def test_every_optimizer_goes_the_way_of_step(rule: str, dtype: str) -> None:
    for wrap, clip, decay in SOME:
        compare(made(rule, wrap, clip, decay), dtype, skips=wrap != "alone")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", MORE)
def test_every_optimizer_wrapper_clip_and_decay_go_the_way_of_step(rule: str, dtype: str) -> None:
    for wrap in WRAPPERS:
        for clip in CLIPS:
            for decay in DECAYS:
                compare(made(rule, wrap, clip, decay), dtype)


@pytest.mark.parametrize("multi_precision", [True, False])
@pytest.mark.parametrize("rule", ["SGD", "Adam", "Lamb", "Muon", "ASGD"])
@pytest.mark.parametrize("wrap", ["alone", "LookAhead", "EMA", "ModelAverage"])
def test_16_bits_with_and_without_a_copy_in_32(rule: str, wrap: str, multi_precision: bool) -> None:
    compare(
        lambda ps: WRAPPERS[wrap](
            MORE[rule](
                parameters=ps, multi_precision=multi_precision,
                grad_clip=ol.nn.ClipGradByGlobalNorm(1.0),
            )
        ),
        "float16",
    )  # fmt: skip


@pytest.mark.parametrize("rule", MORE)
def test_a_template_goes_the_way_of_an_optimizer_that_is_bound(rule: str) -> None:
    template = MORE[rule](weight_decay=0.01)
    ol.seed(5)
    parameters = [ol.Parameter(x) for x in starts("float64")]
    bound = template.bind(parameters)
    ol.seed(5)
    values: Any = starts("float64")
    state = template.functional_init(values)
    for t in range(5):
        for p, g in zip(parameters, gradients(t, "float64"), strict=True):
            give(p, g)
        bound.step()
        values, state = template.functional_step(values, gradients(t, "float64"), state)
    assert all(np.array_equal(p.numpy(), x) for p, x in zip(parameters, values, strict=True))


@pytest.mark.parametrize("rule", ["Adam", "noisy Dpsgd", "Lamb", "ASGD"])
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_averages_and_slow_weights_are_those_of_step(rule: str, wrap: str) -> None:
    ol.seed(1)
    parameters = [ol.Parameter(x) for x in starts("float32")]
    stepped = WRAPPERS[wrap](MORE[rule](parameters=parameters))
    pure = copy.deepcopy(stepped)
    values: Any = starts("float32")
    state = pure.functional_init(values)
    for t in range(7):
        for p, g in zip(parameters, gradients(t, "float32"), strict=True):
            give(p, g)
        stepped.step()
        values, state = pure.functional_step(values, gradients(t, "float32"), state)
    if hasattr(stepped, "average"):
        found = pure.functional_averages(values, state)
        assert same(list(found), stepped.average.averages())
    elif wrap != "alone":
        assert same(state["slow"], [memory["slow"] for memory in stepped._memories()])


# Containers, groups, names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda a, b: [a, b],
        lambda a, b: (a, b),
        lambda a, b: {"a": a, "b": b},
        lambda a, b: {"net": [{"w": a}, (b,)]},
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, ol.to_tensor])
@pytest.mark.parametrize("wrap", ["alone", "LookAhead", "EMA"])
def test_containers_and_kinds_are_given_back(build: Any, kind: Any, wrap: str) -> None:
    optimizer = WRAPPERS[wrap](ol.optimizer.Adam(0.1))
    a, b = np.ones(2, "float32"), np.full((2, 2), 3.0, "float32")
    parameters = build(kind(a), kind(b))
    state = optimizer.functional_init(parameters)
    for _ in range(3):
        parameters, state = optimizer.functional_step(parameters, build(a, b), state)
    inner = state.get("inner_optimizer", state)
    for tree in (parameters, inner["slots"]["moment1"]):
        leaves = np_leaves(tree)
        assert type(tree) is type(build(a, b))
        assert [x.shape for x in leaves] == [(2,), (2, 2)]
        assert {type(x) for x in leaves} == {type(kind(a))}
        assert {str(x.dtype) for x in leaves} == {"float32"}
    assert inner["t"] == build(3, 3)


def np_leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [x for part in tree for x in np_leaves(part)]
    return [tree]


def test_a_single_array_needs_no_container() -> None:
    sgd = ol.optimizer.SGD(0.5)
    w, state = sgd.functional_step(np.ones(2), np.ones(2), sgd.functional_init(np.ones(2)))
    assert w.tolist() == [0.5, 0.5]
    assert state["t"] == 1


def test_groups_and_settings_of_parameters_count_by_position_and_by_name() -> None:
    def make() -> tuple[Any, list[Any]]:
        ps = [
            ol.Parameter([1.0, 2.0], name="a", learning_rate=0.5),
            ol.Parameter([3.0, 4.0], name="b", need_clip=False),
            ol.Parameter([5.0, 6.0], name="c", regularizer=ol.regularizer.L1Decay(0.3)),
        ]
        groups = [
            {"params": ps[:2], "learning_rate": 0.1, "beta1": 0.5, "weight_decay": 0.2},
            {"params": ps[2:], "grad_clip": ol.nn.ClipGradByValue(0.1)},
        ]
        clip = ol.nn.ClipGradByGlobalNorm(0.5)
        return ol.optimizer.Adam(0.3, parameters=groups, grad_clip=clip), ps

    optimizer, ps = make()
    slopes = [np.array([1.0, -2.0], "float32") * k for k in (1, 2, 3)]
    by_position: Any = [p.numpy() for p in ps]
    by_name: Any = {p.name: p.numpy() for p in reversed(ps)}
    states = [optimizer.functional_init(by_position), optimizer.functional_init(by_name)]
    pure, _ = make()
    for _ in range(3):
        for p, g in zip(ps, slopes, strict=True):
            give(p, g)
        optimizer.step()
        by_position, states[0] = pure.functional_step(by_position, slopes, states[0])
        named = dict(zip("abc", slopes, strict=True))
        by_name, states[1] = pure.functional_step(by_name, named, states[1])
    assert same([p.numpy() for p in ps], by_position)
    assert same([p.numpy() for p in ps], [by_name[name] for name in "abc"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ol.optimizer.AdamW(
            0.1, weight_decay=0.5, apply_decay_param_fun=lambda n: "b" not in n
        ),
        lambda: ol.optimizer.Lamb(
            0.1, 0.5, exclude_from_weight_decay_fn=lambda p: "b" in (p.name or "")
        ),
        lambda: ol.optimizer.LarsMomentum(
            0.1, 0.9, lars_weight_decay=0.5, exclude_from_weight_decay=["b"]
        ),
        lambda: ol.optimizer.AdamW(0.1, lr_ratio=lambda p: 0.5 if p.ndim == 2 else 1.0),
    ],
)  # fmt: skip
def test_exclusion_by_name_sees_the_keys_or_the_names_of_a_bound_optimizer(make: Any) -> None:
    w, b = random(2, 3), random(3)
    slopes = {"w": random(2, 3, seed=1), "b": random(3, seed=2)}
    ps = [ol.Parameter(w, name="w"), ol.Parameter(b, name="b")]
    bound = make().bind(ps)
    states = [make().functional_init({"w": w, "b": b}), bound.functional_init([w, b])]
    template: Any = {"w": w, "b": b}
    values: Any = [w, b]
    for _ in range(3):
        template, states[0] = make().functional_step(template, slopes, states[0])
        values, states[1] = bound.functional_step(values, list(slopes.values()), states[1])
    for _ in range(3):
        for p in ps:
            give(p, slopes[p.name])
        bound.step()
    assert same([p.numpy() for p in ps], [template["w"], template["b"]])
    assert same([p.numpy() for p in ps], values)


# Saving, hyper-parameters, errors -----------------------------------------------------------------


@pytest.mark.parametrize("wrap", ["alone", "LookAhead", "EMA", "ModelAverage"])
def test_a_saved_state_goes_on_to_the_bit(wrap: str, tmp_path: Any) -> None:
    optimizer = WRAPPERS[wrap](ol.optimizer.Dpsgd(0.1, 2.0, 4.0, 0.3))
    ol.seed(0)
    values: Any = {"a": random(3), "b": random(2, 2)}
    state = optimizer.functional_init(values)
    slopes = {"a": random(3, seed=1), "b": random(2, 2, seed=2)}
    for _ in range(3):
        values, state = optimizer.functional_step(values, slopes, state)
    ol.save({"values": values, "state": state}, tmp_path / "run.npz")
    loaded = ol.load(tmp_path / "run.npz")
    for _ in range(3):
        values, state = optimizer.functional_step(values, slopes, state)
    again, later = loaded["values"], loaded["state"]
    for _ in range(3):
        again, later = optimizer.functional_step(again, slopes, later)
    assert same({key: np.asarray(x) for key, x in again.items()}, values)


def test_hyper_parameters_given_by_name_are_used_in_place_of_the_own() -> None:
    w, g = random(3), random(3, seed=1)
    adam = ol.optimizer.Adam(0.1)
    other = ol.optimizer.Adam(0.2, beta1=0.5, weight_decay=0.3, grad_clip=ol.nn.ClipGradByNorm(0.1))
    wanted, _ = other.functional_step(w, g, other.functional_init(w))
    found, _ = adam.functional_step(
        w, g, adam.functional_init(w), learning_rate=0.2, beta1=0.5, weight_decay=0.3,
        grad_clip=ol.nn.ClipGradByNorm(0.1),
    )  # fmt: skip
    assert same(found, wanted)
    lookahead = ol.optimizer.LookAhead(ol.optimizer.SGD(0.1), alpha=0.2, k=5)
    state = lookahead.functional_init(w)
    found, _ = lookahead.functional_step(w, g, state, alpha=0.5, k=1, learning_rate=1.0)
    np.testing.assert_allclose(found, w - 0.5 * g, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", EACH)
def test_tensors_in_place_of_floats_give_the_same_bits(rule: str, dtype: str) -> None:
    """Scalars of a step are computed as Python computes them, and cast where they meet arrays."""
    optimizer = EACH[rule]()
    given = {
        name: ol.to_tensor(x, dtype="float64", requires_grad=True)
        for name, x in optimizer.settings.items()
        if type(x) is float and name not in ("initial_accumulator_value", "lr_power")
    }
    a: Any = starts(dtype)
    b: Any = starts(dtype)
    state_a, state_b = optimizer.functional_init(a), optimizer.functional_init(b)
    for t in range(6):
        a, state_a = optimizer.functional_step(a, gradients(t, dtype), state_a)
        b, state_b = optimizer.functional_step(b, gradients(t, dtype), state_b, **given)
        b = [x.detach() for x in b]
    for x, y in zip(a, b, strict=True):
        assert str(y.dtype) == dtype
        if rule == "NAdam":  # the product of all momenta is one operation
            np.testing.assert_allclose(y.numpy(), x, 1e-6 if dtype == "float32" else 1e-14)
        else:
            assert np.array_equal(x, y.numpy())


def test_a_schedule_needs_the_rate_to_be_given() -> None:
    adam = ol.optimizer.Adam(ol.optimizer.lr.StepDecay(0.1, 2))
    w = np.ones(2)
    state = adam.functional_init(w)
    with pytest.raises(ValueError, match=r"comes from StepDecay.*learning_rate=optimizer.get_lr"):
        adam.functional_step(w, w, state)
    moved, _ = adam.functional_step(w, w, state, learning_rate=adam.get_lr())
    assert moved[0] < 1


def test_lbfgs_and_other_steps_are_refused_by_name() -> None:
    w = np.ones(2)
    with pytest.raises(TypeError, match=r"LBFGS has no functional_step.*closure"):
        ol.optimizer.LBFGS().functional_init(w)
    with pytest.raises(TypeError, match="LBFGS has no functional_step"):
        ol.optimizer.LBFGS().functional_step(w, w, {})
    with pytest.raises(TypeError, match="LBFGS has no functional_step"):
        ol.optimizer.LookAhead(ol.optimizer.LBFGS()).functional_init(w)

    class Loud(ol.optimizer.SGD):
        def step(self, closure: None = None) -> None:
            super().step()

    with pytest.raises(TypeError, match=r"Loud has no functional_step: it has a step\(\) of its"):
        Loud(0.1).functional_init(w)


def faults() -> dict[str, Any]:
    adam, w = ol.optimizer.Adam(0.1), np.ones(2)
    state = adam.functional_init(w)
    ema = EMA.around(ol.optimizer.SGD(0.1))
    bound = ol.optimizer.SGD(0.1, parameters=[ol.Parameter([1.0]), ol.Parameter([1.0, 2.0])])
    own = ol.Parameter([1.0, 1.0], learning_rate=0.5)
    return {
        "no setting 'lr'.*learning_rate": lambda: adam.functional_step(w, w, state, lr=1),
        "no setting 'alpha'": lambda: adam.functional_step(w, w, state, alpha=1),
        r"beta1 must be in \[0, 1\)": lambda: adam.functional_step(w, w, state, beta1=1.5),
        r"beta2 must be in \[0, 1\)": lambda: adam.functional_step(
            w, w, state, beta2=ol.to_tensor(1.5, requires_grad=True)
        ),
        "not_finite of Adam is given when": lambda: adam.functional_step(
            w, w, state, not_finite="skip"
        ),
        "amsgrad of Adam is True or False": lambda: adam.functional_step(
            w, w, state, amsgrad=ol.to_tensor(1.0, requires_grad=True)
        ),
        r"slots \['moment1', 'moment2'\], but Adam": lambda: adam.functional_step(
            w, w, state, amsgrad=True
        ),
        r"shape \(3,\), the parameter \(2,\)": lambda: adam.functional_step(w, np.ones(3), state),
        r"is float32, the parameter float64": lambda: adam.functional_step(
            w, w.astype("float32"), state
        ),
        "parameters are floating numbers": lambda: adam.functional_init(np.ones(2, int)),
        "parameters is empty": lambda: adam.functional_init([]),
        "the state is what functional_init": lambda: adam.functional_step(w, w, None),
        "the state has no 't'": lambda: adam.functional_step(w, w, {}),
        "the state has no 'ema": lambda: ema.functional_step(
            w, w, {"inner_optimizer": ol.optimizer.SGD(0.1).functional_init(w)}
        ),
        "container like the parameters": lambda: adam.functional_step([w], (w,), state),
        "keys of the parameters": lambda: adam.functional_step({"a": w}, {"b": w}, state),
        "made for 2 parameters": lambda: bound.functional_init([w]),
        "in its place": lambda: bound.functional_init([w, w]),
        "of its own, which the arrays": lambda: adam.functional_init([own]),
        "initial_accumulator_value|begins at a hyper-parameter": lambda: (
            lambda a: a.functional_step(
                w, w, a.functional_init(w),
                initial_accumulator_value=ol.to_tensor(0.1, requires_grad=True),
            )
        )(ol.optimizer.Adagrad(0.1)),
        "thres_steps.*is a function": lambda: (
            lambda e: e.functional_step(w, w, e.functional_init(w))
        )(EMA.around(ol.optimizer.SGD(0.1), thres_steps=lambda: 3)),
        "decay is a setting of ExponentialMovingAverage and of DecayedAdagrad": lambda: (
            EMA.around(ol.optimizer.DecayedAdagrad(0.1)).functional_init(w, decay=0.5)
        ),
    }  # fmt: skip


@pytest.mark.parametrize("message", list(faults()))
def test_what_does_not_fit_is_refused(message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        faults()[message]()


def test_gradients_that_are_not_finite() -> None:
    w, bad = np.ones(2), np.array([1.0, np.nan])
    for policy in ("skip", "raise"):
        sgd = ol.optimizer.SGD(0.1, not_finite=policy)
        state = sgd.functional_init(w)
        if policy == "raise":
            with pytest.raises(FloatingPointError, match="not finite"):
                sgd.functional_step(w, bad, state)
            continue
        found, after = sgd.functional_step(w, bad, state)
        assert same([found, after], [w, state])
        assert sgd.skipped == 0


def test_results_share_no_memory_with_what_was_given() -> None:
    for rule, make in EACH.items():
        optimizer = ol.optimizer.LookAhead(EMA.around(make()), k=1)
        w, g = np.ones((2, 2)), np.ones((2, 2))
        state = optimizer.functional_init(w)
        new, after = optimizer.functional_step(w, g, state)
        before = copy.deepcopy(after)
        new[...], w[...], g[...] = 7.0, 8.0, 9.0
        assert same(after, before), rule


def test_a_rule_of_a_user_is_applied_and_an_elementwise_one_is_verified() -> None:
    class Mine(ol.optimizer.Optimizer):
        hyperparameters = {"learning_rate": 0.1, "power": 2.0}
        slots = {"m": 0.0}

        def scalars(self, t: int, h: Any) -> dict[str, Any]:
            return {"root": np.sqrt(1 - h.power ** (-t))}

        def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
            m = 0.5 * s.m + g
            return p - h.learning_rate * c.root * m, {"m": m}

    class Norms(Mine):
        def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
            return p - h.learning_rate * g / np.linalg.norm(g), {"m": s.m}

    compare(lambda ps: Mine(parameters=ps), "float32")

    def final(power: Any) -> Any:
        w: Any = np.ones(3)
        state = Mine().functional_init(w)
        for _ in range(3):
            w, state = Mine().functional_step(w, w, state, power=power)
        return np.sum(w)

    slope = (final(2.0 + 1e-6) - final(2.0 - 1e-6)) / 2e-6
    assert ol.grad(final)(2.0) == pytest.approx(slope, rel=1e-7)
    with pytest.raises(ValueError, match="Norms is of kind 'elementwise'"):
        Norms().functional_step(np.ones(2), np.ones(2), Norms().functional_init(np.ones(2)))


def test_a_setting_that_only_begins_a_slot_is_not_ignored():
    optimizer = ol.optimizer.Adagrad(0.1)
    w, g = np.ones(2), np.full(2, 0.5)
    state = optimizer.functional_init(w, initial_accumulator_value=0.25)
    with pytest.raises(ValueError, match="give it to functional_init"):
        optimizer.functional_step(w, g, state, initial_accumulator_value=0.25)
    bound = ol.optimizer.Adagrad(0.1, initial_accumulator_value=0.25, parameters=[ol.Parameter(w)])
    bound.functional_step([w], [g], bound.functional_init([w]))


def test_a_rule_by_name_that_fits_no_key_warns_once():
    w = {"0.weight": np.ones((2, 2)), "0.bias": np.ones(2)}
    optimizer = ol.optimizer.Lamb(
        0.1, exclude_from_weight_decay_fn=lambda p: p.name.endswith(".b_0")
    )
    with pytest.warns(
        UserWarning, match=r"excludes no parameter.*'0\.bias'.*keys of the dict"
    ) as said:
        state = optimizer.functional_init(w)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.functional_step(w, w, state)


#: An optimizer whose results overflow, with finite parameters and gradients.
OVERFLOWS: dict[str, Any] = {
    "Muon": (lambda **c: ol.optimizer.Muon(0.1, **c), "float32", 3e38),
    "Ftrl": (lambda **c: FLUID.Ftrl(0.1, l1=0.1, **c), "float32", 3e38),
    "Adam": (lambda **c: ol.optimizer.Adam(0.1, **c), "float32", 3e38),
    "SGD": (lambda **c: ol.optimizer.SGD(1e10, **c), "float32", 3e38),
    "LookAhead": (
        lambda **c: ol.optimizer.LookAhead(ol.optimizer.Muon(0.1, **c), k=1), "float32", 3e38,
    ),
    "EMA": (lambda **c: EMA.around(ol.optimizer.Adam(0.1, **c), 0.9), "float32", 3e38),
    "float16": (lambda **c: ol.optimizer.SGD(1e4, **c), "float16", 1e4),
    "a copy in 32 bits": (
        lambda **c: ol.optimizer.SGD(1e4, multi_precision=True, **c), "float16", 1e4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("policy", ["raise", "skip"])
@pytest.mark.parametrize("rule", OVERFLOWS)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_results_that_are_not_finite_are_refused_as_step_refuses_them(
    rule: str, policy: str
) -> None:
    make, dtype, huge = OVERFLOWS[rule]
    parameters = [ol.Parameter(np.ones((2, 2), dtype))]
    stepped = make(not_finite=policy, parameters=parameters)
    pure = copy.deepcopy(stepped)
    values: Any = [np.ones((2, 2), dtype)]
    state = pure.functional_init(values)
    refused = 0
    for size in (1e-3, huge, np.nan, 1e-3):
        slopes = [np.full((2, 2), size, dtype)]
        give(parameters[0], slopes[0])
        before = copy.deepcopy([values, state])
        if size < 1:
            stepped.step()
            values, state = pure.functional_step(values, slopes, state)
        elif policy == "raise":
            with pytest.raises(FloatingPointError, match="not finite"):
                stepped.step()
            with pytest.raises(FloatingPointError, match=r"not finite.*Try a smaller"):
                pure.functional_step(values, slopes, state)
            refused += 1
        else:
            skipped = stepped.skipped
            stepped.step()
            values, state = pure.functional_step(values, slopes, state)
            assert same([values, state], before)
            refused += stepped.skipped - skipped
        assert np.array_equal(values[0], parameters[0].numpy()), size
    assert refused == 2
    assert pure.skipped == 0


def test_only_what_was_finite_must_stay_so() -> None:
    w, g = np.array([1.0, np.inf]), np.ones(2)
    sgd = ol.optimizer.SGD(0.1, not_finite="raise")
    found, _ = sgd.functional_step(w, g, sgd.functional_init(w))
    assert found.tolist() == [0.9, np.inf]
    rates = np.array([1.0, 1e308])

    def taken(policy: str) -> Any:
        one = ol.optimizer.SGD(0.1, not_finite=policy)
        state = one.functional_init(w)
        return lambda r: one.functional_step(w, 10 * g, state, learning_rate=r)[0]

    assert ol.vmap(taken("skip"))(np.array([0.1, 0.2]))[:, 0].tolist() == [0.0, -1.0]
    with pytest.raises(FloatingPointError, match="in member 1 of the ensemble"):
        ol.vmap(taken("raise"))(rates)
    with pytest.raises(EnsembleError, match="would skip a step for some examples"):
        ol.vmap(taken("skip"))(rates)


def two_layers(first: str = "model") -> tuple[Any, dict[str, np.ndarray]]:
    """Return a model whose parameters were listed by itself or its last layer first, and arrays."""
    ol.seed(0)
    model = ol.nn.Sequential(ol.nn.Linear(2, 2), ol.nn.Linear(2, 2))
    (model if first == "model" else model[1]).parameters()
    return model, {name: p.numpy().copy() for name, p in model.named_parameters()}


def frozen(model: Any, place: int, **common: Any) -> Any:
    """Return SGD whose first group is a layer at the rate 0."""
    groups = [
        {"params": model[place].parameters(), "learning_rate": 0.0},
        {"params": model[1 - place].parameters()},
    ]
    return ol.optimizer.SGD(0.1, parameters=groups, **common)


@pytest.mark.parametrize("own", [False, True])
def test_a_dict_is_matched_by_the_names_in_the_model_or_the_own_ones(own: bool) -> None:
    model, w = two_layers()
    if own:
        w = {p.name: p.numpy() for p in model.parameters()}
    sgd = frozen(model, 1)
    found, _ = sgd.functional_step(w, w, sgd.functional_init(w))
    moved = [not np.array_equal(found[name], w[name]) for name in w if w[name].any()]
    assert moved == [True, False]  # the biases are zeros
    part = {name: w[name] for name in list(w)[2:]}
    found, _ = sgd.functional_step(part, part, sgd.functional_init(part))
    assert same(found, part)


def test_a_dict_whose_keys_do_not_tell_the_parameters_is_refused() -> None:
    model, w = two_layers("layer")
    sgd = frozen(model, 1)
    with pytest.raises(
        ValueError,
        match=r"'0\.weight' is none of the names that it knows, weight \(linear_\d+\.w_0\)",
    ):
        sgd.functional_init(w)
    with pytest.raises(ValueError, match="made for 4 parameters"):  # of which of the layers?
        sgd.functional_init({"weight": w["0.weight"], "bias": w["0.bias"]})
    as_list = list(w.values())
    found, _ = sgd.functional_step(as_list, as_list, sgd.functional_init(as_list))
    assert same(found[:2], as_list[:2])
    assert not same(found[2], as_list[2])


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (lambda ps: ol.optimizer.Adam(0.1, parameters=ps, weight_decay=0.1), False),
        (
            lambda ps: ol.optimizer.Adam(
                0.1, parameters=ps, grad_clip=ol.nn.ClipGradByGlobalNorm(0.1)
            ),
            False,
        ),
        (lambda ps: ol.optimizer.Adam(0.1, parameters=ps, grad_clip=lambda pairs: pairs), True),
        (lambda ps: ol.optimizer.Dpsgd(0.1, 1.0, 4.0, 0.3, parameters=ps), True),
        (
            lambda ps: ol.optimizer.AdamW(
                0.1, parameters=ps, apply_decay_param_fun=lambda name: name == "a.w_0"
            ),
            True,
        ),
        (
            lambda ps: ol.optimizer.SGD(
                0.1, parameters=[{"params": ps[:1], "weight_decay": 0.1}, {"params": ps[1:]}]
            ),
            True,
        ),
    ],
)
def test_other_keys_are_taken_in_order_if_all_are_updated_alike(make: Any, refused: bool) -> None:
    w = {"first": random(2), "second": random(2, seed=1)}
    optimizer = make(
        [ol.Parameter(x, name=f"{name}.w_0") for name, x in zip("ab", w.values(), strict=True)]
    )
    if refused:
        with pytest.raises(ValueError, match=r"not all updated alike: 'first' is none.*a\.w_0"):
            optimizer.functional_init(w)
        return
    found, _ = optimizer.functional_step(w, w, optimizer.functional_init(w))
    values = list(w.values())
    wanted, _ = optimizer.functional_step(values, values, optimizer.functional_init(values))
    assert same(list(found.values()), wanted)


def test_unknown_settings_of_wrappers_are_told_with_the_own_ones() -> None:
    w = np.ones(2)
    lookahead = ol.optimizer.LookAhead(EMA.around(ol.optimizer.SGD(0.1)))
    state = lookahead.functional_init(w)
    with pytest.raises(
        TypeError,
        match=r"^LookAhead\(ExponentialMovingAverage\(SGD\)\) has no setting 'alhpa'; "
        r"it has alpha, k, decay, thres_steps, learning_rate, and, as every optimizer, "
        r"weight_decay, grad_clip\. "
        r"Did you mean 'alpha'\?$",
    ):
        lookahead.functional_step(w, w, state, alhpa=0.3)
    with pytest.raises(TypeError, match="Did you mean 'decay'"):
        lookahead.functional_init(w, decya=0.3)
    with pytest.raises(TypeError, match="name of SGD is given when it is made"):
        lookahead.functional_step(w, w, state, name="a")


@pytest.mark.parametrize(
    "count",
    [np.inf, np.nan, 1e300, 10**400, -1, 1.5, np.array(np.inf), np.array(-1)],
    ids=["inf", "nan", "1e300", "10**400", "-1", "1.5", "array of inf", "array of -1"],
)
def test_a_step_count_that_is_none_is_refused(count: Any) -> None:
    w = np.ones(2)
    for optimizer, name in (
        (ol.optimizer.Adam(0.1), "t"),
        (ol.optimizer.LookAhead(ol.optimizer.SGD(0.1)), "slow_steps"),
    ):
        state = {**optimizer.functional_init(w), name: count}
        with pytest.raises(ValueError, match=rf"state\['{name}'\],? is a whole number from 0"):
            optimizer.functional_step(w, w, state)


def test_a_rate_by_position_is_told_by_name() -> None:
    adam, w = ol.optimizer.Adam(0.1), np.ones(2)
    state = adam.functional_init(w)
    with pytest.raises(
        TypeError, match=r"functional_step\(parameters, gradients, state, learning_rate=0\.1\)"
    ):
        adam.functional_step(w, w, state, 0.1)
    with pytest.raises(TypeError, match=r"functional_init\(parameters, learning_rate=0\.1\)"):
        adam.functional_init(w, 0.1)
