"""Forward and backward passes of micro-batches through one section, by threads and ranks alike."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from optlab.autograd import pytrees
from optlab.autograd.graph.saved_memory import Memory, kept_by
from optlab.autograd.tape.anomaly_mode import depth as anomaly_depth
from optlab.autograd.tape.backward import gradients_of_leaves
from optlab.autograd.tape.grad_mode import grad_mode
from optlab.autograd.tape.half_precision import halves
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.device import device_named, device_of, moved
from optlab.backend.random import Key
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.wrappers.pipeline.sections import Parcel, Program, packed


class Modes:
    """What the calling thread has switched on, for workers: auto_cast and anomaly mode.

    Passes are recorded whatever the grad mode is; context variables are copied with the context.
    """

    def __init__(self) -> None:
        self.policy = halves.policy
        self.anomaly = anomaly_depth.value

    def enter(self) -> None:
        """Switch the same on in this thread, which ends with the step."""
        halves.policy = self.policy
        anomaly_depth.value = self.anomaly


class MicroBatches:
    """A batch in equal parts.

    Parameters
    ----------
    x, y
        Arrays or Tensors, or containers of them; the first axis is that of the examples.
    count : int

    Raises
    ------
    ValueError, TypeError
        If the number of examples does not divide, or there is none.
    """

    def __init__(self, x: Any, y: Any, count: int) -> None:
        self.count = count
        self._x, self._build_x = pytrees.flatten(x)
        self._y, self._build_y = pytrees.flatten(y)
        self._x = [_checked(part, "x") for part in self._x]
        self._y = [_checked(part, "y") for part in self._y]
        lengths = {len(part) for part in (*self._x, *self._y) if part is not None}
        if len(lengths) != 1:
            raise ValueError(
                "x and y have one number of examples, the length of their first axis; got "
                f"{sorted(lengths) if lengths else 'no array'}."
            )
        (self.examples,) = lengths
        if self.examples == 0 or self.examples % count:
            raise ValueError(
                f"a batch of {self.examples} examples does not divide into {count} equal "
                f"micro-batches. Give a batch of {count * max(1, self.examples // count)}, or "
                "another num_microbatches (DataLoader(..., drop_last=True) leaves a last, smaller "
                "batch out)."
            )

    def inputs(self, i: int) -> Parcel:
        """Return the inputs of a micro-batch."""
        parts = [self._part(x, i) for x in self._x]
        arrays = [part.data if isinstance(part, Tensor) else part for part in parts]
        return Parcel(self._build_x, arrays, [False] * len(arrays))

    def arrays(self) -> list[Any]:
        """Return the arrays of the whole batch, of which micro-batches are views."""
        parts = [part for part in (*self._x, *self._y) if part is not None]
        return [part.data if isinstance(part, Tensor) else part for part in parts]

    def labels(self, i: int, device: str | None) -> Any:
        """Return the labels of a micro-batch."""
        parts = [self._part(y, i) for y in self._y]
        if device is not None:
            parts = [Tensor(moved(y.data, device)) if isinstance(y, Tensor) else y for y in parts]
        return self._build_y(parts)

    def _part(self, values: Any, i: int) -> Any:
        if values is None:
            return None
        size = self.examples // self.count
        return values[i * size : (i + 1) * size]


def _checked(part: Any, name: str) -> Any:
    """Return an array of a batch."""
    if part is None:
        return None
    if isinstance(part, Tensor):
        if part.node is not None:
            raise ValueError(
                f"{name} needs a gradient, which a pipelined step does not give it; give "
                f"{name}.detach()."
            )
        part = Tensor(part.data)
    elif not hasattr(part, "shape"):
        part = np.asarray(part)
    if not part.shape:
        raise ValueError(f"{name} is a batch, whose first axis is that of examples; got a number.")
    return part


class GradientSums:
    """Gradients of leaves, added in the order of the micro-batches whoever computes them."""

    def __init__(self) -> None:
        self.totals: dict[Any, Any] = {}
        self._own: set[Any] = set()
        self._early: dict[int, dict[Any, Any]] = {}
        self._next = 0
        self._lock = threading.Lock()

    def add(self, i: int, gradients: dict[Any, Any]) -> None:
        """Add the gradients of a micro-batch when it is its turn."""
        with self._lock:
            self._early[i] = gradients
            while self._next in self._early:
                for leaf, g in self._early.pop(self._next).items():
                    self._add(leaf, g)
                self._next += 1

    def _add(self, leaf: Any, g: Any) -> None:
        if leaf not in self.totals:
            self.totals[leaf] = g
        elif leaf in self._own:
            self.totals[leaf] += g
        else:
            self.totals[leaf] = self.totals[leaf] + g
            if isinstance(self.totals[leaf], np.ndarray):
                self._own.add(leaf)


class Plan:
    """What all workers of a step know.

    Attributes
    ----------
    program : Program
    criterion : callable
    batches : MicroBatches
    key : Key
        Of the step.
    places : list of str or None
        The device of each section.
    modes : Modes
    """

    def __init__(
        self,
        program: Program,
        criterion: Callable[..., Any],
        batches: MicroBatches,
        key: Key,
        places: Sequence[str | None],
    ) -> None:
        self.program, self.criterion, self.batches = program, criterion, batches
        self.key, self.places = key, list(places)
        self.modes = Modes()


class SectionPasses:
    """The passes of one section in one step."""

    def __init__(self, plan: Plan, section: int, parameters: Iterable[Any]) -> None:
        self.plan, self.section = plan, section
        self.sums = GradientSums()
        #: The loss of each micro-batch, divided by their number; in the last section.
        self.losses: dict[int, Any] = {}
        self._saved: dict[int, tuple[list[Any], list[Any]]] = {}
        self._parameters = list(parameters)
        self._bytes: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether the loss is computed here."""
        return self.section == self.plan.program.count - 1

    @property
    def held(self) -> int:
        """The micro-batches whose saved values are kept for their backward pass."""
        return len(self._saved)

    @property
    def held_bytes(self) -> int:
        """The bytes of these values, without parameters and the batch, which the caller holds."""
        return self.held * (self._bytes or 0)

    def prepare(self) -> None:
        """Prepare the thread that runs passes."""
        self.plan.modes.enter()
        place = self.plan.places[self.section]
        if place is not None:
            device_named(place).ready()

    def forward(self, i: int, arriving: Parcel, carried: Any) -> tuple[Parcel | None, Any]:
        """Run a micro-batch forward; return what goes on, or None from the last section."""
        plan, place = self.plan, self.plan.places[self.section]
        with grad_mode(True):
            value, leaves = arriving.opened(place)
            output, carried = plan.program.run(
                self.section, carried, value, plan.key.fold("micro-batch", i)
            )
            if not self.is_last:
                parcel, nodes = packed(output)
                del output, value
                self._saved[i] = (nodes, leaves)
                self._measure(nodes)
                return parcel, carried
            loss = plan.criterion(output, plan.batches.labels(i, place))
            del output, value
            scaled = _checked_loss(loss) / plan.batches.count
        self.losses[i] = scaled.data
        self._saved[i] = ([scaled.node], leaves)
        self._measure([scaled.node])
        return None, None

    def backward(self, i: int, gradients: list[Any] | None) -> list[Any]:
        """Run a micro-batch backward; return the gradients of what had arrived."""
        nodes, leaves = self._saved[i]
        place = self.plan.places[self.section]
        if gradients is None:
            gradients = [np.ones_like(self.losses[i])]
        elif place is not None:
            gradients = [g if g is None else moved(g, place) for g in gradients]
        starts = [(node, g) for node, g in zip(nodes, gradients, strict=True) if g is not None]
        del gradients
        found = gradients_of_leaves(starts)
        del self._saved[i]
        back = [found.pop(leaf, None) for leaf in leaves]
        self.sums.add(i, found)
        return back

    def _measure(self, nodes: list[Any]) -> None:
        """Measure what a micro-batch saves, once: all are of one size."""
        if self._bytes is not None:
            return
        memory = Memory()
        for p in self._parameters:
            memory.add(p.data)
        for array in self.plan.batches.arrays():
            memory.add(array)
        total, stack = 0, list(nodes)
        seen = set(stack)
        while stack:
            node = stack.pop()
            total += sum(memory.add(array) for array in kept_by(node))
            for edge in node.edges if node.order else ():
                if edge is not None and edge not in seen:
                    seen.add(edge)
                    stack.append(edge)
        self._bytes = total


def check_places(parameters: Iterable[Any], place: str | None, section: int) -> None:
    """Raise if a parameter of a section is on another device.

    Raises
    ------
    ValueError
        It names the parameter, and what to write.
    """
    for p in parameters:
        if place is not None and device_of(p.data) != place:
            raise ValueError(
                f"{label_of(p)} of section {section} is on {device_of(p.data)}, but place_list "
                f"puts that section on {place}: move its Layers, layer.to({place!r}), before the "
                "optimizer is made."
            )


def _checked_loss(loss: Any) -> Any:
    if not isinstance(loss, Tensor) or loss.size != 1:
        what = f"a Tensor of shape {loss.shape}" if isinstance(loss, Tensor) else repr(loss)
        raise ValueError(f"the criterion returns the loss, one number; got {what}.")
    if loss.node is None:
        raise ValueError(
            "the loss needs no gradient: no parameter of the last section, nor what arrived "
            "there, does."
        )
    return loss
