"""Floor 2: capture writes the array operations of a call down as a plan, which replays them."""

from optlab.plan.capture import CaptureRefusedError, capture, capture_value_and_grad
from optlab.plan.plan import Plan

__all__ = ["CaptureRefusedError", "Plan", "capture", "capture_value_and_grad"]
