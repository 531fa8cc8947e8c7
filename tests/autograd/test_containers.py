"""Dicts, lists and tuples as arguments, values, tangents and cotangents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol


def test_a_pullback_takes_plain_numbers_where_the_value_holds_numbers() -> None:
    value, pullback = ol.vjp(lambda x: [x, x * x], 3.0)
    assert value == [3.0, 9.0]
    assert pullback([1.0, 10.0]) == (61.0,)


def test_a_pullback_takes_lists_where_the_value_holds_arrays() -> None:
    _, pullback = ol.vjp(lambda x: {"twice": 2 * x, "first": x[0]}, np.array([1.0, 2.0]))
    (found,) = pullback({"first": 10, "twice": [1.0, 0.0]})
    np.testing.assert_array_equal(found, [12.0, 0.0])


def test_tangents_are_matched_by_their_keys() -> None:
    point = {"a": 1.0, "b": (np.ones(2), 3.0)}
    tangent = {"b": ([2.0, 4.0], 5.0), "a": 100.0}
    _, found = ol.jvp(lambda p: p["a"] + p["b"][0] * p["b"][1], (point,), (tangent,))
    np.testing.assert_array_equal(found, [111.0, 117.0])


@pytest.mark.parametrize(
    ("u", "message"),
    [
        ([1.0], r"must hold 2 parts, like the value; got 1"),
        ((1.0, 1.0), r"a container like the value, a list; got tuple"),
        (1.0, r"a container like the value, a list; got float"),
    ],
)
def test_what_is_built_otherwise_than_the_value_is_refused(u: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ol.vjp(lambda x: [x, x * x], 3.0)[1](u)


def test_other_keys_are_refused() -> None:
    with pytest.raises(TypeError, match=r"the keys of the value, \['a'\]; got \['b'\]"):
        ol.vjp(lambda x: {"a": x}, 3.0)[1]({"b": 1.0})


def test_nested_lists_of_numbers_are_an_array_only_where_their_lengths_fit() -> None:
    def product(x: Any) -> Any:
        return np.sum(x[0]) * np.sum(x[1])

    square = ol.grad(product)([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(square, [[7.0, 7.0], [3.0, 3.0]])
    ragged = ol.grad(product)(([1.0, 2.0], [3.0, 4.0, 5.0]))
    assert type(ragged) is tuple
    np.testing.assert_array_equal(ragged[0], [12.0] * 2)
    np.testing.assert_array_equal(ragged[1], [3.0] * 3)
    mixed = ol.grad(product)([[1.0, 2.0], 3.0])
    np.testing.assert_array_equal(mixed[0], [3.0, 3.0])
    assert mixed[1] == 3.0


@pytest.mark.parametrize(
    "f", [lambda x: np.all(x > 0), lambda x: x > 0, lambda x: np.allclose(x, 2 * x / 2)]
)
def test_the_gradient_of_a_truth_value_is_refused(f: Any) -> None:
    with pytest.raises(TypeError, match=r"returned a truth value .* no derivative"):
        ol.grad(f)(2.0)


@pytest.mark.parametrize("x", [2.0, np.ones(1), ol.to_tensor([2.0])])
def test_arguments_of_jvp_that_are_no_tuple_are_refused(x: Any) -> None:
    """The rows of an array must not be taken for arguments."""
    message = r"ol\.jvp\(f, \(x,\), \(v,\)\); got (float|ndarray|Tensor)"
    with pytest.raises(TypeError, match=message):
        ol.jvp(lambda x: x * x, x, (1.0,))
    with pytest.raises(TypeError, match=message):
        ol.jvp(lambda x: x * x, (1.0,), x)
