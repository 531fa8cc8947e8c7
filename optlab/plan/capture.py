"""Capture: run a function once on arrays that record the operations on them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.tape.backward import backpropagate
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tensor.tensor import SilentDetachError, Tensor
from optlab.backend.user_frames import lines_outside
from optlab.plan.plan import Plan
from optlab.plan.tracer import Captured, CaptureError, Tracer, refusal, value_of, written

#: Functions whose operator computes the same bits, and is faster on single numbers.
_AS_OPERATOR: dict[Any, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
    np.negative: "neg", np.matmul: "matmul",
}  # fmt: skip


def _binary(name: str) -> Any:
    def forward(self: CaptureArray, other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented
        return self._write(name, None, (self, other), {})

    def backward(self: CaptureArray, other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented
        return self._write(name, None, (other, self), {})

    return forward, backward


class CaptureArray(Captured):
    """An array that computes, and records every operation in a plan."""

    __slots__ = ()

    def _write(self, name: str, function: Any, args: Any, kwargs: Any) -> CaptureArray:
        array: CaptureArray = self.tracer.write(name, function, args, kwargs)
        return array

    #: `optlab.autograd.operation.as_single_operation` makes functions of optlab one instruction.
    records_calls = True
    #: It is a view of nothing.
    base = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes, fixed in a plan."""
        return self.value.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """Type of the elements, fixed in a plan."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.value.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.value.size  # type: ignore[no-any-return]

    @property
    def T(self) -> CaptureArray:
        """The axes in reverse order."""
        return self._write("transpose", np.transpose, (self,), {})

    def reshape(self, *shape: Any) -> CaptureArray:
        """Return the same elements in another shape."""
        wanted = shape[0] if len(shape) == 1 else shape
        if wanted == self.shape:
            return self
        return self._write("reshape", np.reshape, (self, wanted), {})

    def astype(self, dtype: Any) -> CaptureArray:
        """Return the values in another dtype."""
        return self._write("astype", np.astype, (self, dtype), {})

    def sum(self, axis: Any = None, keepdims: bool = False) -> CaptureArray:
        """Sum elements."""
        return self._write("sum", np.sum, (self,), {"axis": axis, "keepdims": keepdims})

    def mean(self, axis: Any = None, keepdims: bool = False) -> CaptureArray:
        """Average elements."""
        return self._write("mean", np.mean, (self,), {"axis": axis, "keepdims": keepdims})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise refusal(f"the method or attribute .{name} of an array")

    def __pos__(self) -> CaptureArray:
        return self._write("positive", np.positive, (self,), {})

    def __abs__(self) -> CaptureArray:
        return self._write("absolute", np.absolute, (self,), {})

    def __invert__(self) -> CaptureArray:
        return self._write("invert", np.invert, (self,), {})

    def __floordiv__(self, other: Any) -> CaptureArray:
        return self._write("floor_divide", np.floor_divide, (self, other), {})

    def __getitem__(self, index: Any) -> CaptureArray:
        return self._write("getitem", operator.getitem, (self, index), {})

    def __neg__(self) -> CaptureArray:
        return self._write("neg", None, (self,), {})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        if kwargs.get("out") is not None:
            raise refusal(f"{ufunc.__name__} writes into an existing array")
        if method == "__call__" and ufunc in _AS_OPERATOR and not kwargs:
            return self._write(_AS_OPERATOR[ufunc], None, inputs, {})
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self._write(ufunc.__name__, function, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if Tensor in types or any(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        if function in (np.ones_like, np.zeros_like, np.shape, np.ndim, np.size):
            return function(*[value_of(x) for x in args], **kwargs)
        if function is np.asarray:  # a constant beside captured arrays
            return function(*args, **kwargs)
        return self._write(function.__name__, function, args, kwargs)

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __matmul__, __rmatmul__ = _binary("matmul")
    __mod__, __rmod__ = _binary("mod")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __lt__, __gt__ = _binary("lt")[0], _binary("gt")[0]
    __le__, __ge__ = _binary("le")[0], _binary("ge")[0]
    __eq__, __ne__ = _binary("eq")[0], _binary("ne")[0]
    __hash__ = object.__hash__

    def __pow__(self, exponent: Any) -> CaptureArray:
        return self._write("power", np.power, (self, exponent), {})

    def __rpow__(self, base: Any) -> CaptureArray:
        return self._write("power", np.power, (base, self), {})

    def __bool__(self) -> bool:
        raise refusal("a branch on a value")

    def __float__(self) -> float:
        raise refusal("a value taken out as a Python number")

    __int__ = __index__ = item = tolist = __float__

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise refusal("a value taken out as a NumPy array")

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise refusal("writing into a captured array")


def capture(f: Callable[..., Any], *args: Any) -> Plan:
    """Capture what `f` does to arrays like `args`.

    The function runs twice; capture refuses if operations or constants differ (a counter, fresh
    random numbers), or if something depends on values (a branch, a value converted to a Python
    number).

    Parameters
    ----------
    f : callable
        Maps arrays to one array or a tuple of arrays.
    args : arrays
        Examples of its inputs; the plan is for their shapes and dtypes.

    Raises
    ------
    CaptureError
        If a plan cannot do what `f` does. The message names the reason and the line.

    Examples
    --------
    >>> import numpy as np
    >>> plan = capture(lambda x: x * x + 1, np.float64(2))
    >>> float(plan(np.float64(3)))
    10.0
    >>> capture(lambda x: x if x > 0 else -x, np.float64(2))
    Traceback (most recent call last):
        ...
    optlab.plan.CaptureError: a branch on a value (...): a plan cannot repeat it.
    """
    first, second = _once(f, args), _once(f, args)
    if not same_writing(first, second):
        raise CaptureError(
            f"{getattr(f, '__name__', 'the function')} did different things when it ran twice on "
            "the same inputs (a counter, fresh random numbers?): a plan cannot repeat it."
        )
    tracer, outputs, single = first
    return Plan([(x.shape, x.dtype) for x in args], tracer.instructions, outputs, single)


def _once(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Tracer, list[Any], bool]:
    tracer = Tracer(CaptureArray)
    inputs = [CaptureArray(tracer, tracer.place(), x) for x in args]
    try:
        result = f(*inputs)
    except SilentDetachError as error:
        file, line = lines_outside(error, "optlab")[-1]
        raise CaptureError(
            f"a value taken out as a plain number ({file}, line {line}): a plan cannot repeat it."
        ) from error
    single = not isinstance(result, tuple)
    return tracer, [written(x) for x in ((result,) if single else result)], single


def same_writing(first: Any, second: Any) -> bool:
    """Return whether two captures recorded the same operations with the same constants."""
    (one, outputs_one, _), (two, outputs_two, _) = first, second
    if len(one.instructions) != len(two.instructions):
        return False
    return _equal(outputs_one, outputs_two) and all(
        a.name == b.name
        and a.function == b.function
        and _equal(a.arguments, b.arguments)
        and _equal(a.keywords, b.keywords)
        for a, b in zip(one.instructions, two.instructions, strict=True)
    )


def _equal(a: Any, b: Any) -> bool:
    """Return whether constants are equal: arrays by their elements, sequences part by part."""
    if isinstance(a, (tuple, list)):
        return (
            type(a) is type(b)
            and len(a) == len(b)
            and all(_equal(x, y) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, (np.ndarray, np.generic)):
        return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
    return bool(a is b or a == b or (a != a and b != b))


def capture_value_and_grad(f: Callable[..., Any], *args: Any) -> Plan:
    """Capture the value of `f` and its gradient for every argument.

    The derivative rules are plain NumPy, so running them on capture arrays records them too.

    Returns
    -------
    Plan
        Returns ``(value, gradient, gradient, ...)``.

    Raises
    ------
    CaptureError
        As in `capture`.

    Examples
    --------
    >>> import numpy as np
    >>> plan = capture_value_and_grad(lambda x, y: x * x * y, np.float64(2), np.float64(5))
    >>> [float(number) for number in plan(np.float64(3), np.float64(1))]
    [9.0, 6.0, 9.0]
    """

    def both(*inputs: Any) -> tuple[Any, ...]:
        tensors = [Tensor(x, Leaf(x.shape, x.dtype)) for x in inputs]
        value = f(*tensors)
        if not isinstance(value, Tensor) or value.node is None:
            raise CaptureError("the value does not depend on the inputs.")
        seed = np.ones_like(value.data)
        gradients = backpropagate(
            value.node, seed if seed.ndim else seed[()], targets=[t.node for t in tensors]
        )
        return value.data, *(
            np.zeros_like(t.data)[()] if g is None else g
            for t, g in zip(tensors, gradients, strict=True)
        )

    return capture(both, *args)
