"""GPUs of many ranks: MPI's communicator, with NCCL for arrays that are on a GPU.

NCCL comes through `cupyx.distributed`. It has neither tags nor deadlines, and moves nothing but
arrays of GPUs, so MPI starts the ranks, carries objects and NumPy arrays, and watches who is there.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from optlab.backend.device import DeviceError, device_named, set_device
from optlab.backend.exchange import Exchange
from optlab.backend.extras import needed_for
from optlab.backend.rank_errors import RankError
from optlab.parallel.local.comm import LocalComm


class _Done:
    """Whether the GPU has come to a place in its work, asked as requests of MPI are."""

    def __init__(self, event: Any) -> None:
        self.event = event
        event.record()

    def Test(self) -> bool:
        return bool(self.event.done)


class NcclWorld:
    """A communicator that has the calls of MPI's, and moves arrays from GPU to GPU by NCCL.

    `nccl_world` makes it. All calls of mpi4py go to the communicator that it was made of. Arrays
    of GPUs are gathered and added in the order of the ranks, so that bits are those of MPI.

    Parameters
    ----------
    comm : communicator
        That of the ranks on the host.
    backend : cupyx.distributed.NCCLBackend
        That of the same ranks on their GPUs.
    event : type
        ``cupy.cuda.Event``.
    """

    def __init__(self, comm: Any, backend: Any, event: Any) -> None:
        self._comm, self._backend, self._event = comm, backend, event
        self.rank, self.size = comm.Get_rank(), comm.Get_size()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._comm, name)

    def __repr__(self) -> str:
        return f"<NcclWorld rank {self.rank} of {self.size}>"

    def gather_on_device(self, array: Any, found: Any) -> Any:
        """Write the flat arrays of all ranks into the rows of `found`; return a request."""
        own, rows = array.view(np.uint8), found.reshape(-1).view(np.uint8)  # NCCL lacks some dtypes
        self._backend.all_gather(own, rows, own.size)
        return _Done(self._event())

    def broadcast_on_device(self, array: Any, root: int) -> Any:
        """Overwrite a flat array with that of one rank; return a request."""
        self._backend.broadcast(array.view(np.uint8), root)
        return _Done(self._event())

    def abort(self) -> None:
        """End what runs on the GPU for this world; it cannot be used after this."""
        with contextlib.suppress(Exception):  # the error that led here is the one to be read
            self._backend._comm.abort()  # NCCLBackend has no public call for this


def nccl_world(comm: Any = None, device: int | None = None) -> NcclWorld:
    """Return a world whose ranks exchange the arrays of their GPUs by NCCL.

    Each rank has one GPU, which becomes its device for new Tensors (as by `ol.set_device`). The
    result is given where a communicator is: to `DataParallel`, `average_gradients`, `broadcast` and
    `DGCMomentum`, whose arrays then stay on the GPUs, and to `PipelineOptimizer`, whose messages
    have tags, which NCCL lacks, and go through the host. All ranks call it at the same time.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        ``MPI.COMM_WORLD``, which is the default; NCCL is started through it.
    device : int, optional
        The number of this rank's GPU. By default the ranks of a computer take its GPUs in turn.

    Returns
    -------
    NcclWorld

    Raises
    ------
    ModuleNotFoundError
        If mpi4py is not installed.
    DeviceError
        If CuPy, NCCL or the GPU is missing on this rank; the message says which.
    RankError
        If it is missing on another rank, which the message names.
    ValueError
        If two ranks have the same GPU, or `comm` is a part of the world.
    TypeError
        If `comm` is not a communicator of MPI.

    Notes
    -----
    Exchanges have the deadlines of those of MPI: before each one every rank says that it is there.
    `nccl_world` has been tested with stand-ins of CuPy and NCCL, **not on GPUs yet**.

    Examples
    --------
    In ``train.py``, run by ``mpiexec -n 4 python -m mpi4py train.py``::

        world = ol.parallel.nccl_world()
        model = ol.parallel.DataParallel(network(), world)

    Simulated ranks are threads of one process, and have no use for it:

    >>> import optlab as ol
    >>> ol.parallel.LocalWorld(1).run(ol.parallel.nccl_world)
    Traceback (most recent call last):
        ...
    optlab.parallel.RankError: rank 0 raised TypeError: nccl_world takes MPI.COMM_WORLD of ...
    """
    if comm is None:
        comm = _mpi().COMM_WORLD
    if isinstance(comm, (LocalComm, NcclWorld)) or not hasattr(comm, "Get_group"):
        raise TypeError(
            f"nccl_world takes MPI.COMM_WORLD of mpi4py; got {comm!r}. (Ranks of LocalWorld are "
            "threads that share a GPU: give their communicator as it is.)"
        )
    exchange = Exchange(comm, "nccl_world")
    if exchange.world_ranks != list(range(_mpi().COMM_WORLD.Get_size())):
        raise ValueError(
            "NCCL is started through MPI.COMM_WORLD, so nccl_world takes all of it, in its order; "
            f"this communicator has the ranks {exchange.world_ranks}."
        )
    cupy, distributed = _prepared(exchange, device)
    backend = None
    if exchange.size > 1:
        backend = distributed.init_process_group(exchange.size, exchange.rank, use_mpi=True)
    return NcclWorld(comm, backend, cupy.cuda.Event)


def _mpi() -> Any:
    with needed_for("nccl_world"):
        from mpi4py import MPI
    return MPI


def _prepared(exchange: Exchange, device: int | None) -> tuple[Any, Any]:
    """Return CuPy and cupyx.distributed, once every rank has a GPU of its own."""
    exchange.meet()
    hosts = [peer.host if peer is not None else "" for peer in exchange.peers]
    neighbours = [rank for rank, host in enumerate(hosts) if host == hosts[exchange.rank]]
    own: DeviceError | None = None
    cupy = distributed = place = None
    try:
        cupy, distributed = _cupy_and_nccl()
        if device is None:
            device = neighbours.index(exchange.rank) % int(cupy.cuda.runtime.getDeviceCount())
        set_device(f"gpu:{device}")
        place = str(cupy.cuda.Device(device).pci_bus_id)
    except DeviceError as error:
        own = error
    found = exchange.gather_objects((place, None if own is None else str(own)))
    if own is not None:
        raise own
    seen: dict[tuple[str, str], int] = {}
    for rank, (where, said) in enumerate(found):
        if said is not None:
            raise RankError(f"{exchange.name(rank)} has no GPU for NCCL: {said}", rank)
        other = seen.setdefault((hosts[rank], where), rank)
        if other != rank:
            raise ValueError(
                f"{exchange.name(other)} and {exchange.name(rank)} have the same GPU, {where}; "
                "NCCL takes one rank a GPU. Start as many ranks as there are GPUs, or give each "
                "its own: nccl_world(device=number)."
            )
    return cupy, distributed


def _cupy_and_nccl() -> tuple[Any, Any]:
    cupy = device_named("gpu").ready()
    try:
        from cupy.cuda import nccl

        if not nccl.available:
            raise ImportError("its library is not installed, or CuPy was built without it")
        from cupyx import distributed
    except ImportError as error:
        raise DeviceError(
            f"nccl_world needs NCCL, which CuPy cannot load here ({error}): on Linux, "
            "pip install nvidia-nccl-cu12 (or -cu13, as CuPy)."
        ) from error
    return cupy, distributed
