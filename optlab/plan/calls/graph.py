"""Results of a captured call that need a gradient: their backward pass is a second program.

The forward program hands out what the backward program reads. The results are Tensors of one node,
whose rule runs the backward program on the gradients that arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, Recipe
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.multi_output import outputs_of
from optlab.autograd.tape.nodes import Node
from optlab.plan.calls.bound_program import Binding
from optlab.plan.calls.places import arrays_at, places_in
from optlab.plan.calls.program import Program
from optlab.plan.calls.recording.recorded_pass import recorded_pass
from optlab.plan.calls.recording.recorder import Recorder
from optlab.plan.plan import Place


class LiveGraph:
    """The backward pass of the results of a call.

    Attributes
    ----------
    places : list of Place
        Of the results that need a gradient.
    leaves : list of Leaf
        Where gradients end.
    """

    def __init__(self, recorder: Recorder, tensor: Any) -> None:
        self.places = [recorder.place_of(tensor.data, tensor)]
        forward = len(recorder.entries)
        first = np.ones_like(tensor.data)
        self.seeds: list[Place] = [recorder.know(first)]
        node = tensor.node
        ends = recorded_pass(recorder, node, first, {}, [], False, True, 0, None, None)
        self.leaves = list(ends)
        self.gradients = tuple([recorder.template(g) for g in ends.values()])
        self.entries = recorder.entries[forward:]
        del recorder.entries[forward:]
        made = {place for entry in self.entries for place in entry.results}
        read = places_in([x for e in self.entries for x in (*e.arguments, *e.keywords.values())])
        read += places_in(self.gradients)
        own = made | set(self.seeds) | set(recorder.constants)
        #: What the backward program reads of the forward program.
        self.saved = [p for p in dict.fromkeys(read) if p not in own]
        #: Of these, arguments, which the caller may write to.
        self.from_caller: set[Place] = set()
        self.given = arrays_at(recorder, [*self.seeds, *self.saved])
        self.sources = {p: t for p, t in recorder.sources.items() if p in self.saved}

    def build(self, constants: dict[Place, Any]) -> None:
        """Make the program and the operation of the results."""
        inputs = [*self.seeds, *self.saved]
        self.program = Program(inputs, self.entries, constants, self.gradients, self.given, False)
        Binding(self.program)
        position = {leaf: i for i, leaf in enumerate(self.leaves)}
        names = [f"leaf{i}" for i in range(len(self.leaves))]
        self.operation = Operation(
            "a captured call", _no_forward, [None] * len(names), names, [], several=True,
            joint=lambda g: g,
        )  # fmt: skip
        self.recipe = Recipe(self.operation, (1 << len(names)) - 1)
        self.recipe.joint = self._rule
        self.recipe.sources = (len(names) + 1,)  # what is saved has no node
        self.recipe.saved_inputs = tuple(
            position[t.node] for t in self.sources.values() if t.node in position
        )

    def forget(self) -> None:
        """Let go of what only the recording needed."""
        self.entries, self.sources, self.given = [], {}, {}

    def _rule(self, g: Any, saved: Any, static: Any) -> Any:
        (saved,) = saved
        if isinstance(next(iter(g.arrived.values())), TensorBase):
            raise RuntimeError(
                "backward(create_graph=True) through the result of a captured call: the plan has "
                "no graph that could be differentiated again. Call the function without "
                "ol.capture, or compute the first derivative inside of it (ol.grad)."
            )
        return self.program.run(*[g[i] for i in range(len(self.seeds))], *saved)

    def attach(self, values: tuple[Any, ...], saved: tuple[Any, ...]) -> Any:
        """Return results as Tensors that need a gradient."""
        node = Node(
            self.operation, tuple(self.leaves), (saved,), self.recipe, {}, (), values[0].dtype
        )
        return outputs_of(node, values)


class Live:
    """A result that needs a gradient, in the template of an `Output`."""

    def __init__(self, number: int) -> None:
        self.number = number

    def holds_places(self) -> list[Place]:
        """Return none: the graph has them."""
        return []

    def source(self, expression: Callable[[Any], str], constant: Callable[[Any], str]) -> str:
        """Return the source that takes it."""
        return f"live[{self.number}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Live) and other.number == self.number

    __hash__ = None  # type: ignore[assignment]


class LiveOutput:
    """The whole result, some of it with graphs."""

    def __init__(self, output: Any, graphs: list[LiveGraph]) -> None:
        self.output, self.graphs = output, graphs
        self.given: dict[Place, Any] = output.given

    def holds_places(self) -> list[Place]:
        """Return what the result and the backward programs read."""
        graphs = [place for one in self.graphs for place in (*one.places, *one.saved)]
        return places_in([self.output, *graphs])

    def source(self, expression: Callable[[Any], str], constant: Callable[[Any], str]) -> str:
        """Return the source of the result."""
        made = []
        for one in self.graphs:
            values = expression(tuple(one.places))
            kept = [
                f"{constant(_copied)}({expression(p)})" if p in one.from_caller else expression(p)
                for p in one.saved
            ]
            saved = f"({', '.join(kept)},)" if kept else "()"
            made.append(f"{constant(one.attach)}({values}, {saved})[0]")
        return f"(lambda live: {expression(self.output)})([{', '.join(made)}])"


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _no_forward(*_: Any) -> Any:
    raise RuntimeError("the forward pass of a captured call runs by its plan")
