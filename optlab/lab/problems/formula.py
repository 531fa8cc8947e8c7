"""Formulas as text: "(1 - x)**2 + 100*(y - x**2)**2" as a function of x and y.

The text is parsed by Python's `ast`, and a list of what is allowed is written into a function of
NumPy; nothing of the text is ever run as code.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

#: Longer texts are refused: a formula of a person is shorter, and Python's parser may not return.
MOST_CHARACTERS = 2000

CONSTANTS = {"pi": math.pi, "e": math.e}
FUNCTIONS: dict[str, Any] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "ln": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "cbrt": np.cbrt, "square": np.square,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "arcsin": np.arcsin, "arccos": np.arccos,
    "arctan": np.arctan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "abs": np.abs, "fabs": np.abs,
    "sign": np.sign, "maximum": np.maximum, "max": np.maximum, "minimum": np.minimum,
    "min": np.minimum, "hypot": np.hypot, "arctan2": np.arctan2, "atan2": np.arctan2,
    "where": np.where,
}  # fmt: skip
OVER_VECTOR = ("sum", "mean", "prod")
_MODULES = ("np", "numpy", "math")
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
COUNTS = {"hypot": 2, "where": 3, **dict.fromkeys(("arctan2", "atan2"), 2)}
COUNTS |= dict.fromkeys(("maximum", "max", "minimum", "min"), 2)

#: A part of a formula: a number, a function of the coordinates, or both of a vector's numbers.
_Part = Any


def looks_like_formula(text: str) -> bool:
    """Return whether a text is meant as a formula, and not as the name of a problem.

    Examples
    --------
    >>> [looks_like_formula(text) for text in ("x**2", "x - y", "six-hump camel", "rosenbrok")]
    [True, True, False, False]
    """
    words = re.findall(r"[A-Za-z_]\w*", text)
    known = {"x", "y", "p", *CONSTANTS, *FUNCTIONS, *OVER_VECTOR, *_MODULES}
    # A short name that is no formula ("digits-mlp") has none of these signs.
    return bool(re.search(r"[+*/^()\[\]=<>²³√]", text)) or bool(words and known.issuperset(words))


class FormulaError(ValueError):
    """A text that is no formula.

    Attributes
    ----------
    start, end : int
        The part of the text in question.
    instead : str
        A text to write instead, "" if none suggests itself.
    """

    def __init__(self, message: str, start: int, end: int, instead: str = "") -> None:
        super().__init__(message)
        self.start, self.end, self.instead = start, end, instead


def functions_said() -> str:
    """Return the names of all functions, for messages.

    Examples
    --------
    >>> functions_said()[:20]
    'exp, expm1, log, ln,'
    """
    return ", ".join([*FUNCTIONS, *OVER_VECTOR])


class Formula:
    """The function of x and y, or of x alone, that a text describes.

    Parameters
    ----------
    text : str
        In Python's notation: ``+ - * / **``, parentheses, numbers, ``pi`` and ``e``, the variables
        ``x`` and ``y``, or ``p[0]`` and ``p[1]``, or the vector ``p`` inside ``sum``, ``mean`` or
        ``prod``; functions such as ``exp``, ``log``, ``sqrt``, ``sin``, ``tanh``, ``abs``,
        ``maximum``, ``where``, also written ``np.exp``.

    Attributes
    ----------
    text : str
    dimension : int
        1 if neither y nor p[1] nor the vector p is in the text, else 2.

    Raises
    ------
    FormulaError
        A ValueError, if it is no such formula; the message says where and what to write instead.

    Examples
    --------
    >>> f = Formula("(1 - x)**2 + 100*(y - x**2)**2")
    >>> f(0.0, 1.0)
    101.0
    >>> float(Formula("np.sum((p - 1)**2)")(3.0, 1.0))
    4.0
    """

    __name__ = "f"

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.dimension, self._value = _Parser(text).function()
        names = ("x", "y")[: self.dimension]
        kind = Parameter.POSITIONAL_OR_KEYWORD
        #: How many arguments it takes, for whoever asks.
        self.__signature__ = Signature([Parameter(name, kind) for name in names])

    def __call__(self, *point: Any) -> Any:
        """Return the value at a point, or at many, element by element."""
        return self._value(point)

    def __reduce__(self) -> tuple[Any, ...]:
        return Formula, (self.text,)  # for worker processes

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"


def _unpaired(text: str) -> int:
    """Return where the parenthesis is that has no other one."""
    opened: list[int] = []
    for i, sign in enumerate(text):
        if sign == "(":
            opened.append(i)
        elif sign == ")":
            if not opened:
                return i
            opened.pop()
    return opened[-1] if opened else 0


class _Parser:
    """One text, and what was found in it."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.names: dict[str, ast.AST] = {}
        if not self.text:
            empty = 'the formula is empty; write one such as "x**2 + 3*y**2".'
            raise FormulaError(empty, 0, 0)
        if len(self.text) > MOST_CHARACTERS:
            raise FormulaError(
                f"the formula has {len(self.text)} characters, more than {MOST_CHARACTERS}; write "
                "a function f(x, y) in Python.",
                0,
                len(self.text),
            )
        self._refuse_other_notations()
        try:
            self.tree = ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            raise self._syntax_refusal(error) from None
        except (ValueError, RecursionError, MemoryError):
            why = "it cannot be read; write it with fewer parentheses"
            raise self._refusal(None, why) from None

    def function(self) -> tuple[int, Callable[[Any], Any]]:
        """Return how many numbers the function takes, and the function of a tuple of them."""
        try:
            part = self._part(self.tree)
        except RecursionError:
            why = "it is nested too deeply; write a function f(x, y) in Python"
            raise self._refusal(None, why) from None
        if isinstance(part, list):
            raise self._refusal(self.tree, "it gives two numbers; add them up with sum(...)")
        if "p" in self.names and {"x", "y"} & set(self.names):
            raise self._refusal(self.names["p"], "use either x and y, or p[0] and p[1]")
        if not callable(part):
            raise self._refusal(None, "there is no x or y in it")
        return (2 if {"y", "p", "p[1]"} & set(self.names) else 1), part

    # Parts --------------------------------------------------------------------------------------

    def _part(self, node: ast.AST) -> _Part:
        """Return a part of the formula: a number, a function of the point, or two of them."""
        match node:
            case ast.Constant(value=int(value) | float(value)) if not isinstance(value, bool):
                if not abs(value) <= 1e300:
                    raise self._refusal(node, "it is too large a number")
                return value
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _MODULES:
                if name in CONSTANTS:
                    return CONSTANTS[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self._apply(node, operator.neg, self._part(inner))
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self._part(inner)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                parts = self._part(left), self._part(right)
                return self._apply(node, _BINARY[type(op)], *parts)
            case ast.Subscript(value=ast.Name(id="p"), slice=ast.Constant(value=int(place))) if (
                not isinstance(place, bool)
            ):
                if place not in (0, 1):
                    raise self._refusal(node, "a surface has two numbers, p[0] and p[1]")
                self.names["p[1]" if place else "p[0]"] = node
                return operator.itemgetter(place)
            case ast.Call(func=function, args=args, keywords=[]):
                return self._call(node, function, args)
            case ast.IfExp():
                raise self._refusal(node, "write where(x > 0, a, b) in place of a if x > 0 else b")
            case ast.Compare():
                raise self._refusal(node, "a comparison stands inside where(x > 0, a, b)")
        raise self._refusal(
            node,
            "it is not among what a formula may have: + - * / **, numbers, pi, e, x, y, and the "
            f"functions {functions_said()}",
        )

    def _name(self, node: ast.AST, name: str) -> _Part:
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in ("x", "y"):
            self.names[name] = node
            return operator.itemgetter("xy".index(name))
        if name == "p":
            self.names[name] = node
            return [operator.itemgetter(0), operator.itemgetter(1)]
        if name in FUNCTIONS or name in OVER_VECTOR:
            raise self._refusal(node, f"{name} is a function: write {name}(x)")
        raise self._refusal(
            node, f"the variables are x and y (or p[0] and p[1]); {self._close(name)}"
        )

    def _call(self, node: ast.AST, function: ast.AST, args: list[ast.expr]) -> _Part:
        name = self._called(function)
        if name in OVER_VECTOR:
            return self._over_vector(node, name, args)
        expected = COUNTS.get(name, 1)
        if len(args) != expected:
            raise self._refusal(node, f"{name} takes {expected} argument{'s' * (expected > 1)}")
        if name == "where":
            return self._apply(node, np.where, self._condition(args[0]), *map(self._part, args[1:]))
        return self._apply(node, FUNCTIONS[name], *map(self._part, args))

    def _called(self, function: ast.AST) -> str:
        """Return the name of the function that is called."""
        match function:
            case ast.Name(id=name):
                pass
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _MODULES:
                pass
            case _:
                name = ast.unparse(function)
        if name in FUNCTIONS or name in OVER_VECTOR:
            return name
        if name in ("x", "y", "p", *CONSTANTS) or isinstance(function, (ast.Constant, ast.BinOp)):
            raise self._refusal(function, "write a product with a sign: 2*(x + 1)")
        raise self._refusal(function, f"there is no function {name}; {self._close(name)}")

    def _over_vector(self, node: ast.AST, name: str, args: list[ast.expr]) -> _Part:
        inner = self._part(args[0]) if len(args) == 1 else None
        if not isinstance(inner, list):
            raise self._refusal(
                node, f"{name} takes an expression of the vector p: {name}((p - 1)**2)"
            )
        join = operator.mul if name == "prod" else operator.add
        total = self._apply(node, join, *inner)
        return self._apply(node, operator.truediv, total, 2) if name == "mean" else total

    def _condition(self, node: ast.AST) -> _Part:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            compare = _COMPARISONS.get(type(node.ops[0]))
            if compare is not None:
                parts = self._part(node.left), self._part(node.comparators[0])
                return self._apply(node, compare, *parts)
        raise self._refusal(node, "where takes a comparison first: where(x > 0, a, b)")

    def _apply(self, node: ast.AST, function: Callable[..., Any], *parts: _Part) -> _Part:
        """Return an operation on parts; of numbers alone, its value."""
        if any(isinstance(part, list) for part in parts):
            each = [part if isinstance(part, list) else [part, part] for part in parts]
            return [self._apply(node, function, *pair) for pair in zip(*each, strict=True)]
        if not any(map(callable, parts)):
            return self._constant(node, function, parts)
        if len(parts) == 1:
            [inner] = parts
            return lambda point: function(inner(point))
        if len(parts) == 2:
            first, second = parts
            if not callable(first):
                return lambda point: function(first, second(point))
            if not callable(second):
                return lambda point: function(first(point), second)
            return lambda point: function(first(point), second(point))
        return lambda point: function(*(p(point) if callable(p) else p for p in parts))

    def _constant(self, node: ast.AST, function: Callable[..., Any], parts: Any) -> Any:
        """Return the value of an operation on numbers: as floats, so that 9**9**9 is refused."""
        try:
            with np.errstate(all="ignore"):
                value = function(*map(float, parts))
        except ArithmeticError:
            value = math.nan
        if isinstance(value, complex) or not math.isfinite(value):
            raise self._refusal(node, "its value is not a finite number")
        value = float(value)
        # A whole number stays one: x**-2 and x**(2 + 1) are whole powers.
        whole = all(type(part) is int for part in parts) and value.is_integer()
        return int(value) if whole and abs(value) < 2**53 else value

    # Errors -------------------------------------------------------------------------------------

    def _refusal(self, node: ast.AST | None, why: str) -> FormulaError:
        """Return the error, with the part of the text in question."""
        part = "" if node is None else ast.get_source_segment(self.text, node) or ""
        where = f"at {part!r}: " if part and part != self.text and len(part) <= 60 else ""
        start = self._column(node) if part else 0
        end = start + len(part) if part else len(self.text)
        return self._refusal_at(start, end, where + why)

    def _column(self, node: Any) -> int:
        """Return where a node begins, in characters of the text."""
        lines = self.text.splitlines(keepends=True)
        before = sum(len(line) for line in lines[: node.lineno - 1])
        encoded = lines[node.lineno - 1].encode("utf-8")
        return before + len(encoded[: node.col_offset].decode("utf-8"))

    def _refusal_at(self, start: int, end: int, why: str, instead: str = "") -> FormulaError:
        """Return the error for a part of the text from a character to another."""
        shown = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        stop = "" if why.endswith("?") else "."
        message = f'the formula "{shown}" cannot be used: {why}{stop}'
        return FormulaError(message, start, end, instead)

    def _refuse_other_notations(self) -> None:
        text = self.text
        if match := re.search(r"[²³⁴⁵√·×÷−]", text):
            sign = match[0]
            plain = {"√": "sqrt(x)", "·": "*", "×": "*", "÷": "/", "−": "-"}.get(sign, "x**2")
            raise self._refusal_at(*match.span(), f"write {plain} in place of {sign}")
        if "^" in text:
            at, instead = text.index("^"), text.replace("^", "**")
            here = instead if len(instead) <= 60 else "** in place of ^"
            why = f"^ is no power in Python: write x**2, here {here}"
            raise self._refusal_at(at, at + 1, why, instead)
        if match := re.search(r"(?<![<>=!])=(?!=)|lambda|return", text):
            why = "write what stands after the equals sign alone, x**2 + 3*y**2"
            raise self._refusal_at(*match.span(), why)
        if text.count("|") >= 2:
            ends = text.index("|"), text.rindex("|") + 1
            raise self._refusal_at(*ends, "write abs(x) in place of |x|")

    def _syntax_refusal(self, error: SyntaxError) -> FormulaError:
        text = self.text
        at = max((error.offset or 1) - 1, 0) if error.lineno == 1 else 0
        if match := re.search(r"(?<![\w.])(\d+\.?\d*|\))\s*(?=[A-Za-z(])", text):
            rest = text[match.start() : match.start() + 8]
            why = f"at {rest!r}: write a product with a sign, 2*x"
            return self._refusal_at(match.start(), match.end() + 1, why)
        opening, closing = text.count("("), text.count(")")
        if opening != closing:
            why = f"it has {opening} opening and {closing} closing parentheses"
            return self._refusal_at(_unpaired(text), len(text), why)
        rest = text[at : at + 8]
        ends = text[-1] in "+-*/(," or not rest.strip()
        where = "it ends too early" if ends else f"Python cannot read it at {rest!r}"
        why = f"{where}; a formula is written as in x**2 + 3*y**2"
        start = len(text) if ends else at
        return self._refusal_at(start, start if ends else at + 1, why)

    def _close(self, name: str) -> str:
        """Return a suggestion for a name that is not known."""
        if match := re.fullmatch(r"(x|y)(\d)", name):
            return f"write {match[1]}**{match[2]} for a power" + (
                f", {'xy'[int(match[2]) - 1]} for a variable" if match[2] in "12" else ""
            )
        if re.fullmatch(r"[xy]{2,}", name):
            return f"write a product with a sign, {'*'.join(name)}"
        known = [*FUNCTIONS, *OVER_VECTOR, *CONSTANTS]
        close = difflib.get_close_matches(name, known, 1)
        if close:
            return f"did you mean {close[0]}?"
        return f"{name!r} is not known. Functions are {functions_said()}"
