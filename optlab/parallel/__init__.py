"""Floor 3, many ranks: simulated ones in this process, and those of MPI by mpi4py.

A world is mpi4py's communicator as it is, that of `LocalWorld`, whose ranks are threads, or
`nccl_world`: MPI's, with NCCL for the arrays of GPUs.
"""

from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.rank_errors import CommunicationError, DeadlockError, RankError, StalledError
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.parallel.data_parallel import (
    DataParallel,
    GradientAverage,
    average_gradients,
    broadcast,
)
from optlab.parallel.launcher import launch
from optlab.parallel.local.board import ANY_SOURCE, ANY_TAG
from optlab.parallel.local.comm import LocalComm
from optlab.parallel.local.requests import Request, Status
from optlab.parallel.local.world import LocalWorld
from optlab.parallel.nccl import NcclWorld, nccl_world

__all__ = [
    "ANY_SOURCE", "ANY_TAG", "CommunicationError", "DataParallel", "DeadlockError",
    "GradientAverage", "LocalComm", "LocalWorld", "NcclWorld", "RankError", "Request",
    "StalledError", "Status", "average_gradients", "broadcast", "launch", "nccl_world",
]  # fmt: skip

_explain_all(globals())
_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.parallel", name, __all__)


def __dir__() -> list[str]:
    return __all__
