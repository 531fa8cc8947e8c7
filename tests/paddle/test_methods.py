"""Methods of Tensors with Paddle's arguments: they work, or the error says what to write."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol

A = np.arange(24.0, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "std", "var", "all", "any"])
def test_axes_are_a_list(name):
    x = ol.to_tensor(A)
    for axes in ([0, 1], [2], [-1, 0]):
        found = getattr(x, name)(axis=axes, keepdim=True)
        assert np.array_equal(np.asarray(found), getattr(A, name)(axis=tuple(axes), keepdims=True))
        assert np.array_equal(np.asarray(getattr(x, name)(axes)), getattr(A, name)(tuple(axes)))


def test_the_gradient_passes_through_a_list_of_axes():
    x = ol.to_tensor(A, stop_gradient=False)
    (x.sum([0, 2]) ** 2).sum().backward()
    expected = np.broadcast_to(2 * A.sum((0, 2), keepdims=True), A.shape)
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_methods_with_paddle_s_names_and_arguments():
    x = ol.to_tensor(A)
    assert x.cast("int64").dtype == np.int64
    assert x.unsqueeze([0, -1]).shape == (1, 2, 3, 4, 1)
    assert x.transpose(perm=[2, 0, 1]).shape == (4, 2, 3)
    assert x.transpose([2, 0, 1]).shape == (4, 2, 3)
    assert x.unsqueeze(0).squeeze([0]).shape == (2, 3, 4)
    assert x.argmax(axis=1, keepdim=True).shape == (2, 1, 4)
    with pytest.raises(TypeError, match="give one"):
        x.transpose([2, 0, 1], perm=[2, 0, 1])


def test_methods_stay_numpy_s():
    x = ol.to_tensor(A)
    assert x.std().item() == pytest.approx(A.std())
    assert type(x.argmax(1)) is np.ndarray
    assert ol.to_tensor([1, 2]).mean().dtype == np.float64
    assert np.divide(ol.to_tensor([1, 2]), 2).dtype == np.float64


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("norm", lambda x: ol.norm(x)),
        ("matmul", lambda x: x @ x.mT),
        ("numel", lambda x: x.size),
        ("split", lambda x: ol.split(x, 3, 1)),
        ("topk", lambda x: ol.topk(x, 2)),
        ("expand", lambda x: ol.expand(x, [2, 2, 3, 4])),
        ("gather", lambda x: ol.gather(x, ol.to_tensor([0]))),
        ("add", lambda x: x + x),
        ("sin", lambda x: np.sin(x)),
        ("t", lambda x: x.T),
    ],
)
def test_other_methods_say_what_to_write(name, written):
    x = ol.to_tensor(A)
    with pytest.raises(AttributeError, match="; write "):
        getattr(x, name)
    written(x)


@pytest.mark.parametrize(
    ("divide", "values"),
    [(lambda i: i / 2, [0.5, 1.5]), (lambda i: 3 / i, [3.0, 1.0]), (lambda i: i / i, [1.0, 1.0]),
     (lambda i: i / 2.0, [0.5, 1.5]), (lambda i: i / np.int64(2), [0.5, 1.5]),
     (lambda i: i / np.float32(2), [0.5, 1.5]),
     (lambda i: i / np.bool_(True), [1.0, 3.0]), (lambda i: ol.to_tensor([3, 3]) / i, [3.0, 1.0]),
     (lambda i: i * 0.5, [0.5, 1.5]),
     (lambda i: 1.5 - i, [0.5, -1.5]),
     (lambda i: i / np.array([2, 2]), [0.5, 1.5]), (lambda i: i**0.5, [1.0, 3**0.5])],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integers_that_become_floating_are_float32(divide, values, dtype):
    found = divide(ol.to_tensor([1, 3], dtype=dtype))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.numpy(), values, rtol=1e-6)


def test_a_quotient_with_numpy_s_operand_at_the_left_is_numpy_s():
    # NumPy's operator calls np.divide, which gives float64 for integers, whoever calls it.
    i, a = ol.to_tensor([1, 3]), np.array([2, 2])
    for quotient in (a / i, np.int64(2) / i, np.divide(a, i), np.divide(i, 2)):
        assert quotient.dtype == np.float64
    np.testing.assert_array_equal((a / i).numpy(), a / np.array([1, 3]))
    assert (ol.to_tensor(a) / i).dtype == np.float32


def test_what_says_its_dtype_keeps_it():
    i, f = ol.to_tensor([1, 3]), ol.to_tensor([2.0, 2.0], dtype="float64")
    assert (i / f).dtype == np.float64
    assert (i * np.float64(0.5)).dtype == np.float64
    assert (i * 2).dtype == np.int64
    assert (i // 2).dtype == np.int64
    x = ol.to_tensor([1.0, 3.0], stop_gradient=False)
    ((i / 2) * x).sum().backward()
    assert x.grad.dtype == np.float32
    assert x.grad.tolist() == [0.5, 1.5]
