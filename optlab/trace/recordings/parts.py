"""The parameters of an optimizer as flat rows, and what is read of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import ZERO
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import raw
from optlab.optimizer.params.groups import parameter_names
from optlab.trace.probes.base import Part


def changes_gradients(optimizer: Any) -> bool:
    """Return whether clipping or decay change the gradient before the rule."""
    return any(
        group.grad_clip is not None or group.regularizer is not None for group in optimizer.groups
    ) or any(getattr(p, "regularizer", None) is not None for p in optimizer.parameters)


def _live_gradients(flat: Any, given: Any) -> tuple[list[Any], bool]:
    """Return the gradients that parameters hold, or that were given in their place.

    Together they are as long as the flat parameters. The second value says whether one is missing:
    then they are one array, with NaN in its place.
    """
    found: list[Any] = []
    missing = False
    for p in flat.parameters:
        node = p.node
        g = None if node is None else node.grad
        if given is not None:
            g = raw(given.get(id(p)))
        if g.__class__ is not np.ndarray:
            if g is ZERO:
                g = np.zeros_like(p.data)
            elif g is None:
                g, missing = np.full_like(p.data, np.nan), True
            elif isinstance(g, RowSparse):
                g = g.dense()
            else:
                g = raw(g)
        found.append(g)
    return [np.concatenate(found, axis=None)] if missing else found, missing


def parts_of(optimizer: Any) -> list[Part]:
    """Return the flat parameters of an optimizer as the parts of its rows."""
    names = parameter_names(optimizer.groups)
    return [
        Part(
            [names[id(p)] for p in flat.parameters],
            flat.bounds,
            [p.shape for p in flat.parameters],
            lambda flat=flat: flat.flat,  # type: ignore[misc]
            lambda flat=flat: flat.slots,  # type: ignore[misc]
            partial(_live_gradients, flat),
        )
        for group in optimizer.groups
        for flat in group.arenas
    ]
