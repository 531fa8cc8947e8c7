"""Devices: their names, creation of Tensors on them, and errors where a device is missing."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend import device as devices
from optlab.backend.device import DeviceError, device_of
from tests.guarded import GuardedArray, guarded, values


@pytest.fixture
def on_guarded() -> Any:
    """Run a test with the guarded stand-in as the current device."""
    ol.set_device("guarded")
    yield
    ol.set_device("cpu")


@pytest.fixture
def fake_cupy(monkeypatch: Any) -> Any:
    """Install a fake CuPy that reports the devices or errors of a test."""

    def put(available: bool, count: int = 0, driver: int = 0, error: str = "") -> list[int]:
        class CUDARuntimeError(RuntimeError):
            pass

        used: list[int] = []

        def count_devices() -> int:
            if error:
                raise CUDARuntimeError(error)
            return count

        fake: Any = types.ModuleType("cupy")
        fake.ndarray = type("ndarray", (), {})
        runtime = types.SimpleNamespace(
            getDeviceCount=count_devices,
            driverGetVersion=lambda: driver,
            CUDARuntimeError=CUDARuntimeError,
        )
        fake.cuda = types.SimpleNamespace(
            is_available=lambda: available,
            runtime=runtime,
            Device=lambda number: types.SimpleNamespace(use=lambda: used.append(number)),
        )
        monkeypatch.setitem(sys.modules, "cupy", fake)
        return used

    monkeypatch.setattr(devices, "_known", dict(devices._known))
    monkeypatch.setattr(devices, "_current", devices.CPU)
    return put


# Names of devices.


def test_the_first_device_is_the_cpu() -> None:
    assert ol.get_device() == "cpu"
    assert ol.set_device("cpu") == "cpu"


@pytest.mark.parametrize("name", ["tpu", "gpu:", "gpu:x", "gpu:-1", "gpu1", "cpu:0", 3, None])
def test_a_name_of_no_device(name: Any) -> None:
    with pytest.raises(ValueError, match=f'no device {name!r}; write "cpu", "gpu"'):
        ol.set_device(name)
    assert ol.get_device() == "cpu"


def test_no_cupy(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"not installed.*'optlab\[cuda12\]'.*doctor"):
        ol.set_device("gpu")
    assert ol.get_device() == "cpu"
    with pytest.raises(DeviceError, match="not installed"):
        ol.ones([2]).to("gpu")


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("no NVIDIA driver", {}),
        (r"driver for CUDA 12\.4, but no device is found: is there", {"driver": 12040}),
        (r"found \(driver is insufficient\)", {"driver": 11000, "error": "driver is insufficient"}),
    ],
)
def test_cupy_without_a_device(fake_cupy: Any, said: str, given: dict[str, Any]) -> None:
    fake_cupy(available=False, **given)
    with pytest.raises(DeviceError, match=said):
        ol.set_device("gpu")
    assert ol.get_device() == "cpu"


def test_a_gpu_is_entered_and_named_in_full(fake_cupy: Any) -> None:
    used = fake_cupy(available=True, count=2)
    assert ol.set_device("gpu:1") == ol.get_device() == "gpu:1"
    assert used == [1]
    assert ol.set_device("gpu") == ol.set_device("cuda") == ol.get_device() == "gpu:0"
    with pytest.raises(DeviceError, match="no gpu:2 on this computer; there is gpu:0, gpu:1"):
        ol.set_device("gpu:2")
    assert ol.get_device() == "gpu:0"


# Creation of Tensors.

MADE = {
    "to_tensor": lambda: ol.to_tensor([1.0, 2.0]),
    "to_tensor of NumPy's": lambda: ol.to_tensor(np.ones(3), dtype="float32", requires_grad=True),
    "zeros": lambda: ol.zeros([2, 3]),
    "ones": lambda: ol.ones(2, "float64"),
    "full": lambda: ol.full([2], 7),
    "arange": lambda: ol.arange(1, 4),
    "rand": lambda: ol.rand([2, 2]),
    "randn": lambda: ol.randn([2, 2]),
    "normal": lambda: ol.normal(1.0, 2.0, [3]),
    "randint": lambda: ol.randint(0, 9, [3]),
    "randperm": lambda: ol.randperm(5),
    "bernoulli": lambda: ol.bernoulli([0.5, 0.5, 0.5]),
    "Parameter": lambda: ol.Parameter([1.0, 2.0]),
    "create_parameter": lambda: ol.create_parameter([2, 3]),
    "a layer's weight": lambda: ol.nn.Linear(2, 3).weight,
    "a layer's buffer": lambda: ol.nn.BatchNorm1D(3).buffers()[0],
}


@pytest.mark.parametrize("name", MADE)
def test_new_tensors_lie_on_the_current_device(name: str) -> None:
    ol.seed(0)
    host = MADE[name]()
    assert host.device == host.place == "cpu"
    try:
        ol.set_device("guarded")
        ol.seed(0)
        there = MADE[name]()
    finally:
        ol.set_device("cpu")
    assert there.device == there.place == "guarded"
    assert values(there) == host.tolist()
    assert (there.dtype, there.requires_grad) == (host.dtype, host.requires_grad)


@pytest.mark.usefixtures("on_guarded")
def test_what_exists_stays_where_it_is() -> None:
    t = ol.ones([2]).to("cpu")
    assert ol.to_tensor(t).device == "cpu"
    assert (t + t).device == "cpu"
    assert type((t * 2.0).data) is np.ndarray


@pytest.mark.usefixtures("on_guarded")
def test_a_loader_gives_batches_on_the_current_device() -> None:
    data = ol.io.TensorDataset([np.arange(6.0).reshape(3, 2), np.arange(3)])
    for x, label in ol.io.DataLoader(data, batch_size=2):
        assert x.device == label.device == "guarded"
    for x in ol.io.DataLoader(ol.io.TensorDataset([ol.ones([3, 2])]), batch_size=2):
        assert x[0].device == "guarded"


# Transfers.


def test_moving_brings_the_gradient_back() -> None:
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    there = x.to("guarded") ** 3
    assert isinstance(there.data, GuardedArray)
    assert there.to("guarded") is there
    there.sum().backward()
    assert x.grad.device == "cpu"
    assert x.grad.tolist() == [3.0, 12.0]


def test_moving_back_and_a_second_derivative() -> None:
    def f(x: Any) -> Any:
        return (x.to("guarded") ** 3).cpu() * x

    assert ol.grad(ol.grad(f))(2.0) == pytest.approx(48.0)


def test_to_changes_the_dtype_too() -> None:
    t = ol.ones([2]).to("guarded", "float64")
    assert (t.device, t.dtype) == ("guarded", np.float64)
    assert t.to() is t
    with pytest.raises(TypeError, match=r"dtype='float64'"):
        t.to("float64")


def test_a_batch_of_vmap_moves_as_a_whole() -> None:
    there = ol.vmap(lambda x: x.to("guarded") * 2.0)(ol.ones([2]))
    assert values(there) == [2.0, 2.0]


def test_mixing_names_both_devices() -> None:
    a, b = ol.ones([2]), ol.ones([2]).to("guarded")
    for mixed in (lambda: a + b, lambda: b * a, lambda: np.matmul(a, b)):
        with pytest.raises(TypeError, match=r"on cpu .*on guarded.*t\.to\("):
            mixed()
    assert device_of(guarded()) == "guarded"
