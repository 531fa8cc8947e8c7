"""Devices: where new arrays are created, where an array is, and transfer between devices.

A device is a name and the module whose functions create arrays there: NumPy for "cpu", CuPy for
"gpu:0", "gpu:1" and so on. Everything else follows the arrays: a result is on the device of its
inputs, and nothing is transferred unless `moved` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from optlab.backend.extras import missing


class DeviceError(RuntimeError):
    """A device that cannot be used: what is missing, and how to install it."""


class Device(NamedTuple):
    """A device that holds arrays.

    Parameters
    ----------
    name : str
        Such as "gpu:1".
    module
        Creates arrays there: it has ``asarray``, ``full`` and ``arange`` with NumPy's signatures.
    arrays : type or tuple of types
        The types of the arrays on this device.
    enter : callable, optional
        Called before arrays are created there.
    """

    name: str
    module: Any
    arrays: Any
    enter: Callable[[], Any] | None = None

    def ready(self) -> Any:
        """Return the module, ready to create arrays on this device in this thread."""
        if self.enter is not None:
            self.enter()
        return self.module

    def __repr__(self) -> str:
        return f"<Device {self.name}>"


CPU = Device("cpu", np, (np.ndarray, np.generic))

#: Devices by name: the CPU, and those that `register` added.
_known: dict[str, Device] = {"cpu": CPU}
_current = CPU


def register(device: Device) -> None:
    """Register a device, so that `set_device` and ``t.to`` find it by its name."""
    _known[device.name] = device


def set_device(device: str) -> str:
    """Set the device of new Tensors, parameters and random numbers.

    Existing arrays stay where they are; ``t.to(device)`` and ``layer.to(device)`` move them.

    Parameters
    ----------
    device : str
        "cpu", "gpu" (the first GPU) or "gpu:1" (the second); "cuda" is another name for "gpu".

    Returns
    -------
    str
        The full name of the device.

    Raises
    ------
    DeviceError
        If there is no such device. The message names what is missing (CuPy, the driver or the GPU
        itself) and how to install it; the current device stays.
    ValueError
        If no device has such a name.

    Examples
    --------
    >>> set_device("cpu")
    'cpu'
    """
    global _current
    found = device_named(device)
    found.ready()
    _current = found
    return found.name


def get_device() -> str:
    """Return the name of the device on which new Tensors are created.

    Examples
    --------
    >>> get_device()
    'cpu'
    """
    return _current.name


def device_named(name: str) -> Device:
    """Return the device with this name.

    Raises
    ------
    DeviceError
        If it is a GPU that cannot be used here.
    ValueError
        If no device has such a name.

    Examples
    --------
    >>> device_named("cpu")
    <Device cpu>
    >>> device_named("tpu")
    Traceback (most recent call last):
        ...
    ValueError: there is no device 'tpu'; write "cpu", "gpu" (the first GPU) or "gpu:1" ...
    """
    found = _known.get(name) if isinstance(name, str) else None
    if found is not None:
        return found
    kind, colon, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in ("gpu", "cuda") or (colon and not (number.isascii() and number.isdigit())):
        raise ValueError(
            f'there is no device {name!r}; write "cpu", "gpu" (the first GPU) or "gpu:1" (the '
            "second)."
        )
    return _gpu(int(number or 0))


def made_here() -> Any:
    """Return the module that creates arrays on the current device.

    Examples
    --------
    >>> made_here().__name__
    'numpy'
    """
    return _current.ready()


def brought_here(array: Any) -> Any:
    """Return a NumPy array that has no other reference as an array of the current device.

    Examples
    --------
    >>> brought_here(np.ones(2))
    array([1., 1.])
    """
    return array if _current is CPU else _current.ready().asarray(array)


def device_of(array: Any) -> str:
    """Return the name of the device of an array; numbers and lists are on the host.

    Examples
    --------
    >>> device_of(np.ones(2))
    'cpu'
    """
    while (holder := getattr(type(array), "holds", None)) is not None:  # Tensors, ensembles
        array = getattr(array, holder)
    if isinstance(array, CPU.arrays) or not hasattr(array, "__array_function__"):
        return "cpu"
    root = type(array).__module__.partition(".")[0]
    if root == "cupy":
        return f"gpu:{array.device.id}"
    for device in _known.values():
        if isinstance(array, device.arrays):
            return device.name
    return root


def moved(x: Any, device: str, origin: str = "") -> Any:
    """Return the values of `x` on a device; return `x` itself if it is there already.

    `origin`, the name of the device that `x` is on, is used by the derivative rule only.

    Examples
    --------
    >>> x = np.ones(2)
    >>> moved(x, "cpu") is x
    True
    """
    goal = device_named(device)
    here = device_of(x)
    if here == goal.name:
        return x
    if hasattr(x, "members"):  # an ensemble
        return type(x)(moved(x.members, device), x.level)
    if not (here.startswith("gpu") and goal.name.startswith("gpu")):  # CuPy copies between GPUs
        x = x.get() if here != "cpu" else np.asarray(x)
    return x if goal is CPU else goal.ready().asarray(x)


def _gpu(number: int) -> Device:
    """Return a GPU, or raise an error that names what is missing."""
    cupy = _cupy()
    count = int(cupy.cuda.runtime.getDeviceCount())
    if number >= count:
        there = ", ".join(f"gpu:{i}" for i in range(count))
        raise DeviceError(f"there is no gpu:{number} on this computer; there is {there}.")
    device = Device(f"gpu:{number}", cupy, cupy.ndarray, lambda: cupy.cuda.Device(number).use())
    register(device)
    if not number:
        _known["gpu"] = _known["cuda"] = device
    return device


def _cupy() -> Any:
    """Import CuPy and check that it finds a device."""
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise DeviceError(f"CuPy is installed but lacks {error.name}. {_DOCTOR}") from error
        raise DeviceError(
            f"{missing('A GPU of NVIDIA', 'cupy')} Or 'optlab[cuda13]', as the driver: "
            f"`nvidia-smi` shows its CUDA version. {_DOCTOR}"
        ) from error
    except ImportError as error:
        raise DeviceError(
            f"CuPy is installed but cannot be imported: {error}. It must be the one of the "
            f"driver's CUDA version, cupy-cuda12x or cupy-cuda13x, and only one. {_DOCTOR}"
        ) from error
    if not cupy.cuda.is_available():
        raise DeviceError(f"{_missing(cupy)} {_DOCTOR}")
    return cupy


def _missing(cupy: Any) -> str:
    """Return why CuPy finds no device: the driver or the device itself is missing."""
    runtime = cupy.cuda.runtime
    try:
        driver = int(runtime.driverGetVersion())
    except runtime.CUDARuntimeError:
        driver = 0
    if not driver:
        return (
            "CuPy is installed, but there is no NVIDIA driver on this computer: install it "
            "(`nvidia-smi` works then); without an NVIDIA GPU all runs on the CPU."
        )
    said = ""
    try:
        runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:  # such as: the driver is too old for this CUDA
        said = f" ({error})"
    return (
        f"CuPy is installed and there is a driver for CUDA {driver // 1000}.{driver % 1000 // 10}, "
        f"but no device is found{said}: is there an NVIDIA GPU, is it hidden by "
        "CUDA_VISIBLE_DEVICES, is the driver new enough for this CuPy?"
    )


_DOCTOR = "ol.doctor() shows what is there."
