"""Floor 3, optimizers: the step, the update rules and the regularizers."""

from optlab.backend.namespaces import elsewhere as _elsewhere
from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import not_called as _not_called
from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.optimizer import lr, regularizer
from optlab.optimizer.adadelta import Adadelta
from optlab.optimizer.adagrad import Adagrad
from optlab.optimizer.adam import Adam
from optlab.optimizer.adamax import Adamax
from optlab.optimizer.adamw import AdamW
from optlab.optimizer.asgd import ASGD
from optlab.optimizer.decayed_adagrad import DecayedAdagrad
from optlab.optimizer.distributed.dgc import DGCMomentum
from optlab.optimizer.dpsgd import Dpsgd
from optlab.optimizer.ftrl import Ftrl
from optlab.optimizer.lamb import Lamb
from optlab.optimizer.lars_momentum import LarsMomentum
from optlab.optimizer.lbfgs import LBFGS
from optlab.optimizer.lion import Lion
from optlab.optimizer.momentum import Momentum
from optlab.optimizer.muon import Muon
from optlab.optimizer.nadam import NAdam
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.radam import RAdam
from optlab.optimizer.rmsprop import RMSProp
from optlab.optimizer.rprop import Rprop
from optlab.optimizer.rule.hyperparameters import REQUIRED
from optlab.optimizer.sgd import SGD
from optlab.optimizer.step.rule_capture import capture_rule
from optlab.optimizer.step.step import Update
from optlab.optimizer.wrappers import (
    SAM,
    Averaged,
    ExponentialMovingAverage,
    LookAhead,
    ModelAverage,
    PipelineOptimizer,
    RecomputeOptimizer,
)

__all__ = [
    "ASGD",
    "LBFGS",
    "REQUIRED",
    "SAM",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Averaged",
    "DGCMomentum",
    "DecayedAdagrad",
    "Dpsgd",
    "ExponentialMovingAverage",
    "Ftrl",
    "Lamb",
    "LarsMomentum",
    "Lion",
    "LookAhead",
    "ModelAverage",
    "Momentum",
    "Muon",
    "NAdam",
    "Optimizer",
    "PipelineOptimizer",
    "RAdam",
    "RMSProp",
    "RecomputeOptimizer",
    "Rprop",
    "Update",
    "capture_rule",
    "lr",
    "regularizer",
]


_not_called(__name__, f"{__name__}.wrappers", f"{__name__}.distributed")
_explain_all(globals())
_set_module(__name__)
_set_module(f"{__name__}.wrappers")


def __getattr__(name: str) -> object:
    if _elsewhere(name) in lr.__all__:
        found = f"optlab.optimizer.lr.{_elsewhere(name)}"
        said = f"optlab.optimizer has no {name!r}: schedules are in lr. Write {found}."
        raise AttributeError(said, name=name, obj=None)
    raise _missing("optlab.optimizer", name, __all__)


def __dir__() -> list[str]:
    return __all__
