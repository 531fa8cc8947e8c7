"""A launcher of programs on the ranks of MPI that says which rank failed, and why.

``python -m optlab.parallel -n 4 train.py`` runs ``mpiexec -n 4`` with a `rank` around the program:
it announces rank and process, and writes what ended it, also if it was killed. (mpiexec kills all
when one is killed, and then names any of them.)
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optlab.backend.exchange import FOLDER
from optlab.backend.extras import missing
from optlab.backend.rank_errors import RankError
from optlab.io.processes import ends_with_parent

_PAUSE = 0.05


def mpiexec() -> str:
    """Return the path of ``mpiexec``: that of this environment, or the one on the PATH.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(
            missing("A program on ranks of MPI", "mpiexec") + " optlab doctor says more."
        )
    return found


def launch(script: str, ranks: int, arguments: Sequence[str] = ()) -> None:
    """Run a program on ranks of MPI on this machine, until all of them have ended.

    Parameters
    ----------
    script : str
        The path of a Python program.
    ranks : int
    arguments : sequence of str
        Its ``sys.argv[1:]``.

    Raises
    ------
    RankError
        If a rank raises, or its process ends or is killed. The message names the rank and its
        process; the others have ended.

    Notes
    -----
    What the ranks print appears as they print it. If this process is killed, mpiexec and the ranks
    are, too, on Linux. From a shell:
    ``python -m optlab.parallel -n 4 train.py``.
    """
    folder = Path(tempfile.mkdtemp(prefix="optlab-ranks-"))
    command = [
        mpiexec(), "-n", str(ranks), sys.executable, "-m", "optlab.parallel.rank", str(script),
        *arguments,
    ]  # fmt: skip
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, FOLDER: str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=ends_with_parent() if os.name == "posix" else None,
        )
        reader = threading.Thread(target=_pass_on, args=(process,), daemon=True)
        reader.start()
        try:
            _watch(process, folder)
        finally:
            _end(process)
        reader.join(2.0)
        failure = _failure_after(process, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if failure is not None:
        raise failure


def _pass_on(process: Any) -> None:
    """Print what the ranks print."""
    with process.stdout as lines:
        for line in lines:
            sys.stdout.write(line)
            sys.stdout.flush()


def _watch(process: Any, folder: Path) -> None:
    """Wait for the end of mpiexec; a moment only, if a rank has failed."""
    while process.poll() is None:
        time.sleep(_PAUSE)
        if any(folder.glob("end-*.json")) and _failure(folder) is not None:
            # mpiexec ends the others; should it not, they are ended here.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3.0)
            return


def _failure(folder: Path) -> RankError | None:
    """Return the first failure that a rank, or its guard, has written."""
    ends = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("end-*.json")]
    failed = [one for one in ends if one["error"]]
    if not failed:
        return None
    first = min(failed, key=lambda one: one["at"])
    if first["ended"]:  # it saw that another one had ended, which that one's guard explains
        first = next((one for one in failed if one["rank"] == first["other"]), first)
    rank, said = first["rank"], first["error"]
    if first["other"] is not None:  # it waited for another, which its error names
        return RankError(said.partition(": ")[2], first["other"])
    return RankError(f"rank {rank} (process {first['process']}) {said}", rank)


def _failure_after(process: Any, folder: Path) -> RankError | None:
    """Return what made mpiexec end."""
    failure = _failure(folder)
    if failure is None and process.returncode:
        return RankError(f"mpiexec ended with code {process.returncode}; no rank said why.")
    return failure


def _end(process: Any) -> None:
    """End mpiexec and what it started."""
    if process.poll() is not None:
        return
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``python -m optlab.parallel``."""
    parser = argparse.ArgumentParser(
        prog="python -m optlab.parallel", description="Run a program on ranks of MPI."
    )
    parser.add_argument("-n", type=int, required=True, metavar="RANKS", help="how many ranks")
    parser.add_argument("script", help="a Python program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(arguments)
    try:
        launch(given.script, given.n, given.arguments)
    except (RankError, FileNotFoundError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
