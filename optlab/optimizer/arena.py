"""Arenas: the parameters of one group, one dtype, lying side by side in one flat array.

Each parameter becomes a view of its arena, so that an elementwise rule updates all of them in one
pass, and the parameters see it at once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.tape import ZERO
from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import frozen
from optlab.backend.device import place_of
from optlab.nn.parameter import Parameter


class Arena:
    """Parameters that lie side by side, with their slots and step counts.

    Attributes
    ----------
    parameters : list of Tensor
    flat : array
        All their elements; `read_only` is the same memory.
    bounds : list of int
        Parameter i lies in ``flat[bounds[i]:bounds[i + 1]]``.
    views : list of array
        The arrays that the parameters hold while nobody else has adopted them.
    t : list of int
        How many updates each parameter has had.
    slots : dict of str to array
        The optimizer's memory, each slot flat like the parameters.
    """

    __slots__ = ("bounds", "flat", "parameters", "read_only", "slots", "t", "views")

    def __init__(self, parameters: Sequence[Any], slots: dict[str, float]) -> None:
        self.parameters = list(parameters)
        self.bounds = np.cumsum([0, *(p.size for p in self.parameters)]).tolist()
        self.t = [0] * len(self.parameters)
        self.flat: Any = None
        self.views: list[Any] = [p.data for p in self.parameters]
        self.adopt()
        self.slots = {name: np.full_like(self.flat, start) for name, start in slots.items()}
        for array in self.slots.values():
            frozen(array)

    def __setstate__(self, state: Any) -> None:
        """Take up a copied or unpickled state, whose parameters are no longer views of `flat`."""
        for name, value in state[1].items():
            setattr(self, name, value)
        self.views = [view.copy() for view in self.views]

    def adopt(self) -> None:
        """Lay the parameters' present values side by side, and make each a view of its place.

        Raises
        ------
        ValueError
            If a parameter has got an array of another shape, dtype or device since the optimizer
            was made. Nothing is changed then.
        """
        for p, view in zip(self.parameters, self.views, strict=True):
            if p.data.shape != view.shape or p.data.dtype != view.dtype:
                raise ValueError(
                    f"{getattr(p, 'name', None) or 'a parameter'} was {view.dtype} of shape "
                    f"{view.shape} when the optimizer was made, and is now {p.data.dtype} of shape "
                    f"{p.data.shape}. Make a new optimizer for it."
                )
            if (here := place_of(p.data)) != (before := place_of(view)):
                raise ValueError(
                    f"{getattr(p, 'name', None) or 'a parameter'} was on {before} when the "
                    f"optimizer was made, and is now on {here}. Make a new optimizer for it, after "
                    "the model was moved."
                )
        first = self.views[0]
        flat = np.empty_like(first, shape=(self.bounds[-1],))
        views = []
        for i, p in enumerate(self.parameters):
            view = flat[self.bounds[i] : self.bounds[i + 1]].reshape(p.data.shape)
            view[...] = p.data
            views.append(view)
        for p, view in zip(self.parameters, views, strict=True):
            p.data = view
        self.flat, self.views = flat, views
        # What rules are given: one that wrote into it would change parameters behind the engine.
        self.read_only = frozen(flat.view())

    def holds_all(self) -> bool:
        """Say whether every parameter is still the view that this arena gave it.

        Another optimizer that adopted one, or a new array put in its place, takes it away.
        """
        return all(map(operator.is_, [p.data for p in self.parameters], self.views))

    def gradients(self) -> list[Any]:
        """Give the gradient of each parameter as an array, None where there is none.

        Raises
        ------
        ValueError
            If one has another shape than its parameter.
        """
        found = []
        for p in self.parameters:
            node = p.node
            g = None if node is None else node.grad
            if g is not None:
                if g is ZERO:
                    g = node.gradient(p.data)
                elif isinstance(g, Tensor):
                    g = g.data
                if g.shape != p.data.shape:
                    raise ValueError(
                        f"the gradient of {getattr(p, 'name', None) or 'a parameter'} has shape "
                        f"{g.shape}, the parameter {p.data.shape}. Nothing was changed."
                    )
            found.append(g)
        return found

    def runs(
        self, gradients: list[Any], regularizer: Any, together: bool
    ) -> list[tuple[int, int, tuple[int, float, Any]]]:
        """Give the runs of neighbouring parameters that one pass of a rule may update.

        Parameters
        ----------
        gradients : list
            None where a parameter is to be skipped.
        regularizer
            For parameters that have none of their own.
        together : bool
            False puts every parameter in a run of its own.

        Returns
        -------
        list of (first, last, (t, rate multiplier, regularizer))
            Parameters `first` to `last` - 1.
        """
        keys: list[tuple[int, float, Any] | None] = []
        for p, t, g in zip(self.parameters, self.t, gradients, strict=True):
            if g is None:
                keys.append(None)
            elif isinstance(p, Parameter):
                keys.append((t, p.learning_rate, p.regularizer or regularizer))
            else:
                keys.append((t, 1.0, regularizer))
        n = len(keys)
        if together and keys.count(keys[0]) == n:
            return [] if keys[0] is None else [(0, n, keys[0])]
        found: list[tuple[int, int, Any]] = []
        for i, key in enumerate(keys):
            if key is None:
                continue
            if together and found and found[-1][1] == i and found[-1][2] == key:
                found[-1] = (found[-1][0], i + 1, key)
            else:
                found.append((i, i + 1, key))
        return found
