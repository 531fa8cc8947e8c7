"""Memory tracker: reports to a ledger which role every array of a training step has.

=============  =====================================================================================
parameter      values of a Tensor that accumulates a gradient, or of a `Parameter`
gradient       gradient accumulated by such a Tensor
slot           state of an optimizer
data           arrays from outside: batches, labels, buffers of layers
saved          arrays that only operations keep, for backward
recomputed     saved arrays that were dropped and computed again
temporary      everything else: results passed to the next operation, gradients on their way back,
               and working memory of an operation
=============  =====================================================================================
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from optlab.autograd.graph.saved_memory import kept_by
from optlab.autograd.tape.grad_mode import recomputing
from optlab.autograd.tape.multi_output import OutputGradients
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events
from optlab.backend.memory.ledger import Entry, Ledger


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.passes: list[tuple[Any, Any]] = []
        #: Leaves whose gradient runs through operations before it is accumulated.
        self.collecting: list[Leaf] = []


class MemoryTracker:
    """Listener that reports the engine's work to a ledger.

    Parameters
    ----------
    ledger : Ledger
    path : callable, optional
        Returns the name of the layer that runs.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w, ledger = ol.to_tensor(np.ones(1000), requires_grad=True), Ledger()
    >>> with MemoryTracker(ledger):
    ...     np.sum(np.exp(w)).backward()
    >>> [(row.name, row.phase) for row in ledger.rows]
    [('start', ''), ('exp', 'forward'), ('sum', 'forward'), ('start', 'backward'),
    ('sum', 'backward'), ('exp', 'backward'), ('gradients', 'backward'), ('end', '')]
    """

    def __init__(self, ledger: Ledger, path: Any = None) -> None:
        self.ledger = ledger
        self.path = path or str
        self.leaves: dict[Leaf, None] = {}
        #: The layer that ran when a node was recorded.
        self.paths: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._local = _PerThread()
        self.undo = ExitStack()

    @property
    def passes(self) -> list[tuple[Any, Any]]:
        """The nested backward passes of this thread.

        Each as its pending gradients, and the node whose rules run until its row is written.
        """
        return self._local.passes

    def __enter__(self) -> MemoryTracker:
        self.ledger.open()
        for event, listener in (
            (events.operation_starts, self.operation_starts),
            (events.operation_ran, self.operation_ran),
            (events.operation_recorded, self.operation_recorded),
            (events.values_wanted, self.values_wanted),
            (events.rule_starts, self.rule_starts),
            (events.leaf_collects, self.leaf_collects),
            (events.backward_pass_ended, self.backward_pass_ended),
            (events.operation_recomputed, self.operation_recomputed),
            (events.backward_finished, self.backward_finished),
            (events.gradients_cleared, self.gradients_cleared),
            (events.array_kept, self.array_kept),
            (events.input_stored, self.input_stored),
        ):
            self.undo.enter_context(event.subscribed(listener))
        self.undo.enter_context(_new_tensors_reported(self.tensor_made))
        slow_path.enter()
        return self

    def __exit__(self, *error: object) -> None:
        slow_path.leave()
        self.undo.close()
        with self.ledger.paused():
            self.track_gradients()
        self.passes.clear()
        self._local.collecting.clear()
        self.leaves.clear()
        self.ledger.close()

    # Forward ------------------------------------------------------------------------------------

    def operation_starts(self, name: str, inputs: Iterable[Any]) -> None:
        """Track the inputs of an operation."""
        with self.ledger.paused():
            self.finish_rule()
            self.track_inputs(inputs)

    def track_inputs(self, inputs: Iterable[Any]) -> None:
        """Track arrays from outside, and parameters among them."""
        ledger = self.ledger
        with ledger.paused():
            for x in inputs:
                if not isinstance(x, Tensor):
                    for array in arrays_of(x):
                        ledger.hold(array, "data", "input")
                    continue
                node = x.node
                if isinstance(node, Leaf):
                    self.track_leaf(node, x.data)
                else:
                    frozen = node is None and hasattr(type(x), "trainable")
                    label = getattr(x, "structural_name", None) if frozen else None
                    role = "parameter" if frozen else "data"
                    ledger.hold(x.data, role, label or ("parameter" if frozen else "input"))

    def track_leaf(self, leaf: Leaf, values: Any) -> None:
        """Track a Tensor that accumulates a gradient."""
        self.leaves[leaf] = None
        self.ledger.hold(values, "parameter", leaf.name or "parameter")
        for array in arrays_of(leaf.grad):
            self.ledger.hold(array, "gradient", leaf.name or "parameter")

    def tensor_made(self, values: Any) -> None:
        """Track a Tensor that is not the result of an operation, such as one drawn at random."""
        phase = self.phase
        with self.ledger.paused():
            role = "data" if phase == "forward" else "temporary"
            self.hold_all(values, role, "Tensor", phase, self.path())

    def operation_ran(self, name: str, inputs: Iterable[Any], outputs: Any) -> None:
        """Track the outputs of an operation."""
        ledger, phase, path = self.ledger, self.phase, self.path()
        with ledger.paused():
            for array in arrays_of(outputs):
                ledger.hold(array, "temporary", name, phase, path)
                if phase == "recompute":
                    ledger.recomputed[1] += array.nbytes
            ledger.recomputed[0] += phase == "recompute"
            ledger.event(name, phase, path)

    def operation_recomputed(self, result: Any, outputs: Any) -> None:
        """Track the outputs of an operation on the tape that ran again."""
        ledger, name = self.ledger, str(result.name)
        with ledger.paused():
            for array in arrays_of(outputs):
                ledger.hold(array, "recomputed", name, "recompute")
                ledger.recomputed[1] += array.nbytes
            ledger.recomputed[0] += 1
            ledger.event(name, "recompute")

    @property
    def phase(self) -> str:
        """The current phase of the step."""
        return "recompute" if recomputing.depth else "backward" if self.passes else "forward"

    def operation_recorded(self, node: Any) -> None:
        """Track the arrays that a node keeps for backward."""
        name, path = _name(node), self.path()
        with self.ledger.paused():
            if path:
                self.paths[node] = path
            if name == "recompute_sequential":  # its stored inputs change while it is alive
                return
            held = [
                self.ledger.hold(array, "temporary", name, self.phase, path)
                for array in kept_by(node)
            ]
            self.ledger.keeps(node, held, "recomputed" if recomputing.depth else "saved")

    def input_stored(self, keeper: Any, arrays: Iterable[Any]) -> None:
        """Track the input of a layer that a schedule stores until `keeper` is freed."""
        with self.ledger.paused():
            held = self.hold_all(tuple(arrays), "data", "input", self.phase, self.path())
            again = self.passes or recomputing.depth
            self.ledger.keeps(keeper, held, "recomputed" if again else "saved")

    # Backward -----------------------------------------------------------------------------------

    def values_wanted(self, node: Any, g: Any, pending: Any) -> None:
        """Write the row of the previous rules, since operations may run again now."""
        with self.ledger.paused():
            if self.passes and self.passes[-1][0] is pending:
                self.finish_rule(g)
            self.hold_all(g, "temporary", _name(node), "backward")

    def rule_starts(self, node: Any, g: Any, saved: Any, pending: Any) -> None:
        """Track the results of the previous rules, and the values recomputed for the next."""
        with self.ledger.paused():
            begins = not self.passes or self.passes[-1][0] is not pending
            self.finish_rule(None if begins else g)
            self.hold_all(g, "temporary", _name(node), "backward")
            self.hold_all(saved, "recomputed", _name(node), "recompute")
            if not begins:
                self.passes.pop()
            elif not self.passes:
                self.ledger.event("start", "backward")
            self.passes.append((pending, node))

    def finish_rule(self, *others: Any) -> None:
        """Write the row of the rules that have run, if it is not written yet.

        `others` are further values that they may have computed.
        """
        for leaf in self._local.collecting:
            self.hold_all(leaf.grad, "gradient", leaf.name or "gradient", "backward")
        if not self.passes or self.passes[-1][1] is None:
            return
        self._local.collecting.clear()
        ledger, (pending, node) = self.ledger, self.passes.pop()
        self.passes.append((pending, None))
        name, path = _name(node), self.paths.get(node, "")
        with ledger.paused():
            for edge in node.edges:
                if edge is None:
                    continue
                role = "temporary" if edge.order else "gradient"
                self.hold_all(pending.get(edge), role, name, "backward", path)
                if isinstance(edge, Leaf):  # it may have accumulated its gradient already
                    self.leaves[edge] = None
                    self.hold_all(edge.grad, role, name, "backward", path)
            self.hold_all(others, "temporary", name, "backward", path)
            ledger.event(name, "backward", path)
            if node.saved is None:
                ledger.frees(node)

    def leaf_collects(self, leaf: Leaf) -> None:
        """Write the row of the rules before operations run on their results."""
        if leaf.hooks or isinstance(leaf.grad, Tensor):
            with self.ledger.paused():
                self.finish_rule()
                self._local.collecting.append(leaf)

    def backward_pass_ended(self, g: Any, saved: Any, pending: Any) -> None:
        """Track the gradients at the end of a backward pass."""
        if not self.passes:
            return
        with self.ledger.paused():
            self.finish_rule(*pending.values(), g, saved)
            self.passes.pop()
            self._local.collecting.extend(e for e in pending if isinstance(e, Leaf) and e.hooks)

    def backward_finished(self, value: Any, leaves: Iterable[Leaf]) -> None:
        """Track the gradients that the leaves have accumulated."""
        with self.ledger.paused():
            self.leaves.update(dict.fromkeys(leaves))
            self._local.collecting.clear()
            self.track_gradients()
            self.ledger.event("gradients", "backward")

    def track_gradients(self, name: str = "gradient") -> None:
        """Track the current gradients of the leaves."""
        for leaf in self.leaves:
            self.hold_all(leaf.grad, "gradient", name, "backward")

    def gradients_cleared(self, parameters: Any) -> None:
        """Write a row for cleared gradients."""
        with self.ledger.paused():
            self.ledger.event("clear_grad", "step")

    def array_kept(self, array: Any, name: str, role: str, phase: str) -> None:
        """Track an array that stays alive."""
        with self.ledger.paused():
            self.ledger.hold(array, role, name, phase or self.phase, self.path())

    def hold_all(
        self, values: Any, role: str, name: str, phase: str, path: str = ""
    ) -> list[Entry | None]:
        """Track every array among values."""
        return [self.ledger.hold(array, role, name, phase, path) for array in arrays_of(values)]


@contextmanager
def _new_tensors_reported(listener: Callable[[Any], None]) -> Iterator[None]:
    """Call `listener` with the array of every new Tensor; free of cost outside of the block."""
    before = Tensor.__init__

    def made(self: Any, data: Any, node: Any = None) -> None:
        listener(data)
        before(self, data, node)

    Tensor.__init__ = made  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.__init__ = before  # type: ignore[method-assign]


def _name(node: Any) -> str:
    """Return the name of a node's operation."""
    return str(node.operation.name)


def arrays_of(value: Any) -> Iterator[Any]:
    """Yield the arrays in a value: itself, or those that it holds.

    Examples
    --------
    >>> import numpy as np
    >>> [array.shape for array in arrays_of((np.ones(2), 3, Tensor(np.ones((1, 4)))))]
    [(2,), (1, 4)]
    """
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_of(part)
    elif isinstance(value, OutputGradients):
        yield from arrays_of(tuple(value.arrived.values()))
    elif isinstance(value, RowSparse):
        yield from arrays_of((value.rows, value.values))
    elif isinstance(value, Tensor):
        yield from arrays_of(value.data)
    elif hasattr(value, "nbytes") and hasattr(value, "dtype"):
        yield value
