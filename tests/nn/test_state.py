"""The state dict of a layer: saved by name, loaded after all checks."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import optlab as ol


class Tied(ol.nn.Layer):
    """Two layers that share a weight, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.one = ol.nn.Linear(2, 2)
        self.two = ol.nn.Linear(2, 2)
        self.two.weight = self.one.weight
        self.register_buffer("count", ol.to_tensor([3]))
        self.register_buffer("scratch", ol.zeros([1]), persistable=False)


KEYS = ["count", "one.weight", "one.bias", "two.weight", "two.bias"]


def values(layer):
    return {name: t.numpy().tolist() for name, t in layer.state_dict().items()}


def test_names_are_places_and_shared_ones_have_each_of_theirs():
    assert list(Tied().state_dict()) == KEYS
    assert list(Tied().state_dict(include_sublayers=False)) == ["count"]
    given = {"kept": 1}
    assert Tied().state_dict(given, structured_name_prefix="net.") is given
    assert list(given) == ["kept", *(f"net.{key}" for key in KEYS)]


def test_the_values_are_the_layer_s_own():
    layer = ol.nn.Linear(2, 2)
    state, kept = layer.state_dict(), copy.deepcopy(layer.state_dict())
    layer.weight.set_value(np.zeros((2, 2)))
    assert state["weight"].tolist() == [[0, 0], [0, 0]]
    assert kept["weight"].tolist() != [[0, 0], [0, 0]]


@pytest.mark.parametrize("load", ["set_state_dict", "load_dict", "load_state_dict"])
@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.numpy(), lambda t: t.tolist()])
def test_taking_in_what_was_given_out(load, form):
    one, other = Tied(), Tied()
    one.count = ol.to_tensor([8])
    parameters = other.parameters()
    missing, unexpected = getattr(other, load)({n: form(t) for n, t in one.state_dict().items()})
    assert (missing, unexpected) == ([], [])
    assert values(other) == values(one)
    assert other.parameters() == parameters  # the same objects
    one.one.weight.set_value(np.zeros((2, 2)))
    assert values(other) != values(one)  # nothing is shared


def test_an_optimizer_goes_on_with_what_was_loaded():
    layer = ol.nn.Linear(1, 1)
    optimizer = ol.optimizer.SGD(1.0, parameters=layer.parameters())
    layer.set_state_dict({"weight": [[5.0]], "bias": [7.0]})
    layer(ol.ones([1, 1])).sum().backward()
    optimizer.step()
    assert values(layer) == {"weight": [[4.0]], "bias": [6.0]}


def test_all_that_does_not_fit_is_said_and_nothing_written():
    layer = Tied()
    before = values(layer)
    state = {
        "count": ol.to_tensor([4]),
        "one.weight": np.ones((3, 2), "float32"),
        "one.bias": np.ones(2),
        "one.bais": np.ones(2, "float32"),
    }
    with pytest.raises(ValueError, match="nothing was written") as caught:
        layer.set_state_dict(state)
    said = str(caught.value)
    assert "not in the state dict: two.bias" in said
    assert "not in the layer: one.bais" in said
    assert "one.weight has shape (2, 2) here, (3, 2) there" in said
    assert "one.bias is float32 here, float64 there" in said
    assert values(layer) == before


@pytest.mark.parametrize("strict", [True, False])
def test_shapes_are_checked_strict_or_not(strict):
    layer = ol.nn.Linear(2, 3)
    state = {"weight": np.ones((3, 2), "float32"), "bias": np.ones(3, "float32")}
    with pytest.raises(ValueError, match=r"transposed it would fit: PyTorch's Linear"):
        layer.set_state_dict(state, strict=strict)
    state["weight"] = state["weight"].T
    layer.set_state_dict(state, strict=strict)
    assert layer.bias.tolist() == [1, 1, 1]


def test_not_strict_takes_what_fits_by_name_and_says_the_rest():
    layer = ol.nn.Linear(2, 3)
    keys = layer.set_state_dict({"bias": np.ones(3, "float32"), "more": 3}, strict=False)
    assert keys == (["weight"], ["more"])
    assert keys.missing_keys == ["weight"]
    assert layer.bias.tolist() == [1, 1, 1]


def test_one_place_of_a_shared_parameter_is_enough_and_two_must_agree():
    layer, other = Tied(), Tied()
    state = other.state_dict()
    del state["one.weight"]
    layer.set_state_dict(state)
    assert values(layer) == values(other)
    with pytest.raises(ValueError, match=r"one\.weight and two\.weight are one and the same here"):
        layer.set_state_dict({**other.state_dict(), "two.weight": np.zeros((2, 2), "float32")})


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"was 'wieght' meant to be 'weight'\?"):
        ol.nn.Linear(1, 1, bias_attr=False).set_state_dict({"wieght": [[1.0]]})


@pytest.mark.parametrize("wrong", [[1, 2], None, "file.ol", np.ones(2)])
def test_what_is_no_state_dict(wrong):
    with pytest.raises(TypeError, match="takes a dict of names and values"):
        ol.nn.Linear(1, 1).set_state_dict(wrong)


def test_a_value_that_is_no_array():
    with pytest.raises(ValueError, match="bias is 'text', which is no array of numbers"):
        ol.nn.Linear(1, 1).set_state_dict({"weight": [[1.0]], "bias": "text"})


def test_nan_in_shared_parameters_is_equal_to_itself():
    layer = Tied()
    layer.one.weight.set_value(np.full((2, 2), np.nan))
    layer.set_state_dict(copy.deepcopy(layer.state_dict()))


def test_by_the_parameters_own_names():
    layer = ol.nn.Linear(1, 1)
    layer.weight.name = "mine"
    layer.set_state_dict({"mine": [[5.0]], "bias": [6.0]}, use_structured_name=False)
    assert values(layer) == {"weight": [[5.0]], "bias": [6.0]}
    layer.bias.name = "mine"
    with pytest.raises(ValueError, match="two parameters are named 'mine'"):
        layer.set_state_dict({}, use_structured_name=False)


class TestGradients:
    def test_clearing(self):
        layer = ol.nn.Linear(1, 1)
        layer.clear_gradients()
        assert layer.weight.grad is None
        layer(ol.ones([1, 1])).sum().backward()
        layer.clear_gradients()
        assert layer.weight.grad.tolist() == [[0.0]]
        layer.clear_gradients(set_to_zero=False)
        assert layer.weight.grad is None


class TestDtypes:
    def test_floats_change_and_whole_numbers_stay(self):
        model = ol.nn.Sequential(Tied(), ol.nn.Linear(2, 2))
        parameters = model.parameters()
        assert model.to(dtype="float64") is model
        assert {p.dtype.name for p in model.parameters()} == {"float64"}
        assert model.parameters() == parameters
        assert model[0].count.dtype == np.int64
        assert model[0].scratch.dtype == np.float64
        assert model[0].two.weight is model[0].one.weight
        assert model[1].create_parameter([1]).dtype == np.float64

    @pytest.mark.parametrize(
        ("call", "dtype"),
        [
            (lambda layer: layer.double(), "float64"),
            (lambda layer: layer.float16(), "float16"),
            (lambda layer: layer.double().float(), "float32"),
            (lambda layer: layer.astype("float64"), "float64"),
            (lambda layer: layer.to(), "float32"),
        ],
    )
    def test_names(self, call, dtype):
        assert call(ol.nn.Linear(1, 1)).weight.dtype == dtype

    def test_classes_can_be_left_out(self):
        model = ol.nn.Sequential(ol.nn.Linear(1, 1), Tied())
        model.float16(excluded_layers=[ol.nn.Linear])
        assert model[0].weight.dtype == np.float32
        assert model[1].scratch.dtype == np.float16

    def test_gradient_name_and_hooks_go_along(self):
        layer = ol.nn.Linear(1, 1)
        layer(ol.ones([1, 1])).sum().backward()
        layer.bias.name = "b"
        layer.bias.register_hook(lambda g: g * 10)
        layer.double()
        assert layer.bias.grad.dtype == np.float64
        assert layer.bias.name == "b"
        layer.clear_gradients()
        layer(np.ones((1, 1))).sum().backward()
        assert layer.bias.grad.tolist() == [10.0]

    def test_an_optimizer_made_before_says_so(self):
        layer = ol.nn.Linear(1, 1)
        optimizer = ol.optimizer.SGD(0.1, parameters=layer.parameters())
        layer.double()
        layer(np.ones((1, 1))).sum().backward()
        with pytest.raises(ValueError, match="Make a new optimizer"):
            optimizer.step()

    @pytest.mark.parametrize("wrong", ["int32", "complex64", "bool"])
    def test_types_that_parameters_cannot_have(self, wrong):
        layer = ol.nn.Linear(1, 1)
        with pytest.raises(TypeError, match="floating numbers"):
            layer.to(dtype=wrong)
        assert layer.weight.dtype == np.float32


def test_set_dict_is_another_name():
    one, other = ol.nn.Linear(2, 2), ol.nn.Linear(2, 2)
    other.set_dict(one.state_dict())
    assert values(one) == values(other)
