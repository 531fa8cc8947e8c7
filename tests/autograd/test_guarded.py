"""The engine on guarded arrays: none becomes, or mixes with, a NumPy array by accident."""

from __future__ import annotations

import dis
import re
from functools import partial
from types import CellType, FunctionType
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tensor.tensor import Tensor
from tests.autograd.rows import ROWS, Case
from tests.guarded import GuardedArray, MixedArraysError

CASES = [case for row in ROWS.values() for case in row]


def guarded_leaf(x: np.ndarray) -> Tensor:
    array = GuardedArray(x.copy())
    return Tensor(array, Leaf(array.shape, array.dtype))


def gradients(f: Any, leaves: list[Tensor]) -> list[Any]:
    """Return the value, its gradients, and the gradients of a scalar function of those."""
    value = f(*leaves)
    value.backward(create_graph=True)
    first = [t.grad for t in leaves]
    again = [np.sum(g * g) for g in first if g is not None and g.requires_grad]
    for t in leaves:
        t.grad = None
    if again:
        sum(again[1:], again[0]).backward()
    return [value, *first, *[t.grad for t in leaves]]


class DeviceModule:
    """NumPy, but the arrays that it creates are guarded: the counterpart of the module ``cupy``."""

    MAKING = ("arange", "array", "diag", "eye", "full", "linspace", "ones", "zeros")

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if name not in self.MAKING:
            return function
        return lambda *args, **kwargs: on_device(function(*args, **kwargs))


DEVICE = DeviceModule()


def on_device(x: Any) -> Any:
    """Return an object with the arrays that it contains guarded."""
    if isinstance(x, np.ndarray):
        return GuardedArray(x) if x.dtype.kind in "fbiu" else x
    if type(x) in (tuple, list, set):
        return type(x)(map(on_device, x))
    if type(x) is dict:
        return {name: on_device(value) for name, value in x.items()}
    if isinstance(x, partial):
        held = {name: on_device(value) for name, value in x.keywords.items()}
        return partial(on_device(x.func), *map(on_device, x.args), **held)
    if x is np:
        return DEVICE
    return on_device_function(x) if isinstance(x, FunctionType) else x


def on_device_function(f: Any) -> Any:
    """Return a case's function with the constant arrays that it refers to on the device too."""
    if isinstance(f, partial):
        return on_device(f)
    if not isinstance(f, FunctionType) or not f.__module__.startswith("tests."):
        return f
    names = {i.argval for i in dis.get_instructions(f) if i.opname == "LOAD_GLOBAL"}
    held = {name: on_device(f.__globals__[name]) for name in names & f.__globals__.keys()}
    cells = tuple(CellType(on_device(cell.cell_contents)) for cell in f.__closure__ or ())
    defaults = on_device(f.__defaults__ or ())
    rebuilt = FunctionType(f.__code__, {**f.__globals__, **held}, f.__name__, defaults, cells)
    rebuilt.__kwdefaults__ = on_device(f.__kwdefaults__)
    return rebuilt


#: Functions that CuPy lacks, and so a Tensor on a device too: patterns of labels, and reasons.
NOT_ON_DEVICES: dict[str, str] = {
    r"^(vecdot|matvec|vecmat|spacing|geomspace|nanquantile|nanpercentile) ": "no such function",
    r"^(hypot|logaddexp|logaddexp2|fmax|fmin)_reduce ": "ufuncs other than add, multiply reduce",
    r"^(maximum|minimum|logaddexp)_accumulate ": "ufuncs other than add, multiply accumulate",
    r"^(sum|mean|max|min|prod|var|std|amax|amin|nan\w+) (where (?!broadcast along 0)|initial)": (
        "no where=, initial="
    ),
    r"^(max|min) where broadcast along 0$": "no where=",
    r"^sum add.reduce$": "no where=",
    r"^(variance|deviation)_about ": "no mean=",
    r"^(pinv|svd) (rtol|hermitian)": "no rtol=, hermitian=",
    r"^cholesky upper$": "no upper=",
    r"^where 0-d condition$": "the condition is an array",
    r"^(einsum a list|concatenate beside a list|atleast_2d beside a list)": "a list among arrays",
    r"^(append a number|bincount |choose beside numbers|choose of one)": "a list among arrays",
    r"^(logspace base$|cov .*'fweights': \[1, 2)": "a list among arrays",
}


def reason_of(case: Case) -> str:
    """Return the reason why a case cannot run on a device, "" if it can."""
    return "; ".join(why for label, why in NOT_ON_DEVICES.items() if re.search(label, case.label))


@pytest.mark.parametrize(
    "case", [case for case in CASES if reason_of(case)], ids=lambda case: case.label
)
def test_what_a_device_lacks_is_refused(case: Case) -> None:
    function, leaves = on_device_function(case.f), [guarded_leaf(x) for x in case.args]
    with pytest.raises((TypeError, NotImplementedError)):
        gradients(function, leaves)


@pytest.mark.parametrize("label", NOT_ON_DEVICES)
def test_every_exception_is_one(label: str) -> None:
    assert any(re.search(label, case.label) for case in CASES)


@pytest.mark.parametrize(
    "case", [case for case in CASES if not reason_of(case)], ids=lambda case: case.label
)
def test_values_and_derivatives_stay_on_their_device(case: Case) -> None:
    plain = gradients(case.f, [ol.to_tensor(x, requires_grad=True) for x in case.args])
    moved = gradients(on_device_function(case.f), [guarded_leaf(x) for x in case.args])
    for ours, theirs in zip(moved, plain, strict=True):
        if theirs is None:
            assert ours is None
            continue
        assert isinstance(ours.data, GuardedArray)
        np.testing.assert_allclose(
            ours.data.get(), theirs.numpy(), rtol=1e-12, atol=1e-12, equal_nan=True
        )


def test_the_guard_itself() -> None:
    g = GuardedArray(np.ones(2))
    for mixed in (
        lambda: g + np.ones(2),
        lambda: np.ones(2) + g,
        lambda: np.add(g, np.ones(2)),
        lambda: np.concatenate([g, np.ones(2)]),
        lambda: np.asarray(g),
        lambda: np.where(np.array([True, False]), g, g),
        lambda: g.__setitem__(0, np.array(1.0)),
    ):
        with pytest.raises(MixedArraysError):
            mixed()
    assert (g * 2.0 + np.float64(1)).tolist() == [3.0, 3.0]
    assert isinstance(np.sum(g), GuardedArray)
