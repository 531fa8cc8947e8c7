"""Pytrees: flattening and rebuilding nested containers of arrays.

Parameters often come as a dict of arrays, or a list of (weights, biases) pairs. Transforms take
such containers in place of an array, and return derivatives of the same structure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Build = Callable[[list[Any]], Any]


def is_container(x: Any) -> bool:
    """Return whether `x` is a container of arrays: a dict, or a list or tuple that is not an array.

    Nested lists of numbers with matching lengths are arrays, as in NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> is_container({"w": 1.0}), is_container([np.ones(2), 3.0]), is_container([1.0, 2.0])
    (True, True, False)
    >>> is_container([[1.0, 2.0], [3.0, 4.0]]), is_container([[1.0, 2.0], 3.0])
    (False, True)
    """
    return isinstance(x, (dict, list, tuple)) and _shape_as_array(x) is None


def _shape_as_array(x: Any) -> tuple[int, ...] | None:
    """Return the shape of nested lists of numbers; None for a container."""
    if not isinstance(x, (list, tuple)):
        return None if isinstance(x, dict) or getattr(x, "shape", None) is not None else ()
    if not x:
        return None
    first = _shape_as_array(x[0])
    if first is None or any(_shape_as_array(part) != first for part in x):
        return None
    return (len(x), *first)


def flatten(x: Any) -> tuple[list[Any], Build]:
    """Return the leaves of `x`, in order, and a function that rebuilds the container from others.

    Examples
    --------
    >>> import numpy as np
    >>> parts, build = flatten({"w": np.ones(2), "b": (np.float64(3), 4.0)})
    >>> len(parts), build(["a", "b", "c"])
    (3, {'w': 'a', 'b': ('b', 'c')})
    """
    if not is_container(x):
        return [x], lambda parts: parts[0]
    kind = type(x)
    keys: list[Any] = []
    shell: Any = None
    if isinstance(x, dict):
        keys, shell = list(x), x.copy()  # of the same kind: ordered, with defaults
        shell.update(dict.fromkeys(keys))
    flat = [flatten(part) for part in (x.values() if isinstance(x, dict) else x)]
    # The returned function may live long, so it holds lengths and not the parts.
    inner = [(build_part, len(parts)) for parts, build_part in flat]

    def build(parts: list[Any]) -> Any:
        built, start = [], 0
        for build_part, n in inner:
            built.append(build_part(parts[start : start + n]))
            start += n
        if shell is None:
            return kind._make(built) if hasattr(kind, "_make") else kind(built)
        new = shell.copy()
        new.update(zip(keys, built, strict=True))
        return new

    return [part for parts, _ in flat for part in parts], build


def leaf_labels(x: Any, name: str) -> list[str]:
    """Return a label for each leaf of `x`, in the order of `flatten`, as an indexing expression.

    Examples
    --------
    >>> leaf_labels({"w": 1.0, "layers": [np.ones(2), np.ones(3)]}, "net")
    ["net['w']", "net['layers'][0]", "net['layers'][1]"]
    """
    if not is_container(x):
        return [name]
    parts = x.items() if isinstance(x, dict) else enumerate(x)
    return [label for key, part in parts for label in leaf_labels(part, f"{name}[{key!r}]")]


def leaves_like(tree: Any, x: Any, what: str, owner: str) -> list[Any]:
    """Return the leaves of `x`, which must have the structure and shapes of `tree`.

    Raises
    ------
    ValueError, TypeError
        If they differ; the message calls the two `what` and `owner`.
    """
    parts, _ = flatten(tree)
    given = parts_like(tree, x, what, owner)
    for part, one in zip(parts, given, strict=True):
        if np.shape(part) != np.shape(one):
            raise ValueError(
                f"{what} must have the shape of {owner}, {np.shape(part)}; got {np.shape(one)}."
            )
    return given


def parts_like(tree: Any, x: Any, what: str, owner: str) -> list[Any]:
    """Flatten `x` by the structure of `tree`; a list at a leaf of `tree` counts as an array.

    Raises
    ------
    TypeError
        If the structures differ; the message calls the two `what` and `owner`.
    """
    if not is_container(tree):
        return [x]
    if type(x) is not type(tree):
        raise TypeError(
            f"{what} must be a container like {owner}, a {type(tree).__name__}; got "
            f"{type(x).__name__}."
        )
    if isinstance(tree, dict):
        if x.keys() != tree.keys():
            raise TypeError(f"{what} must have the keys of {owner}, {list(tree)}; got {list(x)}.")
        x, tree = [x[key] for key in tree], list(tree.values())
    if len(x) != len(tree):
        raise TypeError(f"{what} must hold {len(tree)} parts, like {owner}; got {len(x)}.")
    return [
        found
        for branch, part in zip(tree, x, strict=True)
        for found in parts_like(branch, part, what, owner)
    ]
