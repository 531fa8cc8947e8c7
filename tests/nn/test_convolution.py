"""Convolutions: their definition in plain loops, all forms of arguments, layers, errors."""

from __future__ import annotations

import itertools
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.autograd.graph.reader import graph_of
from optlab.backend import blas_threads
from optlab.nn.functional.conv import depthwise, im2col, products
from optlab.nn.functional.conv.scratch import MOST_VIEWS
from optlab.plan.scratch import noted
from tests.guarded import GuardedArray

F = ol.nn.functional


def numbers(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


@pytest.fixture
def blas_with():
    """Return a context in which the products of NumPy use so many threads."""
    library = blas_threads._own_library()
    if library is None:
        pytest.skip("NumPy's products are not those of an OpenBLAS with threads of its own")
    read, write = library

    @contextmanager
    def using(threads: int) -> Any:
        first = read()
        write(threads)
        try:
            yield
        finally:
            write(first)

    return using


def by_loops(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Return the convolution by its definition, one product after the other."""
    filters, per_group, *kernel = weight.shape
    size = x.shape[2:]
    out = [
        (n + b + a - (k - 1) * d - 1) // s + 1
        for n, k, s, d, (b, a) in zip(size, kernel, stride, dilation, padding, strict=True)
    ]
    y = np.zeros((x.shape[0], filters, *out))
    for n, o, *place in itertools.product(*map(range, y.shape)):
        first = o // (filters // groups) * per_group
        for c, *k in itertools.product(range(per_group), *map(range, kernel)):
            at = [
                p * s + i * d - b
                for p, s, i, d, (b, _) in zip(place, stride, k, dilation, padding, strict=True)
            ]
            if all(0 <= i < length for i, length in zip(at, size, strict=True)):
                y[n, o, *place] += x[n, first + c, *at] * weight[o, c, *k]
    return y


@st.composite
def convolutions(draw: Any) -> Any:
    dims = draw(st.integers(1, 2))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(dims))

    groups = draw(st.integers(1, 3))
    kernel, dilation, stride = each(1, 3), each(1, 2), each(1, 3)
    padding = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(dims))
    size = tuple(
        max(draw(st.integers(1, 6)), (k - 1) * d + 1 - b - a, 1)
        for k, d, (b, a) in zip(kernel, dilation, padding, strict=True)
    )
    shape = (draw(st.integers(1, 2)), groups * draw(st.integers(1, 2)), *size)
    filters = groups * draw(st.integers(1, 3))
    return shape, (filters, shape[1] // groups, *kernel), stride, padding, dilation, groups


@pytest.mark.parametrize("block", [1, 500, 10**6])
@pytest.mark.parametrize(
    ("size", "kernel", "padding", "dilation"),
    [
        ((7,), (3,), ((1, 1),), (1,)),
        ((7,), (2,), ((0, 2),), (3,)),
        ((5, 6), (3, 3), ((1, 1), (1, 1)), (1, 1)),
        ((5, 6), (2, 3), ((0, 2), (3, 0)), (1, 2)),
        ((4, 3, 5), (2, 1, 3), ((1, 0), (0, 0), (1, 1)), (1, 1, 1)),
    ],
)
def test_one_filter_a_channel(monkeypatch, block, size, kernel, padding, dilation):
    monkeypatch.setattr(depthwise, "BLOCK_BYTES", block)
    x, weight, ones = numbers(3, 5, *size), numbers(5, 1, *kernel), (1,) * len(size)
    g, v, w = (
        numbers(3, 5, *expected_size(size, kernel, padding, dilation)),
        *map(np.cos, (x, weight)),
    )

    def weighed(x, weight):
        pads = [[0, 0], [0, 0], *map(list, padding)]
        y = getattr(F, f"conv{len(size)}d")(x, weight, None, 1, pads, list(dilation), 5)
        return np.sum(y * g)

    def close(a, b):
        np.testing.assert_allclose(np.sum(a), np.sum(b), rtol=1e-9, atol=1e-9)

    by_x, by_weight = ol.grad(weighed, (0, 1))(x, weight)
    close(by_x.data * v, g * by_loops(v, weight, ones, padding, dilation, 5))
    close(by_weight.data * w, g * by_loops(x, w, ones, padding, dilation, 5))
    # Twice, in the directions v and w: the product of both remains.
    both = g * by_loops(v, w, ones, padding, dilation, 5)
    by_both = ol.grad(lambda weight: np.sum(ol.grad(weighed)(x, weight) * v))(weight)
    close(by_both.data * w, both)
    by_both = ol.grad(lambda x: np.sum(ol.grad(weighed, 1)(x, weight) * w))(x)
    close(by_both.data * v, both)


def expected_size(size, kernel, padding, dilation):
    return [
        n + b + a - (k - 1) * d
        for n, k, (b, a), d in zip(size, kernel, padding, dilation, strict=True)
    ]


def test_one_filter_a_channel_without_images():
    layer = ol.nn.Conv2D(3, 3, 3, groups=3)
    x = ol.to_tensor(np.zeros((0, 3, 5, 5), "float32"), requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.shape == x.shape
    assert not layer.weight.grad.any()


@settings(max_examples=60)
@given(convolutions())
def test_a_convolution_is_its_definition_and_its_gradients_are_its_transposes(case):
    shape, filters, stride, padding, dilation, groups = case
    x, weight = numbers(*shape), numbers(*filters)
    expected = by_loops(x, weight, stride, padding, dilation, groups)
    convolution = F.conv1d if len(shape) == 3 else F.conv2d
    leaves = [ol.to_tensor(a, requires_grad=True) for a in (x, weight)]
    pads = [[0, 0], [0, 0], *map(list, padding)]
    y = convolution(*leaves, None, list(stride), pads, list(dilation), groups)
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-10, atol=1e-10)
    g = numbers(*y.shape)
    y.backward(g)
    # The function is linear in each argument, so <g, y> equals <gradient, argument>.
    for leaf in leaves:
        np.testing.assert_allclose(np.sum(leaf.grad.numpy() * leaf.detach().numpy()),
                                   np.sum(g * expected), rtol=1e-8, atol=1e-8)  # fmt: skip
    other = numbers(*shape)[..., ::-1]
    np.testing.assert_allclose(
        np.sum(leaves[0].grad.numpy() * other),
        np.sum(g * by_loops(other, weight, stride, padding, dilation, groups)),
        rtol=1e-8,
        atol=1e-8,
    )


@pytest.mark.parametrize("stride", [1, 2])
def test_blocks_of_images_give_what_all_at_once_give(monkeypatch, stride):
    x, weight, bias = numbers(7, 3, 6, 5), numbers(4, 3, 3, 2), numbers(4)
    found = []
    for size in (1, 3000, 2**30):
        monkeypatch.setattr(im2col, "BLOCK_BYTES", size)
        leaves = [ol.to_tensor(a, requires_grad=True) for a in (x, weight, bias)]
        y = F.conv2d(*leaves, stride=stride, padding=1)
        y.backward(numbers(*y.shape))
        found.append([y.detach().numpy(), *[t.grad.numpy() for t in leaves]])
    for one in found[1:]:
        for a, b in zip(one, found[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def pads(*pairs):
    return [[0, 0], [0, 0], *map(list, pairs)]


@pytest.mark.parametrize("positions", [1, 10**9])
@pytest.mark.parametrize("small", [0, 10**9])
@pytest.mark.parametrize(
    ("size", "kernel", "pairs", "dilation", "groups"),
    [
        ((7,), (3,), ((1, 1),), (1,), 1),
        ((7,), (4,), ((0, 5),), (2,), 2),
        ((5, 6), (3, 3), ((1, 1), (1, 1)), (1, 1), 1),
        ((5, 6), (3, 3), ((1, 1), (1, 1)), (1, 1), 2),
        ((5, 6), (3, 3), ((0, 0), (0, 0)), (1, 1), 1),
        ((5, 6), (3, 3), ((2, 0), (1, 1)), (1, 1), 2),
        ((5, 4), (3, 3), ((1, 1), (0, 0)), (1, 1), 1),
        ((5, 6), (1, 1), ((2, 1), (1, 3)), (1, 1), 1),
        ((4, 3), (2, 6), ((0, 1), (5, 0)), (1, 1), 1),  # padding wider than the image
        ((6, 5), (3, 2), ((2, 2), (3, 0)), (2, 3), 1),
        ((3, 4, 5), (3, 1, 3), ((1, 1), (0, 0), (1, 1)), (1, 1, 1), 1),
        ((3, 4, 5), (2, 3, 2), ((1, 0), (2, 0), (0, 1)), (1, 1, 2), 2),
    ],
)
def test_all_ways_of_multiplying_and_adding_up_are_the_definition(
    monkeypatch, positions, small, size, kernel, pairs, dilation, groups
):
    """Products of one image or of all, columns with gaps between the images or without."""
    monkeypatch.setattr(products, "POSITIONS", positions)
    monkeypatch.setattr(products, "SMALL", small)
    dims = len(size)
    x, weight, bias = numbers(3, 4, *size), numbers(6, 4 // groups, *kernel), numbers(6)
    ones = (1,) * dims
    expected = by_loops(x, weight, ones, pairs, dilation, groups)
    leaves = [ol.to_tensor(a, requires_grad=True) for a in (x, weight, bias)]
    y = getattr(F, f"conv{dims}d")(*leaves, 1, pads(*pairs), list(dilation), groups)
    close = {"rtol": 1e-10, "atol": 1e-10}
    shape = (6,) + (1,) * dims
    np.testing.assert_allclose(y.detach().numpy(), expected + bias.reshape(shape), **close)
    g = numbers(*y.shape)
    y.backward(g)
    other = np.cos(x), np.cos(weight)
    for leaf, one, moved in zip(
        leaves, other,
        (
            by_loops(other[0], weight, ones, pairs, dilation, groups),
            by_loops(x, other[1], ones, pairs, dilation, groups),
        ),
        strict=False,
    ):  # fmt: skip
        np.testing.assert_allclose(np.sum(leaf.grad.numpy() * one), np.sum(g * moved), **close)
    np.testing.assert_allclose(
        leaves[2].grad.numpy(), np.sum(g, axis=(0, *range(2, g.ndim))), **close
    )


@pytest.mark.parametrize("padding", [0, 1])
def test_an_infinite_number_stays_within_the_reach_of_the_kernel(padding):
    """Columns go on over the ends of rows: what is read there never counts."""
    x = np.zeros((2, 1, 12, 12), "float32")
    x[0, 0, 5, 11] = np.inf
    y = F.conv2d(x, np.ones((3, 1, 3, 3), "float32"), padding=padding).numpy()
    rows, columns = slice(3 + padding, 6 + padding), slice(9 + padding, 12)
    assert np.isinf(y[0, :, rows, columns]).all()
    y[0, :, rows, columns] = 0
    assert not y.any()


def test_bits_do_not_depend_on_the_number_of_threads(blas_with):
    """Also where there is one block of images: OpenBLAS would share its product among threads."""
    for shape, filters in (((1, 64, 8, 8), 128), ((2, 16, 14, 14), 32), ((1, 32, 9, 9), 48)):
        x, weight = numbers(*shape, dtype="float32"), numbers(filters, shape[1], 3, 3)
        found = []
        for threads in (1, 2):
            leaves = [
                ol.to_tensor(a.astype("float32"), requires_grad=True)
                for a in (x, weight, numbers(filters))
            ]
            with blas_with(threads):
                y = F.conv2d(*leaves, padding=1)
                y.backward(np.cos(y.detach().numpy()))
            found.append([y.detach().numpy(), *[leaf.grad.numpy() for leaf in leaves]])
        for one, two in zip(*found, strict=True):
            np.testing.assert_array_equal(one, two)


def test_scratch_memory_of_many_shapes_is_bounded():
    weight = numbers(4, 2, 3, 3)
    first = F.conv2d(numbers(2, 2, 6, 6), weight, padding=1).numpy().copy()
    for width in range(5, 200):
        F.conv2d(numbers(1, 2, 5, width), weight, padding=1)
    kept = noted("convolution, views")
    assert 0 < len(kept) <= MOST_VIEWS
    arrays = [a for a in noted("convolution, arrays").values() if isinstance(a, np.ndarray)]
    views = [view.whole for view in kept.values() if hasattr(view, "whole")]
    assert views
    # Views of arrays that were too small, and were replaced, would keep them.
    assert all(any(view.base is array for array in arrays) for view in views)
    np.testing.assert_array_equal(F.conv2d(numbers(2, 2, 6, 6), weight, padding=1), first)


@pytest.mark.parametrize(
    ("padding", "pairs"),
    [
        (2, [[2, 2], [2, 2]]),
        ([1, 2], [[1, 1], [2, 2]]),
        ((1, 0, 2, 3), [[1, 0], [2, 3]]),
        ([[0, 0], [0, 0], [1, 0], [2, 3]], [[1, 0], [2, 3]]),
        (((1, 0), (2, 3)), [[1, 0], [2, 3]]),
        (np.int64(1), [[1, 1], [1, 1]]),
        (np.array([1, 2]), [[1, 1], [2, 2]]),
        ("VALID", [[0, 0], [0, 0]]),
        ("same", [[0, 1], [1, 1]]),
    ],
)
def test_padding_in_every_form(padding, pairs):
    x, weight = numbers(1, 2, 6, 5), numbers(3, 2, 3, 3)
    y = F.conv2d(x, weight, stride=2, padding=padding)
    padded = np.pad(x, [(0, 0), (0, 0), *pairs])
    expected = by_loops(padded, weight, (2, 2), ((0, 0), (0, 0)), (1, 1), 1)
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [5, 6, 7])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same(stride, size, dilation):
    y = F.conv1d(numbers(1, 1, size), numbers(1, 1, 3), None, stride, "SAME", dilation)
    assert y.shape[2] == -(-size // stride)
    y = F.conv1d_transpose(
        numbers(1, 1, size), numbers(1, 1, 3), stride=stride, padding="SAME", dilation=dilation
    )
    assert y.shape[2] == size * stride


def test_channels_may_stand_last():
    x, weight, bias = numbers(2, 4, 6, 5), numbers(6, 2, 3, 3), numbers(6)
    for stride in (1, 2):
        y = F.conv2d(x, weight, bias, stride, [1, 0], groups=2)
        moved = F.conv2d(
            np.moveaxis(x, 1, -1), weight, bias, stride, [[0, 0], [1, 1], [0, 0], [0, 0]],
            groups=2, data_format="NHWC",
        )  # fmt: skip
        np.testing.assert_array_equal(np.moveaxis(moved.numpy(), -1, 1), y.numpy())


def test_a_transposed_convolution_is_the_gradient_of_a_convolution():
    x, weight = numbers(2, 3, 7, 8), numbers(4, 3, 3, 2)
    leaf = ol.to_tensor(x, requires_grad=True)
    y = F.conv2d(leaf, ol.to_tensor(weight), stride=[2, 3], padding=1)
    g = numbers(*y.shape)
    y.backward(g)
    back = F.conv2d_transpose(g, weight, stride=[2, 3], padding=1, output_size=[7, 8])
    np.testing.assert_allclose(back.numpy(), leaf.grad.numpy(), rtol=1e-12, atol=1e-12)


def test_what_is_kept_for_backward_is_input_and_weight():
    x = ol.to_tensor(numbers(4, 3, 8, 8, dtype="float32"), requires_grad=True)
    layer = ol.nn.Conv2D(3, 5, 3, padding=1)
    hidden = x * 2
    graph = graph_of(layer(hidden))
    assert graph.nodes[-1].name == "biased_convolution"
    assert [kept.what for kept in graph.nodes[-1].kept] == ["weight", "x"]
    assert graph.kept_bytes == hidden.nbytes


def test_results_are_laid_out_for_the_next_layer():
    """Channels are the first axis in memory, and elementwise functions keep this layout."""
    y = F.conv2d(numbers(4, 3, 8, 8), numbers(5, 3, 3, 3))
    z = F.relu(y)
    for t in (y, z):
        assert t.data.swapaxes(0, 1).flags.c_contiguous
    assert F.max_pool2d(z, 2).data.swapaxes(0, 1).flags.c_contiguous


def test_sums_of_half_precision_are_made_in_single():
    x = np.full((1, 1, 4096), 0.5, "float16")
    weight = np.ones((1, 1, 4096), "float16")
    y = F.conv1d(x, weight)
    assert y.dtype == np.float16
    assert y.item() == 2048


def test_float64_data_meets_float32_weights():
    layer = ol.nn.Conv2D(1, 2, 3)
    x = ol.to_tensor(numbers(1, 1, 5, 5), requires_grad=True)
    with warnings.catch_warnings(action="ignore"):  # the note is given once per process
        y = layer(x)
    assert y.dtype == np.float32
    y.sum().backward()
    assert x.grad.dtype == np.float64
    assert layer.weight.grad.dtype == np.float32
    assert layer(np.ones((1, 1, 3, 3), int)).dtype == np.float32


def test_an_empty_batch():
    layer = ol.nn.Conv2D(2, 3, 3, padding=1)
    y = layer(ol.zeros([0, 2, 4, 4]))
    assert y.shape == (0, 3, 4, 4)
    y.sum().backward()
    assert not layer.weight.grad.numpy().any()
    assert layer.weight.grad.shape == (3, 2, 3, 3)


class TestPerExample:
    def test_gradients_of_each_example(self):
        x, weight, bias = numbers(5, 2, 6, 6), numbers(3, 2, 3, 3), numbers(3)

        def loss(w, b, image):
            return np.sum(F.conv2d(image[None], w, b, stride=2, padding=1) ** 2)

        both = ol.vmap(ol.grad(loss, (0, 1)), in_axes=(None, None, 0))(weight, bias, x)
        for k in range(5):
            alone = ol.grad(loss, (0, 1))(weight, bias, x[k])
            for together, one in zip(both, alone, strict=True):
                np.testing.assert_allclose(together[k], one, rtol=1e-10)

    @pytest.mark.parametrize("groups", [1, 2])
    @pytest.mark.parametrize("stride", [1, 2])
    def test_filters_of_each_member_on_shared_images(self, groups, stride):
        x, weights = numbers(2, 4, 6, 6), numbers(3, 4, 4 // groups, 3, 3)

        def f(w, x):
            return F.conv2d(x, w, stride=stride, padding=1, groups=groups)

        together = ol.vmap(f, in_axes=(0, None))(weights, x)
        for k in range(3):
            np.testing.assert_allclose(together[k], f(weights[k], x).numpy(), rtol=1e-12)

    def test_the_gradient_of_what_all_share_is_the_sum(self):
        x, weights = numbers(2, 2, 5, 5), numbers(3, 4, 2, 3, 3)

        def total(x):
            return np.sum(ol.vmap(lambda w: F.conv2d(x, w) ** 2)(weights))

        alone = [ol.grad(lambda x, w=w: np.sum(F.conv2d(x, w) ** 2))(x) for w in weights]
        np.testing.assert_allclose(ol.grad(total)(x), sum(alone), rtol=1e-10)


class TestLayers:
    def test_the_weights_start_as_he_et_al_say(self):
        ol.seed(0)
        layer = ol.nn.Conv2D(32, 64, 3, groups=2)
        assert layer.weight.shape == (64, 16, 3, 3)
        assert layer.weight.numpy().std() == pytest.approx((2 / (32 * 9)) ** 0.5, rel=0.02)
        assert not layer.bias.numpy().any()

    def test_transposed_weights_start_as_glorot_and_bengio_say(self):
        ol.seed(0)
        layer = ol.nn.Conv2DTranspose(16, 32, 3, groups=2)
        assert layer.weight.shape == (16, 16, 3, 3)
        bound = (6 / ((16 + 16) * 9)) ** 0.5
        assert 0.98 * bound < abs(layer.weight.numpy()).max() <= bound

    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_a_layer_is_its_function(self, dims):
        size = (5, 4, 3)[:dims]
        x = numbers(2, 4, *size, dtype="float32")
        layer = getattr(ol.nn, f"Conv{dims}D")(4, 6, 2, 2, 1, 1, 2)
        y = getattr(F, f"conv{dims}d")(x, layer.weight, layer.bias, 2, 1, 1, 2)
        np.testing.assert_array_equal(layer(x).detach().numpy(), y.detach().numpy())
        layer = getattr(ol.nn, f"Conv{dims}DTranspose")(4, 6, 2, 2, 1, 1, groups=2)
        y = getattr(F, f"conv{dims}d_transpose")(
            x, layer.weight, layer.bias, 2, 1, output_padding=1, groups=2
        )
        np.testing.assert_array_equal(layer(x).detach().numpy(), y.detach().numpy())

    @pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
    @pytest.mark.parametrize(
        ("padding", "pairs"),
        [
            (1, [(1, 1), (1, 1)]),
            ([1, 2], [(1, 1), (2, 2)]),
            ([1, 0, 2, 1], [(1, 0), (2, 1)]),
            ("SAME", [(0, 1), (1, 1)]),
        ],
    )
    @pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
    def test_padding_modes(self, mode, padding, pairs, data_format):
        layer = ol.nn.Conv2D(2, 3, 3, 2, padding, padding_mode=mode, data_format=data_format,
                             dtype="float64")  # fmt: skip
        x = numbers(1, 2, 6, 5)
        modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
        padded = np.pad(x, [(0, 0), (0, 0), *pairs], mode=modes[mode])
        expected = F.conv2d(padded, layer.weight, layer.bias, 2).detach().numpy()
        last = data_format == "NHWC"
        y = layer(np.moveaxis(x, 1, -1) if last else x).detach().numpy()
        np.testing.assert_allclose(np.moveaxis(y, -1, 1) if last else y, expected, rtol=1e-12)

    def test_attributes_of_the_parameters(self):
        slow = ol.ParamAttr(learning_rate=0.1, initializer=ol.nn.initializer.Constant(2.0))
        layer = ol.nn.Conv2D(1, 1, 2, weight_attr=slow, bias_attr=False)
        assert layer.bias is None
        assert layer.weight.learning_rate == 0.1
        assert layer(ol.ones([1, 1, 2, 2])).item() == 8
        assert [name for name, _ in layer.named_parameters()] == ["weight"]

    def test_what_a_layer_says_of_itself(self):
        assert repr(ol.nn.Conv1D(1, 2, 3)) == "Conv1D(1, 2, kernel_size=(3,))"
        layer = ol.nn.Conv2D(2, 4, 3, 2, "SAME", 1, 2, "circular", bias_attr=False)
        assert repr(layer) == (
            "Conv2D(2, 4, kernel_size=(3, 3), stride=(2, 2), padding='SAME', groups=2, "
            "padding_mode='circular', bias_attr=False)"
        )
        assert "output_padding=(1, 1)" in repr(ol.nn.Conv2DTranspose(1, 1, 3, 2, 1, 1))


X, W = np.ones((1, 2, 4, 4), "float32"), np.ones((3, 2, 3, 3), "float32")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: F.conv2d(X[0], W),
            r"takes x of 4 axes, N C H W; got shape \(2, 4, 4\).*x\[None\]",
        ),
        (lambda: F.conv2d(X, W[0]), "takes weight of 4 axes"),
        (lambda: F.conv2d(X, W[:, :1]), r"x with 2 channels.*x must have 1 channels"),
        (lambda: F.conv2d(X, W[:, :1], groups=2), "3 filters cannot be cut into 2"),
        (lambda: F.conv2d(X, W, groups=0), "groups is a whole number of at least 1"),
        (lambda: F.conv2d(X, W, np.ones(2)), r"takes a bias of shape \(3,\)"),
        (lambda: F.conv2d(X, W, stride=0), "stride is a whole number of at least 1, or 2 of them"),
        (lambda: F.conv2d(X, W, stride=1.5), "got 1.5"),
        (lambda: F.conv2d(X, W, dilation=[1, 2, 3]), "dilation is a whole number"),
        (lambda: F.conv2d(X, W, padding=-1), "never negative; got -1"),
        (lambda: F.conv2d(X, W, padding=[1, 2, 3]), r"got \[1, 2, 3\]"),
        (lambda: F.conv2d(X, W, padding=[[1, 1], [0, 0], [1, 1], [1, 1]]), r"\[0, 0\] for batch"),
        (lambda: F.conv2d(X, W, padding="FULL"), "'SAME' or 'VALID'; got 'FULL'"),
        (lambda: F.conv2d(X, W, dilation=2), r"window of \(5, 5\) .* does not fit into \(4, 4\)"),
        (lambda: F.conv2d(X, W, data_format="NCL"), "data_format='NCHW' or 'NHWC'; got 'NCL'"),
        (lambda: F.conv2d_transpose(X, W), r"weight is of shape \[C, O / groups"),
        (
            lambda: F.conv2d_transpose(X, W[:2], stride=2, output_padding=2),
            "output_padding is less than the stride or less than the dilation",
        ),
        (
            lambda: F.conv2d_transpose(X, W[:2], dilation=3, output_padding=3),
            r"from \(10, 10\) to \(12, 12\)",
        ),
        (
            lambda: F.conv2d_transpose(X, W[:2], stride=2, output_size=[9, 11]),
            r"from \(9, 9\) to \(10, 10\).*asked for were \(9, 11\)",
        ),
        (
            lambda: F.conv2d_transpose(X, W[:2], output_padding=1, output_size=6, stride=2),
            "output_padding or output_size, not both",
        ),
        (lambda: ol.nn.Conv2D(0, 1, 3), "in_channels must be a whole number of at least 1; got 0"),
        (lambda: ol.nn.Conv2D(3, 4, 3, groups=2), "must be multiples of groups=2"),
        (lambda: ol.nn.Conv2D(1, 1, 3, padding="FULL"), "Conv2D: padding as text"),
        (lambda: ol.nn.Conv2D(1, 1, 3, padding_mode="mirror"), "padding_mode among 'zeros'"),
        (lambda: ol.nn.Conv2D(1, 1, 3, data_format="CHW"), "Conv2D takes data_format"),
    ],
)
def test_what_does_not_fit_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_is_refused():
    with pytest.raises(TypeError, match="name='y'"):
        F.conv2d(X, W, name="y")
    with pytest.raises(TypeError, match="weights of floating numbers"):
        F.conv2d(X, W.astype(int))
    with pytest.raises(TypeError, match="Conv2D cannot do without"):
        ol.nn.Conv2D(1, 1, 3, weight_attr=False)


def test_values_stay_on_their_device():
    y = F.conv2d(ol.Tensor(GuardedArray(X)), ol.Tensor(GuardedArray(W)), padding=1)
    assert isinstance(y.data, GuardedArray)
    np.testing.assert_array_equal(y.data.get(), F.conv2d(X, W, padding=1).numpy())
