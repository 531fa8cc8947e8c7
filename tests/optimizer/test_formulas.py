"""The rules against plain NumPy written from their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optlab as ol
from tests.optimizer.formulas import RULES, path
from tests.optimizer.helpers import EACH, WithNorms, give, random


def settings_of(cls, **given_ones):
    """Return all settings of a class: its defaults, and the given ones."""
    return {**cls(**given_ones).settings, **given_ones}


def follow(cls, settings, start, gradients):
    p = ol.Parameter(start)
    optimizer = cls(**settings, parameters=[p])
    found = []
    for g in gradients:
        give(p, g)
        optimizer.step()
        found.append(p.numpy())
        optimizer.clear_grad()
    return found


def close(ours, theirs, tolerance):
    for t, (one, other) in enumerate(zip(ours, theirs, strict=True), 1):
        scale = 1 + max(np.max(np.abs(p)) for p in theirs[:t])
        assert np.max(np.abs(one - other)) <= tolerance * scale, f"step {t}"


CASES = [
    pytest.param(name, formula, options, id=f"{name} {options or ''}".strip())
    for name, (formula, variants) in RULES.items()
    for options in variants
]


@pytest.mark.parametrize(("name", "formula", "options"), CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_thirty_steps(name, formula, options, dtype, tolerance):
    cls = getattr(ol.optimizer, name)
    settings = settings_of(cls, learning_rate=0.05, **options)
    start, gradients = random(3, 2, dtype=dtype), random(30, 3, 2, seed=1, dtype=dtype)
    ours = follow(cls, settings, start, gradients)
    close(ours, path(formula, start, gradients, settings), tolerance)
    assert all(p.dtype == dtype for p in ours)


#: Settings without a default besides the rate, or settings that make runs equal.
NEEDED = {"LarsMomentum": {"momentum": 0.9}, "Dpsgd": {"sigma": 0.0}}  # the noise is random

rates = st.floats(1e-4, 2.0)
betas = st.floats(0.0, 0.999)

epsilons = st.floats(0.01, 1.0)
decays = st.one_of(st.just(0.0), st.floats(0.001, 1.0))
adams = {"learning_rate": rates, "beta1": betas, "beta2": betas, "epsilon": epsilons}

SETTINGS = {
    "SGD": st.fixed_dictionaries({"learning_rate": rates}),
    "Momentum": st.fixed_dictionaries(
        {
            "learning_rate": rates,
            "momentum": betas,
            "use_nesterov": st.booleans(),
            "rescale_grad": st.floats(-2.0, 2.0),
        }
    ),
    "RMSProp": st.fixed_dictionaries(
        {
            "learning_rate": rates,
            "rho": betas,
            "epsilon": st.floats(0.01, 1.0),
            "momentum": betas,
            "centered": st.booleans(),
        }
    ),
    "Adam": st.fixed_dictionaries(
        {
            "learning_rate": rates,
            "beta1": betas,
            "beta2": betas,
            "epsilon": st.floats(1e-8, 1.0),
            "lazy_mode": st.booleans(),
            "amsgrad": st.booleans(),
        }
    ),
    "Adagrad": st.fixed_dictionaries(
        {"learning_rate": rates, "epsilon": epsilons, "initial_accumulator_value": decays}
    ),
    "DecayedAdagrad": st.fixed_dictionaries(
        {"learning_rate": rates, "decay": betas, "epsilon": epsilons}
    ),
    "Adadelta": st.fixed_dictionaries({"learning_rate": rates, "epsilon": epsilons, "rho": betas}),
    "AdamW": st.fixed_dictionaries({**adams, "weight_decay": decays, "amsgrad": st.booleans()}),
    "Adamax": st.fixed_dictionaries(adams),
    "NAdam": st.fixed_dictionaries({**adams, "momentum_decay": st.floats(0.0, 2.0)}),
    "RAdam": st.fixed_dictionaries(adams),
    "Ftrl": st.fixed_dictionaries(
        {
            "learning_rate": st.floats(0.01, 2.0),
            "l1": decays,
            "l2": decays,
            "lr_power": st.sampled_from([-0.5, -0.25, -0.75, -1.0]),
        }
    ),
    "Lamb": st.fixed_dictionaries(
        {**adams, "lamb_weight_decay": decays, "always_adapt": st.booleans()}
    ),
    "LarsMomentum": st.fixed_dictionaries(
        {
            "learning_rate": rates,
            "momentum": betas,
            "lars_coeff": st.floats(0.001, 1.0),
            "lars_weight_decay": decays,
            "epsilon": st.floats(0.0, 1.0),
        }
    ),
    "ASGD": st.fixed_dictionaries({"learning_rate": rates, "batch_num": st.integers(1, 7)}),
    "Lion": st.fixed_dictionaries(
        {"learning_rate": rates, "beta1": betas, "beta2": betas, "weight_decay": decays}
    ),
}


@pytest.mark.parametrize("name", list(SETTINGS))
@given(data=st.data(), seed=st.integers(0, 10_000), dtype=st.sampled_from(["float64", "float32"]))
def test_over_all_hyperparameters(name, data, seed, dtype):
    settings = data.draw(SETTINGS[name])
    start, gradients = random(5, dtype=dtype), random(6, 5, seed=seed, dtype=dtype)
    ours = follow(getattr(ol.optimizer, name), settings, start, gradients)
    full = settings_of(getattr(ol.optimizer, name), **settings)
    theirs = path(RULES[name][0], start, gradients, full)
    close(ours, theirs, 1e-10 if dtype == "float64" else 2e-4)


@pytest.mark.parametrize("name", list(RULES))
@pytest.mark.parametrize("number", [np.float64, np.float32, np.array, ol.to_tensor, lambda x: x])
def test_float32_stays_float32_whatever_the_type_of_the_rate(name, number):
    p = ol.Parameter(random(4, dtype="float32"))
    needed = NEEDED.get(name, {})
    optimizer = getattr(ol.optimizer, name)(number(0.5), **needed, parameters=[p])
    give(p, random(4, seed=1))
    optimizer.step()
    optimizer.set_lr(number(0.25))
    optimizer.step()
    assert p.dtype == np.float32
    assert type(optimizer.get_lr()) is float
    assert optimizer.get_lr() == 0.25


@pytest.mark.parametrize("name", list(RULES))
@given(rate=rates, seed=st.integers(0, 1000))
def test_the_type_of_the_rate_changes_no_bit(name, rate, seed):
    start, gradients = random(7, dtype="float32"), random(3, 7, seed=seed, dtype="float32")
    cls = getattr(ol.optimizer, name)
    needed = NEEDED.get(name, {})
    one = follow(cls, {"learning_rate": rate, **needed}, start, gradients)
    other = follow(cls, {"learning_rate": np.float64(rate), **needed}, start, gradients)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)


shapes = st.lists(
    st.sampled_from([(), (1,), (3,), (2, 3), (17,), (5, 7), (1, 1, 2)]), min_size=1, max_size=5
)


@pytest.mark.parametrize("make", [*EACH.values(), WithNorms], ids=[*EACH, "WithNorms"])
@given(shapes=shapes, dtype=st.sampled_from(["float32", "float64"]), seed=st.integers(0, 1000))
def test_one_pass_over_all_equals_one_parameter_at_a_time_to_the_bit(make, shapes, dtype, seed):
    starts = [random(*shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]
    together = [ol.Parameter(start) for start in starts]
    apart = [ol.Parameter(start) for start in starts]
    optimizers = [make(parameters=together), *(make(parameters=[p]) for p in apart)]
    for step in range(3):
        for i, (p, q) in enumerate(zip(together, apart, strict=True)):
            g = random(*p.shape, seed=seed + 31 * step + i, dtype=dtype)
            give(p, g)
            give(q, g)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
        for p, q in zip(together, apart, strict=True):
            assert np.array_equal(p.numpy(), q.numpy())
            assert p.dtype == dtype


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("make", EACH.values(), ids=list(EACH))
def test_every_floating_dtype_stays(make, dtype):
    p = ol.Parameter(np.ones(3, dtype))
    optimizer = make(parameters=[p])
    give(p, [1.0, -1.0, 0.5])
    optimizer.step()
    assert p.dtype == dtype
    assert np.all(np.isfinite(p.numpy()))
    assert np.all(p.numpy() != 1)


@pytest.mark.parametrize("make", EACH.values(), ids=list(EACH))
def test_goes_down_a_bowl(make):
    p = ol.Parameter([3.0, -2.0])
    optimizer = make(parameters=[p])
    for _ in range(300):
        (p * p * np.array([1.0, 0.5], "float32")).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    assert np.linalg.norm(p.numpy()) < 0.35  # RMSProp keeps stepping by about its rate


def test_mathematics_may_stand_beside_the_directive():
    class Beside(ol.optimizer.SGD):
        r"""Step.

        .. math:: p \leftarrow p - \eta g

        More words.
        """

    class Begun(ol.optimizer.SGD):
        r"""Step.

        .. math:: p &\leftarrow p \\
                    &- \eta g
        """

    assert Beside.formula == r"p \leftarrow p - \eta g"
    assert Begun.formula == "p &\\leftarrow p \\\\\n&- \\eta g"


def test_a_rule_of_one_s_own_has_no_formula_of_another():
    class Signs(ol.optimizer.Adam):
        def update(self, p, g, s, h, c):
            return p - h.learning_rate * np.sign(g), vars(s)

    class Described(Signs):
        r"""Signs.

        .. math:: p - \\eta \\operatorname{sign} g
        """

    class Renamed(ol.optimizer.Adam):
        """Adam by another name."""

    assert Signs.formula == ""
    assert "sign" in Described.formula
    assert Renamed.formula == ol.optimizer.Adam.formula != ""


def test_a_rule_that_draws_without_saying_so_is_told_what_to_write():
    class Blurred(ol.optimizer.Optimizer):
        def update(self, p, g, s, h, c):
            return p + c.key.generator().standard_normal(p.shape).astype(p.dtype), {}

    w = ol.Parameter([1.0, 2.0])
    w.grad = [1.0, 1.0]
    with pytest.raises(AttributeError, match="draws = True"):
        Blurred(0.1, parameters=[w]).step()
    drawing = type("Drawing", (Blurred,), {"draws": True, "kind": "tensor"})(0.1, parameters=[w])
    drawing.step()
    assert w.dtype == np.float32
