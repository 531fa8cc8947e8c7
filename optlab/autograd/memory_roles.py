"""What the arrays of a training step are: the ledger's eyes on the tape.

=============  =====================================================================================
parameter      the values of a Tensor that collects a gradient, or of a `Parameter`
gradient       what has arrived at such a Tensor
slot           what an optimizer remembers
data           what came from outside: batches, labels, buffers of layers
saved          what operations keep for backward, and nothing else would keep
recomputed     the same, where it was dropped and has been computed again
temporary      everything else: results on their way to the next operation, gradients on their way
               back, and what an operation needs while it runs
=============  =====================================================================================
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from optlab.autograd.extras import extras
from optlab.autograd.kept_memory import kept_by
from optlab.autograd.mode import recomputing
from optlab.autograd.several import Parts
from optlab.autograd.sparse import RowSparse
from optlab.autograd.tape import Leaf
from optlab.autograd.tensor import Tensor
from optlab.backend import events
from optlab.backend.ledger import Entry, Ledger


class _Here(threading.local):
    def __init__(self) -> None:
        self.walks: list[tuple[Any, Any]] = []
        #: The leaves whose gradient goes through operations before it is collected.
        self.collecting: list[Leaf] = []


class Watch:
    """Tells a ledger what the engine does.

    Parameters
    ----------
    ledger : Ledger
    path : callable, optional
        Gives the layer that runs, as text.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w, ledger = ol.to_tensor(np.ones(1000), requires_grad=True), Ledger()
    >>> with Watch(ledger):
    ...     np.sum(np.exp(w)).backward()
    >>> [(row.name, row.phase) for row in ledger.rows]
    [('start', ''), ('exp', 'forward'), ('sum', 'forward'), ('start', 'backward'),
    ('sum', 'backward'), ('exp', 'backward'), ('gradients', 'backward'), ('end', '')]
    """

    def __init__(self, ledger: Ledger, path: Any = None) -> None:
        self.ledger = ledger
        self.path = path or str
        self.leaves: dict[Leaf, None] = {}
        #: Which layer ran when a node was recorded.
        self.paths: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._here = _Here()
        self.undo = ExitStack()

    @property
    def walks(self) -> list[tuple[Any, Any]]:
        """The walks back that are on their way in this thread, one inside the other.

        Of each, the gradients that it carries, and the node whose rules run, until its row is
        written.
        """
        return self._here.walks

    def __enter__(self) -> Watch:
        self.ledger.open()
        for event, listener in (
            (events.operation_starts, self.starts),
            (events.operation_ran, self.ran),
            (events.operation_recorded, self.recorded),
            (events.values_wanted, self.values_wanted),
            (events.rule_starts, self.rule_starts),
            (events.leaf_collects, self.leaf_collects),
            (events.backward_pass_ended, self.backward_pass_ended),
            (events.operation_recomputed, self.ran_again),
            (events.backward_finished, self.backward_finished),
            (events.gradients_cleared, self.cleared),
            (events.array_kept, self.kept),
            (events.input_stored, self.stored),
        ):
            self.undo.enter_context(event.subscribed(listener))
        self.undo.enter_context(_told_of_tensors(self.tensor_made))
        extras.on += 1
        extras.watching += 1
        return self

    def __exit__(self, *error: object) -> None:
        extras.on -= 1
        extras.watching -= 1
        self.undo.close()
        with self.ledger.paused():
            self.look_at_gradients()
        self.walks.clear()
        self._here.collecting.clear()
        self.leaves.clear()
        self.ledger.close()

    # Forward ------------------------------------------------------------------------------------

    def starts(self, name: str, inputs: Iterable[Any]) -> None:
        """Take note of what an operation is given."""
        with self.ledger.paused():
            self.finish_rule()
            self.given(inputs)

    def given(self, inputs: Iterable[Any]) -> None:
        """Take note of what comes from outside, a parameter among it perhaps."""
        ledger = self.ledger
        with ledger.paused():
            for x in inputs:
                if not isinstance(x, Tensor):
                    for array in arrays_of(x):
                        ledger.hold(array, "data", "input")
                    continue
                node = x.node
                if isinstance(node, Leaf):
                    self.meet(node, x.data)
                else:
                    frozen = node is None and hasattr(type(x), "trainable")
                    label = getattr(x, "name", None) if frozen else None
                    role = "parameter" if frozen else "data"
                    ledger.hold(x.data, role, label or ("parameter" if frozen else "input"))

    def meet(self, leaf: Leaf, values: Any) -> None:
        """Take note of a Tensor that collects a gradient."""
        self.leaves[leaf] = None
        self.ledger.hold(values, "parameter", leaf.name or "parameter")
        for array in arrays_of(leaf.grad):
            self.ledger.hold(array, "gradient", leaf.name or "parameter")

    def tensor_made(self, values: Any) -> None:
        """Take note of a Tensor that no operation gave: made by the user, drawn, of zeros."""
        phase = self.phase
        with self.ledger.paused():
            role = "data" if phase == "forward" else "temporary"
            self.hold_all(values, role, "Tensor", phase, self.path())

    def ran(self, name: str, inputs: Iterable[Any], outputs: Any) -> None:
        """Take note of what an operation gave."""
        ledger, name, phase, path = self.ledger, name, self.phase, self.path()
        with ledger.paused():
            for array in arrays_of(outputs):
                ledger.hold(array, "temporary", name, phase, path)
                if phase == "recompute":
                    ledger.recomputed[1] += array.nbytes
            ledger.recomputed[0] += phase == "recompute"
            ledger.event(name, phase, path)

    def ran_again(self, piece: Any, outputs: Any) -> None:
        """Take note of what an operation on the tape gave when it ran again."""
        ledger, name = self.ledger, str(piece.name)
        with ledger.paused():
            for array in arrays_of(outputs):
                ledger.hold(array, "recomputed", name, "recompute")
                ledger.recomputed[1] += array.nbytes
            ledger.recomputed[0] += 1
            ledger.event(name, "recompute")

    @property
    def phase(self) -> str:
        """Where in a step we are."""
        return "recompute" if recomputing.depth else "backward" if self.walks else "forward"

    def recorded(self, node: Any) -> None:
        """Take note of what a node keeps for backward."""
        name, path = _name(node), self.path()
        with self.ledger.paused():
            if path:
                self.paths[node] = path
            if name == "recompute_sequential":  # what it stores comes and goes while it is there
                return
            held = [
                self.ledger.hold(array, "temporary", name, self.phase, path)
                for array in kept_by(node)
            ]
            self.ledger.keeps(node, held, "recomputed" if recomputing.depth else "saved")

    def stored(self, keeper: Any, arrays: Iterable[Any]) -> None:
        """Take note of the input of a layer that a schedule stores until `keeper` is gone."""
        with self.ledger.paused():
            held = self.hold_all(tuple(arrays), "data", "input", self.phase, self.path())
            again = self.walks or recomputing.depth
            self.ledger.keeps(keeper, held, "recomputed" if again else "saved")

    # Backward -----------------------------------------------------------------------------------

    def values_wanted(self, node: Any, g: Any, pending: Any) -> None:
        """Write the row of the rules before, since operations may run again now."""
        with self.ledger.paused():
            if self.walks and self.walks[-1][0] is pending:
                self.finish_rule(g)
            self.hold_all(g, "temporary", _name(node), "backward")

    def rule_starts(self, node: Any, g: Any, saved: Any, pending: Any) -> None:
        """Take note of what the rules before gave, and of what was brought back for the next."""
        with self.ledger.paused():
            begins = not self.walks or self.walks[-1][0] is not pending
            self.finish_rule(None if begins else g)
            self.hold_all(g, "temporary", _name(node), "backward")
            self.hold_all(saved, "recomputed", _name(node), "recompute")
            if not begins:
                self.walks.pop()
            elif not self.walks:
                self.ledger.event("start", "backward")
            self.walks.append((pending, node))

    def finish_rule(self, *others: Any) -> None:
        """Write the row of the rules that have run, if it is not written yet.

        `others` are values that they may have made, too.
        """
        for leaf in self._here.collecting:
            self.hold_all(leaf.grad, "gradient", leaf.name or "gradient", "backward")
        if not self.walks or self.walks[-1][1] is None:
            return
        self._here.collecting.clear()
        ledger, (pending, node) = self.ledger, self.walks.pop()
        self.walks.append((pending, None))
        name, path = _name(node), self.paths.get(node, "")
        with ledger.paused():
            for edge in node.edges:
                if edge is None:
                    continue
                role = "temporary" if edge.order else "gradient"
                self.hold_all(pending.get(edge), role, name, "backward", path)
                if isinstance(edge, Leaf):  # it may have collected its gradient already
                    self.leaves[edge] = None
                    self.hold_all(edge.grad, role, name, "backward", path)
            self.hold_all(others, "temporary", name, "backward", path)
            ledger.event(name, "backward", path)
            if node.saved is None:
                ledger.frees(node)

    def leaf_collects(self, leaf: Leaf) -> None:
        """Write the row of the rules before operations run on what they gave."""
        if leaf.hooks or isinstance(leaf.grad, Tensor):
            with self.ledger.paused():
                self.finish_rule()
                self._here.collecting.append(leaf)

    def backward_pass_ended(self, g: Any, saved: Any, pending: Any) -> None:
        """Take note of the gradients that have arrived."""
        if not self.walks:
            return
        with self.ledger.paused():
            self.finish_rule(*pending.values(), g, saved)
            self.walks.pop()
            self._here.collecting.extend(e for e in pending if isinstance(e, Leaf) and e.hooks)

    def backward_finished(self, value: Any, leaves: Iterable[Leaf]) -> None:
        """Take note of what the leaves have collected."""
        with self.ledger.paused():
            self.leaves.update(dict.fromkeys(leaves))
            self._here.collecting.clear()
            self.look_at_gradients()
            self.ledger.event("gradients", "backward")

    def look_at_gradients(self, name: str = "gradient") -> None:
        """Take note of what the leaves have for a gradient now."""
        for leaf in self.leaves:
            self.hold_all(leaf.grad, "gradient", name, "backward")

    def cleared(self, parameters: Any) -> None:
        """Take note that gradients are gone."""
        with self.ledger.paused():
            self.ledger.event("clear_grad", "step")

    def kept(self, array: Any, name: str, role: str, phase: str) -> None:
        """Take note of an array that stays."""
        with self.ledger.paused():
            self.ledger.hold(array, role, name, phase or self.phase, self.path())

    def hold_all(
        self, values: Any, role: str, name: str, phase: str, path: str = ""
    ) -> list[Entry | None]:
        """Take note of every array among values."""
        return [self.ledger.hold(array, role, name, phase, path) for array in arrays_of(values)]


@contextmanager
def _told_of_tensors(listener: Callable[[Any], None]) -> Iterator[None]:
    """Tell `listener` of the array of every new Tensor, at no cost outside of the block."""
    before = Tensor.__init__

    def made(self: Tensor, data: Any, node: Any = None) -> None:
        listener(data)
        before(self, data, node)

    Tensor.__init__ = made  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.__init__ = before  # type: ignore[method-assign]


def _name(node: Any) -> str:
    """Give the name of a node's operation."""
    return str(node.operation.name)


def arrays_of(value: Any) -> Iterator[Any]:
    """Go through the arrays in a value: itself, or what it holds.

    Examples
    --------
    >>> import numpy as np
    >>> [array.shape for array in arrays_of((np.ones(2), 3, Tensor(np.ones((1, 4)))))]
    [(2,), (1, 4)]
    """
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_of(part)
    elif isinstance(value, Parts):
        yield from arrays_of(tuple(value.arrived.values()))
    elif isinstance(value, RowSparse):
        yield from arrays_of((value.rows, value.values))
    elif isinstance(value, Tensor):
        yield from arrays_of(value.data)
    elif hasattr(value, "nbytes") and hasattr(value, "dtype"):
        yield value
