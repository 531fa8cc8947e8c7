"""Sweeps whose cells are logged, and may raise or kill their process.

As a script, one of them, by Dask or MPI.
"""

import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import optlab as ol

RAISES, KILLS_ONCE, KILLS = 1000, 2000, 3000


class Logged(ol.optimizer.SGD):
    """Gradient descent that logs each run by the number of its cell, and fails where it is told."""

    hyperparameters = {"learning_rate": 0.1, "cell": 0}

    def bind(self, parameters):
        log, cell = os.environ.get("CELLS_LOG"), int(self.settings["cell"])
        if log:
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{cell}\n")
            if cell == RAISES:
                raise ArithmeticError("told to")
            if cell == KILLS or (cell == KILLS_ONCE and not Path(f"{log}.killed").exists()):
                Path(f"{log}.killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.01)
        return super().bind(parameters)


def sweep(cells, **options):
    cells = range(cells) if isinstance(cells, int) else cells
    rates = np.linspace(0.01, 0.2, len(cells))
    return ol.sweep(
        "booth", Logged, {"cell": list(cells)}, start=(1.0, float(rates[0])), steps=3, **options
    )


def runs(log):
    """How often each cell was run."""
    return Counter(int(line) for line in Path(log).read_text("utf-8").split())


def read(store, name):
    import zarr

    return np.asarray(zarr.open_group(str(store), mode="r")[name][...])


def main():
    kind, store, log, cells, workers = sys.argv[1:]
    os.environ["CELLS_LOG"] = log
    if kind == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as executor:
            sweep(int(cells), executor=executor, to=store)
        return
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        Path(workers).write_text(" ".join(map(str, pids.values())), "utf-8")
        sweep(int(cells), executor=client.get_executor(), to=store)


if __name__ == "__main__":
    main()
