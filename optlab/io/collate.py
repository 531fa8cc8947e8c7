"""Collating: many examples become one batch, arrays become Tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import lies_on_device
from optlab.backend.device import brought_here
from optlab.backend.dtypes import is_floating


def default_collate(examples: Sequence[Any]) -> Any:
    """Put examples together: what each has at one place becomes one array, with a new first axis.

    Numbers, arrays and Tensors become arrays; text stays a list; dicts, lists and tuples are
    collated within (and tuples become lists). Python's floats become float32.

    Raises
    ------
    TypeError, ValueError
        If the examples do not go together; the message says where.

    Examples
    --------
    >>> default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': array([1., 2.], dtype=float32), 'name': ['a', 'b']}
    """
    return _collated(list(examples), "")


def _collated(parts: list[Any], where: str) -> Any:
    first = parts[0]
    if isinstance(first, (np.ndarray, np.generic, Tensor)):
        arrays = [_array(part) for part in parts]
        shapes = {array.shape for array in arrays}
        if len(shapes) > 1:
            raise ValueError(
                f"examples of different shape make no batch: {_listed(shapes)}"
                f"{where and ' at ' + where}. Cut or fill them to one shape, or give a collate_fn."
            )
        batch = np.stack(arrays)
        return Tensor(batch) if lies_on_device(batch) else batch
    if isinstance(first, (bool, int)):
        return np.array(parts)
    if isinstance(first, float):
        return np.array(parts, np.float32)
    if isinstance(first, (str, bytes)):
        return parts
    if isinstance(first, Mapping):
        if any(set(part) != set(first) for part in parts):
            raise ValueError(f"examples have different keys{where and ' at ' + where}.")
        return {key: _collated([part[key] for part in parts], f"{where}[{key!r}]") for key in first}
    if isinstance(first, (list, tuple)):
        lengths = {len(part) for part in parts}
        if len(lengths) > 1:
            raise ValueError(
                f"examples have different numbers of parts{where and ' at ' + where}: "
                f"{_listed(lengths)}."
            )
        return [_collated([part[i] for part in parts], f"{where}[{i}]") for i in range(len(first))]
    raise TypeError(
        f"an example has a {type(first).__name__}{where and ' at ' + where}, of which no batch can "
        "be made; give numbers, arrays, text, or lists and dicts of them, or a collate_fn."
    )


def _array(x: Any) -> Any:
    return x.data if isinstance(x, Tensor) else np.asarray(x)


def _listed(values: Any) -> str:
    return ", ".join(sorted(map(str, values)))


def with_arrays(x: Any) -> Any:
    """Give `x` with arrays in place of Tensors, which is how it travels between processes."""
    return replaced(x, Tensor, lambda t: t.data)


def with_tensors(x: Any) -> Any:
    """Give `x` with Tensors in place of arrays."""
    return replaced(x, (np.ndarray, Tensor), _detached)


def _detached(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach()
    return Tensor(brought_here(x)) if x.dtype.kind in "biufc" or is_floating(x.dtype) else x


def replaced(x: Any, kind: Any, new: Callable[[Any], Any]) -> Any:
    """Give `x` with everything of a kind replaced, in lists, tuples and dicts as well."""
    if isinstance(x, kind):
        return new(x)
    if isinstance(x, dict):
        return {key: replaced(part, kind, new) for key, part in x.items()}
    if isinstance(x, (list, tuple)):
        make: Any = getattr(type(x), "_make", type(x))  # a named tuple
        return make([replaced(part, kind, new) for part in x])
    return x
