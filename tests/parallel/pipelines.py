"""Networks and steps that the tests of pipelines share; as a script, one rank under ``mpiexec``."""

import contextlib
import faulthandler
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import optlab as ol
from tests.stopwatch import Stopwatch

EXAMPLES, WIDTH, CLASSES = 32, 12, 3
#: A test waits for nothing longer than this, whatever happens.
PATIENCE = 120


def data(examples=EXAMPLES):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((examples, WIDTH)).astype(np.float32)
    return ol.to_tensor(x), ol.to_tensor(rng.integers(0, CLASSES, examples))


def network(extra=None):
    """A chain of 4 blocks and a head; `extra` makes a Layer for each block."""
    ol.seed(5)
    layers = []
    for _ in range(4):
        layers += [ol.nn.Linear(WIDTH, WIDTH), ol.nn.Tanh()]
        layers += [extra()] if extra else []
    return ol.nn.Sequential(*layers, ol.nn.Linear(WIDTH, CLASSES))


def cuts(model, sections):
    """The Layers after which a network is cut into equal sections."""
    blocks = (len(model) - 1) // sections
    return [model[blocks * s - 1] for s in range(1, sections)]


def adam(model, **settings):
    return ol.optimizer.Adam(0.01, parameters=model.parameters(), **settings)


def pipeline(model, sections=2, micro_batches=4, inner=adam, **settings):
    return ol.optimizer.PipelineOptimizer(
        inner(model), cuts(model, sections), num_microbatches=micro_batches, **settings
    )


def loop(model, optimizer, criterion, x, y, micro_batches):
    """One step without a pipeline, as one writes it by hand; return the loss."""
    size, total = x.shape[0] // micro_batches, None
    for i in range(micro_batches):
        part = slice(i * size, (i + 1) * size)
        loss = criterion(model(x[part]), y[part]) / micro_batches
        loss.backward()
        total = loss.numpy() if total is None else total + loss.numpy()
    optimizer.step()
    optimizer.clear_gradients()
    return total


def values(model):
    return [np.array(t.numpy()) for t in (*model.parameters(), *model.buffers())]


def trained(sections=2, micro_batches=4, steps=3, extra=None, examples=EXAMPLES, **settings):
    """Train by a pipeline; return the losses and all values."""
    model = network(extra)
    optimizer = pipeline(model, sections, micro_batches, **settings)
    x, y = data(examples)
    criterion = ol.nn.CrossEntropyLoss()
    losses = [float(optimizer.step(model, criterion, x, y)) for _ in range(steps)]
    return losses, values(model)


def on_rank(comm, sections, micro_batches=4, schedule="1F1B", **settings):
    """Train with a section on each rank."""
    ol.seed(5)
    return trained(sections, micro_batches, 2, world=comm, schedule=schedule, **settings)


class Faulty(ol.nn.Layer):
    """Passes its input on, but fails in the third forward pass as it is told."""

    def __init__(self, how):
        super().__init__()
        self.how, self.calls = how, 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 3 and self.how:
            if self.how == "raise":
                raise ArithmeticError("the third one")
            if self.how == "exit":
                raise SystemExit(3)
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(120)  # "stall"
        return x


def failing(comm, how, at=1):
    """Fail in a section on a rank of its own; return what is raised, and whether nothing moved."""
    model = network(lambda: ol.nn.Identity())
    model[3 * at + 2] = Faulty(how if comm.rank == at else "")
    optimizer = ol.optimizer.PipelineOptimizer(
        adam(model), ["2", "5", "8"], num_microbatches=4, world=comm,
        timeout=3.0 if how == "stall" else 7.0,
    )  # fmt: skip
    before = values(model)
    comm.barrier()  # a rank that starts later than others is not measured
    # The watch has a thread, which would be a sign of life of the rank that stalls.
    with Stopwatch() if comm.rank != at else contextlib.nullcontext(Stopwatch()) as watch:
        try:
            optimizer.step(model, ol.nn.CrossEntropyLoss(), *data())
        except RuntimeError as error:
            same = all(np.array_equal(a, b) for a, b in zip(before, values(model), strict=True))
            return str(error), same, watch.seconds
    return "", False, 0.0


def main():
    from mpi4py import MPI

    # Whatever hangs says where, and ends before the test that waits for it gives up.
    faulthandler.dump_traceback_later(PATIENCE - 30, exit=True)
    comm = MPI.COMM_WORLD
    what, target, *rest = sys.argv[1:]
    if what == "train":
        sections, micro_batches, schedule, examples, queue_size = rest
        losses, found = on_rank(
            comm, int(sections), int(micro_batches), schedule,
            examples=int(examples), queue_size=int(queue_size),
        )  # fmt: skip
        np.savez(Path(target) / f"{comm.rank}.npz", np.array(losses), *found)
        return
    said, same, seconds = failing(comm, rest[0])
    written = Path(target, f"{comm.rank}.part")
    written.write_text(f"{same} {seconds:.1f} {said}", "utf-8")
    written.rename(written.with_suffix(".txt"))
    if rest[0] == "raise":
        return  # all ranks end as usual
    # A stalled rank does not answer MPI_Finalize; and mpiexec kills all others when the first ends
    # without it, so none ends before all have written.
    others = {f"{rank}.txt" for rank in range(comm.size) if rank != 1}
    patient_until = time.monotonic() + 60
    while time.monotonic() < patient_until and not others <= set(os.listdir(target)):
        time.sleep(0.05)
    os._exit(0)


if __name__ == "__main__":
    main()
