"""Fetching one batch from a data set: what the loader does itself, or has workers do."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.autograd.halves import uncast
from optlab.autograd.mode import no_grad
from optlab.backend.random import Key, scope
from optlab.backend.threads import PerThread
from optlab.io.collate import default_collate, with_arrays
from optlab.io.datasets import Subset, TensorDataset

END = "the stream has ended"
"""Marks that an `IterableDataset` has no further batch."""

_MOST_STREAMS = 16

Progress = Callable[[int], Any]


@dataclass(frozen=True)
class Task:
    """One batch that is to be fetched.

    Attributes
    ----------
    key : Key
        Of the epoch; what the data set draws at random for this batch depends on it and `number`.
    number : int
        Of the batch in the epoch.
    indices : list or None
        The examples; None takes the next ones of a stream.
    """

    key: Key
    number: int
    indices: Any

    def example(self, position: int) -> str:
        """Say which example was being read.

        Examples
        --------
        >>> Task(Key(0), 3, [10, 11]).example(1)
        'example 11 of the data set (batch 3)'
        """
        if self.indices is None:
            return f"example {position} of batch {self.number} of the stream"
        if position < len(self.indices):
            return f"example {self.indices[position]} of the data set (batch {self.number})"
        return f"batch {self.number}, made of the examples {shortened(self.indices)}"


def shortened(indices: Any) -> str:
    """Give a list as text, with the middle left out where it is long.

    Examples
    --------
    >>> shortened([1, 2]), shortened(list(range(100)))
    ('[1, 2]', '[0, 1, 2, ..., 99]')
    """
    if len(indices) <= 8:
        return str(list(indices))
    return f"[{', '.join(map(str, indices[:3]))}, ..., {indices[-1]}]"


class Fetch:
    """Makes batches of a data set.

    Parameters
    ----------
    dataset : Dataset
    collate : callable, optional
        Makes one batch of a list of examples; by default `default_collate`.
    batch_size : int or None
        How many examples a batch of a stream has; None hands single examples on, from a data set
        too.
    drop_last : bool
        Whether a stream's last, smaller batch is left out.
    """

    def __init__(self, dataset: Any, collate: Any, batch_size: int | None, drop_last: bool) -> None:
        self.dataset = dataset
        self.collate = collate
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.streams: dict[Key, Iterator[Any]] = {}
        #: Several threads fetch at once: the global generators belong to all of them.
        self.beside_others = False

    def fetch(self, task: Task, progress: Progress) -> Any:
        """Give one batch, with arrays in place of Tensors; `progress` is told each position."""
        place = (*task.key.path, "batch", task.number)
        with no_grad(), uncast(), scope(*place, seed=task.key.seed):
            rows = None if self.collate or self.batch_size is None else _rows(self.dataset)
            if rows is not None and task.indices:
                with suppress(IndexError):  # the plain way says which example it was
                    return rows(task.indices)
            with nullcontext() if self.beside_others else global_generators(task):
                if task.indices is None:
                    return self._from_stream(task, progress)
                examples = []
                for position, index in enumerate(task.indices):
                    progress(position)
                    examples.append(self.dataset[index])
                progress(len(examples))
                return self._collated(examples)

    def _collated(self, examples: list[Any]) -> Any:
        if self.batch_size is None:
            return with_arrays(self.collate(examples[0]) if self.collate else examples[0])
        return with_arrays(self.collate(examples)) if self.collate else default_collate(examples)

    def _from_stream(self, task: Task, progress: Progress) -> Any:
        """Give the next batch of a stream, or `END`."""
        progress(0)
        if task.key not in self.streams:
            while len(self.streams) >= _MOST_STREAMS:  # those of epochs that are over
                del self.streams[next(iter(self.streams))]
            self.streams[task.key] = iter(self.dataset)
        stream = self.streams[task.key]
        examples = []
        wanted = self.batch_size or 1
        for example in stream:
            examples.append(example)
            progress(len(examples))
            if len(examples) == wanted:
                break
        if not examples or (self.drop_last and len(examples) < wanted):
            return END
        return self._collated(examples)


@contextmanager
def global_generators(task: Task) -> Iterator[None]:
    """Seed Python's and NumPy's global generators for a batch, and leave them as they were."""
    before, before_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - see below
    draw = task.key.fold("batch", task.number, "global").generator()
    np.random.seed(draw.integers(2**32, size=4))  # noqa: NPY002 - for data sets that draw from it
    random.seed(int(draw.integers(2**62)))
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(before_numpy)  # noqa: NPY002


def _rows(dataset: Any) -> Callable[[Any], Any] | None:
    """Give what takes many rows of a data set at once; None where it goes one by one."""
    if type(dataset) is TensorDataset:
        return dataset.rows
    if type(dataset) is Subset:
        inner = _rows(dataset.dataset)
        if inner is not None:
            return lambda indices: inner([dataset.indices[i] for i in indices])
    return None


@dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info` gives.

    Attributes
    ----------
    id : int
        Which worker this is.
    num_workers : int
        How many there are. An `IterableDataset` is read by one, so that nothing comes twice.
    seed : int
        A number of this worker, fixed by `optlab.seed`.
    dataset : Dataset
        The worker's own copy.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


#: The worker that runs in this thread.
worker_info: PerThread[WorkerInfo | None] = PerThread(None)


def get_worker_info() -> WorkerInfo | None:
    """Say, inside a data set, which worker runs it; None outside of workers.

    Examples
    --------
    >>> get_worker_info() is None
    True
    """
    return worker_info.value
