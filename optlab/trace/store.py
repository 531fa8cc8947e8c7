"""Traces as Zarr stores: written as a run goes, opened lazily.

A store is a Zarr group (format 3) with one array for each column of the trace; rows lie along the
first axis. What the arrays mean, and how many of their rows count, stands in the attributes of the
group, which are written last: they are the commit marker. Zarr writes every file under another name
first and then moves it, so that a process that is killed leaves the last commit whole.
"""

from __future__ import annotations

import json
import shutil
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from optlab.backend.extras import needed_for
from optlab.trace.columns import Column
from optlab.trace.records import Record

FORMAT = "optlab.trace"
VERSION = 1
#: The most bytes of a chunk, unless one row is larger. Rows that are appended to a chunk are
#: written with the whole of it, in memory that the allocator then holds: 16 MB took 170 in all.
CHUNK_BYTES = 1 << 22
#: A chunk of zeros is written too: Zarr takes negative zeros for empty, and reads them as zeros.
_EVERY_CHUNK: Any = {"write_empty_chunks": True}


class TraceWarning(UserWarning):
    """A trace cannot be written to its file; the run goes on."""


class _Place(NamedTuple):
    """A column, and where it lies in the store."""

    path: str
    column: Column
    #: Its entry in the attributes of the group.
    entry: dict[str, Any]


def _places(trace: Any) -> Iterator[_Place]:
    """Yield all columns of a trace."""
    for (kind, i), column in trace.columns.items():
        path = f"columns/{_quoted(kind)}/{i}"
        yield _Place(path, column, {"kind": kind, "part": i})
    for record in trace.records.values():
        folder = f"probes/{_quoted(record.label)}"
        yield _Place(f"{folder}/step", record.steps, {"record": record.label})
        for (quantity, parameter), column in record.columns.items():
            entry = {"record": record.label, "quantity": quantity, "parameter": parameter}
            path = f"{folder}/rows/{_quoted(quantity)}.{_quoted(parameter)}"
            yield _Place(path, column, entry)


def _quoted(name: str) -> str:
    """Return a name as a part of a path: "%2E" for a dot, and so on."""
    return quote(name, safe=" ").replace(".", "%2E")


def _equalize(trace: Any) -> None:
    """Fill columns whose last rows are missing with NaN."""
    for (kind, _), column in list(trace.columns.items()):
        if kind.startswith(("norm ", "slot ", "term ")) or kind in ("parameter", "gradient"):
            clock = trace._clock("norms" if kind.startswith("norm ") else "values")
            column.fill_as_before(len(clock) + (kind == "parameter"))
    for record in trace.records.values():
        for column in record.columns.values():
            column.fill_as_before(len(record.steps))


class Writer:
    """Writes a trace to a store: once, or again and again as it grows.

    Parameters
    ----------
    path : Path
    rows : int
        How many rows a chunk has at most.
    """

    def __init__(self, path: Path, rows: int = 1024) -> None:
        with needed_for("A trace in a file"):
            import zarr
        self.path, self.rows = path, rows
        self._zarr = zarr
        self._group: Any = None
        self._arrays: dict[str, Any] = {}
        self._warned = False

    def commit(self, trace: Any, forget: bool = True) -> bool:
        """Write what is new; return whether that was possible, and warn if it was not.

        Parameters
        ----------
        trace : Trace
        forget : bool
            Whether rows that lie in the file are forgotten in memory.
        """
        try:
            self.write(trace, forget)
        except (OSError, RuntimeError, ValueError) as error:
            trace.sentences.append(f"the file {self.path}: {type(error).__name__}: {error}")
            warnings.warn(
                f"the trace cannot be written to {self.path} ({type(error).__name__}: {error}). "
                "The run goes on, and the trace is kept in memory up to its limit.",
                TraceWarning,
                stacklevel=2,
            )
            return False
        return True

    def write(self, trace: Any, forget: bool = True) -> None:
        """Write what is new.

        Raises
        ------
        OSError
            If the file system refuses.
        """
        if self._group is None:
            self._group = self._zarr.open_group(str(self.path), mode="a")
        _equalize(trace)
        entries, settled = [], []
        for place in list(_places(trace)):
            column = place.column
            if not len(column):
                entries.append({**place.entry, "path": None, "rows": 0, "dtype": "float64"})
                continue
            new = column.in_memory() if forget else column.array()
            start = column.stored if forget else 0
            # What lies in the file is not read for that.
            dtype = new.dtype if len(new) else column.file.dtype
            if len(new):
                array = self._array(place.path, new, start)
                array[start : start + len(new)] = _as_stored(new)
                settled.append((column, StoredArray(self.path, place.path, dtype), len(column)))
            entries.append(
                {**place.entry, "path": place.path, "rows": len(column), "dtype": str(dtype)}
            )
        results = []
        for record in trace.records.values():
            for name, values in record.results().items():
                path = f"probes/{_quoted(record.label)}/results/{_quoted(name)}"
                self._replace(path, values)
                what = {"record": record.label, "name": name, "path": path}
                shape = {"dtype": str(values.dtype), "shape": list(values.shape)}
                results.append({**what, **shape})
        # Last: from now on the new rows count.
        self._group.attrs.put(_attributes(trace, entries, results))
        if forget:
            for column, array, rows in settled:
                column.settle(array, rows)

    def _array(self, path: str, new: np.ndarray, start: int) -> Any:
        """Return the array of a path, with room for new rows behind the first `start`."""
        array = self._arrays.get(path)
        shape = (start + len(new), *new.shape[1:])
        stored = _as_stored(new)
        if array is None:
            if path in self._group:
                array = self._group[path]
                if array.shape[1:] != shape[1:] or array.dtype != stored.dtype:
                    array = None  # left by another run of the same probe
            if array is None:
                row = max(1, stored[0].nbytes)
                chunk = max(1, min(self.rows, CHUNK_BYTES // row))
                array = self._group.create_array(
                    path,
                    shape=shape,
                    chunks=(chunk, *(max(1, n) for n in new.shape[1:])),
                    dtype=stored.dtype,
                    overwrite=True,
                    config=_EVERY_CHUNK,
                )
            self._arrays[path] = array
        if array.shape != shape:
            array.resize(shape)
        return array

    def _replace(self, path: str, values: np.ndarray) -> None:
        """Write a whole array, in one chunk."""
        stored = np.ascontiguousarray(_as_stored(values))
        array = self._arrays.get(path)
        if array is None or array.shape[1:] != stored.shape[1:] or array.ndim != stored.ndim:
            array = self._group.create_array(
                path,
                shape=stored.shape,
                chunks=tuple(max(1, n) for n in stored.shape),
                dtype=stored.dtype,
                overwrite=True,
                config=_EVERY_CHUNK,
            )
            self._arrays[path] = array
        if array.shape != stored.shape:
            array.resize(stored.shape)
        if stored.size:
            array[...] = stored


def _as_stored(array: np.ndarray) -> np.ndarray:
    """Return an array of a dtype that Zarr knows: others as whole numbers of the same bytes."""
    return array if array.dtype.kind in "biufc" else array.view(f"u{array.dtype.itemsize}")


class StoredArray:
    """An array of a store, opened when it is read."""

    def __init__(self, path: Path, name: str, dtype: Any) -> None:
        self.path, self.name, self.dtype = path, name, np.dtype(dtype)

    def __getitem__(self, key: Any) -> Any:
        import zarr

        found = np.asarray(zarr.open_array(str(self.path), path=self.name, mode="r")[key])
        return found if found.dtype == self.dtype else found.view(self.dtype)


def _attributes(trace: Any, entries: list[Any], results: list[Any]) -> dict[str, Any]:
    """Return the attributes of the group: everything but the arrays."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": trace.name,
        "settings": encoded(trace.settings),
        "stopped": trace.stopped,
        "taken": trace._now(),
        "steps_before": trace.steps_before,
        "marks": [[n, text] for n, text in trace.marks],
        "left_out": trace.left_out,
        "layouts": encoded(trace.layouts),
        "records": [
            {"label": r.label, "text": r.text, "seconds": r.seconds, "bytes": r.bytes}
            for r in trace.records.values()
        ],
        "columns": entries,
        "results": results,
    }


def encoded(x: Any) -> Any:
    """Return a value as JSON has it: tuples and numbers that JSON lacks as marked dicts.

    Examples
    --------
    >>> encoded({"betas": (0.9, float("inf")), "clip": None})
    {'betas': {'tuple': [0.9, {'float': 'inf'}]}, 'clip': None}
    """
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, float) and not np.isfinite(x):
        return {"float": repr(x)}
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    if isinstance(x, tuple):
        return {"tuple": [encoded(part) for part in x]}
    if isinstance(x, list):
        return [encoded(part) for part in x]
    if isinstance(x, dict) and all(isinstance(key, str) for key in x):
        inside = {key: encoded(part) for key, part in x.items()}
        return {"dict": inside} if set(x) in ({"tuple"}, {"float"}, {"dict"}) else inside
    return repr(x)


def decoded(x: Any) -> Any:
    """Return what `encoded` was given.

    Examples
    --------
    >>> decoded({'betas': {'tuple': [0.9, {'float': 'inf'}]}})
    {'betas': (0.9, inf)}
    """
    if isinstance(x, list):
        return [decoded(part) for part in x]
    if isinstance(x, dict):
        if set(x) == {"tuple"}:
            return tuple(decoded(part) for part in x["tuple"])
        if set(x) == {"float"}:
            return float(x["float"])
        inside = x["dict"] if set(x) == {"dict"} else x
        return {key: decoded(part) for key, part in inside.items()}
    return x


def attributes_of(path: Path) -> dict[str, Any] | None:
    """Return the attributes of the trace in a store; None if there is none.

    They are read as JSON, without Zarr: this is what makes opening fast.
    """
    try:
        found = json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.get("format") == FORMAT else None


def load(make: Any, path: Path, until: int | None = None) -> Any:
    """Return the trace in a store; `make` is the class of traces.

    Parameters
    ----------
    until : int, optional
        Leave out what was recorded after this step.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    ValueError
        If what is there is no trace, or one of a later version.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no trace at {path}.")
    found = attributes_of(path)
    if found is None:
        raise ValueError(
            f"{path} holds no trace: it was not written by trace.save(path) or "
            "ol.record(..., to=path), or not a single commit was completed."
        )
    if found["version"] > VERSION:
        raise ValueError(
            f"{path} has version {found['version']} of the format, and this optlab reads "
            f"{VERSION}: install a newer one."
        )
    with needed_for("A trace in a file"):
        import zarr  # noqa: F401
    trace = make(found["name"], decoded(found["settings"]))
    trace.stopped, trace.steps_taken = found["stopped"], found["taken"]
    trace.steps_before = found["steps_before"]
    trace.marks += [(n, text) for n, text in found["marks"] if until is None or n <= until]
    trace.sentences += found["left_out"]
    trace.layouts = {
        clock: [[tuple(part) for part in layout] for layout in layouts]
        for clock, layouts in decoded(found["layouts"]).items()
    }
    for one in found["records"]:
        record = trace.records[one["label"]] = Record(one["label"], one["text"])
        record.seconds, record.bytes = one["seconds"], one["bytes"]
    entries = found["columns"]
    clocks = {}
    for one in entries:
        is_clock = one.get("kind", "").startswith("step") or (
            "record" in one and "quantity" not in one
        )
        if until is not None and is_clock:
            rows = _stored(path, one)[: one["rows"]] if one["rows"] else np.zeros(0, int)
            key = one.get("record") or one["kind"]
            clocks["record " + key if "record" in one else key] = int(np.sum(rows <= until))
    for one in entries:
        rows = one["rows"] if until is None else min(one["rows"], _rows_until(one, clocks))
        file = _stored(path, one) if rows else None
        column = Column(file, rows)
        if "kind" in one:
            trace.columns[one["kind"], one["part"]] = column
        elif "quantity" in one:
            trace.records[one["record"]].columns[one["quantity"], one["parameter"]] = column
        else:
            trace.records[one["record"]].steps = column
    for one in found["results"]:
        record = trace.records[one["record"]]
        record.late_results[one["name"]] = _result(path, one)
    if until is not None:
        trace.steps_taken = min(trace.steps_taken, until)
    return trace


def _stored(path: Path, entry: dict[str, Any]) -> StoredArray:
    return StoredArray(path, entry["path"], _dtype(entry["dtype"]))


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        with needed_for(f"A trace of {name}"):
            import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))


def _rows_until(entry: dict[str, Any], clocks: dict[str, int]) -> int:
    """Return how many rows of a column belong to the steps that count."""
    if "record" in entry:
        return clocks["record " + entry["record"]]
    kind = entry["kind"]
    if kind in clocks:
        return clocks[kind]
    clock = "norms" if kind.startswith("norm ") else "values"
    if kind in ("loss", "learning_rate", "seconds", "memory"):
        return clocks["step"]
    return clocks.get(f"steps of {clock}", clocks["step"]) + (kind == "parameter")


def _result(path: Path, entry: dict[str, Any]) -> Any:
    shape = tuple(entry["shape"])
    file = _stored(path, entry)

    def read() -> np.ndarray:
        found: np.ndarray = file[...]
        # A commit that was not completed may have left more rows.
        return found[: shape[0]].reshape(shape) if shape else found

    return read


def save(trace: Any, path: Path) -> None:
    """Write a whole trace to a new store, in place of a trace that is there.

    Raises
    ------
    FileExistsError
        If something else is there.
    OSError
        If the file system refuses; what was there is unchanged then.
    """
    if path.exists() and attributes_of(path) is None:
        raise FileExistsError(f"{path} exists and is no trace; choose another name.")
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        Writer(beside).write(trace, forget=False)
        old = path.with_name(f".{path.name}.{uuid.uuid4().hex}.old")
        if path.exists():
            path.rename(old)
        beside.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
