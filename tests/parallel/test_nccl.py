"""Ranks with a GPU each: NCCL through a stand-in that has its calls; what may be missing."""

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import optlab as ol
from optlab.backend import device as devices
from optlab.backend.exchange import Exchange
from optlab.parallel import LocalWorld, NcclWorld, RankError, nccl_world
from optlab.parallel import nccl as module
from tests.guarded import GuardedArray
from tests.parallel import programs
from tests.parallel.stand_in_nccl import STREAM, Cluster, Event


@pytest.fixture(autouse=True)
def _back_to_the_cpu():
    yield
    ol.set_device("cpu")
    STREAM.work.clear()


def on_gpus(size, program, cluster=None):
    """Run a program on simulated ranks whose arrays are on stand-ins of GPUs."""
    cluster = Cluster(size) if cluster is None else cluster
    return LocalWorld(size).run(
        lambda comm: program(NcclWorld(comm, cluster.backend(comm.rank), Event))
    )


def averaged(comm, device="guarded", sparse=False):
    """Train by averaged gradients; return a digest after every step, and the bytes of the last."""
    model = ol.parallel.DataParallel(programs.network(seed=comm.rank).to(device), comm)
    ol.seed(7)
    optimizer = ol.optimizer.AdamW(
        0.01, parameters=model.parameters(), grad_clip=ol.nn.ClipGradByGlobalNorm(0.5)
    )
    average = ol.parallel.average_gradients(optimizer, comm)
    found = []
    for x, y in programs.loader(comm):
        ol.nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
        optimizer.clear_grad()
        found.append(programs.digest(model.parameters()))
    return found, average.bytes_sent, {type(p.data) for p in model.parameters()}


def compressed(comm, device="guarded"):
    """Train with DGCMomentum, across the beginning of its ramp."""
    model = ol.parallel.DataParallel(programs.network(seed=3).to(device), comm)
    ol.seed(7)
    dgc = ol.optimizer.DGCMomentum(
        0.05, 0.9, 2, 4, [0.75, 0.99], parameters=model.parameters(), use_nesterov=True,
        weight_decay=0.01, grad_clip=ol.nn.ClipGradByNorm(1.0), world=comm,
    )  # fmt: skip
    found, sent = [], []
    for x, y in programs.loader(comm):
        ol.nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        dgc.step()
        dgc.clear_grad()
        found.append(programs.digest(model.parameters()))
        sent.append(dgc.bytes_sent)
    state = dgc.state_dict()
    held = programs.digest([x for name, x in sorted(state.items()) if name.endswith((".u", ".v"))])
    return found, held, sent


@pytest.mark.parametrize("size", [2, 3])
def test_averaged_gradients_stay_on_their_gpus_with_the_bits_of_the_host(size):
    cluster = Cluster(size)
    found = on_gpus(size, averaged, cluster)
    host = LocalWorld(size).run(lambda comm: averaged(comm, "cpu"))
    assert [one[:2] for one in found] == [one[:2] for one in host]
    assert found[0][2] == {GuardedArray}
    count = sum(p.data.size for p in programs.network(0).parameters())
    gathered = [n for name, n in cluster.bytes_of[0] if name == "all_gather"]
    assert gathered == [4 * count] * len(found[0][0])
    assert found[0][1] == 4 * count + len(list(programs.network(0).parameters()))


def test_compressed_gradients_go_from_gpu_to_gpu_with_the_bits_of_the_host():
    cluster = Cluster(2)
    found = on_gpus(2, compressed, cluster)
    assert found == LocalWorld(2).run(lambda comm: compressed(comm, "cpu"))
    assert found[0][0] == found[1][0]
    sizes = [n for name, n in cluster.bytes_of[0] if name == "all_gather"]
    whole = 4 * 160 * 160
    assert sizes.count(whole) == 2  # two steps before the ramp begins
    assert sizes.count(whole // 4) == 4  # indices and values of a quarter, in two steps


def test_on_a_gpu_a_world_of_the_host_computes_the_same_bits():
    for program in (averaged, compressed):
        found = LocalWorld(2).run(lambda comm, run=program: run(comm, "guarded"))
        host = LocalWorld(2).run(lambda comm, run=program: run(comm, "cpu"))
        assert [one[:2] for one in found] == [one[:2] for one in host]


@pytest.mark.parametrize("root", [0, 2])
def test_a_broadcast_takes_parameters_of_any_dtype_where_they_are(root):
    def f(comm):
        on_gpu = [
            ol.to_tensor(np.full((2, 3), comm.rank, dtype)).to("guarded")
            for dtype in (np.float16, np.float64, np.bool_, np.int16)
        ]
        on_host = ol.to_tensor(np.full(3, comm.rank, np.float32))
        ol.parallel.broadcast([*on_gpu[:2], on_host, *on_gpu[2:]], comm, root)
        assert all(type(t.data) is GuardedArray for t in on_gpu)
        return [t.numpy().astype(float).mean() for t in (*on_gpu, on_host)]

    cluster = Cluster(3)
    for found in on_gpus(3, f, cluster):
        assert found == [root, root, min(root, 1), root, root]
    assert cluster.bytes_of[1] == [("broadcast", n) for n in (12, 48, 6, 12)]


def test_arrays_arrive_in_the_order_of_the_ranks_and_those_of_the_host_by_the_host():
    def f(comm):
        exchange = Exchange(comm, "a test")
        values = np.array([1e8, 1.0, -1e8], np.float32)[comm.rank : comm.rank + 1]
        found = exchange.gather(GuardedArray(values))
        assert type(exchange.gather(values)[0]) is np.ndarray
        return [float(x[0]) for x in found]

    cluster = Cluster(3)
    assert on_gpus(3, f, cluster) == [[1e8, 1.0, -1e8]] * 3
    assert [len(calls) for calls in cluster.bytes_of] == [1, 1, 1]


def test_one_rank_moves_nothing():
    def f(comm):
        array = GuardedArray(np.ones(3))
        exchange = Exchange(comm, "a test")
        return exchange.moves(array), exchange.gather(array)[0] is array

    assert on_gpus(1, f) == [(False, True)]


def test_calls_of_mpi_go_to_the_communicator():
    def f(comm):
        assert (comm.rank, comm.size) == (comm.Get_rank(), comm.Get_size())
        return repr(comm), comm.allreduce(comm.rank), comm.Dup().bcast(comm.rank, root=1)

    assert on_gpus(2, f) == [(f"<NcclWorld rank {rank} of 2>", 1, 1) for rank in (0, 1)]


def test_a_pipeline_runs_on_its_ranks():
    def f(comm):
        model = programs.network(0)
        optimizer = ol.optimizer.PipelineOptimizer(
            ol.optimizer.SGD(0.1, parameters=model.parameters()), [model[1]], num_microbatches=4,
            world=comm,
        )  # fmt: skip
        x, y = map(ol.to_tensor, programs.data())
        return float(optimizer.step(model, ol.nn.CrossEntropyLoss(), x, y))

    assert on_gpus(2, f) == LocalWorld(2).run(f)


# Failures -----------------------------------------------------------------------------------------


def test_a_gpu_that_does_not_answer_is_given_up_and_named():
    cluster = Cluster(2, missing=1)

    def f(comm):
        exchange = Exchange(comm, "a test", longest=0.2)
        exchange.gather(GuardedArray(np.ones(3)))

    with pytest.raises(RankError, match=r"StalledError: rank \d did not come within 0.2 sec"):
        on_gpus(2, f, cluster)
    assert cluster.aborted


def test_ranks_with_arrays_of_two_sizes_do_not_begin():
    cluster = Cluster(2)

    def f(comm):
        Exchange(comm, "a test").gather(GuardedArray(np.ones(3 + comm.rank)))

    with pytest.raises(RankError, match=r"arrays of one size; the ranks came with \[24, 32\] byte"):
        on_gpus(2, f, cluster)
    assert cluster.bytes_of == [[], []]


def test_a_model_on_the_host_of_one_rank_is_named():
    def f(comm):
        model = ol.nn.Linear(2, 1)
        ol.parallel.broadcast(model.to("guarded") if comm.rank else model, comm)

    with pytest.raises(RankError, match=r"float32 of shape \(2, 1\) on rank 0, float32 on a GPU"):
        on_gpus(2, f)


def test_simulated_ranks_and_things_that_are_no_communicator_are_refused():
    with pytest.raises(TypeError, match=r"nccl_world takes MPI.COMM_WORLD of mpi4py; got 'gpu'"):
        nccl_world("gpu")
    with pytest.raises(RankError, match="threads that share a GPU: give their communicator as it"):
        LocalWorld(2).run(nccl_world)


class World:
    """MPI's world of one rank, as far as it is asked."""

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 1

    def Dup(self):
        return self

    Get_group = Isend = Irecv = allgather = Dup


def _alone(monkeypatch, world_ranks=(0,)):
    """Let this process be the only rank of MPI."""
    monkeypatch.setattr(module, "_mpi", lambda: SimpleNamespace(COMM_WORLD=World()))
    monkeypatch.setattr("optlab.backend.exchange._world_ranks", lambda *_: list(world_ranks))


def test_without_mpi_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs mpi4py.*install 'optlab\[parallel\]'"):
        nccl_world()


def test_without_a_gpu_the_error_says_what_is_missing(monkeypatch):
    _alone(monkeypatch)
    if importlib.util.find_spec("cupy") is None:
        with pytest.raises(devices.DeviceError, match=r"CuPy, which is not installed: pip install"):
            nccl_world()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(devices.DeviceError, match="CuPy"):
        nccl_world()


def _with_cupy(monkeypatch, nccl_available=True):
    """Let a module with the few calls that are needed be CuPy, with one GPU."""
    runtime = SimpleNamespace(getDeviceCount=lambda: 1)
    chosen = SimpleNamespace(pci_bus_id="0000:01:00.0")
    made = []
    modules = {name: ModuleType(name) for name in ("cupy", "cupy.cuda", "cupy.cuda.nccl", "cupyx")}
    modules["cupyx.distributed"] = ModuleType("cupyx.distributed")
    modules["cupy.cuda.nccl"].available = nccl_available
    modules["cupy.cuda"].__dict__.update(
        nccl=modules["cupy.cuda.nccl"], runtime=runtime, Event=Event, Device=lambda number: chosen
    )
    modules["cupy"].cuda = modules["cupy.cuda"]
    modules["cupyx"].distributed = modules["cupyx.distributed"]
    modules["cupyx.distributed"].init_process_group = lambda *a, **k: made.append((a, k))
    for name, one in modules.items():
        monkeypatch.setitem(sys.modules, name, one)
    known = {**devices._known}
    known["gpu"] = known["gpu:0"] = devices.Device("gpu:0", modules["cupy"], GuardedArray)
    monkeypatch.setattr(devices, "_known", known)
    return made


def test_a_cupy_without_nccl_is_named(monkeypatch):
    _alone(monkeypatch)
    _with_cupy(monkeypatch, nccl_available=False)
    with pytest.raises(devices.DeviceError, match=r"NCCL, which CuPy cannot load.*nvidia-nccl-cu1"):
        nccl_world()


def test_a_part_of_the_world_is_refused(monkeypatch):
    _alone(monkeypatch, world_ranks=[1])
    with pytest.raises(ValueError, match=r"takes all of it.*this communicator has the ranks \[1\]"):
        nccl_world(World())


def test_the_gpu_becomes_the_device_of_new_tensors(monkeypatch):
    _alone(monkeypatch)
    made = _with_cupy(monkeypatch)
    world = nccl_world()
    assert (world.rank, world.size, ol.get_device()) == (0, 1, "gpu:0")
    assert made == []  # one rank has nobody to talk to


def _prepared(monkeypatch, found):
    """Prepare rank 0 of two on one computer; the other one says what is given."""
    _with_cupy(monkeypatch)
    exchange = Exchange(SimpleNamespace(
        Get_rank=lambda: 0, Get_size=lambda: 2, Isend=0, Irecv=0, allgather=0
    ), "nccl_world")  # fmt: skip
    exchange.peers = [SimpleNamespace(host="a", process=i) for i in (10, 11)]
    exchange.meet = lambda: None
    exchange.gather_objects = lambda own: [own, found]
    return module._prepared(exchange, None)


def test_two_ranks_with_one_gpu_and_one_without_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"rank 0 \(process 10 on a\) and rank 1 .*the same GPU"):
        _prepared(monkeypatch, ("0000:01:00.0", None))
    with pytest.raises(RankError, match=r"rank 1 \(process 11 on a\) has no GPU for NCCL: no driv"):
        _prepared(monkeypatch, (None, "no driver"))
    cupy, distributed = _prepared(monkeypatch, ("0000:02:00.0", None))
    assert cupy is sys.modules["cupy"]
    assert distributed is sys.modules["cupyx.distributed"]


@pytest.mark.gpu
def test_a_real_gpu_gathers_and_broadcasts_its_own_arrays():
    """One rank on one GPU, through NCCL itself; more ranks need as many GPUs."""
    try:
        ol.set_device("gpu")
    except RuntimeError as error:
        pytest.skip(str(error))
    import cupy
    from cupy.cuda import nccl

    if not nccl.available:
        pytest.skip("NCCL is not installed")
    pytest.importorskip("mpi4py")
    from cupyx.distributed import init_process_group

    def f(comm):
        world = NcclWorld(comm, init_process_group(1, 0, use_mpi=True), cupy.cuda.Event)
        array, found = cupy.arange(5, dtype=np.float32), cupy.zeros((1, 5), np.float32)
        for request in (world.gather_on_device(array, found), world.broadcast_on_device(array, 0)):
            while not request.Test():
                pass
        return found.get().tolist(), array.get().tolist()

    assert LocalWorld(1).run(f) == [([[0.0, 1.0, 2.0, 3.0, 4.0]], [0.0, 1.0, 2.0, 3.0, 4.0])]
