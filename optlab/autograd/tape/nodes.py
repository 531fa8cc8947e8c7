"""The tape: a graph of nodes, each an operation that ran (backpropagation.py walks back along it).

A Tensor that needs a gradient points at its node; a node points at the nodes of its inputs; a
`Leaf` is where gradients collect. No node points at a Tensor, so no cycle keeps memory alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optlab.autograd.tape import versions
from optlab.autograd.tape.constants import SampledConstants
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend.arrays import zeros_beside
from optlab.backend.dtypes import is_floating

if TYPE_CHECKING:
    from optlab.autograd.operation import Operation, Recipe

Shape = tuple[int, ...]
Hook = Callable[[Any], Any]


class _Zero:
    """A gradient of zeros that nobody has looked at yet, so that clearing costs nothing."""

    def __reduce__(self) -> str:  # a copy is the same object
        return "ZERO"


ZERO: Any = _Zero()


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
        self.made_at = next(versions.clock)
        self.overwritten_at = 0
        self.writer = ""

    def mark_overwritten(self, writer: str) -> None:
        """Note that the values of the Tensor are no longer those that operations have saved."""
        self.overwritten_at = versions.times.last_write = next(versions.clock)
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


class InputLeaf(Leaf):
    """The leaf of a transform such as `grad`: its memory is the transform's own."""

    __slots__ = ()


class Node:
    """One operation that ran: what it read, what it keeps for its gradient, and where it points.

    Attributes
    ----------
    operation : Operation
    edges : tuple
        The node of each input, or None for an input that needs no gradient.
    saved : tuple, `constants.SampledConstants`, `saving.Packed` or None
        The values that the derivative rules read; None once backward has freed them.
    static : dict
        The arguments that are not arrays, such as ``axis``.
    shape, dtype
        Of the output.
    source : Leaf or None
        The leaf whose memory the output is a view of, if it is one.
    backward_done : bool
        Set where backward started from this node.
    order : int
        Nodes are numbered as they are made, so that larger numbers come later in every graph.
    """

    __slots__ = (
        "__weakref__", "backward_done", "dtype", "edges", "hooks", "operation", "order", "recipe",
        "saved", "shape", "source", "static",
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
        self.order = next(versions.clock)
        self.hooks: list[Hook] | None = None

    def check_unchanged(self) -> None:
        """Make sure that nobody has overwritten the values that the rules are about to read.

        Raises
        ------
        RuntimeError
            It names who saved a value, and who wrote over it.
        """
        saved = self.saved.values if self.saved.__class__ is SampledConstants else self.saved
        if saved.__class__ is not tuple:  # freed, or kept by the user's own hooks
            return
        for i in self.recipe.saved_inputs:
            written = None if self.edges[i] is None else self.edges[i].source
            if written is not None and written.overwritten_at > self.order:
                raise self.overwritten_error(
                    written.writer, written.name or "a Tensor", written.shape
                )
        if slow_path.any:
            writer = versions.writer_since(self.order, saved)
            if writer is not None:
                raise self.overwritten_error(writer, "a Tensor", self.shape)

    def overwritten_error(self, writer: str, what: str, shape: Shape) -> RuntimeError:
        """Give the error for a saved value that `writer` has written over."""
        return RuntimeError(
            f"backward needs the value that {self.operation.name!r} saved of {what} (shape "
            f"{shape}), but {writer} has written over it since. Run backward before that, make "
            "a new value in place of writing (t = t + x, np.where(...)), or compute the loss again."
        )

    def freed_error(self) -> RuntimeError:
        """Give the error for a second walk through values that the first one freed."""
        return RuntimeError(
            f"backward went through {self.operation.name!r} a second time, but the values it had "
            "saved were freed by the first. Call the first backward with retain_graph=True, or "
            "compute the loss again."
        )

    def __repr__(self) -> str:
        return f"<Node {self.operation.name} -> {self.shape} {self.dtype}>"
