"""Cases of losses."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

LABELS = np.array([2, 0, 1, 2, 2])
SOME = np.array([2, -100, 1, 0, -100])
GRID = np.array([[[2, 0]], [[1, 1]]])  # one label per pixel of an image
WEIGHTS = np.array([0.5, 2.0, 1.25])
REDUCTIONS = ["mean", "sum", "none"]


def _entropy(
    label: str, labels: Any, shape: Any, theirs: bool, axis: int = 1, **options: Any
) -> None:
    """Add a case of cross entropy; PyTorch has the classes on axis 1."""
    common = {"ignore_index", "reduction", "label_smoothing"}

    def by_torch(torch: Any, x: Any) -> Any:
        kept = {key: value for key, value in options.items() if key in common}
        if options.get("weight") is not None:
            kept["weight"] = torch.tensor(options["weight"]).to(x.dtype)
        moved = x.movedim(axis, 1) if x.ndim > 1 else x
        return torch.nn.functional.cross_entropy(moved, torch.tensor(labels), **kept)

    f = F.cross_entropy
    put(
        f"cross_entropy {label}",
        lambda x: f(x, labels, axis=axis, **options),
        numbers(*shape),
        torch=by_torch if theirs else None,
    )


for reduction in REDUCTIONS:
    _entropy(f"{reduction}", LABELS, (5, 3), True, reduction=reduction)
    _entropy(f"with ignored rows, {reduction}", SOME, (5, 3), True, reduction=reduction)
    _entropy(f"with weights, {reduction}", SOME, (5, 3), True, weight=WEIGHTS, reduction=reduction)
    _entropy(f"smoothed, {reduction}", SOME, (5, 3), True, label_smoothing=0.2, reduction=reduction)
    _entropy(f"of pictures, {reduction}", GRID, (2, 3, 1, 2), True, reduction=reduction)
    _entropy(f"of pictures, classes last, {reduction}", GRID, (2, 1, 2, 3), True, axis=-1,
             reduction=reduction)  # fmt: skip
    _entropy(f"a class ignored, {reduction}", LABELS, (5, 3), True, ignore_index=2,
             reduction=reduction)  # fmt: skip
_entropy("smoothed with weights", LABELS, (5, 3), False, label_smoothing=0.2, weight=WEIGHTS)
_entropy("of one row", np.array(1), (3,), True, axis=0)
_entropy("of a column of labels", LABELS[:, None], (5, 3), False, reduction="none")

SOFT = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
for reduction in REDUCTIONS:
    put(
        f"cross_entropy soft, {reduction}",
        lambda x, q, r=reduction: F.cross_entropy(x, q, soft_label=True, reduction=r),
        numbers(2, 3),
        SOFT + 0.01,
        torch=None
        if reduction == "none"
        else lambda torch, x, q, r=reduction: torch.nn.functional.cross_entropy(x, q, reduction=r),
    )
    put(
        f"cross_entropy soft with weights, {reduction}",
        lambda x, r=reduction: F.cross_entropy(
            x, SOFT, weight=WEIGHTS, soft_label=True, reduction=r
        ),
        numbers(2, 3),
    )
    put(
        f"cross_entropy of probabilities, {reduction}",
        lambda x, r=reduction: F.cross_entropy(
            x, SOME, weight=WEIGHTS, use_softmax=False, reduction=r
        ),
        np.abs(numbers(5, 3)) + 0.1,
    )
put(
    "cross_entropy soft of the first axis, smoothed",
    lambda x: F.cross_entropy(x, SOFT.T, soft_label=True, axis=0, label_smoothing=0.1),
    numbers(3, 2),
    torch=lambda torch, x: torch.nn.functional.cross_entropy(
        x.T, torch.tensor(SOFT).to(x.dtype), label_smoothing=0.1
    ),
)


def _with_softmax(label: Any, **options: Any) -> Any:
    """Return a function of logits: the losses and the probabilities, side by side."""

    def both(x: Any) -> Any:
        given = {"return_softmax": True, **options}
        loss, softmax = F.softmax_with_cross_entropy(x, label, **given)
        return np.concatenate([loss, softmax], axis=options.get("axis", -1))

    return both


put(
    "softmax_with_cross_entropy",
    _with_softmax(SOME[:, None]),
    numbers(5, 3),
    torch=lambda torch, x: torch.cat(
        [
            torch.nn.functional.cross_entropy(x, torch.tensor(SOME), reduction="none")[:, None],
            torch.softmax(x, 1),
        ],
        1,
    ),
)
put(
    "softmax_with_cross_entropy of pictures",
    _with_softmax(GRID, axis=1, ignore_index=0),
    numbers(2, 3, 1, 2),
    torch=lambda torch, x: torch.cat(
        [
            torch.nn.functional.cross_entropy(
                x, torch.tensor(GRID), reduction="none", ignore_index=0
            )[:, None],
            torch.softmax(x, 1),
        ],
        1,
    ),
)
put(
    "softmax_with_cross_entropy, soft labels",
    lambda x, q: F.softmax_with_cross_entropy(x, q, soft_label=True, axis=0),
    numbers(3, 2),
    SOFT.T,
    torch=lambda torch, x, q: (-q * torch.log_softmax(x, 0)).sum(0, keepdim=True),
)
put(
    "cross_entropy of probabilities, smoothed",
    lambda x: F.cross_entropy(x, LABELS, use_softmax=False, label_smoothing=0.1),
    np.abs(numbers(5, 3)) + 0.1,
)
put(
    "cross_entropy of probabilities, soft",
    lambda x: F.cross_entropy(x, SOFT, soft_label=True, use_softmax=False),
    np.abs(numbers(2, 3)) + 0.1,
)

for reduction in REDUCTIONS:
    put(
        f"nll_loss {reduction}",
        lambda x, r=reduction: F.nll_loss(x, LABELS, reduction=r),
        numbers(5, 3),
        torch=lambda torch, x, r=reduction: torch.nn.functional.nll_loss(
            x, torch.tensor(LABELS), reduction=r
        ),
    )
    put(
        f"nll_loss with weights, {reduction}",
        lambda x, r=reduction: F.nll_loss(x, GRID, WEIGHTS, 2, r),
        numbers(2, 3, 1, 2),
        torch=lambda torch, x, r=reduction: torch.nn.functional.nll_loss(
            x, torch.tensor(GRID), torch.tensor(WEIGHTS).to(x.dtype), ignore_index=2, reduction=r
        ),
    )

#: Name, options, PyTorch's name, PyTorch's options, low and high for the labels.
PAIRED: list[Any] = [
    ("mse_loss", {}, None, {}, -2, 2),
    ("l1_loss", {}, None, {}, -2, 2),
    ("smooth_l1_loss", {"delta": 0.7}, "huber_loss", {"delta": 0.7}, -2, 2),
    ("smooth_l1_loss", {"delta": 0.7, "is_huber": False}, None, {"beta": 0.7}, -2, 2),
    ("huber_loss", {"delta": 0.4}, None, {"delta": 0.4}, -2, 2),
    ("binary_cross_entropy_with_logits", {}, None, {}, 0, 1),
    ("kl_div", {}, None, {}, 0.1, 1),
    ("kl_div", {"log_target": True}, None, {"log_target": True}, -2, 2),
]


def _paired(name: str, options: Any, theirs: str, their_options: Any, low: Any, high: Any) -> None:
    f = getattr(F, name)
    put(
        f"{name}({', '.join(f'{key}={value}' for key, value in options.items())})",
        lambda x, y: f(x, y, **options),
        numbers(3, 4) + 0.1,
        numbers(4, 3, low=low, high=high).T,
        torch=lambda torch, x, y: getattr(torch.nn.functional, theirs)(x, y, **their_options),
    )


for name, options, theirs, their_options, low, high in PAIRED:
    for reduction in ["mean", "sum", "none", *(["batchmean"] if name == "kl_div" else [])]:
        also = {"reduction": reduction}
        _paired(name, options | also, theirs or name, their_options | also, low, high)

SHARES = numbers(3, 4, low=0.1, high=0.9)
ELEMENT_WEIGHTS = numbers(3, 4, low=0.5, high=2.0)
put(
    "binary_cross_entropy",
    F.binary_cross_entropy,
    SHARES,
    SHARES[::-1],
    torch=lambda torch, x, y: torch.nn.functional.binary_cross_entropy(x, y),
)
put(
    "binary_cross_entropy with weights",
    lambda x: F.binary_cross_entropy(x, SHARES[::-1], ELEMENT_WEIGHTS, "none"),
    SHARES,
)
put(
    "binary_cross_entropy_with_logits with weights",
    lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, "sum", p),
    numbers(3, 4),
    SHARES,
    ELEMENT_WEIGHTS,
    numbers(4, low=0.5, high=3.0),
)
put(
    "binary_cross_entropy_with_logits with constant weights",
    lambda x: F.binary_cross_entropy_with_logits(x, SHARES, ELEMENT_WEIGHTS, "sum", SHARES),
    numbers(3, 4),
    torch=lambda torch, x: torch.nn.functional.binary_cross_entropy_with_logits(
        x,
        torch.tensor(SHARES).to(x.dtype),
        torch.tensor(ELEMENT_WEIGHTS).to(x.dtype),
        reduction="sum",
        pos_weight=torch.tensor(SHARES).to(x.dtype),
    ),
)

SIDES = np.array([[1.0, -1.0, 1.0, -1.0]] * 3)
for reduction in REDUCTIONS:
    put(
        f"hinge_embedding_loss {reduction}",
        lambda x, r=reduction: F.hinge_embedding_loss(x, SIDES, 0.8, r),
        numbers(3, 4),
        torch=lambda torch, x, r=reduction: torch.nn.functional.hinge_embedding_loss(
            x, torch.tensor(SIDES).to(x.dtype), 0.8, reduction=r
        ),
    )
    put(
        f"margin_ranking_loss {reduction}",
        lambda x, y, r=reduction: F.margin_ranking_loss(x, y, SIDES, 0.3, r),
        numbers(3, 4),
        numbers(4, 3).T,
        torch=lambda torch, x, y, r=reduction: torch.nn.functional.margin_ranking_loss(
            x, y, torch.tensor(SIDES).to(x.dtype), 0.3, reduction=r
        ),
    )
put(
    "soft_margin_loss",
    lambda x: F.soft_margin_loss(x, SIDES),
    numbers(3, 4),
    torch=lambda torch, x: torch.nn.functional.soft_margin_loss(x, torch.tensor(SIDES).to(x.dtype)),
)
