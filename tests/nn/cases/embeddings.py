"""Cases of embedding lookups."""

from __future__ import annotations

import numpy as np

import optlab as ol
from tests.nn.cases.table import numbers, put

F = ol.nn.functional

ROWS = np.array([[0, 2, 1], [2, 2, 0]])

put(
    "embedding",
    lambda w: F.embedding(ROWS, w),
    numbers(4, 3),
    torch=lambda torch, w: torch.nn.functional.embedding(torch.tensor(ROWS), w),
)
put("embedding of sparse gradient", lambda w: F.embedding(ROWS, w, sparse=True), numbers(4, 3))
for sparse in (False, True):
    put(
        f"embedding with padding, sparse={sparse}",
        lambda w, sparse=sparse: F.embedding(ROWS, w, padding_idx=2, sparse=sparse),
        numbers(4, 3),
    )
