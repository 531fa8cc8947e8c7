r"""The operations of typed formulas in JavaScript, written from the derivative rules of the engine.

A page parses a formula by itself (``static/formula.js``) and puts its value and slopes together
from one function for each operation and each of its slopes. These are captured here, so that there
is one definition of every derivative, and written into ``static/formula_operations.js``; after a
rule has changed,

    python -m optlab.viz.explorer.formula_operations

writes them again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

from optlab.lab.problems.formula import CONSTANTS, COUNTS, FUNCTIONS, OVER_VECTOR
from optlab.plan import capture_value_and_grad
from optlab.plan.javascript.operations import helpers_in
from optlab.plan.javascript.unrolled import unrolled, variables

FILE = Path(__file__).parent / "static" / "formula_operations.js"

_HEAD = """\
// @ts-nocheck
// Written by optlab.viz.explorer.formula_operations from the derivative rules of the engine: of
// each operation its value, and its slopes, given the gradient g that arrives. Do not edit.
"""
_LETTERS = "abcd"


def _where(compare: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, c, d: np.where(compare(a, b), c, d)


def operations() -> dict[str, tuple[Callable[..., Any], int, int]]:
    """Return every operation: its function, how many operands it takes, and how many are compared.

    Examples
    --------
    >>> list(operations())[:6], operations()["where_lt"][1:]
    (['add', 'sub', 'mul', 'div', 'neg', 'pow'], (4, 2))
    """
    found: dict[str, tuple[Callable[..., Any], int, int]] = {
        "add": (operator.add, 2, 0), "sub": (operator.sub, 2, 0), "mul": (operator.mul, 2, 0),
        "div": (operator.truediv, 2, 0), "neg": (operator.neg, 1, 0), "pow": (operator.pow, 2, 0),
    }  # fmt: skip
    for name, function in FUNCTIONS.items():
        if function is not np.where:
            found.setdefault(function.__name__, (function, COUNTS.get(name, 1), 0))
    for name in ("lt", "le", "gt", "ge"):
        found[f"where_{name}"] = (_where(getattr(operator, name)), 4, 2)
    return found


def _written(name: str, function: Callable[..., Any], count: int, compared: int) -> str:
    """Return the entry of an operation."""
    letters = _LETTERS[:count]

    def scaled(*given: Any) -> Any:
        return given[0] * function(*given[1:])

    kind = Parameter.POSITIONAL_OR_KEYWORD
    scaled.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(letter, kind) for letter in f"g{letters}"]
    )
    plan = capture_value_and_grad(scaled, *[np.float64(0.7)] * (count + 1))
    lines, outputs = unrolled(plan, [variables(letter, ()) for letter in f"g{letters}"])
    # The slope by the factor g is the value itself.
    _, value, *slopes = [output[()].text for output in outputs]

    def arrow(given: str, text: str) -> str:
        steps = lines.read_by([text])
        if not steps:
            return f"({given}) => {text}"
        return f"({given}) => {{ {' '.join(steps)} return {text}; }}"

    of = ", ".join(letters)
    each = [arrow(f"g, {of}", text) if i >= compared else "null" for i, text in enumerate(slopes)]
    body = ",\n      ".join(each)
    head = f"  {name}: {{\n    value: {arrow(of, value)},\n"
    return f"{head}    slopes: [\n      {body},\n    ],\n  }},\n"


def javascript() -> str:
    """Return the module."""
    with np.errstate(all="ignore"):
        body = "".join(_written(name, *parts) for name, parts in operations().items())
    helpers = "\n".join(helpers_in(f"{body} power("))
    known = {
        name: "where" if function is np.where else function.__name__
        for name, function in FUNCTIONS.items()
    }
    table = ", ".join(f'{name}: ["{own}", {COUNTS.get(name, 1)}]' for name, own in known.items())
    constants = ", ".join(f"{name}: {value!r}" for name, value in CONSTANTS.items())
    return (
        f"{_HEAD}\n"
        f"/** Each function of a formula: its operation, and how many arguments it takes. */\n"
        f"export const FORMULA_FUNCTIONS = {{ {table} }};\n"
        f"export const FORMULA_CONSTANTS = {{ {constants} }};\n"
        f"export const FORMULA_OVER_VECTOR = {list(OVER_VECTOR)!r};\n\n"
        "export const FORMULA_OPERATIONS = (() => {\n"
        f"{helpers}\nreturn {{\n  power,\n{body}}};\n}})();\n"
    ).replace("'", '"')


if __name__ == "__main__":
    FILE.write_text(javascript(), encoding="utf-8")
