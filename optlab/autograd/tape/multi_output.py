"""Operations with several outputs, such as ``np.linalg.eigh``.

Such an operation is one node. Each output is a node of its own with an edge to it; its rule wraps
the gradient in `OutputGradients`, which add up like any gradient: the backward pass has no special
case for them.
"""

from __future__ import annotations

from typing import Any

from optlab.autograd.operation import Operation
from optlab.autograd.tape import base
from optlab.autograd.tape.half_precision import wide
from optlab.autograd.tape.nodes import Node
from optlab.backend.arrays import Shape, zeros_beside
from optlab.backend.dtypes import is_floating


class OutputGradients:
    """The gradients that arrived at the outputs of one operation; ``g[i]`` is that of output i.

    An output without a gradient has a gradient of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> g = OutputGradients({1: np.ones(2)}, ((3,), (2,)))
    >>> g = g + OutputGradients({1: np.ones(2)}, ((3,), (2,)))
    >>> g[0], g[1]
    (array([0., 0., 0.]), array([2., 2.]))
    """

    __slots__ = ("arrived", "dtype", "shapes")

    shape: Shape = ()  # that of the node

    def __init__(self, arrived: dict[int, Any], shapes: tuple[Shape, ...]) -> None:
        self.arrived = arrived
        self.shapes = shapes
        self.dtype = next(iter(arrived.values())).dtype

    def __contains__(self, i: int) -> bool:
        return i in self.arrived

    def __getitem__(self, i: int) -> Any:
        if i in self.arrived:
            return self.arrived[i]
        return zeros_beside(base.raw(next(iter(self.arrived.values()))), self.shapes[i])

    def __add__(self, other: OutputGradients) -> OutputGradients:
        total = self.arrived  # not shared; a copy for each of many outputs is slow
        for i, g in other.arrived.items():
            total[i] = total[i] + g if i in total else g
        return OutputGradients(total, self.shapes)

    def astype(self, dtype: Any) -> OutputGradients:
        """Return the gradients in another dtype."""
        return OutputGradients({i: g.astype(dtype) for i, g in self.arrived.items()}, self.shapes)

    def wide(self) -> OutputGradients:
        """Return the gradients, those of 16 bits in float32."""
        return OutputGradients({i: wide(g) for i, g in self.arrived.items()}, self.shapes)


OUTPUT = Operation(
    "output",
    lambda several, index, shapes: several[index],
    [lambda g, index, shapes: OutputGradients({index: g}, shapes)],
    ["several"],
    ["index", "shapes"],
)


def outputs_of(node: Node, values: Any) -> Any:
    """Return the outputs of `node` as Tensors, in a tuple of the type of `values`."""
    shapes = tuple(value.shape for value in values)
    recipe = OUTPUT.recipe(1)
    tensors = []
    for index, value in enumerate(values):
        output = None
        if is_floating(value.dtype):
            static = {"index": index, "shapes": shapes}
            output = Node(
                OUTPUT, (node,), (), recipe, static, value.shape, value.dtype, node.source
            )
        tensors.append(base.Tensor(value, output))
    return tuple_like(values, tensors)


def tuple_like(values: Any, tensors: Any) -> Any:
    """Return `tensors` as a tuple of the type of `values`, which may be a named tuple."""
    make = getattr(type(values), "_make", tuple)
    return make(tensors)
