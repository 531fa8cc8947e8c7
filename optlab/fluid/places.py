"""Devices under the names of 1.8.5: ``CPUPlace()`` and ``CUDAPlace(0)``."""

from __future__ import annotations

from typing import Self


class Place(str):
    """The name of a device, for ``ol.set_device`` and every other argument that is a device.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.set_device(ol.fluid.CPUPlace())
    'cpu'
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.partition(':')[2]})"


class CPUPlace(Place):
    """The processor: ``"cpu"``."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """Return the name of the device."""
        return super().__new__(cls, "cpu")


class CUDAPlace(Place):
    """A GPU: ``CUDAPlace(0)`` is ``"gpu:0"``."""

    __slots__ = ()

    def __new__(cls, id: int) -> Self:
        """Return the name of the device."""
        if not isinstance(id, int) or isinstance(id, bool) or id < 0:
            raise ValueError(f"CUDAPlace takes the number of a GPU, from 0; got {id!r}.")
        return super().__new__(cls, f"gpu:{id}")
