"""Layers that contain others: chains, lists and dicts."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest

import optlab as ol
from optlab.nn import LayerDict, LayerList, Linear, ParameterList, ReLU, Sequential, Tanh


def names(layer):
    return [name for name, _ in layer.named_sublayers()]


class TestSequential:
    @pytest.mark.parametrize(
        "build",
        [
            lambda a, b: Sequential(("first", a), ("second", b)),
            lambda a, b: Sequential(["first", a], ["second", b]),
            lambda a, b: Sequential({"first": a, "second": b}),
            lambda a, b: Sequential(OrderedDict(first=a, second=b)),
        ],
    )
    def test_forms_with_names(self, build):
        a, b = ReLU(), Tanh()
        model = build(a, b)
        assert names(model) == ["first", "second"]
        assert model["first"] is a
        assert model[1] is b

    def test_append_insert_extend_and_delete_number_anew(self):
        a, b, c, d = ReLU(), Tanh(), ReLU(), Tanh()
        model = Sequential(a, ("named", b))
        assert model.append(c) is model
        assert names(model) == ["0", "named", "2"]
        model.insert(0, d)
        assert names(model) == ["0", "1", "named", "3"]
        assert list(model) == [d, a, b, c]
        del model[0]
        assert names(model) == ["0", "named", "2"]
        del model[1:]
        assert list(model) == [a]
        model.extend([b, c])
        assert names(model) == ["0", "1", "2"]
        with pytest.raises(TypeError, match="takes a Layer; got int"):
            model.extend([d, 3])
        assert len(model) == 3

    def test_slices_share_the_layers(self):
        model = Sequential(Linear(1, 1), ("named", Tanh()), Linear(1, 1))
        part = model[1:]
        assert type(part) is Sequential
        assert names(part) == ["named", "1"]
        assert part[1] is model[2]
        assert part[1].weight in set(model.parameters())

    def test_layers_are_replaced_by_position_and_name(self):
        model = Sequential(ReLU(), ("named", ReLU()))
        model[0], model["named"] = new, other = Tanh(), Tanh()
        assert list(model) == [new, other]
        model["more"] = ReLU()
        assert names(model) == ["0", "named", "more"]
        setattr(model, "0", other)  # an ordinary attribute
        assert model[0] is other
        del model.named
        assert len(model) == 2

    def test_what_is_not_there(self):
        model = Sequential(ReLU())
        with pytest.raises(IndexError, match="holds 1 of them; there is no number 1"):
            model[1]
        with pytest.raises(KeyError, match="no layer is named 'x'; there are 0"):
            model["x"]
        with pytest.raises(TypeError, match="asked by position"):
            model[1.0]
        with pytest.raises(TypeError, match=r"got the class ReLU; call it: ReLU\(\.\.\.\)"):
            model.append(ReLU)

    def test_one_layer_twice(self):
        layer = Linear(2, 2)
        model = Sequential(layer, Tanh(), layer)
        assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
        assert len(list(model)) == 3

    def test_hooks_of_its_layers_run(self):
        model = Sequential(ReLU())
        model[0].register_forward_post_hook(lambda layer, inputs, output: output + 1)
        assert model(ol.ones([1])).item() == 2.0


class TestLayerList:
    def test_is_a_list(self):
        a, b, c = ReLU(), Tanh(), Linear(1, 1)
        layers = LayerList([a])
        layers.append(b).extend([c])
        assert (list(layers), len(layers), layers[-1], layers[0]) == ([a, b, c], 3, c, a)
        layers.insert(-1, c)
        assert list(layers) == [a, b, c, c]
        assert layers.pop() is c
        assert layers.pop(0) is a
        layers[0] = a
        assert list(layers) == [a, c]
        assert list(layers[1:]) == [c]
        layers += [b]
        assert list(layers + layers[:1]) == [a, c, b, a]
        assert names(layers) == ["0", "1", "2"]
        del layers[0]
        assert names(layers) == ["0", "1"]
        assert repr(LayerList([ReLU()])) == "LayerList(\n  0: ReLU()\n)"

    def test_more_than_ten_stay_in_order(self):
        layers = LayerList(Linear(1, i + 1) for i in range(12))
        layers.insert(0, ReLU())
        assert names(layers) == [str(i) for i in range(13)]
        assert [layer.out_features for layer in layers[1:]] == list(range(1, 13))

    def test_bad_input(self):
        with pytest.raises(TypeError, match="LayerList takes a Layer; got int"):
            LayerList([3])
        with pytest.raises(IndexError):
            LayerList()[0]
        with pytest.raises(NotImplementedError, match="no forward"):
            LayerList([ReLU()])(1.0)

    def test_deepcopy(self):
        layers = LayerList([Linear(1, 1)])
        twin = copy.deepcopy(layers)
        twin.append(ReLU())
        assert (len(layers), len(twin)) == (1, 2)


class TestLayerDict:
    def test_is_a_dict(self):
        a, b = ReLU(), Tanh()
        layers = LayerDict({"a": a})
        layers["b"] = b
        assert (list(layers), len(layers), layers["b"], "a" in layers) == (["a", "b"], 2, b, True)
        assert list(layers.keys()) == ["a", "b"]
        assert list(layers.values()) == [a, b]
        assert list(layers.items()) == [("a", a), ("b", b)]
        assert names(layers) == ["a", "b"]
        layers.update([("a", b)])
        assert layers.pop("a") is b
        layers.update(LayerDict({"c": a}))
        del layers["b"]
        assert list(layers) == ["c"]
        layers.clear()
        assert len(layers) == 0

    def test_bad_input(self):
        with pytest.raises(KeyError, match="no layer is named 'x'; there are a"):
            LayerDict({"a": ReLU()})["x"]
        with pytest.raises(KeyError):
            del LayerDict()["training"]
        with pytest.raises(ValueError, match="cannot be named 'keys'"):
            LayerDict({"keys": ReLU()})
        with pytest.raises(TypeError, match="takes a Layer"):
            LayerDict({"a": 3})


class TestParameterList:
    def test_is_a_list_of_parameters(self):
        p, q = ol.Parameter([1.0]), ol.Parameter([[2.0]])
        parameters = ParameterList([p])
        parameters.append(q)
        assert list(parameters) == [p, q]
        assert parameters[-1] is q
        assert [name for name, _ in parameters.named_parameters()] == ["0", "1"]
        parameters[0] = q
        assert list(parameters[:1]) == [q]
        assert repr(ParameterList([p, q])) == "ParameterList((1,), (1, 1))"
        with pytest.raises(TypeError, match="takes a Parameter; got Tensor"):
            parameters.append(ol.ones([1]))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((ol.nn.Tanh(), ol.nn.ReLU), r"part 1 is the class ReLU; write ReLU\(\)"),
        ((ol.nn.functional.relu,), r"part 0 is the function relu; use nn\.ReLU\(\)"),
        ((ol.nn.functional.log_softmax,), r"use nn\.LogSoftmax\(\)"),
        ((("last", lambda x: x),), r"part last is the function <lambda>; write a Layer whose"),
        (([ol.nn.Tanh()],), r"part 0 is a list; write Sequential\(\*layers\)"),
    ],
)
def test_what_is_no_layer_is_named_with_what_to_write(parts, said):
    with pytest.raises(TypeError, match=said):
        ol.nn.Sequential(*parts)
