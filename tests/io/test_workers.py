"""Workers: what they receive, and errors when one raises, dies, or takes too long."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab.io import DataLoader, WorkerError
from tests.stopwatch import Stopwatch

ROOT = Path(__file__).resolve().parents[2]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="forks, and signals of POSIX")
FORK = pytest.param("fork", marks=POSIX)
SPAWN = pytest.param("spawn", marks=pytest.mark.slow)


class Troubled(ol.io.Dataset):
    """A data set that calls a function for one example."""

    def __init__(self, trouble, at=5):
        self.trouble, self.at = trouble, at

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == self.at:
            self.trouble()
        return index


class OwnError(Exception):
    """An exception that cannot be pickled: it holds a lock."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
        self.lock = threading.Lock()


def divide():
    return 1 / 0


def own_error():
    raise OwnError("one", "two")


def leave():
    os._exit(3)


def exit_politely():
    sys.exit(4)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def sleep():
    time.sleep(60)


def all_ended():
    """Return whether all worker processes have ended."""
    return not multiprocessing.active_children()


class TestErrors:
    @pytest.mark.parametrize("kind", [FORK, SPAWN, "thread"])
    def test_one_that_raises_says_which_example(self, kind):
        loader = DataLoader(Troubled(divide), batch_size=2, num_workers=2, worker_type=kind)
        batches = iter(loader)
        assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(WorkerError) as caught:
            next(batches)
        said = str(caught.value)
        assert "could not read example 5 of the data set (batch 2): ZeroDivisionError" in said
        assert "in divide\n    return 1 / 0" in said
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert all_ended()

    @pytest.mark.parametrize("kind", [FORK, "thread"])
    def test_an_exception_that_cannot_travel_is_told_in_words(self, kind):
        loader = DataLoader(Troubled(own_error), num_workers=1, worker_type=kind)
        with pytest.raises(WorkerError, match=r"example 5 .*OwnError: one and two") as caught:
            list(loader)
        assert caught.value.__cause__ is None

    def test_in_collate_and_at_the_start(self):
        def collate(examples):
            raise KeyError("nothing fits")

        def init(number):
            raise OSError(f"no room for {number}")

        for options, said in (
            ({"collate_fn": collate}, r"could not read batch 0, made of the examples \[0, 1\]"),
            ({"worker_init_fn": init}, "worker 0 could not start: OSError: no room for 0"),
        ):
            for kind in ("thread", None):
                loader = DataLoader(
                    range(4), batch_size=2, num_workers=1, worker_type=kind, **options
                )
                with pytest.raises((WorkerError, TypeError), match=f"{said}|cannot be sent"):
                    list(loader)

    @POSIX
    def test_a_batch_that_cannot_be_sent(self):
        loader = DataLoader(range(4), num_workers=1, collate_fn=lambda examples: lambda: 1)
        with pytest.raises(WorkerError, match="could not send batch 0"):
            list(loader)

    def test_what_cannot_be_sent_to_a_fresh_process(self):
        loader = DataLoader(
            range(4), num_workers=1, worker_type="spawn", collate_fn=lambda examples: 1
        )
        with pytest.raises(TypeError, match=r"cannot be sent to one.*worker_type='thread'"):
            list(loader)
        assert all_ended()

    def test_a_thread_that_is_told_to_exit_does_not_hang(self):
        loader = DataLoader(Troubled(exit_politely), num_workers=1, worker_type="thread")
        with pytest.raises(WorkerError, match="was ended by batch 5: SystemExit"):
            list(loader)

    def test_a_stream(self):
        class Stream(ol.io.IterableDataset):
            def __iter__(self):
                yield from (1, 2, 3)
                raise RuntimeError("the cable is cut")

        loader = DataLoader(Stream(), batch_size=2, num_workers=2, worker_type="thread")
        with pytest.raises(WorkerError, match=r"example 1 of batch 1 of the stream.*cable"):
            list(loader)

    def test_workers_inside_workers(self):
        class Nested(ol.io.Dataset):
            def __len__(self):
                return 1

            def __getitem__(self, index):
                return len(list(DataLoader(range(3), num_workers=1)))

        with pytest.raises(WorkerError, match="inside a worker needs num_workers=0"):
            list(DataLoader(Nested(), num_workers=1, worker_type="thread"))


class TestDeath:
    @pytest.mark.parametrize("kind", [FORK, SPAWN])
    @pytest.mark.parametrize(
        ("trouble", "how"),
        [
            (leave, "ended with exit code 3"),
            (exit_politely, "ended with exit code 4"),
            pytest.param(kill, r"was killed by signal 9 \(SIGKILL\)", marks=POSIX),
        ],
    )
    def test_one_that_dies_says_over_which_example(self, trouble, how, kind):
        loader = DataLoader(Troubled(trouble), batch_size=2, num_workers=2, worker_type=kind)
        with pytest.raises(WorkerError, match=rf"{how} while it read example 5 .*\(batch 2\)"):
            list(loader)
        assert all_ended()

    @POSIX
    def test_at_the_start_and_between_batches(self):
        loader = DataLoader(range(4), num_workers=1, worker_init_fn=lambda number: os._exit(1))
        with pytest.raises(WorkerError, match="ended with exit code 1 while it started"):
            list(loader)
        loader = DataLoader(range(4), num_workers=1, persistent_workers=True)
        list(loader)
        pid = loader._pool.workers[0].process.pid
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match=f"process {pid}. was killed by signal 9"):
            list(loader)
        assert [b.item() for b in loader] == [0, 1, 2, 3]  # with a new worker
        loader._end_workers()

    @POSIX
    def test_large_batches_and_long_lists_of_numbers_do_not_lock(self):
        class Large(ol.io.Dataset):
            def __len__(self):
                return 60_000

            def __getitem__(self, index):
                return np.full(4, index)

        loader = DataLoader(Large(), batch_size=20_000, num_workers=1, prefetch_factor=3)
        assert [batch.shape for batch in loader] == [(20_000, 4)] * 3

    @pytest.mark.parametrize("kind", [FORK, "thread"])
    def test_one_that_takes_too_long(self, kind):
        late = threading.Event()
        loader = DataLoader(
            Troubled(sleep if kind == "fork" else lambda: late.wait(60)),
            batch_size=2,
            num_workers=2,
            timeout=2,  # a fork of this process on a busy machine is no trouble
            worker_type=kind,
        )
        said = r"more than timeout=2 seconds: .*batch 2"
        with Stopwatch() as watch, pytest.raises(TimeoutError, match=said):
            list(loader)
        late.set()
        assert watch.seconds < 10
        assert all_ended()


class TestLife:
    @POSIX
    def test_leaving_a_loop_ends_the_workers(self):
        for _ in DataLoader(range(100), num_workers=2):
            break
        assert all_ended()
        batches = iter(DataLoader(Troubled(sleep, at=1), num_workers=1))
        next(batches)
        del batches  # its worker is asleep
        assert all_ended()

    def test_threads_end_too(self):
        for _ in DataLoader(range(100), num_workers=2, worker_type="thread"):
            break
        end = time.monotonic() + 60
        while any(t.name.startswith("optlab worker") for t in threading.enumerate()):
            assert time.monotonic() < end
            time.sleep(0.01)

    @POSIX
    def test_persistent_workers_stay(self):
        class Where(ol.io.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return os.getpid()

        loader = DataLoader(Where(), num_workers=2, persistent_workers=True)
        first = {b.item() for b in loader}
        next(iter(loader))  # abandoned: the rest of its batches is dropped
        assert {b.item() for b in loader} <= first
        assert os.getpid() not in first
        pool = loader._pool
        assert len(pool.ready) == 0
        del loader
        assert all_ended()

    def test_worker_info_and_init(self):
        class Info(ol.io.Dataset):
            def __len__(self):
                return 8

            def __getitem__(self, index):
                info = ol.io.get_worker_info()
                return info.id, info.num_workers, info.seed, len(info.dataset)

        started = []
        loader = DataLoader(
            Info(), num_workers=2, worker_type="thread", worker_init_fn=started.append
        )
        batches = [[part.item() for part in batch] for batch in loader]
        assert sorted(started) == [0, 1]
        assert {batch[1] for batch in batches} == {2}
        assert {batch[3] for batch in batches} == {8}
        assert ol.io.get_worker_info() is None

    @POSIX
    def test_a_stream_that_parts_itself_comes_whole(self):
        class Parted(ol.io.IterableDataset):
            def __iter__(self):
                info = ol.io.get_worker_info()
                step, start = (1, 0) if info is None else (info.num_workers, info.id)
                return iter(range(start, 10, step))

        for workers in (0, 3):
            loader = DataLoader(Parted(), batch_size=4, num_workers=workers)
            assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def start_script(code):
    """Start a script in a new process, with its output piped."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


SLEEPY = """
    import os, sys, time
    import optlab as ol
    class Sleepy(ol.io.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            if index == 4:
                time.sleep(600)
            return os.getpid()
    batches = iter(ol.io.DataLoader(Sleepy(), num_workers=2, worker_type={kind!r}))
"""


def wait_until_gone(pid, within=60):
    """Wait until a process has ended, also if its parent left it as a zombie."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


@POSIX
class TestTheEnd:
    @pytest.mark.parametrize("kind", ["fork", "thread"])
    def test_the_interpreter_ends_while_a_worker_is_busy(self, kind):
        code = SLEEPY.format(kind=kind) + "    print(next(batches).item(), flush=True)\n"
        process = start_script(code)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0
        assert err == ""
        assert kind == "thread" or wait_until_gone(int(out))

    def test_an_interrupt_reaches_the_loop_and_no_worker_complains(self):
        # The job of a script in the background ignores interrupts.
        code = "\n    import signal"
        code += "\n    signal.signal(signal.SIGINT, signal.default_int_handler)"
        code += SLEEPY.format(kind="fork") + (
            "    try:\n"
            "        print([next(batches).item() for _ in range(4)][0], flush=True)\n"
            "        next(batches)\n"
            "    except KeyboardInterrupt:\n"
            "        print('interrupted', flush=True)\n"
        )
        process = start_script(textwrap.dedent(code))
        pid = int(process.stdout.readline())
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        out, err = process.communicate(timeout=120)
        assert out == "interrupted\n"
        assert err == ""
        assert wait_until_gone(pid)

    def test_workers_do_not_outlive_a_parent_that_was_killed(self):
        code = SLEEPY.format(kind="fork") + (
            "    print(*{next(batches).item() for _ in range(4)}, flush=True)\n    next(batches)\n"
        )
        process = start_script(textwrap.dedent(code))
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()
        process.communicate(timeout=120)
        assert pids
        assert all(wait_until_gone(pid) for pid in pids)
