"""Samplers: the order of examples, and their grouping into batches."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from optlab.backend.exchange import default_world
from optlab.io.datasets import IterableDataset, _generator
from optlab.io.position import sampler_state, set_sampler_state


class Sampler:
    """An iterable of indices of examples: subclasses define ``__iter__``.

    Parameters
    ----------
    data_source : Dataset, optional

    Examples
    --------
    >>> import optlab as ol
    >>> class Backwards(ol.io.Sampler):
    ...     def __iter__(self):
    ...         return reversed(range(len(self.data_source)))
    >>> list(Backwards("abc"))
    [2, 1, 0]
    """

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(
            f"{type(self).__name__} has no __iter__ method; define __iter__(self), which gives the "
            "numbers of examples."
        )

    def __len__(self) -> int:
        return len(self.data_source)

    def state_dict(self) -> dict[str, Any]:
        """Return what fixes the order of the next epoch, beside optlab's random key: nothing.

        A subclass that draws from other random numbers returns their state, in numbers and text;
        `DataLoader.state_dict` contains it.
        """
        return {}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state of `state_dict`.

        Raises
        ------
        ValueError
            If it has another content.
        """
        if state_dict:
            raise ValueError(
                f"the state of a {type(self).__name__} is empty, but this one has "
                f"{', '.join(map(repr, state_dict))}: resume with the sampler of the saved run."
            )


class SequenceSampler(Sampler):
    """Indices in order, from the first example to the last.

    Examples
    --------
    >>> import optlab as ol
    >>> list(ol.io.SequenceSampler("abc"))
    [0, 1, 2]
    """

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))


class RandomSampler(Sampler):
    """Indices in random order.

    Parameters
    ----------
    data_source : Dataset
    replacement : bool
        Draw each one independently, so that some occur several times and others never.
    num_samples : int, optional
        Number of draws; by default the number of examples.
    generator : numpy.random.Generator, optional
        The random generator; by default of the next random key, so `optlab.seed` fixes the order.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> sorted(ol.io.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        super().__init__(data_source)
        if num_samples is not None and (operator.index(num_samples) < 1):
            raise ValueError(f"num_samples must be at least 1; got {num_samples!r}.")
        if num_samples is not None and not replacement and num_samples > len(data_source):
            raise ValueError(
                f"without replacement at most {len(data_source)} examples can be drawn; got "
                f"num_samples={num_samples!r}."
            )
        self.replacement = replacement
        self.num_samples = num_samples
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        draw = _generator(self.generator)  # now, since the next random key depends on the time
        total = len(self.data_source)
        if self.replacement:
            return iter(draw.integers(0, total, len(self)).tolist())
        return iter(draw.permutation(total)[: len(self)].tolist())

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples

    def state_dict(self) -> dict[str, Any]:
        """Return the state of `generator`, if there is one; empty for optlab's random key."""
        if self.generator is None:
            return {}
        return {"generator": _generator(self.generator).bit_generator.state}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state of `generator`."""
        if self.generator is None:
            super().set_state_dict(state_dict)
            return
        try:
            _generator(self.generator).bit_generator.state = dict(state_dict["generator"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "the state is not of a RandomSampler with a generator like this one's, "
                f"{type(self.generator.bit_generator).__name__}: resume with the sampler of the "
                "saved run."
            ) from error


class BatchSampler(Sampler):
    """Lists of the indices of each batch.

    Parameters
    ----------
    dataset : Dataset, optional
        Either this or `sampler`.
    sampler : iterable of int, optional
        The order of examples; by default sequential, or random with `shuffle`.
    shuffle : bool
    batch_size : int
    drop_last : bool
        Drop a last batch that is smaller than the others.

    Examples
    --------
    >>> import optlab as ol
    >>> list(ol.io.BatchSampler("abcde", batch_size=2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any = None,
        sampler: Iterable[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if (dataset is None) == (sampler is None):
            raise ValueError("BatchSampler takes either a data set or a sampler.")
        if sampler is not None and shuffle:
            raise ValueError("a sampler has its own order; leave shuffle out.")
        if isinstance(dataset, IterableDataset):
            raise TypeError("the examples of an IterableDataset have no numbers to take.")
        super().__init__(dataset)
        self.batch_size = whole_number(batch_size, "batch_size", 1)
        self.drop_last = bool(drop_last)
        self.sampler: Any = sampler
        if sampler is None:
            self.sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)

    def __iter__(self) -> Iterator[list[Any]]:
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        total = len(self.sampler)
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the sampler of examples."""
        return {"sampler": sampler_state(self.sampler)}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state of the sampler of examples."""
        if set(state_dict) != {"sampler"}:
            raise ValueError(
                "the state of a BatchSampler has the one key 'sampler'; this one has "
                f"{', '.join(map(repr, state_dict)) or 'none'}."
            )
        set_sampler_state(self.sampler, state_dict["sampler"])


class DistributedBatchSampler(BatchSampler):
    """Batches of this rank: the ranks share every epoch's order, and part it among them.

    The order is drawn from the program's random numbers (`optlab.seed`), so ranks that begin with
    one seed need no message to agree. In the order of one process with batches of
    ``num_replicas * batch_size``, batch number i consists of the ranks' batches number i.

    Parameters
    ----------
    dataset : Dataset
    batch_size : int
        Examples in a batch of one rank.
    num_replicas : int, optional
        The number of ranks; by default that of the world in which it is made.
    rank : int, optional
        This rank; by default its own.
    shuffle : bool
    drop_last : bool
        Drop the examples that do not fill a batch of every rank. Otherwise the ranks part the last
        ones, and examples from the beginning of the order fill up what is missing, so that all
        ranks have batches of one size.

    Raises
    ------
    ValueError
        If `rank` is not one of the ranks, or the data set is smaller than their number.

    Notes
    -----
    Every rank makes its samplers and loaders in the same order: a loader's shuffling depends on the
    seed, its number and its epoch.

    Examples
    --------
    >>> import optlab as ol
    >>> for rank in range(2):
    ...     print(list(ol.io.DistributedBatchSampler("abcdefg", 2, num_replicas=2, rank=rank)))
    [[0, 1], [4, 5]]
    [[2, 3], [6, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last)
        world = default_world() if num_replicas is None or rank is None else None
        if num_replicas is None:
            num_replicas = 1 if world is None else world.Get_size()
        if rank is None:
            rank = 0 if world is None else world.Get_rank()
        self.num_replicas = whole_number(num_replicas, "num_replicas", 1)
        self.rank = whole_number(rank, "rank", 0)
        if self.rank >= self.num_replicas:
            raise ValueError(f"rank={rank}, but the ranks are 0 to {self.num_replicas - 1}.")
        if len(self.sampler) < self.num_replicas:
            raise ValueError(
                f"{len(self.sampler)} examples are too few for {self.num_replicas} ranks."
            )

    def __iter__(self) -> Iterator[list[Any]]:
        order = list(self.sampler)
        together = self.num_replicas * self.batch_size
        for start in range(0, len(order), together):
            batch = order[start : start + together]
            size = self.batch_size
            if len(batch) < together:
                if self.drop_last:
                    return
                size = -(-len(batch) // self.num_replicas)
                batch += order[: size * self.num_replicas - len(batch)]
            yield batch[self.rank * size : (self.rank + 1) * size]

    def __len__(self) -> int:
        together = self.num_replicas * self.batch_size
        total = len(self.sampler)
        return total // together if self.drop_last else -(-total // together)


def whole_number(value: Any, name: str, least: int) -> int:
    """Validate an integer that is at least `least`, and return it."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return number
