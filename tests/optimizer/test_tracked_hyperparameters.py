"""Whatever is being differentiated and reaches an optimizer is refused, never silently detached."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tensor import SilentDetachError


def weights() -> Any:
    return ol.Parameter(np.array([1.0, -2.0]), name="w")


def loss_after(step: Callable[[Any, Any], None]) -> Callable[[Any], Any]:
    """Return a function of t: the loss of weights after a step that t has something to do with."""

    def final(t: Any) -> Any:
        w = weights()
        w.grad = 2 * w.numpy()
        step(w, t)
        return (w * w).sum() + 0 * t

    return final


def assert_refused(f: Callable[[Any], Any], start: Any = 0.1, match: str | None = None) -> None:
    """Assert that every transform refuses, and that a plain number is accepted."""
    f(start)
    for transform in (
        ol.grad(f),
        lambda t: ol.vjp(f, t),
        lambda t: ol.jvp(f, (t,), (np.ones_like(t),)),
        ol.hessian(f),
        ol.jacobian(f),
    ):
        with pytest.raises(SilentDetachError, match=match) as error:
            transform(np.asarray(start, float))
        assert "Write" in str(error.value)
    with ol.no_grad():
        f(ol.to_tensor(start, requires_grad=True))


#: Their own settings are in `PLACES`.
WRAPPERS = (
    ol.optimizer.LookAhead, ol.optimizer.RecomputeOptimizer, ol.optimizer.Averaged,
    ol.optimizer.PipelineOptimizer, ol.optimizer.SAM,
)  # fmt: skip
#: Needs several ranks; `tests/parallel` has its cases.
OF_MANY_RANKS = ol.optimizer.DGCMomentum


def optimizers(module: Any) -> list[type]:
    found = [getattr(module, name) for name in module.__all__]
    return [
        cls
        for cls in found
        if isinstance(cls, type)
        and issubclass(cls, ol.optimizer.Optimizer)
        and not issubclass(cls, WRAPPERS)
        and cls is not ol.optimizer.Optimizer
        and not issubclass(cls, OF_MANY_RANKS)
    ]


#: Numbers that fit where the default does not, or where there is none.
FITTING = {"learning_rate": 0.1, "momentum": 0.5, "learning_rate_range": (0.0001, 1.0)}
RULES = [
    (cls, name, default)
    for cls in {*optimizers(ol.optimizer), *optimizers(ol.fluid.optimizer)}
    for name, default in cls.hyperparameters.items()
    if type(default) in (float, int) or name in FITTING or isinstance(default, tuple)
]
RULES.sort(key=lambda case: (case[0].__module__, case[0].__name__, case[1]))


@pytest.mark.parametrize(
    ("cls", "name", "default"), RULES, ids=[f"{cls.__name__}-{name}" for cls, name, _ in RULES]
)
def test_a_hyperparameter(cls: type, name: str, default: Any) -> None:
    needed = {
        known: FITTING[known] for known, value in cls.hyperparameters.items()
        if value is ol.optimizer.REQUIRED
    }  # fmt: skip
    value = FITTING.get(name, default)

    def final(t: Any) -> Any:
        w = weights()
        given = (t, value[1]) if isinstance(value, tuple) else t
        optimizer = cls(**{**needed, name: given}, parameters=[w])
        if cls is ol.optimizer.LBFGS:
            return (w * w).sum() + 0 * t
        w.grad = 2 * w.numpy()
        optimizer.step()
        return (w * w).sum() + 0 * t

    start = float(value[0] if isinstance(value, tuple) else value)
    match = rf"{name}.*functional_step" if not isinstance(value, tuple) else name
    assert_refused(final, start, match)


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (cls, name)
        for cls, name, default in RULES
        if type(default) is float and cls is not ol.optimizer.LBFGS
    ],
)
def test_a_setting_of_a_group(cls: type, name: str) -> None:
    needed = {
        known: FITTING[known] for known, value in cls.hyperparameters.items()
        if value is ol.optimizer.REQUIRED
    }  # fmt: skip

    def final(t: Any) -> Any:
        w = weights()
        cls(**needed, parameters=[{"params": [w], name: t}])
        return (w * w).sum() + 0 * t

    assert_refused(final, FITTING.get(name, cls.hyperparameters[name]), name)


SGD = ol.optimizer.SGD
PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "SAM": lambda w, t: ol.optimizer.SAM(SGD(0.1, parameters=[w]), rho=t),
    "set_lr": lambda w, t: step_of(SGD(1.0, parameters=[w]), lambda o: o.set_lr(t)),
    "weight_decay": lambda w, t: SGD(0.1, weight_decay=t, parameters=[w]).step(),
    "L1Decay": lambda w, t: SGD(
        0.1, weight_decay=ol.regularizer.L1Decay(t), parameters=[w]
    ).step(),
    "L2Decay": lambda w, t: SGD(
        0.1, weight_decay=ol.regularizer.L2Decay(t), parameters=[w]
    ).step(),
    "a group's weight_decay": lambda w, t: SGD(
        0.1, parameters=[{"params": [w], "weight_decay": t}]
    ).step(),
    "add_param_group": lambda w, t: SGD(0.1, parameters=[weights()]).add_param_group(
        {"params": [w], "learning_rate": t}
    ),
    "ClipGradByValue": lambda w, t: SGD(
        0.1, grad_clip=ol.nn.ClipGradByValue(t), parameters=[w]
    ).step(),
    "ClipGradByValue(min)": lambda w, t: ol.nn.ClipGradByValue(2.0, t),
    "ClipGradByNorm": lambda w, t: SGD(
        0.1, grad_clip=ol.nn.ClipGradByNorm(t), parameters=[w]
    ).step(),
    "ClipGradByGlobalNorm": lambda w, t: SGD(
        0.1, grad_clip=ol.nn.ClipGradByGlobalNorm(t), parameters=[w]
    ).step(),
    "clip_grad_norm_": lambda w, t: ol.nn.utils.clip_grad_norm_([w], t),
    "clip_grad_norm_(norm_type)": lambda w, t: ol.nn.utils.clip_grad_norm_([w], 1.0, t),
    "clip_grad_value_": lambda w, t: ol.nn.utils.clip_grad_value_([w], t),
    "Parameter": lambda w, t: ol.Parameter([1.0], learning_rate=t),
    "a parameter's learning_rate": lambda w, t: setattr(w, "learning_rate", t),
    "ParamAttr": lambda w, t: ol.nn.Linear(1, 1, weight_attr=ol.ParamAttr(learning_rate=t)),
    "LookAhead": lambda w, t: ol.optimizer.LookAhead(SGD(0.1, parameters=[w]), t),
    "LookAhead(k)": lambda w, t: ol.optimizer.LookAhead(SGD(0.1, parameters=[w]), 0.5, t * 10),
    "incubate.LookAhead": lambda w, t: ol.incubate.LookAhead(SGD(0.1, parameters=[w]), t),
    "fluid.LookaheadOptimizer": lambda w, t: ol.fluid.optimizer.LookaheadOptimizer(
        SGD(0.1, parameters=[w]), t
    ),
    "ExponentialMovingAverage": lambda w, t: ol.optimizer.ExponentialMovingAverage(
        t, parameters=[w]
    ),
    "ExponentialMovingAverage(thres_steps)": lambda w, t: ol.optimizer.ExponentialMovingAverage(
        0.9, thres_steps=t, parameters=[w]
    ),
    "ModelAverage": lambda w, t: ol.optimizer.ModelAverage(t, parameters=[w]),
    "ModelAverage(min_average_window)": lambda w, t: ol.optimizer.ModelAverage(
        0.1, min_average_window=t * 10, parameters=[w]
    ),
    "Averaged": lambda w, t: ol.optimizer.ExponentialMovingAverage.around(
        SGD(0.1, parameters=[w]), decay=t
    ),
    "apply_gradients": lambda w, t: SGD(0.1, parameters=[w]).apply_gradients(
        [(w, t * np.ones(2))]
    ),
    "apply_optimize": lambda w, t: SGD(0.1, parameters=[w]).apply_optimize(
        None, None, [(w, t * np.ones(2))]
    ),
    "append_regularization_ops": lambda w, t: SGD(
        0.1, parameters=[w]
    ).append_regularization_ops([(w, t * np.ones(2))]),
    "a gradient that was set": lambda w, t: step_of(
        SGD(0.1, parameters=[w]), lambda o: setattr(w, "grad", t * np.ones(2))
    ),
    "set_value": lambda w, t: w.set_value(t * np.ones(2)),
    "vector_to_parameters": lambda w, t: ol.nn.utils.vector_to_parameters(t * np.ones(2), [w]),
    "to_tensor": lambda w, t: ol.to_tensor(t),
    "Parameter of it": lambda w, t: ol.Parameter(t),
    "arange": lambda w, t: ol.arange(0.0, 1.0, t),
    "a layer's set_state_dict": lambda w, t: load_layer(t),
    "an optimizer's set_state_dict": lambda w, t: load_optimizer(w, t),
    "an average's set_state_dict": lambda w, t: load_average(w, t),
    "GradScaler": lambda w, t: ol.amp.GradScaler(init_loss_scaling=1 + t),
}  # fmt: skip


def step_of(optimizer: Any, before: Callable[[Any], Any]) -> None:
    before(optimizer)
    optimizer.step()


def load_layer(t: Any) -> None:
    layer = ol.nn.Linear(1, 1)
    layer.set_state_dict({"weight": np.ones((1, 1), np.float32) * t, "bias": layer.bias})


def load_optimizer(w: Any, t: Any) -> None:
    optimizer = ol.optimizer.Adam(0.1, parameters=[w])
    state = optimizer.state_dict()
    name = next(name for name in state if name.endswith("moment1"))
    optimizer.set_state_dict({**state, name: state[name] + t * np.ones(2)})


def load_average(w: Any, t: Any) -> None:
    average = ol.optimizer.ExponentialMovingAverage(0.9, parameters=[w])
    average.update()
    state = average.state_dict()
    name = next(name for name, value in state.items() if np.shape(value) == (2,))
    average.set_state_dict({**state, name: state[name] + t * np.ones(2)})


@pytest.mark.parametrize("place", PLACES)
def test_everywhere_else(place: str) -> None:
    assert_refused(loss_after(PLACES[place]))


def test_the_rate_of_the_issue() -> None:
    """Finite differences give -12.8 here; the gradient was 0.0."""

    def final(rate: Any) -> Any:
        w = ol.Parameter(np.array([2.0, 0.0]))
        optimizer = SGD(rate, parameters=[w])
        w.grad = 2 * w.numpy()
        optimizer.step()
        return (w * w).sum()

    assert (final(0.1 + 1e-6).item() - final(0.1 - 1e-6).item()) / 2e-6 == pytest.approx(-12.8)
    with pytest.raises(SilentDetachError, match=r"functional_step\(.*learning_rate=t\)"):
        ol.grad(final)(0.1)


SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "CosineAnnealingDecay": lambda t: {"learning_rate": t, "T_max": 10, "eta_min": t},
    "CosineAnnealingWarmRestarts": lambda t: {"learning_rate": t, "T_0": 10, "eta_min": t},
    "CyclicLR": lambda t: {
        "base_learning_rate": t, "max_learning_rate": t * 2, "step_size_up": 5, "exp_gamma": t
    },
    "ExponentialDecay": lambda t: {"learning_rate": t, "gamma": t},
    "InverseTimeDecay": lambda t: {"learning_rate": t, "gamma": t},
    "LambdaDecay": lambda t: {"learning_rate": t, "lr_lambda": lambda epoch: t},
    "LinearLR": lambda t: {
        "learning_rate": t, "total_steps": 10, "start_factor": t, "end_factor": t * 2,
    },
    "LinearWarmup": lambda t: {
        "learning_rate": t, "warmup_steps": 5, "start_lr": t, "end_lr": t * 2,
    },
    "MultiStepDecay": lambda t: {"learning_rate": t, "milestones": [2, 3], "gamma": t},
    "MultiplicativeDecay": lambda t: {"learning_rate": t, "lr_lambda": lambda epoch: t},
    "NaturalExpDecay": lambda t: {"learning_rate": t, "gamma": t},
    "NoamDecay": lambda t: {"d_model": 4, "warmup_steps": 2, "learning_rate": t},
    "OneCycleLR": lambda t: {
        "max_learning_rate": t, "total_steps": 10, "divide_factor": t * 20,
        "end_learning_rate": t / 2,
        "phase_pct": t,
    },
    "PiecewiseDecay": lambda t: {"boundaries": [2], "values": [t, t]},
    "PolynomialDecay": lambda t: {
        "learning_rate": t, "decay_steps": 5, "end_lr": t, "power": t * 10,
    },
    "ReduceOnPlateau": lambda t: {
        "learning_rate": t, "factor": t, "threshold": t, "min_lr": t, "epsilon": t
    },
    "StepDecay": lambda t: {"learning_rate": t, "step_size": 2, "gamma": t},
}  # fmt: skip


def test_every_schedule_is_listed() -> None:
    assert {*SCHEDULES, "LRScheduler"} == set(ol.optimizer.lr.__all__)
    for name, settings in SCHEDULES.items():
        known = inspect.signature(getattr(ol.optimizer.lr, name)).parameters.values()
        floats = {one.name for one in known if type(one.default) is float}
        assert floats <= settings(0.1).keys(), name


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        (name, setting)
        for name, settings in SCHEDULES.items()
        for setting, value in settings(0.1).items()
        if not isinstance(value, int) and setting not in ("milestones", "boundaries")
    ],
)
def test_a_setting_of_a_schedule(name: str, setting: str) -> None:
    def final(t: Any) -> Any:
        given = {**SCHEDULES[name](0.1), setting: SCHEDULES[name](t)[setting]}
        schedule = getattr(ol.optimizer.lr, name)(**given)
        w = weights()
        optimizer = SGD(schedule, parameters=[w])
        for _ in range(2):
            w.grad = 2 * w.numpy()
            optimizer.step()
            schedule.step(*[1.0] * (name == "ReduceOnPlateau"))
        return (w * w).sum() + 0 * t

    assert_refused(final)


def test_a_rule_of_the_users_own_schedule() -> None:
    def final(t: Any) -> Any:
        class Mine(ol.optimizer.lr.LRScheduler):
            def get_lr(self) -> Any:
                return t * self.base_lr

        w = weights()
        SGD(Mine(0.1), parameters=[w])
        return (w * w).sum() + 0 * t

    assert_refused(final)


def test_a_metric_is_only_compared_and_so_may_need_a_gradient() -> None:
    schedule = ol.optimizer.lr.ReduceOnPlateau(0.1)
    w = weights()
    schedule.step((w * w).sum())
    assert schedule() == 0.1


# What is copied, as before ----------------------------------------------------------------------


def test_leaves_states_and_what_was_computed_before_are_copied_inside_a_transform() -> None:
    leaf = ol.to_tensor(np.array([3.0, 4.0]), requires_grad=True)
    before = leaf * 2
    copies = []

    def f(t: Any) -> Any:
        w, w0 = weights(), weights()
        for value in (leaf, before, leaf * 3, w0 * 0.5, leaf.detach(), np.ones(2)):
            w.set_value(value)
            copies.append(w.tolist())
        layer = ol.nn.Linear(2, 2)
        layer.set_state_dict(ol.nn.Linear(2, 2).state_dict())
        with ol.no_grad():
            w.set_value(t * np.ones(2))
            copies.append(w.tolist())
        SGD(0.1, parameters=[w]).apply_gradients([(w, leaf)])
        ol.to_tensor(leaf)
        return t * 2

    assert ol.grad(f)(7.0) == 2.0
    assert copies == [[3, 4], [6, 8], [9, 12], [0.5, -1], [3, 4], [1, 1], [7, 7]]


def test_outside_of_a_transform_computed_values_are_copied() -> None:
    w, x = weights(), ol.to_tensor(np.array([1.0, 2.0]), requires_grad=True)
    w.set_value(x * 5)
    assert w.tolist() == [5.0, 10.0]


def test_after_the_transform_its_values_are_copied() -> None:
    w, kept = weights(), []
    ol.grad(lambda t: kept.append(t * np.ones(2)) or t * 1)(4.0)
    w.set_value(kept[0])
    assert w.tolist() == [4.0, 4.0]


def test_nothing_has_changed_when_a_write_was_refused() -> None:
    w = weights()
    layer = ol.nn.Linear(1, 1)
    ones = ol.ones([1, 1])

    def f(t: Any) -> Any:
        with pytest.raises(SilentDetachError):
            w.set_value(t * np.ones(2))
        with pytest.raises(SilentDetachError):
            layer.set_state_dict({"bias": ol.ones([1]), "weight": ones * t})
        return t * 1

    old = layer.bias.tolist()
    ol.grad(f)(3.0)
    assert w.tolist() == [1.0, -2.0]
    assert layer.bias.tolist() == old


def test_a_value_that_an_outer_transform_follows() -> None:
    w = weights()

    def inner(s: Any, t: Any) -> Any:
        w.set_value(t * np.ones(2))
        return s * 1

    with pytest.raises(SilentDetachError):
        ol.grad(lambda t: ol.grad(inner)(1.0, t) * t)(2.0)


def test_a_step_after_create_graph_outside_of_a_transform() -> None:
    w = weights()
    (w * w * w).sum().backward(create_graph=True)
    SGD(0.1, parameters=[w]).step()
    np.testing.assert_allclose(w.numpy(), [0.7, -3.2])


def test_a_computed_gradient_outside_of_a_transform_is_refused() -> None:
    w, t = weights(), ol.to_tensor(2.0, requires_grad=True)
    optimizer = SGD(0.1, parameters=[w])
    with pytest.raises(SilentDetachError, match=r"gradient of w.*detach"):
        optimizer.apply_gradients([(w, t * np.ones(2))])
    assert w.tolist() == [1.0, -2.0]
    optimizer.apply_gradients([(w, (t * np.ones(2)).detach())])
    np.testing.assert_allclose(w.numpy(), [0.8, -2.2])


def test_a_clip_of_gradients_that_are_differentiated_carries_them():
    w = ol.Parameter([1.0, 2.0])
    direction = np.array([3.0, 4.0])
    for clip, expected in [
        (ol.nn.ClipGradByNorm(10.0), [3.0, 4.0]),
        (ol.nn.ClipGradByNorm(1.0), [0.0, 0.0]),  # the length is the limit, whatever t is
        (ol.nn.ClipGradByGlobalNorm(10.0), [3.0, 4.0]),
        (ol.nn.ClipGradByValue(7.0), [3.0, 0.0]),
    ]:

        def clipped(t, clip=clip):
            [(_, g)] = clip([(w, t * direction)])
            return g

        got = ol.jacobian(clipped)(np.float64(1.9))
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_a_backward_pass_inside_a_transform_does_not_cut_its_argument_off():
    def trained(t, **options):
        w = ol.Parameter(np.ones(2, np.float32))
        optimizer = SGD(0.1, parameters=[w])
        (t * w * w).sum().backward(**options)
        optimizer.step()
        return (w * w).sum()

    for transform in (ol.grad, ol.hessian, lambda f: lambda t: ol.jvp(f, (t,), (1.0,))):
        with pytest.raises(SilentDetachError, match="functional_step"):
            transform(trained)(1.0)
    with pytest.raises(SilentDetachError, match="functional_step"):
        ol.grad(lambda t: trained(t, create_graph=True))(1.0)

    def apart(t):  # what does not depend on the argument is trained as ever
        w = ol.Parameter(np.ones(2))
        (w * w).sum().backward()
        SGD(0.1, parameters=[w]).step()
        return (w.detach() * t).sum()

    assert ol.grad(apart)(1.0) == pytest.approx(1.6)

    def twice(t):
        w = ol.Parameter(np.ones(2))
        (t * w * w).sum().backward(create_graph=True)
        return (w.grad * w.grad).sum()

    assert ol.grad(twice)(1.0) == pytest.approx(16.0)
