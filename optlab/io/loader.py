"""DataLoader: batches of a data set, in an order that the seed fixes."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from optlab.backend import random as keys
from optlab.backend.random import Key, scope
from optlab.io.collate import with_tensors
from optlab.io.datasets import IterableDataset
from optlab.io.fetch import END, Fetch, Task, get_worker_info
from optlab.io.processes import Processes
from optlab.io.samplers import BatchSampler, RandomSampler, SequenceSampler, whole
from optlab.io.workers import Pool, Settings, Threads

#: Arguments of Paddle's DataLoader that change nothing here: what they may be, and what to know.
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
    """Give a data set batch by batch.

    The order is fixed by ``ol.seed``: it depends on the seed (or the surrounding
    ``ol.random_scope``), on how many epochs this loader has given since, and on which of the
    program's loaders it is; not on `num_workers`, nor on what else draws random numbers. What a
    data set draws with optlab's random functions is as reproducible, and so is what it draws from
    Python's ``random`` and ``numpy.random``: they are seeded for each batch, and are afterwards as
    they were. (Not with workers that are threads, which share these generators.)

    Parameters
    ----------
    dataset : Dataset
        Anything with ``__getitem__`` and ``__len__``, or an `IterableDataset`.
    batch_size : int or None
        None hands on single examples, without a first axis for the batch.
    shuffle : bool
        A new random order every epoch.
    drop_last : bool
        Leave out a last batch that is smaller than the others.
    num_workers : int
        How many workers fetch batches ahead; 0 fetches each when it is asked for.
    collate_fn : callable, optional
        Makes one batch of a list of examples. By default numbers and arrays are put together along
        a new first axis, within lists, tuples and dicts as well.
    batch_sampler : iterable of lists of int, optional
        Which examples make which batch; in place of `batch_size`, `shuffle` and `drop_last`.
    prefetch_factor : int
        How many batches are fetched ahead, times `num_workers`.
    timeout : float
        Seconds that one batch may take a worker; 0 for as long as it takes.
    worker_init_fn : callable, optional
        Is called in each worker with its number, before the first batch.
    persistent_workers : bool
        Keep the workers from one epoch to the next.
    worker_type : {'fork', 'spawn', 'thread'}, optional
        What a worker is, see the notes. By default 'fork' on Linux and 'spawn' elsewhere.

    Yields
    ------
    object
        Batches in the form of an example; tuples come as lists, arrays as Tensors.

    Raises
    ------
    WorkerError
        If a worker raises or dies while it reads an example: the message has the number of the
        example, and the traceback; its ``__cause__`` is the exception.
    TimeoutError
        If a batch takes too long.

    Notes
    -----
    **Which workers.** Workers pay where an example takes long to read or compute: decoding,
    augmentation. Rows of arrays (`TensorDataset`) are quickest without.

    'fork'
        A copy of this process. Data sets may be anything, also what a notebook defines. They do not
        see what changes here later. A fork beside running threads, which a notebook has, is safe
        for Python and NumPy, but not for every library: use another type if workers hang.
    'spawn'
        A fresh process that data set and functions are sent to. They must be importable: defined in
        a module, not in a notebook. Starting takes a second or so.
    'thread'
        A thread of this process. Nothing is copied and nothing must be sent; quick where the time
        goes into NumPy on large arrays, or files, which run side by side; no gain where it goes
        into Python itself. It cannot be ended from outside.

    An `IterableDataset` is read by one worker, whatever `num_workers`, so that nothing comes twice
    and the order stays.

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
        _check_others(others)
        self.dataset = dataset
        self.is_stream = isinstance(dataset, IterableDataset)
        if not self.is_stream and not (
            hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        ):
            raise TypeError(
                "DataLoader takes a data set with __getitem__ and __len__, or an IterableDataset; "
                f"got {type(dataset).__name__}."
            )
        self.num_workers = whole(num_workers, "num_workers", 0)
        self.prefetch_factor = whole(prefetch_factor, "prefetch_factor", 1)
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
        self.batch_size = None if batch_size is None else whole(batch_size, "batch_size", 1)
        self.batch_sampler = self._sampler(shuffle, batch_sampler, batch_size)
        self._epochs: tuple[Any, int] | None = None
        self._pool: Pool | None = None

    def _sampler(self, shuffle: bool, batch_sampler: Any, batch_size: Any) -> Any:
        """Give what says which examples make which batch; None for a stream."""
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
                    "a batch_sampler says itself what makes a batch; leave batch_size, shuffle and "
                    "drop_last out."
                )
            self.batch_size = 1  # batches, not single examples
            return batch_sampler
        if self.batch_size is None:
            if self.drop_last:
                raise ValueError("with batch_size=None there is no last batch to drop.")
            return _Singles(RandomSampler(self.dataset) if shuffle else _in_order(self.dataset))
        return BatchSampler(
            self.dataset, shuffle=shuffle, batch_size=self.batch_size, drop_last=self.drop_last
        )

    def __len__(self) -> int:
        if self.is_stream:
            raise TypeError("how many batches an IterableDataset gives is not known before.")
        return len(self.batch_sampler)

    def __call__(self) -> Iterator[Any]:
        """Start an epoch, as ``iter`` does."""
        return iter(self)

    def __iter__(self) -> Iterator[Any]:
        key = self._next_epoch()
        if self.num_workers and get_worker_info() is not None:
            raise RuntimeError("a DataLoader inside a worker needs num_workers=0.")
        return self._ahead(key) if self.num_workers else self._plainly(key)

    # Epochs -------------------------------------------------------------------------------------

    def _next_epoch(self) -> Key:
        """Give the key of a new epoch; they are counted anew when the seed is set again."""
        stream = keys.current_stream()
        if self._epochs is None or self._epochs[0] is not stream:
            self._epochs = (stream, stream.next_loader())
        _, number = self._epochs
        return stream.key.fold("DataLoader", number, "epoch", stream.next_epoch(number))

    def _tasks(self, key: Key) -> Iterator[Task]:
        """Go through the batches of an epoch; of a stream, without end."""
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

    def _plainly(self, key: Key) -> Iterator[Any]:
        """Fetch each batch when it is asked for."""
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

    def _ahead(self, key: Key) -> Iterator[Any]:
        """Have workers fetch ahead."""
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
        except GeneratorExit:  # the loop over the batches was left
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
        # Workers and the place in the stream of random numbers stay with the original.
        return {**self.__dict__, "_pool": None, "_epochs": None}

    def __repr__(self) -> str:
        count = "a stream" if self.is_stream else f"{len(self)} batches"
        return (
            f"DataLoader({type(self.dataset).__name__}, {count}, batch_size={self.batch_size}, "
            f"num_workers={self.num_workers})"
        )


class _Singles:
    """Single examples, each as a batch of one that is not put together."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        return ([index] for index in self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


def _in_order(dataset: Any) -> SequenceSampler:
    return SequenceSampler(dataset)


def _worker_type(given: str | None) -> str:
    """Read what a worker is to be."""
    if given is None:
        return "fork" if sys.platform.startswith("linux") else "spawn"
    known = [*(m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods())]
    if given not in (*known, "thread"):
        raise ValueError(
            f"worker_type must be {', '.join(map(repr, known))} or 'thread' on this system; got "
            f"{given!r}."
        )
    return given


def _check_others(others: dict[str, Any]) -> None:
    """Refuse, by name, what Paddle's DataLoader takes and this one does not."""
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
