"""Resampling and unpooling: the meaning of the options, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol

F, nn = ol.nn.functional, ol.nn

SQUARES = (np.arange(5.0) ** 2)[None, None]
PICTURE = (np.arange(15.0) ** 2).reshape(1, 1, 3, 5)

#: Results of Paddle 3.3 for options that PyTorch lacks.
PADDLES: list[Any] = [
    (SQUARES, {"size": 8, "mode": "linear", "align_mode": 1},
     [0.0, 0.625, 1.75, 3.625, 6.5, 9.875, 14.25, 16.0]),
    (SQUARES, {"size": 1, "mode": "linear", "align_mode": 1}, [0.0]),
    (SQUARES, {"scale_factor": 1.7, "mode": "linear", "align_mode": 1},
     [0.0, 0.5882, 1.5294, 3.2941, 5.7647, 8.7059, 12.7059, 16.0]),
    (SQUARES, {"scale_factor": 1.7, "mode": "linear", "align_mode": 0},
     [0.0, 0.3824, 0.9706, 2.6765, 4.7353, 7.6765, 11.2647, 15.3824]),
    (PICTURE, {"size": (1, 3), "mode": "bilinear", "align_mode": 1}, [0.0, 3.0, 11.3333]),
    (PICTURE, {"size": (1, 3), "mode": "bilinear", "align_mode": 1, "align_corners": True},
     [0.0, 4.0, 16.0]),
    (PICTURE, {"scale_factor": 1.7, "mode": "bicubic", "align_mode": 1},
     [-2.4369, -2.5619, -2.4508, -1.675, 0.2003, 2.1022, 5.9247, 9.2601]),
    (PICTURE, {"scale_factor": (0.5, 0.7), "mode": "nearest"}, [0.0, 1.0, 4.0]),
    (PICTURE, {"size": (1, 3), "mode": "area"}, [47.1667, 66.3333, 89.1667]),
]  # fmt: skip


@pytest.mark.parametrize(("x", "options", "expected"), PADDLES)
def test_paddle_says_the_same(x: Any, options: Any, expected: Any) -> None:
    y = F.interpolate(x, **options)
    np.testing.assert_allclose(y.numpy().ravel()[: len(expected)], expected, atol=6e-5)
    assert y.dtype == np.float64


def test_one_place_stands_in_the_middle() -> None:
    assert F.interpolate(PICTURE, size=1, mode="bilinear").tolist() == [[[[49.0]]]]
    assert F.interpolate(PICTURE, size=1, mode="bicubic").tolist() == [[[[49.0]]]]


def test_channels_last_is_the_same_with_axes_moved() -> None:
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 3))
    last = F.interpolate(x, scale_factor=1.5, mode="bilinear", data_format="NHWC").numpy()
    second = F.upsample(np.moveaxis(x, -1, 1), scale_factor=1.5, mode="bilinear").numpy()
    np.testing.assert_array_equal(last, np.moveaxis(second, 1, -1))
    one = F.interpolate(x[0], size=[9], mode="linear", data_format="NWC")
    assert one.shape == (4, 9, 3)


def test_one_bad_element_spoils_its_neighbours_only() -> None:
    x = np.zeros((1, 1, 1, 8))
    x[..., 2] = np.nan
    for mode, spoilt in (("nearest", 2), ("bilinear", 4), ("bicubic", 8)):
        y = F.interpolate(x, size=(1, 16), mode=mode).numpy()
        assert np.isnan(y).sum() == spoilt, mode
    t = ol.to_tensor(np.zeros((1, 1, 1, 8)), requires_grad=True)
    g = np.zeros((1, 1, 1, 4))
    g[..., 0] = np.inf
    F.interpolate(t, size=(1, 4)).backward(g)
    assert t.grad.tolist() == [[[[np.inf] + [0.0] * 7]]]


def test_nothing_is_saved_for_backward() -> None:
    x = ol.to_tensor(np.ones((1, 2, 8, 8), "float32"), requires_grad=True)
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        node = F.interpolate(x, size=16, mode=mode).node
        assert not any(hasattr(value, "nbytes") for value in node.saved), mode


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_result_has_memory_of_its_own(size: int) -> None:
    x = ol.to_tensor(np.arange(16.0).reshape(1, 1, 4, 4))
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        y = F.interpolate(x, size=size, mode=mode)
        assert not np.shares_memory(y.data, x.data), mode


def test_ratios_of_whole_numbers_are_exact() -> None:
    for length, count in ((7, 49), (3, 9), (49, 7), (10, 30)):
        x = np.arange(float(length))[None, None]
        found = F.interpolate(x, size=count).numpy()[0, 0]
        assert found.tolist() == [i * length // count for i in range(count)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: F.interpolate(x), "either size or scale_factor"),
        (lambda x: F.interpolate(x, 4, 2.0), "either size or scale_factor"),
        (lambda x: F.interpolate(x, 4, mode="cubic"), "mode among 'nearest', 'linear'"),
        (lambda x: F.interpolate(x, 4, mode="linear"), r"takes x of 3 axes; got .*x\[None\]"),
        (lambda x: F.interpolate(x, 4, align_corners=True), "align_corners is for linear"),
        (lambda x: F.interpolate(x, 4, align_mode=2), "align_mode is 0 or 1"),
        (lambda x: F.interpolate(x, 4, antialias=True), "antialias=True is not covered"),
        (lambda x: F.interpolate(x, [4, 4, 4]), "size is a whole number"),
        (lambda x: F.interpolate(x, 0), "size is a whole number"),
        (lambda x: F.interpolate(x, scale_factor=-1), "greater than 0"),
        (lambda x: F.interpolate(x, scale_factor=0.1), r"leaves nothing of the lengths \(4, 4\)"),
        (lambda x: F.interpolate(x, 4, data_format="NCDHW"), "data_format='NCHW' or 'NHWC'"),
        (lambda x: F.interpolate(x, 4, name="y"), "no names here"),
        (lambda x: F.max_unpool2d(x, x, 2), "indices are integers"),
        (lambda x: F.max_unpool2d(x, [[0]], 2), "an index for each element"),
        (lambda x: F.max_unpool2d(x, np.full((1, 1, 4, 4), 64), 2), r"0 \.\.\. 63; got 64"),
        (lambda x: F.max_unpool2d(x, np.full((1, 1, 4, 4), -1), 2), r"got -1"),
        (
            lambda x: F.max_unpool2d(x, np.zeros((1, 1, 4, 4), int), 2, output_size=[20, 8]),
            "cannot have led to this pooling",
        ),
        (
            lambda x: F.max_unpool2d(x, np.zeros((1, 1, 4, 4), int), 2, data_format="NHWC"),
            "takes data_format='NCHW'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        call(ol.ones([1, 1, 4, 4]))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_undoes_pooling_at_the_maxima(dims: int) -> None:
    size = [6, 4, 2][:dims]
    count = int(np.prod(size))
    x = np.random.default_rng(0).permutation(2 * count).reshape(1, 2, *size) + 1.0
    pool = getattr(nn, f"MaxPool{dims}D")(2, return_mask=True)
    unpool = getattr(nn, f"MaxUnPool{dims}D")(2)
    y, mask = pool(x)
    back = unpool(y, mask)
    assert back.shape == x.shape
    np.testing.assert_array_equal(back.numpy() != 0, np.isin(x, y.numpy()))
    np.testing.assert_array_equal(back.numpy()[back.numpy() != 0], x[np.isin(x, y.numpy())])


def test_windows_that_overlap_give_one_place_once() -> None:
    x = ol.to_tensor([[[1.0, 2.0, 9.0, 3.0, 4.0]]], requires_grad=True)
    y, mask = F.max_pool1d(x, 3, 1, return_mask=True)
    back = F.max_unpool1d(y, mask, 3, 1)
    assert back.tolist() == [[[0.0, 0.0, 9.0, 0.0, 0.0]]]


def test_layers() -> None:
    x = ol.ones([1, 2, 3, 4])
    assert nn.Upsample(scale_factor=2, mode="bicubic")(x).shape == (1, 2, 6, 8)
    assert nn.UpsamplingNearest2D(size=[5, 5])(x).shape == (1, 2, 5, 5)
    layer = nn.UpsamplingBilinear2D(size=[5, 5])
    ramp = np.arange(12.0).reshape(1, 1, 3, 4)
    np.testing.assert_array_equal(
        layer(ramp).numpy(),
        F.interpolate(ramp, [5, 5], mode="bilinear", align_corners=True).numpy(),
    )
    assert repr(layer) == "UpsamplingBilinear2D(size=[5, 5])"
    assert repr(nn.Upsample(scale_factor=2, mode="area")) == "Upsample(scale_factor=2, mode='area')"
    assert repr(nn.MaxUnPool2D(2, stride=3)) == "MaxUnPool2D(kernel_size=2, stride=3)"
