"""The optimizers of ``paddle.incubate.optimizer``: those of `optlab.optimizer`, handed on."""

from optlab.backend.faces import missing as _missing
from optlab.optimizer import LBFGS, LookAhead, ModelAverage, RecomputeOptimizer

__all__ = ["LBFGS", "LookAhead", "ModelAverage", "RecomputeOptimizer"]


def __getattr__(name: str) -> object:
    raise _missing("optlab.incubate.optimizer", name, __all__)


def __dir__() -> list[str]:
    return __all__
