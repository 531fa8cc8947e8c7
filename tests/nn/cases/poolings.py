"""Cases of pooling; all elements of a window differ."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.nn.cases.table import put

F = ol.nn.functional


def apart(*shape: int) -> np.ndarray:
    """Return well-separated numbers."""
    size = int(np.prod(shape))
    return np.random.default_rng(shape).permutation(size).reshape(shape) * 0.1 - 1.0


MAXIMA: list[Any] = [
    ("max_pool1d", (2, 2, 7), {"kernel_size": 3}),
    ("max_pool1d", (1, 2, 7), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("max_pool2d", (2, 2, 4, 6), {"kernel_size": 2}),
    ("max_pool2d", (1, 2, 5, 5), {"kernel_size": 3, "stride": 1, "padding": 1}),
    ("max_pool2d", (1, 2, 5, 6), {"kernel_size": (2, 3), "stride": (2, 2), "ceil_mode": True}),
    ("max_pool2d", (1, 2, 4, 5), {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}),
    ("max_pool2d", (1, 2, 3, 4), {"kernel_size": (3, 4)}),
    ("max_pool2d", (1, 2, 3, 4), {"kernel_size": 5, "stride": 3, "ceil_mode": True}),
    ("max_pool1d", (1, 2, 3), {"kernel_size": 6, "stride": 5, "padding": 1, "ceil_mode": True}),
    ("max_pool2d", (1, 1, 6, 7), {"kernel_size": 5, "stride": 2, "padding": 1}),
    ("max_pool3d", (1, 1, 4, 2, 3), {"kernel_size": 2}),
    ("adaptive_max_pool1d", (1, 2, 7), {"output_size": 3}),
    ("adaptive_max_pool2d", (1, 2, 5, 6), {"output_size": (2, 4)}),
    ("adaptive_max_pool2d", (2, 2, 3, 3), {"output_size": 1}),
    ("adaptive_max_pool2d", (1, 1, 2, 3), {"output_size": (3, 5)}),
    ("adaptive_max_pool3d", (1, 1, 3, 4, 2), {"output_size": (2, 2, 1)}),
]
#: Options of ours, and the corresponding options of PyTorch.
AVERAGES: list[Any] = [
    ("avg_pool1d", (1, 2, 7), {"kernel_size": 3, "stride": 2}, {}),
    (
        "avg_pool1d", (1, 2, 7), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"count_include_pad": False},
    ),
    ("avg_pool2d", (2, 2, 4, 6), {"kernel_size": 2}, {}),
    ("avg_pool2d", (1, 2, 5, 5), {"kernel_size": 3, "stride": 1, "padding": 1, "exclusive": False},
     {"count_include_pad": True}),
    ("avg_pool2d", (1, 2, 5, 6), {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True},
     {"count_include_pad": False}),
    ("avg_pool2d", (1, 2, 5, 6),
     {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "exclusive": False},
     {"count_include_pad": True}),
    ("avg_pool2d", (1, 2, 4, 4), {"kernel_size": 2, "divisor_override": 3}, {}),
    ("avg_pool2d", (1, 2, 3, 4), {"kernel_size": (3, 4)}, {}),
    ("avg_pool2d", (1, 2, 3, 4), {"kernel_size": 5, "stride": 3, "ceil_mode": True}, {}),
    ("avg_pool1d", (1, 2, 3),
     {"kernel_size": 6, "stride": 5, "padding": 1, "ceil_mode": True, "exclusive": False},
     {"count_include_pad": True}),
    ("avg_pool3d", (1, 1, 4, 2, 3), {"kernel_size": 2}, {}),
    ("adaptive_avg_pool1d", (1, 2, 7), {"output_size": 3}, {}),
    ("adaptive_avg_pool2d", (1, 2, 5, 6), {"output_size": (2, 4)}, {}),
    ("adaptive_avg_pool2d", (2, 2, 3, 3), {"output_size": 1}, {}),
    ("adaptive_avg_pool2d", (1, 1, 2, 3), {"output_size": (3, 5)}, {}),
    ("adaptive_avg_pool3d", (1, 1, 3, 4, 2), {"output_size": (2, 2, 1)}, {}),
]  # fmt: skip


def _call(name: str, options: Any) -> Any:
    return lambda x: getattr(F, name)(x, **options)


def _pytorchs(name: str, options: Any) -> Any:
    return lambda torch, x: getattr(torch.nn.functional, name)(x, **options)


for name, shape, options in MAXIMA:
    put(
        f"{name} {shape} {options}",
        _call(name, options),
        apart(*shape),
        torch=_pytorchs(name, options),
    )
for name, shape, options, other in AVERAGES:
    theirs = {key: value for key, value in options.items() if key != "exclusive"} | other
    put(
        f"{name} {shape} {options}",
        _call(name, options),
        apart(*shape),
        torch=_pytorchs(name, theirs),
    )
for name in ("max_pool2d", "avg_pool2d"):
    for options in (
        {"kernel_size": 2, "data_format": "NHWC"},
        {"kernel_size": 3, "stride": 2, "padding": "SAME"},
        {"kernel_size": 2, "padding": [[0, 0], [0, 0], [1, 0], [0, 1]]},
    ):
        put(f"{name} {options}", _call(name, options), apart(1, 3, 4, 2))


def _gradient(f: Any) -> Any:
    """Return the gradient of a sum of cubes; its derivatives reach the rules of the rules."""
    return lambda x: ol.grad(lambda x: np.sum(f(x) ** 3))(x)


for name in ("max_pool2d", "avg_pool2d"):
    for options in (
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (3, 4)},
    ):
        put(f"gradient of {name} {options}", _gradient(_call(name, options)), apart(1, 2, 3, 4))
put(
    "square of the gradient of max_pool2d",
    lambda x: _gradient(_call("max_pool2d", {"kernel_size": 2}))(x) ** 2,
    apart(1, 2, 3, 4),
)
put(
    "gradient of max_pool2d with many elements a window",
    _gradient(_call("max_pool2d", {"kernel_size": (5, 4), "stride": 1})),
    apart(1, 1, 5, 5),
)
