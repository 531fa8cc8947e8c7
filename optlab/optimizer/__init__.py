"""Floor 3, optimizers: the step, the update rules and the regularizers."""

from optlab.backend.faces import missing as _missing
from optlab.optimizer import lr, regularizer
from optlab.optimizer.adam import Adam
from optlab.optimizer.momentum import Momentum
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.rmsprop import RMSProp
from optlab.optimizer.settings import REQUIRED
from optlab.optimizer.sgd import SGD
from optlab.optimizer.step import Update

__all__ = [
    "REQUIRED",
    "SGD",
    "Adam",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "Update",
    "lr",
    "regularizer",
]


def __getattr__(name: str) -> object:
    raise _missing("optlab.optimizer", name, __all__)


def __dir__() -> list[str]:
    return __all__
