"""Learning-rate schedules, which depend on the epoch or on a metric."""

from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.optimizer.lr.base import LRScheduler
from optlab.optimizer.lr.cosine import CosineAnnealingDecay, CosineAnnealingWarmRestarts
from optlab.optimizer.lr.cyclic import CyclicLR, OneCycleLR
from optlab.optimizer.lr.decays import (
    ExponentialDecay,
    InverseTimeDecay,
    NaturalExpDecay,
    NoamDecay,
    PolynomialDecay,
)
from optlab.optimizer.lr.lambdas import LambdaDecay, MultiplicativeDecay
from optlab.optimizer.lr.plateau import ReduceOnPlateau
from optlab.optimizer.lr.step_decays import MultiStepDecay, PiecewiseDecay, StepDecay
from optlab.optimizer.lr.warmup import LinearLR, LinearWarmup

__all__ = [
    "CosineAnnealingDecay",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearLR",
    "LinearWarmup",
    "MultiStepDecay",
    "MultiplicativeDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "OneCycleLR",
    "PiecewiseDecay",
    "PolynomialDecay",
    "ReduceOnPlateau",
    "StepDecay",
]

_explain_all(globals())
_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.optimizer.lr", name, __all__)


def __dir__() -> list[str]:
    return __all__
