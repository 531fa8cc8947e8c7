"""save and load: round trips, and refusals."""

from __future__ import annotations

import collections
import io
import json
import math
import os
import pickle
import stat
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import optlab as ol
from optlab.io import UnreadableFileError, archives
from optlab.io.structures import Written


def there_and_back(obj, **options):
    file = io.BytesIO()
    ol.save(obj, file)
    return ol.load(file, **options)


def same(a, b):
    """Return whether two structures are bitwise equal, types included."""
    if isinstance(a, ol.Tensor):
        return type(b) is ol.Tensor and not b.requires_grad and same(np.asarray(a.data), b.data)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(same, a.values(), b.values()))
    if isinstance(a, np.ndarray):
        return (
            a.dtype == b.dtype
            and a.shape == b.shape
            and a.tobytes("A") == b.tobytes("A")
            and a.flags.f_contiguous == b.flags.f_contiguous
        )
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    return a == b


any_array = arrays.arrays(
    st.one_of(
        arrays.floating_dtypes(), arrays.integer_dtypes(), arrays.boolean_dtypes(),
        arrays.complex_number_dtypes(), arrays.unicode_string_dtypes(), arrays.datetime64_dtypes(),
    ),
    arrays.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=4),
)  # fmt: skip
numeric_tensor = arrays.arrays(
    st.sampled_from(["float16", "float32", "float64", "int64", "bool"]),
    arrays.array_shapes(min_dims=0, min_side=0),
).map(ol.Tensor)
plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(),
    st.integers(-5, 5).map(np.int8), st.floats(width=32).map(np.float32),
)  # fmt: skip
key = st.one_of(
    st.text(), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False),
    st.tuples(st.text(), st.integers()),
)  # fmt: skip
anything = st.recursive(
    st.one_of(plain, any_array, any_array.map(np.asfortranarray), numeric_tensor),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(key, inner, max_size=3),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(anything)
def test_everything_comes_back_to_the_bit(obj):
    assert same(obj, there_and_back(obj))


def test_a_model_and_all_around_it(tmp_path):
    ol.seed(0)
    model = ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Tanh(), ol.nn.Linear(4, 2))
    path = tmp_path / "model.pdparams"
    ol.save({"model": model.state_dict(), "epoch": 7, "losses": [0.5, math.inf]}, path)
    before = model.state_dict()["0.weight"].numpy()
    model[0].weight.set_value(np.zeros((3, 4)))  # training continues; the file does not
    back = ol.load(str(path))
    assert back["losses"] == [0.5, math.inf]
    model.set_state_dict(back["model"])
    assert np.array_equal(model[0].weight.numpy(), before)


def test_numpy_reads_the_arrays_without_us(tmp_path):
    model = ol.nn.Sequential(ol.nn.Linear(3, 4))
    ol.save({"model": model.state_dict()}, tmp_path / "x")
    with np.load(tmp_path / "x", allow_pickle=False) as file:
        assert np.array_equal(file["model/0.weight"], model[0].weight.numpy())


def test_a_tensor_in_two_places_is_one_and_stored_once():
    t = ol.to_tensor(np.arange(1000.0))
    file = io.BytesIO()
    ol.save({"a": t, "b": [t, t.data]}, file)
    assert len(file.getvalue()) < 3 * 8000
    back = ol.load(file)
    assert back["a"] is back["b"][0]


def test_what_comes_back_may_be_written_to_and_trained():
    back = there_and_back(ol.Parameter([1.0, 2.0]))
    back[0] = 5.0
    back.requires_grad = True
    (back * back).sum().backward()
    assert back.grad.tolist() == [10.0, 4.0]


def test_ordered_dicts_come_back_as_dicts_and_arrays_on_request():
    obj = collections.OrderedDict(b=ol.ones([2]), a=1)
    back = there_and_back(obj, return_numpy=True)
    assert type(back) is dict
    assert list(back) == ["b", "a"]
    assert type(back["b"]) is np.ndarray


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    back = there_and_back({"a": array, "t": ol.Tensor(array)})
    assert back["a"].dtype == ml_dtypes.bfloat16
    assert back["a"].tolist() == back["t"].data.tolist() == array.tolist()


class Point(collections.namedtuple("Point", "x")):
    pass


class Text(str):
    pass


@pytest.mark.parametrize(
    ("obj", "error", "said"),
    [
        ({"a": [1, object()]}, TypeError, r"what stands at \['a'\]\[1\] is a object"),
        ({"f": len}, TypeError, r"\['f'\] is a builtin_function"),
        (ol.nn.ReLU(), TypeError, r"what you save is a ReLU.*save its state_dict\(\)"),
        (np.array([1, "a"], object), TypeError, "dtype object.*only a pickle"),
        ([np.zeros(2, "i4,f4")], TypeError, r"\[0\] is an array of dtype .*its fields one by one"),
        (Point(1), TypeError, r"is a Point.*Save tuple\(it\)"),
        (collections.defaultdict(int), TypeError, r"defaultdict.*Save dict\(it\)"),
        ({1, 2}, TypeError, "is a set, which cannot be saved"),
        (b"bytes", TypeError, "is a bytes"),
        (Text("a"), TypeError, "is a Text"),
        ({Point(1): 1}, TypeError, "has the key"),
        ({frozenset(): 1}, TypeError, "has the key"),
        (
            np.ma.array([1.0]),
            TypeError,
            r"MaskedArray; save it\.data and np\.ma\.getmaskarray\(it\)",
        ),
        (np.zeros(1).view(np.recarray), TypeError, r"recarray; save np\.asarray\(it\)"),
        (ol.ensemble(np.ones((3, 2))), TypeError, "cannot be saved"),
    ],
    ids=lambda x: None,
)
def test_what_cannot_be_saved_says_where_it_stands(obj, error, said, tmp_path):
    with pytest.raises(error, match=said):
        ol.save(obj, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_every_array_has_a_file_of_its_own():
    saved = {"x.2": np.zeros(1), "x": np.ones(1), "x/": np.full(1, 2.0), "x ": np.full(1, 3.0)}
    saved["x_"] = np.full(1, 4.0)
    file = io.BytesIO()
    ol.save(saved, file)
    assert {key: x[0] for key, x in ol.load(file).items()} == {k: i for i, k in enumerate(saved)}
    with zipfile.ZipFile(file) as archive:
        assert len(set(archive.namelist())) == 6


def test_saving_many_arrays_takes_time_in_proportion():
    def seconds(count):
        arrays = [np.zeros(1) for _ in range(count)]
        start = time.thread_time()
        Written().encoded(arrays)
        return time.thread_time() - start

    few, many = min(seconds(1000) for _ in range(3)), seconds(16_000)
    assert many < 100 * few


def test_saving_over_something_longer_leaves_nothing_of_it():
    file = io.BytesIO()
    ol.save(np.zeros(100), file)
    file.seek(0)
    ol.save(np.ones(1), file)
    assert ol.load(file).tolist() == [1.0]


def test_what_contains_itself_or_goes_too_deep():
    loop = [1]
    loop.append({"again": loop})
    with pytest.raises(ValueError, match=r"\[1\]\['again'\] contains itself"):
        there_and_back(loop)
    deep = []
    for _ in range(98):
        deep = [deep]
    assert there_and_back(deep) == deep
    with pytest.raises(ValueError, match="more than 100 containers deep"):
        there_and_back([[deep]])
    twice = [1.0]
    assert there_and_back([twice, twice]) == [[1.0], [1.0]]  # not a loop


class TestWriting:
    def test_a_failure_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "x"
        ol.save(1, path)
        with pytest.raises(TypeError):
            ol.save([np.ones(1000), object()], path)
        monkeypatch.setattr(os, "fsync", lambda handle: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ol.save(2, path)
        assert ol.load(path) == 1
        assert list(tmp_path.iterdir()) == [path]

    def test_folders_are_made_and_a_folder_is_no_file(self, tmp_path):
        ol.save(1, tmp_path / "a" / "b" / "x")
        assert ol.load(tmp_path / "a" / "b" / "x") == 1
        with pytest.raises(IsADirectoryError, match="is a folder"):
            ol.save(1, tmp_path)
        with pytest.raises(IsADirectoryError, match="is a folder"):
            ol.load(tmp_path)

    @pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")
    def test_modes_and_links_stay(self, tmp_path):
        path, link = tmp_path / "x", tmp_path / "link"
        ol.save(1, path)
        (tmp_path / "plain").write_bytes(b"")
        assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
        path.chmod(0o640)
        link.symlink_to(path)
        ol.save(2, link)
        assert link.is_symlink()
        assert ol.load(path) == 2
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="devices and pipes of POSIX")
    def test_devices_and_pipes_stay_what_they_are(self, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        collected = tmp_path / "collected"
        with open(collected, "wb") as output:
            subprocess.run(
                [sys.executable, "-c", "import optlab as ol; ol.save(1, '/dev/stdout')"],
                stdout=output,
                stderr=subprocess.PIPE,
            )
        assert collected.read_bytes() == b""
        collected.unlink()
        for path, kind in ((pipe, "a pipe"), ("/dev/null", "a device")):
            before = os.stat(path).st_mode
            with pytest.raises(OSError, match=f"is {kind}, and would be replaced"):
                ol.save({"w": np.ones(2)}, path)
            assert os.stat(path).st_mode == before
        assert list(tmp_path.iterdir()) == [pipe]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
    def test_the_owner_is_kept(self, tmp_path):
        path = tmp_path / "x"
        ol.save(1, path)
        path.chmod(0o640)
        os.chown(path, 1234, 2345)
        ol.save(2, path)
        now = path.stat()
        assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (1234, 2345, 0o640)
        assert ol.load(path) == 2

    @pytest.mark.skipif(not hasattr(os, "chown"), reason="owners of POSIX")
    def test_a_file_that_cannot_be_given_to_its_owner_stays(self, tmp_path, monkeypatch):
        path = tmp_path / "x"
        ol.save(1, path)

        def refused(*_):
            raise PermissionError(1, "Operation not permitted")

        before = path.stat()
        other = os.stat_result([*before[:4], before.st_uid + 1, *before[5:]])
        normal = type(path).stat
        monkeypatch.setattr(os, "chown", refused)
        monkeypatch.setattr(
            type(path), "stat", lambda p, **k: other if p == path else normal(p, **k)
        )
        with pytest.raises(PermissionError, match=r"belongs to another user.*another name"):
            ol.save(2, path)
        monkeypatch.undo()
        assert ol.load(path) == 1
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.skipif(sys.platform == "win32", reason="kill of POSIX")
    def test_what_a_killed_writer_left_is_removed_by_the_next(self, tmp_path):
        path = tmp_path / "x"
        ol.save(1, path)
        script = """
import os, signal, sys
import numpy as np, optlab as ol
from optlab.io import archives
def dies(obj, file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.readline()
    file.write(b" and half")
archives.write = dies
ol.save(np.ones(3), sys.argv[1])
"""
        command = [sys.executable, "-c", script, str(path)]
        others = [tmp_path / ".x.notes.part", tmp_path / ".xy.0123456789ab.part"]
        for other in others:
            other.write_bytes(b"not of this file")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([*command, "waits"], text=True, **pipes) as at_work:
            assert at_work.stdout.readline() == "writing\n"
            subprocess.run([*command, "killed"], stdout=subprocess.DEVNULL)
            assert len(list(tmp_path.glob(".x.????????????.part"))) == 2
            ol.save(2, path)
            assert len(list(tmp_path.glob(".x.????????????.part"))) == 1  # of the one at work
            assert ol.load(path) == 2
            at_work.communicate("go on\n")
        assert path.read_bytes() == b"half and half"
        assert sorted(tmp_path.iterdir()) == sorted([path, *others])

    @pytest.mark.parametrize("wrong", [3, None, ["x"]])
    def test_what_is_no_path(self, wrong):
        with pytest.raises(TypeError, match="a path or an open binary file is needed"):
            ol.save(1, wrong)
        with pytest.raises(TypeError, match="a path or an open binary file is needed"):
            ol.load(wrong)
        with pytest.raises(TypeError, match="open it with 'rb' or 'wb'"):
            ol.save(1, sys.stdout)


class TestRefusals:
    @pytest.fixture
    def file(self):
        file = io.BytesIO()
        ol.save({"w": ol.to_tensor(np.arange(6.0)), "n": [1, "two"]}, file)
        return file.getvalue()

    def load(self, content):
        return ol.load(io.BytesIO(content))

    def test_truncated_anywhere(self, file):
        for length in range(len(file)):
            with pytest.raises(UnreadableFileError):
                self.load(file[:length])
        with pytest.raises(ValueError, match="truncated"):
            self.load(file[:-1])
        with pytest.raises(ValueError, match="is empty"):
            self.load(b"")

    @pytest.mark.parametrize("bit", [1, 128])
    def test_an_altered_byte_is_refused_or_changes_nothing(self, file, bit):
        expected = repr(self.load(file))
        refused = 0
        for i in range(len(file)):
            altered = bytearray(file)
            altered[i] ^= bit
            try:
                assert repr(self.load(altered)) == expected
            except UnreadableFileError:
                refused += 1
        assert refused > len(file) / 2

    def test_bytes_behind_the_end_or_before_the_start(self, file):
        for more in (b"z", b"zz", bytes(70_000), file):
            with pytest.raises(UnreadableFileError, match=r"altered|damaged"):
                self.load(file + more)
        with pytest.raises(UnreadableFileError, match="before its start"):
            self.load(b"PK\x03\x04" + file)

    def rebuilt(self, file, change):
        """Return the archive with changed files inside and valid checksums of the zip format."""
        with zipfile.ZipFile(io.BytesIO(file)) as old:
            inside = {name: old.read(name) for name in old.namelist()}
            comment = old.comment
        comment = change(inside) or comment
        new = io.BytesIO()
        with zipfile.ZipFile(new, "w") as archive:
            for name, content in inside.items():
                archive.writestr(name, content)
            archive.comment = comment
        return new.getvalue()

    def test_altered_by_one_who_knows_zip(self, file):
        def values(inside):
            inside["w.npy"] = inside["w.npy"][:-1] + b"\x01"

        def head(inside):
            inside["optlab.json"] = inside["optlab.json"].replace(b"two", b"six")

        for change, name in ((values, "w.npy"), (head, "optlab.json")):
            with pytest.raises(ValueError, match=f"altered.*checksum of {name}"):
                self.load(self.rebuilt(file, change))
        with pytest.raises(ValueError, match=r"no item named 'w\.npy'"):
            self.load(self.rebuilt(file, lambda inside: inside.pop("w.npy") and None))

    def with_head(self, file, change):
        def rewrite(inside):
            head = json.loads(inside["optlab.json"])
            change(head)
            page = json.dumps(head).encode()
            inside["optlab.json"] = page
            import hashlib

            return b"optlab sha256 " + hashlib.sha256(page).hexdigest().encode()

        return self.rebuilt(file, rewrite)

    def test_a_newer_format(self, file):
        newer = self.with_head(file, lambda head: head.update(version=archives.VERSION + 1))
        with pytest.raises(ValueError, match=r"newer optlab: it has format 2.*install --upgrade"):
            self.load(newer)

    @pytest.mark.parametrize(
        "change",
        [
            lambda head: head.update(format="other"),
            lambda head: head.pop("version"),
            lambda head: head.update(structure={"tensor": 5}),
            lambda head: head.update(structure={"tensor": "a"}),
            lambda head: head.update(structure={"code": "import os"}),
            lambda head: head.update(structure={"dict": [[{"dict": []}, 1]]}),
            lambda head: head.update(arrays=3),
            lambda head: head["arrays"][0].update(dtype="|O"),
            lambda head: head["arrays"][0].update(dtype="<f4"),
            lambda head: head["arrays"][0].update(shape=[7]),
            lambda head: head["arrays"][0].update(shape=[10**15]),
            lambda head: head["arrays"][0].update(shape=[-1]),
            lambda head: head["arrays"][0].update(order="K"),
            lambda head: head["arrays"][0].update(file="../x"),
        ],
    )
    def test_a_head_that_makes_no_sense(self, file, change):
        with pytest.raises(UnreadableFileError):
            self.load(self.with_head(file, change))

    def test_reading_is_bounded_by_the_size_of_the_file(self, file):
        def repeated(head):
            head["arrays"] *= 8000

        with pytest.raises(UnreadableFileError, match=r"two arrays are in the file w\.npy"):
            self.load(self.with_head(file, repeated))

        def wide(head):
            sys.set_int_max_str_digits(0)
            head["arrays"][0]["shape"] = [10**4000] * 1000

        with pytest.raises(UnreadableFileError, match="has 1000 dimensions"):
            self.load(self.with_head(file, wide))
        for shape in ([10**4000, 0], [2**63]):
            with pytest.raises(UnreadableFileError, match="a dimension that no array can have"):
                self.load(
                    self.with_head(file, lambda head, s=shape: head["arrays"][0].update(shape=s))
                )
        compressed = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(file)) as old,
            zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            for name in old.namelist():
                new.writestr(name, old.read(name))
            new.comment = old.comment
        with pytest.raises(UnreadableFileError, match="has a compressed"):
            self.load(compressed.getvalue())

    def test_members_that_overlap(self):
        """Many names for one content: the entry of each in the directory is 60 bytes."""
        file = io.BytesIO()
        ol.save([np.arange(1000.0), np.arange(1000.0) + 1], file)
        content = file.getvalue()
        with zipfile.ZipFile(file) as archive:
            second = archive.infolist()[1]
        # The directory of the zip: the offset of the second member becomes that of the first.
        place = content.rindex(second.filename.encode()) - 4
        assert int.from_bytes(content[place : place + 4], "little") == second.header_offset
        overlapping = content[:place] + bytes(4) + content[place + 4 :]
        with pytest.raises(UnreadableFileError, match="overlaps what is before it"):
            self.load(overlapping)

    def test_what_others_wrote(self, tmp_path):
        with_pickle, archive, array, other = (io.BytesIO() for _ in range(4))
        np.savez(archive, a=np.ones(2))
        np.save(array, np.ones(2))
        with zipfile.ZipFile(with_pickle, "w") as file:
            file.writestr("model/data.pkl", b"")
        with zipfile.ZipFile(other, "w") as file:
            file.writestr("a.txt", b"")
        for content, said in {
            pickle.dumps({"w": 1}): "is a pickle.*any code.*safetensors",
            with_pickle.getvalue(): "checkpoint of PyTorch.*safetensors.torch.save_file",
            archive.getvalue(): "is a NumPy archive; read it with numpy.load",
            array.getvalue(): "is a single NumPy array",
            other.getvalue(): "is a zip file that optlab.save did not write",
            b"\x89HDF\r\n": "HDF5",
            b"hello world": "is no file of optlab.save",
        }.items():
            with pytest.raises(UnreadableFileError, match=said):
                self.load(content)
        (tmp_path / "x.pdparams").write_bytes(pickle.dumps(1))
        with pytest.raises(ValueError, match=r"x\.pdparams is a pickle"):
            ol.load(tmp_path / "x.pdparams")

    def test_nothing_is_run(self, tmp_path):
        class Evil:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "evil"),))

        with pytest.raises(UnreadableFileError):
            self.load(pickle.dumps(Evil()))
        archive = io.BytesIO()
        np.savez(archive, a=np.array([Evil()], object))
        with pytest.raises(UnreadableFileError):
            self.load(archive.getvalue())
        assert list(tmp_path.iterdir()) == []

    def test_what_is_not_there(self, tmp_path):
        ol.save(1, tmp_path / "model.ol")
        with pytest.raises(FileNotFoundError, match=r"there is no file .*There is model\.ol\."):
            ol.load(tmp_path / "modle.ol")
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            ol.load(tmp_path / "nowhere" / "model.ol")

    @pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
    def test_a_link_that_leads_to_no_file(self, tmp_path):
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(tmp_path / "a")
        with pytest.raises(FileNotFoundError, match="a link that leads to no file"):
            ol.load(tmp_path / "a")

    def test_bfloat16_without_ml_dtypes(self, file, monkeypatch):
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
        content = self.with_head(file, lambda head: head["arrays"][0].update(dtype="bfloat16"))
        with pytest.raises(ModuleNotFoundError, match=r"bfloat16.*optlab\[formats\]"):
            self.load(content)
