"""Flat parameter storage: the parameters of one group and dtype as views of one 1-D array.

An elementwise rule then updates all of them in one call, and writes through to the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape import versions
from optlab.autograd.tape.nodes import ZERO
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.conversions import refuse_unrecorded
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import readonly
from optlab.backend.device import device_of
from optlab.nn.base.parameter import Parameter
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.rule.namespaces import HyperParameters


class ParameterSettings(NamedTuple):
    """The hyper-parameters of one parameter, and the factor of its learning rate."""

    h: HyperParameters
    multiplier: float


class Span(NamedTuple):
    """Neighboring flat parameters, `first` to `last` - 1, that one call of a rule may update."""

    first: int
    last: int
    t: int
    multiplier: float
    regularizer: Any
    h: HyperParameters


#: `Span(...)` takes 0.35 us, this 0.2, of the 9 us of a whole step of two scalars.
_new_tuple = tuple.__new__
_array = np.ndarray
_data_of = attrgetter("data")


class FlatParameters:
    """Parameters stored contiguously, with their slots and step counts.

    Attributes
    ----------
    parameters : list of Tensor
    places : list of int
        The position of each parameter in its group.
    settings : list of ParameterSettings
        The settings of each parameter.
    flat : array
        The elements of all parameters.
    master : array or None
        A float32 copy of `flat`, which the rule updates (``multi_precision=True``).
    bounds : list of int
        Parameter i is ``flat[bounds[i]:bounds[i + 1]]``.
    views : list of array
        The views of `flat` that the parameters hold, unless another optimizer adopted them.
    t : list of int
        The number of updates of each parameter.
    slots : dict of str to array
        The optimizer state, each slot as flat as the parameters.
    """

    __slots__ = (
        "bounds", "flat", "master", "parameters", "places", "read_only", "settings", "slots",
        "slots_writable", "t", "uniform", "views", "written_at",
    )  # fmt: skip

    holds_arrays = True  # for memory ledgers

    def __init__(
        self,
        parameters: Sequence[Any],
        slots: dict[str, float],
        settings: list[ParameterSettings],
        multi_precision: bool = False,
        places: Sequence[int] | None = None,
    ) -> None:
        self.parameters = list(parameters)
        self.places = list(range(len(parameters)) if places is None else places)
        self.settings = settings
        #: Whether all have the same settings, but for rate and regularizer of a `Parameter`.
        self.uniform = all(isinstance(p, Parameter) for p in self.parameters) and all(
            one is settings[0] for one in settings
        )
        self.bounds = np.cumsum([0, *(p.size for p in self.parameters)]).tolist()
        self.t = [0] * len(self.parameters)
        self.flat: Any = None
        self.master: Any = None
        self.read_only: Any = None
        self.written_at = 0
        self.views: list[Any] = [p.data for p in self.parameters]
        self.adopt()
        flat: Any = self.flat
        if multi_precision and flat.dtype.itemsize < 4:
            self.master = flat.astype(np.float32)
            self.written_at = versions.times.last_write
        self._refresh_read_only()
        # In 16 bits the squares of small gradients underflow to zero, and rules divide by them.
        dtype = np.float32 if self.values.dtype.itemsize < 4 else None
        self.slots = {
            name: np.full_like(self.values, start, dtype=dtype) for name, start in slots.items()
        }
        for array in self.slots.values():
            readonly(array)
        #: Whether the slots are writable, so that a rule has to get read-only views of them.
        self.slots_writable = False

    @property
    def values(self) -> Any:
        """The array that a rule updates: `flat`, or the float32 copy."""
        return self.flat if self.master is None else self.master

    def _refresh_read_only(self) -> None:
        # Passed to rules: one that writes into its arguments then raises.
        self.read_only = readonly(self.values.view())

    def __setstate__(self, state: Any) -> None:
        """Restore a copied or unpickled state, whose parameters are no longer views of `flat`."""
        for name, value in state[1].items():
            setattr(self, name, value)
        self.views = [view.copy() for view in self.views]

    def adopt(self) -> None:
        """Copy the parameters into one new array, and make each a view of its part.

        Raises
        ------
        ValueError
            If a parameter has changed its shape, dtype or device since the optimizer was made.
            Nothing is changed then.
        """
        for p, view in zip(self.parameters, self.views, strict=True):
            if p.data.shape != view.shape or p.data.dtype != view.dtype:
                raise ValueError(
                    f"{label_of(p)} was {view.dtype} of shape "
                    f"{view.shape} when the optimizer was made, and is now {p.data.dtype} of shape "
                    f"{p.data.shape}. Make a new optimizer for it."
                )
            if (here := device_of(p.data)) != (before := device_of(view)):
                raise ValueError(
                    f"{label_of(p)} was on {before} when the "
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
        self.flat = flat
        self.written_at = -1  # the float32 copy has yet to take over all values
        self._refresh_read_only()
        for p, view in zip(self.parameters, views, strict=True):
            p.data = view
        self.views = views  # last: after an interrupt before it, `make_ready` adopts again

    def make_ready(self) -> None:
        """Adopt the parameters again if one is no longer a view, and update the float32 copy.

        Raises
        ------
        ValueError
            As `adopt`.
        """
        # Another optimizer may have adopted a parameter, or its array may have been replaced.
        if not all(map(is_, map(_data_of, self.parameters), self.views)):
            self.adopt()
        if self.master is not None:
            self._update_master()

    def _update_master(self) -> None:
        """Copy what was written to the parameters since the last step into the float32 copy."""
        for i, p in enumerate(self.parameters):
            if p.node is not None and p.node.overwritten_at > self.written_at:
                place = slice(self.bounds[i], self.bounds[i + 1])
                here, copy = self.flat[place], self.master[place]
                # Elements that still round to the value of the parameter keep their lower bits.
                copy[...] = np.where(copy.astype(here.dtype) == here, copy, here)
        self.written_at = versions.times.last_write

    def make_slots_writable(self, copy: bool = False) -> None:
        """Replace read-only slots, which listeners or a state may hold, by writable copies."""
        self.slots_writable = True
        # CuPy's flags have no `writeable`.
        fixed = [
            name
            for name, array in self.slots.items()
            if copy or not getattr(getattr(array, "flags", None), "writeable", True)
        ]
        if fixed:  # otherwise the same dict stays: bound steps know the slots by it
            self.slots = {
                name: array.copy() if name in fixed else array for name, array in self.slots.items()
            }

    def replace_slots(self, slots: dict[str, Any]) -> None:
        """Replace all slots, in their order, by new read-only arrays."""
        if [*slots] != [*self.slots]:
            slots = {name: slots[name] for name in self.slots}
        self.slots, self.slots_writable = slots, False

    def write(self, place: Any, values: Any) -> None:
        """Write new values to some elements, and to the float32 copy if there is one."""
        if self.master is None:
            self.flat[place] = values
            return
        self.master[place] = values
        with np.errstate(over="ignore"):  # reported before anything was written
            self.flat[place] = values

    def mark_written(self, first: int, last: int, writer: str) -> None:
        """Mark parameters `first` to `last` - 1 as overwritten, for the checks of the tape."""
        # `Leaf.overwritten` for all of them, with one time.
        now = versions.times.last_write = next(versions.clock)
        self.written_at = now
        for p in self.parameters[first:last]:
            node = p.node
            if node is not None:
                node.overwritten_at, node.writer = now, writer

    def gradients(self, given: dict[int, Any] | None = None) -> list[Any]:
        """Return the gradient of each parameter as an array, None where there is none.

        Parameters
        ----------
        given : dict of int to array, optional
            Gradients by the parameters' identities, in place of those that they hold.

        Raises
        ------
        ValueError, TypeError
            If one has another shape, dtype or device than its parameter.
        """
        found: list[Any] = []
        for p in self.parameters:
            if given is None:
                node = p.node
                g = None if node is None else node.grad
                if g.__class__ is _array:
                    here = p.data
                    if g.shape == here.shape and g.dtype is here.dtype:  # the usual case
                        found.append(g)
                        continue
                elif g is ZERO:
                    g = node.gradient(p.data)
                elif isinstance(g, Tensor):
                    if g.node is not None:
                        refuse_unrecorded(g, *gradient_refusal(p))
                    g = g.data
            else:
                g = given.get(id(p))
            if g is not None and (
                given is not None or g.shape != p.data.shape or g.dtype is not p.data.dtype
            ):
                check_gradient(p, g, p.data.dtype if self.master is None else self.master.dtype)
            found.append(g)
        return found

    def spans(self, gradients: list[Any], regularizer: Any, together: bool) -> list[Span]:
        """Return the spans of neighboring parameters that one call of a rule may update.

        Parameters
        ----------
        gradients : list
            None for a parameter to skip.
        regularizer
            For parameters that have none of their own.
        together : bool
            False puts every parameter into a span of its own.
        """
        n, t = len(gradients), self.t[0]
        if (
            together
            and self.uniform
            and self.t.count(t) == n
            and NoneType not in map(type, gradients)
        ):  # nearly every step; this takes a sixth of the time of the general case
            first = self.parameters[0]
            rate, own = first._learning_rate, first._regularizer
            for p in self.parameters:
                if p._regularizer is not own or p._learning_rate != rate:
                    break
            else:
                h, ratio = self.settings[0]
                return [_new_tuple(Span, (0, n, t + 1, ratio * rate, own or regularizer, h))]
        keys: list[Any] = []
        for p, t, g, (h, ratio) in zip(
            self.parameters, self.t, gradients, self.settings, strict=True
        ):
            if g is None:
                keys.append(None)
            elif isinstance(p, Parameter):
                keys.append((t + 1, ratio * p.learning_rate, p._regularizer or regularizer, h))
            else:
                keys.append((t + 1, ratio, regularizer, h))
        if together and keys.count(keys[0]) == n:
            return [] if keys[0] is None else [Span(0, n, *keys[0])]
        found: list[Span] = []
        for i, key in enumerate(keys):
            if key is None:
                continue
            if together and found and found[-1].last == i and found[-1][2:] == key:
                found[-1] = found[-1]._replace(last=i + 1)
            else:
                found.append(Span(i, i + 1, *key))
        return found


def gradient_refusal(p: Any) -> tuple[str, str]:
    """Return what is refused, and what to write, for a gradient that itself needs a gradient."""
    name = label_of(p)
    instead = (
        "optimizer.functional_step(parameters, gradients, state), whose results can be "
        "differentiated; or give the gradient's .detach() where no gradient is wanted"
    )
    return f"a step with the gradient of {name}, which itself needs a gradient,", instead


def check_gradient(p: Any, g: Any, wide: Any) -> None:
    """Raise if a gradient does not fit its parameter; `wide` is a dtype that it may have, too."""
    name = label_of(p)
    if not hasattr(g, "shape") or not hasattr(g, "dtype"):
        raise TypeError(f"the gradient of {name} must be an array; got {type(g).__name__}.")
    if g.shape != p.data.shape:
        raise ValueError(
            f"the gradient of {name} has shape {g.shape}, the parameter {p.data.shape}. Nothing "
            "was changed."
        )
    if g.dtype not in (p.data.dtype, wide):
        raise TypeError(
            f"the gradient of {name} is {g.dtype}, the parameter {p.data.dtype}; write "
            f"g.astype({str(p.data.dtype)!r}). Nothing was changed."
        )
    values = g.values if isinstance(g, RowSparse) else g
    if (here := device_of(values)) != (there := device_of(p.data)):
        raise ValueError(
            f"the gradient of {name} is on {here}, the parameter on {there}; move one of them with "
            ".to(device). Nothing was changed."
        )
