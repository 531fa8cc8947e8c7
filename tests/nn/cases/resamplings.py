"""Cases of resampling and unpooling."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

SHAPES = {1: (2, 1, 5), 2: (1, 2, 3, 5), 3: (1, 1, 2, 3, 2)}
#: Modes and options, for PyTorch too.
SIZES: list[Any] = [
    ("nearest", 1, {"size": 8}),
    ("nearest", 1, {"scale_factor": 1.7}),
    ("nearest", 2, {"size": (4, 2)}),
    ("nearest", 2, {"scale_factor": 2}),
    ("nearest", 3, {"scale_factor": (2, 1.5, 0.5)}),
    ("linear", 1, {"size": 8}),
    ("linear", 1, {"size": 3, "align_corners": True}),
    ("linear", 1, {"scale_factor": 1.7}),
    ("bilinear", 2, {"size": (4, 8)}),
    ("bilinear", 2, {"size": (1, 3)}),
    ("bilinear", 2, {"scale_factor": (1.7, 0.7)}),
    ("bilinear", 2, {"scale_factor": (1.5, 1.3), "recompute_scale_factor": True}),
    ("bilinear", 2, {"scale_factor": 2, "align_corners": True}),
    ("bicubic", 2, {"size": (4, 3)}),
    ("bicubic", 2, {"scale_factor": 1.7}),
    ("bicubic", 2, {"size": (6, 2), "align_corners": True}),
    ("trilinear", 3, {"size": (3, 2, 4)}),
    ("area", 1, {"size": 3}),
    ("area", 2, {"size": (2, 7)}),
    ("area", 3, {"size": (1, 2, 2)}),
]


def _pytorchs(mode: str, options: Any) -> Any:
    return lambda torch, x: torch.nn.functional.interpolate(x, mode=mode, **options)


for mode, dims, options in SIZES:
    put(
        f"interpolate {mode} {dims} {options}",
        lambda x, mode=mode, options=options: F.interpolate(x, mode=mode, **options),
        numbers(*SHAPES[dims]),
        torch=_pytorchs(mode, options),
    )
put(
    "interpolate bilinear, align_mode=1, channels last",
    lambda x: F.interpolate(x, (4, 5), mode="bilinear", align_mode=1, data_format="NHWC"),
    numbers(1, 3, 4, 2),
)
put(
    "gradient of interpolate",
    lambda x: ol.grad(lambda x: np.sum(F.interpolate(x, scale_factor=2, mode="bicubic") ** 3))(x),
    numbers(1, 1, 2, 3),
)

UNPOOLED: list[Any] = [
    ("max_unpool1d", (2, 2, 3), {"kernel_size": 2}, [0, 3, 5]),
    ("max_unpool2d", (1, 1, 2, 2), {"kernel_size": 2}, [1, 6, 8, 15]),
    ("max_unpool2d", (1, 1, 2, 2), {"kernel_size": 2, "output_size": [5, 4]}, [1, 6, 8, 19]),
    ("max_unpool2d", (1, 1, 2, 2), {"kernel_size": 3, "stride": 2, "padding": 1}, [0, 2, 4, 8]),
    ("max_unpool3d", (1, 2, 1, 2, 1), {"kernel_size": (1, 2, 2)}, [7, 0]),
]
for name, shape, options, places in UNPOOLED:
    given = np.broadcast_to(np.reshape(places, shape[2:]), shape).copy()
    put(
        f"{name} {shape} {options}",
        lambda x, name=name, options=options, given=given: getattr(F, name)(x, given, **options),
        numbers(*shape),
        torch=lambda torch, x, name=name, options=options, given=given: getattr(
            torch.nn.functional, name
        )(x, torch.tensor(given), **options),
    )


def _gradient_of_unpooling(x: Any) -> Any:
    def total(x: Any) -> Any:
        y, mask = F.max_pool2d(x, 2, return_mask=True)
        return np.sum(F.max_unpool2d(y, mask, 2) ** 3)

    return ol.grad(total)(x)


put(
    "gradient of max_unpool2d of maxima",
    _gradient_of_unpooling,
    np.random.default_rng(1).permutation(16).reshape(1, 1, 4, 4) * 0.1 - 1.0,
)
