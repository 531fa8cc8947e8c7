"""Where Paddle's documents keep the wrappers of optimizers.

They write ``paddle.incubate.LookAhead`` or ``paddle.incubate.optimizer.LookAhead``. All names are
those of `optlab.optimizer`, handed on.
"""

from optlab.backend.faces import missing as _missing
from optlab.incubate import optimizer
from optlab.optimizer import LookAhead, ModelAverage

__all__ = ["LookAhead", "ModelAverage", "optimizer"]


def __getattr__(name: str) -> object:
    raise _missing("optlab.incubate", name, __all__)


def __dir__() -> list[str]:
    return __all__
