"""Sweeps as Zarr stores: every worker writes the cells that it has run, and a mark when it is done.

A store is a Zarr group with one array for each quantity; cells lie along the first axis, a chunk a
cell, so that no two workers write to one file. A cell's mark is written last: what has one is
whole, and is never run again. A sweep that was killed begins again with the cells without a mark.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optlab.backend.extras import needed_for
from optlab.backend.text import one_line

FORMAT, VERSION = "optlab.sweep", 1
#: Marks: a cell that has not ended, has run, and whose worker died again and again.
OPEN, DONE, LOST = 0, 1, 2
#: How often a cell is begun in one call before it is marked as lost.
ATTEMPTS = 3
_ERROR_BYTES = 1024
#: A chunk of zeros is written too: a mark is a file.
_EVERY_CHUNK: Any = {"write_empty_chunks": True}

#: Runs a cell: takes a task, returns its quantities by name, or raises.
RunCell = Callable[[Any], Mapping[str, Any]]


class Quantity(NamedTuple):
    """One array of a store: its shape for a cell, its dtype, and the names of its axes."""

    shape: tuple[int, ...]
    dtype: str
    axes: tuple[str, ...]


class SweepStore:
    """The store of one sweep.

    Parameters
    ----------
    path : path
        A folder; it is made, or opened to go on.
    cells : int
    quantities : dict of str to Quantity
    sweep : dict
        What is swept, as JSON has it. A store of another sweep is refused.

    Raises
    ------
    ValueError
        If there is something else at `path`.
    ModuleNotFoundError
        If zarr is not installed.
    """

    def __init__(
        self, path: Any, cells: int, quantities: Mapping[str, Quantity], sweep: Mapping[str, Any]
    ) -> None:
        with needed_for("ol.sweep(..., to=...)"):
            import zarr

        self.path = Path(path).absolute()
        self.cells = cells
        wanted = json.loads(json.dumps(dict(sweep)))
        if self.path.exists():
            group = _opened(zarr, self.path)
            found = dict(group.attrs)
            if found.get("format") != FORMAT:
                raise ValueError(
                    f"{self.path} is not a sweep of optlab; give another path, or remove it."
                )
            for name, value in wanted.items():
                if found["sweep"].get(name) != value:
                    raise ValueError(
                        f"{self.path} holds another sweep: its {name} is "
                        f"{one_line(str(found['sweep'].get(name)))}, not {one_line(str(value))}. "
                        "Give another path, or remove it."
                    )
            self.uid = str(found["uid"])
        else:
            self.uid = uuid.uuid4().hex
            self._create(zarr, quantities, wanted)
        self._arrays = _arrays(str(self.path), self.uid)
        self.quantities = dict(quantities)

    def _create(
        self, zarr: Any, quantities: Mapping[str, Quantity], sweep: Mapping[str, Any]
    ) -> None:
        """Write an empty store beside its place, and move it there when it is whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_name(f".{self.path.name}.{self.uid}")
        group = zarr.open_group(str(aside), mode="w")
        own = {
            "mark": Quantity((), "uint8", ()),
            "begun": Quantity((), "int32", ()),
            "error": Quantity((_ERROR_BYTES,), "uint8", ("byte",)),
        }
        for name, one in {**quantities, **own}.items():
            dtype = np.dtype(one.dtype)
            group.create_array(
                name,
                shape=(self.cells, *one.shape),
                chunks=(1, *(max(1, n) for n in one.shape)),
                dtype=dtype,
                fill_value=np.nan if dtype.kind == "f" else 0,
                dimension_names=("cell", *one.axes),
                config=_EVERY_CHUNK,
            )
        group.attrs.update({"format": FORMAT, "version": VERSION, "uid": self.uid, "sweep": sweep})
        aside.rename(self.path)

    def read(self, name: str) -> np.ndarray:
        """Return a quantity of all cells."""
        return np.asarray(self._arrays[name][...])

    @property
    def marks(self) -> np.ndarray:
        """The marks of all cells."""
        return self.read("mark")

    def errors(self) -> dict[int, str]:
        """Return what cells raised, by their number."""
        found = {}
        for i, row in enumerate(self.read("error")):
            text = row.tobytes().rstrip(b"\0").decode("utf-8", "ignore")
            if text:
                found[i] = text
        return found

    def run(
        self,
        run_cell: RunCell,
        tasks: Sequence[Any],
        executor: Executor | Callable[[], Executor] | None,
        report: Callable[[int], None],
    ) -> None:
        """Run the cells without a mark, by an executor or here.

        A cell whose worker dies is begun again, `ATTEMPTS` times in all; then it is marked as lost.
        """
        before = self.read("begun")
        left = np.flatnonzero(self.marks == OPEN).tolist()
        report(self.cells - len(left))
        made = _Executors(executor)
        try:
            while left:
                if executor is None:
                    for done, i in enumerate(left, self.cells - len(left) + 1):
                        work(str(self.path), self.uid, i, run_cell, tasks[i])
                        report(done)
                else:
                    self._submit(made, run_cell, tasks, left, report)
                begun = self.read("begun") - before
                left = np.flatnonzero(self.marks == OPEN).tolist()
                for i in [i for i in left if begun[i] >= ATTEMPTS]:
                    said = f"the worker died {begun[i]} times while it ran this cell"
                    self._arrays["error"][i] = _bytes(said)
                    self._arrays["mark"][i] = LOST
                    left.remove(i)
        finally:
            made.close()

    def _submit(
        self,
        made: _Executors,
        run_cell: RunCell,
        tasks: Sequence[Any],
        left: Sequence[int],
        report: Callable[[int], None],
    ) -> None:
        """Submit cells, and wait for them; those whose worker died have no mark then."""
        pool = made.pool()
        futures: dict[Future[Any], int] = {}
        begun = self.read("begun")
        ended = 0
        try:
            for i in left:
                futures[pool.submit(work, str(self.path), self.uid, i, run_cell, tasks[i])] = i
        except BrokenExecutor:
            made.broken()
        for ended, _ in enumerate(_ended(made, futures), 1):
            report(self.cells - len(left) + ended)
        if not ended and not (self.read("begun") > begun).any():
            made.in_vain()


class _Executors:
    """The executor of a sweep, and others like it where a dead worker has broken it."""

    def __init__(self, given: Executor | Callable[[], Executor] | None) -> None:
        self.given = given
        self._made: Executor | None = None
        self._broken = False
        self._vain = 0

    def pool(self) -> Executor:
        """Return an executor that is not broken."""
        given = self.given
        assert given is not None
        if hasattr(given, "submit") and not self._broken:
            return given  # type: ignore[return-value]
        if self._made is None or self._broken:
            self.close()
            if callable(given):
                self._made = given()
            else:
                workers = getattr(given, "_max_workers", None)
                context = getattr(given, "_mp_context", None)
                self._made = ProcessPoolExecutor(workers, mp_context=context)
            self._broken = False
        return self._made

    def broken(self) -> None:
        """Note that a worker has died, and the executor with it.

        Raises
        ------
        BrokenExecutor
            If no other one can be made.
        """
        if not callable(self.given) and not isinstance(self.given, ProcessPoolExecutor):
            raise BrokenExecutor(
                "the executor is broken. The cells that have ended are in the store: run the same "
                "call with a new executor to go on, or give a function that makes one."
            )
        self._broken = True

    def in_vain(self) -> None:
        """Raise when executors break again and again before a cell begins."""
        self._vain += 1
        if self._vain >= ATTEMPTS:
            raise BrokenExecutor(
                "the workers of the executor die before they begin a cell, or in each that is "
                "left; does a script lack `if __name__ == '__main__':`?"
            )

    def close(self) -> None:
        """Shut down what was made here."""
        if self._made is not None:
            self._made.shutdown(wait=False, cancel_futures=True)
            self._made = None


class Sent:
    """A value on its way to a worker or back; threads share it, other processes get a copy.

    Executors pickle functions by their names, which functions inside of functions and lambdas have
    not. Where cloudpickle is installed, it sends these too.

    Parameters
    ----------
    value : object
    contents : str
        What it has, for the sentence that says that it cannot be sent.

    Examples
    --------
    >>> import pickle
    >>> pickle.loads(pickle.dumps(Sent([1, 2]))).value
    [1, 2]
    """

    __slots__ = ("contents", "value")

    def __init__(self, value: Any, contents: str = "problem and optimizer") -> None:
        self.value, self.contents = value, contents

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the value by cloudpickle, if it is there.

        Raises
        ------
        TypeError
            If that is impossible.
        """
        return _arrived, (sendable(self.value, self.contents), self.contents)


def _arrived(payload: bytes, contents: str) -> Sent:
    return Sent(pickle.loads(payload), contents)


def sendable(what: Any, names: str, advice: str = "") -> bytes:
    """Return bytes from which a worker of an executor makes the same objects.

    cloudpickle, where it is installed, sends functions of a notebook and lambdas by what they are.

    Parameters
    ----------
    what : object
    names : str
        What it is, for the message: "the model and the loss".
    advice : str
        What else than installing cloudpickle helps.

    Raises
    ------
    TypeError
        If that is impossible.

    Examples
    --------
    >>> import pickle
    >>> pickle.loads(sendable([1, 2], "the settings"))
    [1, 2]
    """
    try:
        import cloudpickle as pickler  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        pickler = pickle
    try:
        found: bytes = pickler.dumps(what)
    except Exception as error:  # each kind of object has an error of its own
        raise TypeError(
            f"executor= sends {names} to other processes: {one_line(str(error))}. {advice}"
            f"{'or install' if advice else 'Install'} cloudpickle, which sends any function."
        ) from error
    return found


def mapped(
    executor: Executor | Callable[[], Executor] | None,
    function: Callable[[Any], Any],
    tasks: Sequence[Any],
) -> Iterator[Any]:
    """Return the results of a function for all tasks, in order, by an executor or here.

    Tasks whose worker dies are begun again, `ATTEMPTS` times when no other ones are left.

    Raises
    ------
    BrokenExecutor
        If a task kills every worker, or no other executor can be made.
    """
    if executor is None:
        return map(function, tasks)
    made = _Executors(executor)
    found: dict[int, Any] = {}
    try:
        while len(found) < len(tasks):
            before = len(found)
            left = [i for i in range(len(tasks)) if i not in found]
            pool = made.pool()
            futures: dict[Future[Any], int] = {}
            try:
                for i in left:
                    futures[pool.submit(function, tasks[i])] = i
            except BrokenExecutor:
                made.broken()
            for future in _ended(made, futures):
                found[futures[future]] = future.result()
            if len(found) == before:
                made.in_vain()
    finally:
        made.close()
    return iter([found[i] for i in range(len(tasks))])


def _ended(made: _Executors, futures: Mapping[Future[Any], int]) -> Iterator[Future[Any]]:
    """Yield what ends with a result; what a worker took along when it died comes not.

    Raises
    ------
    Exception
        That of a task that raises; the others are cancelled.
    """
    try:
        for future in as_completed(futures):
            error = future.exception()
            if error is None:
                yield future
            elif isinstance(error, BrokenExecutor):
                made.broken()
            elif not _worker_died(error):
                raise error
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def work(path: str, uid: str, number: int, run_cell: RunCell, task: Any) -> None:
    """Run a cell and write it: its quantities, and then its mark."""
    arrays = _arrays(path, uid)
    if arrays["mark"][number] != OPEN:
        return  # another worker has, while this one waited
    arrays["begun"][number] = int(arrays["begun"][number]) + 1
    try:
        found = run_cell(task)
    except Exception as error:  # noqa: BLE001 - a failed cell is marked, with what it raised
        found = {"error": f"{type(error).__name__}: {error}"}
    for name, value in found.items():
        arrays[name][number] = _bytes(value) if name == "error" else value
    arrays["mark"][number] = DONE


def _bytes(text: str) -> np.ndarray:
    """Return a text as the bytes of one cell."""
    row = np.zeros(_ERROR_BYTES, np.uint8)
    content = text.encode("utf-8")[:_ERROR_BYTES]
    row[: len(content)] = np.frombuffer(content, np.uint8)
    return row


@lru_cache(maxsize=4)
def _arrays(path: str, uid: str) -> dict[str, Any]:
    """Return the arrays of a store; `uid` tells it from one that lay there before."""
    import zarr

    group = zarr.open_group(path, mode="r+")
    if group.attrs.get("uid") != uid:
        raise RuntimeError(f"another sweep has been written to {path} meanwhile.")
    return {name: array.with_config(_EVERY_CHUNK) for name, array in group.arrays()}


def _opened(zarr: Any, path: Path) -> Any:
    try:
        return zarr.open_group(str(path), mode="r")
    except Exception as error:
        raise ValueError(
            f"{path} is there, but is no sweep of optlab; give another path, or remove it."
        ) from error


def _worker_died(error: BaseException) -> bool:
    """Return whether an error is that of an executor that gave up a task with its worker."""
    return type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError")
