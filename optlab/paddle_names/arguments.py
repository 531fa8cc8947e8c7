"""How functions with Paddle's names read their arguments, and what they return.

`documented` makes such a function of one that is written with NumPy: Tensors in, Tensors out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.backend.foreign_arguments import hint
from optlab.backend.wrong_arguments import explained, explanation

Function = TypeVar("Function", bound=Callable[..., Any])

#: Names of arguments in NumPy and PyTorch, for what is called otherwise here.
_CALLED = {
    "dim": "axis", "dims": "axis", "axes": "perm", "keepdims": "keepdim", "input": "x", "a": "x",
    "other": "y", "b": "y", "ddof": "unbiased", "correction": "unbiased", "a_min": "min",
    "a_max": "max", "arrays": "x", "tensors": "x", "indices_or_sections": "num_or_sections",
    "reps": "repeat_times", "size": "shape", "axis1": "axis0", "axis2": "axis1", "shift": "shifts",
    "indices": "index", "split_size_or_sections": "num_or_sections", "newshape": "shape",
    "ord": "p", "k": "diagonal", "sections": "num_or_sections",
}  # fmt: skip

#: The docstring entries of the parameters that these functions share.
_ENTRIES = {
    "x": "x : Tensor or array",
    "y": "y : Tensor, array or number",
    "axis": "axis : int or sequence of int, optional\n        All axes by default.",
    "keepdim": "keepdim : bool\n        Keep the axes, with length 1 (NumPy's ``keepdims``).",
    "dtype": "dtype : str or dtype, optional\n        Of the result.",
    "shape": "shape : sequence of int",
    "index": "index : Tensor or array of int",
}


def documented(function: Function) -> Function:
    """Return a function with Paddle's arguments: Tensors in, Tensors out; arrays in, arrays out.

    A truth array counts as a Tensor, as a comparison of Tensors gives one. An argument that the
    function does not have is refused with the names of those that it has.
    """
    signature = inspect.signature(function)
    names = frozenset(signature.parameters)

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if not options.keys() <= names:
            raise _unknown_argument(function.__name__, options, signature)
        read = tuple(map(as_tensors, args))
        if options:
            options = {name: as_tensors(value) for name, value in options.items()}
        try:
            result = function(*read, **options)
        except Exception as error:
            name = f"ol.{function.__name__}"
            said = explanation(error, name, function, read, options, hint_here)
            if said is None:
                raise
            raise said from error
        if type(result) is Tensor or not _hold_tensor((*read, *options.values())):
            return result
        return _in_tensors(result)

    called.__signature__ = signature  # type: ignore[attr-defined]
    called.__doc__ = _with_parameters(function.__doc__ or "", signature)
    return called  # type: ignore[return-value]


def _with_parameters(text: str, signature: inspect.Signature) -> str:
    """Insert the Parameters section into a docstring that has none, above its examples."""
    if "----------" in text.split("Examples")[0]:
        return text
    entries = [
        _ENTRIES.get(
            name, name if one.default is one.empty else f"{name}, by default {one.default!r}"
        )
        for name, one in signature.parameters.items()
    ]
    section = "\n    ".join(["Parameters", "----------", *entries])
    return text.replace("Examples\n", f"{section}\n\n    Examples\n", 1)


def _unknown_argument(name: str, options: Any, signature: inspect.Signature) -> TypeError:
    """Return the error for an argument that a function does not have."""
    unknown = next(given for given in options if given not in signature.parameters)
    said = hint_here(unknown, options[unknown], list(signature.parameters))
    known = [
        f"{one.name}={one.default!r}" if one.default is not one.empty else one.name
        for one in signature.parameters.values()
    ]
    return TypeError(
        f"ol.{name} has no argument {unknown!r}; it is {name}({', '.join(known)})."
        f"{' ' * bool(said)}{said}"
    )


def hint_here(name: str, value: Any, known: Collection[str]) -> str:
    """Return what to write for an argument that a function with Paddle's name does not have."""
    meant = _CALLED.get(name)
    if meant not in known or meant is None:
        return hint(name, value, known)
    plain = value is None or isinstance(value, (bool, int, float, str, tuple, list))
    return f"Write {meant}={value!r}." if plain and name != "ddof" else f"Write {meant}=..."


def explain_names(face: dict[str, Any], place: str = "ol") -> None:
    """Let the functions of a module, `documented` or not, say what is wrong with their arguments.

    Parameters
    ----------
    face : dict
        The globals of the module.
    place : str
        Where users find the functions.
    """
    for name, thing in list(face.items()):
        ours = isinstance(thing, FunctionType) and thing.__module__ == face["__name__"]
        if ours and not name.startswith("_") and not hasattr(thing, "__wrapped__"):
            face[name] = explained(thing, hint_here, f"{place}.{name}")


def as_tensors(x: Any) -> Any:
    """Return truth arrays as Tensors, those in a list or a tuple too; anything else unchanged."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (list, tuple)):
        return type(x)(map(as_tensors, x)) if any(map(_is_truth, x)) else x
    return Tensor(np.asarray(x) if isinstance(x, np.bool_) else x) if _is_truth(x) else x


def _is_truth(x: Any) -> bool:
    """Return whether `x` is an array of truth values."""
    dtype = getattr(x, "dtype", None)
    return dtype == np.bool_ and not isinstance(x, Tensor) and hasattr(x, "shape")


def _hold_tensor(values: Any) -> bool:
    for x in values:
        if isinstance(x, Tensor):
            return True
        if isinstance(x, (list, tuple)) and _hold_tensor(x):
            return True
    return False


def _in_tensors(result: Any) -> Any:
    """Return arrays as Tensors, those in a list or a tuple too."""
    if isinstance(result, (list, tuple)):
        return type(result)(map(_in_tensors, result))
    if isinstance(result, Tensor) or not hasattr(result, "dtype"):
        return result
    return Tensor(np.asarray(result) if isinstance(result, np.generic) else result)


def floating(x: Any) -> Any:
    """Return a Tensor of integers or truth values in the default dtype; anything else unchanged."""
    if isinstance(x, Tensor) and x.node is None and not is_floating(x.data.dtype):
        return x.astype(DEFAULT_DTYPE)
    return x


def matched(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two operands: integers that meet a Python float become the default dtype."""
    if type(y) is float:
        return floating(x), y
    if type(x) is float:
        return x, floating(y)
    return x, y


def axes_of(axis: Any) -> Any:
    """Return axes as NumPy takes them: a tuple for a list, a number for a Tensor of one."""
    if isinstance(axis, (list, tuple)):
        return tuple(int(raw(one)) for one in axis)
    return int(raw(axis)) if isinstance(axis, Tensor) else axis


def lengths_of(shape: Any) -> Any:
    """Return the lengths of a shape, or other numbers, which may be Tensors, as Python's."""
    if isinstance(shape, (list, tuple)):
        return tuple(int(raw(one)) for one in shape)
    shape = np.asarray(raw(shape))
    return int(shape) if shape.ndim == 0 else tuple(shape.tolist())


def dtype_of(x: Any) -> Any:
    """Return the dtype of a Tensor, an array or a number."""
    dtype = getattr(x, "dtype", None)
    return np.asarray(x).dtype if dtype is None else dtype


def plain(x: Any) -> Any:
    """Return a list of numbers or a Tensor as an array, to be used as an index."""
    return np.asarray(x) if isinstance(x, (list, tuple)) else raw(x)


def checked_keepdim(keepdim: Any) -> bool:
    """Return `keepdim`, if it is True or False."""
    if not isinstance(keepdim, (bool, np.bool_)):
        raise TypeError(
            f"keepdim is True or False; got {keepdim!r}. (NumPy's dtype and out go by name here.)"
        )
    return bool(keepdim)


def cast_to(x: Any, dtype: Any) -> Any:
    """Return `x` in another dtype; the same object if it has that."""
    wanted = dtype_named(dtype)
    return x if dtype_of(x) == wanted else x.astype(wanted)
