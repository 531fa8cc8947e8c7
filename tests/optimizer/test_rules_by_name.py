"""Rules that choose parameters by name: what they get, whom they choose, and choices in vain."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import optlab as ol

O = ol.optimizer  # noqa: E741


def layer_with_gradients():
    """Return a Linear of values 2 whose gradients are 1."""
    layer = ol.nn.Linear(3, 2)
    for p in layer.parameters():
        p.set_value(np.full(p.shape, 2.0, np.float32))
    layer(ol.ones([1, 3])).sum().backward()
    return layer


def step(optimizer, layer):
    optimizer.step()
    return layer.weight.numpy() - 2, layer.bias.numpy() - 2


def test_lamb_leaves_out_the_biases_as_documented():
    """The formulas at the first step: Adam's direction is 1, and 1 + 0.5 * 2 with the decay."""
    layer = layer_with_gradients()
    optimizer = O.Lamb(
        0.1,
        0.5,
        parameters=layer.parameters(),
        exclude_from_weight_decay_fn=lambda param: param.name.endswith(".b_0"),
    )
    weight, bias = step(optimizer, layer)
    np.testing.assert_allclose(weight, -0.1 * (2 / 2) * 2, rtol=1e-5)
    np.testing.assert_allclose(bias, -0.1, rtol=1e-5)


@pytest.mark.parametrize("part", [".b_0", "bias"])
def test_lars_leaves_out_by_parts_of_either_name(part):
    layer = layer_with_gradients()
    optimizer = O.LarsMomentum(
        0.1, 0.0, 1.0, 1.0, parameters=layer.parameters(), exclude_from_weight_decay=[part]
    )
    weight, bias = step(optimizer, layer)
    size, slope = np.sqrt(6 * 4.0), np.sqrt(6.0)
    np.testing.assert_allclose(weight, -0.1 * size / (slope + size) * 3, rtol=1e-6)
    np.testing.assert_allclose(bias, -0.1, rtol=1e-6)


def test_adamw_decays_what_the_name_says():
    layer = layer_with_gradients()
    optimizer = O.AdamW(
        0.1,
        weight_decay=0.5,
        parameters=layer.parameters(),
        apply_decay_param_fun=lambda name: not name.endswith(".b_0"),
        lr_ratio=lambda p: 0.5 if p.name.endswith(".w_0") else 1.0,
    )
    weight, bias = step(optimizer, layer)
    np.testing.assert_allclose(weight, 0.5 * (-0.1 * 0.5 * 2 - 0.1), rtol=1e-5)
    np.testing.assert_allclose(bias, -0.1, rtol=1e-5)


def test_adamw_decays_the_names_that_a_list_collects():
    """The usual form: names are collected from a model by its structure, then asked for."""
    layer = layer_with_gradients()
    decayed = [p.name for name, p in layer.named_parameters() if "bias" not in name]
    optimizer = O.AdamW(
        0.1, weight_decay=0.5, parameters=layer.parameters(),
        apply_decay_param_fun=lambda name: name in decayed,
    )  # fmt: skip
    weight, bias = step(optimizer, layer)
    np.testing.assert_allclose(weight, -0.1 * 0.5 * 2 - 0.1, rtol=1e-5)
    np.testing.assert_allclose(bias, -0.1, rtol=1e-5)


def by_ending(p):
    return p.name.endswith(".b_0")


FLUID = ol.fluid.optimizer
RULES = [
    (O.Lamb, {"exclude_from_weight_decay_fn": by_ending}),
    (FLUID.Lamb, {"exclude_from_weight_decay_fn": by_ending}),
    (O.LarsMomentum, {"momentum": 0.9, "exclude_from_weight_decay": [".b_0"]}),
    (O.AdamW, {"apply_decay_param_fun": lambda name: not name.endswith(".b_0")}),
    (O.AdamW, {"lr_ratio": lambda p: 0.5 if by_ending(p) else 1.0}),
]


@pytest.mark.parametrize(("cls", "settings"), RULES)
@pytest.mark.parametrize("unnamed", [
    lambda: ol.Parameter([1.0]), lambda: ol.to_tensor([1.0], requires_grad=True),
])  # fmt: skip
def test_parameters_without_a_name_do_not_break_a_rule(cls, settings, unnamed):
    p, bias = unnamed(), ol.nn.Linear(1, 1).bias
    optimizer = cls(learning_rate=0.1, parameters=[p, bias], **settings)
    ((p + bias) * 3).sum().backward()
    optimizer.step()
    assert p.item() != 1.0


def predicate_sees():
    seen = []

    def note(p):
        seen.append((p.name, p.shape, copy.copy(p).ndim))
        return True

    return seen, note


def test_a_predicate_gets_the_parameter():
    seen, note = predicate_sees()
    layer = ol.nn.Linear(3, 2)
    plain = ol.to_tensor([1.0, 2.0], requires_grad=True)
    O.Lamb(0.1, exclude_from_weight_decay_fn=note, parameters=[*layer.parameters(), plain])
    assert seen == [
        (layer.weight.name, (3, 2), 2), (layer.bias.name, (2,), 1), ("", (2,), 1),
    ]  # fmt: skip


IDLE = [
    (O.Lamb, {"exclude_from_weight_decay_fn": lambda p: "bias" in p.name}, "excludes no parameter"),
    (FLUID.Lamb, {"exclude_from_weight_decay_fn": lambda p: False}, "excludes no parameter"),
    (O.LarsMomentum, {"momentum": 0.9, "exclude_from_weight_decay": ["b_7"]}, "excludes no"),
    (O.AdamW, {"apply_decay_param_fun": lambda name: name == "weight"}, "chooses no parameter"),
    (O.AdamW, {"apply_decay_param_fun": lambda name: "bias" not in name}, "chooses every"),
    (O.AdamW, {"lr_ratio": lambda p: 0.1 if "fc" in p.name else 1.0}, "lr_ratio .* is 1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "settings", "says"), IDLE)
def test_a_rule_that_matches_nothing_warns_once(cls, settings, says):
    layer = layer_with_gradients()
    with pytest.warns(UserWarning, match=says) as caught:
        optimizer = cls(learning_rate=0.1, parameters=layer.parameters(), **settings)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"'{layer.weight.name}' (in the model: weight)" in message  # what the names look like
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        optimizer.add_param_group({"params": [ol.Parameter([1.0])]})


@pytest.mark.parametrize(("cls", "settings"), [
    *RULES,
    (O.Lamb, {}),
    (O.LarsMomentum, {"momentum": 0.9, "exclude_from_weight_decay": []}),
    (O.AdamW, {"apply_decay_param_fun": lambda name: name.startswith("linear")}),
])  # fmt: skip
def test_a_rule_that_matches_says_nothing(cls, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        template = cls(learning_rate=0.1, **settings)
        template.bind(ol.nn.Linear(3, 2).parameters())


def test_rules_of_groups_are_judged_each_by_all_that_it_was_asked_about():
    first, second = ol.nn.Linear(2, 2), ol.nn.Linear(2, 2)
    groups = [{"params": [first.weight]}, {"params": [first.bias]}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it excludes nothing of the first group, but in the second
        O.Lamb(0.1, exclude_from_weight_decay_fn=by_ending, parameters=groups)
    groups = [
        {"params": first.parameters()},
        {"params": second.parameters(), "exclude_from_weight_decay_fn": lambda p: False},
    ]
    with pytest.warns(UserWarning, match=second.weight.name):
        O.Lamb(0.1, exclude_from_weight_decay_fn=by_ending, parameters=groups)


def test_minimize_finds_parameters_by_either_name():
    layer = ol.nn.Linear(3, 2)
    optimizer = O.SGD(0.1, parameters=layer.parameters())
    for name in ("bias", layer.bias.name, layer.bias):
        before = layer.weight.numpy()
        loss = layer(ol.ones([1, 3])).sum()
        _, pairs = optimizer.minimize(loss, parameters=[name])
        assert [id(p) for p, _ in pairs] == [id(layer.bias)]
        np.testing.assert_array_equal(layer.weight.numpy(), before)
        optimizer.clear_grad()


def test_parameters_of_one_name_draw_numbers_of_their_own():
    ol.seed(0)
    layers = [ol.nn.Linear(1, 2, bias_attr=False) for _ in range(2)]
    weights = [layer.weight for layer in layers]
    before = [w.numpy() for w in weights]
    optimizer = ol.optimizer.Dpsgd(0.1, clip=1e-9, batch_size=4.0, sigma=1e9, parameters=[*weights])
    for w in weights:
        w.sum().backward()
    optimizer.step()
    moved = [w.numpy() - was for w, was in zip(weights, before, strict=True)]
    assert not np.array_equal(*moved)
