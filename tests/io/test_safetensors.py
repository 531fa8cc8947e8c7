"""Files of safetensors: ours read by the package, the package's read by us."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import optlab as ol
from optlab.io import UnreadableFileError

STATE = {
    "fc.weight": np.arange(6, dtype="float32").reshape(2, 3),
    "fc.bias": np.array([0.5, -1.0]),
    "steps": np.array(7),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 4), "float16"),
    "half": np.asfortranarray(np.arange(6, dtype="int8").reshape(2, 3)),
    "big-endian": np.arange(3, dtype=">i4"),
}


def built(head, content=b""):
    page = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(page).to_bytes(8, "little") + page + content


def test_there_and_back(tmp_path):
    path = tmp_path / "model.safetensors"
    ol.save({name: ol.Tensor(array) for name, array in STATE.items()}, path)
    back = ol.load(path)
    assert list(back) == list(STATE)
    for name, array in STATE.items():
        assert type(back[name]) is ol.Tensor
        assert back[name].dtype == array.dtype.newbyteorder("=")
        assert np.array_equal(back[name].data, array)
    assert type(ol.load(path, return_numpy=True)["steps"]) is np.ndarray
    assert int.from_bytes(path.read_bytes()[:8], "little") % 8 == 0


def test_the_content_decides_not_the_ending(tmp_path):
    ol.save({"a": np.ones(2)}, tmp_path / "a.safetensors")
    (tmp_path / "a.safetensors").rename(tmp_path / "a.bin")
    assert ol.load(tmp_path / "a.bin")["a"].tolist() == [1.0, 1.0]


def test_the_package_agrees(tmp_path):
    package = pytest.importorskip("safetensors.numpy")
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    state = {name: np.ascontiguousarray(array) for name, array in STATE.items() if array.ndim}
    state["big-endian"] = state["big-endian"].astype("i4")
    ol.save(state, ours)
    package.save_file(state, theirs, metadata={"format": "pt"})
    for back in (package.load_file(ours), ol.load(theirs, return_numpy=True)):
        assert set(back) == set(state)
        assert all(np.array_equal(back[name], array) for name, array in state.items())


@pytest.mark.peers
def test_a_pytorch_model_is_loaded_by_name(tmp_path):
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    package.save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    state = ol.load(tmp_path / "model.safetensors")
    ours = ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Tanh(), ol.nn.Linear(4, 2))
    with pytest.raises(ValueError, match="PyTorch's Linear keeps"):
        ours.set_state_dict(state)
    ours.set_state_dict({k: v.T if v.ndim == 2 else v for k, v in state.items()})
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    assert np.allclose(ours(x).numpy(), theirs(torch.tensor(x)).detach().numpy(), atol=1e-6)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    content = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    file = built({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, content.tobytes())
    assert ol.load(io.BytesIO(file))["a"].data.tolist() == [1.5, -2.0]


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (built({"a": ENTRY}, bytes(7)), "truncated: 8 bytes.*7 are there"),
        (built({"a": ENTRY}, bytes(9)), "longer than its head says"),
        (built({"a": ENTRY})[:12], "truncated file of safetensors"),
        (built(b'{"a": '), "head of safetensors that cannot be read"),
        (built({"a": {**ENTRY, "shape": [3]}}, bytes(8)), r"shape \(3,\) has 8 bytes"),
        (built({"a": {**ENTRY, "shape": [-2]}}, bytes(8)), "no whole numbers"),
        (built({"a": {**ENTRY, "dtype": "X"}}, bytes(8)), "dtype X"),
        (built({"a": ENTRY, "b": ENTRY}, bytes(8)), "'b' starts at 0, not at 8"),
        (built({"a": {**ENTRY, "data_offsets": [4, 12]}}, bytes(12)), "starts at 4, not at 0"),
        (built({"a": 3}, bytes(8)), "cannot be read"),
        (
            built({"a": {**ENTRY, "shape": [0, 2**62, 8], "data_offsets": [0, 0]}}),
            r"'a' of shape \[0, 4611686018427387904, 8\], which no array can have",
        ),
        (built({"a": {**ENTRY, "shape": [1] * 1000}}, bytes(8)), "has 1000 dimensions"),
        (built({"a": {**ENTRY, "shape": [2**63, 0]}}, bytes(8)), "a dimension that no array can"),
        (built(b'{"a": {}, "a": {}}'), "cannot be read .it has 'a' twice"),
    ],
)
def test_what_is_refused(file, said):
    with pytest.raises(UnreadableFileError, match=said):
        ol.load(io.BytesIO(file))


def test_an_altered_byte_of_our_files_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    ol.save({"w": np.arange(4.0), "b": np.ones(2, "f4")}, path)
    content = path.read_bytes()
    expected = repr(ol.load(path))
    silent = []
    for place in range(len(content)):
        for bit in (1, 128):
            altered = bytearray(content)
            altered[place] ^= bit
            try:
                back = repr(ol.load(io.BytesIO(altered)))
            except UnreadableFileError:
                continue
            if back != expected:
                silent.append(place)
    assert not silent
    with pytest.raises(UnreadableFileError, match="altered after it was saved"):
        ol.load(io.BytesIO(content[:-1] + b"\x01"))


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        ([1, 2], "holds a dict of names and Tensors"),
        ({"a": {"b": np.ones(1)}}, "this one has 'a': dict"),
        ({3: np.ones(1)}, "this one has 3: ndarray"),
        ({"__metadata__": np.ones(1)}, "keeps the name '__metadata__' for itself"),
        ({"a": np.array(["text"])}, "dtype <U4, which safetensors does not have"),
    ],
)
def test_what_the_format_cannot_hold(obj, said, tmp_path):
    with pytest.raises(TypeError, match=said):
        ol.save(obj, tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []
