"""The result of a captured call: what a plan hands out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.tape.backward import toposort
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.nodes import Leaf
from optlab.plan.calls.entries import FreedTensor, MadeTensor, OfTensor
from optlab.plan.calls.graph import Live, LiveGraph, LiveOutput
from optlab.plan.calls.places import arrays_at, places_in
from optlab.plan.calls.recording.recorder import Recorder
from optlab.plan.plan import Place


class Output:
    """The result of a recorded call.

    Attributes
    ----------
    plain
        What the call returned, with plain arrays.
    template
        The same with places.
    inputs : list of Place
        Of the arrays among the arguments.
    """

    def __init__(self, recorder: Recorder, inputs: list[Place], result: Any) -> None:
        self.recorder = recorder
        self.inputs = inputs
        #: What the inputs were: results may be views of them.
        self.given = arrays_at(recorder, inputs)
        recorder.ended_at = len(recorder.entries)
        recorder.check_written()
        recorder.check_graphs()
        self.plain = self._plain(result)
        self.live: list[Any] = []
        self._with_graphs: LiveOutput | None = None
        self.template = self._template(result)
        self.graphs: list[LiveGraph] = []
        for t in () if recorder.dead else self.live:
            try:
                self.graphs.append(LiveGraph(recorder, t))
            except RuntimeError as error:
                recorder.refuse(
                    f"a result with a graph that has no backward pass any more ({error})"
                )
                return
            self.graphs[-1].from_caller = set(inputs)
        self._with_graphs = LiveOutput(self, self.graphs) if self.graphs else None

    @property
    def whole(self) -> Any:
        """The result with the graphs of Tensors that a caller may go on with."""
        return self._with_graphs or self

    def match(self, other: Output) -> None:
        """Make Tensors that each of two runs has made of the same values constants of the plan."""
        self.template, other.template = _matched(self.template, other.template)

    def forget(self) -> None:
        """Let go of what only the recording needed."""
        self.recorder = self.plain = None  # type: ignore[assignment]
        self.live, self.given = [], {}
        for graph in self.graphs:
            graph.forget()

    def holds_places(self) -> list[Place]:
        """Return the places in the result."""
        return places_in([self.template])

    def source(self, expression: Callable[[Any], str], constant: Callable[[Any], str]) -> str:
        """Return the source of the result."""
        return expression(self.template)

    def _plain(self, x: Any) -> Any:
        if getattr(x, "is_traced", False):
            return x.value
        if isinstance(x, TensorBase) and getattr(x.data, "is_traced", False):
            x.data = x.data.value
            return x
        if type(x) in (tuple, list):
            return type(x)([self._plain(part) for part in x])
        if isinstance(x, tuple) and hasattr(x, "_make"):
            return type(x)._make([self._plain(part) for part in x])
        if type(x) is dict:
            return {name: self._plain(part) for name, part in x.items()}
        return x

    def _template(self, x: Any) -> Any:
        if isinstance(x, TensorBase):
            node = x.node
            known = self.recorder.known(x.data)
            if x.data.dtype.hasobject:
                self.recorder.place_of(x.data)  # an array of numbers that change
            if isinstance(node, Leaf) or (node is None and known is None):
                return x
            if node is None:
                return OfTensor(known)
            if all(one.saved is not None for one in toposort(node) if one.order):
                for i, other in enumerate(self.live):
                    if other is x:
                        return Live(i)
                self.live.append(x)
                return Live(len(self.live) - 1)
            if known is None:
                return x
            return FreedTensor(known, node)
        if type(x) in (tuple, list):
            return type(x)([self._template(part) for part in x])
        if isinstance(x, tuple) and hasattr(x, "_make"):
            return type(x)._make([self._template(part) for part in x])
        if type(x) is dict:
            return {name: self._template(part) for name, part in x.items()}
        if isinstance(x, (np.ndarray, np.generic)):
            place = self.recorder.place_of(x)
            if place in self.recorder.constants and id(x) not in self.recorder.outside:
                # Made by the call: the caller may write to it.
                (place,) = self.recorder.add("operation", "copy", np.array, (place,), {}, x.copy())
            return place
        return x.place if getattr(x, "is_traced", False) else x


def _matched(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two templates with constants in place of equal Tensors that both runs have made."""
    one, two = _made(a), _made(b)
    if one is not None and two is not None:
        return (one, two) if a is not b and one == two else (a, b)
    if type(a) is type(b) and isinstance(a, (tuple, list)) and len(a) == len(b):
        pairs = [_matched(x, y) for x, y in zip(a, b, strict=True)]
        build = getattr(type(a), "_make", type(a))
        return build([x for x, _ in pairs]), build([y for _, y in pairs])
    if type(a) is type(b) is dict and a.keys() == b.keys():
        found = {key: _matched(a[key], b[key]) for key in a}
        return {key: x for key, (x, _) in found.items()}, {key: y for key, (_, y) in found.items()}
    return a, b


def _made(x: Any) -> MadeTensor | None:
    if isinstance(x, TensorBase) and x.node is None and isinstance(x.data, np.ndarray):
        return MadeTensor(x.data)
    return x if isinstance(x, MadeTensor) else None
