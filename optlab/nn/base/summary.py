"""Summary: the output, parameters and saved bytes of each layer of a network, from one run."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.autograd.graph.saved_memory import Memory, kept_by
from optlab.autograd.tape.grad_mode import enable_grad
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events
from optlab.backend.memory.sizes import in_words
from optlab.backend.random import scope
from optlab.nn.base.buffers import Buffers
from optlab.nn.base.children import named_values
from optlab.nn.base.html import HEADS, summary_page
from optlab.nn.base.parameter import Parameter


@dataclass
class Row:
    """One layer of a summary.

    Attributes
    ----------
    name : str
        Its qualified name; empty for the network itself.
    layer : str
        The name of its class.
    depth : int
        Number of layers around it.
    output : str
        Shape of its last output; empty if it was not called.
    parameters : int
        Elements of its own parameters; a shared one counts where it comes first.
    saved : int
        Bytes saved for the backward pass by its own operations, without those of sublayers.
    calls : int
        Number of calls.
    """

    name: str
    layer: str
    depth: int
    output: str = ""
    parameters: int = 0
    saved: int = 0
    calls: int = 0

    @property
    def label(self) -> str:
        """Its name in a table."""
        own = f"{self.name.rpartition('.')[2]}: {self.layer}" if self.name else self.layer
        return own if self.calls < 2 else f"{own} ({self.calls} calls)"

    def cells(self) -> tuple[str, str, str]:
        """Return the other columns of a table as text, empty for zero."""
        return (
            self.output,
            f"{self.parameters:,}" if self.parameters else "",
            in_words(self.saved) if self.saved else "",
        )


@dataclass
class Summary:
    """The output, parameters and saved bytes of each layer of a network, see `Layer.summary`.

    Attributes
    ----------
    rows : list of Row
        The network itself, then its sublayers.
    parameters : int
        Elements of all parameters.
    frozen : int
        Elements of the parameters that are not trained.
    saved : int
        Bytes saved for the backward pass by the whole run; memory that several operations save
        counts once, and that of parameters and buffers does not count.
    """

    rows: list[Row]
    parameters: int
    frozen: int
    saved: int

    def totals(self) -> tuple[str, str, str, str]:
        """Return the last line of the table."""
        return ("total", "", f"{self.parameters:,}", in_words(self.saved))

    def note(self) -> str:
        """Return how many parameters are not trained; an empty text if all are."""
        if not self.frozen:
            return ""
        return f"{self.frozen:,} of the {self.parameters:,} parameters are not trained."

    def __repr__(self) -> str:
        lines = [
            HEADS, *(("  " * row.depth + row.label, *row.cells()) for row in self.rows),
            self.totals(),
        ]  # fmt: skip
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        rule = "-+-".join("-" * width for width in widths)
        text = [_line(line, widths, i == 0) for i, line in enumerate(lines)]
        text = [text[0], rule, *text[1:-1], rule, text[-1]]
        return "\n".join(text if not self.note() else [*text, self.note()])

    def _repr_html_(self) -> str:
        return summary_page(self)


def _line(cells: tuple[str, ...], widths: list[int], head: bool) -> str:
    left = 4 if head else 2
    parts = [
        cell.ljust(width) if i < left else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return " | ".join(parts).rstrip()


def summarize(
    layer: Any, inputs: tuple[Any, ...], options: dict[str, Any], default: Any
) -> Summary:
    """Run a layer and return its summary; `default` is `Layer.example_input`."""
    given = tuple(layer.example_input(x) if _is_shape(x) else x for x in inputs)
    examples = [new for new, old in zip(given, inputs, strict=True) if new is not old]
    recorder = _Recorder(layer, examples, default)
    with ExitStack() as undo:
        buffers = Buffers("summary()")
        buffers.record(layer)
        undo.callback(buffers.restore)
        for row, part in zip(recorder.rows, recorder.layers, strict=True):
            undo.callback(part.register_forward_pre_hook(recorder.entering(row)).remove)
            undo.callback(
                part.register_forward_post_hook(recorder.leaving(row), prepend=True).remove
            )
        undo.enter_context(events.operation_recorded.subscribed(recorder.recorded))
        undo.enter_context(scope("summary"))
        undo.enter_context(enable_grad())
        layer(*given, **options)
    return recorder.summary()


def _is_shape(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and len(x) > 0 and all(type(n) is int for n in x)


class _Recorder:
    """Records which layer runs and what its operations save."""

    def __init__(self, layer: Any, examples: list[Any], default: Any) -> None:
        self.examples, self.default = examples, default
        found = list(layer.named_sublayers(include_self=True))
        self.layers = [part for _, part in found]
        self.rows = [
            Row(name, type(part).__name__, name.count(".") + 1 if name else 0)
            for name, part in found
        ]
        self.thread = threading.get_ident()
        self.running: list[Row] = []
        self.memory = Memory()
        self.parameters = self.frozen = 0
        counted: set[int] = set()
        for row, part in zip(self.rows, self.layers, strict=True):
            for _, value in named_values(part):
                if isinstance(value, Parameter) and id(value) not in counted:
                    counted.add(id(value))
                    row.parameters += value.size
                    self.frozen += 0 if value.trainable else value.size
            for _, value in [*named_values(part), *part._own_buffers()]:
                if isinstance(value, Tensor):
                    self.memory.add(value.data)
        self.parameters = sum(row.parameters for row in self.rows)

    def entering(self, row: Row) -> Any:
        def enter(layer: Any, inputs: Any) -> Any:
            self.running.append(row)
            if type(layer).example_input is self.default:
                return None
            # A layer with examples of its own gets one in place of the example that reaches it.
            return tuple(
                layer.example_input(x.shape) if any(x is one for one in self.examples) else x
                for x in inputs
            )

        return enter

    def leaving(self, row: Row) -> Any:
        def leave(layer: Any, inputs: Any, output: Any) -> None:
            self.running.pop()
            row.calls += 1
            row.output = _shapes(output)

        return leave

    def recorded(self, node: Any) -> None:
        """Add the bytes that an operation saved to the layer that runs."""
        if threading.get_ident() != self.thread or not self.running:
            return
        self.running[-1].saved += sum(self.memory.add(array) for array in kept_by(node))

    def summary(self) -> Summary:
        for row, part in zip(self.rows, self.layers, strict=True):
            if not row.calls and not any(part.children()):
                row.output = "not called"
        saved = sum(row.saved for row in self.rows)
        return Summary(self.rows, self.parameters, self.frozen, saved)


def _shapes(output: Any) -> str:
    """Return the shapes of an output as text."""
    if isinstance(output, (Tensor, np.ndarray)):
        return str(output.shape)
    if isinstance(output, dict):
        return ", ".join(f"{key}: {_shapes(part)}" for key, part in output.items())
    if isinstance(output, (list, tuple)):
        return ", ".join(map(_shapes, output))
    return type(output).__name__
