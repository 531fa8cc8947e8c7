"""How a contestant runs: in a warm worker process, or in a fresh interpreter every turn.

Both kinds have the same interface: ``prepare()`` once, ``turn()`` any number of times (seconds of
one unit, or of one unit of every case of a table), ``close()``. Failures are raised as
`ContestantError` with the message of the other process.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

FRESH_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from time import perf_counter
start = perf_counter()
{statements}
print(repr(perf_counter() - start))
"""


class ContestantError(RuntimeError):
    """A contestant could not be built or did not finish its turn."""


def environment(
    threads: int | None, search_path: Sequence[str] = (), root: Path = ROOT
) -> dict[str, str]:
    """Return the environment of a worker: its number of threads and its module search path."""
    variables = dict(os.environ)
    if threads is not None:
        variables.update({name: str(threads) for name in THREAD_VARIABLES})
    given = variables.get("PYTHONPATH")
    paths = [str(root), *search_path, *([given] if given else [])]
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    return variables


def json_output(python: str, program: str) -> Any:
    """Run a program in another interpreter and return its last line of output, parsed as JSON.

    Raises
    ------
    RuntimeError
        With the last line of the error output of the other process.
    """
    done = subprocess.run(
        [python, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment(None),
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


@functools.cache
def installed_version(python: str, distribution: str) -> str | None:
    """Return the version of a distribution in the given interpreter, None if it is missing."""
    question = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    command = [python, "-c", question, distribution]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return None
    return done.stdout.strip() or None


class WarmWorker:
    """A persistent process that runs ``benchmarks.worker``.

    Parameters
    ----------
    python : str
        Interpreter.
    module, row, contestant : str
        What it builds.
    threads : int or None
        Number of threads; None leaves it to the library.
    turn_seconds : float
        Target duration of one turn.
    search_path : sequence of str
        Additional module search paths.
    root : Path
        The checkout that it runs in.
    """

    def __init__(
        self,
        python: str,
        module: str,
        row: str,
        contestant: str,
        threads: int | None,
        turn_seconds: float,
        search_path: Sequence[str] = (),
        root: Path = ROOT,
    ) -> None:
        self.python = python
        self.root = root
        self.what = {"do": "build", "module": module, "row": row, "contestant": contestant}
        self.environment = environment(threads, search_path, root)
        self.turn_seconds = turn_seconds
        self.units: Any = 1
        self.process: subprocess.Popen[str] | None = None
        self.messages = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in close)

    def prepare(self) -> None:
        """Start the process, build the unit of work, warm it up and choose the batch size."""
        try:
            self.process = subprocess.Popen(
                [self.python, "-m", "benchmarks.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.messages,
                text=True,
                cwd=self.root,
                env=self.environment,
            )
        except OSError as error:
            raise ContestantError(f"cannot start {self.python}: {error}") from error
        self.ask(self.what)
        self.units = self.ask({"do": "calibrate", "seconds": self.turn_seconds})["units"]

    def turn(self) -> float | dict[str, float]:
        """Time one batch; return the seconds of one unit (for a table, of every case)."""
        seconds: Any = self.ask({"do": "time", "units": self.units})["seconds"]
        if isinstance(seconds, dict):
            return {case: taken / self.units[case] for case, taken in seconds.items()}
        return float(seconds / self.units)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and return the answer."""
        process = self.process
        assert process is not None, "prepare comes first"
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.messages.seek(0)
            said = self.messages.read()[-2000:].strip()
            raise ContestantError(f"the worker ended with status {process.wait()}: {said}")
        answer: dict[str, Any] = json.loads(line)
        if "problem" in answer:
            raise ContestantError(answer["problem"].strip())
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            try:
                self.process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()
        self.messages.close()


class FreshInterpreter:
    """A new isolated interpreter every turn, which times statements and nothing before them.

    The start of the interpreter itself is not counted. Module files are in the file cache, since
    two turns run first and are discarded.

    Parameters
    ----------
    python : str
        Interpreter.
    statements : str
        Source text to time.
    threads : int or None
        Number of threads; None leaves it to the library.
    root : Path
        The checkout that it imports from.
    """

    units = 1

    def __init__(
        self, python: str, statements: str, threads: int | None, root: Path = ROOT
    ) -> None:
        program = FRESH_PROCESS.format(statements=statements)
        self.command = [python, "-I", "-c", program, str(root)]
        self.environment = environment(threads)

    def prepare(self) -> None:
        """Load the module files into the file cache."""
        for _ in range(2):
            self.turn()

    def turn(self) -> float:
        """Start one interpreter; return the seconds that the statements took in it."""
        try:
            finished = subprocess.run(
                self.command,
                capture_output=True,
                text=True,
                check=False,
                cwd=ROOT,
                env=self.environment,
            )
        except OSError as error:
            raise ContestantError(f"cannot start {self.command[0]}: {error}") from error
        if finished.returncode != 0:
            raise ContestantError(finished.stderr.strip())
        return float(finished.stdout.split()[-1])

    def close(self) -> None:
        """Do nothing; every turn ends its own process."""
