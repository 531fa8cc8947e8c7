"""Arrays of NumPy that a captured call was given: they compute, and every operation is recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.backend.ensemble import EnsembleArray
from optlab.backend.user_frames import called_by_user
from optlab.plan.calls.recording.numbers import NumberNeededError
from optlab.plan.capture import CaptureArray

#: Functions that make arrays for the user, who may write into them.
_LIKE = (np.zeros_like, np.ones_like, np.empty_like, np.full_like)

#: Functions that write into their first argument.
_WRITE_TO_FIRST = (
    np.copyto, np.put, np.putmask, np.place, np.fill_diagonal, np.put_along_axis,
)  # fmt: skip

#: Attributes that are part of the key of a plan.
_FIXED = frozenset(["itemsize", "nbytes", "strides", "real", "imag"])

#: Methods that write into the array.
_WRITES = ("fill", "put", "sort", "partition", "byteswap", "resize", "setflags", "setfield")


def plain(x: Any) -> Any:
    """Return a plain array or number in place of a recorded one."""
    return x.value if getattr(x, "is_traced", False) else x


def outside(y: Any) -> Any:
    """Return a result, or several, with plain arrays in place of recorded ones."""
    return type(y)([plain(part) for part in y]) if type(y) in (tuple, list) else plain(y)


def is_vectorized(x: Any) -> bool:
    """Return whether `x` is an ensemble of a recorded array, as inside of ``ol.vmap``.

    What is computed of it is computed of its members, which record that themselves.
    """
    if type(x) in (tuple, list):
        return any(map(is_vectorized, x))
    if not isinstance(x, EnsembleArray):
        return False
    return getattr(x.members, "is_traced", False) or is_vectorized(x.members)


def values_in(x: Any) -> Any:
    """Return arguments with plain arrays in place of recorded ones."""
    if getattr(x, "is_traced", False):
        return x.value
    if type(x) in (tuple, list):
        return type(x)([values_in(part) for part in x])
    if type(x) is dict:
        return {name: values_in(part) for name, part in x.items()}
    return x


def _astype(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)


def _reshape(x: Any, *shape: Any, **options: Any) -> Any:
    return np.asarray(x).reshape(*shape, **options)


def _bits(function: Any) -> Any:
    def forward(self: CallArray, other: Any) -> Any:
        return self._write(function.__name__, function, (self, other), {})

    def backward(self: CallArray, other: Any) -> Any:
        return self._write(function.__name__, function, (other, self), {})

    return forward, backward


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def write(self: CallArray, other: Any) -> Any:
        self.tracer.effect(function, (self, other), {})
        return self

    return write


class CallArray(CaptureArray):
    """An array that a captured call was given, or computed with NumPy."""

    __slots__ = ()

    #: `optlab.plan.calls.recording.recorder` takes the plain array out.
    is_traced = True
    tracer: Any

    def __init__(self, tracer: Any, place: Any, value: Any) -> None:
        super().__init__(tracer, place, value)
        tracer.handed.append(self)

    is_array = True

    def _write(self, name: str, function: Any, args: Any, kwargs: Any) -> Any:
        if any(isinstance(x, EnsembleArray) for x in args):
            return NotImplemented  # the ensemble computes of its members
        return super()._write(name, function, args, kwargs)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the array for which it stands, for ``isinstance`` in code of the user."""
        return type(self.value) if called_by_user() else CallArray

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the values in another dtype."""
        if not copy and self.dtype == dtype:
            return self
        return self._write("astype", _astype, (self, dtype), {})

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the same elements in another shape."""
        return self._write("reshape", _reshape, (self, *shape), options)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Sum elements."""
        return self._write("sum", np.ndarray.sum, (self, *args), kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Average elements."""
        return self._write("mean", np.ndarray.mean, (self, *args), kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        if method == "at":
            self.tracer.owned(inputs[0])
            self.tracer.effect(ufunc.at, inputs, kwargs)
            self.tracer.was_written(inputs[0])
            return None
        if out is None:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        for array in out:
            self.tracer.owned(array, kwargs.get("where", True) is True)
        self.tracer.effect(function, inputs, {**kwargs, "out": out})
        for array in out:
            self.tracer.was_written(array)
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(one, EnsembleArray) for one in types):
            return NotImplemented
        if function in _WRITE_TO_FIRST:
            self.tracer.owned(args[0])
            self.tracer.effect(function, args, kwargs)
            self.tracer.was_written(args[0])
            return None
        if function in _LIKE:
            return self._write(function.__name__, function, args, kwargs)
        return super().__array_function__(function, types, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(np.ndarray, name, None)
        if found is None or name.startswith("_"):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        if not callable(found):
            if name not in _FIXED and called_by_user():
                self.tracer.refuse(f"the attribute .{name} of an array")
            return getattr(self.value, name)
        if name in _WRITES:
            return lambda *args, **kwargs: self.tracer.effect(found, (self, *args), kwargs)
        return lambda *args, **kwargs: self._write(name, found, (self, *args), kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.place in self.tracer.numbers:
            raise NumberNeededError
        # Functions written in C take the plain array, and what they compute is not recorded.
        self.tracer.refuse(
            "np.array(), or a function that makes a plain array of its argument (of a list: "
            "np.stack; a plain array that is written to: make it np.zeros_like(x) or ol.zeros(n); "
            "data[x] and np.take(data, x) of plain data: ol.to_tensor(data)[x], made outside),"
        )
        return np.array(self.value, dtype)

    def _number(self, call: str, function: Callable[[Any], Any]) -> Any:
        if self.place in self.tracer.numbers:
            raise NumberNeededError
        self.tracer.refuse(f"{call} of an array that changes from call to call")
        return function(self.value)

    def __bool__(self) -> bool:
        if self.place in self.tracer.numbers:
            raise NumberNeededError
        self.tracer.refuse("a branch on a value")
        return bool(self.value)

    def __float__(self) -> float:
        return self._number("float()", float)  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return self._number("int()", int)  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return self._number("an index", operator.index)  # type: ignore[no-any-return]

    def item(self, *args: Any) -> Any:
        """Return what stands for an element: a Python number that may be returned."""
        if self.place in self.tracer.numbers:
            raise NumberNeededError
        return self.tracer.item_at(self.place, self.value.item(*args), args)

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        return self._number(".tolist()", lambda x: x.tolist())

    def __repr__(self) -> str:
        self.tracer.refuse("a value printed")
        return repr(self.value)

    __str__ = __repr__

    def __deepcopy__(self, memo: Any) -> Any:
        return self._write("copy", np.array, (self,), {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.tracer.refuse("pickle of an array")
        return self.value.__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self._write("copy", np.array, (self,), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tracer.effect(operator.setitem, (self, index, value), {})

    def __pow__(self, exponent: Any) -> Any:
        # The operator computes some exponents, and numbers, by other functions than np.power.
        return self._write("power", operator.pow, (self, exponent), {})

    def __rpow__(self, base: Any) -> Any:
        return self._write("power", operator.pow, (base, self), {})

    def __floordiv__(self, other: Any) -> Any:
        return self._write("floordiv", operator.floordiv, (self, other), {})

    def __rfloordiv__(self, other: Any) -> Any:
        return self._write("floordiv", operator.floordiv, (other, self), {})

    __lshift__, __rlshift__ = _bits(np.left_shift)
    __rshift__, __rrshift__ = _bits(np.right_shift)
    __xor__, __rxor__ = _bits(np.bitwise_xor)
    __divmod__, __rdivmod__ = _bits(np.divmod)

    __iadd__, __isub__, __imul__ = _in_place("iadd"), _in_place("isub"), _in_place("imul")
    __itruediv__, __ipow__ = _in_place("itruediv"), _in_place("ipow")
