"""Capture traces the array operations of a call into a plan, which replays them."""

from optlab.backend.namespaces import set_module as _set_module
from optlab.plan.block_capture import capture_blocks
from optlab.plan.blocks import BlockPlan
from optlab.plan.capture import capture, capture_value_and_grad
from optlab.plan.executors import use_executor
from optlab.plan.javascript.module import javascript_module
from optlab.plan.plan import Plan
from optlab.plan.tracer import CaptureError

__all__ = [
    "BlockPlan", "CaptureError", "Plan", "capture", "capture_blocks",
    "capture_value_and_grad", "javascript_module", "use_executor",
]  # fmt: skip

_set_module(__name__)
