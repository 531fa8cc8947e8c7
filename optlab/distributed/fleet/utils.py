"""`optlab.recompute` under its documented path."""

from optlab.autograd.checkpoint.recompute import recompute
from optlab.backend.namespaces import missing as _missing

__all__ = ["recompute"]


def __getattr__(name: str) -> object:
    raise _missing("optlab.distributed.fleet.utils", name, __all__)


def __dir__() -> list[str]:
    return __all__
