"""Wrappers: averages of weights, and optimizers around optimizers."""

from optlab.optimizer.wrappers.average import Averaged
from optlab.optimizer.wrappers.ema import ExponentialMovingAverage
from optlab.optimizer.wrappers.look_ahead import LookAhead
from optlab.optimizer.wrappers.model_average import ModelAverage
from optlab.optimizer.wrappers.pipeline import PipelineOptimizer
from optlab.optimizer.wrappers.recompute import RecomputeOptimizer
from optlab.optimizer.wrappers.sam import SAM
from optlab.optimizer.wrappers.wrapper import Wrapper, free_name, layers_of

__all__ = [
    "SAM",
    "Averaged",
    "ExponentialMovingAverage",
    "LookAhead",
    "ModelAverage",
    "PipelineOptimizer",
    "RecomputeOptimizer",
    "Wrapper",
    "free_name",
    "layers_of",
]
