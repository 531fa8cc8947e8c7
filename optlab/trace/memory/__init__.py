"""Memory: which bytes are alive over the course of a step, and why (``ol.memory``).

>>> import optlab as ol
>>> ol.seed(0)
>>> model = ol.nn.Sequential(ol.nn.Linear(64, 256), ol.nn.Tanh(), ol.nn.Linear(256, 10))
>>> optimizer = ol.optimizer.Adam(0.01, parameters=model.parameters())
>>> def step():
...     model(ol.ones([512, 64])).mean().backward()
...     optimizer.step()
...     optimizer.clear_grad()
>>> trace = ol.memory.report(step)
>>> trace.operation[trace.peak_event], trace.phase[trace.peak_event]
('tanh', 'backward')
"""

from optlab.autograd.checkpoint.prediction import Prediction
from optlab.backend.namespaces import set_module as _set_module
from optlab.trace.memory.holding import Holding
from optlab.trace.memory.reporting import ledger, predict, report
from optlab.trace.memory.trace import MemoryTrace

__all__ = ["Holding", "MemoryTrace", "Prediction", "ledger", "predict", "report"]

_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
