"""Text of the reference: one function explained with the source of its rules, and the table."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from optlab.autograd.operation import TABLE, Operation
from optlab.autograd.reference.entries import KINDS, SPELLED, Entry, convention_of, entries, name_of
from optlab.autograd.reference.notes import FORMULAS
from optlab.autograd.rules.source import rule_text
from optlab.backend.ensemble.dispatch import RULES, covered
from optlab.backend.ensemble.registry import INSTEAD

PACKAGE = Path(str(files("optlab")))

#: The meaning of the arguments of a rule.
READS = {
    "g": "the gradient that arrives",
    "y": "the output",
    "needs": "for each input, whether its gradient is wanted",
}

_MOST_LINES_OF_HELPERS = 90

#: Longer functions are truncated to so many lines; their file and line are printed above.
_MOST_LINES = 40

#: Functions that run operations or refuse arguments, which explain nothing about a derivative.
_OF_THE_ENGINE = {"apply", "apply_several", "not_covered", "raw"}


def place_of(function: Any) -> str:
    """Return the location of a function, ``file:line``, relative to the repository.

    Examples
    --------
    >>> place_of(place_of).split(":")[0]
    'optlab/autograd/...text.py'
    """
    code = _unwrapped(function).__code__
    path = Path(code.co_filename)
    if path.is_relative_to(PACKAGE):
        path = path.relative_to(PACKAGE.parent)
    return f"{path.as_posix()}:{code.co_firstlineno}"


def home_of(function: Any) -> str:
    """Return the file of a function, relative to the engine: ``rules/norms.py``."""
    path = Path(_unwrapped(function).__code__.co_filename)
    if not path.is_relative_to(PACKAGE):
        return path.as_posix()
    inside = path.relative_to(PACKAGE).as_posix()
    return inside.removeprefix("autograd/") if inside.startswith("autograd/") else f"../{inside}"


def _unwrapped(function: Any) -> Any:
    """Return the function inside of partial objects."""
    while isinstance(function, partial):
        function = function.func
    return function


def explain(entry: Entry) -> str:
    """Explain the support for a function: the source of its rules, and where it is.

    Examples
    --------
    >>> from optlab.autograd.reference.entries import find
    >>> print(explain(find("np.tanh")))
    np.tanh(x)
      One operation with a derivative rule: ...elementwise.py:...
    <BLANKLINE>
          lambda g, y: g * (1 - y * y)
    <BLANKLINE>
      g: the gradient that arrives; y: the output
    <BLANKLINE>
      With vmap: elementwise, no batching rule needed
    """
    arguments = f"({entry.inputs})" if entry.inputs else ""
    lines = [f"{entry.name}{arguments}"]
    if entry.name in SPELLED:
        lines[0] += f"    what {SPELLED[entry.name]} runs"
    kind = _sentence(KINDS[entry.kind])
    if entry.operation is not None:
        rules = [one for _, one in entry.rules() if one is not None]
        lines.append(f"  {kind}: {place_of(rules[0])}")
        lines += _formula(entry)
        lines += _paragraph(_docstring(entry.function) if entry.is_of_the_engine else "")
        lines += _rules(entry)
        lines += _legend(rules, entry.operation)
        lines += _helpers(rules)
    elif entry.kind in ("composed", "random"):
        lines.append(f"  {kind}: {place_of(entry.written)}")
        lines += _written(entry)
    else:
        lines += [f"  {kind}.", *_instead(entry)]
    if found := convention_of(entry):
        lines += ["", "  Where there is no derivative:"]
        lines += [line for one in found for line in _wrapped(one, "    ")]
    if entry.operation is not None and isinstance(entry.written, FunctionType):
        lines += ["", f"  Its arguments are read in {place_of(entry.written)}"]
    if entry.kind in ("rule", "zero", "composed") and not entry.is_of_the_engine:
        lines += ["", *_on_ensembles(entry.function)]
    return "\n".join(lines)


def explain_helper(function: Any) -> str:
    """Explain a function that rules call: its source, and the functions that it calls.

    Examples
    --------
    >>> from optlab.autograd.rules.linalg.matrices import inverse_gaps
    >>> print(explain_helper(inverse_gaps).splitlines()[0])
    inverse_gaps: what derivative rules call, optlab/autograd/rules/linalg/matrices.py:...
    """
    head = f"{function.__name__}: what derivative rules call, {place_of(function)}"
    return "\n".join([head, "", _indented(_source(function), 6), *_helpers([function])])


def _formula(entry: Entry) -> list[str]:
    """Return the lines on the formula of a rule, its source, and a warning."""
    if entry.name not in FORMULAS:
        return []
    formula, reference, beware = FORMULAS[entry.name]
    lines = ["", *_wrapped(formula, "  "), *_wrapped(f"See {reference}", "  ")]
    return [*lines, *(_wrapped(beware, "  ") if beware else [])]


def _on_ensembles(function: Any) -> list[str]:
    """Return the lines on the batching rule of a function."""
    if function in RULES:
        return _wrapped(f"With vmap: a batching rule, {place_of(RULES[function])}", "  ")
    if covered(function):
        return ["  With vmap: elementwise, no batching rule needed"]
    instead = INSTEAD.get(function, "")
    return _wrapped(f"With vmap: refused by name. {instead}".strip(), "  ")


def _rules(entry: Entry) -> list[str]:
    """Return the lines with the source of each rule; inputs with the same rule together."""
    texts: dict[str, list[str]] = {}
    for inputs, rule in entry.rules():
        texts.setdefault("" if rule is None else _source(rule), []).append(inputs)
    lines = []
    for text, names in texts.items():
        lines.append("")
        if text == "":
            lines.append(f"    {', '.join(names)}: no derivative")
            continue
        if len(texts) > 1:
            lines.append(f"    for {', '.join(names)}:")
        lines.append(_indented(text, 6))
    return lines


def _source(rule: Any) -> str:
    """Return the source of a rule, a longer one after the first paragraph of its docstring."""
    text = rule_text(rule) or "(its source is not at hand)"
    summary = _docstring(_unwrapped(rule))
    return f"# {summary}\n{text}" if summary and "\n" in text else text


def _legend(rules: list[Any], operation: Operation) -> list[str]:
    """Return the lines on the meaning of the arguments of rules."""
    read = {name for rule in rules for name in _arguments(rule)}
    legend = [f"{name}: {what}" for name, what in READS.items() if name in read]
    shapes = sorted(name for name in read if name.endswith("_shape"))
    legend += [f"{name}: the shape of {name.removesuffix('_shape')}" for name in shapes]
    if operation.several:
        legend.append("g[i], y[i]: those of output i; `i in g`: whether one has arrived there")
    if not operation.pullbacks and len(operation.inputs) > 1:
        legend.append("one rule gives the gradients of all inputs")
    return ["", *_wrapped("; ".join(legend), "  ")] if legend else []


def _arguments(rule: Any) -> tuple[str, ...]:
    code: CodeType = _unwrapped(rule).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _helpers(functions: list[Any]) -> list[str]:
    """Return the lines with the functions that rules call, and the names of those they call."""
    helpers = [one for function in functions for one in _called_by(function)]
    shown: dict[Any, str] = {}
    for helper in dict.fromkeys(helpers):
        text = _shortened(_source(helper))
        if sum(map(len, map(str.splitlines, (*shown.values(), text)))) <= _MOST_LINES_OF_HELPERS:
            shown[helper] = text
    further = [*helpers, *(one for helper in shown for one in _called_by(helper))]
    rest = [one for one in dict.fromkeys(further) if one not in shown]
    lines: list[str] = []
    if shown:
        lines += ["", "  It calls"]
    for helper, text in shown.items():
        lines += ["", f"    {place_of(helper)}", _indented(text, 6)]
    if rest:
        names = ", ".join(one.__name__ for one in rest)
        lines += ["", *_wrapped(f"and further {names}: `optlab rules NAME` shows them", "  ")]
    return lines


def _shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) <= _MOST_LINES:
        return text
    left = len(lines) - _MOST_LINES + 1
    return "\n".join([*lines[: _MOST_LINES - 1], f"    ... ({left} lines more)"])


def _called_by(function: Any) -> Iterator[FunctionType]:
    """Yield the functions of optlab that a function names in its code."""
    function = _unwrapped(function)
    for name in dict.fromkeys(_names_in(function.__code__)):
        found = function.__globals__.get(name)
        if isinstance(found, FunctionType) and found.__module__.startswith("optlab."):
            if name in _OF_THE_ENGINE:
                continue
            yield found


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _written(entry: Entry) -> list[str]:
    """Return the lines on a composed or random function: its source, and the operations it runs."""
    written = entry.written
    lines = _paragraph(_docstring(written)) if entry.kind == "random" else []
    lines += ["", _indented(_source(written) if entry.kind == "composed" else _body(written), 6)]
    closure = inspect.getclosurevars(written)
    known = {k: v for k, v in closure.nonlocals.items() if not isinstance(v, Operation)}
    for name, value in known.items():
        named = name_of(value) if hasattr(value, "__name__") else repr(value)
        lines += ["", f"    where {name} is {named}"]
    for operation in dict.fromkeys(_operations_in([written, *_called_by(written)])):
        if operation in TABLE.values():
            lines += ["", f"    its operation {operation.name}: optlab rules {operation.name}"]
        else:
            lines += ["", f"    its operation {operation.name}:"]
            lines += [_indented(text, 6) for text in _texts(operation)]
    return lines + _helpers([written])


def _operations_in(functions: list[Any]) -> Iterator[Operation]:
    """Yield the operations that functions name in their code."""
    for function in functions:
        for name in _names_in(function.__code__):
            found = function.__globals__.get(name)
            if isinstance(found, Operation):
                yield found


def _body(function: Any) -> str:
    return rule_text(function) or "(its source is not at hand)"


def _texts(operation: Operation) -> list[str]:
    rules = operation.pullbacks or (operation.joint,)
    return list(dict.fromkeys(_source(one) for one in rules if one is not None))


def _instead(entry: Entry) -> list[str]:
    """Return the lines on alternatives to a function that is not differentiable."""
    name = entry.name.removeprefix("np.")
    advice = {
        "plain": f"{entry.name}(t) is a plain array: what is computed from it needs no gradient.",
        "whole numbers": "A Tensor of whole numbers needs no gradient; give the function its "
        f"values: {entry.name}(t.numpy()).",
        "optlab.numpy": f"Write optlab.numpy.{name}, as after `import optlab.numpy as np`.",
        "no rule": "Write it with functions that have a rule, write an optlab.autograd.Function "
        f"with a backward of your own, or use {entry.name}(t.detach().numpy()) where no gradient "
        "is needed. A function that takes no arrays needs none of this.",
    }[entry.kind]
    return _wrapped(advice, "  ")


# The table of all ---------------------------------------------------------------------------------


def table(width: int = 100) -> str:
    """Return the table of all functions, one a line, by kind; rules are cut to the width.

    Examples
    --------
    >>> "np.tanh" in table() and "lambda g, y: g * (1 - y * y)" in table()
    True
    """
    every = entries()
    lines = []
    for kind, description in KINDS.items():
        members = [entry for entry in every if entry.kind == kind]
        if not members:
            continue
        lines += ["", _sentence(description) + f" ({len(members)})", ""]
        if kind in ("plain", "whole numbers"):
            lines += textwrap.wrap(
                ", ".join(one.name for one in members), width, initial_indent="  ",
                subsequent_indent="  ", break_long_words=False,
            )  # fmt: skip
            continue
        for entry in members:
            line = f"  {entry.name:<26} {_short(entry)}"
            lines.append(line if len(line) <= width else line[: width - 1] + "…")
    lines += ["", "`optlab rules NAME` shows one of them with its source."]
    return "\n".join(lines[1:])


def _short(entry: Entry) -> str:
    """Return a function's rules on one line, or its file."""
    if entry.operation is None:
        return home_of(entry.written)
    texts = dict.fromkeys(
        "no derivative" if rule is None else short_text(rule) for _, rule in entry.rules()
    )
    return "  |  ".join(texts)


def short_text(rule: Any) -> str:
    """Return a rule on one line: the source of a lambda, or the name and file of a function."""
    text = rule_text(rule)
    if text and "\n" not in text and text.startswith("lambda"):
        return text
    return f"{_unwrapped(rule).__name__} in {home_of(rule)}"


# Formatting ---------------------------------------------------------------------------------------


def _docstring(function: Any) -> str:
    """Return the first paragraph of a docstring, on one line."""
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n")[0].split())


def _paragraph(text: str) -> list[str]:
    return _wrapped(text, "  ") if text else []


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] if not text.startswith("np.") else text


def _indented(text: str, by: int) -> str:
    return textwrap.indent(text, " " * by)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, 100, initial_indent=indent, subsequent_indent=indent + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
