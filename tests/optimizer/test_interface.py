"""The interface of training loops: gradients, rates, schedules, groups, policies."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH, give, random


def pair():
    return [
        ol.Parameter(random(3), name="a"),
        ol.Parameter(random(2, 2, seed=1), name="b"),
    ]


def loss_of(parameters):
    return sum((i + 1) * (p * p).sum() for i, p in enumerate(parameters))


class TestBackwardAndApply:
    def test_are_what_minimize_does(self):
        paths = []
        for way in ("minimize", "parts", "apply_optimize", "by hand"):
            parameters = pair()
            optimizer = ol.optimizer.Adam(0.1, parameters=parameters)
            for _ in range(3):
                loss = loss_of(parameters)
                if way == "minimize":
                    ops, pairs = optimizer.minimize(loss)
                    assert ops == []
                    assert [p for p, _ in pairs] == parameters
                elif way == "by hand":
                    loss.backward()
                    optimizer.step()
                else:
                    pairs = optimizer.backward(loss)
                    if way == "parts":
                        assert optimizer.apply_gradients(pairs) == []
                    else:
                        assert optimizer.apply_optimize(loss, None, pairs) == []
                optimizer.clear_grad()
            paths.append([p.numpy() for p in parameters])
        for path in paths[1:]:
            for one, other in zip(path, paths[0], strict=True):
                np.testing.assert_array_equal(one, other)

    def test_a_loss_that_has_gone_backward_is_not_taken_twice(self):
        parameters = pair()
        optimizer = ol.optimizer.SGD(0.1, parameters=parameters)
        loss = loss_of(parameters)
        loss.backward()
        _, pairs = optimizer.minimize(loss)
        np.testing.assert_array_equal(pairs[0][1].numpy(), 2 * random(3))

    def test_changed_gradients_are_used_in_place_of_the_parameters_own(self):
        a, b = pair()
        optimizer = ol.optimizer.SGD(1.0, parameters=[a, b])
        before = a.numpy()
        optimizer.backward(loss_of([a, b]))
        optimizer.apply_gradients([(a, np.ones(3))])
        np.testing.assert_array_equal(a.numpy(), before - 1.0)
        np.testing.assert_array_equal(b.numpy(), random(2, 2, seed=1))
        assert optimizer.state_dict() == {"a.t": 1, "b.t": 0, "learning_rate": 1.0}

    @pytest.mark.parametrize(("parameters", "left_out"), [(["a"], None), (None, ["b"])])
    def test_only_some_parameters(self, parameters, left_out):
        a, b = pair()
        optimizer = ol.optimizer.SGD(0.1, parameters=[a, b])
        _, pairs = optimizer.minimize(loss_of([a, b]), parameters=parameters, no_grad_set=left_out)
        assert [p for p, _ in pairs] == [a]
        assert not np.array_equal(a.numpy(), random(3))
        np.testing.assert_array_equal(b.numpy(), random(2, 2, seed=1))

    def test_parameters_as_tensors(self):
        a, b = pair()
        optimizer = ol.optimizer.SGD(0.1, parameters=[a, b])
        assert [p for p, _ in optimizer.backward(loss_of([a, b]), parameters=[b])] == [b]

    @pytest.mark.parametrize(
        ("pairs", "error", "words"),
        [
            (lambda a, b: [a], TypeError, "pairs"),
            (lambda a, b: [(ol.Parameter([1.0], name="z"), np.ones(1))], ValueError, "'z'"),
            (lambda a, b: [(a, np.ones(3)), (a, np.ones(3))], ValueError, "'?a'? twice"),
            (lambda a, b: [(b, np.ones((2, 2))), (a, np.ones(4))], ValueError, r"shape \(4,\)"),
            (
                lambda a, b: [(b, np.ones((2, 2))), (a, np.ones(3, "float32"))],
                TypeError,
                "a is float32, the parameter float64",
            ),
            (lambda a, b: [(b, np.ones((2, 2))), (a, "one")], TypeError, "Give an array"),
        ],
    )
    def test_what_does_not_fit_is_named_before_anything_changes(self, pairs, error, words):
        a, b = pair()
        optimizer = ol.optimizer.Momentum(0.1, parameters=[a, b])
        with pytest.raises(error, match=words):
            optimizer.apply_gradients(pairs(a, b))
        np.testing.assert_array_equal(a.numpy(), random(3))
        np.testing.assert_array_equal(b.numpy(), random(2, 2, seed=1))
        assert optimizer.state_dict()["b.t"] == 0

    def test_static_graphs_are_refused_by_name(self):
        a, b = pair()
        optimizer = ol.optimizer.SGD(0.1, parameters=[a, b])
        with pytest.raises(TypeError, match="startup_program belongs to static graphs"):
            optimizer.minimize(loss_of([a, b]), startup_program=object())

    def test_callbacks_are_called_with_every_parameter_and_its_gradient(self):
        a, b = pair()
        optimizer = ol.optimizer.SGD(0.1, parameters=[a, b])
        seen = []
        calls = [lambda p, g: seen.append((p, g.numpy())), lambda *pair: seen.append(len(pair))]
        pairs = optimizer.backward(loss_of([a, b]), callbacks=calls)
        assert [p for p, _ in pairs] == [seen[0][0], seen[2][0]]
        assert seen[1::2] == [2, 2]
        for p, g in seen[::2]:
            np.testing.assert_array_equal(g, p.grad.numpy())
        seen.clear()
        optimizer.backward(loss_of([a, b]), None, [b], None, calls)
        assert [p for p, _ in seen[::2]] == [b]

    @pytest.mark.parametrize("callbacks", [print, [3], "print", {"a": print}])
    def test_callbacks_are_a_list_of_functions(self, callbacks):
        a, b = pair()
        optimizer = ol.optimizer.SGD(0.1, parameters=[a, b])
        with pytest.raises(TypeError, match="callbacks is a list of functions"):
            optimizer.backward(loss_of([a, b]), callbacks=callbacks)
        assert a.grad is None  # nothing has run

    def test_a_loss_that_is_no_tensor(self):
        optimizer = ol.optimizer.SGD(0.1, parameters=pair())
        with pytest.raises(TypeError, match="the loss must be a Tensor; got float"):
            optimizer.minimize(1.0)

    def test_a_template_says_what_it_lacks(self):
        for call in (
            lambda o: o.step(),
            lambda o: o.minimize(ol.to_tensor(1.0)),
            lambda o: o.apply_gradients([]),
        ):
            with pytest.raises(RuntimeError, match="has no parameters"):
                call(ol.optimizer.SGD(0.1))

    def test_regularization_appended(self):
        a, b = pair()
        b.regularizer = ol.regularizer.L1Decay(0.5)
        optimizer = ol.optimizer.SGD(0.1, parameters=[a, b])
        pairs = optimizer.backward(loss_of([a, b]))
        (_, one), (_, other) = optimizer.append_regularization_ops(pairs, ol.regularizer.L2Decay(2))
        np.testing.assert_allclose(one.numpy(), a.grad.numpy() + 2 * a.numpy())
        np.testing.assert_allclose(other.numpy(), b.grad.numpy() + 0.5 * np.sign(b.numpy()))


class TestRates:
    def test_a_schedule_sets_the_rate_of_every_step_and_is_never_advanced_by_it(self):
        schedule = ol.optimizer.lr.StepDecay(0.5, step_size=2, gamma=0.1)
        p = ol.Parameter(np.zeros(1))
        optimizer = ol.optimizer.SGD(schedule, parameters=[p])
        seen = []
        for epoch in range(4):
            for _ in range(2):
                before = p.numpy()
                give(p, [1.0])
                optimizer.step()
                optimizer.clear_grad()
                seen.append(float((before - p.numpy())[0]))
            assert schedule.last_epoch == epoch
            schedule.step()
        np.testing.assert_allclose(seen, [0.5] * 4 + [0.05] * 4)
        assert optimizer.get_lr() == schedule()

    def test_set_lr_under_a_schedule_is_an_error_and_a_schedule_can_be_changed(self):
        optimizer = ol.optimizer.SGD(ol.optimizer.lr.StepDecay(0.5, 2), parameters=pair())
        with pytest.raises(RuntimeError, match=r"StepDecay.*set_lr_scheduler"):
            optimizer.set_lr(0.1)
        assert optimizer.get_lr() == 0.5
        optimizer.set_lr_scheduler(ol.optimizer.lr.ExponentialDecay(0.25, 0.9))
        assert optimizer.get_lr() == 0.25
        with pytest.raises(TypeError, match=r"takes a schedule of .*; got 0.1"):
            optimizer.set_lr_scheduler(0.1)
        with pytest.raises(TypeError, match="set_lr takes a number"):
            ol.optimizer.SGD(0.1).set_lr(ol.optimizer.lr.StepDecay(0.5, 2))

    def test_a_plain_rate_can_give_way_to_a_schedule(self):
        optimizer = ol.optimizer.SGD(0.1, parameters=pair())
        optimizer.set_lr_scheduler(ol.optimizer.lr.StepDecay(0.5, 2))
        assert optimizer.get_lr() == 0.5

    def test_a_template_gives_each_copy_a_schedule_of_its_own(self):
        template = ol.optimizer.SGD(ol.optimizer.lr.ExponentialDecay(1.0, 0.5))
        one, other = template.bind(pair()), template.bind(pair())
        one.schedule.step()
        assert (one.get_lr(), other.get_lr(), template.get_lr()) == (0.5, 1.0, 1.0)

    @pytest.mark.parametrize("number", [0.25, 1, np.float32(0.25), np.array(0.25), ol.to_tensor])
    def test_rates_of_every_kind_of_number(self, number):
        rate = number(0.25) if callable(number) else number
        optimizer = ol.optimizer.SGD(rate, parameters=pair())
        assert optimizer.get_lr() == float(rate)
        assert type(optimizer.get_lr()) is float

    def test_the_schedule_stands_in_the_words_for_the_optimizer(self):
        text = repr(ol.optimizer.SGD(ol.optimizer.lr.StepDecay(0.5, 2)))
        assert text.startswith("SGD(learning_rate=StepDecay(")


class TestAddingGroups:
    def test_a_group_joins_with_its_settings(self):
        a, b = pair()
        optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[a])
        optimizer.add_param_group({"params": [b], "momentum": 0.0, "learning_rate": 10.0})
        for _ in range(2):
            optimizer.apply_gradients([(a, np.ones(3)), (b, np.ones((2, 2)))])
        np.testing.assert_allclose(a.numpy(), random(3) - 0.1 * (1 + 1.5))
        np.testing.assert_allclose(b.numpy(), random(2, 2, seed=1) - 1.0 * 2)

    @pytest.mark.parametrize(
        ("group", "error", "words"),
        [
            (lambda a, b: [b], TypeError, "a group is a dict"),
            (lambda a, b: {"params": [a]}, ValueError, "'a'.*given twice"),
            (lambda a, b: {"params": [b], "lr": 0.1}, TypeError, "'learning_rate'"),
            (lambda a, b: {"params": [b], "momentum": 2.0}, ValueError, "momentum must be in"),
        ],
    )
    def test_what_does_not_fit(self, group, error, words):
        a, b = pair()
        optimizer = ol.optimizer.Momentum(0.1, parameters=[a])
        with pytest.raises(error, match=words):
            optimizer.add_param_group(group(a, b))
        assert optimizer.parameters == [a]


class TestGradientsThatAreNotFinite:
    def train(self, policy, bad):
        a, b = pair()
        optimizer = ol.optimizer.Adam(0.1, parameters=[a, b], not_finite=policy)
        optimizer.apply_gradients([(a, np.ones(3)), (b, np.ones((2, 2)))])
        before = [a.numpy(), b.numpy()], optimizer.state_dict()
        optimizer.apply_gradients([(a, np.ones(3)), (b, np.full((2, 2), bad))])
        return before, ([a.numpy(), b.numpy()], optimizer.state_dict())

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_skip_leaves_everything(self, bad):
        before, after = self.train("skip", bad)
        for one, other in zip(before[0], after[0], strict=True):
            np.testing.assert_array_equal(one, other)
        for name, value in before[1].items():
            np.testing.assert_array_equal(np.asarray(value), np.asarray(after[1][name]))

    def test_pass_uses_them(self):
        _, (values, state) = self.train("pass", np.nan)
        assert np.isnan(values[1]).all()
        assert np.isfinite(values[0]).all()
        assert state["b.t"] == 2

    def test_raise_names_the_parameter(self):
        with pytest.raises(FloatingPointError, match=r"gradient of b .* 4 elements .* not finite"):
            self.train("raise", np.inf)

    @pytest.mark.parametrize("policy", ["skip", "raise", "pass"])
    def test_finite_gradients_are_the_same_under_every_policy(self, policy):
        _, (values, _) = self.train(policy, 0.5)
        _, (expected, _) = self.train("pass", 0.5)
        np.testing.assert_array_equal(values[1], expected[1])

    def test_another_word_is_refused(self):
        with pytest.raises(ValueError, match="not_finite must be one of 'pass', 'skip', 'raise'"):
            ol.optimizer.SGD(0.1, not_finite="stop")

    def test_row_sparse_gradients_are_looked_at_too(self):
        table = ol.nn.Embedding(4, 2, sparse=True)
        optimizer = ol.optimizer.SGD(0.1, parameters=table.parameters(), not_finite="raise")
        before = table.weight.numpy()
        table(ol.to_tensor([1])).backward(np.full((1, 2), np.inf, np.float32))
        with pytest.raises(FloatingPointError):
            optimizer.step()
        np.testing.assert_array_equal(table.weight.numpy(), before)


class TestFloat16:
    @pytest.mark.parametrize("name", list(EACH))
    def test_moves_too_small_for_float16_add_up_in_the_float32_copy(self, name):
        p = ol.Parameter(np.ones(4, np.float16))
        optimizer = EACH[name](parameters=[p], multi_precision=True)
        optimizer.set_lr(1e-5)
        for _ in range(200):
            p.grad = np.ones(4, np.float16)
            optimizer.step()
        assert p.dtype == "float16"
        assert float(p.numpy()[0]) < 1.0
        state = optimizer.state_dict()
        master = state["master_weights"]["parameter 0"]
        assert master.dtype == "float32"
        np.testing.assert_array_equal(p.numpy(), master.numpy().astype(np.float16))
        slots = [value for key, value in state.items() if isinstance(value, ol.Tensor)]
        assert all(slot.dtype == "float32" for slot in slots)

    def test_without_it_they_are_lost(self):
        p = ol.Parameter(np.ones(4, np.float16))
        optimizer = ol.optimizer.SGD(1e-5, parameters=[p])
        for _ in range(200):
            p.grad = np.ones(4, np.float16)
            optimizer.step()
        np.testing.assert_array_equal(p.numpy(), 1.0)
        assert "master_weights" not in optimizer.state_dict()

    def test_a_value_set_in_between_is_followed(self):
        p = ol.Parameter(np.ones(2, np.float16))
        optimizer = ol.optimizer.SGD(0.5, parameters=[p], multi_precision=True)
        p.grad = np.ones(2, np.float16)
        optimizer.step()
        p.set_value(np.full(2, 3.0, np.float16))
        optimizer.step()
        np.testing.assert_array_equal(p.numpy(), 2.5)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    @pytest.mark.parametrize("name", list(EACH))
    def test_a_rule_without_copy_computes_in_float32_and_rounds_once(self, name, dtype):
        if dtype == "bfloat16":
            pytest.importorskip("ml_dtypes")
        p = ol.Parameter(ol.to_tensor(random(4), dtype=dtype))
        wide = ol.Parameter(p.numpy().astype(np.float32))
        narrow_one, wide_one = (EACH[name](parameters=[tensor]) for tensor in (p, wide))
        g = p.data * 0 + np.arange(1, 5).astype(p.dtype)
        narrow_one.apply_gradients([(p, g.astype(p.dtype))])
        wide_one.apply_gradients([(wide, g.astype(np.float32))])
        assert p.dtype == dtype
        np.testing.assert_array_equal(p.numpy(), wide.numpy().astype(p.data.dtype))

    def test_a_float32_gradient_fits_a_parameter_with_a_float32_copy(self):
        p = ol.Parameter(np.ones(2, np.float16))
        optimizer = ol.optimizer.SGD(1.0, parameters=[p], multi_precision=True)
        optimizer.apply_gradients([(p, np.full(2, 1e-4, np.float32))])
        master = optimizer.state_dict()["master_weights"]["parameter 0"].numpy()
        np.testing.assert_array_equal(master, np.float32(1) - np.float32(1e-4))

    def test_float32_parameters_need_no_copy(self):
        optimizer = ol.optimizer.SGD(0.5, parameters=pair(), multi_precision=True)
        assert "master_weights" not in optimizer.state_dict()


@pytest.mark.parametrize("bound", [True, False])
class TestARateThatDoesNotGoWithTheOtherSettings:
    """Settings that the constructor refuses are refused later, too."""

    def make(self, bound):
        return ol.optimizer.Rprop(0.1, parameters=[ol.Parameter([1.0])] if bound else None)

    @pytest.mark.parametrize("rate", [100.0, ol.ensemble([0.1, 100.0])])
    def test_set_lr(self, bound, rate):
        optimizer = self.make(bound)
        with pytest.raises(ValueError, match=r"learning_rate_range must be .* learning_rate=100.0"):
            optimizer.set_lr(rate)
        assert optimizer.get_lr() == 0.1

    def test_set_lr_scheduler(self, bound):
        optimizer = self.make(bound)
        with pytest.raises(ValueError, match="learning_rate_range must be"):
            optimizer.set_lr_scheduler(ol.optimizer.lr.StepDecay(100.0, 2))
        assert (optimizer.get_lr(), optimizer.schedule) == (0.1, None)

    def test_a_range_of_the_class(self, bound):
        class Mine(ol.optimizer.SGD):
            ranges = {"learning_rate": (0.0, 1.0)}

        optimizer = Mine(0.1, parameters=[ol.Parameter([1.0])] if bound else None)
        with pytest.raises(ValueError, match=r"learning_rate must be in \[0, 1\); got 2.0"):
            optimizer.set_lr(2)


def test_a_backward_that_failed_is_not_taken_for_one_that_was_done():
    w = ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    (w * 3).sum().backward()
    loss, told = (w * 100).sum(), []

    def once(g):
        told.append(g)
        if len(told) == 1:
            raise KeyError("once")

    loss.register_hook(once)
    with pytest.raises(KeyError):
        optimizer.minimize(loss)
    try:
        optimizer.minimize(loss)
    except RuntimeError:
        assert w.numpy() == 1.0  # the saved values are gone, and the error states it
    else:
        assert w.grad.numpy() == 103.0


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("multiplier", -1.0, ValueError, "multiplier must be"),
        ("multiplier", float("nan"), ValueError, "multiplier must be"),
        ("regularizer", "l2", TypeError, "l2"),
        ("grad_clip", 1.0, TypeError, "grad_clip takes ClipGradByValue"),
        ("grad_clip", ol.nn.ClipGradByNorm, TypeError, "grad_clip takes ClipGradByValue"),
    ],
)
def test_attributes_of_a_group_are_checked(name, value, error, words):
    group = ol.optimizer.SGD(0.1, parameters=[ol.Parameter([1.0])]).groups[0]
    before = getattr(group, name)
    with pytest.raises(error, match=words):
        setattr(group, name, value)
    assert getattr(group, name) == before


def test_a_number_is_a_decay_of_a_group():
    w = ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(0.5, parameters=[w])
    optimizer.groups[0].regularizer = 0.5
    w.grad = [0.0]
    optimizer.step()
    assert w.numpy() == 0.75


def test_a_clip_that_writes_into_a_gradient_is_refused_and_the_gradient_stays():
    def clip(pairs):
        for _, g in pairs:
            g *= 0
        return pairs

    w = ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(0.5, parameters=[w], grad_clip=clip)
    w.grad = [2.0]
    with pytest.raises(TypeError, match=r"clip writes into a gradient.*Write g = g \* factor"):
        optimizer.step()
    assert (w.numpy(), w.grad.numpy()) == (1.0, 2.0)


def test_slots_keep_their_declared_order():
    w = ol.Parameter([1.0])
    optimizer = ol.optimizer.RMSProp(0.1, momentum=0.9, parameters=[w])
    before = list(optimizer.state_dict())
    w.grad = [1.0]
    optimizer.step()
    assert list(optimizer.state_dict()) == before
