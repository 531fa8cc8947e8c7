"""Simulated ranks: the calls of mpi4py between threads, deadlocks, failures, modes."""

import pickle
import time
import types

import numpy as np
import pytest

import optlab as ol
from optlab.parallel import (
    CommunicationError,
    DeadlockError,
    LocalWorld,
    RankError,
    StalledError,
)
from optlab.parallel.local import board
from tests.stopwatch import Stopwatch


def ranks(n, f, *args, **settings):
    return LocalWorld(n, **settings).run(f, *args)


def error_of(n, f, **settings):
    """Return the error of the rank that raised."""
    with pytest.raises(RankError) as caught:
        ranks(n, f, **settings)
    return caught.value.__cause__


def test_results_come_in_the_order_of_the_ranks():
    def f(comm, base, *, factor):
        time.sleep(0.02 * (comm.size - comm.rank))
        return base + factor * comm.rank, comm.Get_rank(), comm.Get_size()

    assert LocalWorld(3).run(f, 10, factor=2) == [(10, 0, 3), (12, 1, 3), (14, 2, 3)]


def test_a_world_runs_again_and_of_one_rank():
    world = LocalWorld(1)
    assert world.run(lambda comm: comm.allreduce(5)) == [5]
    assert world.run(lambda comm: comm.bcast("x")) == ["x"]


def test_objects_are_copies():
    def f(comm):
        mine = [comm.rank]
        if comm.rank == 0:
            comm.send(mine, dest=1, tag=3)
            mine.append("changed")
            return mine
        return comm.recv(source=0, tag=3)

    assert ranks(2, f) == [[0, "changed"], [0]]


def test_messages_of_one_sender_stay_in_order_and_tags_choose():
    def f(comm):
        if comm.rank == 0:
            for i in range(5):
                comm.send(i, dest=1, tag=i % 2)
            return None
        odd = [comm.recv(source=0, tag=1) for _ in range(2)]
        return odd, [comm.recv(source=0, tag=0) for _ in range(3)]

    assert ranks(2, f)[1] == ([1, 3], [0, 2, 4])


@pytest.mark.parametrize("buffered", [True, False])
def test_arrays_between_two_ranks(buffered):
    def f(comm):
        x = np.full(5, comm.rank, np.float32)
        y = np.empty(5, np.float32)
        request = comm.Irecv(y, source=1 - comm.rank)
        comm.Send(x, dest=1 - comm.rank)
        assert request.Wait()
        z = np.empty((2, 2))
        if comm.rank == 0:
            comm.Send(np.arange(4.0).reshape(2, 2), 1)
        else:
            comm.Recv(z, 0)
        return y.tolist(), z.sum() if comm.rank else 6.0

    assert ranks(2, f, buffered=buffered) == [([1] * 5, 6.0), ([0] * 5, 6.0)]


def test_an_unbuffered_array_stays_with_its_sender_until_it_is_received():
    def f(comm):
        x = np.zeros(1)
        if comm.rank == 0:
            request = comm.Isend(x, 1)
            x[0] = 7  # an error in a program of MPI, which shows here
            comm.send("now", 1)
            request.Wait()
        else:
            comm.recv(source=0)
            comm.Recv(x, 0)
        return x[0]

    assert LocalWorld(2, buffered=False).run(f)[1] == 7
    assert LocalWorld(2).run(f)[1] == 0


def test_requests_say_whether_they_are_done():
    def f(comm):
        if comm.rank == 0:
            comm.recv(source=1)
            comm.isend("late", 1).wait()
            return None
        request = comm.irecv(source=0)
        before = request.test()
        comm.send("go", 0)
        return before, request.wait(), request.test()

    assert ranks(2, f)[1] == ((False, None), "late", (True, "late"))


def test_collective_calls_of_objects():
    def f(comm):
        r = comm.rank
        return (
            comm.bcast({"a": r}, root=2),
            comm.gather(r * r, root=1),
            comm.allgather(r),
            comm.scatter([10, 20, 30] if r == 0 else None),
            comm.reduce(r, root=2),
            comm.allreduce([r]),
            comm.allreduce(r, op=max),
            comm.alltoall([f"{r}{i}" for i in range(3)]),
        )

    found = ranks(3, f)
    assert [one[0] for one in found] == [{"a": 2}] * 3
    assert [one[1] for one in found] == [None, [0, 1, 4], None]
    assert [one[2] for one in found] == [[0, 1, 2]] * 3
    assert [one[3] for one in found] == [10, 20, 30]
    assert [one[4] for one in found] == [None, None, 3]
    assert [one[5] for one in found] == [[0, 1, 2]] * 3
    assert [one[6] for one in found] == [2] * 3
    assert [one[7] for one in found] == [[f"{i}{r}" for i in range(3)] for r in range(3)]


def test_collective_calls_of_arrays():
    def f(comm):
        r = comm.rank
        whole, mine = np.empty(6), np.array([r, -r], float)
        comm.Allgather(mine, whole)
        total = np.empty(2)
        comm.Allreduce(mine, total)
        part = np.empty(2)
        comm.Scatter(np.arange(6.0) if r == 1 else None, part, root=1)
        sent = np.full(2, r, np.int32)
        comm.Bcast(sent, root=2)
        at_root = np.empty(6) if r == 0 else None
        comm.Gather(mine, at_root)
        summed = np.empty(2)
        comm.Reduce(mine, summed if r == 0 else None)
        return whole, total, part, sent, at_root, summed

    found = ranks(3, f)
    for r, (whole, total, part, sent, at_root, summed) in enumerate(found):
        np.testing.assert_array_equal(whole, [0, 0, 1, -1, 2, -2])
        np.testing.assert_array_equal(total, [3, -3])
        np.testing.assert_array_equal(part, [2 * r, 2 * r + 1])
        np.testing.assert_array_equal(sent, [2, 2])
        if r == 0:
            np.testing.assert_array_equal(at_root, whole)
            np.testing.assert_array_equal(summed, total)


def test_reductions_add_in_the_order_of_the_ranks():
    parts = [np.array([1e8], np.float32), np.array([1], np.float32), np.array([-1e8], np.float32)]

    def f(comm):
        out = np.empty(1, np.float32)
        comm.Allreduce(parts[comm.rank], out)
        return out[0]

    assert ranks(3, f) == [np.float32(np.float32(1e8) + np.float32(1)) + np.float32(-1e8)] * 3


def test_split_and_dup_have_messages_of_their_own():
    def f(comm):
        half = comm.Split(color=comm.rank % 2, key=-comm.rank)
        twin = comm.Dup()
        if comm.rank == 0:
            comm.send("first", 1)
            twin.send("second", 1)
        got = (twin.recv(source=0), comm.recv(source=0)) if comm.rank == 1 else None
        return half.rank, half.size, half.allgather(comm.rank), got

    found = ranks(4, f)
    assert [one[:3] for one in found] == [
        (1, 2, [2, 0]),
        (1, 2, [3, 1]),
        (0, 2, [2, 0]),
        (0, 2, [3, 1]),
    ]
    assert found[1][3] == ("second", "first")


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda c: c.send(1, dest=2), "MPI_ERR_RANK"),
        (lambda c: c.recv(source=-7), "MPI_ERR_RANK"),
        (lambda c: c.send(1, dest=0, tag=-5), "MPI_ERR_TAG"),
        (lambda c: c.bcast(1, root=2), "MPI_ERR_ROOT"),
        (lambda c: c.Allgather(np.zeros(3), np.zeros(5)), "MPI_ERR_TRUNCATE"),
        (lambda c: c.Allreduce(np.zeros(2 + c.rank), np.zeros(3)), "MPI_ERR_COUNT"),
        (lambda c: c.Sendrecv(np.zeros(3), 1 - c.rank, 0, np.zeros(2)), "MPI_ERR_TRUNCATE"),
        (lambda c: c.bcast(1) if c.rank else c.barrier(), "MPI_ERR_OTHER"),
    ],
)
def test_what_mpi_refuses_is_refused(call, kind):
    error = error_of(2, call)
    assert isinstance(error, CommunicationError)
    assert error.kind == kind


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: c.send(1, dest="1"), TypeError),
        (lambda c: c.Send([1.0, 2.0, 3.0, 4.0, 5.0], 0), ValueError),
        (lambda c: c.Send(3.0, 0), TypeError),
        (lambda c: c.Send(np.zeros((4, 4))[:, ::2], 0), BufferError),
        (lambda c: c.Recv(np.zeros((4, 4))[:, ::2], 0), BufferError),
        (lambda c: c.Recv(np.broadcast_to(0.0, (1,)), 0), BufferError),
        (lambda c: c.send(lambda: 1, 0), (AttributeError, pickle.PicklingError)),
        (lambda c: c.scatter([1], root=c.rank), ValueError),
    ],
)
def test_wrong_arguments_have_the_errors_of_mpi4py(call, error):
    assert isinstance(error_of(2, call), error)


def test_a_deadlock_says_at_once_who_waits_for_whom():
    def f(comm):
        comm.recv(source=(comm.rank + 1) % 3, tag=comm.rank)

    with Stopwatch() as watch, pytest.raises(DeadlockError) as caught:
        ranks(3, f)
    assert watch.seconds < 4  # long before any deadline
    said = str(caught.value)
    for rank in range(3):
        other = (rank + 1) % 3
        assert f"rank {rank} in recv(source={other}, tag={rank}) for rank {other}" in said


def test_a_wait_for_a_rank_that_has_ended_is_a_deadlock():
    with pytest.raises(DeadlockError, match="rank 1 in barrier for rank 0, which has ended"):
        ranks(2, lambda comm: comm.barrier() if comm.rank else None)


def test_large_sends_that_block_on_mpi_block_here_unless_buffered():
    def f(comm):
        x, y = np.zeros(100_000), np.empty(100_000)
        comm.Send(x, 1 - comm.rank)
        comm.Recv(y, 1 - comm.rank)

    ranks(2, f)
    with pytest.raises(DeadlockError, match=r"rank 0 in Send\(dest=1, tag=0\) for rank 1"):
        ranks(2, f, buffered=False)


def test_a_rank_that_raises_ends_the_others_and_is_named():
    ended = []

    def f(comm):
        if comm.rank == 2:
            raise KeyError("no such weight")
        try:
            comm.barrier()
        finally:
            ended.append(comm.rank)

    with pytest.raises(RankError, match=r"rank 2 raised KeyError: 'no such weight'") as caught:
        ranks(4, f)
    assert caught.value.rank == 2
    assert isinstance(caught.value.__cause__, KeyError)
    patient_until = time.monotonic() + 30  # for a busy machine
    while len(ended) < 3 and time.monotonic() < patient_until:
        time.sleep(0.01)
    assert sorted(ended) == [0, 1, 3]


def test_a_rank_that_leaves_the_interpreter_is_named():
    def f(comm):
        if comm.rank == 1:
            raise SystemExit(3)
        comm.barrier()

    with pytest.raises(RankError, match="rank 1 raised SystemExit: 3"):
        ranks(2, f)


def test_a_rank_that_stalls_is_named_within_ten_seconds():
    def f(comm):
        if comm.rank == 3:
            time.sleep(60)
        comm.allreduce(1)

    said = r"rank 3 gave no sign of life .* waits in allreduce"
    with Stopwatch() as watch, pytest.raises(StalledError, match=said):
        ranks(4, f)
    assert watch.seconds < 10


def test_the_one_that_stalls_is_named_and_not_those_who_wait_for_it():
    def f(comm):
        if comm.rank == 2:
            time.sleep(30)
        while comm.rank == 0 and comm._board.waits[1] is None:
            time.sleep(0.01)
        if comm.rank < 2:
            comm.recv(source=comm.rank + 1)

    with pytest.raises(StalledError) as caught:
        ranks(3, f, timeout=0.5)
    assert caught.value.rank == 2


def test_a_rank_that_computes_for_longer_than_the_timeout_has_not_stalled(monkeypatch):
    # Deadlines count the processor time of this process, which others on the machine do not use.
    clocks = {name: getattr(time, name) for name in dir(time) if not name.startswith("_")}
    clocks["monotonic"] = time.process_time
    monkeypatch.setattr(board, "time", types.SimpleNamespace(**clocks))

    def f(comm):
        if comm.rank == 0:
            end = time.thread_time() + 0.5
            while time.thread_time() < end:
                sum(range(1000))
        return comm.allreduce(1)

    assert ranks(2, f, timeout=0.2) == [2, 2]


def test_no_wait_is_longer_than_the_longest():
    def f(comm):
        if comm.rank == 0:
            end = time.thread_time() + 3.0
            while time.thread_time() < end:
                sum(range(1000))
        comm.barrier()

    with pytest.raises(StalledError, match=r"rank 1 has waited in barrier for rank 0"):
        ranks(2, f, longest=0.5)


def test_ranks_have_the_modes_of_the_caller():
    x = ol.ones([2, 2], dtype="float32")

    def f(comm):
        w = ol.to_tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = w @ x
        return y.requires_grad, y.dtype, ol.is_grad_enabled()

    assert ranks(2, f) == [(True, np.dtype("float32"), True)] * 2
    with ol.no_grad(), ol.amp.auto_cast():
        assert ranks(2, f) == [(False, np.dtype("float16"), False)] * 2
    assert ranks(2, f) == [(True, np.dtype("float32"), True)] * 2


def test_ranks_draw_as_processes_with_one_seed_and_leave_the_caller_s_numbers():
    def f(comm):
        same = ol.rand([3]).numpy().tolist()
        with ol.random_scope("rank", comm.rank):
            return same, ol.rand([1]).item()

    ol.seed(5)
    alone = ol.rand([3]).numpy().tolist()
    after = ol.rand([1]).item()
    ol.seed(5)
    first = ranks(3, f)
    assert [one[0] for one in first] == [alone] * 3
    assert len({one[1] for one in first}) == 3
    assert ol.rand([3]).numpy().tolist() == alone
    assert ol.rand([1]).item() == after
    ol.seed(5)
    assert ranks(3, f) == first
    with ol.random_scope("data", seed=9):
        inside = ranks(2, f)
        assert inside[0][0] == inside[1][0] == ol.rand([3]).numpy().tolist()


def test_a_rank_that_seeds_does_so_for_itself():
    def f(comm):
        ol.seed(comm.rank)
        return ol.rand([1]).item()

    ol.seed(3)
    expected = ol.rand([1]).item()
    ol.seed(3)
    found = ranks(2, f)
    assert found[0] != found[1]
    assert ol.rand([1]).item() == expected


def test_the_world_counts_the_bytes_that_a_rank_sends():
    world = LocalWorld(2)

    def f(comm):
        if comm.rank == 0:
            comm.Send(np.zeros(100, np.float32), 1)
        else:
            comm.Recv(np.zeros(100, np.float32), 0)

    world.run(f)
    assert world.bytes_sent == [400, 0]


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "4"])
def test_a_world_has_at_least_one_rank(size):
    with pytest.raises(ValueError, match="number of ranks"):
        LocalWorld(size)
