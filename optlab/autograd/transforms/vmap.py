"""Ensembles on the tape: entering, leaving, and `vmap`, which does both around a function.

Inside, every gradient is that of one member. On leaving, members become elements of one array
again, so from there on the gradient of a shared value is the sum over the members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from optlab.autograd.operation import Operation
from optlab.autograd.tape import nodes, saved_tensors, versions
from optlab.autograd.tensor.complex_pairs import ComplexTensor
from optlab.autograd.tensor.conversions import refusal
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.autograd.transforms.evaluation import check_callable, explained_transform
from optlab.backend.arrays import as_array
from optlab.backend.ensemble import EnsembleArray, EnsembleError

# Entering and leaving -----------------------------------------------------------------------------


def _has_members(x: Any, level: int) -> bool:
    return isinstance(x, EnsembleArray) and x.level == level


def _on_tape(operation: Operation, x: Any, **static: Any) -> Any:
    """Run one of the operations below, recorded if `x` is a Tensor."""
    return (
        apply(operation, (x,), static) if isinstance(x, Tensor) else operation.forward(x, **static)
    )


def enter(x: Any, axis: int, level: int) -> Any:
    """Return the ensemble whose members are the slices of `x` along `axis`."""
    return EnsembleArray(np.moveaxis(x, axis, 0), level)


def leave(x: Any, axis: int, level: int, count: int) -> Any:
    """Return the members of an ensemble along `axis` of one array; repeat a shared value."""
    if _has_members(x, level):
        return np.moveaxis(x.members, 0, axis)
    x = as_array(x)
    return np.moveaxis(np.broadcast_to(x, (count, *np.shape(x))), 0, axis)


def share(x: Any, level: int, count: int) -> Any:
    """Return `x`, shared by every member: the identity, whose gradient sums over the members."""
    return x


def total(x: Any, level: int, count: int) -> Any:
    """Sum the members of an ensemble; a shared value counts `count` times."""
    return np.add.reduce(x.members, axis=0) if _has_members(x, level) else x * count


# Not in the table of rules: users do not call them.
ENTER: Operation = Operation(
    "enter", enter,
    [lambda g, x_shape, axis, level: _on_tape(
        LEAVE, g, axis=axis, level=level, count=x_shape[axis])],
    inputs=["x"], static=["axis", "level"], view=True,
)  # fmt: skip
LEAVE: Operation = Operation(
    "leave", leave, [lambda g, axis, level: _on_tape(ENTER, g, axis=axis, level=level)],
    inputs=["x"], static=["axis", "level", "count"], view=True,
)  # fmt: skip
SHARE: Operation = Operation(
    "share", share, [lambda g, level, count: _on_tape(TOTAL, g, level=level, count=count)],
    inputs=["x"], static=["level", "count"], view=True,
)  # fmt: skip
TOTAL: Operation = Operation(
    "total", total, [lambda g, level, count: _on_tape(SHARE, g, level=level, count=count)],
    inputs=["x"], static=["level", "count"],
)  # fmt: skip


@explained_transform
def ensemble(data: Any, axis: int = 0) -> Any:
    """Build an ensemble: arrays that pass through a computation together but independently.

    Parameters
    ----------
    data : array_like or Tensor
        All members in one array.
    axis : int
        The axis of the members.

    Returns
    -------
    EnsembleArray or Tensor
        Its shape is that of one member. Everything computed from it has a value for each member,
        gradients too; `members` returns them in one array.

    Raises
    ------
    TypeError
        If `data` is a single number, or not numeric.

    Notes
    -----
    A plain array combined with an ensemble is shared by all members; its gradient is an ensemble,
    with the gradient from each member. Random numbers drawn inside are shared too; if each member
    needs its own, draw an array with one axis more and make an ensemble of it.

    Examples
    --------
    Two straight lines through the origin, fitted at once, each with its own rate.

    >>> import numpy as np
    >>> import optlab as ol
    >>> x, y = np.array([1.0, 2.0]), np.array([3.0, 6.0])
    >>> slope, rate = ol.ensemble([0.0, 1.0]), ol.ensemble([0.1, 0.2])
    >>> for _ in range(50):
    ...     slope = slope - rate * ol.grad(lambda w: np.mean((w * x - y) ** 2))(slope)
    >>> ol.members(slope).round(4)
    array([3., 3.])
    """
    if isinstance(data, Tensor):
        return apply(ENTER, (data,), {"axis": axis, "level": 0})
    array = as_array(data)
    if array.dtype == object or array.ndim == 0:
        raise TypeError(
            "ensemble takes the members in one array, its first axis counting them: "
            f"ol.ensemble([0.1, 0.2]); got a {type(data).__name__}. An ensemble of models has "
            "ensembles as parameters: ol.Parameter(ol.ensemble(values)), values of shape "
            "[members, ...]."
        )
    return enter(array, axis, 0)


@explained_transform
def members(x: Any, axis: int = 0) -> Any:
    """Return the members of an ensemble in one plain array, along `axis`.

    Parameters
    ----------
    x : EnsembleArray or Tensor
        A Tensor that needs a gradient must be detached first: inside an ensemble each member has
        a gradient of its own; use `vmap` to differentiate a function of all members.
    axis : int
        Position of the axis of the members.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.members(ol.ensemble([1.0, 2.0]) * np.ones(3), axis=-1)
    array([[1., 2.],
           [1., 2.],
           [1., 2.]])
    """
    data = x.data if isinstance(x, Tensor) else x
    if not isinstance(data, EnsembleArray):
        raise TypeError(f"members takes an ensemble; got {type(data).__name__}.")
    if isinstance(x, Tensor) and x.node is not None:
        raise refusal(x, "members", "ol.members(t.detach()), or run the function through ol.vmap")
    stacked = np.moveaxis(data.members, 0, axis)
    return Tensor(stacked) if isinstance(x, Tensor) else stacked


# vmap ---------------------------------------------------------------------------------------------

Axes = int | None | Sequence[Any]


@explained_transform
def vmap(f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """Vectorize `f`: return a function that maps it over an axis of its arguments at once.

    Parameters
    ----------
    f : callable
        A function of arrays, written for one example.
    in_axes : int, None, or a tuple of them
        The axis of the examples in each positional argument; None for an argument that all
        share. Keyword arguments are shared. An argument that is a tuple, list or dict of arrays
        has one entry here for all of them, or a tuple, list or dict of its own.
    out_axes : int, or a tuple of them
        Position of that axis in each result.

    Returns
    -------
    callable
        Returns arrays for arrays, also where `f` makes Tensors of them (as ``ol.nn.functional``
        does); Tensors for Tensors, and where a gradient is needed, such as that of a weight in a
        closure. It can be differentiated and nested in another `vmap`.

    Raises
    ------
    EnsembleError
        If `f` needs a single value for all examples (``if x > 0``, ``float(x)``), or calls a
        function without a batching rule, which is named.

    Notes
    -----
    A random draw in `f` is shared by all examples; pass draws as an argument if they differ.

    Examples
    --------
    The gradient of the loss of each example separately:

    >>> import numpy as np
    >>> import optlab as ol
    >>> def loss(w, x, y):
    ...     return (w @ x - y) ** 2
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 3.0])
    >>> ol.vmap(ol.grad(loss), in_axes=(None, 0, 0))(np.array([2.0, 2.0]), X, y)
    array([[2., 0.],
           [0., 4.]])
    """
    check_callable(f, "vmap")

    @wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = _axes_of_arguments(in_axes, args)
        found = [_lengths(x, a, args) for x, a in zip(args, axes, strict=True)]
        lengths = {length for one in found for length in one}
        if not lengths:
            raise ValueError("vmap needs an argument with an axis to run along: in_axes are None.")
        if len(lengths) > 1:
            raise ValueError(_length_mismatch(f, args, axes, found))
        count = lengths.pop()
        # The tape's clock also numbers the level: an inner vmap opens later than an outer one.
        since = next(versions.clock)
        level = saved_tensors.vmap_level(since)
        y = f(*[_entered(x, a, level) for x, a in zip(args, axes, strict=True)], **kwargs)
        results = _tensors_in(y)
        _share_outer_nodes(results, since, level, count)
        left = _left(y, out_axes, level, count)
        given_tensors = results and _tensors_in((args, kwargs))
        return left if given_tensors else _without_tensors(left)

    return mapped


def _length_mismatch(f: Any, args: Any, axes: Any, found: list[list[int]]) -> str:
    """Return the message for axes of different lengths, with the `in_axes` probably meant."""
    import inspect  # only here: its import is slow

    try:
        names = [f" ({name})" for name in inspect.signature(f).parameters]
    except (TypeError, ValueError):
        names = []
    names = names if len(names) == len(args) else [""] * len(args)
    lines = []
    for i, (x, axis) in enumerate(zip(args, axes, strict=True)):
        for part, label, a in _labelled(x, axis, f"argument {i}{names[i]}"):
            lines.append(f"  {label}, shape {np.shape(part)}: {np.shape(part)[a]} along axis {a}")
    # The most frequent length counts the examples; of equally frequent, the last (the data).
    counts = Counter(length for lengths in reversed(found) for length in set(lengths))
    count = counts.most_common(1)[0][0]
    meant = [
        axis if set(lengths) == {count} else None for axis, lengths in zip(axes, found, strict=True)
    ]
    in_axes = ", ".join(map(repr, meant)) + "," * (len(meant) == 1)
    return (
        "vmap runs along axes of one length, one element an example; these differ:\n"
        + "\n".join(lines)
        + f"\nGive None for what all examples share: vmap(f, in_axes=({in_axes})) runs {count} "
        "examples."
    )


def _labelled(x: Any, axis: Any, label: str) -> list[tuple[Any, str, int]]:
    """Return the mapped arrays of an argument, with their names and axes."""
    parts = _paired(x, axis)
    if parts is None:
        return [] if axis is None else [(x, label, axis)]
    keys = x if isinstance(x, dict) else range(len(x))
    return [
        one
        for key, (part, a) in zip(keys, parts, strict=True)
        for one in _labelled(part, a, f"{label}[{key!r}]")
    ]


def _axes_of_arguments(axes: Axes, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return one entry of `in_axes` an argument."""
    if not isinstance(axes, (tuple, list)):
        return (axes,) * len(args)
    if len(axes) != len(args):
        raise ValueError(f"in_axes has {len(axes)} entries for {len(args)} arguments.")
    return tuple(axes)


def _paired(x: Any, axis: Any) -> list[tuple[Any, Any]] | None:
    """Return the parts of a tuple, list or dict with their axes; None for a single array."""
    if isinstance(x, dict):
        return [(x[key], axis[key] if isinstance(axis, dict) else axis) for key in x]
    if isinstance(x, (tuple, list)):
        several = axis if isinstance(axis, (tuple, list)) else (axis,) * len(x)
        if len(several) != len(x):
            raise ValueError(f"{len(several)} axes were given for {len(x)} arrays.")
        return list(zip(x, several, strict=True))
    return None


def _built_like(x: Any, parts: list[Any]) -> Any:
    """Return the parts in a tuple, list or dict like `x`."""
    if isinstance(x, dict):
        return dict(zip(x, parts, strict=True))
    return getattr(type(x), "_make", type(x))(parts)


def _lengths(x: Any, axis: Any, args: Any) -> list[int]:
    """Return the lengths of the mapped axes of one argument."""
    parts = _paired(x, axis)
    if parts is not None:
        return [length for part, a in parts for length in _lengths(part, a, args)]
    if axis is None:
        return []
    if not -np.ndim(x) <= axis < np.ndim(x):
        raise ValueError(
            f"vmap was to run along axis {axis} of an argument of shape {np.shape(x)}; give "
            "in_axes=None for what all examples share."
        )
    return [np.shape(x)[axis]]


def _entered(x: Any, axis: Any, level: int) -> Any:
    """Return an argument as an ensemble, containers part by part."""
    parts = _paired(x, axis)
    if parts is not None:
        return _built_like(x, [_entered(part, a, level) for part, a in parts])
    if axis is None:
        return x
    x = x if isinstance(x, Tensor) else as_array(x)
    return _on_tape(ENTER, x, axis=axis, level=level)


def _left(y: Any, axis: Any, level: int, count: int) -> Any:
    """Return a result as an array of all examples, containers part by part."""
    parts = _paired(y, axis)
    if parts is not None:
        return _built_like(y, [_left(part, a, level, count) for part, a in parts])
    if isinstance(y, ComplexTensor):
        return y.mapped(lambda part: _left(part, axis, level, count))
    if y is None:
        raise TypeError("a function given to vmap returned None. (A missing return?)")
    if axis is None:
        raise EnsembleError("out_axes=None would need one result; every example has its own.")
    return _on_tape(LEAVE, y, axis=axis, level=level, count=count)


def _tensors_in(y: Any) -> list[Tensor]:
    if isinstance(y, Tensor):
        return [y]
    if isinstance(y, ComplexTensor):
        y = (y.real, y.imag)
    if isinstance(y, dict):
        y = y.values()
    elif not isinstance(y, (tuple, list)):
        return []
    return [t for part in y for t in _tensors_in(part)]


def _without_tensors(y: Any) -> Any:
    """Return results with arrays in place of the Tensors that need no gradient."""
    if isinstance(y, Tensor):
        return y if y.node is not None else y.data
    if isinstance(y, (tuple, list, dict)):
        parts = y.values() if isinstance(y, dict) else y
        return _built_like(y, [_without_tensors(part) for part in parts])
    return y


def _share_outer_nodes(results: list[Tensor], since: int, level: int, count: int) -> None:
    """Insert a `SHARE` node between nodes recorded inside and the outer nodes that they read.

    An outer Tensor (a weight in a closure, or an argument with in_axes=None) has one gradient, the
    sum over the members; inside, each member has its own.
    """
    inside = [t.node for t in results if t.node is not None and t.node.order > since]
    seen = set(inside)
    shared: dict[Any, nodes.Node] = {}
    for node in inside:  # grows
        if node.operation is ENTER and node.static["level"] == level:
            continue  # its input is outside, and the rule of ENTER sums nothing
        edges = list(node.edges)
        for i, edge in enumerate(edges):
            if edge is None:
                continue
            if edge.order > since:
                if edge not in seen:
                    seen.add(edge)
                    inside.append(edge)
                continue
            if edge not in shared:
                shared[edge] = _share_node(edge, since + len(shared) / 2**20, level, count)
            edges[i] = shared[edge]
        node.edges = tuple(edges)


def _share_node(edge: Any, order: float, level: int, count: int) -> nodes.Node:
    """Return a node that passes `edge` to the inside; its order is above all outer nodes."""
    node = nodes.Node(
        SHARE, (edge,), (), SHARE.recipe(1), {"level": level, "count": count}, edge.shape,
        edge.dtype, source=edge.source,
    )  # fmt: skip
    node.order = order  # type: ignore[assignment]
    return node
