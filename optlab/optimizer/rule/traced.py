"""Hyper-parameters that are differentiated, or have one value for each example of a `vmap`."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.ensemble import EnsembleArray, EnsembleError


class TracedNumber(Tensor):
    """A Tensor of one number that behaves as a Python float does in an update rule.

    Among themselves and with numbers such Tensors are computed in float64; with an array they take
    its dtype. So nothing widens, and the values are those of a Python float, to the bit.

    Examples
    --------
    >>> import optlab as ol
    >>> beta = traced(ol.to_tensor(0.5, requires_grad=True))
    >>> (1 - beta**2).dtype, (beta * np.ones(2, "float32")).dtype
    (dtype('float64'), dtype('float32'))
    """

    __slots__ = ()

    def beside(self, dtype: Any) -> Any:
        """Return the number as a Tensor of a dtype."""
        plain = Tensor(self.data, self.node)
        return plain if plain.dtype == dtype else plain.astype(dtype)

    def rounded(self, dtype: Any) -> TracedNumber:
        """Return the number rounded to the precision of a dtype; its slope is that of before."""
        return traced(self.beside(dtype).astype(np.float64))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        result = getattr(ufunc, method)(*_demoted(inputs), **kwargs)
        if all(isinstance(x, (TracedNumber, int, float)) for x in inputs):
            return traced(result) if isinstance(result, Tensor) else result
        return result

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        names = list(kwargs)
        given = _demoted((*args, *(kwargs[name] for name in names)))
        positional = given[: len(args)]
        return function(*positional, **dict(zip(names, given[len(args) :], strict=True)))

    def __pow__(self, other: Any) -> Any:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return _power(other, self)

    def __neg__(self) -> Any:
        return np.negative(self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self != 0

    def __eq__(self, other: Any) -> bool:
        return _decided(operator.eq, self, other)

    def __ne__(self, other: Any) -> bool:
        return _decided(operator.ne, self, other)

    def __lt__(self, other: Any) -> bool:
        return _decided(operator.lt, self, other)

    def __le__(self, other: Any) -> bool:
        return _decided(operator.le, self, other)

    def __gt__(self, other: Any) -> bool:
        return _decided(operator.gt, self, other)

    def __ge__(self, other: Any) -> bool:
        return _decided(operator.ge, self, other)


def _arithmetic(ufunc: Any) -> Any:
    def forward(self: TracedNumber, other: Any) -> Any:
        return ufunc(self, other)

    def backward(self: TracedNumber, other: Any) -> Any:
        return ufunc(other, self)

    return forward, backward


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
}.items():  # fmt: skip
    _forward, _backward = _arithmetic(_ufunc)
    setattr(TracedNumber, f"__{_name}__", _forward)
    setattr(TracedNumber, f"__r{_name}__", _backward)
    setattr(TracedNumber, f"__i{_name}__", _forward)  # a number is not written to


def traced(x: Any) -> TracedNumber:
    """Return a Tensor or ensemble of one number as a traced number, in float64."""
    t = x if isinstance(x, Tensor) else Tensor(x)
    if t.dtype != np.float64:
        t = t.astype(np.float64)
    if t.shape:
        t = t.reshape(())
    return TracedNumber(t.data, t.node)


def numbers_in(x: Any) -> list[float]:
    """Return the number in a Tensor, or that of each member of an ensemble.

    Examples
    --------
    >>> numbers_in(EnsembleArray(np.array([0.5, 0.25])))
    [0.5, 0.25]
    """
    data = raw(x)
    while isinstance(data, EnsembleArray):
        data = data.members
    return [float(value) for value in np.ravel(data)]


def square_root(x: Any) -> Any:
    """Return the square root of a Python float as one, or of a traced number.

    Examples
    --------
    >>> square_root(0.25)
    0.5
    """
    return math.sqrt(x) if x.__class__ is float else np.sqrt(x)


def _demoted(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs with each traced number as a Tensor in the dtype of the arrays."""
    dtypes = [
        x.dtype for x in inputs
        if not isinstance(x, TracedNumber) and getattr(x, "dtype", None) is not None
        and x.dtype.kind not in "biu"
    ]  # fmt: skip
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    return tuple(x.beside(dtype) if isinstance(x, TracedNumber) else x for x in inputs)


def _power(a: Any, b: Any) -> Any:
    """Return a power; that of two numbers is rounded as Python rounds it."""
    if not all(isinstance(x, (TracedNumber, int, float)) for x in (a, b)):
        return np.power(a, b)
    slow = np.power(*_demoted((a, float(b) if isinstance(b, int) else b)))
    return TracedNumber(_exact_power(raw(a), raw(b)), slow.node)


def _exact_power(a: Any, b: Any) -> Any:
    for x in (a, b):
        if isinstance(x, EnsembleArray):
            # Every ensemble axis of one is broadcast against those of the other by its level.
            ones = EnsembleArray(np.ones_like(x.members), x.level)
            a, b = a * ones, b * ones
            return EnsembleArray(_exact_power(a.members, b.members), a.level)
    pairs = np.broadcast(np.asarray(a), np.asarray(b))
    found = np.array([float(x) ** float(y) for x, y in pairs])
    return found.reshape(pairs.shape)


def _decided(comparison: Any, a: Any, b: Any) -> bool:
    """Compare numbers; raise where examples of a `vmap` would take other ways."""
    result = comparison(raw(a), raw(b))
    while isinstance(result, EnsembleArray):
        result = result.members
    found = set(np.ravel(result).tolist())
    if len(found) > 1:
        raise EnsembleError(
            "an update rule chooses by a setting that differs between the examples of a vmap, "
            "which take the same operations together. Run those that differ apart."
        )
    return bool(found.pop())
