"""Recording a run, and the trace that holds what was recorded."""

from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.trace.differences import Difference, first_difference
from optlab.trace.influences import Hypergradient, hypergradient
from optlab.trace.recorder import record
from optlab.trace.store import TraceWarning
from optlab.trace.trace import Trace, load_trace

__all__ = [
    "Difference",
    "Hypergradient",
    "Trace",
    "TraceWarning",
    "first_difference",
    "hypergradient",
    "load_trace",
    "record",
]

_explain_all(globals())
_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
