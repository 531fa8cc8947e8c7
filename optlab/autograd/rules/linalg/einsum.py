"""Derivative rules of Einstein summation, for one operand and for two.

More operands are contracted two at a time (`optlab.autograd.composed.einsum`), which also expands
ellipses: labels here are single letters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.backend.arrays import Shape, zeros_beside

#: From this many multiplications on, the search for matrix products pays for itself.
OPTIMIZE_FROM = 30_000


def einsum_of_one(x: Any, labels: str, output: str) -> Any:
    """Return ``np.einsum`` of one operand: diagonals, sums, transpositions.

    Examples
    --------
    >>> import numpy as np
    >>> einsum_of_one(np.array([[1, 2], [3, 4]]), "ii", "i")
    array([1, 4])
    """
    return np.einsum(f"{labels}->{output}", x)


def einsum_of_two(
    a: Any, b: Any, a_labels: str, b_labels: str, output: str, optimize: Any = False
) -> Any:
    """Return ``np.einsum`` of two operands.

    Examples
    --------
    >>> import numpy as np
    >>> einsum_of_two(np.array([1, 2]), np.array([3, 4]), "i", "i", "")
    np.int64(11)
    """
    return np.einsum(f"{a_labels},{b_labels}->{output}", a, b, optimize=optimize)


def on_diagonals(x: Any, labels: str, shape: Shape) -> Any:
    """Write `x` onto diagonals of zeros: the transpose of reading with repeated labels.

    Examples
    --------
    >>> import numpy as np
    >>> on_diagonals(np.array([1.0, 2.0]), "ii", (2, 2))
    array([[1., 0.],
           [0., 2.]])
    """
    zeros = zeros_beside(x, shape)
    np.einsum(f"{labels}->{_unique(labels)}", zeros)[...] = x  # a writable view of the zeros
    return zeros


ON_DIAGONALS = rule(
    on_diagonals,
    lambda g, labels: np.einsum(f"{labels}->{_unique(labels)}", g),
    static="labels shape",
)


def _unique(labels: str) -> str:
    """Return the distinct labels, in order."""
    return "".join(dict.fromkeys(labels))


def _expand_to_operand(part: Any, have: str, labels: str, shape: Shape) -> Any:
    """Expand a gradient with the axes `have` to an operand's axes `labels`.

    The gradient is broadcast along labels that only this operand has: they were summed over.
    """
    wanted = _unique(labels)
    lengths = dict(zip(labels, shape, strict=True))
    missing = tuple(i for i, label in enumerate(wanted) if label not in have)
    if missing:
        part = np.expand_dims(part, missing)
    full = tuple(
        max(length, lengths[label]) if length else 0
        for length, label in zip(part.shape, wanted, strict=True)
    )
    if part.shape != full:
        part = np.broadcast_to(part, full)
    return (
        part
        if wanted == labels
        else as_single_operation(on_diagonals, part, labels=labels, shape=shape)
    )


def _operand_gradient(
    g: Any, other: Any, output: str, other_labels: str, labels: str, shape: Shape, optimize: Any
) -> Any:
    """Contract the gradient with the other operand over the labels that this operand lacks."""
    have = "".join(label for label in _unique(labels) if label in output or label in other_labels)
    if not isinstance(optimize, (bool, str)):
        optimize = True  # an explicit path applies to the forward pass only
    lengths = dict(zip(output + other_labels, g.shape + np.shape(other), strict=True))
    if math.prod(lengths.values()) > OPTIMIZE_FROM:
        optimize = optimize or True  # as matrix products
    part = np.einsum(f"{output},{other_labels}->{have}", g, other, optimize=optimize)
    return _expand_to_operand(part, have, labels, shape)


def _single_operand_gradient(g: Any, x_shape: Any, labels: str, output: str) -> Any:
    have = "".join(label for label in _unique(labels) if label in output)
    return _expand_to_operand(np.einsum(f"{output}->{have}", g), have, labels, x_shape)


EINSUM_OF_ONE = rule(einsum_of_one, _single_operand_gradient, static="labels output", view=True)
EINSUM_OF_TWO = rule(
    einsum_of_two,
    lambda g, b, a_shape, a_labels, b_labels, output, optimize=False: _operand_gradient(
        g, b, output, b_labels, a_labels, a_shape, optimize
    ),
    lambda g, a, b_shape, a_labels, b_labels, output, optimize=False: _operand_gradient(
        g, a, output, a_labels, b_labels, b_shape, optimize
    ),
    static="a_labels b_labels output optimize",
)
