"""Einstein summation, reduced to contractions of one or two operands."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules.linalg.einsum import EINSUM_OF_ONE, EINSUM_OF_TWO
from optlab.autograd.tensor.tensor import apply
from optlab.backend.arrays import Shape
from optlab.backend.dtypes import dtype_named

#: In NumPy's order, which is also that of an implicit output.
LETTERS = string.ascii_uppercase + string.ascii_lowercase


@composed(np.einsum)
def _einsum(
    *operands: Any,
    optimize: Any = False,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: Any = "safe",
) -> Any:
    if order != "K":
        raise not_covered(f"einsum with order={order!r}")
    if isinstance(operands[0], str):
        subscripts, arrays = operands[0], list(operands[1:])
    else:
        subscripts, arrays = _subscripts_from_lists(operands)
    if dtype is not None:
        arrays = [_cast(x, dtype_named(dtype), casting) for x in arrays]
    shapes = tuple(np.shape(x) for x in arrays)
    terms, output = _expand_ellipsis(subscripts, shapes)
    if len(arrays) == 1:
        return apply(EINSUM_OF_ONE, arrays, {"labels": terms[0], "output": output})
    if len(arrays) == 2:
        return _contract_pair(arrays, terms, output, optimize)
    return _contract_path(arrays, terms, output, shapes, optimize)


def _cast(x: Any, dtype: Any, casting: Any) -> Any:
    """Cast an operand to the dtype of the computation, as far as ``casting=`` allows."""
    x = x if hasattr(x, "dtype") else np.asarray(x)
    if not np.can_cast(x.dtype, dtype, casting):
        raise TypeError(
            f"einsum cannot cast an operand of dtype {x.dtype} to {dtype} with "
            f"casting={casting!r}; casting='same_kind' or 'unsafe' allows more."
        )
    return x if x.dtype == dtype else x.astype(dtype)


def _contract_pair(arrays: Sequence[Any], terms: Sequence[str], output: str, optimize: Any) -> Any:
    a_labels, b_labels = terms
    static = {"a_labels": a_labels, "b_labels": b_labels, "output": output, "optimize": optimize}
    return apply(EINSUM_OF_TWO, arrays, static)


def _contract_path(
    arrays: list[Any], terms: tuple[str, ...], output: str, shapes: tuple[Shape, ...], optimize: Any
) -> Any:
    """Contract two operands at a time, along the path that NumPy finds for the shapes."""
    wished = optimize if optimize is not False else "greedy"
    key = wished if isinstance(wished, (str, bool)) else tuple(wished)
    labels = list(terms)
    for group in _path(terms, output, shapes, key):
        parts = [(arrays.pop(i), labels.pop(i)) for i in sorted(group, reverse=True)]
        x, x_labels = parts.pop()
        while parts:
            y, y_labels = parts.pop()
            waiting = "".join([output, *labels, *(part_labels for _, part_labels in parts)])
            left = "".join(c for c in dict.fromkeys(x_labels + y_labels) if c in waiting)
            last = not labels and not parts
            left = output if last else left
            x = _contract_pair((x, y), (x_labels, y_labels), left, optimize is not False)
            x_labels = left
        arrays.append(x)
        labels.append(x_labels)
    return arrays[0]


@lru_cache(maxsize=256)
def _path(terms: tuple[str, ...], output: str, shapes: tuple[Shape, ...], optimize: Any) -> Any:
    """Return NumPy's contraction path, which depends on the shapes only."""
    stand_ins = [np.broadcast_to(0.0, shape) for shape in shapes]
    wished = list(optimize) if isinstance(optimize, tuple) else optimize
    return np.einsum_path(",".join(terms) + "->" + output, *stand_ins, optimize=wished)[0][1:]


def _subscripts_from_lists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Convert ``einsum(a, [0, 1], b, [1, 2], [0, 2])`` to ``einsum("AB,BC->AC", a, b)``."""

    def letter(label: Any) -> str:
        if label is Ellipsis:
            return "..."
        if not 0 <= label < len(LETTERS):
            raise ValueError(
                f"the labels of einsum are whole numbers from 0 to {len(LETTERS) - 1}, or "
                f"Ellipsis; {label!r} is not."
            )
        return LETTERS[label]

    def term(labels: Any) -> str:
        return "".join(map(letter, labels))

    pairs = len(operands) // 2
    subscripts = ",".join(term(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        subscripts += "->" + term(operands[-1])
    return subscripts, [operands[2 * i] for i in range(pairs)]


@lru_cache(maxsize=1024)
def _expand_ellipsis(subscripts: str, shapes: tuple[Shape, ...]) -> tuple[tuple[str, ...], str]:
    """Return the labels of each operand and of the output, with letters for the ellipsis.

    Raises
    ------
    ValueError
        If the labels do not fit the operands.
    """
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"einsum {subscripts!r} has labels for {len(terms)} operands, but got {len(shapes)}."
        )
    free = [c for c in LETTERS if c not in text]
    batches = [
        len(shape) - len(term.replace("...", "")) if "..." in term else 0
        for term, shape in zip(terms, shapes, strict=True)
    ]
    dots = "".join(free[: max(batches, default=0)])
    if not arrow:
        named = left.replace("...", "").replace(",", "")
        right = dots + "".join(c for c in sorted(set(named)) if named.count(c) == 1)
    elif "..." not in right and dots:
        raise ValueError(
            f"the output of einsum {subscripts!r} needs '...' too: operands have axes there."
        )
    for term, shape, batch in zip(terms, shapes, batches, strict=True):
        length = len(term.replace("...", "")) + batch
        if batch < 0 or length != len(shape):
            raise ValueError(
                f"the labels {term!r} of einsum {subscripts!r} do not fit an operand of shape "
                f"{shape}, which has {len(shape)} axes."
            )
    expanded = tuple(
        term.replace("...", dots[len(dots) - batch :])
        for term, batch in zip(terms, batches, strict=True)
    )
    return expanded, right.replace("...", dots)
