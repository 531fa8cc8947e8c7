"""Comparisons with Paddle's names: ``ol.equal``, ``ol.logical_and``, ``ol.allclose``.

Of Tensors they give Tensors of truth values, where the operators (``x > y``) and NumPy's functions
give plain arrays.
"""

# Functions of this module have the names of Python's own: `all`, `any` are in `reductions`.

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.paddle_names.arguments import documented, explain_names

_numpy: Any = np  # its type stubs do not know Tensors


def _make(name: str, does: str, shown: str, numpy: Any = None, one: bool = False) -> Any:
    """Make a function that answers for every element, or pair of elements."""
    forward = numpy or getattr(np, name)

    def of_one(x: Any) -> Any:
        return forward(raw(x))

    def of_two(x: Any, y: Any) -> Any:
        return forward(raw(x), raw(y))

    function: Any = of_one if one else of_two
    function.__name__ = function.__qualname__ = name
    integers = name.startswith("bitwise")
    given = "[6, 0]" if integers else "[1.0, 0.0]"
    call = f"ol.{name}(ol.to_tensor({given})" + (
        ")" if one else f", ol.to_tensor({given[:2]}, 1]))"
    )
    dtype = "int64" if integers else "bool"
    lines = ["", "", "Examples", "--------", ">>> import optlab as ol", f">>> {call}"]
    function.__doc__ = does + "\n    ".join([*lines, f"Tensor([{shown}], dtype={dtype})", ""])
    return documented(function)


equal = _make("equal", "Return whether elements are equal.", " True, False")
not_equal = _make("not_equal", "Return whether elements differ.", "False,  True")
greater_than = _make("greater_than", "Return where ``x > y``.", "False, False", np.greater)
greater_equal = _make("greater_equal", "Return where ``x >= y``.", " True, False")
less_than = _make("less_than", "Return where ``x < y``.", "False,  True", np.less)
less_equal = _make("less_equal", "Return where ``x <= y``.", " True,  True")
logical_and = _make("logical_and", "Return where both are not 0.", " True, False")
logical_or = _make("logical_or", "Return where one is not 0, or both.", " True,  True")
logical_xor = _make("logical_xor", "Return where one is not 0, not both.", "False,  True")
logical_not = _make("logical_not", "Return where elements are 0.", "False,  True", one=True)
isnan = _make("isnan", "Return where elements are NaN.", "False, False", one=True)
isinf = _make("isinf", "Return where elements are infinite.", "False, False", one=True)
isfinite = _make("isfinite", "Return where elements are finite numbers.", " True,  True", one=True)
bitwise_and = _make("bitwise_and", "Compute ``x & y``.", "6, 0")
bitwise_or = _make("bitwise_or", "Compute ``x | y``.", "6, 1")
bitwise_xor = _make("bitwise_xor", "Compute ``x ^ y``.", "0, 1")
bitwise_not = _make("bitwise_not", "Compute ``~x``.", "-7, -1", np.invert, one=True)


@documented
def equal_all(x: Any, y: Any) -> Any:
    """Return whether two Tensors have the same shape and elements.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.equal_all(ol.ones([2]), ol.ones([2]))
    Tensor(True, dtype=bool)
    """
    return np.bool_(np.array_equal(raw(x), raw(y)))


@documented
def allclose(
    x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Return whether all elements differ by no more than ``atol + rtol * abs(y)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.allclose(ol.ones([2]), ol.ones([2]) + 1e-6)
    Tensor(True, dtype=bool)
    """
    return np.bool_(_numpy.allclose(raw(x), raw(y), rtol, atol, equal_nan))


@documented
def isclose(
    x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Return where elements differ by no more than ``atol + rtol * abs(y)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.isclose(ol.ones([2]), ol.to_tensor([1.0, 2.0]))
    Tensor([ True, False], dtype=bool)
    """
    return _numpy.isclose(raw(x), raw(y), rtol, atol, equal_nan)


@documented
def isin(x: Any, test_x: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Return which elements are among those of `test_x`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.isin(ol.to_tensor([1, 2, 3]), ol.to_tensor([2, 5]))
    Tensor([False,  True, False], dtype=bool)
    """
    return _numpy.isin(raw(x), raw(test_x), assume_unique, invert)


explain_names(globals())
