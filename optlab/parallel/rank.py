"""One rank of a launched program: a guard, and the process that it guards, which runs the program.

The process announces its rank, writes what ended it and ends the others. If it is killed it cannot
write: its guard, which waits for it, does.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from optlab.backend.exchange import FOLDER, launched_rank
from optlab.backend.rank_errors import RankError, StalledError
from optlab.io.atomic import replacing
from optlab.io.processes import ends_with_parent

#: Seconds that a rank which has seen another one end leaves to that one's guard, to say why.
_PATIENCE = 2.0


def _write(name: str, **content: Any) -> None:
    """Write a file into the launcher's folder: aside, and then renamed."""
    folder = os.environ.get(FOLDER)
    if folder and Path(folder).is_dir():
        with replacing(Path(folder) / name) as file:
            file.write(json.dumps(content).encode())


def _write_end(
    rank: int | None,
    process: int,
    error: str | None,
    other: int | None = None,
    ended: bool = False,
) -> None:
    """Write what ended a rank; `other` is the rank that it blames, `ended` whether that is gone."""
    _write(
        f"end-{process}.json", rank=rank, process=process, error=error, other=other, ended=ended,
        at=time.time(),
    )  # fmt: skip


def _report_of(process: int) -> Path | None:
    """Return where a process writes what ended it; None without a launcher that reads it."""
    folder = os.environ.get(FOLDER)
    return Path(folder) / f"end-{process}.json" if folder else None


def main() -> None:
    """Run the program ``sys.argv[1]`` with the arguments behind it, guarded."""
    process = os.fork() if hasattr(os, "fork") else 0
    if process == 0:
        ends_with_parent()()  # its guard
        _run()
        return
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        _write_end(launched_rank(), process, f"has died: it was killed by signal {number} ({name})")
        os._exit(128 + number)
    code, report = os.WEXITSTATUS(status), _report_of(process)
    if code and report is not None and not report.exists():
        _write_end(launched_rank(), process, f"has ended: its process left with code {code}")
    os._exit(code)


def _run() -> None:
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    _write(f"rank-{rank}.json", process=os.getpid())
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            _fail(MPI, rank, f"SystemExit: {end.code}", None)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the others wait for this rank
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        _fail(MPI, rank, said, error)
    _write_end(rank, os.getpid(), None)


def _fail(mpi: Any, rank: int, said: str, error: BaseException | None) -> NoReturn:
    """Say what happened, and end all ranks."""
    other = error.rank if isinstance(error, RankError) else None
    ended = other is not None and not isinstance(error, StalledError)
    _write_end(rank, os.getpid(), f"raised {said}", other, ended)
    if ended:
        _await_report_of(other)
    if error is not None:
        traceback.print_exception(error)
    sys.stderr.write(f"rank {rank} (process {os.getpid()}) raised {said}\n")
    sys.stderr.flush()
    sys.stdout.flush()
    mpi.COMM_WORLD.Abort(1)
    os._exit(1)  # Abort may return before the launcher has ended this process


def _await_report_of(rank: int | None) -> None:
    """Wait for what the guard of a rank that has ended writes: Abort would end that guard, too."""
    begin = time.monotonic()
    with contextlib.suppress(OSError, TypeError, ValueError, KeyError):
        announced = Path(os.environ.get(FOLDER, "")) / f"rank-{rank}.json"
        report = _report_of(json.loads(announced.read_text(encoding="utf-8"))["process"])
        while report is not None and not report.exists():
            if time.monotonic() - begin >= _PATIENCE:
                return
            time.sleep(0.02)


if __name__ == "__main__":
    main()
