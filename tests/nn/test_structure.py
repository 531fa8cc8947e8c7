"""The parts of a layer: found by inspection, named by their place."""

from __future__ import annotations

import copy
import pickle
import time

import numpy as np
import pytest

import optlab as ol


class Block(ol.nn.Layer):
    """A layer that stores parameters, buffers and layers in every supported form."""

    def __init__(self) -> None:
        super().__init__()
        self._hidden = ol.nn.Linear(2, 3)
        self.branches = [ol.nn.Linear(3, 1, bias_attr=False), (ol.nn.Tanh(),)]
        self.heads = {"a": ol.Parameter([[1.0]]), "b": 5}
        self.register_buffer("mean", ol.zeros([2]))
        self.register_buffer("scratch", ol.ones([1]), persistable=False)
        self.register_buffer("later", None)

    def forward(self, x):
        return self.branches[0](self._hidden(x)) * self.heads["a"]


NAMES = ["heads.a", "_hidden.weight", "_hidden.bias", "branches.0.weight"]


def test_members_of_lists_dicts_and_private_attributes_count():
    block = Block()
    assert [name for name, _ in block.named_parameters()] == NAMES
    assert [name for name, _ in block.named_sublayers()] == [
        "_hidden",
        "branches.0",
        "branches.1.0",
    ]
    assert [p.structural_name for p in block.parameters()] == NAMES


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (list, "40000"),
        (tuple, "40000"),
        (lambda values: dict(enumerate(values)), "40000"),
        (lambda values: [[value] for value in values], "40000.0"),
        (lambda values: [(str(i), value) for i, value in enumerate(values)], "40000.1"),
        (lambda values: [["a"], {"b": values}], "1.b.40000"),
        (lambda values: [*[()] * 100, [[values]]], "100.0.0.40000"),
    ],
)
def test_what_stands_far_back_in_a_long_container_is_found(make, where):
    model = ol.nn.Layer()
    values = list(range(50_000))
    for found, named in (
        (ol.Parameter([1.0]), lambda: model.named_parameters()),
        (ol.nn.Tanh(), lambda: model.named_sublayers()),
    ):
        model.held = make(values)
        assert list(named()) == []
        values[40_000] = found
        model.held = make(values)
        ((name, value),) = named()
        assert name == f"held.{where}"
        assert value is found
        values[40_000] = 0


def test_a_list_that_was_looked_at_may_change():
    model = ol.nn.Layer()
    model.held = list(range(1000))
    assert model.parameters() == []
    model.held[500] = ol.Parameter([1.0])
    assert len(model.parameters()) == 1


@pytest.mark.parametrize(
    "held",
    [
        list(range(50_000)),
        {str(i): i for i in range(50_000)},
        [(str(i), i) for i in range(50_000)],
    ],
)
def test_a_vocabulary_costs_little(held):
    def seconds(held):
        model = ol.nn.Layer()
        model.held = held
        times = []
        for _ in range(5):
            start = time.thread_time()
            model.parameters()
            times.append(time.thread_time() - start)
        return min(times)

    one_by_one = [*held[:-1], None, ol.Parameter([1.0])] if type(held) is list else None
    assert seconds(held) < (0.5 * seconds(one_by_one) if one_by_one else 0.01)


def test_prefix_self_and_without_sublayers():
    block = Block()
    assert [n for n, _ in block.named_parameters("net", include_sublayers=False)] == ["net.heads.a"]
    assert [n for n, _ in block.named_sublayers("net", include_self=True)][:2] == [
        "net", "net._hidden",
    ]  # fmt: skip
    assert block.sublayers(include_self=True)[0] is block
    assert len(block.parameters(include_sublayers=False)) == 1
    assert [n for n, _ in block.named_children()] == ["_hidden", "branches.0", "branches.1.0"]
    assert len(list(block.children())) == 3


def test_buffers():
    block = Block()
    assert [name for name, _ in block.named_buffers()] == ["mean", "scratch"]
    outer = ol.nn.Sequential(block)
    assert [name for name, _ in outer.named_buffers()] == ["0.mean", "0.scratch"]
    assert outer.buffers(include_sublayers=False) == []
    block.later = ol.ones([1])  # a buffer is set and replaced by assignment
    block.mean = block.mean + 1
    assert [t.tolist() for t in block.buffers()] == [[1.0, 1.0], [1.0], [1.0]]


def test_a_parameter_in_the_place_of_a_buffer_is_a_parameter():
    block = Block()
    block.mean = ol.Parameter([1.0])
    assert [name for name, _ in block.named_buffers()] == ["scratch"]
    assert "mean" in dict(block.named_parameters())


def test_one_layer_s_buffers_are_not_another_s():
    Block()
    assert ol.nn.Tanh().buffers() == []
    assert ol.nn.Layer._buffer_names == {}


def test_what_is_deleted_is_gone():
    block = Block()
    del block.mean
    del block._hidden
    assert [name for name, _ in block.named_buffers()] == ["scratch"]
    assert [name for name, _ in block.named_parameters()] == ["heads.a", "branches.0.weight"]
    block.mean = ol.zeros([2])  # now an ordinary attribute
    assert [name for name, _ in block.named_buffers()] == ["scratch"]


def test_layers_that_know_their_owner_do_not_go_round_in_circles():
    outer = ol.nn.Sequential(ol.nn.Linear(1, 1))
    outer[0].owner = outer
    outer[0].self_containing = loop = []
    loop.append(loop)
    assert [name for name, _ in outer.named_parameters()] == ["0.weight", "0.bias"]
    assert list(outer.state_dict()) == ["0.weight", "0.bias"]


@pytest.mark.parametrize(
    ("add", "what"),
    [
        (lambda layer, name: layer.add_sublayer(name, ol.nn.Tanh()), "layer"),
        (lambda layer, name: layer.add_parameter(name, ol.Parameter([1.0])), "parameter"),
        (lambda layer, name: layer.register_buffer(name, ol.zeros([1])), "buffer"),
    ],
)
def test_names_that_cannot_be(add, what):
    for name, said in {"a.b": "dots part", "forward": "forward is called"}.items():
        with pytest.raises(ValueError, match=rf"a {what} inside Tanh cannot be named.*{said}"):
            add(ol.nn.Tanh(), name)
    for name in ("", 3, None):
        with pytest.raises(TypeError, match="needs a name"):
            add(ol.nn.Tanh(), name)


def test_what_is_neither_parameter_nor_buffer():
    layer = ol.nn.Tanh()
    with pytest.raises(TypeError, match=r"takes an optlab\.Parameter; got Tensor"):
        layer.add_parameter("w", ol.ones([1]))
    with pytest.raises(TypeError, match="takes a Tensor; got ndarray"):
        layer.register_buffer("b", np.ones(1))
    with pytest.raises(TypeError, match=r"needs a gradient.*t\.detach\(\)"):
        layer.register_buffer("b", ol.to_tensor([1.0], requires_grad=True))
    assert not layer.parameters()
    assert not layer.state_dict()


def test_a_parameter_may_be_left_out():
    layer = ol.nn.Tanh()
    assert layer.add_parameter("bias", None) is None
    assert layer.bias is None
    assert layer.parameters() == []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_stand_on_their_own(copied):
    block = ol.nn.Sequential(Block(), ol.nn.Linear(1, 1))
    block[1].weight = block[0].heads["a"]  # sharing is preserved
    block.eval()
    twin = copied(block)
    assert list(twin.state_dict()) == list(block.state_dict())
    assert twin[1].weight is twin[0].heads["a"]
    assert not twin[0].training
    twin[0].heads["a"].set_value([[9.0]])
    twin[0].mean = ol.ones([2])
    assert block[0].heads["a"].item() == 1.0
    assert block[0].mean.tolist() == [0.0, 0.0]
    twin(ol.ones([1, 2])).sum().backward()
    assert block[0].heads["a"].grad is None
    assert [n for n, _ in twin.named_buffers()] == ["0.mean", "0.scratch"]


def test_train_eval_and_apply_give_the_layer():
    block = Block()
    seen = []
    assert block.eval() is block
    assert not any(layer.training for layer in block.sublayers(include_self=True))
    assert block.train() is block
    assert block.train(False).training is False
    assert block.apply(seen.append) is block
    assert seen[-1] is block  # inner layers come first
    assert len(seen) == 4


class TestCreateParameter:
    def test_starts(self):
        layer = ol.nn.Layer()
        assert layer.create_parameter([2, 3], is_bias=True).tolist() == [[0.0] * 3] * 2
        ol.seed(0)
        weight = layer.create_parameter([2, 3])
        assert np.abs(weight.numpy()).max() <= np.sqrt(6 / 5)
        assert np.abs(weight.numpy()).min() > 0
        constant = ol.nn.initializer.Constant(7.0)
        assert layer.create_parameter(2, default_initializer=constant).tolist() == [7.0, 7.0]
        assert layer.create_parameter([1], attr=constant).item() == 7.0

    def test_settings(self):
        layer = ol.nn.Layer(dtype="float64")
        assert layer.create_parameter([1]).dtype == np.float64
        assert layer.create_parameter([1], dtype="float32").dtype == np.float32
        assert layer.create_parameter([1], attr="mine").name == "mine"
        assert layer.create_parameter([1], attr=False) is None

        settings = ol.ParamAttr(
            initializer=ol.nn.initializer.Constant(2.0),
            name="w",
            trainable=False,
            learning_rate=0.5,
            need_clip=False,
        )
        made = layer.create_parameter([1], attr=settings)
        assert (made.item(), made.name, made.trainable) == (2.0, "w", False)
        assert (made.learning_rate, made.need_clip) == (0.5, False)
        with pytest.raises(TypeError, match=r"attr must be an optlab\.ParamAttr"):
            layer.create_parameter([1], attr=3)


def test_full_names_are_unique_and_stay():
    class LongName(ol.nn.Layer):
        pass

    one, other = LongName(), LongName()
    assert one.full_name() != other.full_name()
    assert one.full_name() == one.full_name()
    assert one.full_name().startswith("long_name_")
    assert LongName("scope").full_name().startswith("scope_")


class Bag(ol.nn.Layer):
    """A layer that stores its argument as one attribute."""

    def __init__(self, held) -> None:
        super().__init__()
        self.d = held


class TestNamesThatDoNotFit:
    @pytest.mark.parametrize("make", [lambda: ol.Parameter([1.0]), lambda: ol.nn.Linear(1, 1)])
    def test_two_keys_that_are_written_alike(self, make):
        with pytest.raises(ValueError, match=r"'d' .* keys 1 and '1'.*d\.1"):
            Bag({1: make(), "1": make()}).state_dict()
        with pytest.raises(ValueError, match="keys 1 and '1'"):
            Bag({1: make(), "1": [make()]}).parameters()

    def test_keys_with_dots(self):
        held = {"a.b": ol.nn.Linear(1, 1), "a": {"b": ol.nn.Linear(1, 1)}}
        with pytest.raises(ValueError, match=r"'d' .* key 'a\.b'.*'a_b'"):
            Bag(held).state_dict()
        with pytest.raises(ValueError, match=r"key 0\.5"):
            Bag({0.5: [ol.Parameter([1.0])]}).parameters()

    def test_one_object_under_both_and_other_things_are_fine(self):
        shared = ol.nn.Linear(1, 1)
        assert list(Bag({1: shared, "1": shared}).state_dict()) == ["d.1.weight", "d.1.bias"]
        assert Bag({"a.b": 3, 1: "x", "1": ["y"], "2": {"c.d": None}}).parameters() == []

    def test_an_attribute_with_a_dot_that_meets_another_place(self):
        layer = Bag([ol.Parameter([1.0])])
        setattr(layer, "d.0", ol.Parameter([2.0, 3.0]))
        with pytest.raises(ValueError, match=r"Bag are named 'd\.0', of shapes \(1,\) and \(2,\)"):
            layer.state_dict()
