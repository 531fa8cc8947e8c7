"""Derivative rule of a transfer between devices: the gradient is transferred back."""

from __future__ import annotations

from optlab.autograd.operation import as_one, rule
from optlab.backend.device import moved

TO_DEVICE = rule(
    moved,
    lambda g, device, origin: as_one(moved, g, device=origin, origin=device),
    static="device origin",
)
