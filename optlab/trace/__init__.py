"""Recording a run, and the trace that holds what was recorded."""

from optlab.trace.recorder import record
from optlab.trace.trace import Trace

__all__ = ["Trace", "record"]


def __dir__() -> list[str]:
    return __all__
