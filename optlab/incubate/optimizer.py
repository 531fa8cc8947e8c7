"""The optimizers of ``paddle.incubate.optimizer``, re-exported from `optlab.optimizer`."""

from optlab.backend.namespaces import missing as _missing
from optlab.optimizer import LBFGS, LookAhead, ModelAverage, RecomputeOptimizer

__all__ = ["LBFGS", "LookAhead", "ModelAverage", "RecomputeOptimizer"]


def __getattr__(name: str) -> object:
    raise _missing("optlab.incubate.optimizer", name, __all__)


def __dir__() -> list[str]:
    return __all__
