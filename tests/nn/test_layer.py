"""Layers: their parameters, names by place, and chains."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol


class Scale(ol.nn.Layer):
    """A layer that multiplies by one number."""

    def __init__(self, factor: float = 2.0) -> None:
        self.factor = ol.Parameter([factor])

    def forward(self, x):
        return x * self.factor


class Pair(ol.nn.Layer):
    """Two layers, of which the second contains one more."""

    def __init__(self) -> None:
        self.first = ol.nn.Linear(2, 3)
        self.second = ol.nn.Sequential(ol.nn.Tanh(), ("out", ol.nn.Linear(3, 1)))
        self.shift = ol.Parameter([0.5])

    def forward(self, x):
        return self.second(self.first(x)) + self.shift


def test_calling_a_layer_runs_forward():
    assert Scale(3.0)(ol.to_tensor([2.0])).item() == 6.0


def test_parameters_are_named_by_their_place():
    names = [name for name, _ in Pair().named_parameters()]
    assert sorted(names) == [
        "first.bias", "first.weight", "second.out.bias", "second.out.weight", "shift",
    ]  # fmt: skip


def test_parameters_gives_the_tensors_and_puts_their_place_on_them():
    model = Pair()
    parameters = model.parameters()
    assert {id(p) for p in parameters} == {id(p) for _, p in model.named_parameters()}
    assert {p.structural_name for p in parameters} == {name for name, _ in model.named_parameters()}


def test_a_name_of_ones_own_stays():
    layer = Scale()
    layer.factor = ol.Parameter([1.0], name="mine")
    assert [p.name for p in layer.parameters()] == ["mine"]


def test_a_shared_parameter_is_found_once():
    model = ol.nn.Sequential(ol.nn.Linear(3, 3), ol.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert len(model.parameters()) == 3


def test_a_layer_used_twice_is_trained_once_a_step():
    layer = ol.nn.Linear(2, 2)
    model = ol.nn.Sequential(layer, ol.nn.Tanh(), layer)
    assert len(model.parameters()) == 2
    ol.optimizer.SGD(0.1, parameters=model.parameters())  # no parameter twice


def test_named_sublayers_go_all_the_way_down():
    assert [name for name, _ in Pair().named_sublayers()] == [
        "first", "second", "second.0", "second.out",
    ]  # fmt: skip


def test_add_sublayer_gives_the_layer_and_its_parameters_count():
    model, inner = Scale(), Scale(5.0)
    assert model.add_sublayer("inner", inner) is inner
    assert [name for name, _ in model.named_parameters()] == ["factor", "inner.factor"]


@pytest.mark.parametrize("wrong", [3, None, lambda x: x, ol.nn.Linear])
def test_add_sublayer_takes_layers_only(wrong):
    with pytest.raises(TypeError, match=r"add_sublayer\('inner', \.\.\.\) takes a Layer"):
        Scale().add_sublayer("inner", wrong)


def test_train_and_eval_reach_every_layer():
    model = Pair()
    layers = [model, *(layer for _, layer in model.named_sublayers())]
    assert all(layer.training for layer in layers)
    model.eval()
    assert not any(layer.training for layer in layers)
    model.train()
    assert all(layer.training for layer in layers)


def test_eval_of_one_model_leaves_another_alone():
    one, other = Pair(), Pair()
    one.eval()
    assert other.training
    assert other.first.training


def test_a_layer_without_forward_says_what_to_define():
    class Empty(ol.nn.Layer):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty has no forward method.*forward\(self, x"):
        Empty()(1.0)


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (lambda: ol.nn.Linear(4, 2), "Linear(4, 2)"),
        (lambda: ol.nn.Linear(4, 2, bias_attr=False), "Linear(4, 2, bias_attr=False)"),
        (lambda: ol.nn.ReLU(), "ReLU()"),
        (lambda: ol.nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    ],
)
def test_repr_of_one_layer(layer, text):
    assert repr(layer()) == text


def test_repr_shows_the_structure():
    model = ol.nn.Sequential(ol.nn.Linear(4, 2), ("inner", ol.nn.Sequential(ol.nn.ReLU())))
    assert repr(model).splitlines() == [
        "Sequential(",
        "  0: Linear(4, 2)",
        "  inner: Sequential(",
        "    0: ReLU()",
        "  )",
        ")",
    ]


class TestSequential:
    def test_chains_in_order(self):
        model = ol.nn.Sequential(ol.nn.ReLU(), Scale(-2.0))
        assert model(ol.to_tensor([-1.0, 3.0])).tolist() == [-0.0, -6.0]

    def test_of_nothing_gives_its_input(self):
        x = ol.to_tensor([1.0])
        assert ol.nn.Sequential()(x) is x

    def test_tuples_name_the_layers(self):
        model = ol.nn.Sequential(("hidden", ol.nn.Linear(2, 3)), ("out", ol.nn.Linear(3, 1)))
        assert [p.structural_name for p in model.parameters()] == [
            "hidden.weight", "hidden.bias", "out.weight", "out.bias",
        ]  # fmt: skip
        assert model.out is model[1]

    def test_has_length_positions_and_can_be_walked(self):
        layers = [ol.nn.Linear(2, 3), ol.nn.ReLU(), ol.nn.Linear(3, 1)]
        model = ol.nn.Sequential(*layers)
        assert len(model) == 3
        assert list(model) == layers
        assert model[0] is layers[0]
        assert model[-1] is layers[2]
        with pytest.raises(IndexError):
            model[3]

    def test_grows_at_its_end(self):
        model = ol.nn.Sequential(Scale(2.0))
        model.add_sublayer("more", Scale(5.0))
        assert model(ol.to_tensor([1.0])).item() == 10.0
        assert len(model.parameters()) == 2

    def test_takes_layers_not_a_list(self):
        with pytest.raises(TypeError, match="takes a Layer: part 0 is a list"):
            ol.nn.Sequential([ol.nn.ReLU()])

    def test_two_layers_of_one_name_are_refused_or_both_trained(self):
        try:
            model = ol.nn.Sequential(("same", Scale(2.0)), ("same", Scale(5.0)))
        except ValueError as error:
            assert "same" in str(error)  # noqa: PT017 - a refusal is one of two right answers
        else:
            used = 2 if model(ol.to_tensor([1.0])).item() == 10.0 else 1
            assert len(model.parameters()) == used

    @pytest.mark.parametrize("name", ["forward", "parameters", "train"])
    def test_a_name_that_would_hide_a_method_is_refused(self, name):
        with pytest.raises(ValueError, match=name):
            ol.nn.Sequential(("first", Scale(2.0)), (name, Scale(5.0)))

    def test_gradients_reach_every_parameter(self):
        ol.seed(0)
        model = ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Tanh(), ol.nn.Linear(4, 2))
        model(ol.ones([5, 3])).sum().backward()
        for parameter in model.parameters():
            assert parameter.grad.shape == parameter.shape
            assert np.any(parameter.grad.numpy() != 0)


def test_a_layer_that_knows_its_owner_is_shown_once():
    owner, part = ol.nn.Layer(), ol.nn.Layer()
    owner.part, part.owner = part, owner
    assert repr(owner) == "Layer(\n  part: Layer(\n    owner: ...\n  )\n)"
    owner.twice = [ol.nn.Tanh()] * 2
    assert repr(owner).count("Tanh()") == 2
    owner.itself = owner
    assert "itself: ..." in repr(owner)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("zero_grad", "clear_gradients"),
        ("modules", "sublayers"),
        ("named_modules", "named_sublayers"),
        ("register_forward_hook", "register_forward_post_hook"),
        ("register_full_backward_hook", "register_backward_hook"),
        ("register_parameter", "add_parameter"),
        ("add_module", "add_sublayer"),
        ("half", "float16"),
        ("cuda", "to"),
    ],
)
def test_names_of_pytorch_are_answered_with_ours(theirs, ours):
    layer = ol.nn.Linear(1, 1)
    assert hasattr(layer, ours)
    assert not hasattr(layer, theirs)
    with pytest.raises(AttributeError, match=rf"{theirs}'; here it is layer\.{ours}\("):
        getattr(layer, theirs)


def test_other_missing_names_fail_in_their_own_words():
    class Half(ol.nn.Layer):
        @property
        def width(self):
            return self.weight.shape[0]

    with pytest.raises(AttributeError, match="'Half' object has no attribute 'weight'"):
        _ = Half().width
    with pytest.raises(AttributeError, match="'Half' object has no attribute 'height'"):
        _ = Half().height


@pytest.mark.parametrize("value", [np.ones((2, 2), np.float32), [[1.0]], 3.0])
def test_what_is_no_parameter_does_not_take_the_place_of_one(value):
    layer = ol.nn.Linear(2, 2)
    before = layer.weight
    with pytest.raises(TypeError, match=r"Linear.weight is a parameter; .*layer.weight.set_value"):
        layer.weight = value
    assert layer.weight is before
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_a_step_by_hand_that_makes_a_new_tensor_is_refused():
    layer = ol.nn.Linear(2, 1)
    layer(ol.ones([1, 2])).sum().backward()
    with pytest.raises(TypeError, match=r"with ol.no_grad\(\): layer.weight -= rate"):
        layer.weight = layer.weight - 0.1 * layer.weight.grad
    before = layer.weight.numpy()
    with ol.no_grad():
        layer.weight -= 0.1 * layer.weight.grad
    np.testing.assert_allclose(layer.weight.numpy(), before - 0.1)


def test_parameters_and_none_take_the_place_of_a_parameter_and_anything_after_del():
    layer = ol.nn.Linear(2, 2)
    layer.weight = ol.Parameter(np.ones((2, 2), np.float32))
    layer.bias = None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    del layer.weight
    layer.weight = ol.to_tensor(np.eye(2, dtype=np.float32))
    assert layer.parameters() == []
    assert layer(ol.ones([1, 2])).numpy().tolist() == [[1.0, 1.0]]
