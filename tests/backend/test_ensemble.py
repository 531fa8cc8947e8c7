"""Ensemble arrays: indices that differ between members, in-place writes, refusals."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

from optlab.backend.ensemble import EnsembleArray, EnsembleError, covered
from tests.backend.test_ensemble_functions import PLAIN, C, J, K, P, S, V, equal, rng, separately

# Indices ------------------------------------------------------------------------------------------

M = np.array([True, False, True])
READS: dict[str, Any] = {
    "one": 1,
    "from the end": -1,
    "slice": slice(1, None),
    "backwards": slice(None, None, -1),
    "several": (0, slice(None), 2),
    "dots": (Ellipsis, 0),
    "dots in the middle": (1, Ellipsis, 0),
    "new axis": (None, Ellipsis, None),
    "list": [1, 0, 1],
    "array": np.array([[0, 1], [1, 1]]),
    "nothing": [],
    "everything": (),
    "0-d array": np.array(1),
    "array last": (Ellipsis, [3, 0, 0]),
    "two arrays": (slice(None), [0, 2], [1, 3]),
    "arrays apart": ([0, 1], slice(None), [1, 3]),
    "a number and an array apart": (0, slice(None), [1, 3, 1]),
    "mask": (slice(None), M),
    "True": True,
    "False among others": (0, np.array(False), Ellipsis, 1),
    "True after dots": (..., True, [1, 0]),
    "a new axis between": ([0, 1], None, [1, 2]),
    "mask apart": (Ellipsis, M, [3, 1]),
    "arrays that broadcast": (np.array([[0], [1]]), np.array([0, 1, 2])),
}


@pytest.mark.parametrize("name", READS)
def test_reading_with_an_index_for_all(name: str) -> None:
    equal(EnsembleArray(C)[READS[name]], separately(lambda c: c[READS[name]], C), exactly=True)


@pytest.mark.parametrize("name", READS)
def test_writing_with_an_index_for_all(name: str) -> None:
    index = READS[name]
    value = rng.uniform(-1, 1, (K, *np.zeros(C.shape[1:])[index].shape))
    for given in (value, value[:, :1] if value.ndim > 1 and value.shape[1] else value, 7.0):

        def write(c: Any, v: Any, given: Any = given) -> Any:
            c = c.copy()
            c[index] = v if np.ndim(given) else given
            return c

        stacked = (C, given if np.ndim(given) else S)
        equal(write(*map(EnsembleArray, stacked)), separately(write, *stacked), exactly=True)


OWN: dict[str, Any] = {
    "rows": lambda c, i, j: c[:, i],
    "one": lambda c, i, j: c[0, j],
    "last": lambda c, i, j: c[..., i],
    "two": lambda c, i, j: c[:, i, j],
    "apart": lambda c, i, j: c[j % 2, :, i],
    "with a plain one": lambda c, i, j: c[:, i, [3, 0, 3]],
    "with a mask": lambda c, i, j: c[:, M, i[1:]],
    "with a new axis": lambda c, i, j: c[:, None, i],
    "a matrix": lambda c, i, j: c[:, np.stack([i, i])],
    "a plain array": lambda c, i, j: np.take_along_axis(PLAIN, i[None], 0) + c[0, 0, 0],
    "a number apart": lambda c, i, j: c[j % 2, :, j],
}


@pytest.mark.parametrize("name", OWN)
def test_reading_with_an_index_of_each(name: str) -> None:
    f = OWN[name]
    equal(f(*map(EnsembleArray, (C, P, J))), separately(f, C, P, J), exactly=True)


@pytest.mark.parametrize("name", [name for name in OWN if name != "a plain array"])
def test_writing_and_adding_with_an_index_of_each(name: str) -> None:
    class Writer:
        """An object that returns its index: ``OWN`` reads, and this writes at the same place."""

        def __getitem__(self, index: Any) -> Any:
            return index

    part = separately(OWN[name], C, P, J)[0]
    values = rng.uniform(-1, 1, (K, *part.shape))

    def write(c: Any, i: Any, j: Any, v: Any) -> Any:
        c = c.copy()
        c[OWN[name](Writer(), i, j)] = v
        return c

    def add(c: Any, i: Any, j: Any, v: Any) -> Any:
        c = c.copy()
        np.add.at(c, OWN[name](Writer(), i, j), v)
        return c

    # Duplicate indices could leave either value, so no index of this test repeats itself.
    i = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    for f, stacked in ((write, (C, i, J, values)), (add, (C, P, J, values))):
        equal(f(*map(EnsembleArray, stacked)), separately(f, *stacked), exactly=False)


def test_writing_through_a_mask_of_each() -> None:
    def f(v: Any, s: Any) -> Any:
        v = v.copy()
        v[v > 0] = s
        v[v < -0.5] = 0
        return v

    equal(f(EnsembleArray(V), EnsembleArray(S)), separately(f, V, S), exactly=True)


def test_in_place_arithmetic_writes_to_the_members() -> None:
    members = V.copy()
    x = EnsembleArray(members)
    x += EnsembleArray(S)
    x *= 2
    np.multiply(x, x, out=x)
    np.copyto(x, 0, where=x > 3)
    x.sort()
    wanted = ((V + S[:, None]) * 2) ** 2
    np.testing.assert_array_equal(members, np.sort(np.where(wanted > 3, 0, wanted)))


def test_a_matrix_product_in_place() -> None:
    x = EnsembleArray(C.copy())
    x @= np.eye(4)[::-1]
    np.testing.assert_array_equal(x.members, C[..., ::-1])


def test_put_along_axis() -> None:
    x = EnsembleArray(V.copy())
    np.put_along_axis(x, np.argmax(x, keepdims=True), 0.0, 0)
    np.testing.assert_array_equal(x.members, np.where(V.max(1, keepdims=True) == V, 0, V))


# Properties and refusals --------------------------------------------------------------------------


def test_it_looks_like_one_member() -> None:
    x = EnsembleArray(C.astype("float32"))
    assert (x.shape, x.ndim, x.size, len(x), x.dtype) == ((2, 3, 4), 3, 24, 2, np.float32)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3, 4), 3, 24, 3)
    assert (x.member_count, x.nbytes, x.itemsize) == (3, 3 * 24 * 4, 4)
    assert np.result_type(x, np.float64) == np.float64
    assert not np.iscomplexobj(x)
    assert "3 members of shape ()" in repr(EnsembleArray(S))
    assert "3 members of shape ()" in np.array2string(EnsembleArray(S))


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_it_can_be_copied_and_pickled(again: Any) -> None:
    x = again(EnsembleArray(V, level=2))
    np.testing.assert_array_equal(x.members, V)
    assert x.level == 2


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (bool, "np.where"),
        (float, "float"),
        (int, "int"),
        (complex, "complex"),
        (lambda x: x.item(), r"\.members\[k\]"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: [1, 2][x], "one index a member"),
        (lambda x: max(x, 0), "np.where"),
        (np.asarray, r"\.members"),
        (lambda x: PLAIN[x], "take"),
        (lambda x: np.array([x, x]), "stack"),
    ],
)
def test_one_answer_for_all_is_refused(call: Any, named: str) -> None:
    with pytest.raises(EnsembleError, match=named):
        call(EnsembleArray(J))


def _write_into_plain() -> None:
    plain = np.zeros((K, K))
    plain += EnsembleArray(V)


REFUSED: dict[str, tuple[Any, str]] = {
    "nonzero": (lambda x: np.nonzero(x), "np.nonzero.*np.where"),
    "unique": (lambda x: np.unique(x), "np.unique"),
    "allclose": (lambda x: np.allclose(x, x), "np.allclose.*isclose"),
    "array_equal": (lambda x: np.array_equal(x, x), "np.array_equal"),
    "where alone": (lambda x: np.where(x > 0), "np.where"),
    "mask": (lambda x: x[x > 0], "np.where"),
    "a condition as an index": (lambda x: x[x[0] > 0], "np.where"),
    "values through a mask": (lambda x: x.__setitem__(x > 0, np.ones(2)), "np.where"),
    "piecewise": (lambda x: np.piecewise(x, [x > 0], [np.sin]), "np.where"),
    "no rule": (lambda x: np.histogram_bin_edges(x), "np.histogram_bin_edges.*member by member"),
    "bincount": (lambda x: np.bincount(np.argsort(x)[:1]), "np.bincount.*minlength"),
    "out of a sum": (lambda x: np.sum(x, out=np.zeros(())), "np.sum with out="),
    "out, shared": (lambda x: np.add(x, 1, out=np.zeros(3)), r"a = a \+ b"),
    "at, shared": (lambda x: np.add.at(np.zeros(3), [0, 1, 2], x), "all members share"),
    "+= on a shared array": (lambda x: _write_into_plain(), r"a = a \+ b"),
    "copyto, shared": (lambda x: np.copyto(np.zeros(3), x), "all members share"),
    "a shift of each": (lambda x: np.roll(x, EnsembleArray(J)), "np.roll"),
    "a q of each": (lambda x: np.quantile(x, EnsembleArray(abs(S))), "np.quantile"),
    "fill_diagonal": (lambda x: np.fill_diagonal(x, 0), "np.fill_diagonal"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_rule_is_refused_by_name(name: str) -> None:
    call, named = REFUSED[name]
    with pytest.raises(EnsembleError, match=named):
        call(EnsembleArray(V))


def test_ensembles_of_different_sizes_do_not_meet() -> None:
    with pytest.raises(ValueError, match="2 and 3 members"):
        EnsembleArray(np.ones(2)) + EnsembleArray(np.ones(3))
    with pytest.raises(ValueError, match="one member or more"):
        EnsembleArray(np.ones(()))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sum(x, axis=1),
        lambda x: x[:, 0],
        lambda x: x[5],
        lambda x: x @ np.ones(4),
        lambda x: x + np.ones(4),
        lambda x: np.reshape(x, (2, 2)),
        lambda x: np.transpose(x, (0, 1)),
        lambda x: np.concatenate([x, np.ones((2, 2))]),
        lambda x: np.expand_dims(x, 3),
    ],
)
def test_what_one_member_cannot_the_ensemble_cannot(call: Any) -> None:
    """The member axis must not be reachable by any axis of a call."""
    with pytest.raises((ValueError, IndexError)):
        call(V[0])
    with pytest.raises((ValueError, IndexError)):
        call(EnsembleArray(V))


def test_every_elementwise_function_of_numpy_is_covered() -> None:
    ufuncs = [f for f in vars(np).values() if isinstance(f, np.ufunc)]
    assert len(ufuncs) > 80
    assert not [f.__name__ for f in ufuncs if not covered(f)]
    assert not covered(np.unique)
    assert not covered(operator.add)
