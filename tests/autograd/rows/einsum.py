"""Rows of Einstein summation."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation
from optlab.autograd.rules.linalg.einsum import einsum_of_one, einsum_of_two, on_diagonals
from tests.autograd.rows.table import Shape, numbers, put

SUMS: list[tuple[str, list[Shape]]] = [
    # one operand: transpose, sum, diagonal, trace
    ("ij->ji", [(2, 3)]), ("ji", [(2, 3)]), ("ij->i", [(2, 3)]), ("ij->", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ii->i", [(3, 3)]), ("ii", [(3, 3)]), ("iji->ij", [(2, 3, 2)]), ("iji->j", [(2, 3, 2)]),
    ("iii->i", [(2, 2, 2)]), ("iijj->ij", [(2, 2, 3, 3)]), ("...ii->...i", [(4, 2, 2)]),
    ("...ij->...ji", [(2, 3, 2)]), ("...", [(2, 3)]), ("i...->...", [(2, 3)]), ("->", [()]),
    # two operands
    ("i,i->", [(3,), (3,)]), ("i,i", [(3,), (3,)]), ("i,j->ij", [(2,), (3,)]),
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]),
    ("ij , jk -> ki", [(2, 3), (3, 4)]),
    ("ij,ij->i", [(2, 3), (2, 3)]), ("ij,kl->ik", [(2, 3), (2, 4)]), ("ii,i->", [(3, 3), (3,)]),
    ("ii,jj->ij", [(2, 2), (3, 3)]), ("ij,k->", [(2, 3), (2,)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (3, 2)]),
    ("...ij,jk", [(4, 2, 3), (3, 2)]), ("i...,i...->...", [(2, 3), (2, 4, 1)]),
    ("...,...", [(2, 1), (3,)]), (",ij->ij", [(), (2, 3)]), ("ba,cb", [(2, 3), (4, 2)]),
    ("ij,ij->ij", [(1, 3), (2, 3)]), ("ij,ij->i", [(2, 3), (2, 1)]), ("aB,Bc", [(2, 3), (3, 2)]),
    ("ij,j->i", [(0, 3), (3,)]), ("bij,bjk->bik", [(2, 3, 2), (2, 2, 3)]),
    # more operands
    ("i,j,k->ijk", [(2,), (3,), (2,)]), ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]),
    ("bi,ij,bj->b", [(4, 2), (2, 3), (4, 3)]), ("i,i,i->i", [(3,), (3,), (3,)]),
    ("ij,jk,kl,lm", [(2, 3), (3, 2), (2, 2), (2, 3)]),
    ("ii,jk,...k->...j", [(2, 2), (3, 2), (4, 2)]),
    ("...i,...i,i->...", [(2, 3), (4, 1, 3), (3,)]), ("a,b,ab,->", [(2,), (3,), (2, 3), ()]),
]  # fmt: skip
for subscripts, shapes in SUMS:
    arrays = [numbers(shape, seed=i) for i, shape in enumerate(shapes)]
    f = lambda *arrays, subscripts=subscripts: np.einsum(subscripts, *arrays)  # noqa: E731
    put(np.einsum, f"{subscripts} {shapes}", f, *arrays)

a, b, c = numbers((2, 3)), numbers((3, 4), seed=1), numbers((4,), seed=2)
CHOICES: dict[str, Any] = {
    "optimize": lambda a, b: np.einsum("ij,jk->ik", a, b, optimize=True),
    "optimize by name": lambda a, b, c: np.einsum("ij,jk,k", a, b, c, optimize="optimal"),
    "a path": lambda a, b, c: np.einsum(
        "ij,jk,k->i", a, b, c, optimize=["einsum_path", (1, 2), (0, 1)]
    ),
    "a path for two": lambda a, b: np.einsum("ij,jk", a, b, optimize=["einsum_path", (0, 1)]),
    "defaults named": lambda a, b: np.einsum(
        "ij,jk", a, b, dtype=None, order="K", casting="safe", out=None
    ),
    "lists of labels": lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]),
    "lists, output left out": lambda a, b: np.einsum(a, [5, 30], b, [30, 2]),
    "lists with dots": lambda a, b: np.einsum(a, [..., 0], b, [0, 1], [..., 1]),
    "an array among them": lambda a, b: np.einsum("ij,jk,k->i", a, b, np.arange(4.0)),
    "a list among them": lambda a: np.einsum("ij,j", a, [1.0, 2.0, 3.0]),
}
for label, f in CHOICES.items():
    put(np.einsum, label, f, *(a, b, c)[: f.__code__.co_argcount])
put(np.einsum, "twice the same", lambda a: np.einsum("ij,kj->ik", a, a), a)
put(np.einsum, "three times the same", lambda c: np.einsum("i,i,i", c, c, c), c)

put(
    einsum_of_one,
    "ii",
    lambda x: as_single_operation(einsum_of_one, x, labels="ii", output=""),
    numbers((2, 2)),
)
put(
    einsum_of_two,
    "ij,j",
    lambda a, b: as_single_operation(einsum_of_two, a, b, a_labels="ij", b_labels="j", output="i"),
    numbers((2, 3)),
    numbers((3,)),
)
put(
    on_diagonals,
    "iji",
    lambda x: as_single_operation(on_diagonals, x, labels="iji", shape=(2, 3, 2)),
    numbers((2, 3)),
)
