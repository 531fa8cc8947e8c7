"""Programs as users of Paddle write them, on the names that the documents' examples use."""

import inspect

import numpy as np
import pytest

import optlab as paddle
from optlab import nn
from optlab.io import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    get_worker_info,
)
from optlab.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded():
    paddle.seed(2024)


# Layers.


class Tied(nn.Layer):
    """Words are read and written with one table."""

    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.body = nn.Linear(width, width)
        self.head_weight = self.embedding.weight

    def forward(self, ids):
        h = F.relu(self.body(self.embedding(ids)))
        return paddle.matmul(h, self.head_weight.T)


def test_a_parameter_shared_by_two_sublayers_is_trained_once_with_both_gradients():
    model = Tied(7, 4)
    places = [name for name, _ in model.named_parameters()]
    assert places == ["head_weight", "body.weight", "body.bias"]
    assert len(model.parameters()) == 3
    ids = paddle.to_tensor([[1, 2, 3]])
    table = model.embedding.weight
    # The two uses apart from each other add up to the gradient of the shared one.
    through_head = (F.relu(model.body(model.embedding(ids).detach())) @ table.T).sum()
    through_head.backward()
    head = table.grad.numpy().copy()
    model.clear_gradients()
    (F.relu(model.body(model.embedding(ids))) @ table.detach().T).sum().backward()
    reading = table.grad.numpy().copy()
    model.clear_gradients()
    model(ids).sum().backward()
    np.testing.assert_allclose(table.grad.numpy(), head + reading, rtol=1e-5, atol=1e-6)
    assert np.abs(head).max() > 0
    assert np.abs(reading).max() > 0
    before = table.numpy()
    sgd = paddle.optimizer.SGD(learning_rate=0.5, parameters=model.parameters())
    sgd.step()
    np.testing.assert_allclose(
        model.head_weight.numpy(), before - 0.5 * (head + reading), rtol=1e-4, atol=1e-6
    )


def test_a_layer_used_in_two_places_is_one():
    shared = nn.Linear(3, 3)
    model = nn.Sequential(("first", shared), ("between", nn.ReLU()), ("again", shared))
    assert len(model.parameters()) == 2
    assert len(model.sublayers()) == 2
    assert model["first"] is model["again"]


def test_a_sequential_of_named_pairs_and_one_more():
    model = nn.Sequential(("fc", nn.Linear(4, 3, bias_attr=False)), ("act", nn.Tanh()))
    model.add_sublayer("out", nn.Linear(3, 1))
    assert list(model.state_dict()) == ["fc.weight", "out.weight", "out.bias"]
    assert model.fc.bias is None
    assert [name for name, _ in model.named_children()] == ["fc", "act", "out"]
    x = paddle.rand([2, 4])
    expected = np.tanh(x.numpy() @ model.fc.weight.numpy()) @ model.out.weight.numpy()
    np.testing.assert_allclose(model(x).numpy(), expected + model.out.bias.numpy(), rtol=1e-5)


def test_parameters_made_and_added_by_hand():
    class Scale(nn.Layer):
        def __init__(self, size):
            super().__init__()
            gain = self.create_parameter(
                shape=[size], default_initializer=nn.initializer.Constant(2.0)
            )
            self.add_parameter("gain", gain)
            self.shift = self.create_parameter([size], is_bias=True)
            self.register_buffer("seen", paddle.zeros([1]))
            self.add_sublayer("inner", nn.Linear(size, size))

        def forward(self, x):
            self.seen = self.seen + 1
            return self.inner(x) * self.gain + self.shift

    layer = Scale(3)
    assert isinstance(layer.gain, paddle.Parameter)
    assert layer.gain.numpy().tolist() == [2.0, 2.0, 2.0]
    assert layer.shift.numpy().tolist() == [0.0, 0.0, 0.0]
    layer(paddle.ones([2, 3]))
    assert layer.state_dict()["seen"].item() == 1
    assert {"gain", "shift", "inner.weight", "inner.bias", "seen"} == set(layer.state_dict())
    free = paddle.create_parameter(shape=[2, 3], dtype="float32")
    assert free.shape == (2, 3)
    assert free.trainable


def test_a_param_attr_says_how_a_parameter_starts_and_moves():
    attr = paddle.ParamAttr(
        name="slow",
        learning_rate=0.1,
        regularizer=paddle.regularizer.L2Decay(0.5),
        initializer=nn.initializer.Constant(1.0),
    )
    frozen = paddle.ParamAttr(initializer=nn.initializer.Constant(3.0), trainable=False)
    linear = nn.Linear(2, 1, weight_attr=attr, bias_attr=frozen)
    assert linear.weight.name == "slow"
    assert linear.bias.stop_gradient
    sgd = paddle.optimizer.SGD(learning_rate=1.0, parameters=linear.parameters())
    loss = linear(paddle.ones([1, 2])).sum()
    assert loss.item() == 5.0
    loss.backward()
    sgd.step()
    # The gradient is 1, the decay 0.5 * 1, the rate 1.0 * 0.1; the bias stays.
    np.testing.assert_allclose(linear.weight.numpy(), [[0.85], [0.85]], rtol=1e-6)
    assert linear.bias.numpy().tolist() == [3.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_an_embedding_leaves_the_row_of_padding_at_zero(sparse):
    embedding = nn.Embedding(5, 3, padding_idx=-1, sparse=sparse)
    assert not embedding.weight.numpy()[4].any()
    ids = paddle.to_tensor([[0, 4], [1, 0]], dtype="int64", stop_gradient=False)
    out = embedding(ids)
    assert out.shape == (2, 2, 3)
    assert not out.numpy()[0, 1].any()
    adam = paddle.optimizer.Adam(parameters=[embedding.weight], learning_rate=0.01)
    before = embedding.weight.numpy()
    out.backward()
    adam.step()
    moved = np.abs(embedding.weight.numpy() - before).max(1) > 0
    assert moved.tolist() == [True, True, False, False, False]


def test_the_modes_of_dropout():
    x = paddle.ones([200, 50])
    up = nn.Dropout(p=0.5)
    assert set(np.unique(up(x).numpy())) == {0.0, 2.0}
    down = nn.Dropout(0.5, mode="downscale_in_infer")
    assert set(np.unique(down(x).numpy())) == {0.0, 1.0}
    up.eval()
    down.eval()
    assert (up(x).numpy() == 1.0).all()
    assert (down(x).numpy() == 0.5).all()
    rows = F.dropout(x, p=0.5, axis=0, training=True).numpy()
    assert set(rows.sum(1)) == {0.0, 100.0}
    with pytest.raises(ValueError, match="mode"):
        nn.Dropout(0.5, mode="upscale")


def test_cross_entropy_takes_labels_of_shape_n_and_n_1_and_soft_ones():
    logits = paddle.uniform([4, 3], dtype="float64", min=0.1, max=1.0)
    labels = paddle.randint(low=0, high=3, shape=[4], dtype="int64")
    plain = nn.CrossEntropyLoss()(logits, labels).item()
    assert nn.CrossEntropyLoss()(logits, labels.reshape([4, 1])).item() == plain
    one_hot = F.one_hot(labels, 3)
    soft = nn.CrossEntropyLoss(soft_label=True)(logits, one_hot.astype("float64"))
    np.testing.assert_allclose(soft.item(), plain, rtol=1e-12)
    smoothed = nn.loss.CrossEntropyLoss(label_smoothing=0.4)
    np.testing.assert_allclose(
        smoothed(logits, labels).item(), smoothed(logits, one_hot).item(), rtol=1e-6
    )
    assert smoothed(logits, labels).item() != plain


# Data.


class Squares(Dataset):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def __getitem__(self, index):
        return np.full([2], index, dtype="float32"), np.array([index * index], dtype="int64")

    def __len__(self):
        return self.count


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_is_called_and_iterated(workers):
    loader = DataLoader(
        Squares(10), batch_size=4, shuffle=False, drop_last=True, num_workers=workers
    )
    assert len(loader) == 2
    called = [(x.shape, x.dtype, y.shape, y.tolist()) for x, y in loader()]
    iterated = [(x.shape, x.dtype, y.shape, y.tolist()) for _, (x, y) in enumerate(loader)]
    assert called == iterated
    assert called[1] == ((4, 2), np.float32, (4, 1), [[16], [25], [36], [49]])


def test_a_batch_is_a_list_and_return_list_says_so():
    loader = DataLoader(Squares(4), batch_size=2, return_list=True)
    batch = next(iter(loader))
    assert isinstance(batch, list)
    assert all(isinstance(part, paddle.Tensor) for part in batch)
    assert all(part.stop_gradient for part in batch)
    with pytest.raises(TypeError, match="return_list"):
        DataLoader(Squares(4), batch_size=2, return_list=False)


def test_batch_samplers_of_all_kinds():
    data = Squares(10)
    assert list(BatchSampler(dataset=data, batch_size=4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    shuffled = BatchSampler(dataset=data, shuffle=True, batch_size=4, drop_last=True)
    assert len(shuffled) == len(list(shuffled)) == 2

    class Backwards(Sampler):
        def __iter__(self):
            return iter(range(len(self.data_source))[::-1])

        def __len__(self):
            return len(self.data_source)

    sampler = BatchSampler(sampler=Backwards(data), batch_size=3, drop_last=True)
    loader = DataLoader(data, batch_sampler=sampler, num_workers=0)
    assert [y.tolist()[0] for _, y in loader] == [[81], [36], [9]]
    assert sorted(RandomSampler(data)) == list(range(10))


def test_an_iterable_dataset_is_parted_by_its_workers_or_read_by_one():
    class Stream(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            start, step = (0, 1) if info is None else (info.id, info.num_workers)
            for i in range(start, 6, step):
                yield np.array(i, dtype="int64")

    for workers in (0, 2):
        loader = DataLoader(Stream(), batch_size=2, num_workers=workers)
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]


def test_worker_init_fn_and_collate_fn(tmp_path):
    def start(worker):
        (tmp_path / f"worker{worker}").touch()

    def collate(examples):
        xs, ys = zip(*examples, strict=True)
        return {"x": np.stack(xs), "count": len(ys)}

    loader = DataLoader(
        Squares(6), batch_size=3, num_workers=2, worker_init_fn=start, collate_fn=collate
    )
    batches = list(loader)
    assert [batch["count"] for batch in batches] == [3, 3]
    assert batches[0]["x"].shape == (3, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["worker0", "worker1"]


# Files.


def test_a_checkpoint_of_model_and_numbers_comes_back(tmp_path):
    model = nn.Sequential(("fc", nn.Linear(3, 2)), ("norm", nn.BatchNorm1D(2)))
    model(paddle.rand([4, 3]))
    path = str(tmp_path / "sub" / "checkpoint.pdparams")
    paddle.save({"model": model.state_dict(), "epoch": 3, "losses": [0.5, 0.25]}, path)
    back = paddle.load(path)
    assert back["epoch"] == 3
    assert back["losses"] == [0.5, 0.25]
    other = nn.Sequential(("fc", nn.Linear(3, 2)), ("norm", nn.BatchNorm1D(2)))
    other.set_state_dict(back["model"])
    for name, value in model.state_dict().items():
        assert np.array_equal(other.state_dict()[name].numpy(), value.numpy()), name
    arrays = paddle.load(path, return_numpy=True)
    assert isinstance(arrays["model"]["fc.weight"], np.ndarray)
    paddle.save(model.fc.weight, str(tmp_path / "weight.pdtensor"))
    weight = paddle.load(str(tmp_path / "weight.pdtensor"))
    assert np.array_equal(weight.numpy(), model.fc.weight.numpy())


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
        assert paddle.to_tensor([1, 2], stop_gradient=False).stop_gradient  # whole numbers
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
        assert isinstance(getattr(paddle, name)(a), np.floating)  # arrays in, NumPy out
        kept.sum().backward()
        assert x.grad.shape == (2, 3)

    def test_what_keepdim_cannot_be(self):
        with pytest.raises(TypeError, match="keepdim is True or False"):
            paddle.mean(paddle.ones([2]), 0, np.float64)

    def test_var_and_std_know_keepdim(self):
        x = paddle.rand([3, 4])
        assert x.var(axis=1, keepdim=True).shape == (3, 1)
        assert x.std(axis=1, keepdim=True).shape == (3, 1)

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
    assert repr(generator) == ""  # nothing is shown at a prompt
    with pytest.raises(TypeError, match="integer"):
        generator.manual_seed("10")
    assert paddle.get_cuda_rng_state() == []
    paddle.set_cuda_rng_state([])
    with pytest.raises(ValueError, match="1 states"):
        paddle.set_cuda_rng_state([object()])


# to_static.


class TestToStatic:
    def test_it_gives_the_function_back_in_every_form(self):
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
    def test_what_eager_running_would_ignore_is_refused(self, options, said):
        with pytest.raises(TypeError, match=said):
            paddle.jit.to_static(lambda x: x, **options)
        with pytest.raises(TypeError, match="cannot be called"):
            paddle.jit.to_static(3)

    def test_its_docstring_says_that_it_runs_eagerly(self):
        assert "runs eagerly" in inspect.getdoc(paddle.jit.to_static)
        assert paddle.in_dynamic_mode()
        assert paddle.disable_static() is None


# Signatures: what Paddle's documents print, without ``name``; values are the defaults.

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
    """Give every argument a default, so that one without may follow one with."""
    return ", ".join(
        part if "=" in part else f"{part}='anything'"
        for part in text.replace("\n", " ").split(", ")
    )
