"""Large work cut into blocks, for all cores.

The blocks depend on shapes alone, and each product of matrices uses one thread: the bits are the
same on any number of cores, and from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from optlab.backend.blas_threads import one_each
from optlab.plan.threads import products_on_all_cores

#: Operations of a product (two for each number that is multiplied) from which on it is cut in two,
#: 0.1 to 0.2 ms on one core, and the operations of a block of larger ones.
SHARED = 24_000_000
BLOCK_OPERATIONS = 100_000_000

#: A product is cut into at most so many blocks.
MOST = 16


@lru_cache(maxsize=64)
def ones(length: int, dtype: Any) -> Any:
    """Return a read-only vector of ones: a product with it sums in a third of the time of a sum."""
    made = np.ones(length, dtype)
    made.flags.writeable = False
    return made


def for_each(function: Callable[[slice], Any], blocks: Sequence[slice]) -> list[Any]:
    """Return the function of each block, in order, computed on all cores."""
    found: list[Any] = [None] * len(blocks)

    def job(place: int) -> None:
        found[place] = function(blocks[place])

    if len(blocks) == 1:
        with one_each():
            job(0)
    elif blocks:
        products_on_all_cores([partial(job, place) for place in range(len(blocks))])
    return found


def added_up(parts: Sequence[Any]) -> Any:
    """Return the sum of arrays, added in order into the first one."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def cut(count: int, rounds: int) -> list[slice]:
    """Return at most `rounds` slices of about equal length of `count` elements.

    Examples
    --------
    >>> cut(5, 2)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    most = max(-(-count // max(rounds, 1)), 1)
    return [slice(start, min(start + most, count)) for start in range(0, count, most)]


def rounds_for(operations: int) -> int:
    """Return into how many blocks to cut work of so many operations: 1, or an even number.

    Examples
    --------
    >>> rounds_for(1000), rounds_for(50_000_000), rounds_for(500_000_000)
    (1, 2, 4)
    """
    if operations < SHARED:
        return 1
    return min(2 * max(operations // (2 * BLOCK_OPERATIONS), 1), MOST)


def multiplied(a: Any, b: Any, bias: Any = None) -> Any:
    """Return the product of two matrices, plus a row; blocks of a large one go over all cores."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        return a @ b if bias is None else a @ b + bias
    return _computed([(a, b)], [bias])[0]


def multiplied_together(*pairs: tuple[Any, Any], sums_of: Any = None) -> list[Any]:
    """Return several products of NumPy matrices of about the same size; all cores share them.

    To wake another core takes as long as it needs for millions of operations, so that two products
    of half a millisecond take a fifth less time together than one after another. The sums of the
    rows of another matrix may be computed beside them.
    """
    last = [] if sums_of is None else [(ones(len(sums_of), sums_of.dtype)[None], sums_of)]
    found = _computed([*pairs, *last], [None] * (len(pairs) + len(last)))
    if last:
        found[-1] = found[-1][0]
    return found


def _computed(pairs: Sequence[tuple[Any, Any]], biases: Sequence[Any]) -> list[Any]:
    sizes = [a.shape[0] * a.shape[1] * b.shape[1] for a, b in pairs]
    rounds = rounds_for(2 * sum(sizes))
    if rounds == 1:
        with one_each():
            found = [a @ b for a, b in pairs]
        for y, bias in zip(found, biases, strict=True):
            if bias is not None:
                y += bias
        return found
    found, jobs = [], []
    for (a, b), bias, size in zip(pairs, biases, sizes, strict=True):
        out = np.empty((a.shape[0], b.shape[1]), np.result_type(a, b))
        found.append(out)
        # Along the longer side: the library packs the other matrix anew for each block.
        wide = b.shape[1] > a.shape[0]
        for part in cut(max(out.shape), -(-rounds * size // sum(sizes))):
            given = (a, b[:, part], out[:, part]) if wide else (a[part], b, out[part])
            row = bias if bias is None or not wide else bias[part]
            jobs.append(partial(_multiply, *given, row))
    products_on_all_cores(jobs)
    return found


def _multiply(a: Any, b: Any, out: Any, bias: Any) -> None:
    np.matmul(a, b, out=out)
    if bias is not None:
        out += bias
