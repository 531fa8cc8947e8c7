"""Conversion of nested containers to JSON and a list of arrays, and back, without running code.

JSON's own values are unchanged (None, True, numbers, text, lists); everything else is an object
with one key that names its type: ``{"tensor": 0}`` is the Tensor with array number 0.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import on_host
from optlab.backend.call_recorder import LiveCount

_DEEPEST = 100
_SURE_IN_JSON = 2**53  # exact in every reader of JSON


class UnreadableFileError(ValueError):
    """A file is not of optlab's format, or differs from what was saved."""


class Written:
    """The arrays to write, each once, with their names."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.names: list[str] = []
        self._taken: set[str] = set()
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._path: list[int] = []

    def encoded(self, x: Any, place: tuple[Any, ...] = ()) -> Any:
        """Convert `x` to JSON and collect its arrays.

        Raises
        ------
        TypeError
            If something in `x` cannot be written; the message names its position.
        ValueError
            If `x` contains itself, or is more than 100 levels deep.
        """
        if x is None or (isinstance(x, (bool, str)) and type(x) in (bool, str)):
            return x
        if type(x) in (int, LiveCount):
            return int(x) if abs(x) <= _SURE_IN_JSON else {"int": hex(x)}
        if type(x) is float:
            return x if math.isfinite(x) else {"float": repr(x)}
        if type(x) is complex:
            return {"complex": [self.encoded(x.real), self.encoded(x.imag)]}
        if isinstance(x, Tensor):
            return {"tensor": self._number(x, x.data, place)}
        if isinstance(x, np.generic):
            return {"scalar": self._number(x, np.asarray(x), place)}
        if isinstance(x, (list, tuple, dict)):
            return self._container(x, place)
        if isinstance(x, np.ndarray):
            if isinstance(x, np.ma.MaskedArray):
                raise TypeError(
                    f"{where(place)} is a {_kind(x)}; save it.data and np.ma.getmaskarray(it) "
                    "apart, and put them together with np.ma.array(data, mask=mask)."
                )
            if type(x) is not np.ndarray:
                raise TypeError(f"{where(place)} is a {_kind(x)}; save np.asarray(it).")
            return {"array": self._number(x, x, place)}
        if hasattr(x, "__array_function__") and isinstance(on_host(x), np.ndarray):
            return {"array": self._number(x, on_host(x), place)}
        raise TypeError(
            f"{where(place)} is a {_kind(x)}, which cannot be saved. optlab.save takes Tensors, "
            "arrays, numbers, text, True, False and None, in lists, tuples and dicts; of a layer "
            "or an optimizer, save its state_dict()."
        )

    def _container(self, x: Any, place: tuple[Any, ...]) -> Any:
        plain = type(x) in (list, tuple, dict) or type(x).__name__ == "OrderedDict"
        if not plain:
            raise TypeError(
                f"{where(place)} is a {_kind(x)}, and would come back as something else. Save "
                f"{'dict' if isinstance(x, dict) else 'tuple'}(it)."
            )
        if id(x) in self._path:
            raise ValueError(f"{where(place)} contains itself, and cannot be saved.")
        if len(self._path) == _DEEPEST:
            raise ValueError(f"{where(place)} is more than {_DEEPEST} containers deep.")
        self._path.append(id(x))
        if isinstance(x, dict):
            pairs = [
                [self._key(key, place), self.encoded(value, (*place, key))]
                for key, value in x.items()
            ]
            known: Any = {"dict": pairs}
        else:
            parts = [self.encoded(part, (*place, i)) for i, part in enumerate(x)]
            known = parts if isinstance(x, list) else {"tuple": parts}
        self._path.pop()
        return known

    def _key(self, key: Any, place: tuple[Any, ...]) -> Any:
        if type(key) is tuple:
            return {"tuple": [self._key(part, place) for part in key]}
        if type(key) not in (str, int, float, bool, type(None)):
            raise TypeError(
                f"{where(place)} has the key {key!r}, a {_kind(key)}; keys must be text, numbers, "
                "or tuples of them."
            )
        return self.encoded(key, (*place, key))

    def _number(self, owner: Any, data: Any, place: tuple[Any, ...]) -> int:
        """Return the number of an array; the same Tensor or array always has the same number."""
        if id(owner) in self._numbers:
            return self._numbers[id(owner)]
        array = on_host(data)
        if not isinstance(array, (np.ndarray, np.generic)):
            raise TypeError(
                f"{where(place)} holds a {_kind(data)}, which cannot be saved; save its members "
                "one by one."
            )
        array = np.asarray(array)
        if array.dtype.hasobject:
            raise TypeError(
                f"{where(place)} is an array of Python objects (dtype object), which only a pickle "
                "could hold. Save numbers, or a list of the objects."
            )
        if array.dtype.kind not in "biufcSUmM" and not is_extension(array.dtype):
            raise TypeError(
                f"{where(place)} is an array of dtype {array.dtype}, which cannot be saved; save "
                "its fields one by one, or numbers."
            )
        self._alive.append(owner)
        self._numbers[id(owner)] = number = len(self.arrays)
        self.arrays.append(array)
        self.names.append(self._name(place, number))
        return number

    def _name(self, place: tuple[Any, ...], number: int) -> str:
        """Return a file name for a position in the structure, safe on every system."""
        words = [re.sub(r"[^A-Za-z0-9_.-]", "_", str(key)) for key in place]
        name = "/".join(word for word in words if word.strip("."))
        name = name[:200] or "value"
        file = f"{name}.npy"
        while file in self._taken:
            file = f"{name}.{number}.npy"
            name = f"{name}_"  # the name is already taken
        self._taken.add(file)
        return file


def is_extension(dtype: np.dtype) -> bool:
    """Return whether a dtype is one of the package ml_dtypes, such as bfloat16."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def where(place: tuple[Any, ...]) -> str:
    """Return a description of a position in a structure, for messages.

    Examples
    --------
    >>> where(("model", 0)), where(())
    ("what stands at ['model'][0]", 'what you save')
    """
    steps = "".join(f"[{key!r}]" for key in place)
    return f"what stands at {steps}" if steps else "what you save"


def _kind(x: Any) -> str:
    return type(x).__qualname__


def decoded(known: Any, arrays: list[Any], return_numpy: bool) -> Any:
    """Invert `Written.encoded`; Tensors need no gradient.

    Raises
    ------
    ValueError
        If `known` is not a result of that function.
    """
    return _Reader(arrays, return_numpy).decoded(known)


class _Reader:
    """Builder of a structure from JSON; equal array numbers become the same object."""

    def __init__(self, arrays: list[Any], return_numpy: bool) -> None:
        self.arrays = arrays
        self.return_numpy = return_numpy
        self.tensors: dict[int, Tensor] = {}

    def decoded(self, known: Any) -> Any:
        if known is None or isinstance(known, (bool, int, float, str)):
            return known
        if isinstance(known, list):
            return [self.decoded(part) for part in known]
        if isinstance(known, dict) and len(known) == 1:
            ((kind, value),) = known.items()
            if kind in ("tensor", "array", "scalar"):
                return self._array(kind, value)
            if kind == "tuple":
                return tuple(self.decoded(part) for part in value)
            if kind == "dict":
                return {self.decoded(key): self.decoded(part) for key, part in value}
            if kind == "int":
                return int(value, 16)
            if kind == "float":
                return float(value)
            if kind == "complex":
                return complex(*map(self.decoded, value))
        raise ValueError(f"{known!r} is nothing that optlab.save writes")

    def _array(self, kind: str, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self.arrays):
            raise ValueError(f"there is no array number {number!r}")
        array = self.arrays[number]
        if kind == "scalar":
            return array[()]
        if kind == "array" or self.return_numpy:
            return array
        if number not in self.tensors:
            self.tensors[number] = Tensor(array)
        return self.tensors[number]
