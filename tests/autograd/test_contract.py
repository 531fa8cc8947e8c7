"""The array contract: where NumPy's dispatch ends, no gradient is lost silently."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from typing import Any

import numpy as np
import pytest

import optlab as ol


def taped(*values: float, dtype: str = "float64") -> ol.Tensor:
    """Return a vector that needs a gradient; a scalar for one value."""
    data = values[0] if len(values) == 1 else list(values)
    return ol.to_tensor(data, dtype=dtype, requires_grad=True)


# Bullet 1. Nothing detaches silently ------------------------------------------------------------


def _assign(index: Any) -> Any:
    def write(t: Any) -> Any:
        array = np.zeros(3)
        array[index] = t
        return array

    return write


def _filled(t: Any) -> Any:
    array = np.zeros(3)
    array.fill(t)
    return array


def _copied(t: Any) -> Any:
    array = np.zeros(3)
    np.copyto(array, t)
    return array


def _put(t: Any) -> Any:
    array = np.zeros(3)
    np.put(array, [0, 1, 2], t)
    return array


LEAKS_OF_A_NUMBER = {
    "np.array([t])": (lambda t: np.array([t]), [2.0]),
    "np.array([t, 1.0])": (lambda t: np.array([t, 1.0]), [2.0, 1.0]),
    "np.array([[t, 1.0], [0.0, t]])": (
        lambda t: np.array([[t, 1.0], [0.0, t]]),
        [[2.0, 1.0], [0.0, 2.0]],
    ),
    "np.array(t)": (lambda t: np.array(t), 2.0),
    "np.asarray(t)": (lambda t: np.asarray(t), 2.0),
    "np.asanyarray(t)": (lambda t: np.asanyarray(t), 2.0),
    "np.asarray([t, t])": (lambda t: np.asarray([t, t]), [2.0, 2.0]),
    "np.float64(t)": (lambda t: np.float64(t), 2.0),
    "np.full(3, t)": (lambda t: np.full(3, t), [2.0] * 3),
    "np.full(3, t, dtype)": (lambda t: np.full(3, t, dtype="float64"), [2.0] * 3),
    "np.full_like(a, t)": (lambda t: np.full_like(np.zeros(3), t), [2.0] * 3),
    "arr[:] = t": (_assign(slice(None)), [2.0] * 3),
    "arr[0] = t": (_assign(0), [2.0, 0.0, 0.0]),
    "arr[mask] = t": (_assign([True, False, True]), [2.0, 0.0, 2.0]),
    "arr.fill(t)": (_filled, [2.0] * 3),
    "np.copyto(arr, t)": (_copied, [2.0] * 3),
    "np.put(arr, i, t)": (_put, [2.0] * 3),
    "arr.dot(t)": (lambda t: np.arange(3.0).dot(t), [0.0, 2.0, 4.0]),
    "np.sum([t, t])": (lambda t: np.sum([t, t]), 4.0),
    "np.max([t, 1])": (lambda t: np.max([t, 1.0]), 2.0),
    "np.concatenate([[t], [t]])": (lambda t: np.concatenate([[t], [t]]), [2.0, 2.0]),
    "float(t)": (float, 2.0),
    "int(t)": (int, 2),
    "complex(t)": (complex, 2 + 0j),
    "bool(t)": (bool, True),
    "if t": (lambda t: 1 if t else 0, 1),
    "not t": (lambda t: not t, False),
    "math.exp(t)": (math.exp, math.exp(2.0)),
    "math.fsum([t])": (lambda t: math.fsum([t]), 2.0),
}  # fmt: skip

LEAKS_OF_A_VECTOR = {
    "arr.dot(t)": (lambda t: np.eye(3).dot(t), [1.0, 0.0, 2.0]),
    "arr[:] = t": (_assign(slice(None)), [1.0, 0.0, 2.0]),
    "np.copyto(arr, t)": (_copied, [1.0, 0.0, 2.0]),
    "np.array([t])": (lambda t: np.array([t]), [[1.0, 0.0, 2.0]]),
    "np.asarray(t, float32)": (lambda t: np.asarray(t, "float32"), [1.0, 0.0, 2.0]),
    "np.asarray([t, arr])": (lambda t: np.asarray([t, np.ones(3)]), [[1, 0, 2], [1, 1, 1]]),
    "np.sum([t, t])": (lambda t: np.sum([t, t]), 6.0),
    "np.full((2, 3), t)": (lambda t: np.full((2, 3), t), [[1.0, 0.0, 2.0]] * 2),
    "np.fromiter(t)": (lambda t: np.fromiter(t, float), [1.0, 0.0, 2.0]),
    "sum(map(float, t))": (lambda t: sum(map(float, t)), 3.0),
    "sorted(t)": (lambda t: [float(x) for x in sorted(t)], [0.0, 1.0, 2.0]),
}  # fmt: skip

#: Every refusal names one of these as the replacement.
WAY_OUT = r"\.detach\(\)|\.numpy\(\)|\.item\(\)|optlab\.numpy|np\.where"


def assert_refused_with_a_way_out(call: Any, *args: Any) -> None:
    """Assert that the traceback names a replacement; NumPy may chain its own error on top."""
    with pytest.raises((TypeError, ValueError)) as refused:
        call(*args)
    error: BaseException | None = refused.value
    said = []
    while error is not None:
        said.append(str(error) if isinstance(error, TypeError) else "")
        error = error.__cause__
    assert any(re.search(WAY_OUT, line) for line in said), said


@pytest.mark.parametrize("name", LEAKS_OF_A_NUMBER)
def test_a_number_that_needs_a_gradient_does_not_detach_silently(name: str) -> None:
    assert_refused_with_a_way_out(LEAKS_OF_A_NUMBER[name][0], taped(2.0))


@pytest.mark.parametrize("name", LEAKS_OF_A_NUMBER)
def test_a_number_that_needs_no_gradient_converts(name: str) -> None:
    call, wanted = LEAKS_OF_A_NUMBER[name]
    np.testing.assert_array_equal(call(taped(2.0).detach()), wanted)


@pytest.mark.parametrize("name", [n for n in LEAKS_OF_A_VECTOR if n != "sorted(t)"])
def test_a_vector_that_needs_a_gradient_does_not_detach_silently(name: str) -> None:
    assert_refused_with_a_way_out(LEAKS_OF_A_VECTOR[name][0], taped(1.0, 0.0, 2.0))


@pytest.mark.parametrize("name", LEAKS_OF_A_VECTOR)
def test_a_vector_that_needs_no_gradient_converts(name: str) -> None:
    call, wanted = LEAKS_OF_A_VECTOR[name]
    np.testing.assert_array_equal(call(taped(1.0, 0.0, 2.0).detach()), wanted)


def test_an_array_made_from_a_tensor_has_the_dtype_and_copy_that_were_asked_for() -> None:
    t = ol.to_tensor([1.5, 2.5])
    assert np.asarray(t, "float64").dtype == np.float64
    copy = np.array(t)
    copy[0] = 9.0
    assert t.tolist() == [1.5, 2.5]
    assert not np.asarray(t).flags.writeable


@pytest.mark.parametrize("read", [lambda t: [5, 6, 7][t], lambda t: np.arange(3)[t], range])
def test_a_tensor_as_an_index(read: Any) -> None:
    assert read(ol.to_tensor(2)) == read(2)
    with pytest.raises(TypeError, match=WAY_OUT):
        read(taped(2.0))


def test_operator_index_takes_whole_numbers_only() -> None:
    assert operator.index(ol.to_tensor(2)) == 2
    with pytest.raises(TypeError):
        operator.index(ol.to_tensor(2.0))


def test_indexing_with_a_tensor_of_whole_numbers_or_a_mask() -> None:
    t = taped(1.0, 2.0, 3.0)
    picked = t[ol.to_tensor([2, 0, 2])]
    assert picked.tolist() == [3.0, 1.0, 3.0]
    assert t[ol.to_tensor([True, False, True])].tolist() == [1.0, 3.0]
    assert ol.to_tensor(np.eye(3))[ol.to_tensor(1), ol.to_tensor([1, 2])].tolist() == [1.0, 0.0]
    picked.backward()
    assert t.grad is not None
    assert t.grad.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("compare", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_give_plain_arrays(compare: str) -> None:
    function = getattr(operator, compare)
    t, other = taped(1.0, 2.0, 3.0), np.array([3.0, 2.0, 1.0])
    wanted = function(t.numpy(), other)
    for found in (function(t, other), function(t, ol.to_tensor(other)), function(t, taped(*other))):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(function(other, t), function(other, t.numpy()))
    assert bool(function(t[0], 2.0)) is bool(function(1.0, 2.0))


def test_casting_to_whole_numbers_does_not_give_a_wrong_gradient() -> None:
    """Rounding is flat: the gradient is 0, or the cast is refused; never a rounded gradient."""
    t = taped(1.3, 2.6)

    def through_whole_numbers() -> None:
        (t * 0.0 + t.astype("int64") * 2.5).backward()

    with contextlib.suppress(TypeError):  # a refusal is as good
        through_whole_numbers()
    assert t.grad is None or t.grad.tolist() == [0.0, 0.0]


def test_out_of_the_tape_by_name() -> None:
    t = taped(1.0, 2.0)
    assert not (t * 2).detach().requires_grad
    assert type((t * 2).numpy()) is np.ndarray
    assert t[0].item() == 1.0
    assert type(t[0].item()) is float
    assert t.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        (t * 2).numpy()[0] = 5.0
    t.numpy()[0] = 5.0  # a copy: an optimizer may write to the Tensor itself later
    assert t.tolist() == [1.0, 2.0]


# Bullet 2. out= ---------------------------------------------------------------------------------


def _in_place(name: str) -> Any:
    return lambda array, t: getattr(operator, name)(array, t)


WRITES = {
    **{f"arr {sign}= t": _in_place(name) for sign, name in {
        "+": "iadd", "-": "isub", "*": "imul", "/": "itruediv", "**": "ipow", "%": "imod",
        "//": "ifloordiv"}.items()},
    "np.add(out=)": lambda array, t: np.add(t, t, out=array),
    "np.add(out=) by position": lambda array, t: np.add(t, t, array),
    "np.exp(out=)": lambda array, t: np.exp(t, out=array),
    "np.sum(out=)": lambda array, t: np.sum(t, keepdims=True, out=array),
    "np.matmul(out=)": lambda array, t: np.matmul(np.eye(3), t, out=array),
    "np.concatenate(out=)": lambda array, t: np.concatenate([t], out=array),
    "np.clip(out=)": lambda array, t: np.clip(t, 0.0, 1.0, out=array),
    "np.add.at": lambda array, t: np.add.at(array, [0, 1, 2], t),
    "np.subtract.at": lambda array, t: np.subtract.at(array, [0, 1, 2], t),
    "np.copyto": lambda array, t: np.copyto(array, t),
    "np.put": lambda array, t: np.put(array, [0, 1, 2], t),
    "np.place": lambda array, t: np.place(array, [True] * 3, t),
    "np.putmask": lambda array, t: np.putmask(array, [True] * 3, t),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_writing_a_tensor_into_an_array_is_refused_and_the_array_unchanged(name: str) -> None:
    array = np.array([5.0, 6.0, 7.0])
    with pytest.raises(TypeError, match=r"np\.\w+"):
        WRITES[name](array, taped(1.0, 2.0, 3.0))
    assert array.tolist() == [5.0, 6.0, 7.0]


def test_numpy_functions_that_write_into_a_tensor_are_recorded() -> None:
    leaf, plain = taped(1.0, 2.0), ol.to_tensor([1.0, 2.0])
    for write in (lambda t: np.copyto(t, np.ones(2)), lambda t: np.put(t, [1], 1.0)):
        with pytest.raises(TypeError, match="collects a gradient"):
            write(leaf)
        write(plain)
        assert plain.tolist() == [1.0, 1.0]
    assert leaf.tolist() == [1.0, 2.0]
    np.put(plain, [0], leaf[1] * 3.0)
    np.sum(plain).backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [0.0, 3.0]


def test_what_the_refusal_of_at_points_to_works() -> None:
    """A message that names a function must name one that accepts Tensors."""
    t = taped(1.0, 2.0)
    with pytest.raises(TypeError) as refused:
        np.add.at(np.zeros(3), [0, 2], t)
    if "indexing.scatter" in str(refused.value):
        from optlab.autograd.rules.manipulation.indexing import scatter

        for index in ([0, 2], slice(0, 2)):
            placed = scatter(t, index, (3,))
            assert isinstance(placed, ol.Tensor)
            assert placed.requires_grad


# Powers are products ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_whole_powers_are_products_to_the_bit(dtype: str) -> None:
    x = np.random.default_rng(0).uniform(-2, 2, 10_000).astype(dtype)
    t = ol.to_tensor(x)
    products = {
        1: x, 2: x * x, 3: x * x * x, 4: (x * x) * (x * x), -1: 1 / x, -2: 1 / (x * x),
        -3: 1 / (x * x * x),
    }  # fmt: skip
    for exponent, wanted in products.items():
        for found in (t**exponent, np.power(t, exponent), t ** float(exponent)):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(np.square(t).numpy(), x * x)


def test_a_half_power_is_a_root() -> None:
    x = np.random.default_rng(0).uniform(0, 2, 1000)
    np.testing.assert_array_equal((ol.to_tensor(x) ** 0.5).numpy(), np.sqrt(x))


@pytest.mark.parametrize("exponent", [2, 3, 5, -1, -2, 64])
def test_no_small_whole_power_calls_the_slow_function(exponent: int) -> None:
    t = taped(1.5, 0.5)
    y = t**exponent
    assert y.node.operation.name != "power"
    np.testing.assert_allclose(y.numpy(), t.numpy() ** exponent, rtol=1e-13)
    assert np.power(t, exponent).node.operation.name == y.node.operation.name


def test_powers_of_whole_numbers_are_those_of_numpy() -> None:
    whole = np.array([1, 2, 3])
    for exponent in (0, 1, 2, 3):
        found = ol.to_tensor(whole) ** exponent
        assert found.dtype == (whole**exponent).dtype
        np.testing.assert_array_equal(found.numpy(), whole**exponent)
    with pytest.raises(ValueError, match="negative integer powers"):
        ol.to_tensor(whole) ** -1
