"""Names documented by Paddle: Tensors, seeds, to_static, signatures."""

import inspect

import numpy as np
import pytest

import optlab as paddle
from optlab import nn


@pytest.fixture(autouse=True)
def _seeded():
    paddle.seed(2024)


# Tensors.


class TestTensors:
    def test_stop_gradient_is_the_opposite_of_requires_grad(self):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        assert x.requires_grad
        y = x * 2
        assert not y.stop_gradient
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        x.stop_gradient = True
        assert (x * 2).stop_gradient
        assert paddle.to_tensor([1.0]).stop_gradient
        assert paddle.to_tensor([1, 2], stop_gradient=False).stop_gradient  # integers
        with pytest.raises(RuntimeError, match="detach"):
            y.stop_gradient = True

    def test_what_to_tensor_refuses(self):
        with pytest.raises(ValueError, match="contradict"):
            paddle.to_tensor([1.0], requires_grad=True, stop_gradient=True)
        with pytest.raises(TypeError, match="place='cpu'"):
            paddle.to_tensor([1.0], "float32", "cpu")
        with pytest.raises(ValueError, match="no device 'tpu'"):
            paddle.to_tensor([1.0], place="tpu")
        assert paddle.to_tensor([1.0], place="cpu").tolist() == [1.0]

    def test_creation_takes_paddle_s_defaults(self):
        assert paddle.arange(end=3).tolist() == [0, 1, 2]
        drawn = paddle.randint(high=2, shape=(50,))
        assert set(drawn.tolist()) == {0, 1}
        x = paddle.uniform(shape=[1000], min=-0.1, max=0.1)
        assert x.dtype == paddle.float32
        assert -0.1 <= x.min().item() < -0.05 < 0.05 < x.max().item() < 0.1
        assert paddle.uniform([1000]).min().item() < -0.9
        assert paddle.rand(shape=[2, 3], dtype="float64").dtype == paddle.float64
        assert paddle.ones([2], dtype=paddle.int64).dtype == paddle.int64

    @pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
    def test_reductions_know_keepdim(self, name):
        a = np.arange(1.0, 7.0, dtype="float32").reshape(2, 3)
        x = paddle.to_tensor(a, stop_gradient=False)
        for axis in (None, 0, -1, [0, 1]):
            of_numpy = getattr(np, name)(a, axis=tuple(axis) if axis == [0, 1] else axis)
            of_function = getattr(paddle, name)(x, axis)
            np.testing.assert_array_equal(of_function.numpy(), of_numpy)
        kept = getattr(paddle, name)(x=x, axis=1, keepdim=True)
        assert kept.shape == (2, 1)
        assert getattr(x, name)(axis=1, keepdim=True).shape == (2, 1)
        assert getattr(x, name)(axis=1, keepdims=True).shape == (2, 1)
        assert getattr(paddle, name)(a, axis=1, keepdims=True).shape == (2, 1)
        assert isinstance(getattr(paddle, name)(a), np.floating)  # arrays in, NumPy arrays out
        kept.sum().backward()
        assert x.grad.shape == (2, 3)

    def test_what_keepdim_cannot_be(self):
        with pytest.raises(TypeError, match="keepdim is True or False"):
            paddle.mean(paddle.ones([2]), 0, np.float64)

    def test_var_and_std_know_keepdim(self):
        x = paddle.rand([3, 4])
        assert x.var(axis=1, keepdim=True).shape == (3, 1)
        assert x.std(axis=1, keepdim=True).shape == (3, 1)

    def test_item_gives_the_number_at_a_position(self):
        x = paddle.to_tensor([[1.5, 2.5], [3.5, 4.5]], stop_gradient=False)
        assert x.item(3) == 4.5
        assert x.item(1, 0) == 3.5
        assert type(x.item(0)) is float
        assert paddle.mean(x).item() == 3.0
        with pytest.raises(IndexError):
            x.item(4)

    def test_flatten_puts_a_range_of_axes_together(self):
        x = paddle.rand([2, 3, 4, 5])
        assert x.flatten().shape == (120,)
        assert x.flatten(1).shape == (2, 60)
        assert x.flatten(start_axis=1, stop_axis=2).shape == (2, 12, 5)
        assert x.flatten(-2).shape == (2, 3, 20)
        np.testing.assert_array_equal(x.flatten(1).numpy(), x.numpy().reshape(2, -1))
        np.testing.assert_array_equal(x.flatten("F").numpy(), x.numpy().flatten("F"))
        assert paddle.to_tensor(1.0).flatten().shape == (1,)
        with pytest.raises(ValueError, match="not a range of the 4"):
            x.flatten(2, 1)
        x.stop_gradient = False
        (x.flatten(1, 2) ** 2).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy())


def test_a_seed_gives_what_can_be_seeded_again():
    generator = paddle.seed(10)
    first = paddle.rand([3]).tolist()
    again = generator.manual_seed(10)
    assert paddle.rand([3]).tolist() == first
    assert again.initial_seed() == 10
    assert generator.initial_seed() == 10
    assert str(generator).endswith("from seed 10")
    assert repr(generator) == ""  # no output at a prompt
    with pytest.raises(TypeError, match="integer"):
        generator.manual_seed("10")
    assert paddle.get_cuda_rng_state() == []
    paddle.set_cuda_rng_state([])
    with pytest.raises(ValueError, match="1 states"):
        paddle.set_cuda_rng_state([object()])


# to_static.


class TestToStatic:
    def test_values_are_those_of_the_function_in_every_form(self):
        @paddle.jit.to_static
        def plain(x):
            return x + 1 if x.sum().item() > 0 else x - 1

        @paddle.jit.to_static()
        def called(x):
            return x * 3

        assert plain(paddle.ones([2])).tolist() == [2.0, 2.0]
        assert plain(-paddle.ones([2])).tolist() == [-2.0, -2.0]
        assert called(paddle.ones([1])).tolist() == [3.0]
        layer = nn.Linear(2, 2)
        assert paddle.jit.to_static(layer) is layer

    def test_a_forward_that_is_decorated_is_trained(self):
        class Net(nn.Layer):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 1)

            @paddle.jit.to_static
            def forward(self, x):
                return self.linear(x)

        net = Net()
        net(paddle.ones([3, 2])).sum().backward()
        assert net.linear.weight.grad.tolist() == [[3.0], [3.0]]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"input_spec": [1]}, "input_spec"),
            ({"full_graph": True}, "full_graph=True"),
            ({"fullgraph": True}, "no argument 'fullgraph'"),
        ],
    )
    def test_what_capture_would_ignore_is_refused(self, options, said):
        with pytest.raises(TypeError, match=said):
            paddle.jit.to_static(lambda x: x, **options)
        with pytest.raises(TypeError, match="cannot be called"):
            paddle.jit.to_static(3)

    def test_its_docstring_says_that_it_captures(self):
        assert "ol.capture(function, strict=False)" in inspect.getdoc(paddle.jit.to_static)
        assert paddle.in_dynamic_mode()
        assert paddle.disable_static() is None


# Signatures as Paddle documents them, without ``name``; values are the defaults.

DOCUMENTED = {
    "arange": "start=0, end=None, step=1, dtype=None",
    "rand": "shape, dtype=None",
    "uniform": "shape, dtype=None, min=-1.0, max=1.0",
    "randint": "low=0, high=None, shape, dtype=None",
    "zeros": "shape, dtype=None",
    "ones": "shape, dtype=None",
    "full": "shape, fill_value, dtype=None",
    "mean": "x, axis=None, keepdim=False",
    "sum": "x, axis=None, dtype=None, keepdim=False",
    "max": "x, axis=None, keepdim=False",
    "prod": "x, axis=None, keepdim=False, dtype=None",
    "nn.Linear": "in_features, out_features, weight_attr=None, bias_attr=None",
    "nn.Embedding": "num_embeddings, embedding_dim, padding_idx=None, sparse=False, "
    "weight_attr=None",
    "nn.Dropout": "p=0.5, axis=None, mode='upscale_in_train'",
    "nn.CrossEntropyLoss": "weight=None, ignore_index=-100, reduction='mean', soft_label=False, "
    "axis=-1, use_softmax=True, label_smoothing=0.0",
    "nn.Layer.add_sublayer": "name, sublayer",
    "nn.Layer.add_parameter": "name, parameter",
    "nn.Layer.create_parameter": "shape, attr=None, dtype=None, is_bias=False, "
    "default_initializer=None",
    "nn.Layer.register_buffer": "name, tensor, persistable=True",
    "nn.functional.dropout": "x, p=0.5, axis=None, training=True, mode='upscale_in_train'",
    "nn.functional.embedding": "x, weight, padding_idx=None, sparse=False",
    "ParamAttr": "name=None, initializer=None, learning_rate=1.0, regularizer=None, "
    "trainable=True, do_model_average=True, need_clip=True",
    "io.BatchSampler": "dataset=None, sampler=None, shuffle=False, batch_size=1, drop_last=False",
    "io.RandomSampler": "data_source, replacement=False, num_samples=None, generator=None",
    "io.WeightedRandomSampler": "weights, num_samples, replacement=True",
    "nn.functional.grid_sample": "x, grid, mode='bilinear', padding_mode='zeros', "
    "align_corners=True",
    "nn.functional.affine_grid": "theta, out_shape, align_corners=True",
    "nn.functional.softmax_with_cross_entropy": "logits, label, soft_label=False, "
    "ignore_index=-100, numeric_stable_mode=True, return_softmax=False, axis=-1",
    "save": "obj, path",
    "load": "path",
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_signatures_are_those_of_the_documents(name):
    found = paddle
    for part in name.split("."):
        found = getattr(found, part)
    ours = [
        (p.name, None if p.default is p.empty else p.default)
        for p in inspect.signature(found).parameters.values()
        if p.name != "self"
    ]
    documented = inspect.signature(eval(f"lambda {_all_with_defaults(DOCUMENTED[name])}: 0"))
    positions = {label: i for i, (label, _) in enumerate(ours)}
    places = []
    for p in documented.parameters.values():
        assert p.name in positions, f"{name} has no argument {p.name}"
        if p.default != "anything":
            assert ours[positions[p.name]][1] == p.default, p.name
        places.append(positions[p.name])
    assert places == list(range(len(places))), f"{name}: another order, {ours}"


def _all_with_defaults(text):
    """Return the signature with a default for every argument, so that any order is valid."""
    return ", ".join(
        part if "=" in part else f"{part}='anything'"
        for part in text.replace("\n", " ").split(", ")
    )
