"""Kernels are compiled in a child process into a cache on disk; no step waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest

from optlab.plan import capture_blocks, executors, numba_cache, use_executor
from optlab.plan.executors import executor_of, has_numba
from optlab.plan.numba_cache import Kernel
from optlab.plan.numba_compiler import prune
from optlab.plan.numba_kernels import machine_loops_of
from optlab.plan.threads import run_pieces

needs_numba = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")
posix = pytest.mark.skipif(os.name != "posix", reason="about processes of POSIX")

SUM = """\
def kernel(size, p_x, p_y):
    x = carray(p_x, size)
    y = carray(p_y, size)
    for i in range(size):
        y[i] = x[i] + y[i]
    return size
"""
POINTERS = ("int64", "float32*", "float32*")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Let this process begin without kernels, in memory and on disk; return the folder."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba_cache, "_kernels", WeakValueDictionary())
    return tmp_path / "optlab" / "kernels"


def added(function):
    """Return [1, 2] + [3, 4] by a kernel."""
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    count = np.zeros(1, np.int64)
    assert function(count.ctypes.data, None, 2, x.ctypes.data, y.ctypes.data) == 0
    assert count[0] == 2
    return y.tolist()


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def plan_of_sgd():
    example = np.ones(2, np.float32)
    step = lambda a, n: {"p": a["p"] - n["rate"] * a["g"]}  # noqa: E731
    return capture_blocks(step, {"p": example, "g": example}, {"rate": 0.1})


def children():
    """Return the child processes, where the system tells."""
    lists = Path("/proc/self/task").glob("*/children")
    return {pid for one in lists for pid in one.read_text().split()}


@needs_numba
def test_a_child_process_compiles_while_numpy_goes_on(monkeypatch, cache):
    before = children()
    monkeypatch.setattr(executors, "LOOK_UP", 1)
    monkeypatch.setattr(executors, "COMPILE", 100)
    plan = plan_of_sgd()
    draw = np.random.default_rng(0)
    p, g = draw.standard_normal((2, 5000)).astype(np.float32)
    expected = p.copy()
    used = []

    def step():
        executor = executor_of(plan, 30)
        used.append(executor is not plan)
        run_pieces(executor, [0.1], [[p, g]])
        run_pieces(plan, [0.1], [[expected, g]])
        return used[-1]

    with use_executor("auto"):
        for _ in range(4):
            step()
        assert used == [False] * 4  # nobody waited
        wait_for(step)
        assert step()
    assert p.tobytes() == expected.tobytes()
    wait_for(lambda: numba_cache._compilation.thread is None)
    assert children() <= before  # no zombie either


@needs_numba
def test_a_fresh_process_uses_the_cache_without_numba(cache):
    Kernel(SUM, POINTERS).compile()
    code = f"""
    import sys
    from optlab.plan.numba_cache import Kernel
    kernel = Kernel({SUM!r}, {POINTERS!r})
    assert kernel.look_up()
    assert "numba" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@needs_numba
@pytest.mark.parametrize("which", [".so", ".o", ".o without linker"])
def test_both_forms_of_a_kernel(cache, which, monkeypatch):
    if which == ".o without linker":
        monkeypatch.setenv("PATH", "")
    Kernel(SUM, POINTERS).compile()
    files = {path.suffix: path for path in cache.iterdir()}
    if which == ".o without linker":
        assert set(files) == {".o"}
    elif which == ".so" and ".so" not in files:
        pytest.skip("there is no linker here")
    elif which == ".o":
        files.pop(".so", files[".o"].with_suffix(".so")).unlink(missing_ok=True)
    kernel = Kernel(SUM, POINTERS)
    assert kernel.look_up()
    assert added(kernel.function) == [4.0, 6.0]


@needs_numba
@pytest.mark.parametrize("spoil", ["cut", "changed", "empty", "folder"])
def test_spoiled_files_are_not_loaded(cache, spoil):
    Kernel(SUM, POINTERS).compile()
    for path in cache.iterdir():
        content = path.read_bytes()
        if spoil == "folder":
            path.unlink()
            path.mkdir()
        elif spoil == "changed":
            path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        else:
            path.write_bytes(content[: len(content) // 2 if spoil == "cut" else 0])
    assert not Kernel(SUM, POINTERS).look_up()
    kernel = Kernel(SUM, POINTERS)
    kernel.compile()
    assert added(kernel.function) == [4.0, 6.0]
    if spoil != "folder":
        assert Kernel(SUM, POINTERS).look_up()  # it was written again


@needs_numba
def test_a_kernel_of_another_processor_or_release_is_another_one(cache, monkeypatch):
    Kernel(SUM, POINTERS).compile()
    assert Kernel(SUM, POINTERS).look_up()
    monkeypatch.setattr(numba_cache, "_environment", lambda: ("another machine",))
    assert not Kernel(SUM, POINTERS).look_up()
    assert not Kernel(SUM, ("int64", "float64*", "float64*")).look_up()


@posix
def test_the_folder_is_where_it_can_be_written_and_by_nobody_else(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    for name in ("home", "caches", "numba", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert numba_cache.folder() == str(tmp_path / "home/.cache/optlab/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/path")
    assert numba_cache.folder() == str(tmp_path / "home/.cache/optlab/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert numba_cache.folder() == str(tmp_path / "caches/optlab/kernels")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    place = numba_cache.folder()
    assert place == str(tmp_path / "numba/optlab/kernels")
    assert os.stat(place).st_mode & 0o777 == 0o700
    os.chmod(place, 0o777)  # anybody may put code there
    elsewhere = str(tmp_path / f"temporary/optlab-{os.getuid()}/kernels")
    assert numba_cache.folder() == elsewhere
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert numba_cache.folder() == elsewhere
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    assert numba_cache.folder() is None


@needs_numba
def test_without_any_folder_numpy_goes_on_and_numba_compiles_for_this_process(
    monkeypatch, cache, tmp_path
):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    kernel = Kernel(SUM, POINTERS)
    kernel.request()
    wait_for(lambda: numba_cache._compilation.thread is None)
    assert not kernel.look_up()
    kernel.compile()
    assert added(kernel.function) == [4.0, 6.0]


def test_the_cache_is_bounded(tmp_path):
    for i in range(10):
        for suffix in (".o", ".so"):
            path = tmp_path / f"kernel{i}{suffix}"
            path.touch()
            os.utime(path, (i, i))
    os.utime(tmp_path / "kernel0.o", (100, 100))  # it was used last
    (tmp_path / "writing-of-a-process-that-was-killed").touch()
    os.utime(tmp_path / "writing-of-a-process-that-was-killed", (0, 0))
    (tmp_path / "writing-now").touch()
    prune(str(tmp_path), most=3)
    kept = {path.name for path in tmp_path.iterdir()} - {"writing-now"}
    assert kept == {f"kernel{i}{suffix}" for i in (0, 8, 9) for suffix in (".o", ".so")}
    assert (tmp_path / "writing-now").exists()


@needs_numba
@pytest.mark.parametrize("why", ["refused", "frozen", "numpy", "early"])
def test_no_child_is_started(monkeypatch, cache, why):
    monkeypatch.setattr(executors, "LOOK_UP", 1)
    started = []

    def popen(*args, **kwargs):
        started.append(args)
        raise PermissionError("no processes here")

    monkeypatch.setattr(subprocess, "Popen", popen)
    if why == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    plan = plan_of_sgd()
    with use_executor("numpy" if why == "numpy" else "auto"):
        for _ in range(3):
            assert executor_of(plan, 1 << (20 if why == "early" else 30)) is plan
    wait_for(lambda: numba_cache._compilation.thread is None)
    assert bool(started) == (why == "refused")
    assert not list(cache.glob("*"))


@needs_numba
def test_what_the_child_cannot_compile_is_said_once(monkeypatch, cache):
    monkeypatch.setattr(executors, "LOOK_UP", 1)
    monkeypatch.setattr(executors, "COMPILE", 1)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plan = plan_of_sgd()
    with use_executor("auto"):
        assert executor_of(plan, 10) is plan
        wait_for(lambda: plan.loops_wanted.problem)
        with pytest.warns(RuntimeWarning, match="NUMBA_DISABLE_JIT is set"):
            assert executor_of(plan, 10) is plan
        assert executor_of(plan, 10) is plan


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


#: A program that has a child compile something, and says its process id.
COMPILES = f"""
import os, signal, sys, time
from optlab.plan import numba_cache
kernel = numba_cache.Kernel({SUM!r}, {POINTERS!r})
kernel.request()
while numba_cache._compilation.process is None:
    time.sleep(0.001)
print(numba_cache._compilation.process.pid, flush=True)
"""


@needs_numba
@posix
@pytest.mark.parametrize(
    "end",
    [
        "pass",
        "os._exit(0)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.fork() or time.sleep(90)\nos._exit(0)",  # a fork holds the pipe open
    ],
)
def test_the_child_never_outlives_its_parent(cache, end):
    process = subprocess.Popen(
        [sys.executable, "-c", COMPILES + end], stdout=subprocess.PIPE, text=True
    )
    child = int(process.stdout.readline())
    process.wait(90)
    # A child that has compiled in the meantime has ended anyhow.
    wait_for(lambda: not alive(child), 60)
    process.stdout.close()
    if end == "pass":
        assert process.returncode == 0


@needs_numba
@posix
def test_a_forked_process_compiles_by_a_child_of_its_own(cache):
    code = COMPILES + textwrap.dedent(
        """
        pid = os.fork()
        if not pid:
            kernel.request()
            while not kernel.look_up():
                time.sleep(0.01)
            os._exit(7)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=90).returncode == 7


@needs_numba
@pytest.mark.nightly
@pytest.mark.slow
def test_several_processes_compile_the_same_at_once(cache):
    code = f"""
    import time
    from optlab.plan.numba_cache import Kernel
    kernel = Kernel({SUM!r}, {POINTERS!r})
    kernel.request()
    while not kernel.look_up():
        time.sleep(0.01)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(90) for process in processes] == [0, 0, 0]
    assert {path.suffix for path in Path(cache).iterdir()} <= {".o", ".so"}
    assert len(list(cache.glob("*.o"))) == 1


@needs_numba
def test_numba_from_the_first_step_takes_the_cache(cache, monkeypatch):
    import numba

    machine_loops_of(plan_of_sgd())
    monkeypatch.setattr(numba_cache, "_kernels", WeakValueDictionary())
    monkeypatch.setattr(numba, "cfunc", None)  # the compiler is not called again
    with use_executor("numba"):
        plan = plan_of_sgd()
        assert executor_of(plan, 1) is not plan
