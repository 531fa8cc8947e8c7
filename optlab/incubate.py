"""Where Paddle's documents keep the wrappers of optimizers: ``ol.incubate.LookAhead``.

They are those of `optlab.optimizer`, handed on.
"""

from __future__ import annotations

from optlab import optimizer as _optimizer
from optlab.backend.faces import missing as _missing

__all__ = [name for name in ("LookAhead", "ModelAverage") if name in _optimizer.__all__]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(_optimizer, name)
    raise _missing("optlab.incubate", name, __all__)


def __dir__() -> list[str]:
    return __all__
