"""Linear, ReLU and Tanh: shapes, dtypes, and error messages."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import optlab as ol

F = ol.nn.functional


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def test_weight_is_of_shape_in_out():
    layer = ol.nn.Linear(4, 2)
    assert layer.weight.shape == (4, 2)
    assert layer.bias.shape == (2,)
    assert layer.weight.dtype == layer.bias.dtype == np.float32


@pytest.mark.parametrize("shape", [(4,), (3, 4), (5, 3, 4), (1, 4), (0, 4), (2, 1, 3, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_x_times_w_plus_b(shape, bias):
    ol.seed(1)
    layer = ol.nn.Linear(
        4, 2, bias_attr=bias, bias_initializer=ol.nn.initializer.Assign([1.0, -2.0])
    )
    x = numbers(*shape)
    expected = np.einsum("...i,io->...o", x, layer.weight.numpy())
    if bias:
        expected = expected + np.array([1.0, -2.0], np.float32)
    y = layer(ol.to_tensor(x))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (5, 3, 4)])
def test_gradients_of_linear(shape):
    layer = ol.nn.Linear(4, 2, dtype="float64")
    x, g = numbers(*shape, dtype="float64"), numbers(*shape[:-1], 2, dtype="float64")
    entered = ol.to_tensor(x, requires_grad=True)
    layer(entered).backward(g)
    rows, grads = x.reshape(-1, 4), g.reshape(-1, 2)
    np.testing.assert_allclose(layer.weight.grad.numpy(), rows.T @ grads, rtol=1e-12)
    np.testing.assert_allclose(layer.bias.grad.numpy(), grads.sum(0), rtol=1e-12)
    np.testing.assert_allclose(entered.grad.numpy(), g @ layer.weight.numpy().T, rtol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_stacks_of_rows_to_second_order_and_one_by_one(bias):
    x, w, b = (numbers(*s, dtype="float64") for s in ((2, 3, 4), (4, 5), (5,)))
    given = (x, w, b) if bias else (x, w)
    ol.check_grad(lambda *t: F.linear(*t) ** 2, *given, order=2)
    many = numbers(6, 2, 3, 4, dtype="float64")
    alone = [F.linear(one, *given[1:]).numpy() for one in many]
    together = ol.vmap(lambda one: F.linear(one, *map(ol.to_tensor, given[1:])))(many)
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    weights = np.stack([w, 2 * w])
    together = ol.vmap(lambda weight: F.linear(x, weight, *given[2:]))(weights)
    expected = [x @ weight + (b if bias else 0) for weight in weights]
    np.testing.assert_allclose(together, expected, rtol=1e-12)


def test_no_bias():
    layer = ol.nn.Linear(4, 2, bias_attr=False)
    assert layer.bias is None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


@pytest.mark.parametrize(
    "shape", [(3,), (2, 3), (4, 5), (0,), ()], ids=lambda shape: str(list(shape))
)
def test_a_shape_that_does_not_fit_is_named_with_the_way_out(shape):
    layer = ol.nn.Linear(4, 2)
    with pytest.raises(ValueError, match="the last axis of x must be 4 long") as caught:
        layer(ol.zeros(list(shape)))
    message = str(caught.value)
    assert str(shape) in message
    assert "(4, 2)" in message
    if shape and shape[-1]:
        assert f"Linear({shape[-1]}, 2)" in message


@pytest.mark.parametrize(("sizes", "named"), [((0, 2), "in_features"), ((3, -1), "out_features")])
def test_sizes_are_at_least_one(sizes, named):
    with pytest.raises(ValueError, match=f"{named} must be a whole number of at least 1"):
        ol.nn.Linear(*sizes)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integer_data_is_taken_without_a_note(dtype):
    layer = ol.nn.Linear(3, 2)
    x = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = layer(x)
    assert y.dtype == np.float32
    np.testing.assert_allclose(
        y.detach().numpy(), x.astype("float32") @ layer.weight.numpy(), rtol=1e-6
    )


def fresh(code: str) -> str:
    """Run code in a fresh process, without earlier notes; return its output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


NOTED = """
import warnings
import numpy as np
import optlab as ol

warnings.simplefilter("always")
layer = ol.nn.Linear(3, 2)
x = np.ones((2, 3))
with warnings.catch_warnings(record=True) as notes:
    first, second = layer({given}), layer({given})
    ol.nn.Linear(3, 2)({given})
print(len(notes), first.dtype, second.dtype)
for note in notes:
    print(note.filename)
    print(note.message)
"""


@pytest.mark.parametrize("given", ["x", "ol.to_tensor(x)"])
def test_float64_data_is_cast_with_a_note_once(given):
    head, _, message = fresh(NOTED.format(given=given)).strip().split("\n", 2)
    assert head == "1 float32 float32"
    assert "float64 data meets float32 weights" in message
    assert ".astype('float32')" in message


@pytest.mark.parametrize("call", ["layer", "lambda x: F.linear(x, layer.weight)", "model"])
def test_the_note_points_at_the_line_of_the_user(call):
    code = f"""
import warnings
import numpy as np
import optlab as ol

F = ol.nn.functional
layer = ol.nn.Linear(3, 2)
model = ol.nn.Sequential(layer)
call = {call}
with warnings.catch_warnings(record=True) as notes:
    warnings.simplefilter("always")
    call(np.ones((2, 3)))
print(notes[0].filename)
"""
    assert fresh(code).strip() == "<string>"


def test_the_gradient_of_float64_data_comes_back_in_float64():
    layer = ol.nn.Linear(2, 1)
    x = ol.to_tensor(np.ones((3, 2)), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer(x).sum().backward()
    assert x.grad.dtype == np.float64
    assert layer.weight.grad.dtype == np.float32


def test_layers_can_be_float64():
    layer = ol.nn.Linear(2, 1, dtype="float64")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert layer(np.ones((3, 2))).dtype == np.float64


def test_relu_and_tanh():
    x = np.array([[-2.0, -0.0, 0.5], [3.0, 0.0, -1.0]], np.float32)
    assert ol.nn.ReLU()(ol.to_tensor(x)).tolist() == np.maximum(x, 0).tolist()
    assert ol.nn.Tanh()(ol.to_tensor(x)).tolist() == np.tanh(x).tolist()
    assert ol.nn.ReLU()(ol.to_tensor(x)).dtype == np.float32
    assert list(ol.nn.ReLU().named_parameters()) == []


def test_the_derivative_of_relu_at_zero_is_zero():
    x = ol.to_tensor([-1.0, 0.0, 2.0], requires_grad=True)
    ol.nn.ReLU()(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


def test_nan_passes_through_relu():
    assert np.isnan(F.relu(ol.to_tensor([float("nan")])).numpy()).all()


@pytest.mark.parametrize(
    ("weight", "bias", "said"),
    [
        ([3], None, r"weight of shape \[in, out\]; got one of shape \(3,\)"),
        ([3, 1, 1], None, r"weight of shape \[in, out\]"),
        ([3, 2], [1], r"weight of shape \(3, 2\) and bias of shape \(1,\).*of shape \(2,\)"),
        ([3, 2], [3], r"bias of shape \(3,\)"),
        ([3, 2], [1, 2], r"bias of shape \(1, 2\)"),
    ],
)
def test_a_weight_that_is_no_matrix_is_refused_at_once(weight: Any, bias: Any, said: str) -> None:
    leaves = [
        None if shape is None else ol.ones(shape).astype("float32") for shape in (weight, bias)
    ]
    with pytest.raises(ValueError, match=said):
        ol.nn.functional.linear(ol.ones([2, 3]), *leaves)
