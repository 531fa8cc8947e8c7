"""Capture: running a function once on arrays that write down what is done to them."""

from __future__ import annotations

import operator
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from optlab.autograd.tape import Leaf, backpropagate
from optlab.autograd.tensor import SilentDetachError, Tensor
from optlab.backend.callers import frame_outside, place_of
from optlab.plan.plan import Instruction, Joined, Place, Plan

_PACKAGE = str(Path(__file__).parents[1])


class CaptureRefusedError(TypeError):
    """A function does something that a plan cannot repeat; the message names it and its line."""


class _Writer:
    """The plan that is being written."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.count = 0

    def place(self) -> Place:
        self.count += 1
        return Place(self.count - 1)

    def write(self, name: str, function: Any, args: Any, kwargs: dict[str, Any]) -> CaptureArray:
        """Compute with the values, and write down what was computed."""
        arguments = tuple(_written(x) for x in args)
        keywords = tuple((k, _written(x)) for k, x in kwargs.items())
        compute = function or _COMPUTE[name]
        value = compute(*[_value(x) for x in args], **{k: _value(x) for k, x in kwargs.items()})
        if not hasattr(value, "dtype"):
            raise _refusal(f"{name} does not give one array")
        result = self.place()
        self.instructions.append(
            Instruction(
                name,
                function,
                arguments,
                keywords,
                result,
                value.shape,
                value.dtype,
            )
        )
        return CaptureArray(self, result, value)


def _value(x: Any) -> Any:
    if _is_joined(x):
        return [_value(part) for part in x]
    return x.value if isinstance(x, CaptureArray) else x


def _written(x: Any) -> Any:
    if isinstance(x, CaptureArray):
        return x.place
    if _is_joined(x):
        return Joined([_written(part) for part in x])
    return x


def _is_joined(x: Any) -> bool:
    """Say whether `x` is a list of arrays, captured ones among them, as ``np.stack`` takes."""
    return isinstance(x, (tuple, list)) and any(
        isinstance(part, CaptureArray) or _is_joined(part) for part in x
    )


def _refusal(what: str) -> CaptureRefusedError:
    """Say what cannot be captured, and in which line of the user's code."""
    frame = frame_outside("optlab", "numpy")
    where = place_of(frame)
    return CaptureRefusedError(f"{what} ({where}): a plan cannot repeat it.")


_COMPUTE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "matmul": operator.matmul, "mod": operator.mod, "neg": operator.neg, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": operator.and_, "or": operator.or_,
}  # fmt: skip


#: Functions whose operator computes the same bits, and quicker on single numbers.
_AS_OPERATOR: dict[Any, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
    np.negative: "neg", np.matmul: "matmul",
}  # fmt: skip


def _binary(name: str) -> Any:
    def forward(self: CaptureArray, other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented
        return self.writer.write(name, None, (self, other), {})

    def backward(self: CaptureArray, other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented
        return self.writer.write(name, None, (other, self), {})

    return forward, backward


class CaptureArray:
    """An array that computes, and writes every operation into a plan."""

    __slots__ = ("place", "value", "writer")

    #: Functions of ours, too, become one instruction (see `optlab.autograd.operation.as_one`).
    records_calls = True

    def __init__(self, writer: _Writer, place: Place, value: Any) -> None:
        self.writer = writer
        self.place = place
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes: fixed in a plan."""
        return self.value.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """Type of the elements: fixed in a plan."""
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
        return self.writer.write("transpose", np.transpose, (self,), {})

    def reshape(self, *shape: Any) -> CaptureArray:
        """Give the same elements in another shape."""
        wanted = shape[0] if len(shape) == 1 else shape
        if wanted == self.shape:
            return self
        return self.writer.write("reshape", np.reshape, (self, wanted), {})

    def astype(self, dtype: Any) -> CaptureArray:
        """Give the values in another dtype."""
        return self.writer.write("astype", np.astype, (self, dtype), {})

    def sum(self, axis: Any = None, keepdims: bool = False) -> CaptureArray:
        """Add up elements."""
        return self.writer.write("sum", np.sum, (self,), {"axis": axis, "keepdims": keepdims})

    def mean(self, axis: Any = None, keepdims: bool = False) -> CaptureArray:
        """Average elements."""
        return self.writer.write("mean", np.mean, (self,), {"axis": axis, "keepdims": keepdims})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusal(f"the method or attribute .{name} of an array")

    def __pos__(self) -> CaptureArray:
        return self.writer.write("positive", np.positive, (self,), {})

    def __abs__(self) -> CaptureArray:
        return self.writer.write("absolute", np.absolute, (self,), {})

    def __invert__(self) -> CaptureArray:
        return self.writer.write("invert", np.invert, (self,), {})

    def __floordiv__(self, other: Any) -> CaptureArray:
        return self.writer.write("floor_divide", np.floor_divide, (self, other), {})

    def __getitem__(self, index: Any) -> CaptureArray:
        return self.writer.write("getitem", operator.getitem, (self, index), {})

    def __neg__(self) -> CaptureArray:
        return self.writer.write("neg", None, (self,), {})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        if kwargs.get("out") is not None:
            raise _refusal(f"{ufunc.__name__} writes into an existing array")
        if method == "__call__" and ufunc in _AS_OPERATOR and not kwargs:
            return self.writer.write(_AS_OPERATOR[ufunc], None, inputs, {})
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self.writer.write(ufunc.__name__, function, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if Tensor in types or any(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        if function in (np.ones_like, np.zeros_like, np.shape, np.ndim, np.size):
            return function(*[_value(x) for x in args], **kwargs)
        if function is np.asarray:  # a constant beside captured arrays
            return function(*args, **kwargs)
        return self.writer.write(function.__name__, function, args, kwargs)

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
        return self.writer.write("power", np.power, (self, exponent), {})

    def __rpow__(self, base: Any) -> CaptureArray:
        return self.writer.write("power", np.power, (base, self), {})

    def __bool__(self) -> bool:
        raise _refusal("a branch on a value")

    def __float__(self) -> float:
        raise _refusal("a value taken out as a Python number")

    __int__ = __index__ = item = tolist = __float__

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise _refusal("a value taken out as a NumPy array")

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise _refusal("writing into a captured array")


def capture(f: Callable[..., Any], *args: Any) -> Plan:
    """Write down what `f` does to arrays like `args`.

    The function runs twice; if operations or constants differ (a counter, fresh random numbers),
    or if something depends on values (a branch, a number taken out), capture refuses.

    Parameters
    ----------
    f : callable
        Takes arrays, returns one array or a tuple of arrays.
    args : arrays
        Examples of its inputs; the plan is for their shapes and dtypes.

    Raises
    ------
    CaptureRefusedError
        If a plan could not do what `f` does. It names the reason and the line.

    Examples
    --------
    >>> import numpy as np
    >>> plan = capture(lambda x: x * x + 1, np.float64(2))
    >>> float(plan(np.float64(3)))
    10.0
    >>> capture(lambda x: x if x > 0 else -x, np.float64(2))
    Traceback (most recent call last):
        ...
    optlab.plan.capture.CaptureRefusedError: a branch on a value (...): a plan cannot repeat it.
    """
    first, second = _once(f, args), _once(f, args)
    if not _same(first, second):
        raise CaptureRefusedError(
            f"{getattr(f, '__name__', 'the function')} did different things when it ran twice on "
            "the same inputs (a counter, fresh random numbers?): a plan cannot repeat it."
        )
    writer, outputs, single = first
    return Plan([(x.shape, x.dtype) for x in args], writer.instructions, outputs, single)


def _once(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[_Writer, list[Any], bool]:
    writer = _Writer()
    inputs = [CaptureArray(writer, writer.place(), x) for x in args]
    try:
        result = f(*inputs)
    except SilentDetachError as error:
        lines = traceback.extract_tb(error.__traceback__)
        user = [line for line in lines if not line.filename.startswith(_PACKAGE)][-1]
        raise CaptureRefusedError(
            f"a value taken out as a plain number ({user.filename}, line {user.lineno}): a plan "
            "cannot repeat it."
        ) from error
    single = not isinstance(result, tuple)
    return writer, [_written(x) for x in ((result,) if single else result)], single


def _same(first: Any, second: Any) -> bool:
    """Say whether two captures wrote the same operations with the same constants."""
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
    """Compare constants: arrays by their elements, sequences part by part."""
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
    """Write down the value of `f` and its gradient for every argument.

    The derivative rules are plain NumPy, so running them on capture arrays writes them down too.

    Returns
    -------
    Plan
        Gives ``(value, gradient, gradient, ...)``.

    Raises
    ------
    CaptureRefusedError
        As `capture` does.

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
            raise CaptureRefusedError("the value does not depend on the inputs.")
        seed = np.ones_like(value.data)
        gradients = backpropagate(
            value.node, seed if seed.ndim else seed[()], targets=[t.node for t in tensors]
        )
        return value.data, *(
            np.zeros_like(t.data)[()] if g is None else g
            for t, g in zip(tensors, gradients, strict=True)
        )

    return capture(both, *args)
