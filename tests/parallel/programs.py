"""Programs of ranks that tests run on simulated ranks and on those of MPI: the same code.

As a script it runs one of them under ``mpiexec`` and writes what every rank returned to a file.
"""

import atexit
import hashlib
import json
import os
import signal
import sys
import time

import numpy as np

import optlab as ol
from optlab.backend.exchange import Exchange, launched_peers
from optlab.backend.rank_errors import StalledError

SIZES = (8, 160, 3)


def data(examples=48):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((examples, SIZES[0])).astype(np.float32)
    return x, rng.integers(0, SIZES[2], examples)


def network(seed):
    ol.seed(seed)
    return ol.nn.Sequential(
        ol.nn.Linear(SIZES[0], SIZES[1]), ol.nn.ReLU(), ol.nn.Linear(SIZES[1], SIZES[1]),
        ol.nn.ReLU(), ol.nn.Linear(SIZES[1], SIZES[2]),
    )  # fmt: skip


def digest(parameters):
    found = hashlib.sha256()
    for p in parameters:
        found.update(np.ascontiguousarray(p.numpy()).tobytes())
    return found.hexdigest()


def loader(comm, shuffle=True):
    x, y = data()
    dataset = ol.io.TensorDataset([ol.to_tensor(x), ol.to_tensor(y)])
    sampler = ol.io.DistributedBatchSampler(
        dataset, 12 // comm.size, comm.size, comm.rank, shuffle=shuffle
    )
    return ol.io.DataLoader(dataset, batch_sampler=sampler)


def data_parallel(comm, epochs=2, optimizer="AdamW"):
    """Train by averaged gradients; return a digest of the parameters after every step."""
    model = ol.parallel.DataParallel(network(seed=comm.rank), comm)
    ol.seed(7)
    settings = {"parameters": model.parameters(), "grad_clip": ol.nn.ClipGradByGlobalNorm(0.5)}
    optimizer = model.averages(getattr(ol.optimizer, optimizer)(0.01, **settings))
    batches, found = loader(comm), []
    for _ in range(epochs):
        for x, y in batches:
            loss = ol.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            found.append(digest(model.parameters()))
    return found


def compressed(comm, epochs=2):
    """Train with DGCMomentum; return a digest of the parameters and of u and v at the end."""
    model = ol.parallel.DataParallel(network(seed=3), comm)
    ol.seed(7)
    dgc = ol.optimizer.DGCMomentum(
        0.05, 0.9, 2, 4, [0.75, 0.99], parameters=model.parameters(), use_nesterov=True,
        weight_decay=0.01, grad_clip=ol.nn.ClipGradByNorm(1.0),
    )  # fmt: skip
    batches, found = loader(comm), []
    for _ in range(epochs):
        for x, y in batches:
            ol.nn.functional.cross_entropy(model(x), y).backward()
            dgc.step()
            dgc.clear_grad()
            found.append(digest(model.parameters()))
    state = dgc.state_dict()
    return found, digest([x for name, x in sorted(state.items()) if name.endswith((".u", ".v"))])


def calls(comm):
    """Use every call of a communicator; return what each gave, as numbers and lists."""
    r, n = comm.rank, comm.size
    right, left = (r + 1) % n, (r - 1) % n
    found = [comm.Get_rank(), comm.Get_size(), comm.Is_inter()]
    found.append(comm.sendrecv({"from": r}, dest=right, sendtag=4, source=left, recvtag=4))
    requests = [comm.isend([r, tag], right, tag) for tag in (1, 2)]
    found.append([comm.irecv(source=left, tag=tag).wait() for tag in (2, 1)])
    for one in requests:
        one.wait()
    if r == 0:
        for other in range(1, n):
            comm.send(other * 10, other, 9)
    else:
        assert comm.probe(source=0, tag=9)
        found.append([comm.iprobe(source=0, tag=9), comm.recv(source=0, tag=9)])
    a, b = np.arange(4.0) + r, np.empty(4)
    receive = comm.Irecv(b, left, 5)
    send = comm.Isend(a, right, 5)
    receive.Wait()
    send.Wait()
    found.append(b.tolist())
    larger = np.zeros(9)
    comm.Sendrecv(a, right, 6, larger, left, 6)  # a message may be shorter than the buffer
    found.append(larger.tolist())
    found += [
        comm.bcast([r, "x"], root=1), comm.gather(r * r, root=1), comm.allgather([r]),
        comm.scatter(list(range(n)) if r == 1 else None, root=1), comm.reduce(r + 1, root=1),
        comm.allreduce([r]), comm.alltoall([r * 10 + i for i in range(n)]),
    ]  # fmt: skip
    whole = np.empty((n, 4))
    comm.Allgather(a, whole)
    found.append(whole.tolist())
    at_root = np.empty(4 * n)
    comm.Gather(a, at_root if r == 0 else None)
    found.append(at_root.tolist() if r == 0 else None)
    part = np.empty(4)
    comm.Scatter(whole * 2 if r == 0 else None, part)
    total, summed = np.empty(4), np.empty(4)
    comm.Allreduce(a, total)
    comm.Reduce(a, summed if r == 1 else None, root=1)
    given = np.full(3, r, np.int32)
    comm.Bcast(given, root=1)
    found += [part.tolist(), total.tolist(), summed.tolist() if r == 1 else None, given.tolist()]
    half, twin = comm.Split(color=r % 2, key=-r), comm.Dup()
    found += [half.rank, half.size, half.allgather(r), twin.allreduce(1)]
    found.append(Exchange(half, "half of the ranks").world_ranks)
    processes = comm.allgather(os.getpid())
    guessed = launched_peers(r, list(range(n))) if comm.name != "LOCAL_WORLD" else [None] * n
    found.append([a is None or a.process == b for a, b in zip(guessed, processes, strict=True)])
    comm.barrier()
    comm.Barrier()
    return found


def steps_with(comm, who, happens):
    """Take three steps on all ranks; on one of them something happens in front of the second."""
    w = ol.Parameter(np.zeros(4), name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    ol.parallel.average_gradients(optimizer, comm)
    for step in range(3):
        if step == 1 and comm.rank == who:
            happens()
        optimizer.minimize((w * w).sum())


def stalls(comm, who, seconds):
    """Let one rank sleep in front of a step."""
    steps_with(comm, who, lambda: time.sleep(seconds))


def raises(comm, who):
    """Let one rank raise in front of a step."""

    def happens():
        raise KeyError("no such weight")

    steps_with(comm, who, happens)


def dies(comm, who):
    """Let one rank be killed in front of a step."""
    steps_with(comm, who, lambda: os.kill(os.getpid(), signal.SIGKILL))


def leaves(comm, who):
    """Let one rank leave its process, without a word, in front of a step."""
    steps_with(comm, who, lambda: os._exit(5))


def returns(comm, who):
    """Let the program of one rank end, as if it had nothing more to do, in front of a step."""
    steps_with(comm, who, sys.exit)


def late(comm, who):
    """Let one rank come to the first exchange when the others have given up and ended."""
    if comm.rank == who:
        time.sleep(2.0)
    try:
        Exchange(comm, "a test", timeout=0.5).meet()
    except StalledError:
        sys.exit()


def exchanges_at_the_end(comm, folder):
    """Exchange in a function for the end of Python that was registered before the first exchange.

    Rank 1 comes to it when rank 0 has looked several times whether it is still there.
    """
    exchange = Exchange(comm, "a test")

    def finish():
        if comm.rank == 1:
            time.sleep(1.5)
        found = [int(one[0]) for one in exchange.gather(np.array([comm.rank]))]
        with open(os.path.join(folder, f"{comm.rank}.json"), "w", encoding="ascii") as file:
            json.dump(found, file)

    atexit.register(finish)
    exchange.meet()


def announces(comm, folder):
    """Write the process of each rank into a folder, and sleep."""
    with open(os.path.join(folder, f"{comm.rank}.part"), "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(file.name, os.path.join(folder, str(comm.rank)))
    time.sleep(90)


def main():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    name, path, *args = sys.argv[1:]
    result = globals()[name](comm, *map(json.loads, args))
    found = comm.gather(result)
    if comm.rank == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
