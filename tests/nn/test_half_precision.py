"""Layers and functions of networks in 16 bits: close to float32, and close to PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend import dtypes
from tests.nn.cases import CASES, Case

try:
    import ml_dtypes
except ModuleNotFoundError:
    ml_dtypes = None

needs_ml_dtypes = pytest.mark.skipif(ml_dtypes is None, reason="needs the package ml_dtypes")
both = pytest.mark.parametrize(
    "dtype", ["float16", pytest.param("bfloat16", marks=needs_ml_dtypes)]
)
ALL = pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.label)

#: The spacing of numbers near 1.
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def near(got: Any, wanted: Any, dtype: str, roundings: float) -> None:
    got, wanted = (np.asarray(x.numpy()).astype("float64") for x in (got, wanted))
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=roundings * EPS[dtype] * scale)


@both
@ALL
def test_functions_are_near_float32(case: Case, dtype: str) -> None:
    low = [ol.to_tensor(x, dtype=dtype, requires_grad=True) for x in case.args]
    high = [ol.to_tensor(t.numpy().astype("float32"), requires_grad=True) for t in low]
    y, wanted = case.f(*low), case.f(*high)
    assert y.dtype == dtype
    near(y.detach(), wanted.detach(), dtype, 8)
    y.backward()
    wanted.backward()
    for t, other in zip(low, high, strict=True):
        assert t.grad is not None
        assert other.grad is not None
        assert t.grad.dtype == dtype
        near(t.grad, other.grad, dtype, 24)


LAYERS = {
    "Linear": (lambda: ol.nn.Linear(4, 3), (5, 4)),
    "Conv1D": (lambda: ol.nn.Conv1D(4, 3, 3, padding=1), (2, 4, 6)),
    "Conv2D": (lambda: ol.nn.Conv2D(4, 2, 3, groups=2), (2, 4, 5, 5)),
    "Conv2DTranspose": (lambda: ol.nn.Conv2DTranspose(4, 2, 3, stride=2), (2, 4, 3, 3)),
    "BatchNorm1D": (lambda: ol.nn.BatchNorm1D(4), (6, 4)),
    "BatchNorm2D": (lambda: ol.nn.BatchNorm2D(4), (3, 4, 2, 2)),
    "LayerNorm": (lambda: ol.nn.LayerNorm(4), (3, 4)),
    "GroupNorm": (lambda: ol.nn.GroupNorm(2, 4), (3, 4, 2, 2)),
    "RMSNorm": (lambda: ol.nn.RMSNorm(4), (3, 4)),
    "InstanceNorm2D": (lambda: ol.nn.InstanceNorm2D(4), (3, 4, 4, 4)),
    "MaxPool2D": (lambda: ol.nn.MaxPool2D(2), (2, 4, 4, 4)),
    "AvgPool2D": (lambda: ol.nn.AvgPool2D(2), (2, 4, 4, 4)),
    "LSTM": (lambda: ol.nn.LSTM(4, 3), (2, 5, 4)),
    "GRU": (lambda: ol.nn.GRU(4, 3), (2, 5, 4)),
    "SimpleRNN": (lambda: ol.nn.SimpleRNN(4, 3), (2, 5, 4)),
    "MultiHeadAttention": (lambda: ol.nn.MultiHeadAttention(4, 2), (2, 5, 4)),
    "TransformerEncoderLayer": (
        lambda: ol.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (2, 5, 4)
    ),
}  # fmt: skip


def run(layer: Any, x: Any) -> tuple[Any, list[Any]]:
    y = layer(x)
    y = y[0] if isinstance(y, tuple) else y
    weights = np.cos(np.arange(y.size)).reshape(y.shape).astype("float32")
    (y.astype("float32") * weights).sum().backward()
    return y.detach(), [p.grad for p in layer.parameters()] + [x.grad]


@both
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_near_float32(name: str, dtype: str) -> None:
    make, shape = LAYERS[name]
    x = np.random.default_rng(0).uniform(-1, 1, shape)
    with ol.random_scope(0):
        low = make()
    low.to(dtype=dtype)
    with ol.random_scope(0):
        high = make()
    for p, q in zip(high.parameters(), low.parameters(), strict=True):
        p.set_value(q.numpy().astype("float32"))
    given = ol.to_tensor(x, dtype=dtype, requires_grad=True)
    wide = ol.to_tensor(given.numpy().astype("float32"), requires_grad=True)
    y, gradients = run(low, given)
    wanted, others = run(high, wide)
    assert y.dtype == dtype
    near(y, wanted, dtype, 8)
    for g, other in zip(gradients, others, strict=True):
        assert g.dtype == dtype
        near(g, other, dtype, 32)
    for buffer in low.buffers():
        assert dtypes.is_half(buffer.dtype) or buffer.dtype.kind in "iu"


class TestChangingTheType:
    @both
    @pytest.mark.parametrize("way", ["to", "astype", "own name", "made so"])
    def test_ways(self, way: str, dtype: str) -> None:
        layer = ol.nn.Linear(2, 2)
        if way == "to":
            layer.to(dtype=dtype)
        elif way == "astype":
            layer.astype(dtype)
        elif way == "own name":
            getattr(layer, dtype)()
        else:
            layer = ol.nn.Layer(dtype=dtype)
            layer.weight = layer.create_parameter([2, 2])
        assert {p.dtype.name for p in layer.parameters()} == {dtype}

    @both
    def test_a_parameter_and_its_initializer(self, dtype: str) -> None:
        assert ol.create_parameter([2, 2], dtype).dtype == dtype
        assert ol.nn.initializer.Normal()((2, 2), dtype).dtype == dtype

    @both
    def test_a_round_trip_through_a_state_dict_and_a_file(self, dtype: str, tmp_path: Any) -> None:
        layer, other = ol.nn.Linear(2, 2).to(dtype=dtype), ol.nn.Linear(2, 2).to(dtype=dtype)
        ol.save(layer.state_dict(), tmp_path / "layer.npz")
        other.set_state_dict(ol.load(tmp_path / "layer.npz"))
        assert other.weight.dtype == dtype
        assert other.weight.tolist() == layer.weight.tolist()

    @both
    def test_a_loader_gives_batches_of_the_type(self, dtype: str) -> None:
        x = ol.to_tensor(np.arange(6.0).reshape(3, 2), dtype=dtype)
        for data in (ol.io.TensorDataset([x]), ol.io.TensorDataset([x.numpy()])):
            (batch,) = next(iter(ol.io.DataLoader(data, batch_size=3)))
            assert isinstance(batch, ol.Tensor)
            assert batch.dtype == dtype
            assert batch.tolist() == x.tolist()

    def test_whole_numbers_are_refused(self) -> None:
        with pytest.raises(TypeError, match="float16, bfloat16, float32 or float64"):
            ol.nn.Linear(2, 2).to(dtype="int16")


# PyTorch ------------------------------------------------------------------------------------------


def _torch(x: ol.Tensor) -> Any:
    import torch

    array = torch.tensor(x.numpy().astype("float32"))
    return array.to(getattr(torch, str(x.dtype))).requires_grad_()


FUNCTIONS: dict[str, Any] = {
    "sum of many": (lambda F, x: x.sum(), lambda F, x: x.sum(), (40, 100)),
    "sum along 0": (lambda F, x: x.sum(0), lambda F, x: x.sum(0), (4000, 3)),
    "mean": (lambda F, x: x.mean(1), lambda F, x: x.mean(1), (4, 1000)),
    "var": (lambda F, x: np.var(x, 1), lambda F, x: x.var(1, correction=0), (4, 100)),
    "norm": (lambda F, x: np.linalg.norm(x), lambda F, x: x.norm(), (4, 100)),
    "matmul": (lambda F, x: x @ x.T, lambda F, x: x @ x.T, (5, 300)),
    "cumsum": (lambda F, x: np.cumsum(x, 1), lambda F, x: x.cumsum(1), (2, 100)),
    "softmax": (lambda F, x: F.softmax(x), lambda F, x: F.softmax(x, 1), (4, 50)),
    "log_softmax": (lambda F, x: F.log_softmax(x), lambda F, x: F.log_softmax(x, 1), (4, 50)),
    "layer_norm": (
        lambda F, x: F.layer_norm(x, 50), lambda F, x: F.layer_norm(x, (50,)), (4, 50)
    ),
    "gelu": (lambda F, x: F.gelu(x), lambda F, x: F.gelu(x), (4, 5)),
    "sigmoid": (lambda F, x: F.sigmoid(x), lambda F, x: F.sigmoid(x), (4, 5)),
    "exp": (lambda F, x: np.exp(x), lambda F, x: x.exp(), (4, 5)),
    "beside a number": (lambda F, x: x * 0.3 + 1, lambda F, x: x * 0.3 + 1, (4, 5)),
    "avg_pool2d": (lambda F, x: F.avg_pool2d(x, 4), lambda F, x: F.avg_pool2d(x, 4), (1, 2, 8, 8)),
}  # fmt: skip


@pytest.mark.peers
@both
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pytorch_rounds_alike(name: str, dtype: str) -> None:
    """Both round once, from float32, so nearly all numbers are equal."""
    torch = pytest.importorskip("torch")
    ours, theirs, shape = FUNCTIONS[name]
    x = ol.to_tensor(np.random.default_rng(1).uniform(0, 1, shape), dtype, requires_grad=True)
    y = ours(ol.nn.functional, x)
    peer = _torch(x)
    wanted = theirs(torch.nn.functional, peer)
    assert str(wanted.dtype) == f"torch.{y.dtype}"
    got, want = y.detach().numpy().astype("float64"), wanted.detach().double().numpy()
    np.testing.assert_allclose(got, want, rtol=2 * EPS[dtype], atol=EPS[dtype] / 64)
    weights = np.cos(np.arange(y.size)).reshape(y.shape)  # a plain sum has gradient 0 in layer_norm
    y.backward(weights)
    wanted.backward(torch.tensor(weights).to(wanted.dtype))
    assert x.grad is not None
    np.testing.assert_allclose(
        x.grad.numpy().astype("float64"), peer.grad.double().numpy(),
        rtol=4 * EPS[dtype], atol=4 * EPS[dtype],
    )  # fmt: skip


TYPES = {
    "float32 array": (lambda x: x + np.ones(2, "f4"), lambda torch, x: x + torch.ones(2)),
    "float64 array": (lambda x: x + np.ones(2), lambda torch, x: x + torch.ones(2).double()),
    "a float": (lambda x: x + 0.5, lambda torch, x: x + 0.5),
    "a whole number": (lambda x: x * 3, lambda torch, x: x * 3),
    "truth values": (lambda x: x * (x > 1), lambda torch, x: x * (x > 1)),
    "where": (lambda x: np.where(x > 1, x, 0.0), lambda torch, x: torch.where(x > 1, x, 0.0)),
    "int8": (lambda x: x + np.ones(2, "i1"), lambda torch, x: x + torch.ones(2).to(torch.int8)),
}


@pytest.mark.peers
@both
@pytest.mark.parametrize("name", TYPES)
def test_pytorch_gives_the_same_types(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = TYPES[name]
    x = ol.to_tensor([0.5, 2.0], dtype)
    assert f"torch.{ours(x).dtype}" == str(theirs(torch, _torch(x)).dtype)
