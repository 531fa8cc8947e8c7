"""An elementwise function as a program of Python floats: the fastest for a handful of elements.

A ufunc takes 400 ns on two numbers, an operator of Python 25 ns on each. Sums, products, quotients
and square roots of float64 have the same bits either way. A quotient by 0, which is infinite for
NumPy, raises ZeroDivisionError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.plan.block_capture import BlockArray
from optlab.plan.capture import same_writing
from optlab.plan.plan import OPERATORS, Instruction, Place, needed
from optlab.plan.traced_scalars import CaptureNumber
from optlab.plan.tracer import CaptureError, Tracer, written

#: Operators that give the same bits on floats; of numbers alone, powers do, too.
_OPERATORS = {name: OPERATORS[name] for name in OPERATORS if name not in ("matmul", "mod")}


def _root(x: float) -> float:
    """Return the square root as NumPy does, for numbers below 0 as well."""
    return math.sqrt(x) if x >= 0 else float(np.sqrt(x))


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else float(np.sign(x))


def float_program(
    f: Callable[[dict[str, Any], dict[str, Any]], Mapping[str, Any]],
    arrays: Sequence[str],
    numbers: Mapping[str, float],
    elements: int,
) -> tuple[Callable[..., tuple[float, ...]], list[str]]:
    """Capture an elementwise function of float64 arrays as a function of their elements.

    Parameters
    ----------
    f : callable
        Maps a dict of arrays and a dict of numbers to a dict of arrays and numbers. It runs twice.
    arrays : sequence of str
        The arrays that it gets.
    numbers : mapping of str to float
        Examples of the numbers that may differ between calls.
    elements : int
        How many elements each array has.

    Returns
    -------
    callable
        Takes the elements of all arrays, one array after another, and the numbers; returns the
        elements of all results.
    list of str
        The names of the results.

    Raises
    ------
    CaptureError
        If `f` does more than arithmetic on elements.

    Examples
    --------
    >>> def step(a, n):
    ...     velocity = 0.5 * a["v"] + a["g"]
    ...     return {"p": a["p"] - n["rate"] * velocity, "v": velocity}
    >>> run, names = float_program(step, ["p", "g", "v"], {"rate": 0.1}, 2)
    >>> run(1.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.25), names
    ((0.75, 1.75, 1.0, 1.0), ['p', 'v'])
    """
    first, second = _traced(f, arrays, numbers), _traced(f, arrays, numbers)
    if not same_writing(first, second):
        raise CaptureError("the function did different things when it ran twice.")
    tracer, values, names = first
    steps = needed(tracer.instructions, tuple(values))
    each = {Place(i) for i in range(len(arrays))} | {s.result for s in steps if s.shape is not None}
    scope: dict[str, Any] = {
        "root": _root, "sign": _sign, "maximum": np.maximum, "minimum": np.minimum,
    }  # fmt: skip

    def name(value: Any, element: int) -> str:
        if isinstance(value, Place):
            return f"v{value.number}_{element}" if value in each else f"v{value.number}"
        if type(value) in (int, float, bool) and math.isfinite(value):
            return f"({value!r})"
        if isinstance(value, float):
            scope[key := f"c{len(scope)}"] = float(value)
            return key
        raise CaptureError(f"a constant {type(value).__name__} beside arrays.")

    given = [f"v{i}_{e}" for i in range(len(arrays)) for e in range(elements)]
    given += [f"v{len(arrays) + i}" for i in range(len(numbers))]
    lines = [f"def run({', '.join(given)}):"]
    for step in steps:
        for e in range(elements if step.result in each else 1):
            lines.append(f"    {name(step.result, e)} = {_expression(step, name, e)}")
    results = [name(value, e) for value in values for e in range(elements)]
    lines.append(f"    return ({', '.join(results)},)")
    exec(compile("\n".join(lines), "<optlab float program>", "exec"), scope)
    return scope["run"], list(names)


def _traced(
    f: Callable[..., Any], arrays: Sequence[str], numbers: Mapping[str, float]
) -> tuple[Tracer, list[Any], tuple[str, ...]]:
    tracer = Tracer(BlockArray)
    given = {name: BlockArray(tracer, tracer.place(), np.ones(2)) for name in arrays}
    floats = {name: CaptureNumber(tracer, tracer.place(), x) for name, x in numbers.items()}
    with np.errstate(all="ignore"):
        result = f(given, floats)
    for label, value in result.items():
        plain = isinstance(value, (CaptureNumber, float))
        if not plain and not (isinstance(value, BlockArray) and value.dtype == np.float64):
            raise CaptureError(f"{label} is no array of float64.")
    return tracer, [written(x) for x in result.values()], tuple(result)


def _expression(step: Instruction, name: Callable[[Any, int], str], element: int) -> str:
    """Return an instruction as source, for one element."""
    args = [name(value, element) for value in step.arguments]
    function = step.function
    if step.keywords:
        raise CaptureError(f"{step.name} with options.")
    if function is None:
        if step.name == "neg":
            return f"-{args[0]}"
        if step.name in _OPERATORS:
            return f"{args[0]} {_OPERATORS[step.name]} {args[1]}"
        if step.name == "pow" and step.shape is None:
            return f"{args[0]} ** {args[1]}"
    elif function is np.sqrt:
        return f"root({args[0]})"
    elif function is np.sign:
        return f"sign({args[0]})"
    elif function is np.absolute:
        return f"abs({args[0]})"
    elif function in (np.maximum, np.minimum):
        return f"float({step.name}({', '.join(args)}))"
    elif function is np.where:
        return f"{args[1]} if {args[0]} else {args[2]}"
    raise CaptureError(f"{step.name} may have other bits on single numbers.")
