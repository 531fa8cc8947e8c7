"""DataLoader: batches of a data set in an order fixed by the seed."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from optlab.backend.random import Key, current_stream, scope
from optlab.io.collate import with_tensors
from optlab.io.datasets import IterableDataset
from optlab.io.fetch import END, Fetch, Task, get_worker_info
from optlab.io.processes import Processes
from optlab.io.samplers import BatchSampler, RandomSampler, SequenceSampler, whole_number
from optlab.io.workers import Pool, Settings, Threads

#: Arguments of Paddle's DataLoader without effect here: their allowed values, and a note.
_FIXED: dict[str, tuple[tuple[Any, ...], str]] = {
    "feed_list": ((None,), "it belongs to static graphs, which optlab does not have"),
    "places": ((None,), "batches are made on the CPU; move them to a device yourself"),
    "return_list": ((True,), "a batch comes in the form of an example, a tuple as a list"),
    "use_shared_memory": ((True, False), "batches come from workers through pipes"),
    "use_buffer_reader": (
        (True, False),
        "batches are fetched ahead by workers: num_workers=1 or more",
    ),
    "reader_buffer_size": ((2, None), "prefetch_factor says how far workers fetch ahead"),
}


class DataLoader:
    """Iterate over the batches of a data set.

    The order is fixed by ``ol.seed``: it depends on the seed (or the surrounding
    ``ol.random_scope``), on the number of epochs of this loader since then, and on which of the
    program's loaders it is; not on `num_workers`, nor on other random numbers. The random numbers
    of a data set are as reproducible, from optlab's functions as well as from Python's ``random``
    and ``numpy.random``, which are seeded for each batch and restored afterwards. (Not with
    threads as workers, which share these generators.)

    Parameters
    ----------
    dataset : Dataset
        Anything with ``__getitem__`` and ``__len__``, or an `IterableDataset`.
    batch_size : int or None
        None passes single examples on, without a batch axis.
    shuffle : bool
        A new random order every epoch.
    drop_last : bool
        Drop a last batch that is smaller than the others.
    num_workers : int
        Number of workers that prefetch batches; 0 fetches each batch on demand.
    collate_fn : callable, optional
        Collates a list of examples. By default numbers and arrays are stacked along a new first
        axis, within lists, tuples and dicts as well.
    batch_sampler : iterable of lists of int, optional
        The indices of each batch; in place of `batch_size`, `shuffle` and `drop_last`.
    prefetch_factor : int
        Number of batches fetched ahead, per worker.
    timeout : float
        Seconds that a worker may take for one batch; 0 for no limit.
    worker_init_fn : callable, optional
        Called in each worker with its index, before the first batch.
    persistent_workers : bool
        Keep the workers between epochs.
    worker_type : {'fork', 'spawn', 'thread'}, optional
        The kind of workers, see the notes. By default 'fork' on Linux and 'spawn' elsewhere.

    Yields
    ------
    object
        Batches in the structure of an example, with lists for tuples and Tensors for arrays.

    Raises
    ------
    WorkerError
        If a worker raises or dies while it reads an example: the message has the index of the
        example, and the traceback; its ``__cause__`` is the exception.
    TimeoutError
        If a batch takes too long.

    Notes
    -----
    **Kinds of workers.** Workers pay off if reading or computing an example is slow: decoding,
    augmentation. Rows of arrays (`TensorDataset`) are fastest without.

    'fork'
        A copy of this process. Data sets may be anything, even defined in a notebook. Later changes
        in this process are not visible to them. A fork beside running threads, as in a notebook, is
        safe for Python and NumPy, but not for every library: use another type if workers hang.
    'spawn'
        A new process to which data set and functions are sent. They must be importable: defined in
        a module, not in a notebook. Starting takes about a second.
    'thread'
        A thread of this process. Nothing is copied or sent; fast if the time is spent in NumPy on
        large arrays, or in files, which run in parallel; no gain for pure Python. It cannot be
        ended from outside.

    Only one worker reads an `IterableDataset`, whatever `num_workers`, so that no example is
    repeated and the order is kept.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> data = ol.io.TensorDataset([np.arange(5), np.arange(5) ** 2])
    >>> loader = ol.io.DataLoader(data, batch_size=2, shuffle=True)
    >>> len(loader)
    3
    >>> for x, y in loader:
    ...     print(x.tolist(), y.tolist())
    [4, 0] [16, 0]
    [2, 1] [4, 1]
    [3] [9]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        *,
        batch_sampler: Iterable[Any] | None = None,
        prefetch_factor: int = 2,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        persistent_workers: bool = False,
        worker_type: str | None = None,
        **others: Any,
    ) -> None:
        _check_unsupported(others)
        self.dataset = dataset
        self.is_stream = isinstance(dataset, IterableDataset)
        if not self.is_stream and not (
            hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        ):
            raise TypeError(
                "DataLoader takes a data set with __getitem__ and __len__, or an IterableDataset; "
                f"got {type(dataset).__name__}."
            )
        self.num_workers = whole_number(num_workers, "num_workers", 0)
        self.prefetch_factor = whole_number(prefetch_factor, "prefetch_factor", 1)
        if not timeout >= 0:
            raise ValueError(f"timeout must be a number of seconds, 0 for none; got {timeout!r}.")
        for name, function in {"collate_fn": collate_fn, "worker_init_fn": worker_init_fn}.items():
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function; got {function!r}.")
        self.timeout = timeout
        self.collate_fn = collate_fn
        self.worker_init_fn = worker_init_fn
        self.persistent_workers = bool(persistent_workers)
        self.worker_type = _worker_type(worker_type)
        self.drop_last = bool(drop_last)
        self.batch_size = None if batch_size is None else whole_number(batch_size, "batch_size", 1)
        self.batch_sampler = self._sampler(shuffle, batch_sampler, batch_size)
        self._epochs: tuple[Any, int] | None = None
        self._pool: Pool | None = None

    def _sampler(self, shuffle: bool, batch_sampler: Any, batch_size: Any) -> Any:
        """Return the batch sampler; None for a stream."""
        if self.is_stream:
            if shuffle or batch_sampler is not None:
                raise ValueError(
                    "the examples of an IterableDataset come in its own order; leave shuffle and "
                    "batch_sampler out."
                )
            return None
        if batch_sampler is not None:
            if shuffle or self.drop_last or batch_size not in (1, None):
                raise ValueError(
                    "a batch_sampler determines the batches; leave batch_size, shuffle and "
                    "drop_last out."
                )
            self.batch_size = 1  # batches, not single examples
            return batch_sampler
        if self.batch_size is None:
            if self.drop_last:
                raise ValueError("with batch_size=None there is no last batch to drop.")
            return _SingleExamples((RandomSampler if shuffle else SequenceSampler)(self.dataset))
        return BatchSampler(
            self.dataset, shuffle=shuffle, batch_size=self.batch_size, drop_last=self.drop_last
        )

    def __len__(self) -> int:
        if self.is_stream:
            raise TypeError("how many batches an IterableDataset gives is not known before.")
        return len(self.batch_sampler)

    def __call__(self) -> Iterator[Any]:
        """Start an epoch, like ``iter``."""
        return iter(self)

    def __iter__(self) -> Iterator[Any]:
        key = self._next_epoch()
        if self.num_workers and get_worker_info() is not None:
            raise RuntimeError("a DataLoader inside a worker needs num_workers=0.")
        return self._with_workers(key) if self.num_workers else self._in_this_process(key)

    # Epochs -------------------------------------------------------------------------------------

    def _next_epoch(self) -> Key:
        """Return the key of a new epoch; the count restarts when the seed is set again."""
        stream = current_stream()
        if self._epochs is None or self._epochs[0] is not stream:
            self._epochs = (stream, stream.next_loader())
        _, number = self._epochs
        return stream.key.fold("DataLoader", number, "epoch", stream.next_epoch(number))

    def _tasks(self, key: Key) -> Iterator[Task]:
        """Yield the batches of an epoch; endlessly for a stream."""
        if self.is_stream:
            for number in itertools.count():
                yield Task(key, number, None)
        batches: Any = None
        for number in itertools.count():
            with scope(*key.path, "order", number, seed=key.seed):
                if batches is None:
                    batches = iter(self.batch_sampler)
                indices = next(batches, END)
            if indices is END:
                return
            yield Task(key, number, list(indices))

    def _fetch(self) -> Fetch:
        return Fetch(self.dataset, self.collate_fn, self.batch_size, self.drop_last)

    def _in_this_process(self, key: Key) -> Iterator[Any]:
        """Fetch each batch on demand."""
        fetch = self._fetch()
        for task in self._tasks(key):
            position = 0

            def progress(now: int) -> None:
                nonlocal position
                position = now

            try:
                batch = fetch.fetch(task, progress)
            except Exception as error:
                error.add_note(f"DataLoader was reading {task.example(position)}.")
                raise
            if batch is END:
                return
            yield with_tensors(batch)

    # Workers ------------------------------------------------------------------------------------

    def _with_workers(self, key: Key) -> Iterator[Any]:
        """Prefetch batches with workers."""
        pool = self._pool or self._workers(key)
        if self.persistent_workers:
            self._pool = pool
        waiting: deque[int] = deque()
        tasks = self._tasks(key)
        ahead = self.prefetch_factor * self.num_workers
        try:
            for task in itertools.islice(tasks, ahead):
                waiting.append(pool.submit(task))
            while waiting:
                batch = pool.result(waiting[0], self.timeout)
                waiting.popleft()
                if isinstance(batch, str) and batch == END:
                    break
                for task in itertools.islice(tasks, 1):
                    waiting.append(pool.submit(task))
                yield with_tensors(batch)
        except GeneratorExit:  # the loop over the batches ended early
            raise
        except BaseException:
            self._pool = None
            pool.close()
            raise
        finally:
            if self._pool is pool:
                pool.abandon(waiting)
            else:
                pool.close()

    def _workers(self, key: Key) -> Pool:
        count = 1 if self.is_stream else self.num_workers
        settings = Settings(self._fetch(), count, key, self.worker_init_fn)
        if self.worker_type == "thread":
            settings.fetch.beside_others = True
            return Threads(settings)
        return Processes(settings, self.worker_type)

    def _end_workers(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._end_workers()

    def __getstate__(self) -> dict[str, Any]:
        # Workers and the position in the random stream remain with the original.
        return {**self.__dict__, "_pool": None, "_epochs": None}

    def __repr__(self) -> str:
        count = "a stream" if self.is_stream else f"{len(self)} batches"
        return (
            f"DataLoader({type(self.dataset).__name__}, {count}, batch_size={self.batch_size}, "
            f"num_workers={self.num_workers})"
        )


class _SingleExamples:
    """Single examples, each as an uncollated batch of one."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        return ([index] for index in self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


def _worker_type(given: str | None) -> str:
    """Validate the type of the workers; return the default for None."""
    if given is None:
        return "fork" if sys.platform.startswith("linux") else "spawn"
    known = [*(m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods())]
    if given not in (*known, "thread"):
        raise ValueError(
            f"worker_type must be {', '.join(map(repr, known))} or 'thread' on this system; got "
            f"{given!r}."
        )
    return given


def _check_unsupported(others: dict[str, Any]) -> None:
    """Raise for arguments of Paddle's DataLoader that are not supported, and for unknown ones."""
    for name, value in others.items():
        if name not in _FIXED:
            from difflib import get_close_matches

            known = ["batch_size", "shuffle", "drop_last", "num_workers", "collate_fn",
                     "batch_sampler", "prefetch_factor", "timeout", "worker_init_fn",
                     "persistent_workers", "worker_type"]  # fmt: skip
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise TypeError(f"DataLoader has no argument {name!r}{hint}")
        allowed, why = _FIXED[name]
        if not any(value is one for one in allowed):
            raise TypeError(f"DataLoader does not do {name}={value!r}: {why}.")
