"""Fetching one batch from a data set, in the loader's process or in a worker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import no_grad
from optlab.autograd.tape.half_precision import uncast
from optlab.backend.random import Key, scope
from optlab.backend.threads import PerThread
from optlab.io.collate import default_collate, with_arrays
from optlab.io.datasets import Subset, TensorDataset

END = "the stream has ended"
"""Marker for the end of an `IterableDataset`."""

_MOST_STREAMS = 16

Progress = Callable[[int], Any]


@dataclass(frozen=True)
class Task:
    """The description of one batch to fetch.

    Attributes
    ----------
    key : Key
        Of the epoch; with `number` it fixes the random numbers of the data set for this batch.
    number : int
        Index of the batch in the epoch.
    indices : list or None
        The examples; None takes the next ones of a stream.
    """

    key: Key
    number: int
    indices: Any

    def example(self, position: int) -> str:
        """Return the name of the example at a position, for messages.

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
    """Format a list of indices, without the middle if it is long.

    Examples
    --------
    >>> shortened([1, 2]), shortened(list(range(100)))
    ('[1, 2]', '[0, 1, 2, ..., 99]')
    """
    if len(indices) <= 8:
        return str(list(indices))
    return f"[{', '.join(map(str, indices[:3]))}, ..., {indices[-1]}]"


class Fetch:
    """Assembly of batches from a data set.

    Parameters
    ----------
    dataset : Dataset
    collate : callable, optional
        Collates a list of examples; by default `default_collate`.
    batch_size : int or None
        Examples per batch of a stream; None passes single examples on, of any data set.
    drop_last : bool
        Whether to drop the last, smaller batch of a stream.
    """

    def __init__(self, dataset: Any, collate: Any, batch_size: int | None, drop_last: bool) -> None:
        self.dataset = dataset
        self.collate = collate
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.streams: dict[Key, Iterator[Any]] = {}
        #: True if several threads fetch at once: they share the global generators.
        self.beside_others = False

    def fetch(self, task: Task, progress: Progress) -> Any:
        """Return one batch, with arrays for Tensors; `progress` is called with each position."""
        place = (*task.key.path, "batch", task.number)
        with no_grad(), uncast(), scope(*place, seed=task.key.seed):
            rows = None if self.collate or self.batch_size is None else _rows(self.dataset)
            if rows is not None and task.indices:
                with suppress(IndexError):  # the loop below names the example
                    return rows(task.indices)
            with nullcontext() if self.beside_others else global_generators(task):
                if task.indices is None:
                    return self._from_stream(task, progress)
                examples = []
                for position, index in enumerate(task.indices):
                    progress(position)
                    examples.append(self.dataset[index])
                progress(len(examples))
                return self._collate(examples)

    def _collate(self, examples: list[Any]) -> Any:
        if self.batch_size is None:
            return with_arrays(self.collate(examples[0]) if self.collate else examples[0])
        return with_arrays(self.collate(examples)) if self.collate else default_collate(examples)

    def _from_stream(self, task: Task, progress: Progress) -> Any:
        """Return the next batch of a stream, or `END`."""
        progress(0)
        if task.number == 0 or task.key not in self.streams:
            self.streams.pop(task.key, None)  # of an epoch that was left early, and is resumed
            while len(self.streams) >= _MOST_STREAMS:  # of finished epochs
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
        return self._collate(examples)


@contextmanager
def global_generators(task: Task) -> Iterator[None]:
    """Seed the global generators of Python and NumPy for a batch, and restore them afterwards."""
    before, before_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - see below
    draw = task.key.fold("batch", task.number, "global").generator()
    np.random.seed(draw.integers(2**32, size=4))  # noqa: NPY002 - for data sets that use it
    random.seed(int(draw.integers(2**62)))
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(before_numpy)  # noqa: NPY002


def _rows(dataset: Any) -> Callable[[Any], Any] | None:
    """Return the method that reads many rows of a data set at once; None if there is none."""
    if type(dataset) is TensorDataset:
        return dataset.rows
    if type(dataset) is Subset:
        inner = _rows(dataset.dataset)
        if inner is not None:
            return lambda indices: inner([dataset.indices[i] for i in indices])
    return None


@dataclass(frozen=True)
class WorkerInfo:
    """The result of `get_worker_info`.

    Attributes
    ----------
    id : int
        Index of this worker.
    num_workers : int
        Number of workers. Only one reads an `IterableDataset`, so that no example is repeated.
    seed : int
        A seed for this worker, fixed by `optlab.seed`.
    dataset : Dataset
        The copy of this worker.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


#: The worker that runs in this thread.
worker_info: PerThread[WorkerInfo | None] = PerThread(None)


def get_worker_info() -> WorkerInfo | None:
    """Return the worker that runs a data set, to be called within it; None outside of workers.

    Examples
    --------
    >>> get_worker_info() is None
    True
    """
    return worker_info.value
