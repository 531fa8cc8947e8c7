"""Recording a run, and the trace that holds what was recorded."""

from optlab.backend.namespaces import set_module as _set_module
from optlab.trace.recorder import record
from optlab.trace.trace import Trace

__all__ = ["Trace", "record"]

_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
