"""Memory of a run: the report, its tables, and the trace of bytes by role (`ol.memory`)."""

from optlab.autograd.checkpoint.prediction import Prediction
from optlab.backend.namespaces import set_module as _set_module
from optlab.trace.memory.holding import Holding
from optlab.trace.memory.reporting import ledger, predict, report
from optlab.trace.memory.trace import MemoryTrace

__all__ = ["Holding", "MemoryTrace", "Prediction", "ledger", "predict", "report"]

_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
