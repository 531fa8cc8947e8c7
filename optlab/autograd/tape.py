"""The tape: a graph of nodes, each an operation that ran, and the walk back along it.

A Tensor that needs a gradient points at its node; a node points at the nodes of its inputs; a
`Leaf` is where gradients collect. No node points at a Tensor, so no cycle keeps memory alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from optlab.autograd import anomaly, writes
from optlab.autograd.constants import Watched
from optlab.autograd.extras import extras
from optlab.autograd.halves import for_rule, halves, rounded
from optlab.autograd.hooks import run_hooks
from optlab.autograd.mode import grad_mode, recording
from optlab.backend import events
from optlab.backend.arrays import zeros_beside
from optlab.backend.dtypes import is_floating, is_half
from optlab.backend.ensemble import EnsembleArray, EnsembleError

if TYPE_CHECKING:
    from optlab.autograd.operation import Operation, Recipe

Shape = tuple[int, ...]
Hook = Callable[[Any], Any]


class _Zero:
    """A gradient of zeros that nobody has looked at yet, so that clearing costs nothing."""

    def __reduce__(self) -> str:  # a copy is the same object
        return "ZERO"


ZERO: Any = _Zero()

_newest_first = attrgetter("order")

_array = np.ndarray

#: From so many bytes on, a gradient that nobody else holds is written over rather than replaced:
#: the peak of a step is lower, and memory that is warm is quicker. Below, asking costs more.
LARGE = 1 << 15


def _references_of_a_local() -> int:
    """Count what `getrefcount` says of an array that one local name refers to."""
    g = np.zeros(1)
    return getrefcount(g)


_ALONE = _references_of_a_local()


class Leaf:
    """The end of the tape: a Tensor that the user made, where its gradient collects.

    Attributes
    ----------
    grad
        The gradient collected so far: an array, a Tensor (after ``create_graph=True``), `ZERO` or
        None.
    made_at : int
        When it was made, on the clock that also numbers nodes.
    live : bool
        Whether somebody may still ask for its gradient; a transform's own leaf dies with its run.
    overwritten_at : int
        When the values of the Tensor were last overwritten, and by which `writer`; on the clock
        that also numbers nodes, 0 for never.
    """

    __slots__ = (
        "__weakref__", "dtype", "grad", "hooks", "live", "made_at", "name", "overwritten_at",
        "shape", "writer",
    )  # fmt: skip

    edges: tuple[Any, ...] = ()
    order = 0  # older than every operation

    @property
    def source(self) -> Leaf:
        """The leaf whose memory its values lie in: itself."""
        return self

    def __init__(self, shape: Shape, dtype: Any, name: str | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.name = name
        self.grad: Any = None
        self.hooks: list[Hook] | None = None
        self.live = True
        self.made_at = next(writes.clock)
        self.overwritten_at = 0
        self.writer = ""

    def overwritten(self, writer: str) -> None:
        """Note that the values of the Tensor are no longer those that operations have saved."""
        self.overwritten_at = writes.times.last_write = next(writes.clock)
        self.writer = writer

    def __setstate__(self, state: Any) -> None:
        for name, value in state[1].items():
            setattr(self, name, value)
        self.overwritten_at = 0  # a copy has memory of its own, and another process another clock

    def gradient(self, values: Any) -> Any:
        """Give the collected gradient, zeros where it was cleared, None where there is none.

        `values` are those of the Tensor: zeros are made where they lie.
        """
        if self.grad is ZERO:
            self.grad = zeros_beside(values, self.shape)
        return self.grad

    def __repr__(self) -> str:
        return f"<Leaf {self.name or 'unnamed'} {self.shape} {self.dtype}>"


def leaf_for(data: Any) -> Leaf:
    """Give a fresh end of the tape for `data`, which must be of a real floating type."""
    if not is_floating(data.dtype):
        raise TypeError(
            f"only floating numbers have gradients; this Tensor is of dtype {data.dtype}. "
            "Give it dtype='float32' or 'float64'."
        )
    return Leaf(data.shape, data.dtype)


class Entry(Leaf):
    """The leaf of a transform such as `grad`: its memory is the transform's own."""

    __slots__ = ()


class Node:
    """One operation that ran: what it read, what it keeps for its gradient, and where it points.

    Attributes
    ----------
    operation : Operation
    edges : tuple
        The node of each input, or None for an input that needs no gradient.
    saved : tuple, `constants.Watched`, `saving.Packed` or None
        The values that the derivative rules read; None once backward has freed them.
    static : dict
        The arguments that are not arrays, such as ``axis``.
    shape, dtype
        Of the output.
    source : Leaf or None
        The leaf whose memory the output is a view of, if it is one.
    walked : bool
        Set where backward started from this node.
    order : int
        Nodes are numbered as they are made, so that larger numbers come later in every graph.
    """

    __slots__ = (
        "__weakref__", "dtype", "edges", "hooks", "operation", "order", "recipe", "saved", "shape",
        "source", "static", "walked",
    )  # fmt: skip

    def __init__(
        self,
        operation: Operation,
        edges: tuple[Any, ...],
        saved: Any,
        recipe: Recipe,
        static: dict[str, Any],
        shape: Shape,
        dtype: Any,
        source: Leaf | None = None,
    ) -> None:
        self.operation = operation
        self.edges = edges
        self.saved = saved
        self.recipe = recipe
        self.static = static
        self.shape = shape
        self.dtype = dtype
        self.source = source
        self.order = next(writes.clock)
        self.hooks: list[Hook] | None = None

    def check_unchanged(self) -> None:
        """Make sure that nobody has overwritten the values that the rules are about to read.

        Raises
        ------
        RuntimeError
            It names who saved a value, and who wrote over it.
        """
        saved = self.saved.values if self.saved.__class__ is Watched else self.saved
        if saved.__class__ is not tuple:  # freed, or kept by the user's own hooks
            return
        for i in self.recipe.saved_inputs:
            written = None if self.edges[i] is None else self.edges[i].source
            if written is not None and written.overwritten_at > self.order:
                raise self.overwritten(written.writer, written.name or "a Tensor", written.shape)
        if extras.on:
            writer = writes.writer_since(self.order, saved)
            if writer is not None:
                raise self.overwritten(writer, "a Tensor", self.shape)

    def overwritten(self, writer: str, what: str, shape: Shape) -> RuntimeError:
        """Give the error for a saved value that `writer` has written over."""
        return RuntimeError(
            f"backward needs the value that {self.operation.name!r} saved of {what} (shape "
            f"{shape}), but {writer} has written over it since. Run backward before that, make "
            "a new value in place of writing (t = t + x, np.where(...)), or compute the loss again."
        )

    def used_up(self) -> RuntimeError:
        """Give the error for a second walk through values that the first one freed."""
        return RuntimeError(
            f"backward went through {self.operation.name!r} a second time, but the values it had "
            "saved were freed by the first. Call the first backward with retain_graph=True, or "
            "compute the loss again."
        )

    def tied(self, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """Give saved values tied to the tape, so that a rule run on them is recorded too."""
        from optlab.autograd.several import outputs_of
        from optlab.autograd.tensor import Tensor

        output = len(self.edges)
        tied = []
        for value, source in zip(saved, self.recipe.sources, strict=True):
            owner = self if source == output else self.edges[source] if source < output else None
            if owner is self and self.operation.several:
                tied.append(outputs_of(self, value))
            else:
                tied.append(value if owner is None else Tensor(value, owner))
        return tuple(tied)

    def __repr__(self) -> str:
        return f"<Node {self.operation.name} -> {self.shape} {self.dtype}>"


def ancestors(root: Any) -> list[Any]:
    """Give `root` and everything it was computed from, latest first.

    An input is always made before what reads it, so this order lets a gradient be complete before
    it is passed on.
    """
    seen = {root}
    stack = [root]
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=_newest_first, reverse=True)


def _leading_to(targets: Iterable[Any], nodes: Sequence[Any]) -> set[Any]:
    """Keep the nodes through which a gradient reaches one of `targets`."""
    useful = set(targets)
    for node in reversed(nodes):
        if node not in useful and any(edge in useful for edge in node.edges):
            useful.add(node)
    return useful


def unbroadcast(g: Any, shape: Shape) -> Any:
    """Undo broadcasting: add up `g` over the axes that were stretched to reach its shape.

    The one place where this is done, for every rule.

    Examples
    --------
    >>> import numpy as np
    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])
    """
    extra = len(g.shape) - len(shape)
    stretched = tuple(range(extra)) + tuple(
        axis + extra
        for axis, length in enumerate(shape)
        if length == 1 and g.shape[axis + extra] != 1
    )
    if stretched:
        g = np.add.reduce(g, axis=stretched)
    return g.reshape(shape)


def _added(total: Any, part: Any, create_graph: bool) -> Any:
    """Add a gradient to those that arrived before, in place where nobody else holds these."""
    if (
        create_graph
        or total.__class__ is not _array
        or getrefcount(total) != _ALONE
        or total.base is not None
        or not total.flags.writeable
    ):
        return total + part
    total += part
    return total


def backpropagate(
    root: Any,
    seed: Any,
    value: Any = None,
    targets: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool = False,
) -> list[Any]:
    """Walk back from `root` and bring `seed` to the leaves, or to `targets`.

    Parameters
    ----------
    root : Node or Leaf
        Where the gradient starts.
    seed
        The gradient of the final value with respect to `root`: an array, or a Tensor where
        `create_graph` is set.
    targets : sequence of Node or Leaf, optional
        Whose gradients are wanted. They are returned in this order (None where nothing arrived)
        and no leaf's ``grad`` is touched. Without targets the gradients are added to the leaves.
    create_graph : bool
        Give the rules Tensors, so that the gradients are themselves on the tape.
    retain_graph : bool
        Keep what the nodes saved, so that the same graph can be walked again.

    Raises
    ------
    RuntimeError
        If a node on the way has been walked before and its saved values are gone.
    """
    useful: set[Any] | None = None
    if targets is not None:
        found: dict[Any, Any] = {}
        useful = _leading_to(targets, ancestors(root))
    elif root.order:
        root.walked = True
    #: Gradients on their way, by what they are for; at the end those of the leaves are left.
    pending: dict[Any, Any] = {} if root.order else {root: seed}
    #: Operations whose gradient is complete come off this heap: the newest first.
    heap: list[tuple[int, Any]] = []
    node, g = root, seed
    if create_graph:  # else the rules see arrays, of which nothing can be recorded
        was_on, recording.on = recording.on, True
        policy, halves.policy = halves.policy, None
    quiet: Any = None  # set from where 16 bits are met: there infinities are no news
    try:
        while node.order:
            if node.hooks:
                g = run_hooks(node, g)
            if useful is not None and node in targets:  # type: ignore[operator]
                found[node] = g
            saved = node.saved
            if node.order < writes.times.last_write:
                node.check_unchanged()
            if saved.__class__ is not tuple:
                if saved is None:
                    raise node.used_up()
                saved = saved.restored()
            if create_graph:
                saved = node.tied(saved)
            edges, recipe, static = node.edges, node.recipe, node.static
            if extras.on and halves.on:
                if quiet is None and is_half(node.dtype):
                    quiet = np.errstate(over="ignore", invalid="ignore")
                    quiet.__enter__()
                g, saved = for_rule(g, saved)
            if recipe.joint is not None:
                part = None  # it may be g, and would count as another holder
                if (
                    recipe.over is None
                    or g.__class__ is not _array
                    or g.nbytes < LARGE
                    or getrefcount(g) != _ALONE
                    or g.base is not None
                    or not g.flags.writeable
                    or extras.on > halves.on
                    or not all(x.__class__ is _array for x in saved)
                ):
                    g = recipe.joint(g, saved, static)
                else:
                    g = recipe.over(g, saved, static)
            for position, run in recipe.pullbacks:
                edge = edges[position]
                if useful is not None and edge not in useful:
                    continue
                part = run(g, saved, static)
                if part is None:
                    continue
                if extras.on and anomaly.mode.depth:
                    anomaly.check_backward(node, position, part, g, saved)
                if part.shape != edge.shape:
                    part = unbroadcast(part, edge.shape)
                if part.dtype is not edge.dtype and part.dtype != edge.dtype:
                    part = rounded(part, edge.dtype) if halves.on else part.astype(edge.dtype)
                if edge in pending:
                    if part.__class__ is _array and part.nbytes >= LARGE:
                        pending[edge] = _added(pending.pop(edge), part, create_graph)
                    else:
                        pending[edge] = pending[edge] + part
                    part = None
                else:
                    pending[edge] = part
                    if edge.order:
                        heappush(heap, (-edge.order, edge))
            if not retain_graph:
                node.saved = None
            if not heap:
                break
            node = heappop(heap)[1]
            g = pending.pop(node)
        # What is left has nowhere further to go: the leaves.
        for leaf, g in pending.items():
            if leaf.hooks:
                g = run_hooks(leaf, g)
            if useful is not None:
                found[leaf] = g
                continue
            if g.__class__ is EnsembleArray and g.level > leaf.made_at:
                raise EnsembleError(
                    "backward() inside vmap would leave a Tensor from outside with a gradient for "
                    "each example. Return gradients instead: ol.vmap(ol.grad(loss))(...), or call "
                    "backward() on the sum of what vmap gives."
                )
            if leaf.grad is None or leaf.grad is ZERO:
                leaf.grad = g
            else:
                with grad_mode(create_graph):
                    leaf.grad = leaf.grad + g
    finally:
        if create_graph:
            recording.on, halves.policy = was_on, policy
        if quiet is not None:
            quiet.__exit__(None, None, None)
    if useful is None and events.backward_finished.listeners:
        events.backward_finished.publish(value, list(pending))
    return [found.get(target) for target in targets] if targets is not None else []
