"""How a graph is written: sizes, arguments, gradients, names."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.several import OutputGradients
from optlab.autograd.tensor import raw
from optlab.autograd.walk import GraphNode
from optlab.viz.words import number

_WRITTEN_OUT = 24


def shape(node: GraphNode) -> str:
    """Write the shape of what a node gives; of a single number, that it is one."""
    shapes = node.shapes or (node.shape,)
    return ", ".join(one_shape(one) for one in shapes)


def one_shape(lengths: tuple[int, ...]) -> str:
    """Write one shape.

    Examples
    --------
    >>> one_shape((32, 10)), one_shape((3,)), one_shape(())
    ('(32, 10)', '(3,)', 'one number')
    """
    return str(tuple(lengths)) if lengths else "one number"


def title(node: GraphNode) -> str:
    """Name a node."""
    if node.kind == "operation":
        return f"{node.name} {node.static['index']}" if node.name == "output" else node.name
    return node.name or node.variable or ("data" if node.kind == "data" else "leaf")


def argument(value: Any) -> str:
    """Write an argument that is no input.

    Examples
    --------
    >>> argument((slice(None), slice(0, 3))), argument(np.zeros(4, int)), argument(-1)
    ('[:, 0:3]', 'int64 (4,)', '-1')
    """
    if isinstance(value, slice):
        start = "" if value.start is None else value.start
        stop = "" if value.stop is None else value.stop
        return f"{start}:{stop}" + ("" if value.step is None else f":{value.step}")
    if isinstance(value, tuple) and any(_is_index(part) for part in value):
        return "[" + ", ".join("…" if part is ... else argument(part) for part in value) + "]"
    value = raw(value)
    if getattr(value, "shape", ()):
        return f"{value.dtype} {one_shape(value.shape)}"
    text = str(value) if isinstance(value, (np.generic, np.ndarray)) else repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _is_index(part: Any) -> bool:
    return (
        part is None or part is ... or isinstance(part, slice) or bool(getattr(part, "shape", ()))
    )


def value(array: Any) -> str:
    """Write a value: a number, a small array in full, a large one in figures.

    Examples
    --------
    >>> value(np.float32(1.5)), value(np.array([1.0, -2.0]))
    ('1.5', '[1, −2]')
    >>> value(np.arange(100.0))
    'norm 573, from 0 to 99'
    """
    array = raw(array)
    if np.ndim(array) == 0:
        return number(float(array), 4)
    array = np.asarray(_on_host(array))
    if array.size <= _WRITTEN_OUT:
        return _in_full(array)
    bad = int(np.count_nonzero(~np.isfinite(array)))
    if bad:
        return f"{bad:,} of {array.size:,} values are not finite"
    if not array.any():
        return "zero everywhere"
    low, high = float(array.min()), float(array.max())
    return f"norm {number(_norm(array))}, from {number(low)} to {number(high)}"


def _in_full(array: Any) -> str:
    if array.ndim == 0:
        return number(float(array))
    inner = [_in_full(part) for part in array]
    return "[" + (", " if array.ndim == 1 else ",\n ").join(inner) + "]"


def gradient(g: Any) -> str:
    """Write a gradient for the panel."""
    if isinstance(g, OutputGradients):
        return "\n".join(f"g[{i}] = {value(g.arrived[i])}" for i in sorted(g.arrived))
    return value(g)


def short_gradient(g: Any) -> str:
    """Write a gradient so that it fits in a node.

    Examples
    --------
    >>> short_gradient(np.float32(-1.5)), short_gradient(np.array([3.0, 4.0]))
    ('g = −1.5', '|g| = 5')
    """
    if isinstance(g, OutputGradients):
        total = float(np.sqrt(sum(_norm(raw(part)) ** 2 for part in g.arrived.values())))
        return f"|g| = {number(total)}"
    array = raw(g)
    if np.ndim(array) == 0:
        return f"g = {number(float(array), 4)}"
    return f"|g| = {number(_norm(array))}"


def _norm(array: Any) -> float:
    array = np.asarray(_on_host(array), dtype=np.float64)
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.sum(array * array)))


def _on_host(array: Any) -> Any:
    return array.get() if type(array).__module__.startswith("cupy") else array
