"""Cases of sampling at places of a grid, away from the kinks between elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional


def _grid(lengths: Any, corners: bool, *shape: int) -> np.ndarray:
    """Return places inside and outside, at fractions of elements from 0.1 to 0.4 or 0.6 to 0.9."""
    draw = np.random.default_rng((5, *shape))
    grid = np.empty((*shape, len(lengths)))
    for d, n in enumerate(reversed(lengths)):
        fraction = draw.uniform(0.1, 0.4, shape) + 0.5 * draw.integers(0, 2, shape)
        place = draw.integers(-n, 2 * n, shape) + fraction
        grid[..., d] = 2 * place / (n - 1) - 1 if corners else (2 * place + 1) / n - 1
    return grid


IMAGE, VOLUME = numbers(2, 2, 3, 4), numbers(1, 2, 2, 3, 3)
for mode in ("bilinear", "nearest"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (True, False):
            options: Any = {"mode": mode, "padding_mode": padding, "align_corners": corners}
            put(
                f"grid_sample {mode} {padding} {corners}",
                lambda x, grid, options=options: F.grid_sample(x, grid, **options),
                IMAGE,
                _grid((3, 4), corners, 2, 3, 2),
                torch=lambda torch, x, grid, options=options: torch.nn.functional.grid_sample(
                    x, grid, **options
                ),
            )
    put(
        f"grid_sample of volumes, {mode}",
        lambda x, grid, mode=mode: F.grid_sample(x, grid, mode, "reflection"),
        VOLUME,
        _grid((2, 3, 3), True, 1, 2, 1, 3),
        torch=lambda torch, x, grid, mode=mode: torch.nn.functional.grid_sample(
            x, grid, mode, "reflection", True
        ),
    )

THETA, THETAS = numbers(2, 2, 3), numbers(1, 3, 4)
for corners in (True, False):
    for theta, size in ((THETA, (2, 1, 3, 2)), (THETAS, (1, 2, 2, 1, 3))):
        put(
            f"affine_grid {size} {corners}",
            lambda theta, size=size, corners=corners: F.affine_grid(theta, size, corners),
            theta,
            torch=lambda torch, theta, size=size, corners=corners: torch.nn.functional.affine_grid(
                theta, size, corners
            ),
        )
TURNED = np.array([[[0.83, -0.41, 0.13], [0.37, 0.71, -0.22]]])
put(
    "grid_sample of affine_grid",
    lambda x, theta: F.grid_sample(x, F.affine_grid(theta, [1, 2, 4, 3])),
    numbers(1, 2, 5, 6),
    TURNED,
    torch=lambda torch, x, theta: torch.nn.functional.grid_sample(
        x, torch.nn.functional.affine_grid(theta, [1, 2, 4, 3], True), align_corners=True
    ),
)
