"""Cases of losses of probabilities, pairs and triplets, and of gates."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

SIGNS = np.array([1, -1, -1])
CLASSES = np.array([0, 3, 2])
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.25])
HOLDS = np.array([[1.0, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]])


def _same(name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return our function with constants after its arrays, and PyTorch's."""

    def ours(*arrays: Any) -> Any:
        return getattr(F, name)(*arrays, *args, **options)

    def theirs(torch: Any, *arrays: Any) -> Any:
        given = [
            torch.tensor(x, dtype=arrays[0].dtype if x.dtype.kind == "f" else None) for x in args
        ]
        named = {
            key: torch.tensor(x, dtype=arrays[0].dtype) if isinstance(x, np.ndarray) else x
            for key, x in options.items()
        }
        return getattr(torch.nn.functional, name)(*arrays, *given, **named)

    return ours, theirs


for reduction in ("mean", "sum", "none"):
    ours, theirs = _same("cosine_embedding_loss", SIGNS, margin=0.1, reduction=reduction)
    put(f"cosine_embedding_loss {reduction}", ours, numbers(3, 4), numbers(3, 4) + 0.3,
        torch=theirs)  # fmt: skip
for options in ({}, {"p": 2, "margin": 0.7}, {"weight": WEIGHTS, "reduction": "none"}):
    ours, theirs = _same("multi_margin_loss", CLASSES, **options)
    put(f"multi_margin_loss {sorted(options)}", ours, numbers(3, 4), torch=theirs)
for options in ({}, {"weight": WEIGHTS}, {"reduction": "none"}):
    name = {"weight": WEIGHTS} if "weight" in options else {}
    reduction = options.get("reduction", "mean")
    put(
        f"multi_label_soft_margin_loss {sorted(options)}",
        lambda x, options=options: F.multi_label_soft_margin_loss(x, HOLDS, **options),
        numbers(3, 4),
        torch=lambda torch, x, options=options: torch.nn.functional.multilabel_soft_margin_loss(
            x,
            torch.tensor(HOLDS, dtype=x.dtype),
            **{
                key: torch.tensor(value, dtype=x.dtype) if key == "weight" else value
                for key, value in options.items()
            },
        ),
    )
for options in ({}, {"margin": 0.5, "p": 3.0, "swap": True, "reduction": "none"}):
    put(
        f"triplet_margin_loss {sorted(options)}",
        lambda x, y, z, options=options: F.triplet_margin_loss(x, y, z, **options),
        numbers(3, 4), numbers(3, 4) + 0.6, numbers(3, 4) * 0.5 - 0.2,
        torch=lambda torch, x, y, z, options=options: torch.nn.functional.triplet_margin_loss(
            x, y, z, **options
        ),
    )  # fmt: skip
put(
    "triplet_margin_with_distance_loss",
    lambda x, y, z: F.triplet_margin_with_distance_loss(
        x, y, z, lambda a, b: np.sum((a - b) ** 2, axis=-1), reduction="none"
    ),
    numbers(3, 4), numbers(3, 4) + 0.6, numbers(3, 4) * 0.5 - 0.2,
)  # fmt: skip
put(
    "npair_loss",
    lambda x, y: F.npair_loss(x, y, [0, 1, 0], 0.01),
    numbers(3, 4),
    numbers(3, 4) * 0.5 + 0.1,
)
for shape in ((3, 4), (3, 1), (3,)):
    ours, theirs = _same("gaussian_nll_loss", full=True)
    put(f"gaussian_nll_loss {shape}", ours, numbers(3, 4), numbers(3, 4) + 0.3,
        numbers(*shape, low=0.5), torch=theirs)  # fmt: skip
for log_input in (True, False):
    put(
        f"poisson_nll_loss {log_input}",
        lambda x, y, log=log_input: F.poisson_nll_loss(x, y, log, True, reduction="none"),
        numbers(3, 4, low=0.3),
        numbers(3, 4, low=0.2, high=4.0),
        torch=lambda torch, x, y, log=log_input: torch.nn.functional.poisson_nll_loss(
            x, y, log_input=log, full=True, eps=1e-8, reduction="none"
        ),
    )
put("log_loss", lambda p: F.log_loss(p, HOLDS), numbers(3, 4, low=0.1, high=0.9))
put("dice_loss", lambda p: F.dice_loss(p, CLASSES[:, None]), numbers(3, 4, low=0.1, high=0.9))
put(
    "sigmoid_focal_loss",
    lambda x: F.sigmoid_focal_loss(x, HOLDS, np.array([2.0]), 0.3, 1.5),
    numbers(3, 4),
)
put("swiglu", F.swiglu, numbers(3, 4))
put("swiglu of two", F.swiglu, numbers(3, 4), numbers(3, 4) + 0.3)
for options in ({"norm_type": 2}, {"norm_type": 3.0, "stride": 1}, {"norm_type": np.inf}):
    put(
        f"lp_pool2d {options}",
        lambda x, options=options: F.lp_pool2d(x, kernel_size=2, **options),
        numbers(1, 2, 4, 4, low=0.5),
        torch=None
        if options["norm_type"] == np.inf
        else lambda torch, x, options=options: torch.nn.functional.lp_pool2d(
            x, kernel_size=2, **options
        ),
    )
put("lp_pool1d", lambda x: F.lp_pool1d(x, 1, 3, 2, 1, True), numbers(2, 1, 6, low=0.5))
put(
    "channel_shuffle",
    lambda x: F.channel_shuffle(x, 3),
    numbers(2, 6, 2, 1),
    torch=lambda torch, x: torch.nn.functional.channel_shuffle(x, 3),
)


def _drawn(x: Any) -> Any:
    ol.seed(5)
    return F.gumbel_softmax(x, 0.7, axis=0)


put("gumbel_softmax", _drawn, numbers(3, 4))
