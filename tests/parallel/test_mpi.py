"""Real ranks of MPI on this machine: the same code as on simulated ones, to the bit; failures."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from optlab.parallel import LocalWorld, RankError, StalledError, launch
from optlab.parallel.launcher import mpiexec
from tests.parallel import programs
from tests.stopwatch import Stopwatch

pytest.importorskip("mpi4py")
if sys.platform == "win32":
    pytest.skip("the extra brings no MPI for Windows", allow_module_level=True)

PROGRAM = Path(programs.__file__)
ROOT = PROGRAM.parents[2]
#: A test waits for nothing longer than this, whatever happens.
PATIENCE = 120


def on_mpi(ranks, name, *args, path):
    """Run a program under plain mpiexec; return what every rank returned."""
    command = [
        mpiexec(), "-n", str(ranks), sys.executable, "-m", "mpi4py", str(PROGRAM), name, str(path),
        *map(json.dumps, args),
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(path.read_text())


def environment():
    return {
        **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip


def in_json(results):
    return json.loads(json.dumps(results))


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", ["calls", "data_parallel", "compressed"])
def test_simulated_ranks_compute_the_bits_of_real_ones(name, ranks, tmp_path):
    real = on_mpi(ranks, name, path=tmp_path / "found.json")
    for buffered in (True, False) if name == "data_parallel" else (True,):
        simulated = LocalWorld(ranks, buffered=buffered).run(getattr(programs, name))
        assert in_json(simulated) == real


def launched(name, *args, path):
    """Run a program by the launcher; return its error and the seconds that it took."""
    with Stopwatch() as watch, pytest.raises(RankError) as caught:
        launch(str(PROGRAM), 4, [name, str(path), *map(json.dumps, args)])
    return caught.value, watch.seconds


@pytest.fixture
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("in_root")
@pytest.mark.parametrize("who", [0, 2])
def test_a_process_that_is_killed_is_named_by_its_rank(who, tmp_path):
    error, _ = launched("dies", who, path=tmp_path / "x")
    assert error.rank == who
    assert f"rank {who} (process " in str(error)
    assert "killed by signal 9 (SIGKILL)" in str(error)


@pytest.mark.usefixtures("in_root")
def test_a_process_that_leaves_without_a_word_is_named_by_its_rank(tmp_path):
    error, _ = launched("leaves", 1, path=tmp_path / "x")
    assert error.rank == 1
    assert "has ended: its process left with code 5" in str(error)


@pytest.mark.usefixtures("in_root")
@pytest.mark.parametrize(("name", "who", "ended"), [("returns", 1, [1]), ("late", 0, [1, 2, 3])])
def test_a_rank_whose_program_is_done_is_said_to_have_ended(name, who, ended, tmp_path):
    error, _ = launched(name, who, path=tmp_path / "x")
    assert not isinstance(error, StalledError)
    assert error.rank in ended
    assert f"rank {error.rank} (process " in str(error)
    assert "has ended, while rank " in str(error)


def test_ranks_exchange_in_functions_registered_for_the_end(tmp_path):
    on_mpi(2, "exchanges_at_the_end", str(tmp_path), path=tmp_path / "found.json")
    for rank in range(2):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == [0, 1]


@pytest.mark.usefixtures("in_root")
def test_a_rank_that_raises_is_named_and_ends_the_others(tmp_path):
    error, _ = launched("raises", 1, path=tmp_path / "x")
    assert error.rank == 1
    assert "raised KeyError: 'no such weight'" in str(error)


@pytest.mark.usefixtures("in_root")
def test_a_rank_that_stalls_is_named_by_those_who_wait_for_it(tmp_path, capfd):
    error, seconds = launched("stalls", 3, 90, path=tmp_path / "x")
    assert error.rank == 3
    assert "gave no sign of life for 7 seconds" in str(error)
    assert "waits for it in an exchange of average_gradients" in str(error)
    assert seconds < 60  # long before the rank that sleeps would have come


@pytest.mark.usefixtures("in_root")
@pytest.mark.skipif(sys.platform != "linux", reason="a process is bound to its parent on Linux")
def test_a_launcher_that_is_killed_leaves_no_rank(tmp_path):
    command = [sys.executable, "-m", "optlab.parallel", "-n", "2", str(PROGRAM), "announces"]
    launcher = subprocess.Popen([*command, str(tmp_path / "x"), json.dumps(str(tmp_path))])
    ranks = [tmp_path / "0", tmp_path / "1"]
    wait_until(lambda: all(path.exists() for path in ranks) or launcher.poll() is not None)
    launcher.kill()
    launcher.wait()
    places = [Path("/proc", path.read_text()) for path in ranks]
    wait_until(lambda: not any(place.exists() for place in places))
    assert not any(place.exists() for place in places)


def wait_until(true):
    patient_until = time.monotonic() + PATIENCE
    while not true() and time.monotonic() < patient_until:
        time.sleep(0.05)


@pytest.mark.usefixtures("in_root")
def test_a_program_that_ends_well_ends_without_an_error(tmp_path, capfd):
    launch(str(PROGRAM), 2, ["data_parallel", str(tmp_path / "found.json"), "1"])
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found) == 2
    assert found[0] == found[1]


def test_plain_mpiexec_with_mpi4py_s_runner_ends_and_names_the_rank(tmp_path):
    command = [
        mpiexec(), "-n", "2", sys.executable, "-m", "mpi4py", str(PROGRAM), "raises",
        str(tmp_path / "x"), "1",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "KeyError: 'no such weight'" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["raises", "stalls"])
def test_simulated_ranks_name_who_raises_and_who_stalls(name):
    args = (1, 30) if name == "stalls" else (1,)
    with pytest.raises(RankError, match="rank 1") as caught:
        LocalWorld(3, timeout=1.0).run(getattr(programs, name), *args)
    assert isinstance(caught.value, StalledError) == (name == "stalls")
    assert caught.value.rank == 1
