"""The optimizers of Paddle 1.8.5: names, arguments, and formulas that differ."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give, random

F = ol.fluid.optimizer
WRAPPERS = (
    ol.optimizer.LookAhead,
    ol.optimizer.RecomputeOptimizer,
    F.ModelAverage,
    F.ExponentialMovingAverage,
    F.DGCMomentum,  # needs several ranks: tests/parallel
    ol.optimizer.PipelineOptimizer,  # around another one: tests/parallel
)
NAMES = [
    name.removesuffix("Optimizer")
    for name in F.__all__
    if name.endswith("Optimizer") and not issubclass(getattr(F, name), WRAPPERS)
]
NEEDED = {"Momentum": {"momentum": 0.9}, "LarsMomentum": {"momentum": 0.9}}


def made(name, rate=0.1, **common):
    return getattr(F, name)(learning_rate=rate, **NEEDED.get(name, {}), **common)


def path(optimizer, p, steps=4):
    found = []
    for t in range(steps):
        give(p, random(*p.shape, seed=t + 1))
        optimizer.step()
        optimizer.clear_grad()
        found.append(p.numpy())
    return np.array(found)


def test_every_name_is_there_twice():
    assert len(NAMES) == 12
    for name in NAMES:
        assert getattr(F, name) is getattr(F, f"{name}Optimizer")
        assert issubclass(getattr(F, name), getattr(ol.optimizer, name))


#: The signatures documented for 1.8.5, up to the common arguments.
DOCUMENTED = {
    "SGD": "learning_rate",
    "Momentum": "learning_rate, momentum, use_nesterov=False",
    "Adagrad": "learning_rate, epsilon=1e-06",
    "DecayedAdagrad": "learning_rate, decay=0.95, epsilon=1e-06",
    "Adadelta": "learning_rate, epsilon=1e-06, rho=0.95",
    "Adam": "learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08",
    "Adamax": "learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08",
    "RMSProp": "learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False",
    "Ftrl": "learning_rate, l1=0.0, l2=0.0, lr_power=-0.5",
    "Lamb": "learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06",
    "LarsMomentum": "learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005",
}


@pytest.mark.parametrize("name", list(DOCUMENTED))
def test_signatures_are_the_documented_ones(name):
    signature = inspect.signature(getattr(F, name))
    assert str(signature).startswith(f"({DOCUMENTED[name]},") or DOCUMENTED[name] in str(signature)
    for old in ("parameter_list", "regularization", "grad_clip", "name"):
        assert signature.parameters[old].default is None
    assert not {"parameters", "weight_decay"} & set(signature.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_old_and_new_names_of_arguments_mean_the_same(name):
    p, q = ol.Parameter(random(3, 2)), ol.Parameter(random(3, 2))
    settings = {"sigma": 0.0} if name == "Dpsgd" else {}
    decay = ol.regularizer.L2Decay(0.1)
    one = made(name, parameter_list=[p], regularization=decay, **settings)
    other = made(name, parameters=[q], weight_decay=decay, **settings)
    np.testing.assert_array_equal(path(one, p), path(other, q))
    with pytest.raises(TypeError, match="parameter_list and parameters"):
        made(name, parameter_list=[p], parameters=[p], **settings)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("Adam", "Lamb", "LarsMomentum")])
def test_the_others_equal_their_modern_twins(name):
    p, q = ol.Parameter(random(3, 2)), ol.Parameter(random(3, 2))
    settings = {"sigma": 0.0} if name == "Dpsgd" else {}
    old = made(name, parameter_list=[p], **settings)
    needed = NEEDED.get(name, {})
    new = getattr(ol.optimizer, name)(0.1, **needed, **settings, parameters=[q])
    np.testing.assert_array_equal(path(old, p), path(new, q))


def test_adam_adds_epsilon_to_the_root_as_it_is():
    p, q = ol.Parameter(random(3)), ol.Parameter(random(3))
    old = path(F.AdamOptimizer(0.1, epsilon=0.1, parameter_list=[p]), p, 10)
    new = path(ol.optimizer.Adam(0.1, epsilon=0.1, parameters=[q]), q, 10)
    assert np.max(np.abs(old - new)) > 0.05
    x, m, v = random(3), 0.0, 0.0
    for t in range(1, 11):
        g = random(3, seed=t)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 0.1)
        np.testing.assert_allclose(old[t - 1], x, rtol=1e-12)


def test_lamb_corrects_no_moments_and_adapts_without_decay():
    p = ol.Parameter(random(3))
    old = path(F.LambOptimizer(0.1, lamb_weight_decay=0.0, parameter_list=[p]), p)
    x, m, v = random(3), 0.0, 0.0
    for t in range(1, 5):
        g = random(3, seed=t)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        r = m / (np.sqrt(v) + 1e-6)
        x = x - 0.1 * np.linalg.norm(x) / np.linalg.norm(r) * r
        np.testing.assert_allclose(old[t - 1], x, rtol=1e-12)


def test_lars_takes_a_share_of_the_norm_without_decay_too():
    p = ol.Parameter(random(3))
    old = path(F.LarsMomentumOptimizer(0.1, 0.0, 0.5, 0.0, parameter_list=[p]), p, 1)
    g = random(3, seed=1)
    share = 0.5 * np.linalg.norm(random(3)) / np.linalg.norm(g)
    np.testing.assert_allclose(old[0], random(3) - 0.1 * share * g, rtol=1e-12)


# minimize -----------------------------------------------------------------------------------------


def test_minimize_takes_a_clip_for_one_call():
    p = ol.Parameter([0.0])
    optimizer = F.SGD(1.0, parameter_list=[p], grad_clip=ol.nn.ClipGradByValue(2.0))
    _, pairs = optimizer.minimize((5 * p).sum(), grad_clip=ol.nn.ClipGradByValue(0.5))
    assert p.numpy() == -0.5
    assert pairs[0][1].item() == 5.0
    optimizer.clear_gradients()
    optimizer.minimize((5 * p).sum())
    assert p.numpy() == -2.5


def test_minimize_refuses_a_clip_that_is_none():
    p = ol.Parameter([0.0])
    optimizer = F.SGD(1.0, parameter_list=[p])
    with pytest.raises(TypeError, match="ClipGradByGlobalNorm"):
        optimizer.minimize((5 * p).sum(), grad_clip=0.5)
    assert p.numpy() == 0.0


def test_a_step_that_fails_under_a_clip_leaves_the_own_one():
    p = ol.Parameter([0.0])
    own = ol.nn.ClipGradByValue(2.0)
    optimizer = F.SGD(1.0, parameter_list=[p], grad_clip=own)

    def fails(pairs):
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        optimizer.minimize((5 * p).sum(), grad_clip=fails)
    assert optimizer.groups[0].grad_clip is own


def test_minimize_and_backward_take_parameter_list_and_no_grad_set():
    a, b = ol.Parameter([0.0], name="a"), ol.Parameter([0.0], name="b")
    optimizer = F.SGD(1.0, parameter_list=[a, b])
    optimizer.minimize((a + b).sum(), parameter_list=["a"])
    assert (a.item(), b.item()) == (-1.0, 0.0)
    optimizer.clear_gradients()
    optimizer.minimize((a + b).sum(), no_grad_set={a})
    assert (a.item(), b.item()) == (-1.0, -1.0)
    optimizer.clear_gradients()
    pairs = optimizer.backward((a + b).sum(), parameter_list=[b])
    assert [p.name for p, _ in pairs] == ["b"]


def test_set_dict_takes_what_state_dict_gave():
    p, q = ol.Parameter([1.0], name="w"), ol.Parameter([1.0], name="w")
    one, other = F.Adam(parameter_list=[p]), F.Adam(parameter_list=[q])
    path(one, p)
    other.set_dict(one.state_dict())
    q.set_value(p.numpy())
    np.testing.assert_array_equal(path(one, p), path(other, q))


def test_templates_race():
    race = ol.compare("quadratic", {name: made(name, 0.01) for name in NAMES}, steps=10)
    assert all(len(race[name]) == 10 for name in NAMES)
    assert repr(F.SGD(0.5)) == "SGDOptimizer(learning_rate=0.5)"


def test_an_unknown_name_is_answered():
    with pytest.raises(TypeError, match="regularisation"):
        F.SGD(0.1, regularisation=None)


@pytest.mark.parametrize("name", NAMES)
def test_the_present_rate_has_its_old_name(name):
    optimizer = made(name, parameter_list=[ol.Parameter([1.0])])
    assert optimizer.current_step_lr() == 0.1
    optimizer.set_lr(0.05)
    assert optimizer.current_step_lr() == optimizer.get_lr() == 0.05
    schedule = ol.optimizer.lr.StepDecay(0.5, step_size=1)
    scheduled = made(name, schedule, parameter_list=[ol.Parameter([1.0])])
    schedule.step()
    assert scheduled.current_step_lr() == 0.05
