"""Groups, decay, clipping, and settings of single parameters."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.formulas import adam, path
from tests.optimizer.helpers import EACH, give, random

L1Decay, L2Decay = ol.regularizer.L1Decay, ol.regularizer.L2Decay


def one_step(p, g, **common):
    """Take a step of plain SGD at rate 1; return minus the step: the effective gradient."""
    before = p.numpy()
    give(p, g)
    optimizer = ol.optimizer.SGD(1.0, parameters=[p], **common)
    optimizer.step()
    return before - p.numpy()


class TestDecay:
    @pytest.mark.parametrize("decay", [0.25, L2Decay(0.25), np.float32(0.25)])
    def test_l2_adds_the_parameter(self, decay):
        used = one_step(ol.Parameter([2.0, -4.0]), [1.0, 1.0], weight_decay=decay)
        np.testing.assert_allclose(used, [1.5, 0.0], rtol=1e-6)

    def test_l1_adds_the_sign(self):
        used = one_step(ol.Parameter([2.0, -4.0, 0.0]), [1.0, 1.0, 1.0], weight_decay=L1Decay(0.25))
        np.testing.assert_allclose(used, [1.25, 0.75, 1.0], rtol=1e-6)

    def test_is_added_at_every_step_at_the_value_of_then(self):
        p = ol.Parameter(np.array([2.0, -4.0]))
        optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[p], weight_decay=0.25)
        q, v = np.array([2.0, -4.0]), 0.0
        for step in range(4):
            g = random(2, seed=step)
            give(p, g)
            optimizer.step()
            optimizer.clear_grad()
            v = 0.5 * v + (g + 0.25 * q)
            q = q - 0.1 * v
            np.testing.assert_allclose(p.numpy(), q, rtol=1e-13)

    def test_never_changes_the_gradient_that_the_parameter_holds(self):
        p = ol.Parameter([2.0])
        one_step(p, [1.0], weight_decay=0.5)
        assert p.grad.tolist() == [1.0]

    @pytest.mark.parametrize(
        ("own", "used"), [(L1Decay(0.5), 1.5), (L2Decay(0.25), 1.5), (L2Decay(0.0), 1.0)]
    )
    def test_a_parameters_own_regularizer_replaces_the_optimizers(self, own, used):
        p = ol.Parameter([2.0], regularizer=own)
        np.testing.assert_allclose(one_step(p, [1.0], weight_decay=10.0), [used], rtol=1e-6)

    def test_a_parameters_own_regularizer_needs_none_on_the_optimizer(self):
        p = ol.Parameter([2.0], regularizer=L2Decay(0.25))
        np.testing.assert_allclose(one_step(p, [1.0]), [1.5], rtol=1e-6)

    @pytest.mark.parametrize(
        "clip",
        [ol.nn.ClipGradByValue(1.0), ol.nn.ClipGradByNorm(1.0), ol.nn.ClipGradByGlobalNorm(1.0)],
    )
    def test_comes_after_clipping_and_is_not_clipped(self, clip):
        used = one_step(ol.Parameter([100.0]), [50.0], weight_decay=0.5, grad_clip=clip)
        np.testing.assert_allclose(used, [1.0 + 50.0], rtol=1e-6)


class TestOwnSettings:
    def test_learning_rate_multiplies(self):
        p, q = ol.Parameter([0.0], learning_rate=0.5), ol.Parameter([0.0])
        optimizer = ol.optimizer.SGD(0.5, parameters=[p, q])
        give(p, [1.0])
        give(q, [1.0])
        optimizer.step()
        assert (p.item(), q.item()) == (-0.25, -0.5)

    def test_learning_rate_zero_freezes_the_value(self):
        p = ol.Parameter([1.0], learning_rate=0.0)
        assert one_step(p, [1.0]).tolist() == [0.0]

    def test_need_clip_false_is_left_out_of_the_norm_and_untouched(self):
        free, bound = ol.Parameter([0.0], need_clip=False), ol.Parameter([0.0])
        optimizer = ol.optimizer.SGD(
            1.0, parameters=[free, bound], grad_clip=ol.nn.ClipGradByGlobalNorm(2.0)
        )
        give(free, [-100.0])
        give(bound, [-2.0])
        optimizer.step()
        assert (free.item(), bound.item()) == (100.0, 2.0)

    @pytest.mark.parametrize("watched", [False, True])
    @pytest.mark.parametrize(
        "clip",
        [ol.nn.ClipGradByValue(2.0), ol.nn.ClipGradByNorm(2.0), ol.nn.ClipGradByGlobalNorm(2.0)],
    )
    def test_a_clip_is_given_what_has_a_gradient(self, clip, watched):
        given = []

        def watching(pairs):
            given.append([p for p, _ in pairs])
            return clip(pairs)

        none, small, large = ol.Parameter([5.0]), ol.Parameter([[0.0]]), ol.Parameter([0.0])
        other = ol.Parameter(np.array([7.0]))  # the only one of its dtype
        optimizer = ol.optimizer.Momentum(
            1.0,
            parameters=[none, small, other, large],
            grad_clip=watching if watched else clip,
        )
        give(large, [-100.0])
        optimizer.step()
        assert [none.item(), small.item(), other.item(), large.item()] == [5.0, 0.0, 7.0, 2.0]
        optimizer.clear_grad(set_to_zero=False)
        give(small, [[1.0]])
        optimizer.step()
        assert [none.item(), small.item(), other.item(), large.item()] == [5.0, -1.0, 7.0, 2.0]
        assert [[id(p) for p in ps] for ps in given] == [[id(large)], [id(small)]] * watched

    def test_a_clip_is_not_asked_where_there_is_no_gradient(self):
        def refuse(pairs):
            raise AssertionError(pairs)

        p, q = ol.Parameter([1.0]), ol.Parameter([1.0])
        optimizer = ol.optimizer.SGD(
            1.0, parameters=[{"params": [p], "grad_clip": refuse}, {"params": [q]}]
        )
        give(q, [1.0])
        optimizer.step()
        assert (p.item(), q.item()) == (1.0, 0.0)

    @pytest.mark.parametrize("make", EACH.values(), ids=list(EACH))
    def test_neighbours_with_other_settings_do_not_mix(self, make):
        """Adjacent parameters with different settings follow the paths of separate runs."""

        def fresh():
            return [
                ol.Parameter(random(2, seed=1)),
                ol.Parameter(random(3, seed=2), learning_rate=0.5),
                ol.Parameter(random(2, seed=3), regularizer=L1Decay(0.3)),
                ol.Parameter(random(2, seed=4), learning_rate=0.5, regularizer=L2Decay(0.1)),
                ol.Parameter(random(1, seed=5)),
            ]

        together, apart = fresh(), fresh()
        everyone = make(parameters=together, weight_decay=0.05)
        singles = [make(parameters=[p], weight_decay=0.05) for p in apart]
        for step in range(4):
            for i, p in enumerate([*together, *apart]):
                give(p, random(*p.shape, seed=50 * step + i % 5))
            for optimizer in (everyone, *singles):
                optimizer.step()
                optimizer.clear_grad()
        for p, q in zip(together, apart, strict=True):
            assert np.array_equal(p.numpy(), q.numpy())


class TestGroups:
    def test_learning_rate_multiplies_the_global_one(self):
        p, q = ol.Parameter([0.0]), ol.Parameter([0.0], learning_rate=0.5)
        optimizer = ol.optimizer.SGD(
            0.5, parameters=[{"params": [p]}, {"params": [q], "learning_rate": 0.25}]
        )
        give(p, [-1.0])
        give(q, [-1.0])
        optimizer.step()
        assert (p.item(), q.item()) == (0.5, 0.0625)
        optimizer.set_lr(1.0)
        optimizer.step()
        assert (p.item(), q.item()) == (1.5, 0.1875)

    def test_a_setting_of_its_own(self):
        p, q = ol.Parameter(np.zeros(3)), ol.Parameter(np.zeros(3))
        optimizer = ol.optimizer.Adam(
            0.1,
            parameters=[
                {"params": [p]},
                {"params": [q], "beta1": 0.5, "epsilon": 0.1, "amsgrad": True},
            ],
        )
        gradients = random(6, 3)
        for g in gradients:
            give(p, g)
            give(q, g)
            optimizer.step()
            optimizer.clear_grad()
        settings = dict(optimizer.settings)
        np.testing.assert_allclose(
            p.numpy(), path(adam, np.zeros(3), gradients, settings)[-1], rtol=1e-12
        )
        settings |= {"beta1": 0.5, "epsilon": 0.1, "amsgrad": True}
        np.testing.assert_allclose(
            q.numpy(), path(adam, np.zeros(3), gradients, settings)[-1], rtol=1e-12
        )

    def test_weight_decay_and_clip_override(self):
        p, q, r = (ol.Parameter([10.0]) for _ in range(3))
        optimizer = ol.optimizer.SGD(
            1.0,
            weight_decay=0.5,
            grad_clip=ol.nn.ClipGradByValue(1.0),
            parameters=[
                {"params": [p]},
                {"params": [q], "weight_decay": L1Decay(2.0)},
                {"params": [r], "weight_decay": None, "grad_clip": None},
            ],
        )
        for each in (p, q, r):
            give(each, [3.0])
        optimizer.step()
        assert [x.item() for x in (p, q, r)] == [10 - 1 - 5, 10 - 1 - 2, 10 - 3]

    def test_the_global_norm_is_that_of_one_group(self):
        p, q, r = (ol.Parameter([0.0]) for _ in range(3))
        optimizer = ol.optimizer.SGD(
            1.0,
            grad_clip=ol.nn.ClipGradByGlobalNorm(1.0),
            parameters=[{"params": [p, q]}, {"params": [r]}],
        )
        for each, g in ((p, -3.0), (q, -4.0), (r, -0.5)):
            give(each, [g])
        optimizer.step()
        np.testing.assert_allclose([x.item() for x in (p, q, r)], [0.6, 0.8, 0.5], rtol=1e-6)

    def test_the_global_norm_of_a_group_spans_its_dtypes(self):
        p, q = ol.Parameter([0.0]), ol.Parameter(np.zeros(1))
        optimizer = ol.optimizer.SGD(
            1.0, grad_clip=ol.nn.ClipGradByGlobalNorm(1.0), parameters=[p, q]
        )
        give(p, [-3.0])
        give(q, [-4.0])
        optimizer.step()
        np.testing.assert_allclose([p.item(), q.item()], [0.6, 0.8], rtol=1e-6)

    def test_one_group_and_one_tensor_need_no_list(self):
        p = ol.Parameter([0.0])
        optimizer = ol.optimizer.SGD(1.0, parameters={"params": p})
        give(p, [-1.0])
        optimizer.step()
        assert p.item() == 1.0

    @pytest.mark.parametrize("key", ["beta3", "lr", "weight_decy", "momentum"])
    def test_an_unknown_key_is_named(self, key):
        with pytest.raises(TypeError, match=f"a group of Adam has no setting '{key}'; it has"):
            ol.optimizer.Adam(parameters=[{"params": [ol.Parameter([1.0])], key: 0.1}])

    @pytest.mark.parametrize(
        ("key", "value"),
        [("beta1", 1.0), ("learning_rate", -1.0), ("learning_rate", "2"), ("epsilon", -1.0)],
    )
    def test_values_of_a_group_are_checked(self, key, value):
        with pytest.raises((ValueError, TypeError), match=key):
            ol.optimizer.Adam(parameters=[{"params": [ol.Parameter([1.0])], key: value}])

    def test_a_schedule_is_the_optimizers(self):
        """A group has a factor: a schedule there would stay at its first rate."""
        group = {
            "params": [ol.Parameter([1.0])],
            "learning_rate": ol.optimizer.lr.StepDecay(0.1, 2),
        }
        with pytest.raises(TypeError, match=r"got a StepDecay.*SGD\(StepDecay\(\.\.\.\)"):
            ol.optimizer.SGD(0.1, parameters=[group])
        optimizer = ol.optimizer.SGD(0.1, parameters=[ol.Parameter([1.0])])
        with pytest.raises(TypeError, match="one optimizer for each group"):
            optimizer.add_param_group(group)

    def test_regularization_of_a_group_of_fluid_is_called_weight_decay(self):
        group = {"params": [ol.Parameter([1.0])], "regularization": ol.regularizer.L2Decay(0.1)}
        with pytest.raises(TypeError, match="In a group it is called 'weight_decay'"):
            ol.fluid.optimizer.SGDOptimizer(0.1, parameter_list=[group])

    def test_a_group_has_params(self):
        with pytest.raises(TypeError, match="a group is a dict with the key 'params'"):
            ol.optimizer.SGD(parameters=[{"learning_rate": 0.1}])

    def test_groups_and_tensors_do_not_mix(self):
        p, q = ol.Parameter([1.0]), ol.Parameter([1.0])
        with pytest.raises(TypeError, match="all Tensors or all groups"):
            ol.optimizer.SGD(parameters=[p, {"params": [q]}])


class TestWhatParametersAre:
    @pytest.mark.parametrize("named", [True, False])
    @pytest.mark.parametrize("grouped", [True, False])
    def test_a_parameter_twice_is_named(self, named, grouped):
        p, q = ol.Parameter([1.0], name="w" if named else None), ol.Parameter([1.0, 2.0])
        parameters = [{"params": [q, p]}, {"params": [p]}] if grouped else [q, p, p]
        with pytest.raises(ValueError, match="was given twice") as caught:
            ol.optimizer.SGD(parameters=parameters)
        assert "'w'" in str(caught.value) if named else "parameter" in str(caught.value)
        assert p.numpy().tolist() == [1.0]

    def test_two_parameters_of_equal_value_are_two(self):
        optimizer = ol.optimizer.SGD(parameters=[ol.Parameter([1.0]), ol.Parameter([1.0])])
        assert len(optimizer.parameters) == 2

    @pytest.mark.parametrize("wrong", [3.0, np.ones(2), "w", None])
    def test_what_is_no_tensor_is_named(self, wrong):
        with pytest.raises(TypeError, match=f"parameter 1 is a {type(wrong).__name__}, not a Tens"):
            ol.optimizer.SGD(parameters=[ol.Parameter([1.0]), wrong])

    @pytest.mark.parametrize("wrong", [5, 0.1])
    def test_what_is_no_list(self, wrong):
        with pytest.raises(TypeError, match=r"must be a list.*model\.parameters\(\)"):
            ol.optimizer.SGD(parameters=wrong)

    def test_a_lone_tensor(self):
        with pytest.raises(TypeError, match=r"write parameters=\[w\]"):
            ol.optimizer.SGD(parameters=ol.Parameter([1.0]))

    def test_a_model_in_place_of_its_parameters(self):
        with pytest.raises(TypeError, match=r"model\.parameters\(\)"):
            ol.optimizer.SGD(parameters=ol.nn.Linear(2, 2))

    def test_a_tensor_without_gradient(self):
        with pytest.raises(ValueError, match="needs no gradient"):
            ol.optimizer.SGD(parameters=[ol.ones([2])])

    def test_a_result_is_no_parameter(self):
        p = ol.Parameter([1.0])
        with pytest.raises(ValueError, match="was computed by 'multiply'"):
            ol.optimizer.SGD(parameters=[p * 2])

    def test_an_empty_list_says_so(self):
        with pytest.raises(ValueError, match=r"no parameters|empty"):
            ol.optimizer.SGD(parameters=[])

    @pytest.mark.parametrize("kind", [set, frozenset])
    def test_a_set_has_no_order(self, kind):
        ps = kind([ol.Parameter([1.0]), ol.Parameter([2.0])])
        with pytest.raises(TypeError, match=f"got a {kind.__name__}, whose order is another in"):
            ol.optimizer.SGD(parameters=ps)
        with pytest.raises(TypeError, match=f"'params' of a group.* got a {kind.__name__}, whose"):
            ol.optimizer.SGD(parameters=[{"params": ps}])
        assert len(ol.optimizer.SGD(parameters=dict.fromkeys(ps).keys()).parameters) == 2

    def test_a_generator_will_do(self):
        ps = [ol.Parameter([1.0]), ol.Parameter([2.0])]
        optimizer = ol.optimizer.SGD(parameters=(p for p in ps))
        assert [p is q for p, q in zip(optimizer.parameters, ps, strict=True)] == [True, True]
