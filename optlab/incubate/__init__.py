"""The wrappers of optimizers under Paddle's module path.

Paddle has ``paddle.incubate.LookAhead`` and ``paddle.incubate.optimizer.LookAhead``. All names are
re-exported from `optlab.optimizer`.
"""

from optlab.backend.namespaces import missing as _missing
from optlab.incubate import optimizer
from optlab.optimizer import LookAhead, ModelAverage

__all__ = ["LookAhead", "ModelAverage", "optimizer"]


def __getattr__(name: str) -> object:
    raise _missing("optlab.incubate", name, __all__)


def __dir__() -> list[str]:
    return __all__
