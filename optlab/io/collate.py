"""Collating examples into batches, with Tensors in place of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import is_on_device
from optlab.backend.device import brought_here
from optlab.backend.dtypes import is_floating
from optlab.backend.text import comma_list


def default_collate(examples: Sequence[Any]) -> Any:
    """Collate examples into a batch: stack each component along a new first axis.

    Numbers, arrays and Tensors become arrays; text stays a list; dicts, lists and tuples are
    collated recursively (and tuples become lists). Python's numbers become float32 if one of them
    is a float, bool if all are bool, else int64. Arrays take NumPy's common dtype.

    Raises
    ------
    TypeError, ValueError
        If the examples do not match, such as a number and an array, or if there are none; the
        message names the position.

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
    return _collate(examples, "")


def _collate(parts: list[Any], where: str) -> Any:
    at = where and f" at {where}"
    kind = _kind(parts, at)
    if kind == "array":
        return _stack([x.data if isinstance(x, Tensor) else np.asarray(x) for x in parts], at)
    if kind == "number":
        return _stack_numbers(parts, at)
    if kind == "text":
        return parts
    first = parts[0]
    if kind == "dict":
        if any(set(part) != set(first) for part in parts):
            raise ValueError(f"examples have different keys{at}.")
        return {key: _collate([part[key] for part in parts], f"{where}[{key!r}]") for key in first}
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        given = comma_list(sorted(map(str, lengths)))
        raise ValueError(f"examples have different numbers of parts{at}: {given}.")
    return [_collate([part[i] for part in parts], f"{where}[{i}]") for i in range(len(first))]


#: Kinds that can be collated; a NumPy scalar is an array, though some are also Python floats.
_KINDS: dict[str, tuple[type, ...]] = {
    "array": (np.ndarray, np.generic, Tensor),
    "number": (bool, int, float),
    "text": (str, bytes),
    "dict": (Mapping,),
    "list": (list, tuple),
}


def _kind(parts: list[Any], at: str) -> str:
    """Return the common kind of all parts; raise if there is none, or several."""
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


def _stack(arrays: list[Any], at: str) -> Any:
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


def _stack_numbers(parts: list[Any], at: str) -> Any:
    """Stack Python's numbers in the widest kind among them."""
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
    """Replace Tensors in `x` by arrays, the form in which it is sent between processes."""
    return map_instances(x, Tensor, lambda t: t.data)


def with_tensors(x: Any) -> Any:
    """Replace arrays in `x` by Tensors."""
    return map_instances(x, (np.ndarray, Tensor), _detach)


def _detach(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach()
    return Tensor(brought_here(x)) if x.dtype.kind in "biufc" or is_floating(x.dtype) else x


def map_instances(x: Any, kind: Any, new: Callable[[Any], Any]) -> Any:
    """Apply `new` to every instance of `kind` in `x`, within lists, tuples and dicts as well."""
    if isinstance(x, kind):
        return new(x)
    if isinstance(x, dict):
        return {key: map_instances(part, kind, new) for key, part in x.items()}
    if isinstance(x, (list, tuple)):
        make: Any = getattr(type(x), "_make", type(x))  # a named tuple
        return make([map_instances(part, kind, new) for part in x])
    return x
