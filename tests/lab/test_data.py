"""Data sets: what ships with other packages, files as they are published, downloads."""

import functools
import gzip
import hashlib
import http.server
import io
import struct
import tarfile
import threading

import numpy as np
import pytest

import optlab as ol
from optlab.lab.data import archives

# A server with one folder, which knows ranges and may cut a connection ---------------------------


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        path = self.server.folder / self.path.strip("/")
        self.server.requests.append((path.name, self.headers.get("Range")))
        if not path.exists():
            self.send_error(404)
            return
        content = path.read_bytes()
        asked = self.headers.get("Range") if self.server.ranges else None
        first = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        end = self.server.cut or len(content)
        self.server.cut = None
        self.wfile.write(content[first:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.folder = tmp_path / "server"
    made.folder.mkdir()
    made.requests, made.ranges, made.cut = [], True, None
    made.url = f"http://127.0.0.1:{made.server_port}/"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def md5(content):
    return "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()


CONTENT = np.random.default_rng(0).bytes(300_000)


def test_a_file_is_fetched_once(server, tmp_path):
    (server.folder / "file").write_bytes(CONTENT)
    target = tmp_path / "here" / "file"
    for _ in range(2):
        assert ol.data.download(server.url + "file", target, md5(CONTENT)) == target
    assert target.read_bytes() == CONTENT
    assert len(server.requests) == 1
    assert [path.name for path in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_was_cut_off_goes_on(server, tmp_path, ranges):
    (server.folder / "file").write_bytes(CONTENT)
    server.cut, server.ranges = 100_000, ranges
    target = tmp_path / "file"
    with pytest.raises(ConnectionError, match="Call again"):
        ol.data.download(server.url + "file", target, md5(CONTENT))
    assert not target.exists()
    ol.data.download(server.url + "file", target, md5(CONTENT))
    assert target.read_bytes() == CONTENT
    assert server.requests == [("file", None), ("file", "bytes=100000-")]


def test_without_a_checksum_a_download_begins_anew(server, tmp_path):
    (server.folder / "file").write_bytes(CONTENT)
    server.cut = 100_000
    with pytest.raises(ConnectionError):
        ol.data.download(server.url + "file", tmp_path / "file")
    ol.data.download(server.url + "file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, None]


def test_a_file_with_another_checksum_is_no_result(server, tmp_path):
    (server.folder / "file").write_bytes(CONTENT)
    with pytest.raises(ValueError, match="checksum"):
        ol.data.download(server.url + "file", tmp_path / "file", md5(b"other"))
    assert not list(tmp_path.glob("file*"))
    (tmp_path / "file").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is there, but"):
        ol.data.download(server.url + "file", tmp_path / "file", md5(CONTENT))


@pytest.mark.parametrize("checksum", ["", "md5", "md5:12", "crc:" + "0" * 32, "sha256:" + "0" * 32])
def test_a_checksum_has_a_name_and_digits(tmp_path, checksum):
    with pytest.raises(ValueError, match="hexadecimal"):
        ol.data.download("https://x.invalid", tmp_path / "file", checksum)


def test_errors_of_the_network_say_what_to_do(server, tmp_path):
    with pytest.raises(ConnectionError, match="404"):
        ol.data.download(server.url + "nothing", tmp_path / "file")
    server.shutdown()
    server.server_close()
    with pytest.raises(ConnectionError, match="put it at"):
        ol.data.download(server.url + "file", tmp_path / "file")


# MNIST and its like -------------------------------------------------------------------------------


def idx(array, code=8):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
    return head + array.astype({8: ">u1", 12: ">i4"}[code]).tobytes()


@pytest.fixture
def images():
    draws = np.random.default_rng(0)
    return [
        draws.integers(0, 256, (6, 28, 28)), draws.integers(0, 10, 6),
        draws.integers(0, 256, (4, 28, 28)), draws.integers(0, 10, 4),
    ]  # fmt: skip


def check_images(data, images):
    assert data.train_x.dtype == np.float32
    assert data.train_x.shape == (6, 1, 28, 28)
    np.testing.assert_allclose(data.train_x[:, 0] * 255, images[0], rtol=1e-6)
    np.testing.assert_array_equal(data.train_y, images[1])
    np.testing.assert_allclose(data.test_x[:, 0] * 255, images[2], rtol=1e-6)
    assert data.test_y.dtype == np.int64
    assert data.test_y.tolist() == images[3].tolist()


@pytest.mark.parametrize("load", [ol.data.mnist, ol.data.fashion_mnist])
@pytest.mark.parametrize("packed", [True, False])
def test_images_are_read_from_a_folder(tmp_path, images, load, packed):
    for part, array in zip(archives._PARTS, images, strict=True):
        content = idx(array)
        name = f"{part}-ubyte" + ".gz" * packed
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    check_images(load(tmp_path), images)


def test_images_are_fetched_when_asked(server, tmp_path, images, monkeypatch):
    digests = []
    for part, array in zip(archives._PARTS, images, strict=True):
        content = gzip.compress(idx(array))
        (server.folder / f"{part}-ubyte.gz").write_bytes(content)
        digests.append(md5(content).removeprefix("md5:"))
    monkeypatch.setattr(archives, "_MNIST", ("https://x.invalid/", tuple(digests)))
    monkeypatch.setenv("OPTLAB_DATA", str(tmp_path / "data"))
    with pytest.raises(FileNotFoundError, match="download=True"):
        ol.data.mnist()
    assert not server.requests
    check_images(ol.data.mnist(download=True, mirror=server.url), images)
    check_images(ol.data.mnist(), images)
    assert len(server.requests) == 4
    assert (tmp_path / "data" / "mnist").is_dir()


def test_a_published_checksum_is_held(server, tmp_path, images):
    for part, array in zip(archives._PARTS, images, strict=True):
        (server.folder / f"{part}-ubyte.gz").write_bytes(gzip.compress(idx(array)))
    with pytest.raises(ValueError, match="another version"):
        ol.data.mnist(tmp_path, download=True, mirror=server.url)


def test_idx_files_of_other_types_are_read(tmp_path):
    (tmp_path / "a").write_bytes(idx(np.array([[1, -2], [3, 70000]]), 12))
    np.testing.assert_array_equal(ol.data.read_idx(tmp_path / "a"), [[1, -2], [3, 70000]])


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "IDX"), (b"\x1f\x8b\x08\x00" + b"0" * 40, "IDX"), (idx(np.ones((3, 3)))[:-1], "shape")],
)
def test_damaged_files_are_named(tmp_path, content, message):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        ol.data.read_idx(tmp_path / "a")


def test_a_damaged_archive_is_named(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(np.ones((9, 9))))[:-9])
    with pytest.raises(ValueError, match=r"a\.gz is damaged"):
        ol.data.read_idx(tmp_path / "a.gz")


@pytest.mark.parametrize("packed", [True, False])
def test_color_pictures_are_read(tmp_path, packed):
    draws = np.random.default_rng(0)
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    rows = [draws.integers(0, 256, (2, 3073)).astype(np.uint8) for _ in names]
    if packed:
        with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as tar:
            for name, part in zip(names, rows, strict=True):
                info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
                info.size = part.nbytes
                tar.addfile(info, io.BytesIO(part.tobytes()))
    else:
        for name, part in zip(names, rows, strict=True):
            (tmp_path / name).write_bytes(part.tobytes())
    data = ol.data.cifar10(tmp_path)
    assert data.train_x.shape == (10, 3, 32, 32)
    assert data.test_x.shape == (2, 3, 32, 32)
    assert data.train_y.tolist() == [int(part[i, 0]) for part in rows[:5] for i in range(2)]
    # Red first, row by row, as the authors say.
    assert data.test_x[1, 2, 0, 5] == np.float32(rows[5][1, 1 + 2 * 1024 + 5]) / np.float32(255)


# Texts --------------------------------------------------------------------------------------------


def test_a_text_comes_from_a_file_or_an_address(server, tmp_path):
    whole = "".join(f"line {i}\n" for i in range(100))
    (server.folder / "lines.txt").write_text(whole)
    here = ol.data.text(server.folder / "lines.txt", 0.8)
    there = ol.data.text(
        server.url + "lines.txt", 0.8, folder=tmp_path, checksum=md5(whole.encode())
    )
    assert here == there
    assert here.train + here.validation == whole
    assert here.validation.startswith("line 80\n") or here.validation.startswith("line 81\n")


def test_texts_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "latin").write_bytes("größer\n".encode("latin-1") * 9)
    with pytest.raises(ValueError, match="encoding="):
        ol.data.text(tmp_path / "latin")
    assert ol.data.text(tmp_path / "latin", encoding="latin-1").train.startswith("größer")
    with pytest.raises(FileNotFoundError, match="no file"):
        ol.data.text(tmp_path / "nothing")
    (tmp_path / "short").write_text("a")
    with pytest.raises(ValueError, match="nothing for one"):
        ol.data.text(tmp_path / "short")


# Tables and points --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "features", "classes"),
    [(ol.data.breast_cancer, 30, 2), (ol.data.wine, 13, 3), (ol.data.iris, 4, 3)],
)
def test_tables_are_standardized_by_their_training_part(load, features, classes):
    data = load()
    assert data.train_x.shape[1] == features
    assert len(set(data.test_y.tolist())) == classes
    np.testing.assert_allclose(data.train_x.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(data.train_x.std(axis=0), 1, rtol=1e-4)
    again = load()
    np.testing.assert_array_equal(again.test_x, data.test_x)
    shares = [np.mean(part == 1) for part in (data.train_y, data.test_y)]
    assert abs(shares[0] - shares[1]) < 0.03


def test_the_regression_has_standardized_targets():
    data = ol.data.diabetes()
    assert data.train_y.shape == (353, 1)
    assert data.test_x.shape == (89, 10)
    assert data.train_y.std() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize(
    "make",
    [ol.data.moons, ol.data.spirals, functools.partial(ol.data.spirals, classes=4, turns=1.5)],
)
def test_points_without_noise_are_told_apart_by_their_neighbors(make):
    data = make(600, noise=0.0)
    distance = np.linalg.norm(data.test_x[:, None] - data.train_x, axis=2)
    found = data.train_y[distance.argmin(axis=1)]
    assert np.mean(found == data.test_y) > 0.98
    np.testing.assert_array_equal(make(600, noise=0.0).train_x, data.train_x)
    assert not np.array_equal(make(600, noise=0.0, seed=1).train_x, data.train_x)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ol.data.moons(1),
        lambda: ol.data.moons(noise=-1),
        lambda: ol.data.spirals(classes=1),
        lambda: ol.data.spirals(held_out=1),
        lambda: ol.data.iris(0),
    ],
)
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ValueError, match=r"at least|above 0"):
        call()
