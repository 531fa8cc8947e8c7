"""Entries: what a captured call did, one after the other, with a place for every value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from optlab.autograd.tape.base import new_tensor
from optlab.autograd.tape.nodes import Node
from optlab.plan.plan import Place


class OfTensor(NamedTuple):
    """A Tensor without a node that holds the value of a place."""

    place: Place


class MadeTensor:
    """A Tensor without a node that every call makes anew, of the same values."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def holds_places(self) -> list[Place]:
        """Return none."""
        return []

    def source(self, expression: Callable[[Any], str], constant: Callable[[Any], str]) -> str:
        """Return the source that makes it."""
        return f"{constant(new_tensor)}({constant(self.values)}.copy())"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MadeTensor) and same_array(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]


def same_array(a: Any, b: Any) -> bool:
    """Return whether two arrays are equal to the bit, laid out alike."""
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and a.strides == b.strides
        and not a.dtype.hasobject
        and a.tobytes() == b.tobytes()
    )


class FreedTensor:
    """A Tensor of the call whose graph the backward pass has freed."""

    def __init__(self, place: Place, node: Node) -> None:
        self.place = place
        self.node = Node(node.operation, (), None, node.recipe, node.static, node.shape, node.dtype)
        if getattr(node, "backward_done", False):
            self.node.backward_done = True  # type: ignore[attr-defined]

    def holds_places(self) -> list[Place]:
        """Return the place of its value."""
        return [self.place]

    def source(self, expression: Callable[[Any], str], constant: Callable[[Any], str]) -> str:
        """Return the source that makes it."""
        return f"{constant(new_tensor)}({expression(self.place)}, {constant(self.node)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FreedTensor) and self.place == other.place

    __hash__ = None  # type: ignore[assignment]


class Entry(NamedTuple):
    """What the call did: an operation on values, or a call of the engine.

    Attributes
    ----------
    kind : {"operation", "effect", "read"}
        An operation depends on its arguments alone. An effect changes state, and a read (of a
        Tensor from outside, of a gradient, of the next random key) depends on it.
    name : str
    function : callable
    arguments, keywords
        With a `Place` for every value of the call.
    results : tuple of Place
        Of the result, or of the parts of a tuple.
    several : bool
        Whether the result is a tuple.
    values : tuple
        What the results were in this run.
    where : tuple of (str, int)
        File and line of the user.
    """

    kind: str
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    results: tuple[Place, ...]
    several: bool
    values: tuple[Any, ...]
    where: tuple[str, int]

    @property
    def gives(self) -> bool:
        """Whether it has a result; of an effect, while the values of this run are known."""
        return self.several or len(self.values) != 1 or self.values[0] is not None
