"""save and load: what you have computed, in files that run no code when they are read."""

from __future__ import annotations

import os
import secrets
import stat
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from optlab.io import archives, safetensors_files
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
"""What files of others start with, and what to do about them."""


def save(obj: Any, path: Any) -> None:
    """Write Tensors, arrays, numbers and text, nested as you like, to a file.

    The file is complete or not there: it is written beside its place and then moved there, so a
    crash leaves the old one. What is written are values alone, without gradients or graphs; one
    Tensor that stands in several places is written once. There is no pickle inside.

    Parameters
    ----------
    obj
        A Tensor, a Parameter, an array, a number, text, None, or a dict, list or tuple of all
        these, as deep as 100 levels: a ``state_dict()``, mostly.
    path : str, path or binary file
        Any ending; ``.safetensors`` chooses that format, for a dict of names and Tensors. Folders
        that are missing are made. To an open file, such as ``io.BytesIO()``, it is written from
        where that stands.

    Raises
    ------
    TypeError
        If something in `obj` cannot be written; the message says where it stands.
    ValueError
        If `obj` contains itself.
    OSError
        If the place cannot be written to.

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
    if _is_file(path, "write"):
        archives.write(obj, path)
        return
    target = Path(os.path.realpath(os.fspath(path)))  # where a link leads to
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    write = safetensors_files.write if target.suffix == ".safetensors" else archives.write
    aside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with open(aside, "xb") as file:
            write(obj, file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(aside, stat.S_IMODE(target.stat().st_mode))
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Have the new name written down too, where the system can be asked to."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:  # some network file systems refuse; the file itself is safe
        pass
    finally:
        os.close(handle)


def load(path: Any, *, return_numpy: bool = False) -> Any:
    """Read a file of `save`, or one of safetensors.

    Which of the two it is, is found from what it starts with; its ending does not matter.

    Parameters
    ----------
    path : str, path or binary file
    return_numpy : bool
        Give arrays where there were Tensors.

    Returns
    -------
    object
        What was saved: Tensors and Parameters come back as Tensors that need no gradient. Of a file
        of safetensors, a dict of names and Tensors.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableFileError
        A ValueError: if it is no file of `save`, or is truncated, altered, of a newer format, or a
        pickle. The message says what was found, and what to do.
    ModuleNotFoundError
        If it holds bfloat16, and the package ml_dtypes is not installed.

    Notes
    -----
    The weights of a PyTorch model are loaded by name: `Layer.set_state_dict`. Its Linear keeps
    [out, in], this one [in, out]; nothing is transposed behind your back.

    Examples
    --------
    >>> import io
    >>> import optlab as ol
    >>> file = io.BytesIO()
    >>> ol.save({"loss": [0.5, 0.25], "w": ol.ones([2])}, file)
    >>> ol.load(file)
    {'loss': [0.5, 0.25], 'w': Tensor([1., 1.], dtype=float32)}
    """
    if _is_file(path, "read"):
        path.seek(0)
        return _read(path, getattr(path, "name", None) or "this file", return_numpy)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    if not os.path.exists(path):
        raise FileNotFoundError(_not_there(Path(path)))
    with open(path, "rb") as file:
        return _read(file, str(path), return_numpy)


def _read(file: BinaryIO, name: str, return_numpy: bool) -> Any:
    def refuse(what: str) -> NoReturn:
        raise UnreadableFileError(f"{name} {what}.") from None

    start = file.read(16)
    file.seek(0)
    if start.startswith(b"PK\x03\x04"):
        return archives.read(file, refuse, return_numpy)
    if safetensors_files.looks_like_one(start):
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


def _is_file(path: Any, action: str) -> bool:
    """Say whether `path` is an open binary file; refuse what is neither file nor path."""
    if isinstance(path, (str, os.PathLike)):
        return False
    if not hasattr(path, action):
        raise TypeError(f"a path or an open binary file is needed; got {path!r}.")
    if hasattr(path, "encoding"):
        raise TypeError("the file is open for text; open it with 'rb' or 'wb'.")
    return True


def _not_there(path: Path) -> str:
    """Say that a file is not there, and what is."""
    if not path.parent.is_dir():
        return f"there is no file {path}: there is no folder {path.parent}."
    near = get_close_matches(path.name, [other.name for other in path.parent.iterdir()], 3, 0.6)
    found = f" There is {' and '.join(near)}." if near else ""
    return f"there is no file {path}; the folder is {path.parent.resolve()}.{found}"
