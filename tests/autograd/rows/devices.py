"""Rows of transfers between devices."""

from __future__ import annotations

from typing import Any

import tests.guarded  # noqa: F401 - the import registers the device
from optlab.autograd.operation import as_single_operation
from optlab.backend.device import device_of, moved
from tests.autograd.rows.table import SHAPES, numbers, put


def away_and_back(x: Any) -> Any:
    """Compute a product on another device."""
    here = device_of(x)
    there = "cpu" if here == "guarded" else "guarded"
    away = as_single_operation(moved, x, device=there, origin=here)
    return as_single_operation(moved, away * away, device=here, origin=there) * x


for shape in SHAPES:
    put(moved, f"{shape}", away_and_back, numbers(shape))
