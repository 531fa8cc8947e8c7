"""Buffers and operations of the calls with a capital: arrays that are sent as they lie."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.backend.rank_errors import CommunicationError

#: MPI's operations as functions of objects, and of arrays.
_OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "SUM": (operator.add, np.add),
    "PROD": (operator.mul, np.multiply),
    "MAX": (max, np.maximum),
    "MIN": (min, np.minimum),
    "LAND": (lambda x, y: bool(x) and bool(y), np.logical_and),
    "LOR": (lambda x, y: bool(x) or bool(y), np.logical_or),
    "LXOR": (lambda x, y: bool(x) != bool(y), np.logical_xor),
    "BAND": (operator.and_, np.bitwise_and),
    "BOR": (operator.or_, np.bitwise_or),
    "BXOR": (operator.xor, np.bitwise_xor),
}


def mpi() -> Any:
    """Return the module ``mpi4py.MPI`` if the program has loaded it, else None."""
    return sys.modules.get("mpi4py.MPI")


def is_in_place(buffer: Any) -> bool:
    """Return whether a buffer is ``MPI.IN_PLACE``."""
    return type(buffer).__name__ == "InPlaceType"


def flat_view(buffer: Any, call: str, writable: bool = False) -> Any:
    """Return a buffer as a flat array that shares its memory.

    Parameters
    ----------
    buffer : array, or (array, count), (array, datatype), (array, count, datatype)
        What mpi4py takes; a datatype must be that of the array.

    Raises
    ------
    TypeError, ValueError, BufferError
        As mpi4py does: if it is no array, if its memory is not contiguous, or not writable.
    """
    count = None
    if isinstance(buffer, (list, tuple)):
        if not 2 <= len(buffer) <= 4:
            raise ValueError(f"{call}: a buffer given as a list has 2 to 4 items, got {buffer!r}.")
        buffer, *rest = buffer
        count = next((int(one) for one in rest if isinstance(one, (int, np.integer))), None)
        for datatype in rest:
            _check_datatype(datatype, buffer, call)
    if isinstance(buffer, (bytes, bytearray, memoryview)):
        buffer = np.frombuffer(buffer, np.uint8)
    if not hasattr(buffer, "flags") or not hasattr(buffer, "dtype"):
        raise TypeError(
            f"{call} takes an array, got a {type(buffer).__name__}; the call in lower case, "
            f"{call.lower()}, takes any object."
        )
    if buffer.dtype.kind not in "biufcV":
        raise KeyError(f"{call}: cannot send an array of dtype {buffer.dtype}.")
    if not (buffer.flags.c_contiguous or buffer.flags.f_contiguous):
        raise BufferError(
            f"{call} takes an array that is contiguous in memory; write np.ascontiguousarray(x)."
        )
    if writable and not getattr(buffer.flags, "writeable", True):
        raise BufferError(f"{call} receives into an array that is writable; this one is read-only.")
    flat = buffer.reshape(-1, order="A")
    if count is None:
        return flat
    if count > flat.size:
        raise CommunicationError(
            f"{call}: {count} elements of an array of {flat.size}.", "MPI_ERR_COUNT"
        )
    return flat[:count]


def _check_datatype(datatype: Any, array: Any, call: str) -> None:
    if isinstance(datatype, (int, np.integer, str)) or datatype is None:
        return
    size = getattr(datatype, "Get_size", None)
    if size is None:
        raise TypeError(f"{call}: {datatype!r} is no datatype of MPI.")
    if size() != array.dtype.itemsize:
        raise CommunicationError(
            f"{call}: the array is of {array.dtype}, the datatype of {size()} bytes.",
            "MPI_ERR_TYPE",
        )


def copy_into(target: Any, source: Any, call: str) -> None:
    """Copy what was received into the front of a buffer.

    Raises
    ------
    CommunicationError
        If it does not fit, or is of another dtype.
    """
    if source.dtype != target.dtype and uint8 not in (source.dtype, target.dtype):
        raise CommunicationError(
            f"{call}: an array of {source.dtype} was sent, and is received as {target.dtype}.",
            "MPI_ERR_TYPE",
        )
    source, target = source.view(uint8), target.view(uint8)
    if source.size > target.size:
        raise CommunicationError(
            f"{call}: the message has {source.size} bytes, the buffer {target.size}.",
            "MPI_ERR_TRUNCATE",
        )
    target[: source.size] = source


uint8 = np.dtype(np.uint8)


def operation(op: Any, of_arrays: bool) -> Callable[[Any, Any], Any]:
    """Return an operation of MPI, or any function of two values, as a function."""
    name = "SUM" if op is None else op if isinstance(op, str) else None
    loaded = mpi()
    if loaded is not None and name is None:
        name = next((one for one in _OPERATIONS if op == getattr(loaded, one)), None)
    if name is not None:
        return _OPERATIONS[name.removeprefix("MPI_")][of_arrays]
    if not callable(op):
        raise TypeError(f"an operation is one of MPI's, or a function of two values; got {op!r}.")
    return op  # type: ignore[no-any-return]
