"""Devices of Tensors, and moving between them: ``t.device``, ``t.to(device)``."""

# `apply` returns Any, as the tape does not know Tensor by name.
# mypy: no-warn-return-any

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optlab.autograd.rules.manipulation.shapes import TO_DEVICE
from optlab.autograd.tape.apply import apply
from optlab.backend.device import device_named, device_of
from optlab.backend.dtypes import dtype_named

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor


class DeviceMethods:
    """The methods of Tensors for devices."""

    __slots__ = ()

    data: Any

    @property
    def device(self) -> str:
        """The name of the device: "cpu", "gpu:0"."""
        return device_of(self.data)

    @property
    def place(self) -> str:
        """The name of the device, as `device`."""
        return device_of(self.data)

    def to(self, device: Any = None, dtype: Any = None) -> Tensor:
        """Move to another device, or cast to another dtype, or both.

        It is an operation on the tape: the gradient moves back to the device of this Tensor. If
        nothing changes, return this Tensor without a copy.

        Parameters
        ----------
        device : str, optional
            "cpu", "gpu" or "gpu:1".
        dtype : str or dtype, optional
            See `astype`.

        Raises
        ------
        optlab.backend.device.DeviceError
            If there is no such device; the message says what is missing.

        Examples
        --------
        >>> import optlab as ol
        >>> t = ol.ones([2])
        >>> t.to("cpu") is t
        True
        >>> t.to(dtype="float64").dtype
        dtype('float64')
        """
        found: Any = self
        if device is not None:
            goal = _device_name(device)
            here = device_of(self.data)
            if goal != here:
                found = apply(TO_DEVICE, (found,), {"device": goal, "origin": here})
        if dtype is not None and dtype_named(dtype) != found.dtype:
            found = found.astype(dtype)
        return found

    def cpu(self) -> Tensor:
        """Move to the host, see `to`."""
        return self.to("cpu")

    def cuda(self, device_id: int = 0) -> Tensor:
        """Move to a GPU, see `to`."""
        return self.to(f"gpu:{device_id}")


def _device_name(device: Any) -> str:
    """Return the full name of a device; raise a TypeError for a dtype in its place."""
    try:
        return device_named(device).name
    except ValueError as error:
        try:
            wanted = dtype_named(device)
        except TypeError:
            raise error from None
        raise TypeError(f"t.to({device!r}): a dtype is given by name, dtype='{wanted}'.") from None
