"""Plan: the array operations of one call, in order, ready to run again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from optlab.backend.text import comma_list

#: Operators in the source of a plan: on single numbers they are faster than NumPy's functions.
OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "matmul": "@", "mod": "%",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "and": "&", "or": "|",
}  # fmt: skip


class Place(NamedTuple):
    """A value of a plan: an input, or the result of an earlier instruction."""

    number: int


class Joined(list[Any]):
    """A list of places and constants, passed to a function as a list of arrays."""


class Instruction(NamedTuple):
    """One array operation.

    Attributes
    ----------
    name : str
        Of the operator or function.
    function : callable or None
        None for an operator.
    arguments : tuple
        Places and constants, in order.
    keywords : tuple of (str, object)
        Places and constants given by name.
    result : Place
    shape, dtype
        Of the result.
    where : str
        The user's line, for messages; "" if it is not known.
    """

    name: str
    function: Callable[..., Any] | None
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    result: Place
    shape: tuple[int, ...]
    dtype: Any
    where: str = ""

    def reads(self) -> set[Place]:
        """Return the places that it reads."""
        return _places_in([*self.arguments, *(value for _, value in self.keywords)])


class Plan:
    """The array operations of one call, without the Python around them.

    Call it with inputs of the same shapes and dtypes to run them again. ``print(plan)`` shows the
    operations as a table, `source` is the code that runs.

    Parameters
    ----------
    inputs : sequence of (shape, dtype)
        Of the inputs, whose places count from 0.
    instructions : sequence of Instruction
        In order. Those whose results are not used are left out.
    outputs : sequence
        Places and constants.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.plan import capture
    >>> plan = capture(lambda x, y: 2 * x + np.exp(y), np.float64(1), np.float64(0))
    >>> print(plan)
    2 inputs, 3 operations
      v2 = 2 * v0      () float64
      v3 = exp(v1)     () float64
      v4 = v2 + v3     () float64
    return v4
    >>> float(plan(np.float64(3), np.float64(0)))
    7.0
    """

    def __init__(
        self,
        inputs: Sequence[tuple[tuple[int, ...], Any]],
        instructions: Sequence[Instruction],
        outputs: Sequence[Any],
        single: bool,
    ) -> None:
        self.signature = tuple(inputs)
        self.inputs = len(self.signature)
        self.outputs = tuple(outputs)
        self.single = single
        self.instructions = needed(instructions, self.outputs)
        self._constants: dict[str, Any] = {}
        self.source = self._write()
        scope = dict(self._constants)
        exec(compile(self.source, "<optlab plan>", "exec"), scope)
        self.replay: Callable[..., Any] = scope["replay"]

    def __call__(self, *inputs: Any) -> Any:
        """Run the operations on new inputs; the results are copies.

        Raises
        ------
        TypeError
            If an input has another shape or dtype than the plan.
        """
        given = tuple((np.shape(x), getattr(x, "dtype", type(x))) for x in inputs)
        if given != self.signature:
            wanted, got = (
                comma_list(f"{shape} {dtype}" for shape, dtype in one)
                for one in (self.signature, given)
            )
            raise TypeError(
                f"this plan is for inputs of shapes and dtypes {wanted}; got {got}. Capture the "
                "function again for these."
            )
        result = self.replay(*inputs)
        if self.single:
            return _own(result)
        return tuple([_own(x) for x in result])

    def to_javascript(self, name: str = "plan", inputs: Sequence[str] = ()) -> str:
        """Return the plan as an ES module that exports one function.

        A number is a number, and an array the list of its elements in C order; several results are
        a list of them. Sums, products, quotients, square roots, comparisons, selections and whole
        powers have the bits of NumPy; exp, log, sin and their kin are within 2 units in the last
        place.

        Parameters
        ----------
        name : str
            Of the function.
        inputs : sequence of str
            The names of its arguments; by default v0, v1, ...

        Raises
        ------
        CaptureError
            If an operation has no JavaScript; the message names it and the line.

        Examples
        --------
        >>> import numpy as np
        >>> from optlab.plan import capture
        >>> plan = capture(lambda x, y: 2 * x + np.exp(y), np.float64(1), np.float64(0))
        >>> source = plan.to_javascript("f", ["x", "y"])
        >>> print(source[source.index("export") :])
        export function f(x, y) {
          const v2 = 2 * x;
          const v3 = Math.exp(y);
          const v4 = v2 + v3;
          return v4;
        }
        <BLANKLINE>
        """
        return _write_javascript(self, name, inputs)

    def _name(self, value: Any) -> str:
        """Return the source of a place or constant."""
        if isinstance(value, Joined):
            return f"[{', '.join(map(self._name, value))}]"
        if isinstance(value, Place):
            return f"v{value.number}"
        finite = type(value) is not float or math.isfinite(value)
        if type(value) in (int, float, bool, type(None), str) and finite:
            text = repr(value)
            return f"({text})" if text.startswith("-") else text
        for name, known in self._constants.items():
            if known is value:
                return name
        label = getattr(value, "__name__", "") if callable(value) else ""
        name = label if label.isidentifier() and label not in self._constants else ""
        name = name or f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _expression(self, step: Instruction) -> str:
        arguments = [self._name(value) for value in step.arguments]
        if step.function is None:
            if len(arguments) == 1:
                return f"-{arguments[0]}"
            return f"{arguments[0]} {OPERATORS[step.name]} {arguments[1]}"
        arguments += [f"{name}={self._name(value)}" for name, value in step.keywords]
        return f"{self._name(step.function)}({', '.join(arguments)})"

    def _write(self) -> str:
        lines = [f"def replay({', '.join(f'v{i}' for i in range(self.inputs))}):"]
        lines += [
            f"    v{step.result.number} = {self._expression(step)}" for step in self.instructions
        ]
        outputs = [self._name(value) for value in self.outputs]
        lines.append(f"    return {outputs[0] if self.single else '(' + ', '.join(outputs) + ',)'}")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        body = [line.strip() for line in self.source.splitlines()[1:]]
        width = max((len(line) for line in body), default=0) + 4
        rows = [
            f"  {line:<{width}} {step.shape} {step.dtype}"
            for line, step in zip(body, self.instructions, strict=False)
        ]
        n = len(self.instructions)
        return "\n".join([f"{self.inputs} inputs, {n} operations", *rows, body[-1]])

    def __repr__(self) -> str:
        return f"<Plan of {len(self.instructions)} operations>"


#: Writes a plan in JavaScript; `optlab.plan.javascript`, which stands above, registers it.
_write_javascript: Callable[..., str]


def write_javascript_with(writer: Callable[..., str]) -> None:
    """Register the function that writes a plan in JavaScript."""
    global _write_javascript
    _write_javascript = writer


def _own(x: Any) -> Any:
    """Return an array that is not referenced elsewhere."""
    return x.copy() if isinstance(x, np.ndarray) else x


def _places_in(values: Sequence[Any]) -> set[Place]:
    """Return the places among values, and in the lists among them."""
    found = {value for value in values if isinstance(value, Place)}
    return found.union(*(_places_in(value) for value in values if isinstance(value, Joined)))


def needed(instructions: Sequence[Instruction], outputs: tuple[Any, ...]) -> list[Instruction]:
    """Return the instructions without those whose results are not used."""
    wanted = {value for value in outputs if isinstance(value, Place)}
    kept = []
    for step in reversed(instructions):
        if step.result in wanted:
            kept.append(step)
            wanted |= step.reads()
    return kept[::-1]
