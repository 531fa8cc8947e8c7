"""What an exchange knows of ranks that end or begin late, and which failure a launcher tells."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from optlab.backend import exchange
from optlab.backend.exchange import Exchange, Peer
from optlab.parallel import LocalWorld, RankError, StalledError, launcher, rank


class Never:
    """A request to a rank that does not answer."""

    def Test(self):
        return False


class World:
    """Two ranks, of which this is rank 0; nothing arrives."""

    Isend = Irecv = allgather = None

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 2


def test_a_rank_that_is_known_only_later_is_watched(monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    if not Peer(socket.gethostname(), process.pid).has_ended():
        pytest.skip("nothing is known of processes here")
    looks = iter([[None, None], [None, None], [None, Peer(socket.gethostname(), process.pid)]])
    monkeypatch.setattr(exchange, "launched_peers", lambda own, ranks: next(looks))
    one = Exchange(World(), "a test", timeout=0.2)
    one._find_peers()
    with pytest.raises(RankError, match=f"rank 1 .process {process.pid} on .* has ended") as caught:
        one.wait({1: Never()})
    assert caught.value.rank == 1


def test_ranks_are_named_by_their_numbers_in_the_whole_world():
    def f(comm):
        half = comm.Split(color=comm.rank % 2, key=-comm.rank)
        one = Exchange(half, "a test")
        return one.world_ranks, one.name(one.rank)

    found = LocalWorld(4).run(f)
    assert [names for names, _ in found] == [[2, 0], [3, 1]] * 2
    assert [name for _, name in found] == [f"rank {r}" for r in range(4)]


def test_that_a_rank_has_ended_is_explained_by_its_guard(tmp_path, monkeypatch):
    monkeypatch.setenv(exchange.FOLDER, str(tmp_path))
    rank._write("rank-2.json", process=72)
    # Rank 0 sees that rank 2 has ended before the guard of rank 2 can say why.
    rank._write_end(0, 70, "raised RankError: rank 2 has ended", other=2, ended=True)
    assert str(launcher._failure(tmp_path)) == "rank 2 has ended"
    monkeypatch.setattr(rank, "_PATIENCE", 60.0)
    said = "has died: it was killed by signal 9 (SIGKILL)"
    thread = threading.Timer(0.05, rank._write_end, (2, 72, said))
    thread.start()
    rank._await_report_of(2)
    error = launcher._failure(tmp_path)
    thread.join()
    assert error.rank == 2
    assert str(error) == "rank 2 (process 72) has died: it was killed by signal 9 (SIGKILL)"


def test_a_rank_that_stalls_is_not_one_that_mpi_has_killed(tmp_path, monkeypatch):
    monkeypatch.setenv(exchange.FOLDER, str(tmp_path))
    rank._write_end(0, 70, "raised StalledError: rank 2 gave no sign of life", other=2)
    rank._write_end(2, 72, "has died: it was killed by signal 15 (SIGTERM)")  # by mpiexec
    error = launcher._failure(tmp_path)
    assert error.rank == 2
    assert str(error) == "rank 2 gave no sign of life"


@pytest.mark.parametrize("kind", [RankError, StalledError])
def test_a_rank_that_fails_says_whether_the_other_is_gone(kind, tmp_path, monkeypatch):
    monkeypatch.setenv(exchange.FOLDER, str(tmp_path))
    monkeypatch.setattr(rank, "_PATIENCE", 0.05)
    rank._write("rank-1.json", process=71)

    class Ends(Exception):
        pass

    class Mpi:
        class COMM_WORLD:
            @staticmethod
            def Abort(code):
                raise Ends

    with pytest.raises(Ends):
        rank._fail(Mpi, 0, "RankError: rank 1 is missing", kind("rank 1 is missing", 1))
    said = json.loads((tmp_path / f"end-{os.getpid()}.json").read_text("utf-8"))
    assert (said["rank"], said["other"], said["ended"]) == (0, 1, kind is RankError)
