"""The parts of a case: a function of arrays, the arrays, and the call of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A function of Tensors, the arrays to call it at, and the same function of PyTorch."""

    label: str
    f: Callable[..., Any]
    args: tuple[np.ndarray, ...]
    torch: Callable[..., Any] | None = None


CASES: dict[str, Case] = {}


def put(label: str, f: Callable[..., Any], *args: np.ndarray, torch: Any = None) -> None:
    """Add a case; `torch` is called with the module torch and Tensors of PyTorch."""
    CASES.setdefault(label, Case(label, f, args, torch))  # doctest collection imports files twice


def numbers(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Return fixed numbers, none of them near a kink of an activation."""
    drawn = np.random.default_rng((7, *shape)).uniform(low, high, shape)
    near_a_corner = np.abs(drawn * 2 - np.round(drawn * 2)) < 0.02
    return np.asarray(np.where(near_a_corner, drawn + 0.03, drawn))
