"""Sampling at places: values by hand, a loop over all elements, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol

F = ol.nn.functional
DRAW = np.random.default_rng(0)


def _by_hand(x: Any, grid: Any, mode: str, padding: str, corners: bool) -> Any:
    """Sample one image, place by place, with Python's numbers."""
    channels, height, width = x.shape
    y = np.zeros((channels, *grid.shape[:2]))

    def mirrored(place: float, length: int) -> float:
        low, high = (0.0, length - 1.0) if corners else (-0.5, length - 0.5)
        while not low <= place <= high:
            place = 2 * low - place if place < low else 2 * high - place
        return place

    def element(i: int, j: int) -> Any:
        if padding == "zeros" and not (0 <= i < height and 0 <= j < width):
            return np.zeros(channels)
        return x[:, min(max(i, 0), height - 1), min(max(j, 0), width - 1)]

    for r, row in enumerate(grid):
        for c, pair in enumerate(row):
            place = []
            for coordinate, n in zip(pair[::-1], (height, width), strict=True):
                at = (coordinate + 1) / 2 * (n - 1) if corners else ((coordinate + 1) * n - 1) / 2
                at = mirrored(at, n) if padding == "reflection" else at
                place.append(at if padding == "zeros" else min(max(at, 0), n - 1))
            if mode == "nearest":
                y[:, r, c] = element(*map(round, place))
                continue
            i, j = (int(np.floor(at)) for at in place)
            p, q = place[0] - i, place[1] - j
            y[:, r, c] = (1 - p) * ((1 - q) * element(i, j) + q * element(i, j + 1))
            y[:, r, c] += p * ((1 - q) * element(i + 1, j) + q * element(i + 1, j + 1))
    return y


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_every_place_is_what_a_loop_reads(mode: str, padding: str, corners: bool) -> None:
    x, grid = DRAW.normal(size=(2, 3, 4, 5)), DRAW.uniform(-4, 4, size=(2, 6, 7, 2))
    y = F.grid_sample(x, grid, mode, padding, corners)
    assert y.dtype == np.float64
    for got, image, places in zip(y.numpy(), x, grid, strict=True):
        np.testing.assert_allclose(got, _by_hand(image, places, mode, padding, corners), atol=1e-12)


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (1, 2, 2, 3, 1)])
def test_the_grid_of_the_identity_reads_the_image(size: Any, corners: bool) -> None:
    x = DRAW.normal(size=size)
    theta = np.tile(np.eye(len(size) - 2, len(size) - 1), (size[0], 1, 1))
    grid = F.affine_grid(theta, ol.to_tensor(list(size)), corners)
    y = F.grid_sample(x, grid, align_corners=corners)
    np.testing.assert_allclose(y.numpy(), x, rtol=1e-12)


def test_one_element_is_in_the_middle_and_its_own_mirror_image() -> None:
    x = np.array([[[[7.0]]]])
    grid = F.affine_grid([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], [1, 1, 1, 1])
    assert grid.tolist() == [[[[0.0, 0.0]]]]
    for corners in (True, False):
        far = np.array([[[[5.3, -9.1]]]])
        assert F.grid_sample(x, far, "bilinear", "reflection", corners).item() == 7.0


def test_places_far_away_infinite_and_undefined() -> None:
    x = np.arange(6.0).reshape(1, 1, 2, 3) + 1
    grid = np.array([[[[np.inf, 0.0], [1e300, 0.0], [np.nan, 0.0], [0.0, -1.0]]]])
    for mode in ("bilinear", "nearest"):
        y = F.grid_sample(x, grid, mode)
        np.testing.assert_array_equal(y.numpy().ravel(), [0, 0, np.nan, 2])
    y = F.grid_sample(x, grid, "nearest", "border")
    np.testing.assert_array_equal(y.numpy().ravel(), [3, 3, np.nan, 2])


def test_nearest_gives_places_a_gradient_of_zero() -> None:
    grid = ol.to_tensor(DRAW.uniform(-1, 1, (1, 2, 2, 2)), requires_grad=True)
    F.grid_sample(np.ones((1, 1, 3, 3)), grid, "nearest").sum().backward()
    np.testing.assert_array_equal(grid.grad.numpy(), np.zeros((1, 2, 2, 2)))


def test_places_of_16_bits_are_computed_in_32() -> None:
    x = np.arange(2048, dtype=np.float32).reshape(1, 1, 1, 2048) % 7
    grid = np.array([[[[0.123, 0.0]]]], np.float16)
    found = F.grid_sample(x.astype(np.float16), grid)
    assert found.dtype == np.float16
    exact = F.grid_sample(x, grid.astype(np.float32))
    np.testing.assert_allclose(found.item(), exact.item(), rtol=1e-3)


def test_nothing_to_read_gives_nothing() -> None:
    assert F.grid_sample(np.ones((0, 1, 3, 3)), np.ones((0, 2, 2, 2))).shape == (0, 1, 2, 2)
    assert F.grid_sample(np.ones((2, 1, 3, 3)), np.ones((2, 0, 2, 2))).shape == (2, 1, 0, 2)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_a_step_of_a_spatial_transformer_is_captured_to_the_bit(padding: str) -> None:
    x = DRAW.normal(size=(1, 2, 5, 6))

    def losses(capture: bool) -> list[float]:
        theta = ol.Parameter(np.array([[[0.9, 0.1, 0.05], [-0.1, 1.1, 0.02]]]), name="theta")
        optimizer = ol.optimizer.Adam(0.05, parameters=[theta])

        def step(x: Any) -> Any:
            y = F.grid_sample(x, F.affine_grid(theta, x.shape), padding_mode=padding)
            loss = np.mean((y - x) ** 2)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        run = ol.capture(step) if capture else step
        return [run(x).item() for _ in range(8)]

    found = losses(capture=True)
    assert found == losses(capture=False)
    assert found[-1] < found[0]


IMAGE, GRID = np.ones((2, 1, 3, 3)), np.zeros((2, 4, 4, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.grid_sample(IMAGE, GRID, "bicubic"), "mode='bilinear' or 'nearest'; got 'bicub"),
        (lambda: F.grid_sample(IMAGE, GRID, padding_mode="wrap"), "'border' or 'reflection'"),
        (lambda: F.grid_sample(IMAGE[0], GRID), r"x\[None\]"),
        (lambda: F.grid_sample(IMAGE, GRID[:1]), r"a grid of shape \[2, OH, OW, 2\]; got \[1, 4"),
        (lambda: F.grid_sample(IMAGE[..., :0], GRID), "needs something to read"),
        (lambda: F.affine_grid(np.ones((1, 2, 3)), [1, 2, 3]), r"\[N, C, D, H, W\]; got \[1, 2, 3"),
        (lambda: F.affine_grid(np.ones((2, 2, 3)), [1, 2, 3, 3]), r"theta of shape \[1, 2, 3\]"),
        (lambda: F.affine_grid(np.ones((1, 2, 3)), [1, 2, 0, 3]), "takes out_shape"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
