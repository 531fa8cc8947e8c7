"""The file format of `optlab.save`: a zip of ``.npy`` files and one page of JSON.

``optlab.json`` has the structure, and for each array its file, dtype, shape and SHA-256; the
comment of the zip has the SHA-256 of that page. NumPy reads the arrays without optlab:
``np.load("model.ol")["0.weight"]``. The format version increases when an old reader would misread.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import operator
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

import numpy as np

from optlab.backend.extras import needed_for
from optlab.io.structures import UnreadableFileError, Written, decoded, is_extension

VERSION = 1
HEAD = "optlab.json"
_BLOCK = 1 << 20
_COMMENT = "optlab sha256 "
_MOST_DIMENSIONS = 64  # of NumPy's arrays
_LOCAL_HEAD = 30  # bytes before a member of a zip file, without its name
_END_RECORD = 22  # bytes of the end record of a zip file, without its comment

#: Exceptions of zipfile, json and NumPy for damaged files.
_DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, KeyError, TypeError, EOFError,
    NotImplementedError, RuntimeError, OverflowError, IndexError, AttributeError,
)  # fmt: skip


def write(obj: Any, file: BinaryIO) -> None:
    """Write `obj` to an open file."""
    written = Written()
    structure = written.encoded(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        entries = [
            _write_array(archive, name, array)
            for name, array in zip(written.names, written.arrays, strict=True)
        ]
        head = {"format": "optlab", "version": VERSION, "structure": structure, "arrays": entries}
        page = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
        archive.writestr(HEAD, page)
        archive.comment = (_COMMENT + hashlib.sha256(page).hexdigest()).encode()
    with contextlib.suppress(OSError, AttributeError):
        file.truncate()  # an open file may have had longer content


def _write_array(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> dict[str, Any]:
    """Write one array and return its entry in the head."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    entry = {
        "file": name,
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": "F" if fortran else "C",
    }
    if is_extension(array.dtype):  # bfloat16 and the like: as integers of the same bytes
        entry["dtype"] = array.dtype.name
        array = array.view(f"u{array.dtype.itemsize}")
    with archive.open(name, "w", force_zip64=array.nbytes > 1 << 30) as target:
        both = _HashingWriter(target)
        np.lib.format.write_array(both, array, allow_pickle=False)
    entry["sha256"] = both.checked.hexdigest()
    return entry


class _HashingWriter(io.RawIOBase):
    """Writer to a file that computes the checksum of its data."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.checked = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.checked.update(data)
        self.target.write(data)
        return len(data)


def read(file: BinaryIO, refuse: Callable[[str], NoReturn], return_numpy: bool) -> Any:
    """Read a file of `write`; `refuse` raises with a description of what is wrong."""
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGE as error:
        refuse(
            "begins like a file of optlab.save, but has no readable end: it is truncated or "
            f"damaged ({error}). Copy or download it again, or go back to an earlier one"
        )
    with archive:
        _check_ends(file, archive, refuse)
        _check_members(archive, refuse)
        page = _head_page(archive, refuse)
        head, version = _head(page, refuse)
        if version > VERSION:
            refuse(
                f"was written by a newer optlab: it has format {version}, and this one reads up to "
                f"{VERSION}. Upgrade with: pip install --upgrade optlab"
            )
        if archive.comment != (_COMMENT + hashlib.sha256(page).hexdigest()).encode():
            _refuse_altered(refuse, HEAD)
        try:
            _check_files(head["arrays"])
            arrays = [_read_array(archive, entry, refuse) for entry in head["arrays"]]
            return decoded(head["structure"], arrays, return_numpy)
        except UnreadableFileError:
            raise
        except (*_DAMAGE, RecursionError) as error:
            refuse(f"cannot be read ({error}); it was truncated or altered after it was saved")


def _head(page: bytes, refuse: Callable[[str], NoReturn]) -> tuple[dict[str, Any], int]:
    """Parse the head; return it and its format version."""
    try:
        head = json.loads(page)
        if head["format"] == "optlab" and type(head["version"]) is int:
            return head, head["version"]
        error: Exception | None = None
    except (*_DAMAGE, RecursionError) as caught:
        error = caught
    return refuse(f"has a head that is not one of optlab.save; it was altered ({error!r})")


def _check_ends(
    file: BinaryIO, archive: zipfile.ZipFile, refuse: Callable[[str], NoReturn]
) -> None:
    """Refuse bytes before the start or after the end of an archive, which zipfile ignores."""
    file.seek(0, 2)
    last = file.tell() - _END_RECORD - len(archive.comment)
    file.seek(max(last, 0))
    if file.read(4) != b"PK\x05\x06":
        refuse("was altered after it was saved: something was written behind its end")
    if min((info.header_offset for info in archive.infolist()), default=0) != 0:
        refuse("was altered after it was saved: something was written before its start")


def _check_members(archive: zipfile.ZipFile, refuse: Callable[[str], NoReturn]) -> None:
    """Refuse members that would take more memory than they take in the file.

    `write` compresses nothing and writes one member behind the other, so that what is read is
    never more than the file. A foreign zip file is left to `_head_page`.
    """
    members = sorted(archive.infolist(), key=lambda info: info.header_offset)
    if not any(info.filename == HEAD for info in members):
        return
    end = 0
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            refuse(f"has a compressed {info.filename}, which optlab.save does not write")
        if info.header_offset < end:
            refuse(f"has a {info.filename} that overlaps what is before it; it was altered")
        end = info.header_offset + _LOCAL_HEAD + len(info.filename) + info.file_size


def _check_files(entries: list[dict[str, Any]]) -> None:
    """Raise for a file that is named twice: it would be read, and take memory, each time."""
    seen: set[str] = set()
    for entry in entries:
        if entry["file"] in seen:
            raise ValueError(f"two arrays are in the file {entry['file']}")
        seen.add(entry["file"])


def checked_shape(given: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array in a file's head.

    Raises
    ------
    ValueError
        If no array can have it: the product of very large numbers would take minutes.
    """
    if len(given) > _MOST_DIMENSIONS:
        raise ValueError(
            f"{name} has {len(given)} dimensions, and arrays have at most {_MOST_DIMENSIONS}"
        )
    shape = tuple(map(operator.index, given))
    if not all(0 <= n < 1 << 63 for n in shape):
        raise ValueError(f"{name} has a dimension that no array can have")
    return shape


def _head_page(archive: zipfile.ZipFile, refuse: Callable[[str], NoReturn]) -> bytes:
    names = archive.namelist()
    if HEAD not in names:
        if any(name.endswith("data.pkl") for name in names):
            refuse(
                "is a checkpoint of PyTorch with a pickle inside, and reading a pickle can run any "
                "code. Where PyTorch is installed: safetensors.torch.save_file(model.state_dict(), "
                "'model.safetensors'), then optlab.load('model.safetensors')"
            )
        if names and all(name.endswith(".npy") for name in names):
            refuse("is a NumPy archive; read it with numpy.load")
        refuse("is a zip file that optlab.save did not write")
    try:
        return archive.read(HEAD)
    except _DAMAGE as error:
        return refuse(f"has a head that cannot be read ({error}); it was truncated or altered")


def _refuse_altered(refuse: Callable[[str], NoReturn], name: str) -> NoReturn:
    refuse(
        f"was altered or truncated after it was saved: the checksum of {name} is not the one it "
        "was saved with. Copy or download it again, or go back to an earlier one"
    )


def _read_array(
    archive: zipfile.ZipFile, entry: dict[str, Any], refuse: Callable[[str], NoReturn]
) -> np.ndarray:
    """Read one array and verify its checksum."""
    name = entry["file"]
    info = archive.getinfo(name)
    text = entry["dtype"]
    dtype = np.dtype(text) if text[0] in "<>|" else extension_dtype(text, name)
    shape = checked_shape(entry["shape"], name)
    if dtype.hasobject or (not dtype.itemsize and math.prod(shape)):
        raise ValueError(f"{name} is of dtype {text}, which optlab.save does not write")
    start = info.file_size - math.prod(shape) * dtype.itemsize  # length of the .npy head
    checked = hashlib.sha256()
    with archive.open(info) as source:
        own_head = source.read(10)
        if start != 10 + int.from_bytes(own_head[8:], "little"):
            _refuse_altered(refuse, name)
        own_head += source.read(start - 10)
        checked.update(own_head)
        array = np.empty(shape, dtype, order=entry["order"])
        bytes_of = array.reshape(-1, order="A").view(np.uint8).data
        place = 0
        while block := source.read(_BLOCK):
            checked.update(block)
            bytes_of[place : place + len(block)] = block
            place += len(block)
    if place != array.nbytes or checked.hexdigest() != entry["sha256"]:
        _refuse_altered(refuse, name)
    return array


def extension_dtype(text: str, name: str) -> np.dtype:
    """Return a dtype of the package ml_dtypes by its name.

    Raises
    ------
    ModuleNotFoundError
        If the package is missing; the message explains how to install it.
    """
    with needed_for(f"{name}, of dtype {text},"):
        import ml_dtypes
    dtype: np.dtype = np.dtype(getattr(ml_dtypes, text))
    return dtype
