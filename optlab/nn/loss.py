"""Alias module of the loss layers, as in Paddle's documents: ``ol.nn.loss.MSELoss``."""

from optlab.backend.namespaces import missing as _missing
from optlab.nn import layers as _layers

__all__ = sorted(name for name in _layers.__all__ if name.endswith("Loss"))


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(_layers, name)
    raise _missing("optlab.nn.loss", name, __all__)


def __dir__() -> list[str]:
    return __all__
