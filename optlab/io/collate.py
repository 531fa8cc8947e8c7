"""Collating: many examples become one batch, arrays become Tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import is_on_device
from optlab.backend.device import brought_here
from optlab.backend.dtypes import is_floating
from optlab.backend.text import comma_list


def default_collate(examples: Sequence[Any]) -> Any:
    """Put examples together: what each has at one place becomes one array, with a new first axis.

    Numbers, arrays and Tensors become arrays; text stays a list; dicts, lists and tuples are
    collated within (and tuples become lists). Python's numbers become float32 if one of them is a
    float, else int64, and bool if all are. Arrays take NumPy's common dtype.

    Raises
    ------
    TypeError, ValueError
        If the examples do not go together, as a number and an array, or if there are none; the
        message says where.

    Examples
    --------
    >>> default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': array([1., 2.], dtype=float32), 'name': ['a', 'b']}
    """
    examples = list(examples)
    if not examples:
        raise ValueError(
            "a batch without examples cannot be made. Does the batch_sampler give an empty list? "
            "Leave it out there, or give a collate_fn that takes []."
        )
    return _collated(examples, "")


def _collated(parts: list[Any], where: str) -> Any:
    at = where and f" at {where}"
    kind = _kind(parts, at)
    if kind == "array":
        return _stacked([x.data if isinstance(x, Tensor) else np.asarray(x) for x in parts], at)
    if kind == "number":
        return _numbers(parts, at)
    if kind == "text":
        return parts
    first = parts[0]
    if kind == "dict":
        if any(set(part) != set(first) for part in parts):
            raise ValueError(f"examples have different keys{at}.")
        return {key: _collated([part[key] for part in parts], f"{where}[{key!r}]") for key in first}
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        given = comma_list(sorted(map(str, lengths)))
        raise ValueError(f"examples have different numbers of parts{at}: {given}.")
    return [_collated([part[i] for part in parts], f"{where}[{i}]") for i in range(len(first))]


#: What goes together; a NumPy scalar is an array, though some are Python's floats as well.
_KINDS: dict[str, tuple[type, ...]] = {
    "array": (np.ndarray, np.generic, Tensor),
    "number": (bool, int, float),
    "text": (str, bytes),
    "dict": (Mapping,),
    "list": (list, tuple),
}


def _kind(parts: list[Any], at: str) -> str:
    """Say of which kind all parts are; refuse what is of none, or of several."""
    found: dict[str, str] = {}
    for one in dict.fromkeys(map(type, parts)):
        for kind, types in _KINDS.items():
            if issubclass(one, types):
                found.setdefault(kind, one.__name__)
                break
        else:
            raise TypeError(
                f"an example has a {one.__name__}{at}, of which no batch can be made; give "
                "numbers, arrays, text, or lists and dicts of them, or a collate_fn."
            )
    if len(found) > 1:
        kinds = comma_list(sorted(found.values()))
        raise TypeError(
            f"examples of different kinds make no batch: {kinds}{at}. Give the same from every "
            "example, such as np.float32(x) in place of a number beside arrays, or give a "
            "collate_fn."
        )
    return next(iter(found))


def _stacked(arrays: list[Any], at: str) -> Any:
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        given = comma_list(sorted(map(str, shapes)))
        raise ValueError(
            f"examples of different shape make no batch: {given}{at}. Cut or fill them to one "
            "shape, or give a collate_fn."
        )
    batch = np.stack(arrays)
    if batch.dtype.hasobject:
        raise TypeError(
            f"examples hold Python objects (dtype object){at}, of which no batch can be made; give "
            "numbers or text, or a collate_fn."
        )
    return Tensor(batch) if is_on_device(batch) else batch


def _numbers(parts: list[Any], at: str) -> Any:
    """Put Python's numbers together: the widest kind among all of them decides."""
    types = set(map(type, parts))
    dtype: type = np.int64
    if any(issubclass(one, float) for one in types):
        dtype = np.float32
    elif types == {bool}:
        dtype = np.bool_
    try:
        return np.array(parts, dtype)
    except OverflowError as error:
        largest = max(parts, key=abs)
        raise ValueError(
            f"a number of about 2**{int(largest).bit_length() - 1}{at} does not fit into "
            f"{np.dtype(dtype)}; give it as an array of floats, as text, or give a collate_fn."
        ) from error


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
