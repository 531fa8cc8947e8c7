"""Cases of activations."""

from __future__ import annotations

from typing import Any

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

#: Name, options, PyTorch's name (or None for the same), PyTorch's options.
ELEMENTWISE: list[Any] = [
    ("relu", {}, None, {}),
    ("relu6", {}, None, {}),
    ("hardtanh", {}, None, {}),
    ("hardtanh", {"min": -0.3, "max": 2.2}, None, {"min_val": -0.3, "max_val": 2.2}),
    ("hardsigmoid", {"slope": 1 / 6}, None, {}),
    ("hardswish", {}, None, {}),
    ("leaky_relu", {}, None, {}),
    ("leaky_relu", {"negative_slope": 0.0}, None, {"negative_slope": 0.0}),
    ("leaky_relu", {"negative_slope": -0.4}, None, {"negative_slope": -0.4}),
    ("elu", {}, None, {}),
    ("elu", {"alpha": 0.3}, None, {"alpha": 0.3}),
    ("selu", {}, None, {}),
    ("celu", {}, None, {}),
    ("celu", {"alpha": 2.3}, None, {"alpha": 2.3}),
    ("hardshrink", {}, None, {"lambd": 0.5}),
    ("softshrink", {"threshold": 0.7}, None, {"lambd": 0.7}),
    ("tanhshrink", {}, None, {}),
    ("thresholded_relu", {}, "threshold", {"threshold": 1.0, "value": 0.0}),
    ("thresholded_relu", {"value": 3.0}, "threshold", {"threshold": 1.0, "value": 3.0}),
    ("tanh", {}, None, {}),
    ("sigmoid", {}, None, {}),
    ("log_sigmoid", {}, "logsigmoid", {}),
    ("softplus", {}, None, {}),
    ("softplus", {"beta": 3.0, "threshold": 4.0}, None, {"beta": 3.0, "threshold": 4.0}),
    ("silu", {}, None, {}),
    ("swish", {}, "silu", {}),
    ("mish", {}, None, {}),
    ("softsign", {}, None, {}),
    ("gelu", {}, None, {}),
    ("gelu", {"approximate": True}, None, {"approximate": "tanh"}),
    ("glu", {}, None, {}),
    ("glu", {"axis": 0}, None, {"dim": 0}),
    ("softmax", {}, None, {"dim": -1}),
    ("softmax", {"axis": 0}, None, {"dim": 0}),
    ("log_softmax", {"axis": 0}, None, {"dim": 0}),
]


def _elementwise(name: str, options: Any, theirs: str | None, their_options: Any) -> None:
    f = getattr(F, name)
    given = ", ".join(f"{key}={value}" for key, value in options.items())
    put(
        f"{name}({given})",
        lambda x: f(x, **options),
        4 * numbers(6, 4),
        torch=lambda torch, x: getattr(torch.nn.functional, theirs or name)(x, **their_options),
    )
    if name not in ("glu", "softmax", "log_softmax"):
        put(f"{name}({given}) of one number", lambda x: f(x, **options), numbers())


for row in ELEMENTWISE:
    _elementwise(*row)

put("erf", F.erf, 3 * numbers(6, 4), torch=lambda torch, x: torch.special.erf(x))
put("maxout", lambda x: F.maxout(x, 2), numbers(2, 4, 3))
put("maxout of the last axis", lambda x: F.maxout(x, 3, axis=-1), numbers(2, 6))
put(
    "prelu with one weight",
    F.prelu,
    numbers(2, 3),
    numbers(1),
    torch=lambda torch, x, w: torch.nn.functional.prelu(x, w),
)
put(
    "prelu with a weight a channel",
    F.prelu,
    numbers(2, 3, 4),
    numbers(3),
    torch=lambda torch, x, w: torch.nn.functional.prelu(x, w),
)
put(
    "prelu with the channels last",
    lambda x, w: F.prelu(x, w, "NHWC"),
    numbers(2, 3, 4),
    numbers(4),
)
