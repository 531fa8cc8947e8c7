"""What one probe has recorded: its columns, its steps, its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from optlab.trace.columns import Column


class Record:
    """What one probe has recorded.

    Attributes
    ----------
    label : str
        The name of the probe in its trace.
    text : str
        The probe as it was written.
    steps : Column
        The steps that it observed.
    columns : dict of (str, str) to Column
        By the name of a quantity and that of a parameter, "" where it has none.
    seconds : float
        The time that it took, and `bytes` what it keeps.
    """

    def __init__(self, label: str, text: str) -> None:
        self.label, self.text = label, text
        self.steps = Column()
        self.columns: dict[tuple[str, str], Column] = {}
        self.seconds = 0.0
        self.bytes = 0
        #: The rows of a run that was interrupted and goes on.
        self.rows_before = 0
        #: Returns arrays of the whole run, and sentences about what was left out.
        self.refresh: Callable[[], Mapping[str, np.ndarray]] = dict
        self.faults: Callable[[], list[str]] = list
        #: Arrays of the whole run as they were read, and functions that read them from a file.
        self.stored_results: dict[str, np.ndarray] = {}
        self.late_results: dict[str, Callable[[], np.ndarray]] = {}

    def results(self) -> dict[str, np.ndarray]:
        """Return the arrays of the whole run so far."""
        for name, read in self.late_results.items():
            self.stored_results[name] = read()
        self.late_results = {}
        return {**self.stored_results, **self.refresh()}

    def append(self, number: int, found: Mapping[str, Any]) -> int:
        """Append what was observed at a step; return its bytes.

        Raises
        ------
        ValueError
            If an array has another shape than before.
        """
        rows: dict[tuple[str, str], np.ndarray] = {}
        for quantity, x in found.items():
            if isinstance(x, Mapping):
                rows |= {(quantity, str(name)): np.array(part) for name, part in x.items()}
            else:
                rows[quantity, ""] = np.array(x)
        before = len(self.steps)
        for key, row in rows.items():
            column = self.columns.get(key)
            if column is None:
                continue
            if len(column) and np.shape(column.last()) != row.shape:
                raise ValueError(
                    f"{self.label} returned {key[0]!r} of shape {row.shape} at step {number}, and "
                    f"of shape {np.shape(column.last())} before. Each has one shape in a run."
                )
        self.steps.append(number)
        for key, row in rows.items():
            column = self.columns.setdefault(key, Column())
            column.fill(before, row)
            column.append(row)
        return sum(row.nbytes for row in rows.values()) + 8

    def drop_last(self) -> None:
        """Drop the last row, of a run that goes on, from all columns."""
        for column in (self.steps, *self.columns.values()):
            column.stored -= 1
            column.count -= 1
        self.rows_before -= 1

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """Return arrays over the observed steps, by quantity and parameter."""
        found: dict[str, dict[str, np.ndarray]] = {}
        for (quantity, parameter), column in self.columns.items():
            column.fill_as_before(len(self.steps))
            found.setdefault(quantity, {})[parameter] = column.array()
        return found
