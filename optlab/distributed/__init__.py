"""Floor 3, the documents' place of `recompute`: ``optlab.distributed.fleet.utils``.

optlab runs in one process: of ``paddle.distributed`` there is only what needs no other.
"""

from optlab.backend.namespaces import missing as _missing
from optlab.distributed import fleet

__all__ = ["fleet"]

_ONE_PROCESS = (
    "ParallelEnv", "all_gather", "all_reduce", "barrier", "broadcast", "get_rank", "get_world_size",
    "init_parallel_env", "launch", "spawn",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _ONE_PROCESS:
        said = f"optlab.distributed has no {name!r}: optlab runs in one process. Leave it out."
        raise AttributeError(said, name=name, obj=None)
    raise _missing("optlab.distributed", name, __all__)


def __dir__() -> list[str]:
    return __all__
