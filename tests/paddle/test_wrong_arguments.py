"""Arguments of other libraries: the error names the function, and says what to write."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest

import optlab as ol
from optlab import nn

F = nn.functional
X = np.arange(6.0, dtype="float32").reshape(2, 3)


def tracked():
    return ol.to_tensor(X, stop_gradient=False)


@pytest.mark.parametrize(
    "name", "sum mean max min prod var std cumsum cumprod argmax argmin all any squeeze".split()
)
def test_methods_call_an_axis_axis(name):
    with pytest.raises(TypeError, match=rf"^Tensor\.{name} has no argument 'dim'.* Write axis=1\."):
        getattr(tracked(), name)(dim=1)


@pytest.mark.parametrize(
    "name",
    "sum mean max min prod argmax argmin std var all any cumsum norm logsumexp median amax sort "
    "topk split concat stack unsqueeze".split(),
)
def test_functions_call_an_axis_axis(name):
    with pytest.raises(TypeError, match=rf"^ol\.{name} has no argument 'dim'.* Write axis=1\."):
        getattr(ol, name)(tracked(), dim=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: x.reshape(shape=[3, 2]), "Tensor.reshape has no argument 'shape'"),
        (lambda x: x.reshape(shape=[3, 2]), "Give it by position: reshape([3, 2])."),
        (lambda x: x.sum().backward(retain=True), "Write retain_graph=True."),
        (lambda x: x.sum().backward(inputs=[x]), "Tensor.backward has no argument 'inputs'"),
        (lambda x: x.sum().backward(gradient=2.0), "Write grad=2.0."),
        (lambda x: x.std(unbiased=False), "ol.std(t, unbiased=False)"),
        (lambda x: x.var(unbiased=True), "or ddof=1."),
        (lambda x: x.transpose(axes=[1, 0]), "Write perm=[1, 0]."),
        (lambda x: x.flatten(start_dim=1), "Write start_axis=1."),
        (lambda x: x.sum(0, None, None, False, 0, True, 1, 2), "Tensor.sum takes at most 6"),
        (lambda x: ol.zeros_like(input=x), "ol.zeros_like has no argument 'input'"),
        (lambda x: ol.concat(), "ol.concat(x, axis) needs x."),
        (lambda x: ol.atan2(np.array([None, 1], dtype=object), 0.5), "ol.atan2 cannot take"),
        (lambda x: ol.numel(), "ol.numel(x) needs x."),
        (lambda x: ol.metric.accuracy(x), "ol.metric.accuracy(input, label, k) needs label."),
    ],
)
def test_the_error_says_what_to_write(call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call(tracked())


def test_what_the_errors_say_to_write_works():
    x = tracked()
    assert x.sum(axis=1).shape == (2,)
    assert ol.std(x, unbiased=False).item() == pytest.approx(x.std(ddof=0).item())
    assert x.var(ddof=1).item() == pytest.approx(X.var(ddof=1))
    assert x.reshape([3, 2]).shape == (3, 2)
    assert x.var(where=X > 1).item() == pytest.approx(X.var(where=X > 1))
    assert bool(x.all(where=X > 0))
    assert ol.sum(x, initial=1.0).item() == 16.0


def test_a_method_can_be_pickled():
    assert pickle.loads(pickle.dumps(ol.Tensor.sum)) is ol.Tensor.sum


def test_an_error_from_inside_a_method_stays():
    with pytest.raises(np.exceptions.AxisError, match="axis 5 is out of bounds"):
        tracked().sum(5)
    with pytest.raises(ValueError, match="reshape"):
        tracked().reshape(5)


@pytest.mark.parametrize("name", "zeros ones empty rand randn standard_normal uniform".split())
def test_lengths_of_a_shape_are_a_list(name):
    for lengths in ((2, 3), (2, 0)):
        said = re.escape(f"write ol.{name}({list(lengths)})")
        with pytest.raises(TypeError, match=said):
            getattr(ol, name)(*lengths)
    assert getattr(ol, name)([2, 3]).shape == (2, 3)


def test_several_lengths_of_a_shape_are_a_list():
    with pytest.raises(TypeError, match=r"Write zeros\(\[2, 3, 4\]\)\."):
        ol.zeros(2, 3, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda dtype: ol.zeros([2], dtype=dtype),
        lambda dtype: ol.rand([2], dtype=dtype),
        lambda dtype: ol.to_tensor([1.0], dtype=dtype),
        lambda dtype: ol.sum(tracked(), dtype=dtype),
        lambda dtype: tracked().astype(dtype),
        lambda dtype: ol.cast(tracked(), dtype),
    ],
)
def test_an_unknown_dtype_is_named(call):
    with pytest.raises(TypeError, match="dtype='float99' is no dtype"):
        call("float99")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("zero_", "t[...] = 0"),
        ("fill_", "t[...] = value"),
        ("exp_", "t[...] = np.exp(t)"),
        ("sqrt_", "t[...] = np.sqrt(t)"),
        ("add_", "t[...] = t + u"),
        ("where", "np.where(condition, a, b)"),
    ],
)
def test_missing_methods_say_what_to_write(name, written):
    with pytest.raises(AttributeError, match=re.escape(written)):
        getattr(tracked(), name)
    t, u = ol.to_tensor(X), ol.ones([2, 3])
    names = {"np": np, "t": t, "u": u, "value": 4.0, "condition": X > 1, "a": t, "b": u}
    exec(written, names)


def test_an_output_in_place_of_a_function_is_refused_with_what_to_write():
    x = tracked()
    for options in ({}, {"create_graph": True}):
        with pytest.raises(TypeError, match=r"y\.backward\(create_graph=True\)") as refused:
            ol.grad((x**3).sum(), [x], **options)
        assert "gradients add up" in str(refused.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ol.io.TensorDataset(X, X), "Write TensorDataset([x, y])."),
        (lambda: ol.io.DataLoader([X], pin_memory=True), "'pin_memory'"),
        (lambda: ol.io.DataLoader([X], pin_memory=True), "Leave it out"),
        (lambda: ol.io.DataLoader([X], batchsize=2), "did you mean batch_size?"),
        (lambda: nn.GRU(2, 2, bias=False), "Write bias_ih_attr=False, bias_hh_attr=False."),
        (lambda: nn.LSTM(2, 2, bias=False), "Write bias_ih_attr=False, bias_hh_attr=False."),
        (lambda: nn.GRUCell(2, 2, bias=False), "Write bias_ih_attr=False, bias_hh_attr=False."),
        (lambda: nn.LSTMCell(2, 2, bias=True), "Leave it out"),
        (lambda: nn.Linear(2, 2, bias=False), "Write bias_attr=False."),
        (lambda: F.one_hot(ol.to_tensor([1]), depth=3), "Write num_classes=3."),
        (lambda: F.linear(X, X.T, b=None), "Write bias=None."),
    ],
)
def test_layers_and_data_say_what_to_write(call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call()


HUGE = 10**30


@pytest.mark.parametrize("axis", [HUGE, -HUGE, (0, HUGE), 2**40])
@pytest.mark.parametrize("name", "sum mean max min prod var std all any squeeze unsqueeze".split())
def test_an_axis_beyond_32_or_64_bits_is_out_of_bounds_as_any_other(name, axis):
    x = tracked()
    with pytest.raises(np.exceptions.AxisError, match="is out of bounds for array of dimension"):
        getattr(x, name)(axis=axis)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.argmax(HUGE), lambda x: x.argmin(axis=-HUGE), lambda x: x.cumsum(HUGE),
        lambda x: x.argsort(HUGE), lambda x: x.swapaxes(0, HUGE), lambda x: x.transpose(0, HUGE),
        lambda x: x.take([0], HUGE), lambda x: x.repeat(2, HUGE), lambda x: x.trace(0, HUGE),
        lambda x: x.diagonal(0, HUGE), lambda x: np.sum(x, axis=HUGE), lambda x: ol.sum(x, HUGE),
    ],
)  # fmt: skip
def test_methods_and_functions_name_the_axis(call):
    with pytest.raises(np.exceptions.AxisError, match=rf"axis -?{HUGE} is out of bounds"):
        call(tracked())


def test_often_called_methods_show_the_arguments_that_they_have():
    assert list(inspect.signature(ol.Tensor.backward).parameters) == [
        "self", "grad", "retain_graph", "create_graph",
    ]  # fmt: skip
    for call in (
        lambda x: x.squeeze(0, 1),
        lambda x: x.mean(axes=0),
        lambda x: x.max(0, None, False, 0.0, True, 1),
        lambda x: x.sum().backward(None, False, False, 1),
    ):
        with pytest.raises(TypeError, match=r"^Tensor\.\w+ (takes at most|has no argument)"):
            call(tracked())
