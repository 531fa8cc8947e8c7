"""Samplers: the order of examples, and their grouping into batches."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

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


class _DrawingSampler(Sampler):
    """A sampler that draws from `generator`, or from optlab's next random key without one."""

    generator: Any = None

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
                f"the state is not of a {type(self).__name__} with a generator like this one's, "
                f"{type(self.generator.bit_generator).__name__}: resume with the sampler of the "
                "saved run."
            ) from error


class RandomSampler(_DrawingSampler):
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


class WeightedRandomSampler(_DrawingSampler):
    """Indices drawn with given probabilities, such as rare classes more often.

    Parameters
    ----------
    weights : array, Tensor or list, of shape [N] or [R, N]
        The weight of each index, at least 0; they need not add up to 1. Of several rows each is
        drawn from by itself, one after the other.
    num_samples : int
        Number of draws (from each row).
    replacement : bool
        Draw each one independently, so that an index may occur several times.
    generator : numpy.random.Generator, optional
        The random generator; by default of the next random key, so `optlab.seed` fixes the draws.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, a row has no positive one, or, without replacement,
        fewer positive ones than are to be drawn.

    Notes
    -----
    Signature: paddle.io.WeightedRandomSampler.

    Examples
    --------
    Three examples of class 0 and one of class 1, drawn equally often:

    >>> import numpy as np
    >>> import optlab as ol
    >>> labels = np.array([0, 0, 0, 1])
    >>> weights = 1 / np.bincount(labels)[labels]
    >>> ol.seed(0)
    >>> drawn = list(ol.io.WeightedRandomSampler(weights, 1000))
    >>> bool(450 < np.sum(labels[drawn] == 1) < 550)
    True
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        super().__init__()
        self.num_samples = whole_number(num_samples, "num_samples", 1)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement is True or False; got {replacement!r}.")
        given = getattr(weights, "numpy", lambda: weights)()
        rows = np.asarray(given, dtype=np.float64)
        if rows.ndim not in (1, 2) or not rows.size:
            raise ValueError(
                f"weights are one row of numbers, or several; got an array of shape {rows.shape}."
            )
        rows = rows.reshape(-1, rows.shape[-1])
        if not (np.isfinite(rows).all() and (rows >= 0).all()):
            raise ValueError(f"every weight is a finite number of at least 0; got {weights!r}.")
        positive = (rows > 0).sum(axis=1).min()
        if not positive:
            raise ValueError("the weights of a row are all 0, so nothing can be drawn.")
        if not replacement and positive < num_samples:
            raise ValueError(
                f"without replacement at most {positive} indices can be drawn, as many as have a "
                f"positive weight; got num_samples={num_samples!r}."
            )
        self.weights = weights
        self.replacement = replacement
        self.generator = generator
        with np.errstate(under="ignore"):
            # By the largest first, as sums of large weights may overflow.
            rows = rows / rows.max(axis=1, keepdims=True)
            self._probabilities = rows / rows.sum(axis=1, keepdims=True)

    def __iter__(self) -> Iterator[int]:
        draw = _generator(self.generator)
        total = self._probabilities.shape[1]
        drawn = [
            draw.choice(total, self.num_samples, self.replacement, row).tolist()
            for row in self._probabilities
        ]
        return itertools.chain.from_iterable(drawn)

    def __len__(self) -> int:
        return self.num_samples * len(self._probabilities)


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
