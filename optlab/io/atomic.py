"""Atomic writing of a file: it is replaced as a whole, or stays as it was."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ModuleNotFoundError:  # Windows, which removes no file that is open
    fcntl = None  # type: ignore[assignment]

_MOST_OF_NAME = 100
_SPECIAL = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end of the ``with`` block.

    The new file has the permissions and the owner of the old one. Temporary files that killed
    writers of the same file left are removed; those of writers at work are locked, and stay.

    Raises
    ------
    OSError
        If `path` is a folder, a device, a pipe or a socket; or if the file is another user's, to
        whom the new one could not be given. Nothing has changed then.
    """
    target = Path(os.path.realpath(path))  # the target of a link
    if os.fspath(path).startswith(_SPECIAL):
        raise OSError(  # it may be a link to the file that collects the output
            f"{path} is no file on a disk, and what it stands for would be replaced. Give the name "
            "of a file, or write to an open one: ol.save(obj, sys.stdout.buffer)."
        )
    _check_target(target, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_remains(target)
    aside, file = _temporary(target)
    try:
        with file:
            yield file
            file.flush()
            if target.exists():
                _copy_owner(target.stat(), aside, path)
            os.fsync(file.fileno())
            if fcntl is not None:  # replaced while it is locked: nobody takes it for remains
                os.replace(aside, target)
        if fcntl is None:
            os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _check_target(target: Path, path: str | os.PathLike[str]) -> None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(mode), "a device")
        raise OSError(
            f"{path} is {kind}, and would be replaced by a file. Give the name of a file, or write "
            "to an open one: ol.save(obj, file)."
        )


def _temporary(target: Path) -> tuple[Path, BinaryIO]:
    """Create and lock a temporary file beside the target."""
    while True:
        aside = target.with_name(f"{_prefix(target)}{secrets.token_hex(6)}.part")
        file = open(aside, "xb")  # noqa: SIM115 - the caller closes it
        if _lock(file) and not aside.exists():  # taken for remains before it was locked
            file.close()
            continue
        return aside, file


def _prefix(target: Path) -> str:
    return f".{target.name[:_MOST_OF_NAME]}."


def _lock(file: BinaryIO) -> bool:
    """Lock an open file; return whether it is locked, which some file systems cannot do."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_remains(target: Path) -> None:
    """Remove temporary files of this target whose writer is gone."""
    ours = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{12}\.part")
    for name in os.listdir(target.parent):
        if ours.fullmatch(name):
            with contextlib.suppress(OSError), open(target.parent / name, "rb") as file:
                if fcntl is None or _lock(file):
                    os.unlink(target.parent / name)


def _copy_owner(old: os.stat_result, aside: Path, path: str | os.PathLike[str]) -> None:
    """Give a new file the owner and the permissions of the old one."""
    new = aside.stat()
    if hasattr(os, "chown"):
        if new.st_uid != old.st_uid:
            try:
                os.chown(aside, old.st_uid, -1)
            except PermissionError as error:
                raise PermissionError(
                    f"{path} belongs to another user (number {old.st_uid}), and the new file could "
                    "not be given to them; save under another name."
                ) from error
        if new.st_gid != old.st_gid:
            with contextlib.suppress(PermissionError):  # a group that this user is not in
                os.chown(aside, -1, old.st_gid)
    os.chmod(aside, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Flush the new file name to disk, if the system supports that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:  # some network file systems refuse; the file itself is safe
        pass
    finally:
        os.close(handle)
