"""Programs in the style of Paddle's documents: layers, data and files."""

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
    """A language model with tied input and output embeddings."""

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
    # The gradients of both uses alone add up to the gradient of the shared table.
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
    model.register_buffer("a", paddle.zeros([1]))
    model.register_buffer("b", model.a)

    def names(found):
        return [name for name, _ in found]

    assert names(model.named_sublayers(remove_duplicate=True)) == ["first", "between"]
    everywhere = names(model.named_sublayers(include_self=True, remove_duplicate=False))
    assert everywhere == ["", "first", "between", "again"]
    twice = names(model.named_parameters(remove_duplicate=False))
    assert twice == ["first.weight", "first.bias", "again.weight", "again.bias"]
    assert names(model.named_buffers()) == ["a"]
    assert names(model.named_buffers(remove_duplicate=False)) == ["a", "b"]
    shared.owner = model  # a reference cycle is traversed once
    assert len(names(model.named_sublayers(remove_duplicate=False))) == 3


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
    # The gradient is 1, the decay 0.5 * 1, the rate 1.0 * 0.1; the bias does not change.
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


def test_an_optimizer_is_saved_beside_its_model_and_goes_on_where_it_was(tmp_path):
    def made():
        layer = nn.Linear(3, 2)
        adam = paddle.optimizer.Adam(learning_rate=0.1, parameters=layer.parameters())
        return layer, adam

    def steps(layer, adam, count):
        for _ in range(count):
            loss = paddle.mean(layer(x) ** 2)
            loss.backward()
            adam.minimize(loss)
            adam.clear_grad()

    x = paddle.rand([5, 3])
    layer, adam = made()
    steps(layer, adam, 3)
    path = str(tmp_path / "all.pdparams")
    paddle.save({"model": layer.state_dict(), "opt": adam.state_dict(), "epoch": 100}, path)
    steps(layer, adam, 2)
    other, its_adam = made()
    back = paddle.load(path)
    other.set_state_dict(back["model"])
    its_adam.set_state_dict(back["opt"])
    steps(other, its_adam, 2)
    assert np.array_equal(other.weight.numpy(), layer.weight.numpy())
    fresh, fresh_adam = made()
    fresh.set_state_dict(back["model"])
    steps(fresh, fresh_adam, 2)  # without the state the result differs
    assert not np.array_equal(fresh.weight.numpy(), layer.weight.numpy())
