"""Cases of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

#: Name, shape of x, of the weight, options; compared with PyTorch where it takes the same options.
CONVOLUTIONS: list[Any] = [
    ("conv1d", (2, 3, 6), (4, 3, 3), {}),
    ("conv1d", (1, 2, 7), (2, 1, 2), {"stride": 2, "padding": 1, "groups": 2}),
    ("conv2d", (2, 2, 4, 5), (3, 2, 2, 3), {}),
    ("conv2d", (2, 2, 4, 4), (20, 2, 3, 3), {}),  # not dense: many filters, few positions
    ("conv2d", (1, 2, 4, 4), (2, 2, 3, 3), {"padding": 1}),
    ("conv2d", (2, 2, 5, 4), (2, 2, 3, 2), {"stride": [2, 1], "padding": [1, 0]}),
    ("conv2d", (1, 2, 5, 5), (2, 2, 2, 2), {"dilation": 2, "padding": 1}),
    ("conv2d", (2, 4, 3, 4), (4, 2, 2, 2), {"groups": 2, "padding": 1}),
    ("conv2d", (2, 3, 4, 3), (3, 1, 2, 2), {"groups": 3, "stride": 2}),
    ("conv2d", (2, 3, 2, 3), (2, 3, 1, 1), {}),
    ("conv2d", (1, 2, 3, 3), (2, 2, 1, 1), {"stride": 2, "padding": 1}),
    ("conv2d", (1, 1, 3, 3), (1, 1, 3, 3), {}),
    ("conv3d", (1, 2, 3, 3, 2), (2, 2, 2, 2, 2), {"padding": [1, 0, 0]}),
    ("conv1d_transpose", (2, 3, 4), (3, 2, 3), {"stride": 2, "output_padding": 1}),
    ("conv2d_transpose", (2, 2, 2, 3), (2, 3, 3, 2), {}),
    ("conv2d_transpose", (1, 2, 3, 2), (2, 2, 3, 3), {"stride": 2, "padding": 1}),
    ("conv2d_transpose", (1, 4, 2, 2), (4, 1, 2, 2), {"groups": 2, "dilation": 2}),
    ("conv2d_transpose", (1, 2, 2, 2), (2, 2, 2, 2), {"stride": 3, "output_padding": [0, 2]}),
    ("conv1d_transpose", (1, 2, 3), (2, 2, 2), {"dilation": 3, "output_padding": 2}),
    (
        "conv1d_transpose",
        (1, 2, 4),
        (2, 2, 2),
        {"stride": 2, "padding": 1, "dilation": 5, "output_padding": 4},
    ),
    (
        "conv2d_transpose",
        (1, 2, 2, 3),
        (2, 2, 2, 2),
        {"padding": [1, 2], "dilation": [2, 4], "output_padding": [1, 3]},
    ),
    ("conv3d_transpose", (1, 2, 2, 2, 1), (2, 1, 2, 2, 2), {"stride": 2}),
]

#: Cases that PyTorch lacks, or spells differently.
OURS_ALONE: list[Any] = [
    ("conv1d", (1, 2, 6), (2, 2, 3), {"padding": [2, 0]}),
    ("conv1d", (1, 6, 2), (2, 2, 3), {"data_format": "NLC"}),
    ("conv2d", (1, 2, 4, 5), (2, 2, 2, 3), {"padding": "SAME", "stride": 2}),
    ("conv2d", (1, 4, 4, 2), (2, 2, 3, 3), {"data_format": "NHWC", "padding": [1, 0, 2, 1]}),
    ("conv2d_transpose", (1, 3, 2, 2), (2, 2, 3, 3), {"data_format": "NHWC", "padding": [0, 1]}),
    ("conv2d_transpose", (1, 2, 2, 3), (2, 2, 3, 3), {"padding": "SAME", "stride": 2}),
]


def _pytorchs(name: str, options: Any) -> Any:
    theirs = name if "transpose" not in name else f"conv_transpose{name[4:6]}"

    def call(torch: Any, x: Any, weight: Any, *bias: Any) -> Any:
        return getattr(torch.nn.functional, theirs)(x, weight, *bias, **options)

    return call


def _ours(name: str, options: Any) -> Any:
    return lambda x, weight, *bias: getattr(F, name)(x, weight, *bias, **options)


def _filters(name: str, weight: Any, options: Any) -> int:
    return weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]


for name, x, weight, options in CONVOLUTIONS + OURS_ALONE:
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
    torch = None if (name, x, weight, options) in OURS_ALONE else _pytorchs(name, given)
    words = f"{name} {x} {weight} {options or ''}"
    arrays = numbers(*x), numbers(*weight)
    put(words, _ours(name, options), *arrays, torch=torch)
    bias = numbers(_filters(name, weight, options))
    if len(x) < 5:
        put(f"{words} bias", _ours(name, options), *arrays, bias, torch=torch)

#: A constant operand that needs no gradient.
_X, _WEIGHT = numbers(2, 2, 3, 4), numbers(2, 2, 2, 2)
put("conv2d of fixed data", lambda w, b: F.conv2d(_X.astype(w.dtype), w, b), _WEIGHT, numbers(2))
put("conv2d with fixed filters", lambda x: F.conv2d(x, _WEIGHT.astype(x.dtype)), _X)

PATCHES: list[Any] = [
    ({"kernel_sizes": 2}, {"kernel_size": 2}),
    (
        {"kernel_sizes": [2, 3], "strides": [1, 2], "paddings": [1, 0], "dilations": [2, 1]},
        {"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 0), "dilation": (2, 1)},
    ),
]
for ours, theirs in PATCHES:
    put(
        f"unfold {ours}",
        lambda x, ours=ours: F.unfold(x, **ours),
        numbers(2, 2, 4, 5),
        torch=lambda torch, x, theirs=theirs: torch.nn.functional.unfold(x, **theirs),
    )
    count = F.unfold(numbers(1, 1, 4, 5), **ours).shape
    put(
        f"fold {ours}",
        lambda x, ours=ours: F.fold(x, [4, 5], **ours),
        numbers(2, count[1] * 2, count[2]),
        torch=lambda torch, x, theirs=theirs: torch.nn.functional.fold(x, (4, 5), **theirs),
    )

for name in ("pixel_shuffle", "pixel_unshuffle"):
    put(
        name,
        lambda x, name=name: getattr(F, name)(x, 2),
        numbers(2, 4, 2, 4),
        torch=lambda torch, x, name=name: getattr(torch.nn.functional, name)(x, 2),
    )
    put(
        f"{name} NHWC",
        lambda x, name=name: getattr(F, name)(x, 2, data_format="NHWC"),
        numbers(1, 2, 2, 4),
    )

for mode in ("constant", "reflect", "replicate", "circular"):
    for shape, widths in {(1, 2, 4): [1, 2], (1, 2, 3, 3): [1, 0, 2, 1]}.items():
        put(
            f"pad {mode} {widths}",
            lambda x, mode=mode, widths=widths: F.pad(x, widths, mode),
            numbers(*shape),
            torch=lambda torch, x, mode=mode, widths=widths: torch.nn.functional.pad(
                x, widths, mode
            ),
        )

put(
    "gradients of conv2d",
    lambda x, w: ol.grad(lambda x: np.sum(F.conv2d(x, w, stride=2, padding=1) ** 3))(x),
    numbers(1, 2, 3, 4),
    numbers(2, 1, 2, 2)[:, [0, 0]] * np.array([1.0, -0.5])[:, None, None],
)
