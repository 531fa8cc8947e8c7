"""The tape: a graph of nodes, one for each recorded operation.

A Tensor that needs a gradient refers to its node; a node refers to the nodes of its inputs; leaves
accumulate gradients. No node refers to a Tensor, so no cycle keeps memory alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optlab.autograd.tape import versions
from optlab.autograd.tape.constants import CheckedConstants
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend.arrays import zeros_beside
from optlab.backend.dtypes import is_floating

if TYPE_CHECKING:
    from optlab.autograd.operation import Operation, Recipe

Shape = tuple[int, ...]
Hook = Callable[[Any], Any]


class _Zero:
    """A gradient of zeros that is allocated when it is read, so that clearing costs nothing."""

    def __reduce__(self) -> str:  # a copy is the same object
        return "ZERO"


ZERO: Any = _Zero()


class Leaf:
    """The node of a Tensor that no operation made; its gradient accumulates here.

    Attributes
    ----------
    grad
        The gradient so far: an array, a Tensor (after ``create_graph=True``), `ZERO` or
        None.
    made_at : int
        When it was made, on the clock that numbers nodes.
    live : bool
        Whether its gradient may still be read; False for leaves of a transform that has ended.
    overwritten_at : int
        When the values of the Tensor were last overwritten (by `writer`), on the clock that numbers
        nodes; 0 for never.
    """

    __slots__ = (
        "__weakref__", "dtype", "grad", "hooks", "live", "made_at", "name", "overwritten_at",
        "shape", "writer",
    )  # fmt: skip

    edges: tuple[Any, ...] = ()
    order = 0  # older than every operation

    @property
    def source(self) -> Leaf:
        """The leaf that owns the memory of the values: itself."""
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
        """Record that `writer` overwrote the values that operations may have saved."""
        self.overwritten_at = versions.times.last_write = next(versions.clock)
        self.writer = writer

    def __setstate__(self, state: Any) -> None:
        for name, value in state[1].items():
            setattr(self, name, value)
        # A copy has its own memory, and another process its own clock.
        self.made_at, self.overwritten_at = next(versions.clock), 0

    def gradient(self, values: Any) -> Any:
        """Return the gradient: zeros if it was cleared, None if there is none.

        Zeros are allocated on the device of `values`, those of the Tensor.
        """
        if self.grad is ZERO:
            self.grad = zeros_beside(values, self.shape)
        return self.grad

    def __repr__(self) -> str:
        return f"<Leaf {self.name or 'unnamed'} {self.shape} {self.dtype}>"


def leaf_for(data: Any) -> Leaf:
    """Return a new leaf for `data`, which must have a real floating dtype."""
    if not is_floating(data.dtype):
        raise TypeError(
            f"only floating numbers have gradients; this Tensor is of dtype {data.dtype}. "
            "Give it dtype='float32' or 'float64'."
        )
    return Leaf(data.shape, data.dtype)


class InputLeaf(Leaf):
    """The leaf of an input of a transform such as `grad`, which owns its memory.

    Attributes
    ----------
    transforms : int
        Number of functions, in all threads, that transforms evaluate now.
    """

    __slots__ = ()
    transforms = 0


class Node:
    """A recorded operation, with its saved values and edges to the nodes of its inputs.

    Attributes
    ----------
    operation : Operation
    edges : tuple
        The node of each input, or None for an input that needs no gradient.
    saved : tuple, `constants.CheckedConstants`, `saved_tensors.Packed` or None
        The values that the derivative rules read; None after backward has freed them.
    static : dict
        The arguments that are not arrays, such as ``axis``.
    shape, dtype
        Those of the output.
    source : Leaf or None
        The leaf of whose memory the output is a view, if it is one.
    backward_done : bool
        Set after a backward pass from this node; unset before.
    reached : Leaf
        A leaf that it was computed from, set by `backward.reaches_leaf`; unset before.
    order : int
        The number of the node, in the order of recording.
    """

    __slots__ = (
        "__weakref__", "backward_done", "dtype", "edges", "hooks", "operation", "order", "reached",
        "recipe", "saved", "shape", "source", "static",
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
        """Check that no value that the rules read was overwritten.

        Raises
        ------
        RuntimeError
            With the operation that saved a value, and the writer that overwrote it.
        """
        saved = self.saved.values if self.saved.__class__ is CheckedConstants else self.saved
        is_tuple = saved.__class__ is tuple
        if not is_tuple and not getattr(saved, "reads_leaves", False):
            return  # freed, or packed by a save policy
        for i in self.recipe.saved_inputs:
            written = None if self.edges[i] is None else self.edges[i].source
            if written is not None and written.overwritten_at > self.order:
                raise self.overwritten_error(
                    written.writer, written.name or "a Tensor", written.shape
                )
        if slow_path.any and is_tuple:
            writer = versions.writer_since(self.order, saved)
            if writer is not None:
                raise self.overwritten_error(writer, "a Tensor", self.shape)

    def overwritten_error(self, writer: str, what: str, shape: Shape) -> RuntimeError:
        """Return the error for a saved value that `writer` overwrote."""
        return RuntimeError(
            f"backward needs the value that {self.operation.name!r} saved of {what} (shape "
            f"{shape}), but {writer} has written over it since. Run backward before that, make "
            "a new value in place of writing (t = t + x, np.where(...)), or compute the loss again."
        )

    def freed_error(self) -> RuntimeError:
        """Return the error for a second backward pass through freed values."""
        return RuntimeError(
            f"backward went through {self.operation.name!r} a second time, but the values it had "
            "saved were freed by the first. Call the first backward with retain_graph=True, or "
            "compute the loss again."
        )

    def __repr__(self) -> str:
        return f"<Node {self.operation.name} -> {self.shape} {self.dtype}>"
