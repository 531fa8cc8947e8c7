"""The documents' place of `recompute`: ``optlab.distributed.fleet.utils``."""

from optlab.autograd.checkpoint.recompute import recompute
from optlab.backend.namespaces import missing as _missing
from optlab.distributed.fleet import utils

__all__ = ["recompute", "utils"]

_ONE_PROCESS = ("DistributedStrategy", "distributed_model", "distributed_optimizer", "init")


def __getattr__(name: str) -> object:
    if name in _ONE_PROCESS:
        said = (
            f"optlab.distributed.fleet has no {name!r}: optlab runs in one process. Use the model "
            "and the optimizer as they are."
        )
        raise AttributeError(said, name=name, obj=None)
    raise _missing("optlab.distributed.fleet", name, __all__)


def __dir__() -> list[str]:
    return __all__
