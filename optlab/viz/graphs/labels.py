"""Texts of a graph: shapes, arguments, values, gradients, names."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.graph.graph import GraphNode
from optlab.autograd.tape.multi_output import OutputGradients
from optlab.autograd.tensor.tensor import raw
from optlab.viz.style.text import format_number

_WRITTEN_OUT = 24


def shape(node: GraphNode) -> str:
    """Format the shape of the result of a node, or of its several results."""
    shapes = node.shapes or (node.shape,)
    return ", ".join(one_shape(one) for one in shapes)


def one_shape(lengths: tuple[int, ...]) -> str:
    """Format one shape.

    Examples
    --------
    >>> one_shape((32, 10)), one_shape((3,)), one_shape(())
    ('(32, 10)', '(3,)', 'one number')
    """
    return str(tuple(lengths)) if lengths else "one number"


def title(node: GraphNode) -> str:
    """Return the name of a node."""
    if node.kind == "operation":
        return f"{node.name} {node.static['index']}" if node.name == "output" else node.name
    return node.name or node.variable or ("data" if node.kind == "data" else "leaf")


def argument(value: Any) -> str:
    """Format an argument that is not an input.

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
    """Format a value: a number, a small array in full, a large one by norm and range.

    Examples
    --------
    >>> value(np.float32(1.5)), value(np.array([1.0, -2.0]))
    ('1.5', '[1, −2]')
    >>> value(np.arange(100.0))
    'norm 573, from 0 to 99'
    """
    array = raw(array)
    if np.ndim(array) == 0:
        return format_number(float(array), 4)
    array = np.asarray(_on_host(array))
    if array.size <= _WRITTEN_OUT:
        return _in_full(array)
    bad = int(np.count_nonzero(~np.isfinite(array)))
    if bad:
        return f"{bad:,} of {array.size:,} values are not finite"
    if not array.any():
        return "zero everywhere"
    low, high = float(array.min()), float(array.max())
    return f"norm {format_number(_norm(array))}, from {format_number(low)} to {format_number(high)}"


def _in_full(array: Any) -> str:
    if array.ndim == 0:
        return format_number(float(array))
    inner = [_in_full(part) for part in array]
    return "[" + (", " if array.ndim == 1 else ",\n ").join(inner) + "]"


def gradient(g: Any) -> str:
    """Format a gradient for the panel."""
    if isinstance(g, OutputGradients):
        return "\n".join(f"g[{i}] = {value(g.arrived[i])}" for i in sorted(g.arrived))
    return value(g)


def short_gradient(g: Any) -> str:
    """Format a gradient to fit in a node.

    Examples
    --------
    >>> short_gradient(np.float32(-1.5)), short_gradient(np.array([3.0, 4.0]))
    ('g = −1.5', '|g| = 5')
    """
    if isinstance(g, OutputGradients):
        total = float(np.sqrt(sum(_norm(raw(part)) ** 2 for part in g.arrived.values())))
        return f"|g| = {format_number(total)}"
    array = raw(g)
    if np.ndim(array) == 0:
        return f"g = {format_number(float(array), 4)}"
    return f"|g| = {format_number(_norm(array))}"


def _norm(array: Any) -> float:
    array = np.asarray(_on_host(array), dtype=np.float64)
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.sum(array * array)))


def _on_host(array: Any) -> Any:
    return array.get() if type(array).__module__.startswith("cupy") else array
