"""save and load: results in files that run no code when they are read."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from optlab.backend.call_recorder import here
from optlab.io import archives, safetensors_files
from optlab.io.atomic import replacing
from optlab.io.structures import UnreadableFileError

_FOREIGN = {
    b"\x80": (
        "is a pickle (so are many .pdparams and .pth files), and reading one can run any code. "
        "Where it came from, save it as safetensors, or its arrays with numpy.savez"
    ),
    b"\x93NUMPY": "is a single NumPy array; read it with numpy.load",
    b"\x89HDF": "is an HDF5 file; read it with h5py",
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
}
"""First bytes of foreign formats, and what to do with such files."""


def save(obj: Any, path: Any) -> None:
    """Save Tensors, arrays, numbers and text, nested in containers, to a file.

    Writing is atomic: a temporary file beside the target replaces it at the end, so a crash leaves
    the old file, and the next `save` to that path removes what a killed one left. Only values are
    written, without gradients or graphs; a Tensor that occurs several times is written once. The
    file contains no pickle.

    Parameters
    ----------
    obj
        A Tensor, a Parameter, an array, a number, text, None, or a dict, list or tuple of these, up
        to 100 levels deep: usually a ``state_dict()``.
    path : str, path or binary file
        Any ending; ``.safetensors`` selects that format, for a dict of names and Tensors. Missing
        folders are created. An open file, such as ``io.BytesIO()``, is written from its position.

    Raises
    ------
    TypeError
        If something in `obj` cannot be written; the message names its position.
    ValueError
        If `obj` contains itself.
    OSError
        If the file cannot be written: `path` is a folder, a device or a pipe, or belongs to another
        user.

    Notes
    -----
    A zip of ``.npy`` files and a page of JSON with the structure, dtypes, a format version and
    checksums: ``numpy.load(path)["0.weight"]`` reads an array without optlab.

    Examples
    --------
    >>> import os, tempfile
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> model = ol.nn.Linear(2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.ol")
    ...     ol.save({"model": model.state_dict(), "epoch": 3}, path)
    ...     back = ol.load(path)
    >>> back["epoch"], model.set_state_dict(back["model"])
    (3, Keys(missing_keys=[], unexpected_keys=[]))
    """
    if here.recorder is not None:
        here.recorder.refuse("ol.save, which writes a file,")
    if _is_open_file(path, "write"):
        archives.write(obj, path)
        return
    safetensors = os.fspath(path).endswith(".safetensors")
    write = safetensors_files.write if safetensors else archives.write
    with replacing(path) as file:
        write(obj, file)


def load(path: Any, *, return_numpy: bool = False) -> Any:
    """Load a file of `save`, or one of safetensors.

    The format is recognized by the first bytes, not by the ending.

    Parameters
    ----------
    path : str, path or binary file
    return_numpy : bool
        Return arrays in place of Tensors.

    Returns
    -------
    object
        The saved object, with Tensors and Parameters as Tensors that need no gradient. For a file
        of safetensors, a dict of names and Tensors.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableFileError
        A ValueError: if it is not a file of `save`, or is truncated, altered, of a newer format, or
        a pickle. The message has the reason, and what to do.
    ModuleNotFoundError
        If it contains bfloat16, and the package ml_dtypes is not installed.

    Notes
    -----
    Reading takes time and memory in proportion to the size of the file: compressed or overlapping
    content, and shapes that no array can have, are refused. The SHA-256 of all content is verified,
    for safetensors in files of `save`.

    The weights of a PyTorch model are loaded by name: `Layer.set_state_dict`. Its Linear has the
    shape [out, in], optlab's [in, out]; nothing is transposed automatically.

    Examples
    --------
    >>> import io
    >>> import optlab as ol
    >>> file = io.BytesIO()
    >>> ol.save({"loss": [0.5, 0.25], "w": ol.ones([2])}, file)
    >>> ol.load(file)
    {'loss': [0.5, 0.25], 'w': Tensor([1., 1.], dtype=float32)}
    """
    if _is_open_file(path, "read"):
        path.seek(0)
        return _read(path, getattr(path, "name", None) or "this file", return_numpy)
    if os.path.isdir(path):
        trace = " A trace is opened by ol.load_trace." if Path(path).suffix == ".zarr" else ""
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.{trace}")
    if not os.path.exists(path):
        raise FileNotFoundError(_missing_message(Path(path)))
    with open(path, "rb") as file:
        return _read(file, str(path), return_numpy)


def _read(file: BinaryIO, name: str, return_numpy: bool) -> Any:
    def refuse(what: str) -> NoReturn:
        raise UnreadableFileError(f"{name} {what}.") from None

    start = file.read(16)
    file.seek(0)
    if start.startswith(b"PK\x03\x04"):
        return archives.read(file, refuse, return_numpy)
    if safetensors_files.is_safetensors(start):
        return safetensors_files.read(file, refuse, return_numpy)
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            refuse(what)
    if not start:
        refuse("is empty: nothing was written to it, or its writer was stopped")
    return refuse(
        f"is no file of optlab.save or of safetensors: it starts with {start!r}. Read it with the "
        "program that wrote it"
    )


def _is_open_file(path: Any, action: str) -> bool:
    """Return whether `path` is an open binary file; raise if it is neither file nor path."""
    if isinstance(path, (str, os.PathLike)):
        return False
    if not hasattr(path, action):
        raise TypeError(f"a path or an open binary file is needed; got {path!r}.")
    if hasattr(path, "encoding"):
        raise TypeError("the file is open for text; open it with 'rb' or 'wb'.")
    return True


def _missing_message(path: Path) -> str:
    """Return the message for a missing file, with similar names that exist."""
    if not path.parent.is_dir():
        return f"there is no file {path}: there is no folder {path.parent}."
    if path.is_symlink():
        return f"there is no file {path}: it is a link that leads to no file ({os.readlink(path)})."
    near = get_close_matches(path.name, [other.name for other in path.parent.iterdir()], 3, 0.6)
    found = f" There is {' and '.join(near)}." if near else ""
    return f"there is no file {path}; the folder is {path.parent.resolve()}.{found}"
