"""Nested containers of arrays: taking them apart and putting them together again.

Parameters often come as a dict of arrays, or a list of (weights, biases) pairs. Transforms take
such containers where they take an array, and give their derivatives in the same form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Build = Callable[[list[Any]], Any]


def is_container(x: Any) -> bool:
    """Say whether `x` is a container of arrays: a dict, or a list or tuple that is no array itself.

    Nested lists of plain numbers are arrays, as everywhere in NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> is_container({"w": 1.0}), is_container([np.ones(2), 3.0]), is_container([1.0, 2.0])
    (True, True, False)
    """
    if isinstance(x, dict):
        return True
    return isinstance(x, (list, tuple)) and (not x or any(_is_part(part) for part in x))


def _is_part(x: Any) -> bool:
    return getattr(x, "shape", None) is not None or is_container(x)


def flatten(x: Any) -> tuple[list[Any], Build]:
    """Give the arrays in `x`, in order, and the function that builds the same container of others.

    Examples
    --------
    >>> import numpy as np
    >>> parts, build = flatten({"w": np.ones(2), "b": (np.float64(3), 4.0)})
    >>> len(parts), build(["a", "b", "c"])
    (3, {'w': 'a', 'b': ('b', 'c')})
    """
    if not is_container(x):
        return [x], lambda parts: parts[0]
    keys = list(x) if isinstance(x, dict) else None
    flat = [flatten(part) for part in (x.values() if isinstance(x, dict) else x)]
    counts = [len(parts) for parts, _ in flat]

    def build(parts: list[Any]) -> Any:
        built, start = [], 0
        for (_, build_part), n in zip(flat, counts, strict=True):
            built.append(build_part(parts[start : start + n]))
            start += n
        if keys is None:
            return type(x)._make(built) if hasattr(type(x), "_make") else type(x)(built)
        new = x.copy()  # of the same kind: ordered, with defaults
        new.update(zip(keys, built, strict=True))
        return new

    return [part for parts, _ in flat for part in parts], build


def matching(tree: Any, x: Any, what: str, owner: str) -> list[Any]:
    """Give the parts of `x`, which must be built like `tree` and of the same shapes.

    Raises
    ------
    ValueError, TypeError
        If they differ; `what` and `owner` name the two in the message.
    """
    parts, _ = flatten(tree)
    if not is_container(tree):
        given = [x]
    else:
        if type(x) is not type(tree) or (
            list(x) != list(tree) if isinstance(tree, dict) else len(x) != len(tree)
        ):
            raise TypeError(f"{what} must be a container like {owner}; got {type(x).__name__}.")
        given, _ = flatten(x)
        if len(given) != len(parts):
            raise TypeError(
                f"{what} must hold one array for each of the {len(parts)} in {owner}; got "
                f"{len(given)}."
            )
    for part, one in zip(parts, given, strict=True):
        if np.shape(part) != np.shape(one):
            raise ValueError(
                f"{what} must have the shape of {owner}, {np.shape(part)}; got {np.shape(one)}."
            )
    return given
