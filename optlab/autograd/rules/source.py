"""The source text of derivative rules."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from functools import lru_cache, partial
from types import CodeType
from typing import Any

from optlab.autograd.operation import Operation

_FunctionNode = ast.Lambda | ast.FunctionDef


def rule_text(rule: Any) -> str:
    """Return the source of a rule: a lambda alone, a function without its docstring.

    Empty if the source is not available (a rule typed at a prompt).

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.autograd.operation import TABLE
    >>> rule_text(TABLE[np.tanh].pullbacks[0])
    'lambda g, y: g * (1 - y * y)'
    """
    while isinstance(rule, partial):
        rule = rule.func
    code = getattr(rule, "__code__", None)
    return "" if code is None else _text_of(code)


@lru_cache(maxsize=1024)
def _text_of(code: CodeType) -> str:
    lines = linecache.getlines(code.co_filename)
    source = "".join(lines)
    found = _find_function(source, code) if source else None
    if isinstance(found, ast.Lambda):
        return _on_one_line(ast.get_source_segment(source, found) or "")
    if found is None:
        return ""
    return _without_docstring(lines, found)


def rules_of(operation: Operation) -> tuple[str, ...]:
    """Return the sources of the rules of an operation, one for each input."""
    if not operation.pullbacks:
        return (rule_text(operation.joint),) * len(operation.inputs)
    return tuple("" if one is None else rule_text(one) for one in operation.pullbacks)


@lru_cache(maxsize=32)
def _functions_in(source: str) -> tuple[_FunctionNode, ...]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    return tuple(one for one in ast.walk(tree) if isinstance(one, _FunctionNode))


def _find_function(source: str, code: CodeType) -> _FunctionNode | None:
    """Find the lambda or function that was compiled to `code`: several may share a line."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    places = [
        (line, column, end, end_column)
        for line, end, column, end_column in code.co_positions()
        if line and end and column is not None and end_column and (line, column) < (end, end_column)
    ]
    for one in _functions_in(source):
        named = one.name if isinstance(one, ast.FunctionDef) else "<lambda>"
        first = min([one.lineno, *(mark.lineno for mark in getattr(one, "decorator_list", ()))])
        arguments = (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs)
        if (named, first) != (code.co_name, code.co_firstlineno):
            continue
        if tuple(argument.arg for argument in arguments) != names:
            continue
        start, stop = (one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0)
        if all(start <= place[:2] and place[2:] <= stop for place in places):
            return one
    return None


def _on_one_line(text: str) -> str:
    """Join the lines of an expression, without spaces inside brackets."""
    joined = " ".join(text.split())
    for bracket in "([":
        joined = joined.replace(f"{bracket} ", bracket)
    for bracket in ")]":
        joined = joined.replace(f" {bracket}", bracket).replace(f",{bracket}", bracket)
    return joined


def _without_docstring(lines: list[str], function: ast.FunctionDef) -> str:
    body = function.body
    skipped = range(0)
    if len(body) > 1 and ast.get_docstring(function) is not None:
        skipped = range(body[0].lineno, (body[0].end_lineno or 0) + 1)
    numbers = range(function.lineno, (function.end_lineno or 0) + 1)
    text = "".join(lines[i - 1] for i in numbers if i not in skipped)
    return inspect.cleandoc("\n" + textwrap.dedent(text)).strip()
