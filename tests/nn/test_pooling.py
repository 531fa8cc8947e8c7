"""Pooling and padding: their definitions in plain loops, ties, masks, layers, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.autograd.graph.reader import graph_of
from tests.guarded import GuardedArray

F = ol.nn.functional


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape)


def windows_of(length: int, kernel: int, stride: int, padding: Any, ceil_mode: bool) -> list[Any]:
    """Return the range of positions of each window, padding included.

    With ceil_mode one more window starts inside, if the one before does not reach the end.
    """
    before, after = padding
    found: list[Any] = []
    for start in range(-before, length, stride):
        stop, end = start + kernel, length + after
        if stop <= end or (ceil_mode and found[-1][1] < end):
            found.append((start, min(stop, end)))
    return found


def adaptive_windows(length: int, count: int) -> list[Any]:
    return [(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]


def pooled(x: np.ndarray, rows: Any, columns: Any, f: Any) -> np.ndarray:
    """Apply `f` to the elements of each window and its number of positions, padding included."""
    return np.array(
        [
            [
                [
                    [
                        f(image[max(a, 0) : b, max(c, 0) : d].ravel(), (b - a) * (d - c))
                        for c, d in columns
                    ]
                    for a, b in rows
                ]
                for image in images
            ]
            for images in x
        ]
    )


@st.composite
def pools(draw: Any) -> Any:
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    stride = [draw(st.integers(1, 4)) for _ in range(2)]
    padding = [[draw(st.integers(0, k - 1)) for _ in range(2)] for k in kernel]
    size = [
        max(draw(st.integers(1, 7)), k - before - after)
        for k, (before, after) in zip(kernel, padding, strict=True)
    ]
    return size, kernel, stride, padding, draw(st.booleans())


@settings(max_examples=100)
@given(pools())
def test_pooling_is_its_definition(case):
    size, kernel, stride, padding, ceil_mode = case
    x = np.round(numbers(2, 2, *size), 1)  # with ties
    rows, columns = (
        windows_of(*each, ceil_mode) for each in zip(size, kernel, stride, padding, strict=True)
    )
    pads = [[0, 0], [0, 0], *padding]
    maxima = pooled(x, rows, columns, lambda inside, _: inside.max())
    y, mask = F.max_pool2d(x, kernel, stride, pads, True, ceil_mode)
    np.testing.assert_array_equal(y.numpy(), maxima)
    # The mask is the index of the first maximum.
    places = np.arange(x[0, 0].size).reshape(size)
    flat = x.reshape(2, 2, -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, mask.numpy().reshape(2, 2, -1), 2),
                                  maxima.reshape(2, 2, -1))  # fmt: skip
    image = x[0, 0]
    first = [
        [
            places[max(a, 0) : b, max(c, 0) : d].ravel()[
                image[max(a, 0) : b, max(c, 0) : d].ravel().argmax()
            ]
            for c, d in columns
        ]
        for a, b in rows
    ]
    np.testing.assert_array_equal(mask.numpy()[0, 0], first)
    # The gradient goes to the index of the mask.
    leaf = ol.to_tensor(x, requires_grad=True)
    y = F.max_pool2d(leaf, kernel, stride, pads, ceil_mode=ceil_mode)
    g = numbers(*y.shape)
    y.backward(g)
    expected = np.zeros((2, 2, x[0, 0].size))
    for n in range(2):
        for c in range(2):
            np.add.at(expected[n, c], mask.numpy()[n, c].ravel(), g[n, c].ravel())
    np.testing.assert_allclose(leaf.grad.numpy().reshape(2, 2, -1), expected, atol=1e-12)

    for exclusive in (True, False):
        averages = pooled(
            x, rows, columns,
            lambda inside, all_, e=exclusive: inside.sum() / (inside.size if e else all_),
        )  # fmt: skip
        y = F.avg_pool2d(x, kernel, stride, pads, ceil_mode, exclusive)
        np.testing.assert_allclose(y.numpy(), averages, atol=1e-12)
        leaf = ol.to_tensor(x, requires_grad=True)
        F.avg_pool2d(leaf, kernel, stride, pads, ceil_mode, exclusive).backward(g)
        np.testing.assert_allclose(np.sum(leaf.grad.numpy() * x), np.sum(g * averages), atol=1e-9)


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_adaptive_pooling_is_its_definition(height, width, n, m):
    x = numbers(1, 2, height, width)
    rows, columns = adaptive_windows(height, n), adaptive_windows(width, m)
    leaf = ol.to_tensor(x, requires_grad=True)
    y, mask = F.adaptive_max_pool2d(leaf, [n, m], return_mask=True)
    maxima = pooled(x, rows, columns, lambda inside, _: inside.max())
    np.testing.assert_array_equal(y.detach().numpy(), maxima)
    np.testing.assert_array_equal(
        np.take_along_axis(x.reshape(1, 2, -1), mask.numpy().reshape(1, 2, -1), 2),
        maxima.reshape(1, 2, -1),
    )
    g = numbers(*y.shape)
    y.backward(g)
    expected = np.zeros((2, height * width))
    for c in range(2):
        np.add.at(expected[c], mask.numpy()[0, c].ravel(), g[0, c].ravel())
    np.testing.assert_allclose(leaf.grad.numpy().reshape(2, -1), expected, atol=1e-12)
    y = F.adaptive_avg_pool2d(x, [n, m])
    averages = pooled(x, rows, columns, lambda inside, _: inside.mean())
    np.testing.assert_allclose(y.numpy(), averages, atol=1e-12)


@pytest.mark.parametrize("options", [{"kernel_size": 2}, {"kernel_size": 4},
                                     {"kernel_size": 3, "stride": 1, "padding": 1}])  # fmt: skip
def test_the_first_of_equal_elements_has_the_gradient(options):
    x = ol.to_tensor(np.zeros((1, 1, 4, 4)), requires_grad=True)
    y, mask = F.max_pool2d(x, **options, return_mask=True)
    y.sum().backward()
    expected = np.zeros(16)
    np.add.at(expected, mask.numpy().ravel(), 1.0)
    np.testing.assert_array_equal(x.grad.numpy().ravel(), expected)
    assert mask.numpy()[0, 0, 0, 0] == 0
    assert expected.sum() == y.size


def test_nan_is_the_maximum_of_its_window_and_has_a_gradient():
    x = ol.to_tensor([[[1.0, np.nan, 3.0, 4.0]]], requires_grad=True)
    y = F.max_pool1d(x, 2)
    assert np.isnan(y.tolist()[0][0][0])
    y.sum().backward()
    assert x.grad.numpy().sum() == 2


def test_minus_infinity_is_a_value_like_others():
    x = ol.to_tensor(np.full((1, 1, 3), -np.inf), requires_grad=True)
    F.max_pool1d(x, 3, 1, 1).sum().backward()
    assert x.grad.tolist() == [[[2.0, 1.0, 0.0]]]


def test_axes_that_stay_as_they_are():
    assert F.adaptive_avg_pool2d(numbers(1, 2, 5, 7), [None, 1]).shape == (1, 2, 5, 1)
    assert F.adaptive_max_pool2d(numbers(1, 2, 5, 7), (2, None)).shape == (1, 2, 2, 7)


def test_a_divisor_of_one_s_own():
    x = numbers(1, 1, 4, 4)
    np.testing.assert_allclose(
        F.avg_pool2d(x, 2, divisor_override=3).numpy(), F.avg_pool2d(x, 2).numpy() * 4 / 3
    )


def test_channels_may_stand_last():
    x = numbers(2, 3, 5, 4)
    moved = np.moveaxis(x, 1, -1)
    pads, pads_last = [[0, 0], [0, 0], [1, 0], [0, 1]], [[0, 0], [1, 0], [0, 1], [0, 0]]
    y, mask = F.max_pool2d(x, 2, 2, pads, return_mask=True)
    z, other = F.max_pool2d(moved, 2, 2, pads_last, return_mask=True, data_format="NHWC")
    for one, two in ((y, z), (mask, other)):
        np.testing.assert_array_equal(np.moveaxis(two.numpy(), -1, 1), one.numpy())
    z = F.adaptive_avg_pool2d(moved, [2, 3], data_format="NHWC")
    expected = F.adaptive_avg_pool2d(x, [2, 3])
    np.testing.assert_array_equal(np.moveaxis(z.numpy(), -1, 1), expected.numpy())


def test_what_is_kept_for_backward():
    x = ol.to_tensor(numbers(2, 3, 8, 8), requires_grad=True)
    hidden = F.relu(x)
    y = F.max_pool2d(hidden, 2)
    # relu saves `hidden`, max pooling one byte per window: the position of its maximum.
    assert graph_of(y).kept_bytes == hidden.nbytes + y.size
    large = F.max_pool2d(hidden, 5)
    assert graph_of(large).kept_bytes == hidden.nbytes + large.nbytes
    assert graph_of(F.avg_pool2d(hidden, 2)).kept_bytes == hidden.nbytes


def test_whole_numbers_are_pooled_as_floats():
    assert F.max_pool1d(np.array([[[1, 5, 2, 3]]]), 2).dtype == np.float32


def test_half_precision_averages_do_not_overflow():
    y = F.avg_pool1d(np.full((1, 1, 8), 6e4, "float16"), 8)
    assert y.dtype == np.float16
    assert y.item() == pytest.approx(6e4, rel=1e-3)


def test_masks_stay_on_their_device_and_have_members():
    x = numbers(1, 2, 4, 4)
    y, mask = F.max_pool2d(ol.Tensor(GuardedArray(x)), 2, return_mask=True)
    assert isinstance(mask.data, GuardedArray)
    assert isinstance(y.data, GuardedArray)
    expected = F.max_pool2d(x, 2, return_mask=True)[1].numpy()
    np.testing.assert_array_equal(mask.data.get(), expected)
    each = ol.vmap(lambda x: F.max_pool2d(x, 2, return_mask=True)[1])(np.stack([x, -x]))
    np.testing.assert_array_equal(each[0], expected)


def test_images_shared_by_gradients_of_each_member():
    """In the rows of a Jacobian the gradients are an ensemble, and the saved arrays are not."""
    x = numbers(1, 1, 4, 4)
    functions = (
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 4),
        lambda x: F.avg_pool2d(x, 3, 1, 1),
        lambda x: F.conv2d(x, x[:, :, :2, :2]),
    )
    for f in functions:
        jacobian = ol.jacobian(f)(x)
        step = 1e-6 * numbers(4, 4)[None, None]
        moved = (f(x + step).numpy() - f(x - step).numpy()) / 2
        np.testing.assert_allclose(np.sum(jacobian * step, (-4, -3, -2, -1)), moved, atol=1e-10)


@pytest.mark.parametrize(
    ("layer", "function", "options"),
    [
        (f"{kind}Pool{d}D", f"{name}_pool{d}d", options)
        for kind, name, given in (
            ("Max", "max", {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
            ("Avg", "avg", {"kernel_size": 3, "stride": 1, "padding": 1, "exclusive": False}),
            ("AdaptiveMax", "adaptive_max", {"output_size": 2}),
            ("AdaptiveAvg", "adaptive_avg", {"output_size": 2}),
        )
        for d in (1, 2, 3)
        for options in [given]
    ]
    + [
        ("MaxPool2D", "max_pool2d", {"kernel_size": 2, "return_mask": True}),
        ("AdaptiveMaxPool2D", "adaptive_max_pool2d", {"output_size": 2, "return_mask": True}),
        ("AvgPool2D", "avg_pool2d", {"kernel_size": 2, "divisor_override": 2.0}),
        ("Unfold", "unfold", {"kernel_sizes": 2, "strides": 2, "paddings": 1, "dilations": 2}),
        ("ZeroPad2D", "zeropad2d", {"padding": [1, 2, 0, 1]}),
        ("PixelUnshuffle", "pixel_unshuffle", {"downscale_factor": 2}),
        ("PixelShuffle", "pixel_shuffle", {"upscale_factor": 2}),
    ],
)  # fmt: skip
def test_a_layer_is_its_function(layer, function, options):
    dims = int(next((c for c in layer if c.isdigit()), "2"))
    x = numbers(2, 4, *(4, 6, 4)[:dims])
    made = getattr(ol.nn, layer)(**options)
    ours, expected = made(x), getattr(F, function)(x, **options)
    if not isinstance(ours, tuple):
        ours, expected = (ours,), (expected,)
    for one, two in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy())
    assert all(f"{key}={value!r}" in repr(made) for key, value in options.items())


class TestPad:
    x = np.arange(6.0).reshape(1, 1, 2, 3)

    @pytest.mark.parametrize(
        ("pad", "options", "widths"),
        [
            ([1, 2], {}, [(0, 0), (0, 0), (0, 0), (1, 2)]),
            ([1, 2, 3, 0], {}, [(0, 0), (0, 0), (3, 0), (1, 2)]),
            ([1, 2, 3, 0], {"data_format": "NHWC"}, [(0, 0), (3, 0), (1, 2), (0, 0)]),
            ([1, 0, 0, 0, 1, 2, 0, 3], {}, [(1, 0), (0, 0), (1, 2), (0, 3)]),
            (
                [1, 0, 0, 0, 1, 2, 0, 3], {"pad_from_left_axis": False},
                [(0, 3), (1, 2), (0, 0), (1, 0)],
            ),
            ([1, 1, 1, 1, 2, 0], {}, [(0, 0), (2, 0), (1, 1), (1, 1)]),
        ],
    )  # fmt: skip
    def test_which_axes(self, pad, options, widths):
        y = F.pad(self.x, pad, value=7.0, **options)
        np.testing.assert_array_equal(y.numpy(), np.pad(self.x, widths, constant_values=7.0))

    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_layers(self, dims):
        x = numbers(1, 2, *(3, 4, 3)[:dims])
        made = getattr(ol.nn, f"Pad{dims}D")(1, mode="replicate")
        expected = np.pad(x, [(0, 0), (0, 0), *[(1, 1)] * dims], mode="edge")
        np.testing.assert_array_equal(made(x).numpy(), expected)
        sides = list(range(2 * dims))
        made = getattr(ol.nn, f"Pad{dims}D")(sides, value=2.0)
        np.testing.assert_array_equal(made(x).numpy(), F.pad(x, sides, value=2.0).numpy())

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda x: F.pad(x, [1]), "pairs of whole numbers"),
            (lambda x: F.pad(x, [-1, 0]), "to cut, use an index"),
            (lambda x: F.pad(x, [1, 1], "mirror"), "pad takes a mode among 'constant'"),
            (lambda x: F.pad(x, [3, 0, 0, 0], "reflect"), "at most 2 elements beside an axis of 3"),
            (lambda x: F.pad(x, [0, 4, 0, 0], "circular"), "at most 3 elements"),
            (lambda x: F.pad(x, [1, 1], "reflect"), "a pair for each axis of space"),
            (lambda x: F.pad(x, [1, 1, 0, 0], "reflect", value=1.0), "takes no value"),
            (lambda x: F.pad(x, [1, 1], data_format="NCL"), "among NCHW, NHWC"),
            (lambda x: ol.nn.Pad2D([1, 2, 3])(x), "Pad2D: padding is a whole number"),
        ],
    )
    def test_what_does_not_fit_is_named(self, call, words):
        with pytest.raises(ValueError, match=words):
            call(self.x)


X = np.ones((1, 2, 4, 4))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.max_pool2d(X[0], 2), "max_pool2d takes x of 4 axes"),
        (lambda: F.max_pool2d(X, 0), "kernel_size is a whole number of at least 1"),
        (lambda: F.max_pool2d(X, 5), r"window of \(5, 5\) .* does not fit into \(4, 4\)"),
        (
            lambda: F.avg_pool2d(X, 5, stride=1, ceil_mode=True),
            r"window of \(5, 5\) .* does not fit into \(4, 4\)",
        ),
        (lambda: F.max_pool2d(X, 2, padding=2), r"must be less than the window of \(2, 2\)"),
        (lambda: F.max_pool2d(X, 2, stride=[1, 2, 3]), "stride is a whole number"),
        (lambda: F.max_pool2d(X[:, :, :0], 2), "needs something to pool"),
        (lambda: F.avg_pool2d(X, 2, divisor_override=0), "cannot be 0"),
        (lambda: F.avg_pool2d(X, 2, data_format="NCL"), "data_format='NCHW' or 'NHWC'"),
        (lambda: F.adaptive_avg_pool2d(X, 0), "output_size is a whole number of at least 1"),
        (lambda: F.adaptive_max_pool2d(X, [1, 2, 3]), "output_size is a whole number"),
        (lambda: F.unfold(X, 5), r"does not fit into \(4, 4\)"),
        (lambda: F.unfold(X, 2, paddings=[1, 2, -1, 0]), "never negative"),
        (lambda: F.fold(np.ones((1, 8, 8)), 4, 2), r"\[N, C \* 4, 9\]"),
        (lambda: F.pixel_shuffle(X, 2), "multiple of 4 channels; got 2"),
        (lambda: F.pixel_unshuffle(X, 3), r"multiples of 3; got \(4, 4\)"),
    ],
)
def test_what_does_not_fit_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.max_pool2d(X, 2, name="y"),
        lambda: F.max_pool2d(X, 2, ceil_mode=1),
        lambda: F.max_pool2d(X, 2, return_mask="yes"),
        lambda: F.avg_pool2d(X, 2, exclusive=None),
        lambda: F.unfold(X, 2, name="y"),
        lambda: F.pad(X, [1, 1], name="y"),
    ],
)
def test_what_is_refused(call):
    with pytest.raises(TypeError):
        call()
