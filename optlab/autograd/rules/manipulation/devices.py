"""Derivative rule of a transfer between devices: the gradient is transferred back."""

from __future__ import annotations

from optlab.autograd.operation import as_single_operation, rule
from optlab.backend.device import moved

TO_DEVICE = rule(
    moved,
    lambda g, device, origin: as_single_operation(moved, g, device=origin, origin=device),
    static="device origin",
)
