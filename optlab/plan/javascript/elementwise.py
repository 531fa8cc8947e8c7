"""Block plans in JavaScript: a loop over the elements of arrays, which it changes in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optlab.plan.blocks import BlockPlan
from optlab.plan.javascript.operations import (
    FLOAT,
    Atom,
    is_elementwise,
    literal,
    options_of,
    unwritten,
)
from optlab.plan.javascript.writer import Lines
from optlab.plan.plan import Instruction, Place
from optlab.plan.tracer import CaptureError

#: Operations on the numbers of a step. A power of two of them would be Math.pow, which is not
#: Python's to the bit: a table holds it.
_ON_NUMBERS = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "truediv": "{0} / {1}",
               "neg": "-{0}", "sqrt": "Math.sqrt({0})"}  # fmt: skip


class ElementLoop(NamedTuple):
    """An elementwise function of arrays and numbers, which writes its results into the arrays.

    Attributes
    ----------
    arrays, numbers : list of str
        Their places count from 0, the arrays first.
    instructions, sums : list of Instruction
        On elements, and on the numbers alone, in order.
    outputs : dict of str to Place or float
        What is written into each array.
    """

    arrays: list[str]
    numbers: list[str]
    instructions: list[Instruction]
    outputs: dict[str, Any]
    sums: list[Instruction]

    @classmethod
    def of(cls, plan: BlockPlan) -> ElementLoop:
        """Return the loop of a block plan; raise if it reduces a whole array to a number."""
        if plan.afters:
            raise CaptureError("a reduction over all elements is no loop over them.")
        return cls(plan.arrays, plan.numbers, plan.instructions, plan.outputs, plan.sums)


def write_numbers(
    lines: Lines, steps: Sequence[Instruction], values: dict[Place, Atom], prefix: str = "n"
) -> None:
    """Write what is computed of numbers alone, and add the results to `values`.

    Raises
    ------
    CaptureError
        For a power: its bits are not the same in JavaScript.
    """
    for step in steps:
        if step.name not in _ON_NUMBERS:
            raise CaptureError(
                f"{step.name} of two settings is not the same to the bit in JavaScript: compute it "
                "in scalars(self, t, h), from which tables are made."
            )
        operands = [values[x] if isinstance(x, Place) else literal(x) for x in step.arguments]
        text = _ON_NUMBERS[step.name].format(*[x.text for x in operands])
        values[step.result] = lines.assign(f"{prefix}{step.result.number}", Atom(text, FLOAT))


def loop_source(
    plan: ElementLoop, numbers: Mapping[str, Atom], arrays: Mapping[str, str]
) -> list[str]:
    r"""Return the lines that run a function over all elements.

    Parameters
    ----------
    plan : ElementLoop
    numbers : mapping of str to Atom
        The numbers of the plan in JavaScript.
    arrays : mapping of str to str
        The names of its arrays in JavaScript.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.plan import capture_blocks
    >>> def step(a, n):
    ...     velocity = 0.5 * a["v"] + a["g"]
    ...     return {"p": a["p"] - n["rate"] * velocity, "v": velocity}
    >>> example = np.ones(2)
    >>> plan = capture_blocks(step, {"p": example, "g": example, "v": example}, {"rate": 0.1})
    >>> plan = ElementLoop.of(plan)
    >>> names = {name: name for name in "pgv"}
    >>> print("\n".join(loop_source(plan, {"rate": Atom("rate", FLOAT)}, names)))
    for (let i = 0; i < p.length; i++) {
      const v4 = 0.5 * v[i];
      const v5 = v4 + g[i];
      const v6 = rate * v5;
      const v7 = p[i] - v6;
      p[i] = v7;
      v[i] = v5;
    }
    """
    values = {Place(i): Atom(f"{arrays[name]}[i]", FLOAT) for i, name in enumerate(plan.arrays)}
    first = len(plan.arrays)
    values |= {Place(first + i): numbers[name] for i, name in enumerate(plan.numbers)}
    before, inside = Lines(), Lines()
    write_numbers(before, plan.sums, values)
    for step in plan.instructions:
        if not is_elementwise(step):
            raise unwritten(step)
        given = [values[x] if isinstance(x, Place) else literal(x) for x in _operands(step)]
        named = {
            name: values[x] if isinstance(x, Place) else literal(x)
            for name, x in options_of(step).items()
        }
        values[step.result] = inside.write(f"v{step.result.number}", step, given, named)
    written = []
    for name, x in plan.outputs.items():
        target, value = f"{arrays[name]}[i]", values[x] if isinstance(x, Place) else literal(x)
        if target != value.text:
            written.append(f"{target} = {value.text};")
    if not written:
        return []
    # An array may take the old values of another: these are read before anything is written.
    body = inside.read_by(written)
    targets = [line.partition(" =")[0] for line in written]
    late = [
        i for i, line in enumerate(written)
        if any(line.endswith(f"= {target};") for target in targets[:i])
    ]  # fmt: skip
    for i in late:
        target, _, source = written[i].rstrip(";").partition(" = ")
        body.append(f"const old{i} = {source};")
        written[i] = f"{target} = old{i};"
    loop = ["for (let i = 0; i < p.length; i++) {", *(f"  {line}" for line in [*body, *written])]
    return [*before.read_by(loop), *loop, "}"]


def _operands(step: Instruction) -> tuple[object, ...]:
    """Return the operands of an instruction, without the dtype of a cast."""
    return step.arguments[:1] if step.name == "astype" else step.arguments
