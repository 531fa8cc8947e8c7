"""The parameters of an optimizer as flat rows, and what is read of them."""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import ZERO
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import raw
from optlab.optimizer.params.groups import parameter_names
from optlab.optimizer.wrappers import layers_of
from optlab.trace.probes.base import Part


def changes_gradients(optimizer: Any) -> bool:
    """Return whether clipping or decay change the gradient before the rule."""
    return any(
        group.grad_clip is not None or group.regularizer is not None for group in optimizer.groups
    ) or any(getattr(p, "regularizer", None) is not None for p in optimizer.parameters)


def scalar_terms_of(optimizer: Any) -> tuple[str, ...]:
    """Return the terms of an optimizer, if any, that are one number for each parameter."""
    found: tuple[str, ...] = getattr(layers_of(optimizer)[0], "scalar_terms", ())
    return found


class _LiveGradients:
    """Reads the gradients that parameters hold, or that were given in their place.

    A plan writes them into one array, of which parameters hold views: then that is returned.
    """

    def __init__(self, flat: Any) -> None:
        self.flat = flat
        #: The arrays of the last call, and the array in which they lie side by side.
        self.last: list[Any] = []
        self.whole: Any = None

    def __call__(self, given: Any) -> tuple[list[Any], bool]:
        """Return arrays that are together as long as the flat parameters.

        The second value says whether one is missing: then they are one array, with NaN in its
        place.
        """
        found, missing = _pieces(self.flat, given)
        if missing:
            return [np.concatenate(found, axis=None)], True
        if len(found) == len(self.last) and all(map(is_, found, self.last)):
            return [self.whole], False
        whole = _side_by_side(found)
        # Other gradients are let go, so that their memory serves the next ones.
        self.last, self.whole = ([], None) if whole is None else (found, whole)
        return found, False


def _side_by_side(arrays: list[Any]) -> Any:
    """Return the flat array whose successive parts these are; None if there is none."""
    whole = getattr(arrays[0], "base", None)
    if len(arrays) == 1 or whole is None or getattr(arrays[1], "base", None) is not whole:
        return None
    if type(whole) is not np.ndarray or whole.ndim != 1:
        return None
    place = whole.__array_interface__["data"][0]
    for x in arrays:
        if (
            x.base is not whole
            or not x.flags.c_contiguous
            or x.__array_interface__["data"][0] != place
        ):
            return None
        place += x.nbytes
    size = sum(x.size for x in arrays)
    fits = whole.flags.c_contiguous and whole.dtype is arrays[0].dtype and whole.size == size
    return whole if fits else None


def _pieces(flat: Any, given: Any) -> tuple[list[Any], bool]:
    """Return the gradients of flat parameters in their order, and whether one is missing."""
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
    return found, missing


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
            _LiveGradients(flat),
        )
        for group in optimizer.groups
        for flat in group.arenas
    ]
