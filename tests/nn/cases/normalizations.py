"""Cases of normalizations, norms and cosine similarities."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from optlab.autograd.tensor.tensor import raw
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

MEAN = numbers(3)
VARIANCE = np.abs(numbers(3)) + 0.5
SHAPES = [(4, 3), (2, 3, 4), (2, 3, 2, 2)]


def _running(x: Any) -> Any:
    """Return running statistics that a call may overwrite, on the device of x."""
    return [ol.Tensor(np.zeros_like(raw(x), shape=(3,)) + start) for start in (0.5, 2.0)]


def _batch_norm(x: Any, w: Any = None, b: Any = None, **options: Any) -> Any:
    return F.batch_norm(x, *_running(x), w, b, **options)


def _theirs(torch: Any, x: Any, w: Any = None, b: Any = None, training: bool = True) -> Any:
    mean, variance = (torch.full((3,), value, dtype=x.dtype) for value in (0.5, 2.0))
    return torch.nn.functional.batch_norm(x, mean, variance, w, b, training=training)


for shape in SHAPES:
    put(
        f"batch_norm of {len(shape)} axes in training",
        lambda x, w, b: _batch_norm(x, w, b, training=True),
        numbers(*shape),
        numbers(3) + 3,
        numbers(3),
        torch=lambda torch, x, w, b: _theirs(torch, x, w, b),
    )
    put(
        f"batch_norm of {len(shape)} axes",
        _batch_norm,
        numbers(*shape),
        numbers(3) + 3,
        numbers(3),
        torch=lambda torch, x, w, b: _theirs(torch, x, w, b, training=False),
    )
put(
    "batch_norm without weights",
    lambda x: _batch_norm(x, training=True),
    numbers(4, 3),
    torch=lambda torch, x: _theirs(torch, x),
)
put(
    "batch_norm by running statistics, without weights",
    lambda x: _batch_norm(x),
    numbers(4, 3),
    torch=lambda torch, x: _theirs(torch, x, training=False),
)
put(
    "batch_norm with a bias alone",
    lambda x, b: _batch_norm(x, None, b, training=True),
    numbers(4, 3),
    numbers(3),
)
put(
    "batch_norm with the channels last",
    lambda x, w, b: _batch_norm(x, w, b, training=True, data_format="NHWC"),
    numbers(2, 2, 2, 3),
    numbers(3) + 3,
    numbers(3),
    torch=lambda torch, x, w, b: _theirs(torch, x.movedim(-1, 1), w, b).movedim(1, -1),
)

for lengths in [(4,), (3, 4)]:
    put(
        f"layer_norm over {lengths}",
        lambda x, w, b, lengths=lengths: F.layer_norm(x, list(lengths), w, b),
        numbers(2, 3, 4),
        numbers(*lengths) + 3,
        numbers(*lengths, low=-1),
        torch=lambda torch, x, w, b, lengths=lengths: torch.nn.functional.layer_norm(
            x, lengths, w, b
        ),
    )
    put(
        f"rms_norm over {lengths}",
        lambda x, w, lengths=lengths: F.rms_norm(x, lengths, w, 1e-3),
        numbers(2, 3, 4),
        numbers(*lengths) + 3,
        torch=lambda torch, x, w, lengths=lengths: torch.nn.functional.rms_norm(
            x, lengths, w, eps=1e-3
        ),
    )
put("layer_norm without weights", lambda x: F.layer_norm(x, 4), numbers(2, 4))
put("layer_norm of one vector", lambda x: F.layer_norm(x, 4), numbers(4))
put("rms_norm without weights", lambda x: F.rms_norm(x, 4), numbers(2, 4))

put(
    "group_norm",
    lambda x, w, b: F.group_norm(x, 2, 1e-3, w, b),
    numbers(2, 4, 3),
    numbers(4) + 3,
    numbers(4, low=-1),
    torch=lambda torch, x, w, b: torch.nn.functional.group_norm(x, 2, w, b, 1e-3),
)
put(
    "group_norm with the channels last",
    lambda x, w, b: F.group_norm(x, 2, weight=w, bias=b, data_format="NLC"),
    numbers(2, 3, 4),
    numbers(4) + 3,
    numbers(4, low=-1),
    torch=lambda torch, x, w, b: torch.nn.functional.group_norm(x.movedim(-1, 1), 2, w, b).movedim(
        1, -1
    ),
)
put(
    "instance_norm",
    lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=1e-3),
    numbers(2, 3, 2, 3),
    numbers(3) + 3,
    numbers(3),
    torch=lambda torch, x, w, b: torch.nn.functional.instance_norm(x, weight=w, bias=b, eps=1e-3),
)


def _all_outputs(name: str, x: Any) -> Any:
    """Return a weighted sum of all outputs of an operation, the statistics included."""
    from optlab.autograd.tensor.tensor import apply_several
    from optlab.nn.functional.norm import layer_norm

    parts = apply_several(getattr(layer_norm, name), (x,), {"axes": (1,), "epsilon": 0.1})
    return sum(part * (i + 1.5) for i, part in enumerate(parts))


put("every output of STANDARDIZE", lambda x: _all_outputs("STANDARDIZE", x), numbers(3, 4))
put("every output of RESCALE", lambda x: _all_outputs("RESCALE", x), numbers(3, 4))

for p in (2, 1, 3):
    put(
        f"normalize with p={p}",
        lambda x, p=p: F.normalize(x, p),
        numbers(3, 4) + 0.1,
        torch=lambda torch, x, p=p: torch.nn.functional.normalize(x, p),
    )
put(
    "normalize what is short",
    lambda x: F.normalize(x, axis=0, epsilon=5.0),
    numbers(2, 3),
    torch=lambda torch, x: torch.nn.functional.normalize(x, dim=0, eps=5.0),
)
put(
    "cosine_similarity",
    F.cosine_similarity,
    numbers(3, 4),
    numbers(4, 3).T,
    torch=lambda torch, x, y: torch.nn.functional.cosine_similarity(x, y),
)
for p in (2.0, 1.0, float("inf")):
    put(
        f"pairwise_distance with p={p}",
        lambda x, y, p=p: F.pairwise_distance(x, y, p, keepdim=True),
        numbers(3, 4),
        numbers(4, 3).T,
        torch=lambda torch, x, y, p=p: torch.nn.functional.pairwise_distance(x, y, p, keepdim=True),
    )
put(
    "bilinear",
    F.bilinear,
    numbers(2, 3),
    numbers(2, 4),
    numbers(5, 3, 4),
    numbers(1, 5),
    torch=lambda torch, x, y, w, b: torch.nn.functional.bilinear(x, y, w, b[0]),
)
put(
    "local_response_norm",
    lambda x: F.local_response_norm(x, 4, 0.3, 0.6, 1.2),
    numbers(2, 5, 3),
    torch=lambda torch, x: torch.nn.functional.local_response_norm(x, 4, 0.3, 0.6, 1.2),
)
