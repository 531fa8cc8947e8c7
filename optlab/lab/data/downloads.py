"""Files that are fetched once: with a checksum, resumable, never when optlab is imported."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

from optlab.lab.progress import ProgressBar

_PIECE = 1 << 18
#: Seconds without a byte before a connection is given up.
_TIMEOUT = 30.0


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of downloaded data: the one given, ``$OPTLAB_DATA``, or the user's cache.

    Examples
    --------
    >>> data_folder("elsewhere").name
    'elsewhere'
    """
    if folder is not None:
        return Path(folder)
    given = os.environ.get("OPTLAB_DATA")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "optlab"


def download(
    url: str,
    path: str | os.PathLike[str],
    checksum: str | None = None,
    progress: bool | None = None,
) -> Path:
    """Fetch a file, unless it is there already; return its path.

    A download that was cut off goes on where it ended, if there is a checksum that proves the whole
    (and the server can); without one it begins anew. The file has its name only when it is
    complete.

    Parameters
    ----------
    url : str
        ``https://``, ``http://`` or ``file://``.
    path : path
        The file to write; its folder is made.
    checksum : str, optional
        "md5:..." or "sha256:..." in hexadecimal digits. A file that is there is checked, too.
    progress : bool, optional
        Whether to show a progress bar. By default in notebooks, if it takes long.

    Raises
    ------
    ValueError
        If the checksum is no such text, or the file does not have it; a downloaded one is removed.
    ConnectionError
        If the server cannot be reached, refuses, or ends early; what came is kept for next time.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("abc")
    >>> checksum = "md5:900150983cd24fb0d6963f7d28e17f72"
    >>> download((folder / "a.txt").as_uri(), folder / "b.txt", checksum).read_text()
    'abc'
    """
    target = Path(path)
    name, digits = _algorithm(checksum)
    if target.exists():
        _check(target, name, digits, "is there, but")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    if checksum is None:
        part.unlink(missing_ok=True)
    try:
        _fetch(url, part, progress)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # what is there is the whole file already
            raise ConnectionError(f"{url} answers {error.code} {error.reason}.") from error
    except (urllib.error.URLError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None and not _of_network(error):
            raise
        raise ConnectionError(
            f"{url} could not be fetched: {getattr(error, 'reason', error)}. Call again to go on, "
            f"or fetch it in another way and put it at {target}."
        ) from error
    try:
        _check(part, name, digits, "came, but")
    except ValueError:
        part.unlink()
        raise
    os.replace(part, target)
    return target


def _of_network(error: OSError) -> bool:
    return isinstance(error, (ConnectionError, TimeoutError, urllib.error.URLError))


def _fetch(url: str, part: Path, progress: bool | None) -> None:
    """Append to `part` what is missing of a file."""
    there = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "optlab"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        resumed = there > 0 and getattr(answer, "status", None) == 206
        there = there if resumed else 0
        length = answer.headers.get("Content-Length")
        whole = there + int(length) if length is not None else 0
        bar = ProgressBar(whole or 1, part.name.removesuffix(".part"), progress, "bytes")
        try:
            with part.open("ab" if resumed else "wb") as file:
                while piece := answer.read(_PIECE):
                    file.write(piece)
                    there += len(piece)
                    bar.update(min(there, bar.total))
        finally:
            bar.close()
    if whole and there < whole:
        raise ConnectionError(f"the connection ended after {there:,} of {whole:,} bytes")


def _algorithm(checksum: str | None) -> tuple[str, str]:
    if checksum is None:
        return "", ""
    name, colon, digits = checksum.partition(":")
    sizes = {"md5": 32, "sha256": 64}
    if not colon or sizes.get(name) != len(digits):
        raise ValueError(
            f'checksum is "md5:" and 32, or "sha256:" and 64 hexadecimal digits; got {checksum!r}.'
        )
    return name, digits.lower()


def _check(path: Path, name: str, digits: str, state: str) -> None:
    """Raise a ValueError if a file does not have a checksum."""
    if not name:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(name, usedforsecurity=False))
    if found.hexdigest() != digits:
        raise ValueError(
            f"{path} {state} its {name} checksum is {found.hexdigest()}, not {digits}: it is "
            "damaged, or another version. Remove it and call again."
        )
