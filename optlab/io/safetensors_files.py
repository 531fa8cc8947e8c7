"""Reading and writing of safetensors files: 8 bytes of length, JSON, and raw arrays.

The format is simple enough to need no package, so it works with NumPy alone. It carries PyTorch's
state dicts: ``safetensors.torch.save_file``. Files of `write` have a SHA-256 of the head and the
arrays in ``__metadata__``, which `read` verifies and other readers ignore.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, NoReturn

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import on_host
from optlab.io.archives import checked_shape, extension_dtype

_LARGEST_HEAD = 100_000_000
_DIGEST = "optlab_sha256"
_DTYPES = {
    "BOOL": "bool", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4",
    "I32": "<i4", "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
    "C64": "<c8", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
#: Dtypes that NumPy does not have, with their item sizes.
_EXTENSIONS = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
_CODES = {
    text if text in _EXTENSIONS else np.dtype(text).str: code for code, text in _DTYPES.items()
}


def is_safetensors(start: bytes) -> bool:
    """Return whether a file that starts with these bytes is a safetensors file.

    Examples
    --------
    >>> is_safetensors(bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"{}"), is_safetensors(b"PK")
    (True, False)
    """
    return (
        len(start) >= 9
        and 2 <= int.from_bytes(start[:8], "little") <= _LARGEST_HEAD
        and start[8:9] == b"{"
    )


def read(file: BinaryIO, refuse: Callable[[str], NoReturn], return_numpy: bool) -> dict[str, Any]:
    """Read all Tensors of a file by name; `refuse` raises with a description of what is wrong."""
    length = int.from_bytes(file.read(8), "little")
    page = file.read(length)
    if len(page) < length:
        refuse(
            f"is a truncated file of safetensors: its head should have {length} bytes, and "
            f"{len(page)} are there"
        )
    try:
        head: dict[str, Any] = json.loads(page, object_pairs_hook=unique_keys)
        metadata = head.pop("__metadata__", None)
        places = {name: _place(name, entry) for name, entry in head.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        refuse(f"has a head of safetensors that cannot be read ({error})")
    end = 0
    for name, (_, _, start, stop) in sorted(places.items(), key=lambda item: item[1][2:]):
        if start != end:
            refuse(f"is no valid file of safetensors: {name!r} starts at {start}, not at {end}")
        end = stop
    content = bytearray(file.read())
    if len(content) != end:
        what = "truncated" if len(content) < end else "longer than its head says"
        refuse(f"is {what}: {end} bytes of arrays belong into it, and {len(content)} are there")
    digest = metadata.get(_DIGEST) if isinstance(metadata, dict) else None
    if digest is not None and digest != _digest(_page(head), [content]):
        refuse(
            "was altered after it was saved: the checksum of its arrays is not the one it was "
            "saved with. Copy or download it again, or go back to an earlier one"
        )
    found = {}
    for name, (text, shape, start, stop) in places.items():
        dtype = extension_dtype(text, name) if text in _EXTENSIONS else np.dtype(text)
        try:
            array = np.frombuffer(memoryview(content)[start:stop], dtype).reshape(shape)
        except ValueError as error:
            refuse(f"has {name!r} of shape {list(shape)}, which no array can have ({error})")
        # A copy, so that one array does not keep the whole file alive.
        found[name] = array.copy() if return_numpy else Tensor(array.copy())
    return found


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict of JSON's pairs; raise for duplicate keys, of which one would be hidden."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"it has {twice!r} twice")
    return found


def _place(name: str, entry: dict[str, Any]) -> tuple[str, tuple[int, ...], int, int]:
    """Parse and validate the entry of one array in the head."""
    if entry["dtype"] not in _DTYPES:
        raise ValueError(f"{name!r} is of dtype {entry['dtype']}, which NumPy does not have")
    text = _DTYPES[entry["dtype"]]
    shape = tuple(entry["shape"])
    start, stop = entry["data_offsets"]
    size = _EXTENSIONS.get(text) or np.dtype(text).itemsize
    if not all(type(n) is int and n >= 0 for n in (*shape, start, stop)):
        raise ValueError(f"{name!r} has no whole numbers as shape and place")
    checked_shape(shape, repr(name))
    if math.prod(shape) * size != stop - start:
        raise ValueError(f"{name!r} of shape {shape} has {stop - start} bytes")
    return text, shape, start, stop


def write(obj: Any, file: BinaryIO) -> None:
    """Write a dict of names and Tensors or arrays.

    Raises
    ------
    TypeError
        If `obj` is something else.
    """
    if not isinstance(obj, Mapping):
        raise TypeError(
            "a file of safetensors holds a dict of names and Tensors, such as layer.state_dict(); "
            f"got {type(obj).__name__}. Choose another ending for anything else."
        )
    head: dict[str, Any] = {}
    arrays = []
    start = 0
    for name, value in obj.items():
        array = on_host(raw(value))
        if not isinstance(name, str) or not isinstance(array, (np.ndarray, np.generic)):
            raise TypeError(
                "a file of safetensors holds a dict of names and Tensors; this one has "
                f"{name!r}: {type(value).__name__}. Choose another ending for anything else."
            )
        array = np.asarray(array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        code = _CODES.get(array.dtype.str) or _CODES.get(array.dtype.name)
        if code is None:
            raise TypeError(f"{name!r} is of dtype {array.dtype}, which safetensors does not have.")
        stop = start + array.nbytes
        if name == "__metadata__":
            raise TypeError(f"safetensors keeps the name {name!r} for itself; choose another one.")
        head[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, stop]}
        arrays.append(array)
        start = stop
    parts = [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays]
    page = _page({"__metadata__": {_DIGEST: _digest(_page(head), parts)}, **head})
    page += b" " * (-len(page) % 8)
    file.write(len(page).to_bytes(8, "little"))
    file.write(page)
    for part in parts:
        file.write(part)


def _page(head: dict[str, Any]) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


def _digest(page: bytes, parts: Iterable[Any]) -> str:
    """Return the SHA-256 of a head without metadata, and of the arrays."""
    checked = hashlib.sha256(page)
    for part in parts:
        checked.update(part)
    return checked.hexdigest()
