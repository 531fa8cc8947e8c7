"""Capture traces the array operations of a call into a plan, which replays them."""

from optlab.backend.namespaces import set_module as _set_module
from optlab.plan.block_capture import capture_blocks
from optlab.plan.blocks import BlockPlan
from optlab.plan.capture import capture, capture_value_and_grad
from optlab.plan.executors import use_executor
from optlab.plan.plan import Plan
from optlab.plan.writer import CaptureRefusedError

__all__ = [
    "BlockPlan", "CaptureRefusedError", "Plan", "capture", "capture_blocks",
    "capture_value_and_grad", "use_executor",
]  # fmt: skip

_set_module(__name__)
