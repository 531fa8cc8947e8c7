"""DataLoader: batches of a data set in an order fixed by the seed."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from optlab.backend.call_recorder import here
from optlab.backend.foreign_arguments import hint
from optlab.backend.random import Key, current_stream, scope
from optlab.io.collate import with_tensors
from optlab.io.datasets import IterableDataset
from optlab.io.fetch import END, Fetch, Task, get_worker_info
from optlab.io.position import (
    LoaderState,
    Order,
    Position,
    parse_state,
    sampler_state,
    set_sampler_state,
)
from optlab.io.processes import Processes
from optlab.io.samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    whole_number,
)
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
        self._order: Order | None = None
        self._position: Position | None = None
        self._loaded: LoaderState | None = None
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
        if self.num_workers and get_worker_info() is not None:
            raise RuntimeError("a DataLoader inside a worker needs num_workers=0.")
        if here.recorder is not None:
            here.recorder.refuse(
                "iterating over a DataLoader, which reads other batches in every call (iterate "
                "outside, and give each batch as an argument),"
            )
        self._position = self._next_epoch()
        batches = self._with_workers if self.num_workers else self._in_this_process
        return batches(self._position)

    # Epochs -------------------------------------------------------------------------------------

    def _next_epoch(self) -> Position:
        """Return the start of a new epoch; the count restarts when the seed is set again."""
        stream = current_stream()
        loaded, self._loaded = self._loaded, None
        if self._order is None or self._order.stream is not stream:
            if loaded is not None and loaded.key is not None and loaded.number is not None:
                self._order = self._loaded_order(loaded.key, loaded.number, loaded.epoch)
            else:
                number = stream.next_loader()
                self._order = Order(stream, stream.key, number, stream.epochs.get(number, 0))
        start = self._order.next_epoch()
        return start if loaded is None else loaded.resume(start)

    def _loaded_order(self, key: Key, number: int, epochs: int) -> Order:
        """Return the order of a loader of a saved run, whose number no other loader gets."""
        stream = current_stream()
        if stream.key == key:
            stream.claim_loader(number)
        return Order(stream, key, number, epochs)

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the current epoch, to go on behind it in another process.

        In the body of a loop over the loader, the batch at hand counts as done. With
        `set_state_dict`, the next loop yields the other batches of that epoch, equal to the bit,
        and the epochs that follow are those of the uninterrupted run, for any number of workers.

        Returns
        -------
        dict
            Numbers and text, which ``ol.save`` and JSON can store: the seed and path of the random
            numbers, the number of the loader, the epoch and the number of its batches that are
            done, with a checksum of their order, and the state of the sampler. It is about the
            loop that was begun last.

        Notes
        -----
        The random numbers of the rest of the program (dropout) are in `optlab.get_rng_state`.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> loader = ol.io.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> for batch in loader:
        ...     print(batch.tolist())
        ...     break
        [4, 0]
        >>> state = loader.state_dict()
        >>> state["epoch"], state["batches"]
        (0, 1)
        >>> later = ol.io.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> later.set_state_dict(state)
        >>> [batch.tolist() for batch in later]
        [[2, 1], [3, 5]]
        """
        own = {"examples": self._examples(), "batch_size": self.batch_size}
        sampler = sampler_state(self.batch_sampler)
        loaded, order, at = self._loaded, self._order, self._position
        if loaded is not None:  # no epoch was begun since
            seed, path = loaded.key or (None, ())
            number, epoch = loaded.number, loaded.epoch
            batches, checksum = loaded.batches, loaded.checksum
        elif order is None or at is None:
            seed, path, number, epoch, batches, checksum = None, (), None, 0, 0, 0
        else:
            (seed, path), number = order.key, order.number
            if at.finished:
                epoch, batches, checksum = at.epoch + 1, 0, 0
            else:
                epoch = at.epoch
                # Batches that are still to be left out count as done.
                batches, checksum = max((at.skip, at.expected), (at.batches, at.checksum))
                sampler = at.sampler if at.sampler is not None else sampler
        return {
            "seed": seed, "path": list(path), "loader": number, "epoch": epoch,
            "batches": batches, "checksum": checksum, "sampler": sampler, **own,
        }  # fmt: skip

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state of `state_dict`: the next loop begins behind the batches done.

        The sampler runs over the batches done without reading their examples. The examples of an
        `IterableDataset` before the position are read again and discarded.

        Raises
        ------
        TypeError, ValueError
            If it is not the state of a loader with as many examples and this batch size; nothing
            has changed then. In the next loop, if the sampler gives another order than in the
            saved run.
        """
        loaded = parse_state(state_dict, self._examples(), self.batch_size)
        set_sampler_state(self.batch_sampler, loaded.sampler)
        self._position = self._order = None
        if loaded.key is not None and loaded.number is not None:
            self._order = self._loaded_order(loaded.key, loaded.number, loaded.epoch)
        self._loaded = loaded

    load_state_dict = set_state_dict

    def _examples(self) -> int | None:
        return None if self.is_stream else len(self.dataset)

    def _tasks(self, position: Position) -> Iterator[Task]:
        """Yield the batches of an epoch from a position on; all, endlessly, for a stream."""
        key = position.key
        if self.is_stream:
            for number in itertools.count():
                yield Task(key, number, None)
        position.sampler = sampler_state(self.batch_sampler)
        batches: Any = None
        for number in itertools.count():
            with scope(*key.path, "order", number, seed=key.seed):
                if batches is None:
                    batches = iter(self.batch_sampler)
                indices = next(batches, END)
            if number < position.skip:
                if indices is not END:
                    position.passed(list(indices))
                if indices is END or position.batches == position.skip:
                    position.check_resumed(ended=indices is END)
            elif indices is not END:
                yield Task(key, number, list(indices))
            if indices is END:
                return

    def _fetch(self) -> Fetch:
        return Fetch(self.dataset, self.collate_fn, self.batch_size, self.drop_last)

    def _in_this_process(self, position: Position) -> Iterator[Any]:
        """Fetch each batch on demand."""
        fetch = self._fetch()
        for task in self._tasks(position):
            example = 0

            def progress(now: int) -> None:
                nonlocal example
                example = now

            try:
                batch = fetch.fetch(task, progress)
            except Exception as error:
                error.add_note(f"DataLoader was reading {task.example(example)}.")
                raise
            if batch is END:
                break
            if self._is_due(task, position):
                yield with_tensors(batch)
        self._finish(position)

    def _is_due(self, task: Task, position: Position) -> bool:
        """Count a batch; return whether it is to be yielded, or was in an earlier run."""
        position.passed(task.indices)
        return task.number >= position.skip

    def _finish(self, position: Position) -> None:
        """Mark the end of an epoch."""
        if position.batches < position.skip:  # of a stream
            position.check_resumed(ended=True)
        position.finished = True

    # Workers ------------------------------------------------------------------------------------

    def _with_workers(self, position: Position) -> Iterator[Any]:
        """Prefetch batches with workers."""
        pool = self._pool or self._workers(position.key)
        if self.persistent_workers:
            self._pool = pool
        waiting: deque[tuple[int, Task]] = deque()
        tasks = self._tasks(position)
        ahead = self.prefetch_factor * self.num_workers
        try:
            for task in itertools.islice(tasks, ahead):
                waiting.append((pool.submit(task), task))
            while waiting:
                batch = pool.result(waiting[0][0], self.timeout)
                _, done = waiting.popleft()
                if isinstance(batch, str) and batch == END:
                    break
                for task in itertools.islice(tasks, 1):
                    waiting.append((pool.submit(task), task))
                if self._is_due(done, position):
                    yield with_tensors(batch)
            self._finish(position)
        except GeneratorExit:  # the loop over the batches ended early
            raise
        except BaseException:
            self._pool = None
            pool.close()
            raise
        finally:
            if self._pool is pool:
                pool.abandon(ticket for ticket, _ in waiting)
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
        return {
            **self.__dict__,
            "_pool": None, "_order": None, "_position": None, "_loaded": None,
        }  # fmt: skip

    def __repr__(self) -> str:
        count = "a stream" if self.is_stream else f"{len(self)} batches"
        return (
            f"DataLoader({type(self.dataset).__name__}, {count}, batch_size={self.batch_size}, "
            f"num_workers={self.num_workers})"
        )


class _SingleExamples:
    """Single examples, each as an uncollated batch of one."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        return ([index] for index in self.sampler)

    def state_dict(self) -> dict[str, Any]:
        return self.sampler.state_dict()

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.sampler.set_state_dict(state_dict)

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

            known = ["dataset", "batch_size", "shuffle", "drop_last", "num_workers", "collate_fn",
                     "batch_sampler", "prefetch_factor", "timeout", "worker_init_fn",
                     "persistent_workers", "worker_type"]  # fmt: skip
            near = get_close_matches(name, known, 1)
            said = f"; did you mean {near[0]}?" if near else "."
            if instead := hint(name, value, known):
                said = f". {instead}"
            raise TypeError(f"DataLoader has no argument {name!r}{said}")
        allowed, why = _FIXED[name]
        if not any(value is one for one in allowed):
            raise TypeError(f"DataLoader does not do {name}={value!r}: {why}.")
