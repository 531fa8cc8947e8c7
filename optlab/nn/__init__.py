"""Floor 3, layers: parameters, layers, losses, initial values and gradient clipping."""

from optlab.backend.faces import missing as _missing
from optlab.nn import functional, initializer
from optlab.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from optlab.nn.containers import LayerDict, LayerList, ParameterList, Sequential
from optlab.nn.layer import Layer
from optlab.nn.layers import CrossEntropyLoss, Linear, ReLU, Tanh
from optlab.nn.parameter import Parameter

__all__ = [
    "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "CrossEntropyLoss", "Layer",
    "LayerDict", "LayerList", "Linear", "Parameter", "ParameterList", "ReLU", "Sequential", "Tanh",
    "functional", "initializer",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise _missing("optlab.nn", name, __all__)


def __dir__() -> list[str]:
    return __all__
