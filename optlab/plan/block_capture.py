"""Capture for block plans: an elementwise function is traced, to be replayed block by block.

It runs on arrays that hide their shape, because the trace must be valid for blocks of any length;
operations that are not elementwise are refused. The plan itself is in `blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from optlab.plan.blocks import UFUNCS, BlockPlan
from optlab.plan.capture import CaptureArray, same_writing
from optlab.plan.plan import Instruction, Place
from optlab.plan.reductions import Reduction
from optlab.plan.traced_scalars import CaptureNumber
from optlab.plan.tracer import CaptureError, Tracer, refusal, written


class BlockArray(CaptureArray):
    """A capture array for blocks of any length; reading its shape is refused."""

    __slots__ = ()

    def _of_all(self, what: str) -> Any:
        raise refusal(f"{what} of an array, which is not the same for every block")

    @property
    def shape(self) -> Any:
        """Refused."""
        return self._of_all("the shape")

    @property
    def size(self) -> Any:
        """Refused."""
        return self._of_all("the size")

    @property
    def ndim(self) -> Any:
        """Refused."""
        return self._of_all("the number of axes")

    def __len__(self) -> int:
        return self._of_all("the length")  # type: ignore[no-any-return]

    def _in_place(self, other: Any) -> Any:
        raise refusal("writing into an array")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = __iand__ = __ior__ = _in_place

    def reduced_by(self, reduction: Reduction) -> BlockArray:
        """Record a reduction of the whole array."""
        array: BlockArray = self.tracer.write(reduction.__name__, reduction, (self,), {})
        return array

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in (np.where, np.clip):
            raise refusal(f"{function.__name__}, which is not element by element")
        return super().__array_function__(function, types, args, kwargs)


def _check(step: Instruction) -> None:
    """Refuse an operation that is not elementwise or cannot write into an array."""
    known = step.function is None or isinstance(step.function, (np.ufunc, Reduction))
    known = known or step.function in (np.where, np.clip, np.astype)
    if step.shape is not None and step.function is None:
        known = step.name in UFUNCS
    if not known:
        raise CaptureError(f"{step.name} is not element by element.")
    if isinstance(step.function, np.ufunc) and (
        step.function.nout > 1 or step.function.signature is not None or step.keywords
    ):
        raise CaptureError(f"{step.name} with several results or options.")
    for value in [*step.arguments, *(value for _, value in step.keywords)]:
        if isinstance(value, np.ndarray) or not isinstance(
            value, (Place, int, float, bool, np.bool_, type(None), np.dtype, type)
        ):
            raise CaptureError(f"{step.name} with a constant {type(value).__name__}.")


def capture_blocks(
    f: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]],
    arrays: Mapping[str, np.ndarray],
    numbers: Mapping[str, float],
) -> BlockPlan:
    """Capture an elementwise function, to be replayed in place over blocks of its arrays.

    Parameters
    ----------
    f : callable
        Maps a dict of arrays and a dict of numbers to a dict of new arrays under names of the
        first. It runs twice, and must do the same both times.
    arrays : mapping of str to array
        One-dimensional examples; only their dtypes matter.
    numbers : mapping of str to float
        Examples.

    Raises
    ------
    CaptureError
        If `f` is not elementwise, reads a shape or a value, or returns something other than arrays
        of the given dtypes.

    Examples
    --------
    >>> import numpy as np
    >>> def step(a, n):
    ...     velocity = 0.5 * a["v"] + a["g"]
    ...     return {"p": a["p"] - n["rate"] * velocity, "v": velocity}
    >>> example = np.ones(2)
    >>> plan = capture_blocks(step, {"p": example, "g": example, "v": example}, {"rate": 0.1})
    >>> print(plan)
    def prepare(n0):
        return (n0, )
    <BLANKLINE>
    def run0(a_p, a_g, a_v, t0, n0):
        multiply(0.5, a_v, out=a_v)
        add(a_v, a_g, out=a_v)
        multiply(n0, a_v, out=t0)
        subtract(a_p, t0, out=a_p)
    <BLANKLINE>
    >>> p, g, v, t = np.ones(3), np.ones(3), np.zeros(3), np.empty(3)
    >>> plan.runs[0](p, g, v, t, *plan.prepare(0.25))
    >>> p, v
    (array([0.75, 0.75, 0.75]), array([1., 1., 1.]))
    """
    first, instructions, outputs = _traced(f, arrays, numbers)
    plan = BlockPlan(arrays, list(numbers), instructions, outputs)
    dtypes = {name: value.dtype for name, value in arrays.items()}
    plan.repeats = lambda: _repeats(f, dtypes, numbers, first)
    return plan


def trace_blocks(
    f: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]],
    arrays: Mapping[str, np.ndarray],
    numbers: Mapping[str, float],
) -> tuple[list[Instruction], dict[str, Any]]:
    """Return the instructions and outputs of a function, captured as by `capture_blocks`.

    The places of arrays and numbers count from 0, in their order.
    """
    return _traced(f, arrays, numbers)[1:]


def _traced(
    f: Any, arrays: Mapping[str, Any], numbers: Mapping[str, float]
) -> tuple[Any, list[Instruction], dict[str, Any]]:
    first, second = _once(f, arrays, numbers), _once(f, arrays, numbers)
    if not same_writing(first, second):
        raise CaptureError("the function did different things when it ran twice.")
    tracer, outputs = first[0], dict(zip(first[2], first[1], strict=True))
    for step in tracer.instructions:
        _check(step)
    return first, tracer.instructions, outputs


def _repeats(f: Any, dtypes: Mapping[str, Any], numbers: Any, first: Any) -> bool:
    """Return whether a function still performs the captured operations."""
    arrays = {name: np.ones(2, dtype) for name, dtype in dtypes.items()}
    try:
        return same_writing(first, _once(f, arrays, numbers))
    except Exception:  # noqa: BLE001  # any error differs from the capture
        return False


def _once(
    f: Callable[..., Any], arrays: Mapping[str, Any], numbers: Mapping[str, float]
) -> tuple[Tracer, list[Any], tuple[str, ...]]:
    tracer = Tracer(BlockArray)
    given = {name: BlockArray(tracer, tracer.place(), x) for name, x in arrays.items()}
    floats = {name: CaptureNumber(tracer, tracer.place(), x) for name, x in numbers.items()}
    with np.errstate(all="ignore"):
        result = f(given, floats)
    for name, value in result.items():
        if not isinstance(value, BlockArray) or value.dtype != arrays[name].dtype:
            raise CaptureError(f"{name} is no array of dtype {arrays[name].dtype}.")
    return tracer, [written(x) for x in result.values()], tuple(result)
