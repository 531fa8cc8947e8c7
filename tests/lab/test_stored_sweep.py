"""Sweeps into a Zarr store: no cell is lost, none that has ended runs again."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab.lab import cell_store
from optlab.parallel.launcher import mpiexec
from tests.lab import stored_cells

pytest.importorskip("zarr")
ROOT = Path(__file__).resolve().parents[2]


def processes(count=2):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("kind", ["here", "threads"])
def test_a_stored_sweep_is_the_sweep(tmp_path, kind):
    settings = {"learning_rate": [0.01, 0.1, 1e6], "beta1": [0.5, 0.9]}
    wanted = ol.sweep("rosenbrock", ol.optimizer.Adam, settings, steps=30)
    executor = ThreadPoolExecutor(2) if kind == "threads" else None
    found = ol.sweep(
        "rosenbrock", ol.optimizer.Adam, settings, steps=30, executor=executor, to=tmp_path / "s"
    )
    for name in ("final_loss", "final_point", "stopped", "status", "loss", "point"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    np.testing.assert_array_equal(found.slots["moment1"], wanted.slots["moment1"])
    again = ol.sweep("rosenbrock", ol.optimizer.Adam, settings, steps=30, to=tmp_path / "s")
    assert "6 cells of them by an earlier call" in again.execution
    np.testing.assert_array_equal(again.final_loss, wanted.final_loss)


def test_a_network_sweep_is_stored(tmp_path):
    settings = {"learning_rate": [0.01, 0.1]}
    problem = ol.problems.digits_mlp()
    wanted = ol.sweep(problem, ol.optimizer.SGD, settings, steps=5)
    for _ in range(2):
        found = ol.sweep(problem, ol.optimizer.SGD, settings, steps=5, to=tmp_path / "s")
        for name in ("final_loss", "accuracy", "loss", "stopped"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
        for name, values in wanted.parameters.items():
            np.testing.assert_array_equal(found.parameters[name], values)


def test_another_sweep_or_something_else_is_not_overwritten(tmp_path):
    settings = {"learning_rate": [0.1]}
    ol.sweep("booth", ol.optimizer.SGD, settings, steps=5, to=tmp_path / "s")
    with pytest.raises(ValueError, match="holds another sweep: its steps is 5, not 6"):
        ol.sweep("booth", ol.optimizer.SGD, settings, steps=6, to=tmp_path / "s")
    with pytest.raises(ValueError, match="holds another sweep: its optimizers"):
        ol.sweep("booth", ol.optimizer.SGD, {"learning_rate": [0.2]}, steps=5, to=tmp_path / "s")
    (tmp_path / "t").mkdir()
    with pytest.raises(ValueError, match="is no sweep of optlab"):
        ol.sweep("booth", ol.optimizer.SGD, settings, steps=5, to=tmp_path / "t")


def test_a_cell_that_raises_is_marked_and_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setenv("CELLS_LOG", str(tmp_path / "log"))
    for _ in range(2):
        found = stored_cells.sweep([0, 1, stored_cells.RAISES, 3], to=tmp_path / "s")
        assert found.status.tolist() == ["done", "done", "raised", "done"]
        assert "ArithmeticError: told to" in found.errors[2,]
    assert set(stored_cells.runs(tmp_path / "log").values()) == {1}


def test_cells_of_a_killed_process_are_begun_again_and_finished_ones_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("CELLS_LOG", str(tmp_path / "log"))
    cells = [*range(7), stored_cells.KILLS_ONCE, *range(8, 24)]
    with processes() as executor:
        found = stored_cells.sweep(cells, executor=executor, to=tmp_path / "s")
    assert found.status.tolist() == ["done"] * 24
    runs = stored_cells.runs(tmp_path / "log")
    assert set(runs) == set(cells)
    assert runs[stored_cells.KILLS_ONCE] == 2
    assert sum(runs.values()) <= 24 + 2  # those in flight: the killed one, and its neighbour's
    monkeypatch.delenv("CELLS_LOG")
    wanted = stored_cells.sweep(cells)
    np.testing.assert_array_equal(found.final_loss, wanted.final_loss)


def test_a_cell_that_kills_every_worker_is_marked(tmp_path, monkeypatch):
    monkeypatch.setenv("CELLS_LOG", str(tmp_path / "log"))
    found = stored_cells.sweep(
        [0, stored_cells.KILLS, 2], executor=lambda: processes(1), to=tmp_path / "s"
    )
    assert found.status.tolist() == ["done", "raised", "done"]
    assert "the worker died 3 times" in found.errors[1,]
    assert stored_cells.runs(tmp_path / "log") == {0: 1, stored_cells.KILLS: 3, 2: 1}


def test_a_comparison_over_processes_is_the_comparison():
    entries = {
        "SGD": ol.optimizer.SGD(0.001),
        "Adam": ol.optimizer.Adam(0.1),
        "too fast": ol.optimizer.SGD(10.0),
    }
    wanted = ol.compare("rosenbrock", entries, steps=20)
    with processes() as executor:
        found = ol.compare("rosenbrock", entries, steps=20, executor=executor)
    assert list(found.traces) == list(wanted.traces)
    for name, trace in wanted.traces.items():
        np.testing.assert_array_equal(found[name].loss, trace.loss)
        assert found[name].stopped == trace.stopped
    assert found.final_loss["Adam"] == wanted.final_loss["Adam"]
    assert repr(found) == repr(wanted)


class Mortal(Executor):
    """Runs tasks here, until one of them kills it; all that came later is lost with it."""

    def __init__(self, kills):
        self.kills, self.dead = kills, False

    def submit(self, function, task):
        future = Future()
        self.dead = self.dead or self.kills(task)
        if self.dead:
            future.set_exception(BrokenExecutor("a worker has died"))
        else:
            future.set_result(function(task))
        return future


def test_tasks_of_a_dead_worker_are_begun_again():
    begun = []

    def kills_once(task):
        begun.append(task)
        return task == 2 and begun.count(2) == 1

    found = cell_store.mapped(lambda: Mortal(kills_once), lambda task: task * 10, range(5))
    assert list(found) == [0, 10, 20, 30, 40]
    assert begun == [0, 1, 2, 2, 3, 4]
    with pytest.raises(BrokenExecutor, match="or in each that is left"):
        cell_store.mapped(lambda: Mortal(lambda task: task == 2), str, range(5))
    with pytest.raises(ValueError, match="invalid literal"):
        cell_store.mapped(lambda: Mortal(lambda task: False), int, ["1", "x"])


def environment():
    return {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    }  # fmt: skip


def sweep_by_dask(*args):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.lab.stored_cells", *map(str, args)],
        cwd=ROOT, env=environment(), start_new_session=True,
    )  # fmt: skip


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the extra brings no MPI for Windows")
def test_a_sweep_over_ranks_of_mpi_is_the_sweep(tmp_path):
    pytest.importorskip("mpi4py")
    log, store = tmp_path / "log", tmp_path / "sweep.zarr"
    command = [mpiexec(), "-n", "3", sys.executable, "-m", "mpi4py.futures"]
    command += ["-m", "tests.lab.stored_cells", "mpi", str(store), str(log), "24", "-"]
    logged = {**environment(), "CELLS_LOG": str(log)}
    subprocess.run(command, cwd=ROOT, env=logged, timeout=240, check=True)
    assert stored_cells.runs(log) == dict.fromkeys(range(24), 1)
    wanted = stored_cells.sweep(24)
    np.testing.assert_array_equal(stored_cells.read(store, "loss"), wanted.final_loss)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_dask_sweep_of_500_cells_survives_a_killed_worker_and_a_killed_client(tmp_path):
    pytest.importorskip("distributed")
    log, store = tmp_path / "log", tmp_path / "sweep.zarr"

    def wait_for(count):
        ends = time.monotonic() + 120
        while not log.exists() or len(log.read_text().splitlines()) < count:
            assert time.monotonic() < ends
            time.sleep(0.05)

    client = sweep_by_dask("dask", store, log, 500, tmp_path / "workers")
    wait_for(60)
    victim = int((tmp_path / "workers").read_text().split()[0])
    os.kill(victim, signal.SIGKILL)
    wait_for(200)
    os.killpg(client.pid, signal.SIGKILL)  # the client, with its cluster
    client.wait()
    marks = stored_cells.read(store, "mark")
    finished = set(np.flatnonzero(marks))
    assert 0 < len(finished) < 500
    before = stored_cells.runs(log)
    log.rename(tmp_path / "first")

    client = sweep_by_dask("dask", store, log, 500, tmp_path / "workers")
    assert client.wait(timeout=240) == 0
    after = stored_cells.runs(log)
    assert not finished & set(after)
    assert finished | set(after) == set(range(500))
    assert set(after.values()) == {1}
    assert stored_cells.read(store, "mark").tolist() == [1] * 500
    assert sum(n - 1 for n in before.values()) <= 4  # in flight on the killed worker
    wanted = stored_cells.sweep(500)
    np.testing.assert_array_equal(stored_cells.read(store, "loss"), wanted.final_loss)
