"""Derivative rules of Einstein summation, for one operand and for two.

More operands are contracted two at a time (`optlab.autograd.composed.einsum`). Labels are single
letters here; the dots are gone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import as_one, rule
from optlab.backend.arrays import Shape, zeros_beside

#: From this many multiplications on, looking for products of matrices pays for itself.
WORTH_A_PLAN = 30_000


def einsum_of_one(x: Any, labels: str, kept: str) -> Any:
    """Give ``np.einsum`` of one operand: diagonals, sums, transpositions.

    Examples
    --------
    >>> import numpy as np
    >>> einsum_of_one(np.array([[1, 2], [3, 4]]), "ii", "i")
    array([1, 4])
    """
    return np.einsum(f"{labels}->{kept}", x)


def einsum_of_two(
    a: Any, b: Any, a_labels: str, b_labels: str, kept: str, optimize: Any = False
) -> Any:
    """Give ``np.einsum`` of two operands.

    Examples
    --------
    >>> import numpy as np
    >>> einsum_of_two(np.array([1, 2]), np.array([3, 4]), "i", "i", "")
    np.int64(11)
    """
    return np.einsum(f"{a_labels},{b_labels}->{kept}", a, b, optimize=optimize)


def on_diagonals(x: Any, labels: str, shape: Shape) -> Any:
    """Put `x` on the diagonals of zeros: what reading with repeated labels does, backwards.

    Examples
    --------
    >>> import numpy as np
    >>> on_diagonals(np.array([1.0, 2.0]), "ii", (2, 2))
    array([[1., 0.],
           [0., 2.]])
    """
    zeros = zeros_beside(x, shape)
    np.einsum(f"{labels}->{_once(labels)}", zeros)[...] = x  # NumPy gives a view that is writable
    return zeros


ON_DIAGONALS = rule(
    on_diagonals,
    lambda g, labels: np.einsum(f"{labels}->{_once(labels)}", g),
    static="labels shape",
)


def _once(labels: str) -> str:
    """Give each label once, in order."""
    return "".join(dict.fromkeys(labels))


def _back_to(part: Any, have: str, labels: str, shape: Shape) -> Any:
    """Bring a gradient with the axes `have` to an operand's axes `labels`.

    An operand's label that nothing else has was summed over, so its gradient is the same all along.
    """
    wanted = _once(labels)
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
    return part if wanted == labels else as_one(on_diagonals, part, labels=labels, shape=shape)


def _by_operand(
    g: Any, other: Any, kept: str, other_labels: str, labels: str, shape: Shape, optimize: Any
) -> Any:
    """Sum the gradient times the other operand over all that this operand does not have."""
    have = "".join(label for label in _once(labels) if label in kept or label in other_labels)
    if not isinstance(optimize, (bool, str)):
        optimize = True  # a path was for the value
    lengths = dict(zip(kept + other_labels, g.shape + np.shape(other), strict=True))
    if math.prod(lengths.values()) > WORTH_A_PLAN:
        optimize = optimize or True  # as products of matrices
    part = np.einsum(f"{kept},{other_labels}->{have}", g, other, optimize=optimize)
    return _back_to(part, have, labels, shape)


def _by_only_operand(g: Any, x_shape: Any, labels: str, kept: str) -> Any:
    have = "".join(label for label in _once(labels) if label in kept)
    return _back_to(np.einsum(f"{kept}->{have}", g), have, labels, x_shape)


EINSUM_OF_ONE = rule(einsum_of_one, _by_only_operand, static="labels kept", view=True)
EINSUM_OF_TWO = rule(
    einsum_of_two,
    lambda g, b, a_shape, a_labels, b_labels, kept, optimize=False: _by_operand(
        g, b, kept, b_labels, a_labels, a_shape, optimize
    ),
    lambda g, a, b_shape, a_labels, b_labels, kept, optimize=False: _by_operand(
        g, a, kept, a_labels, b_labels, b_shape, optimize
    ),
    static="a_labels b_labels kept optimize",
)
