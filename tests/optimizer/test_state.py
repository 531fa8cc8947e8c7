"""The state dict of an optimizer: bitwise resuming, and refusals of unsuitable states."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optlab as ol
from tests.optimizer.helpers import EACH, random


def model():
    ol.seed(3)
    return ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Tanh(), ol.nn.Linear(4, 2))


def train(network, optimizer, steps, start=0):
    for t in range(start, start + steps):
        x = ol.to_tensor(random(5, 3, seed=t, dtype="float32"))
        optimizer.minimize((network(x) ** 2).mean())
        optimizer.clear_grad()
        if optimizer.schedule is not None:
            optimizer.schedule.step()


def values(network):
    return {name: value.numpy() for name, value in network.state_dict().items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


@given(st.sampled_from(list(EACH)), st.integers(0, 5), st.booleans())
def test_a_resumed_run_equals_an_unbroken_one(name, at, reverse):
    def make(network):
        parameters = network.parameters()
        return EACH[name](
            parameters=parameters[::-1] if reverse else parameters,
            weight_decay=None if "weight_decay" in EACH[name]().settings else 0.01,
        )

    unbroken = model()
    train(unbroken, EACH[name](
        parameters=unbroken.parameters(),
        weight_decay=None if "weight_decay" in EACH[name]().settings else 0.01,
    ), 7)  # fmt: skip
    first = model()
    optimizer = make(first)
    train(first, optimizer, at)
    second = model()
    resumed = make(second)
    second.set_state_dict(first.state_dict())
    resumed.set_state_dict(optimizer.state_dict())
    train(second, resumed, 7 - at, start=at)
    assert_same(values(second), values(unbroken))


def test_through_a_file_in_a_new_process(tmp_path):
    script = """
import sys, numpy as np, optlab as ol
sys.path.insert(0, sys.argv[1])
from tests.optimizer.test_state import model, train
network = model()
schedule = ol.optimizer.lr.CosineAnnealingDecay(0.1, 10)
optimizer = ol.optimizer.Adam(schedule, parameters=network.parameters()[::-1], amsgrad=True)
state = ol.load(sys.argv[2])
network.set_state_dict(state["model"])
optimizer.set_state_dict(state["optimizer"])
train(network, optimizer, 4, start=3)
np.savez(sys.argv[3], **{name: value.numpy() for name, value in network.state_dict().items()})
"""
    network = model()
    schedule = ol.optimizer.lr.CosineAnnealingDecay(0.1, 10)
    optimizer = ol.optimizer.Adam(schedule, parameters=network.parameters(), amsgrad=True)
    train(network, optimizer, 3)
    path, out = tmp_path / "run.optlab", tmp_path / "out.npz"
    ol.save({"model": network.state_dict(), "optimizer": optimizer.state_dict()}, path)
    train(network, optimizer, 4, start=3)
    subprocess.run([sys.executable, "-c", script, ".", path, out], check=True)
    assert_same(values(network), dict(np.load(out)))


def test_the_names_are_those_of_the_structure():
    network = model()
    optimizer = ol.optimizer.Adam(0.1, parameters=network.parameters())
    keys = {"0.weight.t", "0.weight.moment1", "0.weight.moment2", "2.bias.t", "learning_rate"}
    assert keys <= optimizer.state_dict().keys()


def test_the_rate_and_the_schedule_come_along():
    network = model()
    optimizer = ol.optimizer.SGD(0.1, parameters=network.parameters())
    optimizer.set_lr(0.025)
    fresh = ol.optimizer.SGD(0.1, parameters=network.parameters())
    fresh.set_state_dict(optimizer.state_dict())
    assert fresh.get_lr() == 0.025


def test_two_parameters_of_one_name_and_some_without():
    a, b, c = (ol.Parameter([float(i)], name=n) for i, n in enumerate(["w", "w", None]))
    optimizer = ol.optimizer.Momentum(0.1, parameters=[a, b, c])
    optimizer.apply_gradients([(b, np.ones(1, np.float32))])
    state = optimizer.state_dict()
    assert (state["w.t"], state["w (2).t"], state["parameter 2.t"]) == (0, 1, 0)


def actor_and_critic(make, order=1, named=False):
    """Return two models of one structure and their optimizer; the second has larger gradients."""
    models = [model(), model()]
    for label, one in zip(["actor", "critic"], models, strict=True):
        for name, p in one.named_parameters():
            p.name = f"{label}.{name}" if named else p.name
    optimizer = make([p for one in models[::order] for p in one.parameters()])
    return models, optimizer


class TestModelsOfOneStructure:
    MAKE = {
        "Momentum": lambda ps: ol.optimizer.Momentum(0.1, parameters=ps),
        "LookAhead": lambda ps: ol.optimizer.LookAhead(ol.optimizer.SGD(0.1, parameters=ps), k=1),
    }

    def trained(self, make, order=1, named=False):
        models, optimizer = actor_and_critic(make, order, named)
        x = ol.to_tensor(random(5, 3, dtype="float32"))
        optimizer.minimize((models[0](x) ** 2).mean() + (models[1](x) ** 2).mean() * 10)
        return optimizer

    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    def test_only_their_order_tells_them_apart_which_is_said_once(self, make):
        state = self.trained(make).state_dict()
        _, fresh = actor_and_critic(make, order=-1)
        with pytest.warns(UserWarning, match=r"'0.weight', .*only their order") as said:
            fresh.set_state_dict(state)
        assert [one.filename for one in said] == [__file__]
        assert fresh.state_dict().keys() == state.keys()

    def test_a_warning_made_an_error_leaves_all_as_it_was(self):
        state = self.trained(self.MAKE["Momentum"]).state_dict()
        _, fresh = actor_and_critic(self.MAKE["Momentum"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning):
                fresh.set_state_dict(state)
        assert fresh.state_dict()["0.weight.t"] == 0

    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    def test_names_of_their_own_tell_them_apart(self, make):
        first = self.trained(make, named=True)
        _, fresh = actor_and_critic(make, order=-1, named=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fresh.set_state_dict(first.state_dict())
        assert list(first.state_dict()) != list(fresh.state_dict())
        again = fresh.state_dict()
        inner = again.get("inner_optimizer", again)
        assert inner["actor.0.weight.t"] == 1
        for name, value in first.state_dict().items():
            if "weight." in name:
                np.testing.assert_array_equal(np.asarray(value), np.asarray(again[name]))

    def test_where_nothing_differs_nothing_is_said(self):
        make = lambda ps: ol.optimizer.SGD(0.1, parameters=ps)  # noqa: E731
        state = self.trained(make).state_dict()
        _, fresh = actor_and_critic(make, order=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fresh.set_state_dict(state)

    def test_the_averages_of_them(self):
        make = lambda ps: ol.optimizer.ExponentialMovingAverage(0.5, parameters=ps)  # noqa: E731
        models, average = actor_and_critic(make)
        models[0][0].weight.set_value(np.ones((3, 4), np.float32))
        average.update()
        _, fresh = actor_and_critic(make, order=-1)
        with pytest.warns(UserWarning, match="'0.weight', and only their order"):
            fresh.set_state_dict(average.state_dict())


@pytest.mark.parametrize("declared", [True, False])
def test_no_slot_is_called_as_the_step_count(declared):
    """Such a slot would replace the step count in a state dict."""

    def make():
        class Counting(ol.optimizer.Optimizer):
            slots = {"t": 0.0} if declared else {}

            def slots_for(self, h):
                return {"t": 0.0}

            def update(self, p, g, s, h, c):
                return p - h.learning_rate * g, {"t": s.t + 1}, {}

        return Counting(0.1, parameters=[ol.Parameter([1.0])])

    with pytest.raises(ValueError, match=r"Counting has a slot 't'.*'own_t'"):
        make()


def test_a_slot_with_a_dot_is_refused():
    with pytest.raises(ValueError, match=r"Dotted has a slot 'x.t'.*Write 'x_t'"):

        class Dotted(ol.optimizer.Optimizer):
            slots = {"x.t": 0.0}


def without(name):
    return lambda state: {key: value for key, value in state.items() if key != name}


class TestBadStates:
    def optimizers(self):
        network = model()
        optimizer = ol.optimizer.Adam(0.1, parameters=network.parameters())
        train(network, optimizer, 2)
        return network, optimizer, optimizer.state_dict()

    def refused(self, change, words, error=ValueError):
        network, optimizer, state = self.optimizers()
        before = {k: np.asarray(v) for k, v in optimizer.state_dict().items()}
        weights = values(network)
        state = change(state)
        with pytest.raises(error, match=words):
            optimizer.set_state_dict(state)
        assert_same({k: np.asarray(v) for k, v in optimizer.state_dict().items()}, before)
        assert_same(values(network), weights)

    def test_missing(self):
        self.refused(without("0.weight.moment1"), "0.weight.moment1 is missing")

    def test_unexpected(self):
        self.refused(lambda s: s | {"extra_thing": 1}, "extra_thing is unexpected")

    def test_another_shape(self):
        change = {"0.weight.moment1": np.zeros((3, 5), np.float32)}
        self.refused(lambda s: s | change, r"0.weight.moment1 is float32 of shape \(3, 5\)")

    def test_another_dtype(self):
        change = {"0.weight.moment1": np.zeros((3, 4))}
        self.refused(lambda s: s | change, "0.weight.moment1 is float64")

    @pytest.mark.parametrize("count", [-1, 1.5, "2", None, True])
    def test_a_step_count_that_is_none(self, count):
        self.refused(lambda s: s | {"0.weight.t": count}, "0.weight.t must be a step count")

    def test_an_array_that_is_none(self):
        change = {"0.weight.moment1": None}
        self.refused(lambda s: s | change, "0.weight.moment1 is None in place of an array")

    def test_a_float32_copy_that_is_none(self):
        w = ol.Parameter(np.ones(3, np.float16), name="w")
        optimizer = ol.optimizer.SGD(0.1, parameters=[w], multi_precision=True)
        state = optimizer.state_dict()
        state["master_weights"] = {"w": None}
        with pytest.raises(ValueError, match="master_weights w is None in place of an array"):
            optimizer.set_state_dict(state)

    @pytest.mark.parametrize("rate", [-7.0, np.inf, np.nan])
    def test_a_rate_of_a_schedule_that_is_none(self, rate):
        schedule = ol.optimizer.lr.StepDecay(0.1, step_size=2)
        optimizer = ol.optimizer.SGD(schedule, parameters=[ol.Parameter([1.0], name="w")])
        state = optimizer.state_dict()
        state["LR_Scheduler"]["last_lr"] = rate
        with pytest.raises(ValueError, match=r"LR_Scheduler does not fit: .*last_lr"):
            optimizer.set_state_dict(state)
        assert optimizer.get_lr() == 0.1

    def test_a_schedule_whose_rate_does_not_go_with_the_settings(self):
        schedule = ol.optimizer.lr.StepDecay(0.05, step_size=2)
        w = ol.Parameter([1.0], name="w")
        optimizer = ol.optimizer.Rprop(schedule, learning_rate_range=(0.001, 0.1), parameters=[w])
        state = optimizer.state_dict()
        state["LR_Scheduler"]["last_lr"] = 5.0
        with pytest.raises(ValueError, match="LR_Scheduler does not fit: learning_rate_range"):
            optimizer.set_state_dict(state)
        assert optimizer.get_lr() == 0.05

    def test_a_rate_that_is_none(self):
        self.refused(lambda s: s | {"learning_rate": -1.0}, "learning_rate must be finite")

    def test_a_rate_that_does_not_go_with_the_settings(self):
        w = ol.Parameter([1.0], name="w")
        optimizer = ol.optimizer.Rprop(0.01, learning_rate_range=(0.001, 0.1), parameters=[w])
        with pytest.raises(ValueError, match="learning_rate: learning_rate_range must be"):
            optimizer.set_state_dict(optimizer.state_dict() | {"learning_rate": 5.0})
        assert optimizer.get_lr() == 0.01

    def test_another_class(self):
        other = ol.optimizer.SGD(0.1, parameters=model().parameters()).state_dict()
        self.refused(lambda s: other, "not a state of Adam for these parameters")

    def test_another_model(self):
        parameters = ol.nn.Linear(2, 2).parameters()
        other = ol.optimizer.Adam(0.1, parameters=parameters).state_dict()
        self.refused(lambda s: other, "is missing")

    def test_no_dict(self):
        self.refused(lambda s: [1, 2], "takes what state_dict gave, a dict; got list", TypeError)

    def test_a_schedule_of_another_class(self):
        schedule = ol.optimizer.lr.StepDecay(0.1, 5)
        network = model()
        optimizer = ol.optimizer.SGD(schedule, parameters=network.parameters())
        state = optimizer.state_dict()
        state["LR_Scheduler"] = ol.optimizer.lr.NoamDecay(10, 5).state_dict()
        with pytest.raises(ValueError, match="LR_Scheduler does not fit"):
            optimizer.set_state_dict(state)

    def test_a_schedule_where_there_is_none(self):
        schedule = ol.optimizer.lr.StepDecay(0.1, 5)
        state = ol.optimizer.SGD(schedule, parameters=model().parameters()).state_dict()
        optimizer = ol.optimizer.SGD(0.1, parameters=model().parameters())
        with pytest.raises(ValueError, match="LR_Scheduler is unexpected"):
            optimizer.set_state_dict(state)


def test_float16_with_its_float32_copies():
    def run(steps, state=None, start=None, at=0):
        p = ol.Parameter(np.ones(5, np.float16) if start is None else start, name="p")
        optimizer = ol.optimizer.Adam(1e-4, parameters=[p], multi_precision=True)
        if state is not None:
            optimizer.set_state_dict(state)
        for t in range(at, at + steps):
            p.grad = random(5, seed=t).astype(np.float16)
            optimizer.step()
        return p.numpy(), optimizer.state_dict()

    unbroken, _ = run(9)
    half, state = run(4)
    resumed, _ = run(5, state, half, at=4)
    np.testing.assert_array_equal(unbroken, resumed)
    del state["master_weights"]["p"]
    with pytest.raises(ValueError, match="master_weights p is missing"):
        run(1, state, half)


@pytest.mark.parametrize("alias", ["set_dict", "load_state_dict"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        ol.optimizer.LookAhead,
        lambda inner: ol.optimizer.ExponentialMovingAverage.around(inner, decay=0.5),
    ],
    ids=["alone", "LookAhead", "EMA"],
)
def test_aliases_do_what_set_state_dict_does(alias, wrap):
    def make():
        network = model()
        return network, wrap(ol.optimizer.Adam(0.1, parameters=network.parameters()))

    trained, optimizer = make()
    train(trained, optimizer, 3)
    optimizer.set_lr(0.05)
    state = optimizer.state_dict()
    network, other = make()
    assert getattr(other, alias)(state) is None
    assert_same(flat(other.state_dict()), flat(state))
    network.set_state_dict(trained.state_dict())
    train(trained, optimizer, 2, start=3)
    train(network, other, 2, start=3)
    assert_same(values(network), values(trained))
    before = flat(other.state_dict())
    with pytest.raises(ValueError, match="intruder is unexpected"):
        getattr(other, alias)(state | {"intruder": 1})
    assert_same(flat(other.state_dict()), before)


def test_aliases_of_averages():
    for name in ("set_dict", "load_state_dict"):
        ema, other = (
            ol.optimizer.ExponentialMovingAverage(0.5, parameters=[ol.Parameter([2.0])])
            for _ in range(2)
        )
        ema.update()
        getattr(other, name)(ema.state_dict())
        assert other.averages()[0] == 2.0
        assert other.state_dict()["parameter 0.ema_decays"] == 0.5


def test_aliases_of_clearing():
    for name in ("zero_grad", "clear_gradients", "clear_grad"):
        w = ol.Parameter([1.0])
        optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        w.sum().backward()
        getattr(optimizer, name)()
        assert w.grad.tolist() == [0.0]
        getattr(optimizer, name)(set_to_zero=False)
        assert w.grad is None


def flat(state):
    """Return a state dict with arrays, with the states of inner optimizers merged in."""
    found = {}
    for name, value in state.items():
        if isinstance(value, dict):
            found |= {f"{name} {k}": v for k, v in flat(value).items()}
        else:
            found[name] = np.asarray(value)
    return found


class TestNamesThatCameLater:
    """Layers name their parameters only when names are requested."""

    @pytest.mark.parametrize("named_first", [True, False])
    @pytest.mark.parametrize("wrapped", [False, True])
    def test_a_state_fits_with_and_without_names(self, named_first, wrapped):
        def make(named):
            layer = ol.nn.Linear(2, 3)
            if named:
                layer.parameters()
            inner = ol.optimizer.Adam(0.1, parameters=[layer.bias, layer.weight])
            return layer, ol.optimizer.LookAhead(inner) if wrapped else inner

        layer, optimizer = make(named_first)
        optimizer.minimize((layer(ol.ones([1, 2])) ** 2).sum())
        _, other = make(not named_first)
        other.set_state_dict(optimizer.state_dict())
        given, found = optimizer.state_dict(), other.state_dict()
        if wrapped:
            given, found = given["inner_optimizer"], found["inner_optimizer"]
        for one, two in zip(given.values(), found.values(), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


@pytest.mark.parametrize("key", [None, "abc", 5, [], [1, 2.5]])
def test_a_bad_random_key_changes_nothing(key):
    optimizer = ol.optimizer.Dpsgd(0.1, parameters=[ol.Parameter([1.0], name="w")])
    state = optimizer.state_dict() | {"random_key": key, "w.t": 77}
    with pytest.raises(ValueError, match="random_key is no key"):
        optimizer.set_state_dict(state)
    assert optimizer.state_dict()["w.t"] == 0


def test_an_ensemble_goes_through_a_file(tmp_path):
    def make():
        p = ol.Parameter(ol.ensemble(np.ones((4, 3))), name="p")
        return p, ol.optimizer.Adam(ol.ensemble([0.1, 0.2, 0.3, 0.4]), parameters=[p])

    p, optimizer = make()
    optimizer.minimize((p**2).sum())
    ol.save(optimizer.state_dict(), tmp_path / "state")
    _, other = make()
    other.set_state_dict(ol.load(tmp_path / "state"))
    one, two = optimizer.state_dict(), other.state_dict()
    np.testing.assert_array_equal(one["p.moment1"].numpy(), two["p.moment1"].numpy())
    assert one["learning_rate"] == two["learning_rate"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("lr", "set_lr"), ("learning_rate", "set_lr"), ("beta1", "is given"), ("grad_clip", "given")],
)
def test_settings_are_not_attributes(name, words):
    optimizer = ol.optimizer.Adam(0.1)
    with pytest.raises(AttributeError, match=words):
        setattr(optimizer, name, 0.5)
    with pytest.raises(AttributeError, match="groups"):
        optimizer.param_groups  # noqa: B018
    assert not hasattr(optimizer, "param_groups")


@pytest.mark.parametrize("named", ["the first", "the second"])
def test_that_only_one_side_knows_names_is_said_where_order_decides(named):
    def make(order, ask):
        network = ol.nn.Sequential(ol.nn.Linear(3, 3), ol.nn.Linear(3, 3))
        if ask:
            network.parameters()
        weights = [network[0].weight, network[1].weight]
        return ol.optimizer.Momentum(0.1, parameters=[weights[i] for i in order])

    first, second = make([0, 1], named == "the first"), make([1, 0], named == "the second")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second.set_state_dict(first.state_dict())  # no slot holds anything that could be swapped
    for number, p in enumerate(first.parameters):
        p.grad = np.full((3, 3), number, np.float32)
    first.step()
    with pytest.warns(UserWarning, match=r"only one of the two knows names.*model.parameters"):
        second.set_state_dict(first.state_dict())
