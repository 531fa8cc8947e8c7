"""Guarded arrays: a stand-in for CuPy's arrays that runs anywhere.

Like a CuPy array, a guarded array refuses implicit conversion to NumPy, and refuses NumPy arrays as
further operands of a function or an operator; Python numbers and NumPy scalars are allowed, and
NumPy arrays as indices. Results are always arrays, also where NumPy would return a scalar. It
supports NumPy's functions except some that CuPy lacks.
"""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

import optlab as ol
from optlab.backend.device import Device, register

#: NumPy's functions that CuPy lacks; tests/backend/test_cupy_wheel.py holds this and the table of
#: arguments against the real package.
MISSING = {
    np.block, np.busday_count, np.busday_offset, np.datetime_as_string, np.einsum_path,
    np.geomspace, np.histogram_bin_edges, np.insert, np.is_busday, np.isnat, np.nanpercentile,
    np.nanquantile, np.polyder, np.polydiv, np.polyint, np.spacing, np.vecdot, np.linalg.diagonal,
    np.linalg.matrix_norm, np.linalg.multi_dot, np.linalg.outer, np.linalg.svdvals,
    np.linalg.tensordot, np.linalg.trace, np.linalg.vecdot, np.linalg.vector_norm,
}  # fmt: skip
MISSING |= {getattr(np, name) for name in ("matvec", "unstack", "vecmat") if hasattr(np, name)}

_FFT = [
    getattr(np.fft, kind + name)
    for kind in ("", "i", "r", "ir") for name in ("fft", "fft2", "fftn")
]  # fmt: skip
_LIKE = (np.empty_like, np.full_like, np.ones_like, np.zeros_like)
_EXTREMES = (np.amax, np.amin, np.max, np.min, np.nanmax, np.nanmin)

#: Arguments that functions of CuPy lack (where the first has another name there, it is not given
#: by name), and these functions.
_LACKING: dict[tuple[str, ...], tuple[Any, ...]] = {
    ("A", "hermitian", "rtol"): (np.linalg.matrix_rank,),
    ("a",): (np.array_str, np.histogram, np.linalg.matrix_power),
    ("ar1", "ar2"): (np.intersect1d, np.union1d),
    ("arr",): (np.extract, np.take_along_axis),
    ("arrays",): (np.concat, np.stack),
    ("ary",): (np.ediff1d,),
    ("axis",): (np.lexsort, np.trim_zeros),
    ("correction", "mean", "where"): (np.nanstd, np.nanvar, np.std, np.var),
    ("count",): (np.unpackbits,),
    ("device",): (np.astype, np.linspace, *_LIKE),
    ("hermitian",): (np.linalg.svd,),
    ("hermitian", "rtol"): (np.linalg.pinv,),
    ("initial", "where"): (*_EXTREMES, np.nanprod, np.nansum, np.prod, np.sum),
    ("keepdims",): (np.count_nonzero,),
    ("kind",): (np.isin,),
    ("kind", "order"): (np.argpartition, np.partition),
    ("m",): (np.cov, np.flip, np.fliplr, np.flipud, np.rot90),
    ("max", "min"): (np.clip,),
    ("mode",): (np.take,),
    ("obj",): (np.delete,),
    ("order", "stable"): (np.argsort, np.sort),
    ("out",): (*_FFT, np.fft.hfft, np.fft.ihfft),
    ("shape",): (np.reshape, np.unravel_index),
    ("sorted",): (np.unique,),
    ("subok",): (np.broadcast_arrays, np.broadcast_to, np.copy),
    ("upper",): (np.linalg.cholesky,),
    ("weights",): (np.percentile, np.quantile),
    ("where",): (np.all, np.any, np.mean, np.nanmean),
    ("x",): (np.corrcoef, np.linalg.matrix_transpose),
    ("x1", "x2"): (np.linalg.matmul,),
}

#: The same, by function.
LACKING: dict[Any, set[str]] = {
    function: set(names) for names, functions in _LACKING.items() for function in functions
}

#: The ufuncs whose methods CuPy has.
METHODS = {
    "reduce": {np.add, np.multiply}, "accumulate": {np.add, np.multiply}, "reduceat": {np.add},
    "at": {np.add, np.subtract, np.maximum, np.minimum},
}  # fmt: skip

#: Functions that a NumPy scalar as the left operand of an array calls.
COMPARING = {
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
}  # fmt: skip

#: Functions that copy NumPy's data to the device, if called with ``like=`` one of our arrays.
CREATING = {np.array, np.asarray}

#: Functions that read no values: CuPy arrays leave them to NumPy itself.
READ_ONLY = {np.shape, np.ndim, np.size, np.result_type, np.iscomplexobj, np.isrealobj}


class MixedArraysError(TypeError):
    """A guarded array met a NumPy array."""


class Flags:
    """Memory flags that a device reports; writability is not among them."""

    def __init__(self, array: np.ndarray) -> None:
        self.c_contiguous = array.flags.c_contiguous
        self.f_contiguous = array.flags.f_contiguous
        self.fnc = array.flags.fnc
        self.owndata = array.flags.owndata


class GuardedArray:
    """An array on its own device."""

    __hash__ = None  # type: ignore[assignment]

    #: The guarded arrays that own memory, by the hidden array.
    owners: WeakValueDictionary[int, GuardedArray] = WeakValueDictionary()

    def __init__(self, array: Any) -> None:
        self.hidden = root = np.asarray(array)
        while isinstance(root.base, np.ndarray):
            root = root.base
        self.base: GuardedArray | None = None
        if root is not self.hidden:
            owner = GuardedArray.owners.get(id(root))
            self.base = GuardedArray(root) if owner is None else owner
        elif id(root) not in GuardedArray.owners:
            GuardedArray.owners[id(root)] = self

    shape = property(lambda self: self.hidden.shape)
    dtype = property(lambda self: self.hidden.dtype)
    ndim = property(lambda self: self.hidden.ndim)
    size = property(lambda self: self.hidden.size)
    nbytes = property(lambda self: self.hidden.nbytes)
    itemsize = property(lambda self: self.hidden.itemsize)
    strides = property(lambda self: self.hidden.strides)
    flags = property(lambda self: Flags(self.hidden))
    T = property(lambda self: GuardedArray(self.hidden.T))

    def get(self) -> np.ndarray:
        """Return a copy as a NumPy array: the only explicit conversion, as in CuPy."""
        return self.hidden.copy()

    def item(self, *args: Any) -> Any:
        return self.hidden.item(*args)

    def tolist(self) -> Any:
        return self.hidden.tolist()

    def __float__(self) -> float:
        return float(self.hidden)

    def __int__(self) -> int:
        return int(self.hidden)

    def __index__(self) -> int:
        return operator.index(self.hidden)

    def __bool__(self) -> bool:
        return bool(self.hidden)

    def __len__(self) -> int:
        return len(self.hidden)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise MixedArraysError("a guarded array does not become a NumPy array by itself: use get()")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(_is_foreign(x) for x in inputs) or ufunc in MISSING:
            return NotImplemented
        if ufunc in COMPARING:  # NumPy scalars take part in comparisons as 0-d arrays
            inputs = tuple(x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in inputs)
        out = kwargs.pop("out", None)
        if out is not None:
            if not all(isinstance(x, GuardedArray) for x in out):
                raise MixedArraysError(f"{ufunc.__name__} writes into a NumPy array")
            kwargs["out"] = tuple(x.hidden for x in out)
        if method != "__call__" and ufunc not in METHODS.get(method, {ufunc}):
            raise NotImplementedError(f"{ufunc.__name__}.{method} on a device")
        for name in ("where", "initial"):
            if name in kwargs and not any(kwargs[name] is x for x in (True, None, np._NoValue)):
                raise TypeError(f"{ufunc.__name__} on a device takes no argument {name!r}")
        if method == "at":
            target, index, *rest = inputs
            _closed_to_numpy((target, *rest))
            ufunc.at(target.hidden, _index(index), *map(_open, rest))
            return None
        _closed_to_numpy(inputs)
        result = getattr(ufunc, method)(*map(_open, inputs), **kwargs)
        return out[0] if out is not None else _guarded(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(_is_foreign(x) for x in _all_in((args, kwargs))):
            return NotImplemented
        if function in MISSING:
            return NotImplemented
        for name in LACKING.get(function, ()):
            if name in kwargs:
                raise TypeError(f"{function.__name__} on a device takes no argument {name!r}")
        if function is np.where and not hasattr(args[0], "dtype"):
            raise MixedArraysError("on a device the condition of np.where is an array")
        if function not in READ_ONLY and function not in CREATING:
            _closed_to_numpy(_all_in((args, kwargs)))
        result = function(*_opened(args), **_opened(kwargs))
        return result if function in READ_ONLY else _guarded(result)

    def __getitem__(self, index: Any) -> GuardedArray:
        return GuardedArray(self.hidden[_index(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        _closed_to_numpy((value,))
        self.hidden[_index(index)] = _open(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "setflags":  # CuPy's arrays are always writable
            raise AttributeError(name)
        method = getattr(self.hidden, name)
        if not callable(method):
            return _guarded(method)  # the parts of complex numbers are arrays

        def called(*args: Any, **kwargs: Any) -> Any:
            _closed_to_numpy(_all_in((args, kwargs)))
            return _guarded(method(*_opened(args), **_opened(kwargs)))

        return called

    def __repr__(self) -> str:
        return f"GuardedArray({self.hidden!r})"


def _is_foreign(x: Any) -> bool:
    """Return whether another array type should handle the call: a Tensor, an ensemble."""
    return hasattr(x, "__array_ufunc__") and not isinstance(
        x, (np.ndarray, np.generic, GuardedArray)
    )


def _closed_to_numpy(values: Any) -> None:
    for x in values:
        if isinstance(x, np.ndarray):
            raise MixedArraysError(f"a guarded array met a NumPy array of shape {x.shape}")


def _open(x: Any) -> Any:
    return x.hidden if isinstance(x, GuardedArray) else x


def _index(index: Any) -> Any:
    return tuple(map(_open, index)) if isinstance(index, tuple) else _open(index)


def _opened(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        parts = [_opened(part) for part in x]
        return type(x)._make(parts) if hasattr(x, "_make") else type(x)(parts)
    if isinstance(x, dict):
        return {key: _opened(value) for key, value in x.items()}
    return _open(x)


def _all_in(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in _all_in(part)]
    return [x]


def _guarded(x: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        return GuardedArray(x)
    if isinstance(x, (tuple, list)):
        parts = [_guarded(part) for part in x]
        return type(x)._make(parts) if hasattr(x, "_make") else type(x)(parts)
    return x


def _operator(function: Any, reflected: bool) -> Any:
    def method(self: GuardedArray, other: Any) -> Any:
        if _is_foreign(other):
            return NotImplemented
        _closed_to_numpy((other,))
        pair = (_open(other), self.hidden) if reflected else (self.hidden, _open(other))
        return _guarded(function(*pair))

    return method


def _unary(function: Any) -> Any:
    return lambda self: _guarded(function(self.hidden))


def _in_place(function: Any) -> Any:
    def method(self: GuardedArray, other: Any) -> GuardedArray:
        _closed_to_numpy((other,))
        self.hidden = function(self.hidden, _open(other))
        return self

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_",
              "xor", "lt", "le", "gt", "ge", "eq", "ne"):  # fmt: skip
    _function = getattr(operator, _name)
    _plain = _name.rstrip("_")
    setattr(GuardedArray, f"__{_plain}__", _operator(_function, reflected=False))
    if _name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(GuardedArray, f"__r{_plain}__", _operator(_function, reflected=True))
        setattr(GuardedArray, f"__i{_plain}__", _in_place(getattr(operator, f"i{_plain}")))

for _name in ("neg", "pos", "abs", "invert"):
    setattr(GuardedArray, f"__{_name}__", _unary(getattr(operator, _name)))


# The device ---------------------------------------------------------------------------------------


def asarray(x: Any, dtype: Any = None) -> GuardedArray:
    """Copy data to the device, like ``cupy.asarray``."""
    return GuardedArray(np.array(_open(x), dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> GuardedArray:
    return GuardedArray(np.full(shape, _open(fill_value), dtype))


def arange(*args: Any, dtype: Any = None) -> GuardedArray:
    return GuardedArray(np.arange(*args, dtype=dtype))


#: ``ol.set_device("guarded")``: the functions of its module that the engine calls by name.
MODULE = SimpleNamespace(asarray=asarray, full=full, arange=arange)
register(Device("guarded", MODULE, GuardedArray))


# Helpers of tests: creation and inspection --------------------------------------------------------


def guarded(x: Any = (1.0, -2.0, 3.0)) -> GuardedArray:
    """Return numbers on the device."""
    return GuardedArray(np.array(x, dtype=float))


def leaf(x: Any = (1.0, -2.0, 3.0)) -> ol.Tensor:
    """Return a leaf Tensor on the device that needs a gradient."""
    return ol.to_tensor(guarded(x), requires_grad=True)


def values(x: Any) -> Any:
    """Return the content of a device array, or of a Tensor of one; fail for anything else."""
    array = x.data if isinstance(x, ol.Tensor) else x
    assert isinstance(array, GuardedArray), type(array)
    return array.hidden.tolist()
