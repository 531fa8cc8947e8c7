"""`ComplexTensor`: complex numbers as a pair of real Tensors, which ``np.fft`` gives.

The tape knows real numbers only. A spectrum is the pair of its parts, and a function of it is a
function of two real arrays: so gradients are with respect to real and imaginary part, exact to
every order, and no convention of complex derivatives is needed. A loss is a real number, made by
``np.abs(z)``, ``z.real``, ``z.imag`` or an inverse transform.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from optlab.autograd.operation import COMPOSED
from optlab.autograd.tape import base
from optlab.autograd.tensor.conversions import refusal
from optlab.autograd.tensor.tensor import Tensor, raw

_numpy: Any = np  # its type stubs do not know Tensors


class ComplexTensor:
    """Complex numbers on the tape: the results of ``np.fft.rfft`` and ``np.fft.fft`` of a Tensor.

    Parameters
    ----------
    real, imag : Tensor
        The parts, of one shape.

    Notes
    -----
    It takes part in arithmetic (with Tensors, arrays and numbers, complex ones too), matrix
    products, sums and means, indexing, the functions that move elements, ``np.abs``, ``np.angle``,
    ``np.conj``, ``np.real``, ``np.imag``, ``np.exp``, and every function of ``np.fft``. Gradients
    are those of the real and the imaginary part as two real numbers. (PyTorch's gradient of a
    complex number z with a real loss L is the same pair, dL/d(Re z) + i dL/d(Im z).)

    Examples
    --------
    The power spectrum of a signal, and its gradient:

    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, 2.0, 0.0, -1.0], requires_grad=True)
    >>> power = np.abs(np.fft.rfft(x)) ** 2
    >>> power
    Tensor([ 4., 10.,  0.], dtype=float32, requires_grad=True)
    >>> np.sum(power).backward()
    >>> x.grad
    Tensor([ 6., 10.,  2., -2.], dtype=float32)
    """

    __slots__ = ("imag", "real")

    #: The tape hands an operation with such an operand to `answer`.
    is_pair = True

    def __init__(self, real: Any, imag: Any) -> None:
        self.real = real
        self.imag = imag

    # What it is ---------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(np.shape(self.real))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.size(raw(self.real)))

    @property
    def dtype(self) -> Any:
        """complex64 or complex128."""
        return np.dtype(np.complex128 if self.real.dtype == np.float64 else np.complex64)

    @property
    def requires_grad(self) -> bool:
        """Whether a part needs a gradient."""
        return any(getattr(part, "node", None) is not None for part in (self.real, self.imag))

    @property
    def T(self) -> ComplexTensor:
        """The axes in reverse order."""
        return self.mapped(np.transpose)

    def mapped(self, function: Callable[[Any], Any]) -> ComplexTensor:
        """Apply a function to both parts."""
        return ComplexTensor(function(self.real), function(self.imag))

    def conj(self) -> ComplexTensor:
        """Return the complex conjugate."""
        return ComplexTensor(self.real, -self.imag)

    conjugate = conj

    def detach(self) -> ComplexTensor:
        """Return the values without the tape."""
        return self.mapped(lambda part: part.detach() if isinstance(part, Tensor) else part)

    def numpy(self) -> np.ndarray:
        """Return the values as a complex array, detached from the tape."""
        z: np.ndarray = self._values()
        return z

    def item(self) -> complex:
        """Return the only element as a Python number."""
        return complex(self._values().item())

    def _values(self) -> Any:
        a, b = (
            part.numpy() if isinstance(part, Tensor) else part for part in (self.real, self.imag)
        )
        return (a + 1j * b).astype(self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.requires_grad:
            raise refusal(self, "making a NumPy array of it", ".numpy() where none is wanted")
        return np.asarray(self._values(), dtype=dtype)

    def __repr__(self) -> str:
        body = np.array2string(self._values(), separator=", ", prefix="ComplexTensor(")
        asks = ", requires_grad=True" if self.requires_grad else ""
        return f"ComplexTensor({body}, dtype={self.dtype}{asks})"

    def __len__(self) -> int:
        return len(self.real)

    def __getitem__(self, index: Any) -> ComplexTensor:
        return self.mapped(lambda part: part[index])

    def __bool__(self) -> bool:
        raise TypeError("a complex number is no condition; compare np.abs(z) or z.real.")

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name in ("backward", "grad", "register_hook"):
            raise AttributeError(
                f"a ComplexTensor has no {name}: gradients start from a real number. Make one of "
                "it: np.sum(np.abs(z) ** 2), z.real, z.imag or np.fft.irfft(z)."
            )
        if name in _METHODS:
            return lambda *args, **kwargs: self.mapped(
                lambda part: getattr(part, name)(*args, **kwargs)
            )
        raise AttributeError(
            f"a ComplexTensor has no attribute {name!r}; its parts z.real and z.imag are Tensors."
        )

    # Arithmetic ---------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if method == "reduce" and ufunc is np.add:
            return _numpy.sum(*inputs, **{"axis": 0, **kwargs})
        if method != "__call__" or kwargs or name not in _ARITHMETIC:
            given = f" with {', '.join(kwargs)}" if kwargs and method == "__call__" else ""
            raise _not_covered(f"{name}{'' if method == '__call__' else f'.{method}'}{given}")
        return _ARITHMETIC[name](*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _ABOUT:
            return _ABOUT[function](*args, **kwargs)
        if function in _OF_PARTS:
            return ComplexTensor(
                function(*_part(args, "real"), **_part(kwargs, "real")),
                function(*_part(args, "imag"), **_part(kwargs, "imag")),
            )
        if getattr(function, "__module__", "") == "numpy.fft" and function in COMPOSED:
            return COMPOSED[function](*args, **kwargs)
        raise _not_covered(function.__name__)

    def __add__(self, other: Any) -> Any:
        return _add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _add(self, -pair_of(other))

    def __rsub__(self, other: Any) -> Any:
        return _add(-self, other)

    def __mul__(self, other: Any) -> Any:
        return _multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _divide(other, self)

    def __matmul__(self, other: Any) -> Any:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(other, self)

    def __pow__(self, exponent: Any) -> Any:
        return _power(self, exponent)

    def __neg__(self) -> ComplexTensor:
        return self.mapped(np.negative)

    def __pos__(self) -> ComplexTensor:
        return self

    def __abs__(self) -> Any:
        return _absolute(self)

    def __eq__(self, other: Any) -> Any:
        return _plain(np.equal)(self, other)

    def __ne__(self, other: Any) -> Any:
        return _plain(np.not_equal)(self, other)


def _not_covered(name: str) -> TypeError:
    return TypeError(
        f"np.{name} is not covered for complex numbers on the tape. Write it with the parts: "
        "z.real and z.imag are Tensors."
    )


def _is_real(x: Any) -> bool:
    """Return whether a number, array or Tensor is real."""
    return not isinstance(x, ComplexTensor) and np.result_type(raw(x)).kind != "c"


def pair_of(x: Any) -> ComplexTensor:
    """Return complex numbers as a pair; the imaginary part of real ones is zeros."""
    if isinstance(x, ComplexTensor):
        return x
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
    if isinstance(x, (int, float, complex)):
        return ComplexTensor(x.real, x.imag)
    if x.dtype.kind == "c":
        return ComplexTensor(+x.real, +x.imag)
    x = x.astype(float) if x.dtype.kind in "iub" else x
    return ComplexTensor(x, np.zeros_like(raw(x)))


def _add(a: Any, b: Any) -> ComplexTensor:
    a, b = pair_of(a), pair_of(b)
    return ComplexTensor(a.real + b.real, a.imag + b.imag)


def _subtract(a: Any, b: Any) -> ComplexTensor:
    return _add(a, -pair_of(b))


def _bilinear(product: Callable[[Any, Any], Any]) -> Callable[[Any, Any], ComplexTensor]:
    """Return a product of complex numbers, made of products of real ones."""

    def of_pairs(a: Any, b: Any) -> ComplexTensor:
        if _is_real(a):
            return pair_of(b).mapped(lambda part: product(a, part))
        if _is_real(b):
            return pair_of(a).mapped(lambda part: product(part, b))
        a, b = pair_of(a), pair_of(b)
        return ComplexTensor(
            product(a.real, b.real) - product(a.imag, b.imag),
            product(a.real, b.imag) + product(a.imag, b.real),
        )

    return of_pairs


_multiply = _bilinear(np.multiply)
_matmul = _bilinear(np.matmul)


def _divide(a: Any, b: Any) -> ComplexTensor:
    if _is_real(b):
        return pair_of(a).mapped(lambda part: np.divide(part, b))
    b = pair_of(b)
    size = b.real * b.real + b.imag * b.imag
    return _divide(_multiply(a, b.conj()), size)


def _power(z: Any, exponent: Any) -> Any:
    if not isinstance(z, ComplexTensor) or not isinstance(exponent, (int, np.integer)):
        raise _not_covered("power with other exponents than whole numbers")
    if exponent < 0:
        return _divide(1.0, _power(z, -exponent))
    if exponent == 0:
        return _add(z * 0.0, 1.0)
    return reduce(_multiply, [z] * int(exponent))


def _absolute(z: Any) -> Any:
    return np.hypot(z.real, z.imag)


def _angle(z: Any, deg: bool = False) -> Any:
    angle = np.arctan2(z.imag, z.real)
    return np.degrees(angle) if deg else angle


def _exp(z: Any) -> ComplexTensor:
    size = np.exp(z.real)
    return ComplexTensor(size * np.cos(z.imag), size * np.sin(z.imag))


def _where(condition: Any, x: Any, y: Any) -> ComplexTensor:
    x, y = pair_of(x), pair_of(y)
    condition = raw(condition)
    return ComplexTensor(
        _numpy.where(condition, x.real, y.real), _numpy.where(condition, x.imag, y.imag)
    )


def _joined(function: Any) -> Callable[..., ComplexTensor]:
    def join(arrays: Any, *args: Any, **kwargs: Any) -> ComplexTensor:
        pairs = [pair_of(x) for x in arrays]
        return ComplexTensor(
            function([z.real for z in pairs], *args, **kwargs),
            function([z.imag for z in pairs], *args, **kwargs),
        )

    return join


def _plain(function: Any) -> Callable[..., Any]:
    """Return a function without a derivative on the values."""

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [x._values() if isinstance(x, ComplexTensor) else raw(x) for x in args]
        return function(*values, **kwargs)

    return call


def _part(x: Any, which: str) -> Any:
    """Return one part of every pair in nested arguments."""
    if isinstance(x, ComplexTensor):
        return getattr(x, which)
    if isinstance(x, dict):
        return {key: _part(value, which) for key, value in x.items()}
    return x if not isinstance(x, tuple) else tuple(_part(value, which) for value in x)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide,
    "matmul": _matmul, "power": _power, "negative": lambda z: -z, "positive": lambda z: z,
    "conjugate": lambda z: z.conj(), "absolute": _absolute, "exp": _exp,
    "square": lambda z: _multiply(z, z), "equal": _plain(np.equal),
    "not_equal": _plain(np.not_equal), "isfinite": _plain(np.isfinite),
    "isnan": _plain(np.isnan), "isinf": _plain(np.isinf),
}  # fmt: skip

#: Functions that apply to the parts one by one.
_OF_PARTS: set[Any] = {
    np.sum, np.mean, np.cumsum, np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis,
    np.expand_dims, np.squeeze, np.flip, np.roll, np.broadcast_to, np.take, np.tile, np.repeat,
    np.diff, np.diagonal, np.trace, np.copy, np.fft.fftshift, np.fft.ifftshift,
}  # fmt: skip

_ABOUT: dict[Any, Callable[..., Any]] = {
    np.real: lambda z: z.real, np.imag: lambda z: z.imag, np.angle: _angle,
    np.shape: lambda z: z.shape, np.ndim: lambda z: z.ndim, np.size: lambda z: z.size,
    np.iscomplexobj: lambda z: True, np.isrealobj: lambda z: False, np.where: _where,
    np.concatenate: _joined(np.concatenate), np.stack: _joined(np.stack),
    np.dot: _bilinear(_numpy.dot), np.allclose: _plain(np.allclose),
    np.isclose: _plain(np.isclose), np.array_equal: _plain(np.array_equal),
}  # fmt: skip

_METHODS = frozenset(
    "sum mean cumsum reshape ravel transpose swapaxes squeeze take repeat diagonal trace "
    "copy".split()
)


def answer(operation: Any, inputs: Any, static: dict[str, Any]) -> Any:
    """Run an operation that met a pair beside a Tensor: ``t * np.fft.rfft(x)``."""
    if operation.name in _ARITHMETIC and not static:
        return _ARITHMETIC[operation.name](*inputs)
    if operation.name == "where":
        return _where(*inputs)
    raise _not_covered(operation.name)


base.answer_pairs_with(answer)
