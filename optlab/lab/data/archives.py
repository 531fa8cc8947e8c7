"""Image data sets and texts from files: MNIST, Fashion-MNIST, CIFAR-10, any text."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path

import numpy as np

from optlab.lab.data.downloads import data_folder
from optlab.lab.data.downloads import download as _download
from optlab.lab.data.images import Data
from optlab.lab.data.texts import Text, divided

_PARTS = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
#: Where the files lie, and the MD5 checksums that their authors publish.
_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)  # fmt: skip
_FASHION_MNIST = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
    ),
)  # fmt: skip
_CIFAR10 = (
    "https://www.cs.toronto.edu/~kriz/",
    "cifar-10-binary.tar.gz",
    "c32a1d4ab5d03f1284b67883e8d87530",
)
_IDX_DTYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def mnist(
    folder: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    mirror: str | None = None,
) -> Data:
    """Return MNIST: 60,000 handwritten digits for training and 10,000 held out, 28 x 28 pixels.

    Parameters
    ----------
    folder : path, optional
        Where the four files lie, as they are published (with or without ".gz"). By default
        ``$OPTLAB_DATA/mnist``, or ``~/.cache/optlab/mnist``.
    download : bool
        Whether to fetch files that are not there: 11 MB, with a checksum.
    mirror : str, optional
        The address of another place that has the same files.

    Returns
    -------
    Data
        Images of float32 in [0, 1], [count, 1, 28, 28]; labels of int64.

    Raises
    ------
    FileNotFoundError
        If files are missing, and are not to be downloaded.
    ConnectionError, ValueError
        If a download fails, or a file is damaged.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-based learning applied to document
    recognition, 1998.
    """
    return _idx_images("mnist", _MNIST, folder, download, mirror)


def fashion_mnist(
    folder: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    mirror: str | None = None,
) -> Data:
    """Return Fashion-MNIST: 60,000 pictures of clothes and 10,000 held out, 28 x 28 pixels.

    Parameters
    ----------
    folder : path, optional
        Where the four files lie, as they are published (with or without ".gz"). By default
        ``$OPTLAB_DATA/fashion_mnist``, or ``~/.cache/optlab/fashion_mnist``.
    download : bool
        Whether to fetch files that are not there: 30 MB, with a checksum.
    mirror : str, optional
        The address of another place that has the same files.

    Returns
    -------
    Data
        Images of float32 in [0, 1], [count, 1, 28, 28]; labels of int64.

    Raises
    ------
    FileNotFoundError
        If files are missing, and are not to be downloaded.
    ConnectionError, ValueError
        If a download fails, or a file is damaged.

    References
    ----------
    H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, 2017.
    """
    return _idx_images("fashion_mnist", _FASHION_MNIST, folder, download, mirror)


def cifar10(
    folder: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    mirror: str | None = None,
) -> Data:
    """Return CIFAR-10: 50,000 color pictures of ten kinds and 10,000 held out, 32 x 32 pixels.

    Parameters
    ----------
    folder : path, optional
        Where ``cifar-10-binary.tar.gz`` lies, or its unpacked files ``data_batch_1.bin``, ... By
        default ``$OPTLAB_DATA/cifar10``, or ``~/.cache/optlab/cifar10``.
    download : bool
        Whether to fetch the archive if nothing is there: 170 MB, with a checksum.
    mirror : str, optional
        The address of another place that has the same file.

    Returns
    -------
    Data
        Images of float32 in [0, 1], [count, 3, 32, 32]; labels of int64.

    Raises
    ------
    FileNotFoundError
        If files are missing, and are not to be downloaded.
    ConnectionError, ValueError
        If a download fails, or a file is damaged.

    References
    ----------
    A. Krizhevsky, Learning multiple layers of features from tiny images, 2009.
    """
    place = data_folder(folder) if folder is not None else data_folder() / "cifar10"
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    inside = place / "cifar-10-batches-bin"
    unpacked = inside if (inside / names[0]).exists() else place
    if all((unpacked / name).exists() for name in names):
        parts = [(unpacked / name).read_bytes() for name in names]
    else:
        base, archive, digits = _CIFAR10
        path = _found_or_fetched(place, archive, mirror or base, digits, download, "cifar10")
        with tarfile.open(path) as tar:
            parts = [_member(tar, f"cifar-10-batches-bin/{name}", path) for name in names]
    records = [_records(part, name) for part, name in zip(parts, names, strict=True)]
    train, test = np.concatenate(records[:-1]), records[-1]
    train_x, test_x = (
        rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255 for rows in (train, test)
    )
    return Data(train_x, train[:, 0].astype(np.int64), test_x, test[:, 0].astype(np.int64))


def text(
    source: str | os.PathLike[str],
    share: float = 0.9,
    *,
    checksum: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    encoding: str = "utf-8",
) -> Text:
    r"""Return any text, from a file or by download: a part for training, the end held out.

    Parameters
    ----------
    source : path or str
        A file; or an address (``https://...``), which is fetched once into `folder`.
    share : float
        The share of the text for training, between 0 and 1; it is cut at the end of a line.
    checksum : str, optional
        "md5:..." or "sha256:..." of the file. With one, a download that was cut off goes on.
    folder : path, optional
        Of a download: by default ``$OPTLAB_DATA/texts``, or ``~/.cache/optlab/texts``.
    encoding : str

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ConnectionError
        If it cannot be fetched.
    ValueError
        If the checksum differs, the bytes are not in this encoding, or one part would be empty.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "lines.txt"
    >>> _ = file.write_text("one\ntwo\nthree\nfour\n")
    >>> text(file, share=0.8).validation
    'four\n'
    """
    address = os.fspath(source)
    if address.startswith(("https://", "http://", "file://")):
        place = data_folder(folder) if folder is not None else data_folder() / "texts"
        name = address.rstrip("/").rpartition("/")[2].partition("?")[0] or "text"
        path = _download(address, place / name, checksum)
    else:
        path = Path(address)
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}.")
        if checksum is not None:
            path = _download(path.absolute().as_uri(), path, checksum)
    try:
        whole = path.read_text(encoding=encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in the encoding {encoding}: {error}. Give encoding=, such as "
            '"latin-1".'
        ) from error
    return divided(whole, share, "\n")


def _idx_images(
    name: str, source: tuple[str, tuple[str, ...]], folder: str | os.PathLike[str] | None,
    fetch: bool, mirror: str | None,
) -> Data:  # fmt: skip
    """Return images and labels of four files in the format of MNIST."""
    place = data_folder(folder) if folder is not None else data_folder() / name
    base, digests = source
    arrays = []
    for part, digits in zip(_PARTS, digests, strict=True):
        plain = place / f"{part}-ubyte"
        path = (
            plain
            if plain.exists()
            else _found_or_fetched(place, f"{part}-ubyte.gz", mirror or base, digits, fetch, name)
        )
        arrays.append(read_idx(path))
    train_x, train_y, test_x, test_y = arrays
    for images, labels, part in ((train_x, train_y, "train"), (test_x, test_y, "t10k")):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"the files {part}-* in {place} do not belong together: images of the shape "
                f"{images.shape}, labels of the shape {labels.shape}."
            )
    return Data(
        train_x[:, None].astype(np.float32) / 255, train_y.astype(np.int64),
        test_x[:, None].astype(np.float32) / 255, test_y.astype(np.int64),
    )  # fmt: skip


def _found_or_fetched(
    place: Path, file: str, base: str, digits: str, fetch: bool, function: str
) -> Path:
    path = place / file
    if path.exists():
        return path
    if not fetch:
        raise FileNotFoundError(
            f"{path} is not there. Give download=True to fetch it from {base}, or the folder that "
            f"has it: ol.data.{function}(folder)."
        )
    return _download(base.rstrip("/") + "/" + file, path, f"md5:{digits}")


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the array of a file in the IDX format, in which MNIST is published.

    Two zero bytes, a code for the dtype, the number of dimensions, their lengths as four bytes
    each, the elements; the most significant byte first. A name that ends in ".gz" is unpacked.

    Parameters
    ----------
    path : path

    Raises
    ------
    ValueError
        If the file is not in this format, or ends early.
    """
    path = Path(path)
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path} is damaged: {error}. Remove it and fetch it again.") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _IDX_DTYPES:
        raise ValueError(
            f"{path} is not in the IDX format, which begins with two zero bytes and a code of the "
            f"type of its numbers; it begins with {content[:4]!r}."
        )
    dtype = np.dtype(_IDX_DTYPES[content[2]])
    head = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:head], ">u4").astype(int)
    if len(shape) < content[3] or len(content) != head + int(np.prod(shape)) * dtype.itemsize:
        raise ValueError(
            f"{path} says that it holds an array of the shape {tuple(shape.tolist())}, which its "
            f"{len(content):,} bytes are not. Remove it and fetch it again."
        )
    return np.frombuffer(content, dtype, offset=head).reshape(shape).astype(dtype.newbyteorder("="))


def _member(tar: tarfile.TarFile, name: str, path: Path) -> bytes:
    try:
        file = tar.extractfile(name)
    except KeyError:
        file = None
    if file is None:
        raise ValueError(f"{path} has no file {name}: it is not the binary version of CIFAR-10.")
    return file.read()


def _records(content: bytes, name: str) -> np.ndarray:
    """Return the rows of one file of CIFAR-10: a label and 3,072 bytes each."""
    if not content or len(content) % 3073:
        raise ValueError(
            f"{name} is damaged: {len(content):,} bytes are no whole number of records of 3,073."
        )
    return np.frombuffer(content, np.uint8).reshape(-1, 3073)
