"""Elementwise functions with Paddle's names: ``ol.sqrt``, ``ol.add``, ``ol.clip``, ``ol.cast``.

Of integers, what has no integer value is float32 (the default dtype), as in Paddle: ``ol.sqrt(i)``,
``ol.divide(i, j)``, ``ol.multiply(i, 2.5)``.
"""

# Functions of this module have the names of Python's own: `abs`, `pow`, `round`.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.paddle_names.arguments import (
    cast_to,
    documented,
    dtype_of,
    explain_names,
    floating,
    matched,
)

_numpy: Any = np  # its type stubs do not know Tensors


def _example(call: str, shown: str) -> str:
    lines = ["", "", "Examples", "--------", ">>> import optlab as ol", f">>> ol.{call}", shown, ""]
    return "\n    ".join(lines)


def _of_one(
    name: str, does: str, shown: str, numpy: Any = None, at: str = "0.5", keeps: bool = False
) -> Any:
    """Make a function of one array; `keeps` if integers stay integers."""
    forward = numpy or getattr(np, name)

    def function(x: Any) -> Any:
        if keeps:
            return forward(x)
        if isinstance(x, Tensor) and x.dtype == bool:
            raise TypeError(
                f"ol.{name} takes numbers, not truth values; write x.astype('float32')."
            )
        return forward(floating(x))

    function.__name__ = function.__qualname__ = name
    example = _example(f"{name}(ol.to_tensor({at}))", f"Tensor({shown}, dtype=float32)")
    function.__doc__ = does + example
    return documented(function)


def _of_two(
    name: str,
    does: str,
    shown: str,
    numpy: Any = None,
    floats: bool = False,
    dtype: str = "float32",
) -> Any:
    """Make a function of two arrays; `floats` if integers give floating numbers."""
    forward = numpy or getattr(np, name)

    def function(x: Any, y: Any) -> Any:
        if forward is not _power:
            x, y = (floating(x), floating(y)) if floats else matched(x, y)
        return forward(x, y)

    function.__name__ = function.__qualname__ = name
    call = f"{name}(ol.to_tensor([7.0]), ol.to_tensor([2.0]))"
    function.__doc__ = does + _example(call, f"Tensor([{shown}], dtype={dtype})")
    return documented(function)


def _whole(function: Any) -> Callable[[Any], Any]:
    """Return a rounding function under which integers stay integers."""
    return lambda x: function(x) if is_floating(dtype_of(x)) else x + 0


def _power(x: Any, y: Any) -> Any:
    """Raise to a power; of integers and a whole number it is an integer, as in Paddle."""
    if type(y) is float and isinstance(raw(x), np.ndarray) and not is_floating(dtype_of(x)):
        if not y.is_integer():
            raise TypeError(
                f"ol.pow of dtype {dtype_of(x)} to the power {y}: Paddle cuts the result to "
                f"integers. Write ol.pow(x.astype('float32'), {y})."
            )
        y = int(y)
    return np.power(x, y)


abs = _of_one("abs", "Compute absolute values.", "0.5", at="-0.5", keeps=True)
acos = _of_one("acos", "Compute inverse cosines.", "0.", np.arccos, at="1.0")
acosh = _of_one("acosh", "Compute inverse hyperbolic cosines.", "0.", np.arccosh, at="1.0")
asin = _of_one("asin", "Compute inverse sines.", "0.", np.arcsin, at="0.0")
asinh = _of_one("asinh", "Compute inverse hyperbolic sines.", "0.", np.arcsinh, at="0.0")
atan = _of_one("atan", "Compute inverse tangents.", "0.", np.arctan, at="0.0")
atanh = _of_one("atanh", "Compute inverse hyperbolic tangents.", "0.", np.arctanh, at="0.0")
ceil = _of_one("ceil", "Round up to whole numbers.", "1.", _whole(np.ceil), keeps=True)
cos = _of_one("cos", "Compute cosines.", "1.", at="0.0")
cosh = _of_one("cosh", "Compute hyperbolic cosines.", "1.", at="0.0")
deg2rad = _of_one("deg2rad", "Convert degrees to radians.", "0.", at="0.0")
exp = _of_one("exp", "Compute exponentials.", "1.", at="0.0")
expm1 = _of_one("expm1", "Compute ``exp(x) - 1``, exact near 0.", "0.", at="0.0")
floor = _of_one("floor", "Round down to whole numbers.", "0.", _whole(np.floor), keeps=True)
trunc: Any = _of_one("trunc", "Round toward zero.", "0.", _whole(np.trunc), keeps=True)
frac = _of_one(
    "frac",
    "Return what is behind the decimal point.",
    "0.5",
    lambda x: x - np.trunc(x).astype(dtype_of(x)),
    keeps=True,
)
log = _of_one("log", "Compute natural logarithms.", "0.", at="1.0")
log10 = _of_one("log10", "Compute logarithms to base 10.", "0.", at="1.0")
log1p = _of_one("log1p", "Compute ``log(1 + x)``, exact near 0.", "0.", at="0.0")
log2 = _of_one("log2", "Compute logarithms to base 2.", "3.", at="8.0")
neg = _of_one("neg", "Change the sign of every element.", "-0.5", np.negative, keeps=True)
rad2deg = _of_one("rad2deg", "Convert radians to degrees.", "0.", at="0.0")
reciprocal = _of_one("reciprocal", "Compute ``1 / x``.", "2.", lambda x: 1.0 / x)
rsqrt = _of_one("rsqrt", "Compute ``1 / sqrt(x)``.", "2.", lambda x: 1.0 / np.sqrt(x), at="0.25")
sign = _of_one("sign", "Return -1, 0 or 1 by the sign of every element.", "1.", keeps=True)
sin = _of_one("sin", "Compute sines.", "0.", at="0.0")
sinh = _of_one("sinh", "Compute hyperbolic sines.", "0.", at="0.0")
sqrt = _of_one("sqrt", "Compute square roots.", "0.5", at="0.25")
square = _of_one("square", "Compute squares.", "0.25", keeps=True)
tan = _of_one("tan", "Compute tangents.", "0.", at="0.0")
tanh = _of_one("tanh", "Compute hyperbolic tangents.", "0.", at="0.0")

add = _of_two("add", "Add.", "9.")
subtract = _of_two("subtract", "Subtract `y` from `x`.", "5.")
multiply = _of_two("multiply", "Multiply.", "14.")
divide = _of_two("divide", "Divide; integers give floating numbers.", "3.5", floats=True)
floor_divide = _of_two("floor_divide", "Divide, rounded down.", "3.")
mod = _of_two("mod", "Return the remainder, with the sign of `y`.", "1.")
remainder = _of_two("remainder", "Return the remainder, with the sign of `y`.", "1.")
floor_mod = _of_two("floor_mod", "Return the remainder, with the sign of `y`.", "1.", np.remainder)
maximum = _of_two("maximum", "Return the larger of each pair; NaN wins.", "7.")
minimum = _of_two("minimum", "Return the smaller of each pair; NaN wins.", "2.")
fmax = _of_two("fmax", "Return the larger of each pair; a number wins over NaN.", "7.")
fmin = _of_two("fmin", "Return the smaller of each pair; a number wins over NaN.", "2.")
pow = _of_two("pow", "Raise `x` to the power `y`.", "49.", _power)
atan2 = _of_two("atan2", "Compute the angle of ``(y, x)``.", "1.2924...", np.arctan2)
hypot = _of_two("hypot", "Compute ``sqrt(x**2 + y**2)``.", "7.280...", floats=True)
logaddexp = _of_two("logaddexp", "Compute ``log(exp(x) + exp(y))``.", "7.0067...", floats=True)
heaviside = _of_two("heaviside", "Return 0 below 0, 1 above 0, and `y` at 0.", "1.", floats=True)
copysign = _of_two("copysign", "Give `x` the signs of `y`.", "7.", floats=True)


@documented
def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """Clip elements to the interval from `min` to `max`; None leaves a side open.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.clip(ol.to_tensor([-1.0, 0.5, 2.0]), 0, 1)
    Tensor([0. , 0.5, 1. ], dtype=float32)
    """
    if float in (type(min), type(max)):
        x = floating(x)
    if min is None and max is None:
        return +x
    return _numpy.clip(x, min, max)


@documented
def round(x: Any, decimals: int = 0) -> Any:
    """Round to a number of decimals, halves to the even neighbor.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.round(ol.to_tensor([0.5, 1.5]))
    Tensor([0., 2.], dtype=float32)
    """
    return _numpy.round(x, decimals) if is_floating(dtype_of(x)) else x + 0


@documented
def scale(x: Any, scale: Any = 1.0, bias: Any = 0.0, bias_after_scale: bool = True) -> Any:
    """Compute ``scale * x + bias``, or ``scale * (x + bias)``, in the dtype of `x`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.scale(ol.to_tensor([1.0, 2.0]), 2.0, 1.0)
    Tensor([3., 5.], dtype=float32)
    """
    if not is_floating(dtype_of(x)) and any(
        isinstance(raw(one), float) and not one.is_integer() for one in (scale, bias)
    ):
        raise TypeError(
            f"ol.scale keeps the dtype {dtype_of(x)} of x, which cannot hold {scale} * x + {bias}. "
            "Write ol.cast(x, 'float32') first."
        )
    return cast_to(x * scale + bias if bias_after_scale else (x + bias) * scale, dtype_of(x))


@documented
def lerp(x: Any, y: Any, weight: Any) -> Any:
    """Interpolate: ``x + weight * (y - x)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.lerp(ol.to_tensor([0.0]), ol.to_tensor([4.0]), 0.25)
    Tensor([1.], dtype=float32)
    """
    return x + weight * (y - x)


@documented
def add_n(inputs: Any) -> Any:
    """Add the Tensors of a list.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.add_n([ol.ones([2]), ol.ones([2]), ol.ones([2])])
    Tensor([3., 3.], dtype=float32)
    """
    if not isinstance(inputs, (list, tuple)):
        return +inputs
    first, *others = inputs
    total = +first
    for one in others:
        total = total + one
    return total


@documented
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN, and infinities by the largest and smallest numbers.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nan_to_num(ol.to_tensor([1.0, float("nan")]))
    Tensor([1., 0.], dtype=float32)
    """
    return _numpy.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@documented
def cast(x: Any, dtype: Any) -> Any:
    """Cast to another dtype; between floating dtypes the gradient passes through.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.cast(ol.to_tensor([1.7, -2.7]), "int64")
    Tensor([ 1, -2], dtype=int64)
    """
    return cast_to(x, dtype)


@documented
def increment(x: Any, value: float = 1.0) -> Any:
    """Add a number to a Tensor of one element, in place, and return it.

    Examples
    --------
    >>> import optlab as ol
    >>> steps = ol.zeros([1])
    >>> ol.increment(steps), steps
    (Tensor([1.], dtype=float32), Tensor([1.], dtype=float32))
    """
    if not isinstance(x, Tensor) or x.size != 1:
        raise TypeError(f"ol.increment takes a Tensor of one element; got {np.shape(raw(x))}.")
    x += value if is_floating(x.dtype) else int(value)
    return x


def rank(input: Any) -> Any:
    """Return the number of axes, as a Tensor; ``x.ndim`` is a number of Python.

    Parameters
    ----------
    input : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.rank(ol.ones([2, 3]))
    Tensor(2, dtype=int32)
    """
    return Tensor(np.asarray(np.ndim(raw(input)), "int32"))


def numel(x: Any) -> Any:
    """Return the number of elements, as a Tensor; ``x.size`` is a number of Python.

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numel(ol.ones([2, 3]))
    Tensor(6, dtype=int64)
    """
    return Tensor(np.asarray(np.size(raw(x)), "int64"))


def shape(input: Any) -> Any:
    """Return the lengths of the axes, as a Tensor; ``x.shape`` is a tuple of Python.

    Parameters
    ----------
    input : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.shape(ol.ones([2, 3]))
    Tensor([2, 3], dtype=int64)
    """
    return Tensor(np.asarray(np.shape(raw(input)), "int64"))


def is_tensor(x: Any) -> bool:
    """Return whether `x` is a Tensor.

    Parameters
    ----------
    x : object

    Examples
    --------
    >>> import optlab as ol
    >>> ol.is_tensor(ol.ones([2])), ol.is_tensor([1.0])
    (True, False)
    """
    return isinstance(x, Tensor)


def is_floating_point(x: Any) -> bool:
    """Return whether the dtype is floating point.

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.is_floating_point(ol.ones([2]))
    True
    """
    return is_floating(dtype_of(x))


def is_integer(x: Any) -> bool:
    """Return whether the dtype is one of integers.

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.is_integer(ol.arange(3))
    True
    """
    return bool(dtype_of(x).kind in "iu")


def get_default_dtype() -> str:
    """Return the name of the dtype of new Tensors and parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.get_default_dtype()
    'float32'
    """
    return DEFAULT_DTYPE.name


def set_default_dtype(d: Any) -> None:
    """Set the dtype of new Tensors and parameters: only float32, which it is.

    Parameters
    ----------
    d : str or dtype

    Raises
    ------
    ValueError
        For another dtype, with what to write instead.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.set_default_dtype("float32")
    """
    if dtype_named(d) != DEFAULT_DTYPE:
        raise ValueError(
            f"the default dtype is float32 and stays it; got {d!r}. Write the dtype where numbers "
            f"are made: ol.to_tensor(data, dtype='{dtype_named(d)}'), ol.zeros(shape, "
            f"'{dtype_named(d)}'), and layer.to(dtype='{dtype_named(d)}') for parameters."
        )


explain_names(globals())
