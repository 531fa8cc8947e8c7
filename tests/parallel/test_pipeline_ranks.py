"""PipelineOptimizer on ranks: simulated ones, and those of MPI."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab.parallel import LocalWorld, RankError
from tests.parallel import pipelines

MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="mpiexec is not installed")


def assert_same(found, wanted):
    assert found[0] == wanted[0]
    for a, b in zip(found[1], wanted[1], strict=True):
        np.testing.assert_array_equal(a, b)


def on_mpi(ranks, *args, check=True):
    """Run the program of `pipelines` under mpiexec."""
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "mpi4py"]
    command += ["-m", "tests.parallel.pipelines", *map(str, args)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        command,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=pipelines.PATIENCE,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return done


@pytest.mark.parametrize("schedule", ["1F1B", "GPipe"])
@pytest.mark.parametrize(("sections", "micro_batches"), [(2, 4), (2, 16), (4, 8)])
@pytest.mark.parametrize("buffered", [True, False])
def test_simulated_ranks_take_the_step_of_threads(sections, micro_batches, schedule, buffered):
    wanted = pipelines.trained(sections, micro_batches, steps=2, schedule=schedule)
    world = LocalWorld(sections, buffered=buffered)
    for found in world.run(pipelines.on_rank, sections, micro_batches, schedule):
        assert_same(found, wanted)


@pytest.mark.parametrize("extra", [lambda: ol.nn.Dropout(0.3), lambda: ol.nn.BatchNorm1D(12)])
def test_random_layers_and_running_statistics_are_those_of_threads(extra):
    wanted = pipelines.trained(2, 4, steps=2, extra=extra)
    for found in LocalWorld(2).run(pipelines.on_rank, 2, extra=extra):
        assert_same(found, wanted)


def test_several_ranks_for_a_section():
    wanted = pipelines.trained(2, 8, steps=2)
    found = LocalWorld(5).run(pipelines.on_rank, 2, 8, concurrency_list=[2, 3])
    for one in found:
        assert_same(one, wanted)


@pytest.mark.parametrize("schedule", ["1F1B", "GPipe"])
def test_messages_that_would_block_each_other_do_not(schedule):
    # A micro-batch is 8,192 rows of 12 numbers of 4 bytes, 384 KB: an activation goes one way while
    # a gradient goes the other, and neither send ends before it is received.
    world = LocalWorld(2, buffered=False)
    for micro_batches in (1, 4):
        size = {"examples": 8192 * micro_batches, "queue_size": 1}
        wanted = pipelines.trained(2, micro_batches, steps=2, schedule=schedule, **size)
        found = world.run(pipelines.on_rank, 2, micro_batches, schedule, **size)
        assert_same(found[0], wanted)


def test_a_blocking_exchange_of_the_same_sends_is_a_deadlock():
    """What the test above would be with sends that wait."""

    def f(comm):
        comm.send(np.ones((8192, 12), np.float32), dest=1 - comm.rank)
        return comm.recv(source=1 - comm.rank)

    with pytest.raises(RankError, match="deadlock"):
        LocalWorld(2, buffered=False).run(f)


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "micro_batches", "schedule", "examples", "queue_size"),
    [(2, 4, "1F1B", 4 * 8192, 1), (4, 8, "GPipe", 32, 30), (4, 8, "1F1B", 8 * 2048, 2)],
)
def test_ranks_of_mpi_take_the_step_of_threads(
    tmp_path, ranks, micro_batches, schedule, examples, queue_size
):
    on_mpi(ranks, "train", tmp_path, ranks, micro_batches, schedule, examples, queue_size)
    losses, wanted = pipelines.trained(
        ranks, micro_batches, steps=2, examples=examples, schedule=schedule
    )
    for rank in range(ranks):
        with np.load(tmp_path / f"{rank}.npz") as file:
            found = [file[name] for name in file.files]
        assert_same((found[0].tolist(), found[1:]), (losses, wanted))


def test_a_simulated_rank_that_raises_is_named_by_all():
    for said, same, seconds in LocalWorld(4).run(pipelines.failing, "raise"):
        assert "section 1 (3 Linear to 5 " in said
        assert "on rank 1 raised ArithmeticError: the third one" in said
        assert same
        assert seconds < 10


def test_a_simulated_rank_that_stalls_ends_the_others():
    with pytest.raises(RankError, match="rank 1"):
        LocalWorld(4, timeout=1.0).run(pipelines.failing, "stall")


@needs_mpi
def test_a_rank_of_mpi_that_raises_is_named_by_all(tmp_path):
    on_mpi(4, "fail", tmp_path, "raise", check=False)
    for rank in range(4):
        same, seconds, said = (tmp_path / f"{rank}.txt").read_text("utf-8").split(" ", 2)
        assert "section 1 (3 Linear to 5 " in said
        assert "raised ArithmeticError: the third one" in said
        assert same == "True"
        assert float(seconds) < 10


@needs_mpi
def test_a_rank_of_mpi_that_stalls_is_named_by_the_others(tmp_path):
    on_mpi(4, "fail", tmp_path, "stall", check=False)
    for rank in (0, 2, 3):
        same, seconds, said = (tmp_path / f"{rank}.txt").read_text("utf-8").split(" ", 2)
        assert "section 1 (3 Linear to 5 " in said
        assert "rank 1" in said
        assert same == "True"
        assert float(seconds) < 10


@needs_mpi
def test_a_killed_rank_of_mpi_ends_the_others(tmp_path):
    done = on_mpi(4, "fail", tmp_path, "kill", check=False)
    assert done.returncode != 0


def test_what_ranks_cannot_do_is_said():
    def closure(comm):
        model = pipelines.network()

        def run(x):
            h = (yield {"h": model[0](x)})["h"]
            return model[8](h)

        optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(model), ["h"], world=comm)
        optimizer.step(run, ol.nn.CrossEntropyLoss(), *pipelines.data())

    with pytest.raises(RankError, match="generator function runs on threads"):
        LocalWorld(2).run(closure)
    with pytest.raises(RankError, match="the world has 3 ranks, but the sections have 2"):
        LocalWorld(3).run(pipelines.on_rank, 2)

    def unequal(comm):
        ol.seed(comm.rank)
        model = ol.nn.Sequential(ol.nn.Linear(12, 12), ol.nn.Linear(12, 3))
        optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(model), ["0"], world=comm)
        optimizer.step(model, ol.nn.CrossEntropyLoss(), *pipelines.data())

    with pytest.raises(RankError, match="equal parameters"):
        LocalWorld(2).run(unequal)

    shared = pipelines.network()

    def one_model(comm):
        optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(shared), ["3"], world=comm)
        optimizer.step(shared, ol.nn.CrossEntropyLoss(), *pipelines.data())

    with pytest.raises(RankError, match=r"0\.weight"):
        LocalWorld(2).run(one_model)
