"""Names of paddle.fluid beside the optimizers: there, or an error that says what to write."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import optlab as ol

fluid = ol.fluid


@pytest.mark.parametrize(("old", "new"), [
    ("L1Decay", "L1Decay"), ("L2Decay", "L2Decay"),
    ("L1DecayRegularizer", "L1Decay"), ("L2DecayRegularizer", "L2Decay"),
])  # fmt: skip
def test_regularizers(old, new):
    p, q = ol.Parameter([1.0, -2.0]), ol.Parameter([1.0, -2.0])
    decay = getattr(fluid.regularizer, old)(regularization_coeff=0.5)
    one = fluid.optimizer.SGD(0.5, decay, parameter_list=[p])
    other = ol.optimizer.SGD(0.5, parameters=[q], weight_decay=getattr(ol.regularizer, new)(0.5))
    for optimizer, parameter in ((one, p), (other, q)):
        (3 * parameter).sum().backward()
        optimizer.step()
    np.testing.assert_array_equal(p.numpy(), q.numpy())


@pytest.mark.parametrize(("old", "new", "arguments"), [
    ("GradientClipByValue", "ClipGradByValue", (1.0, -0.5)),
    ("GradientClipByNorm", "ClipGradByNorm", (1.0,)),
    ("GradientClipByGlobalNorm", "ClipGradByGlobalNorm", (1.0,)),
])  # fmt: skip
def test_clips(old, new, arguments):
    clip, modern = getattr(fluid.clip, old)(*arguments), getattr(ol.nn, new)(*arguments)
    p, g = ol.Parameter([1.0, 2.0]), ol.to_tensor([3.0, -4.0])
    [(_, found)], [(_, expected)] = clip([(p, g)]), modern([(p, g)])
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_param_attr_and_devices():
    layer = fluid.dygraph.Linear(2, 3, fluid.ParamAttr(name="embx", learning_rate=0.9))
    assert (layer.weight.name, layer.weight.learning_rate) == ("embx", 0.9)
    assert ol.set_device(fluid.CPUPlace()) == "cpu"
    assert ol.to_tensor([1.0], place=fluid.CPUPlace()).device == "cpu"
    assert fluid.CUDAPlace(1) == "gpu:1"
    assert repr(fluid.CUDAPlace(1)) == "CUDAPlace(1)"
    assert repr(fluid.CPUPlace()) == "CPUPlace()"
    for number in (-1, "0", True):
        with pytest.raises(ValueError, match="the number of a GPU"):
            fluid.CUDAPlace(number)


class TestDygraph:
    def test_a_program_of_it_trains(self):
        """The basics of 1.8.5: guard, to_variable, Linear, minimize, clear_gradients."""
        rng = np.random.default_rng(0)
        xs = rng.standard_normal((20, 2)).astype("float32")
        ys = xs @ np.array([[2.0], [-1.0]], "float32")
        with fluid.dygraph.guard(fluid.CPUPlace()):
            ol.seed(0)
            model = fluid.dygraph.Linear(2, 1)
            sgd = fluid.optimizer.SGDOptimizer(0.3, parameter_list=model.parameters())
            for _ in range(100):
                x, y = fluid.dygraph.to_variable(xs), fluid.dygraph.to_variable(ys)
                loss = fluid.layers.mean(fluid.layers.square_error_cost(model(x), y))
                loss.backward()
                sgd.minimize(loss)
                model.clear_gradients()
        np.testing.assert_allclose(model.weight.numpy(), [[2.0], [-1.0]], atol=1e-4)

    def test_guard_restores_the_device(self):
        before = ol.get_device()
        with pytest.raises(ZeroDivisionError), fluid.dygraph.guard("cpu"):
            1 / 0  # noqa: B018
        assert ol.get_device() == before
        assert fluid.dygraph.enabled()

    def test_to_variable(self):
        x = fluid.dygraph.to_variable(np.ones(2))
        assert x.dtype == np.float64
        assert x.stop_gradient
        assert fluid.dygraph.to_variable(x) is x
        with pytest.raises(TypeError, match=r"ol\.Parameter\(value, name='x'\)"):
            fluid.dygraph.to_variable([1.0], name="x")

    def test_an_activation_of_linear(self):
        layer = fluid.dygraph.Linear(2, 3, act="softmax")
        np.testing.assert_allclose(layer(ol.ones([4, 2])).numpy().sum(1), 1.0, rtol=1e-6)
        assert layer.weight.name.startswith("linear_")
        for act in ("nonsense", 3):
            with pytest.raises(ValueError, match="act names an activation"):
                fluid.dygraph.Linear(2, 3, act=act)

    def test_embedding_by_size(self):
        layer = fluid.dygraph.Embedding([10, 3], is_sparse=True, padding_idx=0)
        assert (layer.weight.shape, layer.sparse, layer.padding_idx) == ((10, 3), True, 0)
        with pytest.raises(TypeError, match=r"write Embedding\(size=\[10, 10\]\)"):
            fluid.dygraph.Embedding("emb", [10, 10])
        with pytest.raises(ValueError, match="the number of vectors and their length"):
            fluid.dygraph.Embedding(10)


class TestSaving:
    def trained(self):
        ol.seed(3)
        layer = fluid.dygraph.Embedding(size=[4, 2])
        adam = fluid.optimizer.Adam(0.1, parameter_list=layer.parameters())
        layer(ol.to_tensor([1, 2])).sum().backward()
        adam.minimize(layer(ol.to_tensor([1, 2])).sum())
        return layer, adam

    def test_a_layer_and_its_optimizer_come_back(self, tmp_path):
        layer, adam = self.trained()
        path = tmp_path / "sub" / "paddle_dy"
        fluid.save_dygraph(layer.state_dict(), str(path))
        fluid.save_dygraph(adam.state_dict(), str(path))
        assert sorted(one.name for one in path.parent.iterdir()) == [
            "paddle_dy.pdopt", "paddle_dy.pdparams",
        ]  # fmt: skip
        for name in (path, f"{path}.pdparams", f"{path}.pdopt"):
            weights, state = fluid.load_dygraph(name)
            fresh = fluid.dygraph.Embedding(size=[4, 2])
            other = fluid.optimizer.Adam(0.1, parameter_list=fresh.parameters())
            fresh.set_dict(weights)
            other.set_dict(state)
            np.testing.assert_array_equal(fresh.weight.numpy(), layer.weight.numpy())
            assert other.state_dict()["weight.t"] == adam.state_dict()["weight.t"] == 1

    def test_what_was_not_saved_is_none(self, tmp_path):
        layer, _ = self.trained()
        fluid.save_dygraph(layer.state_dict(), str(tmp_path / "a"))
        assert fluid.load_dygraph(str(tmp_path / "a"))[1] is None
        with pytest.raises(FileNotFoundError, match=r"neither .*b\.pdparams nor .*b\.pdopt"):
            fluid.load_dygraph(str(tmp_path / "b"))

    def test_what_cannot_be_saved(self, tmp_path):
        with pytest.raises(ValueError, match="the state is empty"):
            fluid.save_dygraph({}, str(tmp_path / "a"))
        with pytest.raises(ValueError, match="names a folder"):
            fluid.save_dygraph({"a": 1}, f"{tmp_path}/")
        with pytest.raises(TypeError, match="takes a state"):
            fluid.save_dygraph(ol.nn.Linear(1, 1), str(tmp_path / "a"))
        assert not list(tmp_path.iterdir())


class TestLayers:
    """Each against NumPy."""

    X = np.random.default_rng(2).standard_normal((3, 4, 5))

    @pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
    @pytest.mark.parametrize("dim", [None, 1, -1, [0, 2], (1,)])
    @pytest.mark.parametrize("keep", [False, True])
    def test_reductions(self, name, dim, keep):
        found = getattr(fluid.layers, f"reduce_{name}")(ol.to_tensor(self.X), dim, keep)
        axis = tuple(dim) if isinstance(dim, list) else dim
        expected = getattr(np, name)(self.X, axis=axis, keepdims=keep)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)

    def test_activations(self):
        x = ol.to_tensor(self.X)
        shifted = np.exp(self.X - self.X.max(1, keepdims=True))
        for found, expected in (
            (fluid.layers.relu(x), np.maximum(self.X, 0)),
            (fluid.layers.sigmoid(x), 1 / (1 + np.exp(-self.X))),
            (fluid.layers.tanh(x), np.tanh(self.X)),
            (fluid.layers.softmax(x, axis=1), shifted / shifted.sum(1, keepdims=True)),
            (fluid.layers.mean(x), self.X.mean()),
        ):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)

    @pytest.mark.parametrize("shape", [(3, 1), (3,)])
    def test_cross_entropies_are_one_number_an_example(self, shape):
        logits = self.X[:, 0]
        labels = np.array([4, 0, 2]).reshape(shape)
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        expected = -np.log(p[[0, 1, 2], labels.ravel()])[:, None]
        given = ol.to_tensor(p), ol.to_tensor(labels)
        np.testing.assert_allclose(fluid.layers.cross_entropy(*given).numpy(), expected)
        given = ol.to_tensor(logits), ol.to_tensor(labels)
        found = fluid.layers.softmax_with_cross_entropy(*given)
        np.testing.assert_allclose(found.numpy(), expected)
        ignored = fluid.layers.softmax_with_cross_entropy(*given, ignore_index=0)
        np.testing.assert_allclose(ignored.numpy(), expected * [[1], [0], [1]])

    def test_soft_labels(self):
        logits = self.X[:, 0]
        soft = np.full((3, 5), 0.2)
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        expected = -(soft * np.log(p)).sum(1, keepdims=True)
        found = fluid.layers.softmax_with_cross_entropy(
            ol.to_tensor(logits), ol.to_tensor(soft), soft_label=True
        )
        np.testing.assert_allclose(found.numpy(), expected)
        found = fluid.layers.cross_entropy(ol.to_tensor(p), ol.to_tensor(soft), True)
        np.testing.assert_allclose(found.numpy(), expected)


SAYS = [
    ("fluid.Program", "no static graphs here"),
    ("fluid.Executor", r"optimizer\.minimize\(loss\)"),
    ("fluid.program_guard", "Leave it out"),
    ("fluid.default_main_program", r"model\(x\)"),
    ("fluid.data", r"ol\.to_tensor\(array\)"),
    ("fluid.DataFeeder", r"ol\.io\.DataLoader"),
    ("fluid.DatasetFactory", r"ol\.io\.DataLoader"),
    ("fluid.initializer", r"ol\.nn\.initializer"),
    ("fluid.is_compiled_with_cuda", r"ol\.doctor\(\)"),
    ("fluid.CPUPlac", "Did you mean 'CPUPlace'"),
    ("fluid.layers.fc", r"ol\.nn\.Linear\(in_features, size\)"),
    ("fluid.layers.data", r"ol\.to_tensor\(array\)"),
    ("fluid.layers.embedding", r"ol\.nn\.Embedding"),
    ("fluid.layers.concat", r"np\.concatenate"),
    ("fluid.layers.noam_decay", r"ol\.optimizer\.lr\.NoamDecay\(d_model, warmup_steps\)"),
    ("fluid.layers.piecewise_decay", r"call schedule\.step\(\) after each step"),
    ("fluid.layers.log_softmax", r"ol\.nn\.functional\.log_softmax"),
    ("fluid.layers.exp", r"np\.exp"),
    ("fluid.layers.learning_rate_scheduler", r"ol\.optimizer\.lr"),
    ("fluid.dygraph.Conv2D", r"ol\.nn\.Conv2D\(in_channels, out_channels, kernel_size\)"),
    ("fluid.dygraph.NoamDecay", r"ol\.optimizer\.lr"),
    ("fluid.dygraph.TracedLayer", r"ol\.save"),
    ("fluid.clip.set_gradient_clip", "give the clip to the optimizer"),
    ("fluid.regularizer.L3Decay", "Did you mean"),
    ("fluid.optimizer.Adan", "Did you mean 'Adam"),
    ("distributed.init_parallel_env", "optlab runs in one process"),
    ("distributed.fleet.init", "optlab runs in one process"),
    ("distributed.fleet.utils.recomputee", "Did you mean 'recompute'"),
]


@pytest.mark.parametrize(("path", "said"), SAYS)
def test_what_is_not_there_says_what_to_write(path, said):
    place, _, name = path.rpartition(".")
    module = importlib.import_module(f"optlab.{place}")
    with pytest.raises(AttributeError, match=said) as caught:
        getattr(module, name)
    assert f"optlab.{place} has no '{name}'" in str(caught.value)
    assert name not in dir(module)
    with pytest.raises(ImportError):  # as `from paddle.fluid import Executor`
        exec(f"from optlab.{place} import {name}")


@pytest.mark.parametrize("place", ["fluid", "fluid.clip", "fluid.dygraph", "fluid.layers"])
def test_what_is_listed_is_there(place):
    module = importlib.import_module(f"optlab.{place}")
    for name in dir(module):
        assert getattr(module, name) is not None


def test_recompute_has_the_documented_path():
    from optlab.distributed.fleet.utils import recompute

    assert recompute is ol.recompute is ol.distributed.fleet.recompute
