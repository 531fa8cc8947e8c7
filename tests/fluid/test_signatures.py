"""Classes and methods of fluid.optimizer as their page prints them: arguments, order, defaults."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give

F = ol.fluid.optimizer

#: "class paddle.fluid.optimizer.X(...)" on the page of fluid.optimizer, word for word.
CLASSES = """\
AdagradOptimizer(learning_rate, epsilon=1e-06, regularization=None, name=None, \
initial_accumulator_value=0.0)
AdamaxOptimizer(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, regularization=None, \
name=None)
AdamOptimizer(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, regularization=None, \
name=None, lazy_mode=False)
DecayedAdagradOptimizer(learning_rate, decay=0.95, epsilon=1e-06, regularization=None, name=None)
FtrlOptimizer(learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, regularization=None, name=None)
LambOptimizer(learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06, \
regularization=None, exclude_from_weight_decay_fn=None, name=None)
LarsMomentumOptimizer(learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005, \
regularization=None, name=None)
MomentumOptimizer(learning_rate, momentum, use_nesterov=False, regularization=None, name=None)
RMSPropOptimizer(learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False, \
regularization=None, name=None)
SGDOptimizer(learning_rate, regularization=None, name=None)
ExponentialMovingAverage(decay=0.999, thres_steps=None, name=None)
ModelAverage(average_window_rate, min_average_window=10000, max_average_window=10000, \
regularization=None, name=None)
RecomputeOptimizer(optimizer)
""".splitlines()

#: The methods that the page prints for each of the first ten, and for ModelAverage.
METHODS = """\
apply_gradients(params_grads)
apply_optimize(loss, startup_program, params_grads)
backward(loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None)
minimize(loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None)
set_dict(state_dict)
state_dict()
""".splitlines()


def printed(text):
    """Return the name and the (argument, default) pairs of a printed signature."""
    name, _, arguments = text.strip().rstrip(")").partition("(")
    spoken = [one.partition("=") for one in arguments.split(", ") if one]
    return name, [
        (a, eval(value) if sign else inspect.Parameter.empty) for a, sign, value in spoken
    ]


def positional(function):
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    return [
        (p.name, p.default)
        for p in inspect.signature(function).parameters.values()
        if p.kind in kinds
    ]


@pytest.mark.parametrize("line", CLASSES, ids=lambda line: line.partition("(")[0])
def test_a_class_takes_what_is_printed_in_that_order(line):
    name, expected = printed(line)
    found = positional(getattr(F, name))
    assert found[: len(expected)] == expected
    more = {argument for argument, _ in found[len(expected) :]}
    assert more <= {"parameter_list", "parameters", "name"}


#: Values other than the defaults, and one name each, for every printed argument.
VALUES = {
    "learning_rate": 0.5, "epsilon": 1e-3, "beta1": 0.5, "beta2": 0.75, "decay": 0.5, "l1": 0.25,
    "l2": 0.5, "lr_power": -0.75, "lamb_weight_decay": 0.5, "momentum": 0.5, "lars_coeff": 0.25,
    "lars_weight_decay": 0.5, "use_nesterov": True, "rho": 0.5, "centered": True,
    "lazy_mode": True, "initial_accumulator_value": 0.5, "name": "mine",
    "regularization": ol.regularizer.L2Decay(0.25),
    "exclude_from_weight_decay_fn": lambda p: p.name.endswith(".w_0"),
}  # fmt: skip


@pytest.mark.parametrize("line", CLASSES[:10], ids=lambda line: line.partition("(")[0])
def test_arguments_by_position_are_those_by_name(line):
    name, expected = printed(line)
    values = {argument: VALUES[argument] for argument, _ in expected}
    p, q = ol.Parameter([1.0, -2.0]), ol.Parameter([1.0, -2.0])
    one = getattr(F, name)(*values.values(), parameter_list=[p])
    other = getattr(F, name)(**values, parameter_list=[q])
    assert one.name == other.name == "mine"
    assert one.settings == other.settings
    for optimizer, parameter in ((one, p), (other, q)):
        give(parameter, [3.0, -1.0])
        optimizer.step()
        (group,) = optimizer.groups
        assert group.regularizer.coeff == 0.25
    np.testing.assert_array_equal(p.numpy(), q.numpy())
    too_many = [*values.values(), None]
    with pytest.raises(TypeError, match=f"takes at most {len(values)} arguments by position"):
        getattr(F, name)(*too_many)
    with pytest.raises(TypeError, match="got learning_rate twice"):
        getattr(F, name)(*values.values(), learning_rate=0.1)


OWNERS = [*(printed(line)[0] for line in CLASSES[:10]), "ModelAverage", "RecomputeOptimizer"]


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("line", METHODS, ids=lambda line: line.partition("(")[0])
def test_every_printed_method_is_there(owner, line):
    name, expected = printed(line)
    found = positional(getattr(getattr(F, owner), name))[1:]
    assert [argument for argument, _ in found] == [argument for argument, _ in expected]
    for (argument, default), (_, wanted) in zip(found, expected, strict=True):
        if wanted is not inspect.Parameter.empty:
            assert default == wanted, argument


def test_callbacks_of_backward():
    p = ol.Parameter([1.0])
    for optimizer in (
        F.SGD(0.5, parameter_list=[p]),
        F.LookaheadOptimizer(F.SGD(0.5, parameter_list=[p])),
        F.ModelAverage(0.5, parameter_list=[p]),
    ):
        seen = []
        optimizer.backward((3 * p).sum(), callbacks=[lambda p, g, seen=seen: seen.append((p, g))])
        [(parameter, gradient)] = seen
        assert parameter is p
        assert gradient.numpy() == 3.0
        p.clear_grad(False)
        with pytest.raises(TypeError, match="callbacks is a list of functions"):
            optimizer.backward((3 * p).sum(), callbacks=3)


class TestModelAverage:
    def made(self):
        a, b = ol.Parameter([1.0], name="a"), ol.Parameter([1.0], name="b")
        average = F.ModelAverage(0.5, parameter_list=[a, b])
        return a, b, average

    def test_backward_gives_pairs_and_leaves_the_average(self):
        a, b, average = self.made()
        loss = (3 * a * b).sum()
        [(p, g)] = average.backward(loss, parameter_list=["a"])
        assert p is a
        assert g.numpy() == 3.0
        assert [p for p, _ in average.backward(loss, no_grad_set=[a])] == [b]
        assert average.state_dict()["a.num_updates"] == 0

    def test_the_second_part_of_minimize_averages(self):
        """Weights 1 and 3: their mean is 2."""
        a, b, average = self.made()
        pairs = average.backward((a * b).sum())
        assert average.apply_gradients(pairs) == []
        a.set_value([3.0])
        assert average.apply_optimize(None, None, pairs) == []
        with average.apply():
            assert a.numpy() == 2.0
        assert a.numpy() == 3.0

    def test_minimize_is_both_and_moves_no_weight(self):
        a, b, average = self.made()
        ops, pairs = average.minimize((3 * a * b).sum())
        assert ops == []
        assert [(p.name, g.numpy().item()) for p, g in pairs] == [("a", 3.0), ("b", 3.0)]
        assert (a.numpy(), average.state_dict()["a.num_updates"]) == (1.0, 1)
        # After an optimizer the backward pass is not run again.
        a.clear_grad(False)
        sgd = F.SGD(0.5, parameter_list=[a])
        loss = (2 * a).sum()
        sgd.minimize(loss)
        average.minimize(loss)
        assert a.grad.numpy() == 2.0
        with average.apply():
            assert a.numpy() == 0.5  # of 1 and 0

    def test_what_it_refuses_changes_nothing(self):
        a, b, average = self.made()
        loss = (a * b).sum()
        for named, error, said in (
            ({"parameter_list": [a]}, TypeError, "leave parameter_list out"),
            ({"grad_clip": ol.nn.ClipGradByNorm(1.0)}, TypeError, "nothing to clip"),
            ({"startup_program": 1}, TypeError, "static graphs"),
        ):
            with pytest.raises(error, match=said):
                average.minimize(loss, **named)
        with pytest.raises(ValueError, match="not a parameter of this ModelAverage"):
            average.apply_gradients([(ol.Parameter([1.0]), np.ones(1, "f4"))])
        with average.apply(), pytest.raises(RuntimeError, match="are applied"):
            average.minimize(loss)
        assert average.state_dict()["a.num_updates"] == 0
        assert a.grad is None

    def test_set_dict_takes_what_state_dict_gave(self):
        *_, average = self.made()
        average.step()
        *_, other = self.made()
        other.set_dict(average.state_dict())
        assert other.state_dict()["b.num_updates"] == 1
