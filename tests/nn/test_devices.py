"""Training runs on a device: no array leaves it, and the results are those of the CPU."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd import RowSparse
from tests.guarded import GuardedArray

F = ol.nn.functional


@pytest.fixture(autouse=True)
def back_to_the_cpu() -> Any:
    yield
    ol.set_device("cpu")


def mlp() -> Any:
    return ol.nn.Sequential(
        ol.nn.Linear(4, 8), ol.nn.BatchNorm1D(8), ol.nn.ReLU(), ol.nn.Dropout(0.2),
        ol.nn.Linear(8, 3),
    )  # fmt: skip


def picture_model() -> Any:
    return ol.nn.Sequential(
        ol.nn.Conv2D(1, 2, 3), ol.nn.ReLU(), ol.nn.MaxPool2D(2), ol.nn.Flatten(),
        ol.nn.Linear(2, 3),
    )  # fmt: skip


def adam(model: Any) -> Any:
    return ol.optimizer.Adam(
        0.05,
        parameters=model.parameters(),
        weight_decay=ol.regularizer.L2Decay(0.01),
        grad_clip=ol.nn.ClipGradByGlobalNorm(0.5),
    )


def momentum(model: Any) -> Any:
    clip = ol.nn.ClipGradByNorm(1.0)
    return ol.optimizer.Momentum(0.05, parameters=model.parameters(), grad_clip=clip)


def rmsprop_in_groups(model: Any) -> Any:
    first, *rest = model.parameters()
    groups = [{"params": [first]}, {"params": rest, "learning_rate": 0.5}]
    return ol.optimizer.RMSProp(0.01, parameters=groups, grad_clip=ol.nn.ClipGradByValue(0.1))


def train(device: str, make: Any, optimizer_of: Any, shape: Any) -> tuple[Any, Any, list[float]]:
    """Train from random data on a device; return the model, its optimizer and the losses."""
    ol.set_device(device)
    ol.seed(3)
    model = make()
    optimizer = optimizer_of(model)
    x, labels = ol.randn([12, *shape]), ol.randint(0, 3, [12])
    criterion = ol.nn.CrossEntropyLoss()
    losses = []
    for _ in range(5):
        loss = criterion(model(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    ol.set_device("cpu")
    return model, optimizer, losses


RUNS = [
    (mlp, adam, [4]), (mlp, momentum, [4]), (mlp, rmsprop_in_groups, [4]),
    (picture_model, adam, [1, 5, 5]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "optimizer_of", "shape"), RUNS)
def test_a_training_run_stays_on_its_device(make: Any, optimizer_of: Any, shape: Any) -> None:
    host, _, expected = train("cpu", make, optimizer_of, shape)
    there, optimizer, losses = train("guarded", make, optimizer_of, shape)
    assert losses == expected
    assert losses[-1] < losses[0]
    for (name, value), same in zip(
        there.state_dict().items(), host.state_dict().values(), strict=True
    ):
        assert value.device == "guarded", name
        np.testing.assert_array_equal(value.numpy(), same.numpy(), name)
    for group in optimizer.groups:
        for params in group.arenas:
            held = [params.flat, *params.slots.values(), *params.views]
            assert {type(array) for array in held} == {GuardedArray}


@pytest.mark.gpu
@pytest.mark.parametrize(("make", "optimizer_of", "shape"), RUNS)
def test_a_training_run_on_a_gpu(make: Any, optimizer_of: Any, shape: Any) -> None:
    need_gpu()
    host, _, expected = train("cpu", make, optimizer_of, shape)
    there, optimizer, losses = train("gpu", make, optimizer_of, shape)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for (name, value), same in zip(
        there.state_dict().items(), host.state_dict().values(), strict=True
    ):
        assert value.device == "gpu:0", name
        np.testing.assert_allclose(value.numpy(), same.numpy(), 1e-3, 1e-4, err_msg=name)
    cupy = pytest.importorskip("cupy")
    for group in optimizer.groups:
        for params in group.arenas:
            assert {type(a) for a in (params.flat, *params.slots.values())} == {cupy.ndarray}


@pytest.mark.gpu
def test_moving_to_a_gpu_and_back() -> None:
    need_gpu()
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    y = x.to("gpu") ** 3
    assert y.device == "gpu:0"
    y.sum().backward()
    assert x.grad.device == "cpu"
    assert x.grad.tolist() == [3.0, 12.0]
    with pytest.raises(TypeError, match=r"on cpu .*on gpu:0"):
        ol.ones([2]) + y


def need_gpu() -> None:
    """Skip a test without a GPU."""
    try:
        ol.set_device("gpu")
    except RuntimeError as error:
        pytest.skip(str(error))
    ol.set_device("cpu")


def test_a_recorded_run_is_read_on_the_host() -> None:
    recorded = []
    for device in ("cpu", "guarded"):
        ol.set_device(device)
        ol.seed(1)
        layer = ol.nn.Linear(3, 1)
        optimizer = ol.optimizer.Adam(0.1, parameters=layer.parameters())
        x = ol.randn([5, 3])
        with ol.record(optimizer) as trace:
            for _ in range(3):
                layer(x).sum().backward()
                optimizer.step()
                optimizer.clear_grad()
        recorded.append(trace)
    host, there = recorded
    assert len(host) == len(there) == 3
    for kind in ("parameters", "gradients"):
        for name, rows in getattr(host, kind).items():
            np.testing.assert_array_equal(getattr(there, kind)[name], rows, f"{kind} {name}")
    for name, rows in host.slots["moment2"].items():
        np.testing.assert_array_equal(there.slots["moment2"][name], rows)


# Transfer of a layer.


def test_a_layer_moves_with_gradients_and_buffers() -> None:
    ol.seed(0)
    model = mlp()
    shared = model[0].weight
    model.tied = [shared]
    model(ol.randn([6, 4])).sum().backward()
    before = {name: value.numpy() for name, value in model.state_dict().items()}
    gradient = shared.grad.numpy()
    assert model.to("guarded", "float64") is model
    assert model[0].weight is model.tied[0] is shared
    for name, value in model.state_dict().items():
        assert (value.device, value.dtype) == ("guarded", np.float64), name
        np.testing.assert_array_equal(value.numpy(), before[name].astype(float))
    assert shared.grad.device == "guarded"
    np.testing.assert_array_equal(shared.grad.numpy(), gradient.astype(float))
    assert model.to("cpu")[0].weight.device == "cpu"
    assert shared.grad.device == "cpu"


def test_a_row_sparse_gradient_moves_along() -> None:
    ol.seed(0)
    table = ol.nn.Embedding(9, 2, sparse=True)
    table(ol.to_tensor([1, 1, 4])).sum().backward()
    table.to("guarded")
    g = table.weight.grad
    assert isinstance(g, RowSparse)
    assert isinstance(g.values, GuardedArray)
    assert g.dense().get().sum(1).tolist() == [0, 4, 0, 0, 2, 0, 0, 0, 0]


def test_an_optimizer_made_before_the_move_says_so() -> None:
    layer = ol.nn.Linear(2, 2)
    optimizer = ol.optimizer.SGD(0.1, parameters=layer.parameters())
    layer.to("guarded")
    layer(ol.ones([1, 2]).to("guarded")).sum().backward()
    with pytest.raises(ValueError, match="was on cpu when the optimizer was made, and is now on g"):
        optimizer.step()


def test_one_optimizer_may_have_parameters_on_two_devices() -> None:
    here, there = ol.nn.Linear(2, 2), ol.nn.Linear(2, 1).to("guarded")
    both = [*here.parameters(), *there.parameters()]
    clip = ol.nn.ClipGradByGlobalNorm(1.0)
    optimizer = ol.optimizer.Adam(0.1, parameters=both, grad_clip=clip)
    loss = there(here(ol.ones([3, 2])).to("guarded")).sum()
    loss.backward()
    old = [p.numpy() for p in both]
    optimizer.step()
    assert [p.device for p in both] == ["cpu", "cpu", "guarded", "guarded"]
    assert all((p.numpy() != q).any() for p, q in zip(both, old, strict=True))


def test_data_of_another_device_is_refused_by_name() -> None:
    layer = ol.nn.Linear(2, 2).to("guarded")
    with pytest.raises(TypeError, match=r"on cpu .*on guarded|on guarded .*on cpu"):
        layer(ol.ones([1, 2]))


def test_a_state_dict_is_copied_to_where_the_layer_lies(tmp_path: Any) -> None:
    ol.seed(0)
    there = ol.nn.Linear(2, 3).to("guarded")
    state = {name: value.numpy() for name, value in ol.nn.Linear(2, 3).state_dict().items()}
    there.set_state_dict(state)
    assert there.weight.device == "guarded"
    np.testing.assert_array_equal(there.weight.numpy(), state["weight"])
    host = ol.nn.Linear(2, 3)
    host.set_state_dict(copy.copy(there.state_dict()))
    assert host.weight.device == "cpu"
    np.testing.assert_array_equal(host.weight.numpy(), state["weight"])
    ol.save(there.state_dict(), tmp_path / "there.npz")
    loaded = ol.load(tmp_path / "there.npz")
    assert loaded["weight"].tolist() == state["weight"].tolist()


# Arrays beside the data must be on its device.


def on_guarded(x: Any) -> Any:
    return ol.to_tensor(x).to("guarded")


def wrongly_placed() -> list[Any]:
    scores, labels = ol.ones([2, 3]), [0, 2]
    away = on_guarded(scores)
    words = ol.ones([1, 2, 1, 4]).to("guarded")
    return [
        lambda: F.cross_entropy(away, ol.to_tensor(labels)),
        lambda: F.cross_entropy(away, np.array(labels)),
        lambda: F.cross_entropy(scores, on_guarded(labels)),
        lambda: F.nll_loss(away, np.array(labels)),
        lambda: F.cross_entropy(away, on_guarded(labels), weight=np.ones(3)),
        lambda: F.cross_entropy(away, on_guarded(labels), weight=ol.ones([3])),
        lambda: F.cross_entropy(scores, labels, weight=away[0]),
        lambda: F.cross_entropy(away, np.ones((2, 3)) / 3, soft_label=True),
        lambda: F.embedding(ol.to_tensor(labels), on_guarded(np.ones((3, 2)))),
        lambda: F.scaled_dot_product_attention(words, words, words, np.ones((2, 2), bool)),
        lambda: F.scaled_dot_product_attention(words, words, words, ol.ones([2, 2])),
        lambda: ol.nn.SimpleRNN(4, 2).to("guarded")(
            words[:, :, 0], sequence_length=ol.to_tensor([1])
        ),
    ]


@pytest.mark.parametrize("number", range(12))
def test_nothing_is_moved_to_the_data_by_itself(number: int) -> None:
    with pytest.raises(TypeError, match=r"on cpu.*on guarded|on guarded.*on cpu"):
        wrongly_placed()[number]()


def test_lists_become_arrays_beside_the_data() -> None:
    labels = [0, 2]
    for scores in (ol.ones([2, 3]), ol.ones([2, 3]).to("guarded")):
        assert F.cross_entropy(scores, labels, weight=[1, 2, 3]).item() == pytest.approx(np.log(3))
        assert F.embedding(labels, scores.T).device == scores.device
        soft = F.cross_entropy(scores, [[0.0, 0.5, 0.5]] * 2, soft_label=True)
        assert soft.item() == pytest.approx(np.log(3))
    words = ol.ones([1, 2, 1, 4]).to("guarded")
    seen = F.scaled_dot_product_attention(words, words, words, [[True, False], [True, True]])
    assert seen.device == "guarded"


def test_what_was_loaded_goes_to_where_the_parameters_lie(tmp_path: Any) -> None:
    ol.seed(0)
    saved = mlp()
    saved(ol.randn([6, 4]))
    ol.save(saved.state_dict(), tmp_path / "mlp.npz")
    loaded = ol.load(tmp_path / "mlp.npz")
    assert {value.device for value in loaded.values()} == {"cpu"}
    there = mlp().to("guarded")
    there.load_state_dict(loaded)
    for name, value in there.state_dict().items():
        assert value.device == "guarded", name
        np.testing.assert_array_equal(value.numpy(), saved.state_dict()[name].numpy())


@pytest.mark.parametrize(
    ("name", "fault", "said"),
    [
        ("4.weight", lambda x: x.T, "4.weight has shape .8, 3. here, .3, 8. there"),
        ("4.bias", lambda x: x.astype("float64"), "4.bias is float32 here, float64 there"),
        ("1._none", lambda x: x, "not in the layer: 1._none"),
    ],
)
def test_nothing_changes_on_the_device_unless_all_fits(name: str, fault: Any, said: str) -> None:
    there = mlp().to("guarded")
    before = {key: value.numpy() for key, value in there.state_dict().items()}
    state = {key: value + 1 for key, value in before.items()}
    state[name] = fault(state.get(name, np.ones(2, "float32")))
    with pytest.raises(ValueError, match=said):
        there.set_state_dict(state)
    for key, value in there.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key], key)
