"""The language of a step's formulas: rows with gaps, which the numbers of a step fill.

`step_rules` declares the rows of every optimizer. The browser receives them as plain lists and
fills them from its buffers; Python fills them from the same arrays, so that a test can compare both
with the trace.

A template has names in braces: ``p``, ``p.new``, ``update``, ``t``, ``h.*`` (hyper-parameters),
``old.*`` and ``new.*`` (slots before and after the step), ``term.*`` (named terms) and ``d.*``
(derived, from an expression of the rule). ``{+name}`` writes the sign as an operator,
``{%name}`` a percentage, ``{~name}`` two digits, ``{axis}`` the name of the coordinate. ``**``
prints bold and names the result of the line, ``^[...]`` raises.

An expression is written as in Python, such as ``sqrt(new.moment2) + h.epsilon``; functions are
those of `parsed`. Lines show the direction in which the optimizer goes: minus the gradient, minus
the momentum. So a bar and its arrow always agree.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

from optlab.viz.style.text import format_number

DIGITS = 4
"""Significant digits of a number in a line."""
_MOST = 6  # further digits, after the first, of the numbers of a sum that nearly cancel

Expression = Any
"""A number, a name, or a list: an operator and its arguments, such as ["-", 1, "h.beta1"]."""


@dataclass(frozen=True)
class Row:
    """One line of a step.

    Attributes
    ----------
    label : str
        What the line computes, such as "momentum".
    template : str
        The computation, with gaps.
    symbol : str
        The sign of the result in the formula.
    note : str
        The line in words, a template too.
    role : str
        It ties a line to an arrow and its color: gradient, memory, scale, decay, update, ...
    bars : str
        The scale of its bars: "alike" (units of the gradient), "update" (those of the map),
        "own", or "" for none.
    parts : tuple of (name, role)
        Numbers whose sum is the result; they are drawn head to tail where they have a role.
    where : Expression
        Which has to be other than 0 in a step for the line to appear.
    arrow : bool
        Whether the line is drawn on the map.
    """

    label: str
    template: str
    symbol: str = ""
    note: str = ""
    role: str = ""
    bars: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    where: Expression = 1
    arrow: bool = False

    @property
    def result(self) -> str:
        """The name of the number in bold."""
        found = re.search(r"\*\*\{[+%~]?([^}]+)\}\*\*", self.template)
        return found[1] if found else ""


@dataclass(frozen=True)
class Rule:
    """The rows of one optimizer, and the numbers that they need besides the recorded ones.

    Attributes
    ----------
    rows : tuple of Row
    derived : mapping of str to Expression
        Numbers with the names ``d.*``.
    computed : mapping of str to Expression
        Numbers that a recording has, and a page without one computes.
    tips : tuple of (Expression, str)
        Sentences about the whole step, with the condition under which they are true.
    """

    rows: tuple[Row, ...]
    derived: Mapping[str, Expression] = field(default_factory=dict)
    computed: Mapping[str, Expression] = field(default_factory=dict)
    tips: tuple[tuple[Expression, str], ...] = ()


# Expressions -------------------------------------------------------------------------------------

_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^", ast.Mod: "%",
    ast.Gt: ">", ast.Lt: "<",
}  # fmt: skip


@cache
def _tree(text: str) -> Any:
    return ast.parse(text, mode="eval").body


def parsed(text: str) -> Expression:
    """Parse an expression that is written as in Python.

    Functions are sqrt, sign, abs, max, min, ``norm(x)`` (over all coordinates) and
    ``product(k, n, x)`` (of x for k from 1 to n).

    Examples
    --------
    >>> parsed("1 - h.beta1**t")
    ['-', 1, ['^', 'h.beta1', 't']]
    >>> parsed("p if p > 0 else -p")
    ['if', ['>', 'p', 0], 'p', ['neg', 'p']]
    """
    return _as_lists(_tree(text))


def _as_lists(node: Any) -> Expression:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_as_lists(node.value)}.{node.attr}"
    if isinstance(node, ast.Subscript):  # an element of a setting that is a pair
        return f"{_as_lists(node.value)}.{_as_lists(node.slice)}"
    if isinstance(node, ast.UnaryOp):
        return ["neg" if isinstance(node.op, ast.USub) else "not", _as_lists(node.operand)]
    if isinstance(node, ast.BinOp):
        return [_BINARY[type(node.op)], _as_lists(node.left), _as_lists(node.right)]
    if isinstance(node, ast.Compare):
        [operator], [right] = node.ops, node.comparators
        return [_BINARY[type(operator)], _as_lists(node.left), _as_lists(right)]
    if isinstance(node, ast.IfExp):
        return ["if", *map(_as_lists, (node.test, node.body, node.orelse))]
    if isinstance(node, ast.BoolOp):
        both = isinstance(node.op, ast.And)
        first, *rest = map(_as_lists, node.values)
        for one in rest:
            first = ["if", first, one, 0] if both else ["if", first, 1, one]
        return first
    return [node.func.id, *map(_as_lists, node.args)]


def _power(a: float, b: float) -> float:
    try:
        found = a**b
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return math.nan if isinstance(found, complex) else found


_OPERATORS: dict[str, Callable[..., float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.nan,
    "^": _power,
    "%": lambda a, b: a % b,
    ">": lambda a, b: float(a > b),
    "<": lambda a, b: float(a < b),
    "not": lambda a: float(not a),
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "max": lambda a, b: a if a >= b or a != a else b,
    "min": lambda a, b: a if a <= b or a != a else b,
}


def evaluate(
    expression: Expression,
    look_up: Callable[[str], float],
    coordinates: Sequence[Callable[[str], float]] = (),
) -> float:
    """Evaluate an expression.

    Parameters
    ----------
    expression : Expression
    look_up : callable
        Maps a name to its number.
    coordinates : sequence of callable
        The same for every coordinate, for norms.

    Examples
    --------
    >>> evaluate(["-", 1, ["^", "beta", "t"]], {"beta": 0.5, "t": 2}.__getitem__)
    0.75
    """
    if isinstance(expression, str):
        return look_up(expression)
    if isinstance(expression, (int, float)):
        return expression
    operator, *arguments = expression
    if operator == "if":
        chosen = arguments[1 if evaluate(arguments[0], look_up, coordinates) else 2]
        return evaluate(chosen, look_up, coordinates)
    if operator == "norm":
        each = [evaluate(arguments[0], one, coordinates) for one in coordinates]
        return math.sqrt(sum(x * x for x in each))
    if operator == "product":
        name, most, factor = arguments
        found = 1.0
        for k in range(1, int(evaluate(most, look_up, coordinates)) + 1):
            bound: Mapping[str, float] = {name: k}
            found *= evaluate(factor, partial(_bound, bound, look_up), coordinates)
        return found
    return _OPERATORS[operator](*(evaluate(one, look_up, coordinates) for one in arguments))


def _bound(bound: Mapping[str, float], look_up: Callable[[str], float], name: str) -> float:
    return bound[name] if name in bound else look_up(name)


def readers(rule: Rule, values: Sequence[Mapping[str, float]]) -> list[Callable[[str], float]]:
    """Return for each coordinate a function that reads a number of the step by its name."""

    def reader(known: Mapping[str, float]) -> Callable[[str], float]:
        def look_up(name: str) -> float:
            if name.startswith("d."):
                return evaluate(rule.derived[name[2:]], look_up, found)
            if name not in known and name in rule.computed:
                return evaluate(rule.computed[name], look_up, found)
            return known.get(name, math.nan)

        return look_up

    found = [reader(known) for known in values]
    return found


# Numbers as text ---------------------------------------------------------------------------------


def _exponent(value: float) -> int:
    return int(f"{abs(value):.6e}".split("e")[1]) if value else -99


def written_sum(
    parts: Sequence[float], total: float, *, fine: bool = False
) -> tuple[list[str], str]:
    """Write numbers and their sum with the same decimals, so that what is written adds up.

    The largest part takes what is left by rounding: less than one unit of the last decimal each.
    With `fine` every number has four digits where possible, not the sum alone.

    Examples
    --------
    >>> written_sum([-151.7123, 33.1416], -118.5707)
    (['−151.7', '33.1'], '−118.6')
    >>> written_sum([1.4996, 1.4996], 2.9992)
    (['1.499', '1.5'], '2.999')
    >>> written_sum([2e7, -1.25e6], 1.875e7)
    (['2e7', '−0.125e7'], '1.875e7')
    """
    numbers = [*parts, total]
    largest = max(map(abs, numbers))
    if not all(map(math.isfinite, numbers)) or largest == 0 or not 1e-290 < largest < 1e290:
        return [format_number(one, DIGITS) for one in parts], format_number(total, DIGITS)
    top = _exponent(largest)
    least = min(_exponent(one) if one else top for one in (numbers if fine else [total]))
    decimals = max(DIGITS - 1 - top, min(DIGITS - 1 - least, _MOST - 2 * fine - top))
    power = top if top > 4 or top < -4 else 0
    places = max(0, decimals + power)
    unit = 10.0 ** (places - power) if places >= power else 1 / 10.0 ** (power - places)
    units = [math.floor(one * unit + 0.5) for one in numbers]
    at = max(range(len(parts)), key=lambda i: abs(parts[i]))
    units[at] += units[-1] - sum(units[:-1])
    texts = [_of_units(one, places, power) for one in units]
    return texts[:-1], texts[-1]


def _of_units(units: int, places: int, power: int) -> str:
    """Write a whole number of the last decimal's units."""
    digits = str(abs(units)).rjust(places + 1, "0")
    text = digits if not places else f"{digits[:-places]}.{digits[-places:]}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if units and power:
        text += f"e{power}"
    return "−" + text if units < 0 else text


def _with_operator(text: str) -> str:
    return f"− {text[1:]}" if text.startswith("−") else f"+ {text}"


# Filling -----------------------------------------------------------------------------------------

_GAP = re.compile(r"\{([+%~]?)([^}]+)\}")
_STYLED = re.compile(r"(\*\*[^*]*\*\*|\^\[[^\]]*\])")


class Piece(NamedTuple):
    """A piece of a line: its text, the name of its number if it is one, and how it stands."""

    text: str
    name: str = ""
    value: float = math.nan
    bold: bool = False
    raised: bool = False


def pieces_of(
    template: str, look_up: Callable[[str], float], axis: str = "", row: Row | None = None
) -> list[Piece]:
    """Fill the gaps of a template; those of a sum, if it is the template of a row, together."""
    together: dict[str, str] = {}
    if row is not None and row.parts:
        names = [name for name, _ in row.parts]
        parts, fine = [look_up(name) for name in names], row.role == "position"
        texts, total = written_sum(parts, look_up(row.result), fine=fine)
        together = {**dict(zip(names, texts, strict=True)), row.result: total}
    found = []
    for part in _STYLED.split(template):
        bold, raised = part.startswith("**"), part.startswith("^[")
        inside = part[2:-2] if bold else part[2:-1] if raised else part
        at = 0
        for gap in _GAP.finditer(inside):
            found.append(Piece(inside[at : gap.start()], bold=bold, raised=raised))
            at, how, name = gap.end(), gap[1], gap[2]
            if name == "axis":
                found.append(Piece(axis, bold=bold, raised=raised))
                continue
            value = look_up(name)
            if how in ("%", "~"):
                text = format_number(100 * value if how == "%" else value, 2)
            else:
                text = together.get(name) or format_number(value, DIGITS)
            text = _with_operator(text) if how == "+" else text
            found.append(Piece(text, name, value, bold, raised))
        found.append(Piece(inside[at:], bold=bold, raised=raised))
    return [piece for piece in found if piece.text]


def _as_text(pieces: Sequence[Piece]) -> str:
    return "".join(f"^{one.text}" if one.raised and at and not pieces[at - 1].raised else one.text
                   for at, one in enumerate(pieces))  # fmt: skip


def shown_rows(rule: Rule, look_up: Callable[[str], float], each: Sequence[Any]) -> list[Row]:
    """Return the rows that appear in a step."""
    return [row for row in rule.rows if evaluate(row.where, look_up, each)]


def fill_rows(
    rule: Rule, values: Sequence[Mapping[str, float]], coordinate: int, axis: str
) -> list[tuple[str, str, dict[str, float]]]:
    """Fill the rows of a rule with numbers.

    Parameters
    ----------
    rule : Rule
    values : sequence of mapping
        For each coordinate the number of every recorded name.
    coordinate : int
        The one whose rows are wanted.
    axis : str
        Its name.

    Returns
    -------
    list of (label, text, numbers)
        The numbers in the text, by their names.
    """
    each = readers(rule, values)
    found = []
    for row in shown_rows(rule, each[0], each):
        pieces = pieces_of(row.template, each[coordinate], axis, row)
        numbers = {piece.name: piece.value for piece in pieces if piece.name}
        found.append((row.label.replace("{axis}", axis), _as_text(pieces), numbers))
    return found


def fill_notes(rule: Rule, values: Sequence[Mapping[str, float]]) -> tuple[list[str], list[str]]:
    """Return the notes of the rows that appear in a step, and the sentences about the step."""
    each = readers(rule, values)
    read = each[0]
    notes = [_as_text(pieces_of(row.note, read)) for row in shown_rows(rule, read, each)]
    tips = [_as_text(pieces_of(tip, read)) for on, tip in rule.tips if evaluate(on, read, each)]
    return notes, tips


def rule_as_lists(rule: Rule) -> dict[str, Any]:
    """Return a rule as plain lists and dicts, for the browser."""
    return {
        "rows": [{**asdict(row), "result": row.result} for row in rule.rows],
        "derived": dict(rule.derived),
        "computed": dict(rule.computed),
        "tips": [list(tip) for tip in rule.tips],
    }
