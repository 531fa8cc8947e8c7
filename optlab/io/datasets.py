"""Data sets, the sources of single examples."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.creation import to_tensor
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import is_on_device
from optlab.backend.random import next_key


class Dataset:
    """A data set with random access: subclasses define ``__getitem__`` and ``__len__``.

    Examples
    --------
    >>> import optlab as ol
    >>> class Squares(ol.io.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return float(index), float(index**2)
    >>> for x, y in ol.io.DataLoader(Squares(), batch_size=2):
    ...     print(x.tolist(), y.tolist())
    [0.0, 1.0] [0.0, 1.0]
    [2.0, 3.0] [4.0, 9.0]
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no __getitem__ method; define __getitem__(self, index), "
            "which gives one example."
        )

    def __len__(self) -> int:
        raise NotImplementedError(
            f"{type(self).__name__} has no __len__ method; define __len__(self), which gives the "
            "number of examples."
        )


class IterableDataset(Dataset):
    """A stream of examples: subclasses define ``__iter__``.

    Examples
    --------
    >>> import optlab as ol
    >>> class Count(ol.io.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> [batch.tolist() for batch in ol.io.DataLoader(Count(), batch_size=2)]
    [[0, 1], [2]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(
            f"{type(self).__name__} has no __iter__ method; define __iter__(self), which gives the "
            "examples one after another."
        )

    def __getitem__(self, index: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} is an IterableDataset: its examples come one after another and "
            "have no numbers."
        )

    def __len__(self) -> int:
        raise TypeError(
            f"{type(self).__name__} is an IterableDataset: how many examples come is not known "
            "before."
        )


class TensorDataset(Dataset):
    """The rows of Tensors or arrays: example i is row i of each.

    Parameters
    ----------
    tensors : sequence of Tensor or array
        With first axes of equal length.

    Raises
    ------
    ValueError
        If the first axes have different lengths.
    TypeError
        If `tensors` is not a list or tuple of them.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> data = ol.io.TensorDataset([np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])])
    >>> len(data), data[1]
    (3, (Tensor([2., 3.], dtype=float64), Tensor(1, dtype=int64)))
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        if not isinstance(tensors, (list, tuple)) or not tensors:
            raise TypeError(
                "TensorDataset takes a list of Tensors or arrays: TensorDataset([x, y]); got "
                f"{type(tensors).__name__}."
            )
        self.tensors = tuple(map(_as_tensor, tensors))
        lengths = [t.shape[0] if t.ndim else None for t in self.tensors]
        if None in lengths or len(set(lengths)) != 1:
            raise ValueError(
                "the Tensors of a TensorDataset need first axes of one length; their shapes are "
                f"{', '.join(str(t.shape) for t in self.tensors)}."
            )

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def rows(self, indices: Sequence[int]) -> list[Any]:
        """Return the arrays of several rows at once, equal to collating them one by one."""
        chosen = [t.data[np.asarray(indices)] for t in self.tensors]
        return [Tensor(rows) if is_on_device(rows) else rows for rows in chosen]


def _as_tensor(x: Any) -> Tensor:
    """Return `x` as a Tensor that shares the memory of an array."""
    if isinstance(x, np.ndarray):
        return Tensor(x)
    return x.detach() if isinstance(x, Tensor) else to_tensor(x)


class Subset(Dataset):
    """A subset of another data set.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int
        The indices of its examples, in order.

    Examples
    --------
    >>> import optlab as ol
    >>> part = ol.io.Subset([10, 11, 12, 13], [3, 0])
    >>> len(part), part[0]
    (2, 13)
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = [operator.index(i) for i in indices]

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Several data sets, concatenated.

    Parameters
    ----------
    datasets : iterable of Dataset

    Examples
    --------
    >>> import optlab as ol
    >>> both = ol.io.ConcatDataset([[10, 11], [20]])
    >>> len(both), both[2], both[-3]
    (3, 20, 10)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset needs at least one data set.")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise TypeError("ConcatDataset takes data sets whose examples have numbers.")
        self.ends = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, index: Any) -> Any:
        i = operator.index(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"this data set has {len(self)} examples; there is no number {i}.")
        i %= len(self)
        which = bisect.bisect_right(self.ends, i)
        return self.datasets[which][i - (self.ends[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.ends[-1]


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Split a data set at random.

    Parameters
    ----------
    dataset : Dataset
    lengths : sequence of int, or of float
        The number of examples in each part; or fractions that add up to 1, where the remainder of
        rounding is added to the first parts, one each.
    generator : numpy.random.Generator, optional
        The random generator; by default of the next random key, so `optlab.seed` fixes the parts.

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        If the lengths do not add up.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> train, test = ol.io.random_split(range(10), [0.8, 0.2])
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    total = len(dataset)
    counts: list[Any] = list(lengths)
    if counts and math.isclose(sum(counts), 1) and any(isinstance(n, float) for n in counts):
        shares, counts = counts, [math.floor(total * share + 1e-9) for share in counts]
        for i in range(total - sum(counts)):
            counts[i % len(shares)] += 1
    if any(n != int(n) or n < 0 for n in counts) or sum(counts) != total:
        raise ValueError(
            f"random_split parts {total} examples, but {list(lengths)} adds up to "
            f"{sum(lengths)}. Give whole numbers that add up to {total}, or shares that add up to "
            "1."
        )
    order = _generator(generator).permutation(total).tolist()
    ends = itertools.accumulate(int(n) for n in counts)
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(counts, ends, strict=True)]


def _generator(given: Any) -> np.random.Generator:
    """Return the given generator, or that of the next random key."""
    if given is None:
        return next_key().generator()
    if not isinstance(given, np.random.Generator):
        raise TypeError(
            "generator must be a numpy.random.Generator, such as numpy.random.default_rng(0), or "
            f"None for the random key of optlab; got {given!r}."
        )
    return given
