"""What several functions of networks share."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.creation import DEFAULT_DTYPE
from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import as_array

REDUCTIONS = ("mean", "sum", "none")


def scores(x: Any) -> Tensor:
    """Give scores as a Tensor of floating numbers."""
    scores: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    return scores if scores.dtype.kind == "f" else scores.astype(DEFAULT_DTYPE)


def no_name(name: Any) -> None:
    """Refuse a name for a result: layers and parameters have names, results have none."""
    if name is not None:
        raise TypeError(
            f"name={name!r}: the results of functions have no names here; name the layer or the "
            "parameter, or leave name out."
        )


def channel_axis(data_format: str, ndim: int, function: str) -> int:
    """Give the axis of the channels: 1 for 'NCHW' and its like, the last for 'NHWC'."""
    formats = ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")
    if data_format not in formats:
        raise ValueError(
            f"{function} takes data_format={', '.join(map(repr, formats))}; got {data_format!r}."
        )
    return 1 if data_format.startswith("NC") else ndim - 1


def reduced(losses: Any, reduction: str) -> Tensor:
    """Give the mean or the sum of losses, or the losses themselves."""
    if reduction == "mean":
        return np.mean(losses)  # type: ignore[no-any-return]
    if reduction == "sum":
        return np.sum(losses)  # type: ignore[no-any-return]
    check_reduction(reduction)
    return losses  # type: ignore[no-any-return]


def check_reduction(reduction: str, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    """Refuse a reduction that is none."""
    if reduction not in allowed:
        *others, last = map(repr, allowed)
        raise ValueError(f"reduction must be {', '.join(others)} or {last}; got {reduction!r}.")


def same_shape(function: str, **arrays: Any) -> None:
    """Refuse arrays of different shapes: a loss that broadcasts hides a mistake."""
    shapes = {name: np.shape(x) for name, x in arrays.items()}
    if len(set(shapes.values())) > 1:
        given = " and ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"{function} compares element by element and got {given}: reshape one to the shape of "
            "the other."
        )
