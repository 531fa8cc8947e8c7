"""Properties of single rules: bad settings, per-parameter exceptions, invariances, noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optlab as ol
from optlab.optimizer import nadam
from tests.optimizer.helpers import EACH, give, random

O = ol.optimizer  # noqa: E741

BAD = [
    ("Adagrad", {"initial_accumulator_value": -1.0}, "initial_accumulator_value"),
    ("Adagrad", {"epsilon": -1e-8}, "epsilon"),
    ("DecayedAdagrad", {"decay": 1.0}, "decay"),
    ("Adadelta", {"rho": -0.1}, "rho"),
    ("AdamW", {"weight_decay": -0.1}, "weight_decay"),
    ("AdamW", {"weight_decay": None}, "weight_decay"),
    ("AdamW", {"lr_ratio": 0.5}, "lr_ratio"),
    ("AdamW", {"apply_decay_param_fun": "bias"}, "apply_decay_param_fun"),
    ("AdamW", {"amsgrad": 1}, "amsgrad"),
    ("Adamax", {"beta2": 1.0}, "beta2"),
    ("NAdam", {"momentum_decay": -1.0}, "momentum_decay"),
    ("RAdam", {"beta1": 1.5}, "beta1"),
    ("Rprop", {"etas": (1.2, 0.5)}, "etas"),
    ("Rprop", {"etas": 0.5}, "etas"),
    ("Rprop", {"learning_rate_range": (0.5, 1.0)}, "learning_rate_range"),
    ("Rprop", {"learning_rate_range": (0.0, 1.0)}, "learning_rate_range"),
    ("Rprop", {"learning_rate_range": (1e-5, 1e-3)}, "learning_rate_range"),
    ("Ftrl", {"l1": -1.0}, "l1"),
    ("Ftrl", {"lr_power": 0.5}, "lr_power"),
    ("Lamb", {"lamb_weight_decay": -1.0}, "lamb_weight_decay"),
    ("Lamb", {"exclude_from_weight_decay_fn": ["bias"]}, "exclude_from_weight_decay_fn"),
    ("LarsMomentum", {}, "momentum"),
    ("LarsMomentum", {"momentum": 0.9, "exclude_from_weight_decay": "bias"}, "list"),
    ("LarsMomentum", {"momentum": 0.9, "exclude_from_weight_decay": [3]}, "list of text"),
    ("LarsMomentum", {"momentum": 0.9, "lars_coeff": -1}, "lars_coeff"),
    ("ASGD", {"batch_num": 0}, "batch_num"),
    ("ASGD", {"batch_num": 2.5}, "batch_num"),
    ("Dpsgd", {"clip": 0.0}, "clip"),
    ("Dpsgd", {"batch_size": 0.0}, "batch_size"),
    ("Dpsgd", {"sigma": -1.0}, "sigma"),
    ("Lion", {"weight_decay": -1.0}, "weight_decay"),
    ("Muon", {"newton_schulz_steps": 0}, "newton_schulz_steps"),
    ("LBFGS", {"max_iter": 0}, "max_iter"),
    ("LBFGS", {"max_eval": 0}, "max_eval"),
    ("LBFGS", {"history_size": 0}, "history_size"),
    ("LBFGS", {"line_search_fn": "armijo"}, "strong_wolfe"),
]


@pytest.mark.parametrize(("name", "settings", "named"), BAD)
def test_settings_out_of_range_are_named(name, settings, named):
    with pytest.raises((TypeError, ValueError), match=named):
        getattr(O, name)(0.1, **settings)


@pytest.mark.parametrize(
    ("name", "settings"), [(name, s) for name, s, _ in BAD if set(s) - {"momentum"}]
)
def test_settings_of_a_group_are_checked_too(name, settings):
    p = ol.Parameter([1.0])
    needed = {"momentum": 0.5} if name == "LarsMomentum" else {}
    with pytest.raises((TypeError, ValueError)):
        getattr(O, name)(0.1, **needed, parameters=[{"params": [p], **settings}])


def moved(optimizer, *parameters, steps=1):
    """Take steps with gradients of ones; return the displacement of each parameter."""
    before = [p.numpy() for p in parameters]
    for _ in range(steps):
        for p in parameters:
            give(p, np.ones(p.shape))
        optimizer.step()
        optimizer.clear_grad()
    return [p.numpy() - b for p, b in zip(parameters, before, strict=True)]


# Per-parameter exceptions -------------------------------------------------------------------------


def named(*names):
    return [ol.Parameter(np.full(3, 2.0), name=name) for name in names]


def test_adamw_decays_what_the_name_says():
    w, b = named("fc.weight", "fc.bias")
    choose = lambda name: "bias" not in name  # noqa: E731
    optimizer = O.AdamW(0.1, weight_decay=0.5, apply_decay_param_fun=choose, parameters=[w, b])
    at_w, at_b = moved(optimizer, w, b)
    np.testing.assert_allclose(at_w, -0.1 * 0.5 * 2 - 0.1)
    np.testing.assert_allclose(at_b, -0.1)


def test_the_ratio_of_adamw_multiplies_decay_and_step():
    near, far = named("near", "far")
    optimizer = O.AdamW(
        0.1,
        weight_decay=0.5,
        lr_ratio=lambda p: 0.1 if p.name == "near" else 1.0,
        parameters=[near, far],
    )
    at_near, at_far = moved(optimizer, near, far)
    np.testing.assert_allclose(at_near, 0.1 * at_far, rtol=1e-12)


def test_the_decay_of_adamw_is_apart_from_the_gradient():
    """With zero gradients the moments stay zero, and the parameter shrinks."""
    p = ol.Parameter([4.0])
    optimizer = O.AdamW(0.5, weight_decay=0.5, parameters=[p])
    for _ in range(2):
        give(p, [0.0])
        optimizer.step()
    assert p.numpy() == 4.0 * 0.75**2
    state = optimizer.state_dict()
    assert [float(v.item()) for k, v in state.items() if "moment" in k] == [0.0, 0.0]


def test_a_group_may_have_another_decay_of_adamw():
    w, b = named("w", "b")
    groups = [{"params": [w]}, {"params": [b], "weight_decay": 0.0}]
    at_w, at_b = moved(O.AdamW(0.1, weight_decay=0.5, parameters=groups), w, b)
    np.testing.assert_allclose(at_w - at_b, -0.1)


def test_lamb_leaves_out_what_the_function_says():
    w, b = named("w", "b")
    excluded = lambda p: p.name == "b"  # noqa: E731
    optimizer = O.Lamb(0.1, 0.5, exclude_from_weight_decay_fn=excluded, parameters=[w, b])
    at_w, at_b = moved(optimizer, w, b)
    np.testing.assert_allclose(at_w, -0.2, rtol=1e-5)  # a tenth of its own norm
    np.testing.assert_allclose(at_b, -0.1, rtol=1e-5)  # Adam's step


def test_lars_leaves_out_by_parts_of_names():
    w, b = named("fc.weight", "fc.bias_0")
    optimizer = O.LarsMomentum(
        0.1, 0.0, 1.0, 1.0, exclude_from_weight_decay=["bias"], parameters=[w, b]
    )
    at_w, at_b = moved(optimizer, w, b)
    np.testing.assert_allclose(at_w, -0.1 * 2 / (1 + 2) * 3)
    np.testing.assert_allclose(at_b, -0.1)


# Zeros and scales ---------------------------------------------------------------------------------

#: Rules that move at zero gradient: by decay, or because the parameter is recomputed.
MOVES_AT_ZERO = {"AdamW", "AMSGradW", "Ftrl", "Ftrl of another power", "Lamb", "fluid Lamb"}
MOVES_AT_ZERO |= {"LarsMomentum"}


@pytest.mark.parametrize("name", [name for name in EACH if name not in MOVES_AT_ZERO])
@given(seed=st.integers(0, 1000))
def test_gradients_of_zero_from_the_start_leave_a_parameter_where_it_is(name, seed):
    p = ol.Parameter(random(3, 2, seed=seed))
    optimizer = EACH[name](parameters=[p])
    for _ in range(3):
        give(p, np.zeros((3, 2)))
        optimizer.step()
    np.testing.assert_array_equal(p.numpy(), random(3, 2, seed=seed))


@pytest.mark.parametrize("name", ["Lamb", "fluid Lamb", "LarsMomentum", "Muon", "Dpsgd"])
def test_a_parameter_of_zeros_can_leave_zero(name):
    p = ol.Parameter(np.zeros((3, 2)))
    optimizer = EACH[name](parameters=[p])
    give(p, random(3, 2, seed=1))
    optimizer.step()
    assert np.all(np.isfinite(p.numpy()))
    assert np.all(p.numpy() != 0)


INVARIANT = {
    "Adam": lambda: O.Adam(0.1, epsilon=0.0),
    "AMSGrad": lambda: O.Adam(0.1, epsilon=0.0, amsgrad=True),
    "AdamW": lambda: O.AdamW(0.1, epsilon=0.0),
    "NAdam": lambda: O.NAdam(0.1, epsilon=0.0),
    "Adamax": lambda: O.Adamax(0.1, epsilon=0.0),
    "Adagrad": lambda: O.Adagrad(0.1, epsilon=0.0),
    "RMSProp": lambda: O.RMSProp(0.1, epsilon=0.0, momentum=0.5),
    "Rprop": lambda: O.Rprop(0.1),
    "Lamb": lambda: O.Lamb(0.1, epsilon=0.0),
    "Lion": lambda: O.Lion(0.1, weight_decay=0.1),
    "Muon": lambda: O.Muon(0.1, epsilon=0.0),
}


def trained(make, scale, shape=(4, 3), dtype="float64"):
    p = ol.Parameter(random(*shape, dtype=dtype))
    optimizer = make().bind([p])
    for t in range(5):
        give(p, scale * random(*shape, seed=t + 1, dtype=dtype))
        optimizer.step()
        optimizer.clear_grad()
    return p.numpy()


@pytest.mark.parametrize("name", list(INVARIANT))
@given(power=st.integers(-20, 20))
def test_gradients_on_another_scale_give_the_same_path(name, power):
    """Bitwise equal, since scaling by powers of two rounds no number."""
    make = INVARIANT[name]
    np.testing.assert_array_equal(trained(make, 1.0), trained(make, 2.0**power))


@given(seed=st.integers(0, 1000), rows=st.integers(2, 8), columns=st.integers(2, 8))
def test_the_singular_values_of_a_step_of_muon_are_near_one(seed, rows, columns):
    p = ol.Parameter(np.zeros((rows, columns)))
    give(p, random(rows, columns, seed=seed) + 3 * np.eye(rows, columns))
    optimizer = O.Muon(1.0, parameters=[p])
    optimizer.step()
    values = np.linalg.svd(p.numpy() / max(1, rows / columns) ** 0.5)[1]
    assert values.max() < 1.25
    assert np.median(values) > 0.5


@pytest.mark.parametrize("shape", [(), (5,), (4, 3, 2, 2)])
def test_muon_takes_other_shapes_as_matrices(shape):
    p = ol.Parameter(np.zeros(shape))
    g = random(*shape, seed=1)
    give(p, g)
    O.Muon(1.0, parameters=[p]).step()
    if len(shape) < 2:
        step = -np.sqrt(max(1, g.size)) * g / np.linalg.norm(g)
        np.testing.assert_allclose(p.numpy(), step, rtol=1e-5)
    else:
        q = ol.Parameter(np.zeros((4, 12)))
        give(q, g.reshape(4, 12))
        O.Muon(1.0, parameters=[q]).step()
        np.testing.assert_allclose(p.numpy().reshape(4, 12), q.numpy(), rtol=1e-12)


# Counting steps -----------------------------------------------------------------------------------


def test_the_products_of_nadam_do_not_depend_on_who_asked_before():
    nadam._products.cache_clear()
    late_first = [nadam.product_to(t, 0.9, 0.004) for t in (50, 3, 51, 1, 0)]
    nadam._products.cache_clear()
    early_first = [nadam.product_to(t, 0.9, 0.004) for t in (0, 1, 3, 50, 51)]
    assert late_first == [early_first[i] for i in (3, 2, 4, 1, 0)]
    assert early_first[:2] == [1.0, nadam.momentum_at(1, 0.9, 0.004)]


def test_the_products_of_nadam_end_where_they_are_zero():
    assert nadam.product_to(10**9, 0.5, 0.0) == 0.0
    assert len(nadam._products(0.5, 0.0)) < 2000


def test_a_rate_of_rprop_stays_its_own_after_the_first_step():
    p = ol.Parameter([0.0])
    optimizer = O.Rprop(0.5, etas=(0.5, 2.0), parameters=[p])
    moved(optimizer, p)
    optimizer.set_lr(0.001)
    assert moved(optimizer, p)[0] == -1.0


def test_ftrl_refuses_a_rate_of_zero_before_anything_changes():
    p = ol.Parameter([1.0])
    optimizer = O.Ftrl(0.1, parameters=[p])
    moved(optimizer, p)
    before = p.numpy()
    optimizer.set_lr(0.0)
    give(p, [1.0])
    with pytest.raises(ValueError, match="Ftrl divides by its rate"):
        optimizer.step()
    assert p.numpy() == before


def test_asgd_remembers_a_gradient_a_batch():
    p = ol.Parameter([0.0])
    optimizer = O.ASGD(1.0, batch_num=2, parameters=[p])
    slots = [name for name in optimizer.state_dict() if name.endswith((".d", ".y0", ".y1", ".y2"))]
    assert len(slots) == 3
    for slope in (3.0, 5.0, 1.0):
        give(p, [slope])
        optimizer.step()
        optimizer.clear_grad()
    assert p.numpy() == -3 - (3 + 5) / 2 - (5 + 1) / 2


# Noise --------------------------------------------------------------------------------------------


def noisy(seed, shapes=((40,), (3, 50)), names=("a", "b"), dtype="float64", steps=2):
    ol.seed(seed)
    ps = [ol.Parameter(np.zeros(s, dtype), name=n) for s, n in zip(shapes, names, strict=True)]
    optimizer = O.Dpsgd(1.0, clip=1.0, batch_size=4.0, sigma=2.0, parameters=ps)
    for _ in range(steps):
        for p in ps:
            give(p, np.zeros(p.shape))
        optimizer.step()
    return [p.numpy() for p in ps]


def test_noise_follows_the_seed_and_differs_by_element_parameter_and_step():
    one, two = noisy(1)
    again, _ = noisy(1)
    other, _ = noisy(2)
    first, _ = noisy(1, steps=1)
    np.testing.assert_array_equal(one, again)
    assert not np.any(one == other)
    assert len(np.unique(one)) == 40
    assert not np.allclose(one, 2 * first)
    assert not np.any(one == two.ravel()[:40])


def test_noise_has_the_stated_size_and_dtype():
    [p] = noisy(3, shapes=[(20_000,)], names=["p"], dtype="float32", steps=1)
    assert p.dtype == "float32"
    np.testing.assert_allclose([p.mean(), p.std()], [0.0, 0.5], atol=0.02)


def test_a_race_with_noise_repeats_to_the_bit():
    make = lambda: {"run": O.Dpsgd(0.01, sigma=0.5)}  # noqa: E731
    one = ol.compare("rosenbrock", make(), steps=20, seed=5)["run"]
    other = ol.compare("rosenbrock", make(), steps=20, seed=5)["run"]
    third = ol.compare("rosenbrock", make(), steps=20, seed=6)["run"]
    np.testing.assert_array_equal(one.parameters["point"], other.parameters["point"])
    assert not np.allclose(one.parameters["point"], third.parameters["point"])
