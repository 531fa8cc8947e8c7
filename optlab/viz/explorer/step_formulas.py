"""The formulas of a step: every rule row by row, filled with the numbers of the step.

This table is the only source of the rows. The browser receives it as plain lists and fills it from
its buffers; Python fills it from the same arrays, so that a test can compare both with the trace.

A template has names in braces: ``g`` (the gradient that the rule used), ``raw`` (before clipping
and decay), ``p``, ``p.new``, ``update``, ``t``, ``h.*`` (hyper-parameters), ``old.*`` and ``new.*``
(slots before and after the step), ``term.*`` (named terms) and ``d.*`` (derived, below). A name in
round brackets, ``{(g)}``, gets brackets where it is negative. ``**`` prints bold, ``^[...]``
raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optlab.optimizer import (
    SGD,
    Adam,
    Averaged,
    ExponentialMovingAverage,
    LookAhead,
    Momentum,
    Optimizer,
    RMSProp,
)
from optlab.optimizer.wrappers import layers_of
from optlab.viz.explorer.presets import AdamWithoutCorrection
from optlab.viz.style.text import format_number

DIGITS = 4

Expression = Any
"""A number, a name, or a list: an operator and its arguments, such as ["-", 1, "h.beta1"]."""


@dataclass(frozen=True)
class Row:
    """One line: a label and a formula; `when` and `unless` name a setting that must be on or off.

    `where` names a number that must not be 0 in a step for the line to appear; with !, must be 0.
    `role` ties a line to an arrow and its color: gradient, memory, square, scale, update, position.
    """

    label: str
    template: str
    when: str = ""
    unless: str = ""
    where: str = ""
    role: str = ""


@dataclass(frozen=True)
class Rule:
    """The rows of one class, and the derived numbers that they need besides the recorded ones.

    `computed` are numbers that a recording has, and a page without one computes.
    """

    rows: tuple[Row, ...]
    derived: Mapping[str, Expression] = field(default_factory=dict)
    computed: Mapping[str, Expression] = field(default_factory=dict)


_GRADIENT = Row("gradient", "g = **{raw}**", role="gradient")
_MOVED = Row("new {axis}", "{axis} = {p} + {(update)} = **{p.new}**", role="position")

_SGD = Rule(
    (
        _GRADIENT,
        Row("update", "Δ{axis} = −{h.learning_rate} · {(g)} = **{update}**", role="update"),
        _MOVED,
    ),
    computed={"update": ["neg", ["*", "h.learning_rate", "g"]]},
)

_MOMENTUM = Rule(
    (
        _GRADIENT,
        Row(
            "rescaled",
            "g = {h.rescale_grad} · {(g)} = **{d.scaled}**",
            when="rescale_grad",
            role="gradient",
        ),
        Row(
            "velocity",
            "v = {h.momentum} · {(old.velocity)} + {(d.scaled)} = **{new.velocity}**",
            role="memory",
        ),
        Row(
            "look ahead",
            "g + μv = {d.scaled} + {h.momentum} · {(new.velocity)} = **{d.ahead}**",
            when="use_nesterov",
            role="memory",
        ),
        Row("update", "Δ{axis} = −{h.learning_rate} · {(d.ahead)} = **{update}**", role="update"),
        _MOVED,
    ),
    {
        "scaled": ["*", "h.rescale_grad", "g"],
        "ahead": [
            "if", "h.use_nesterov",
            ["+", "d.scaled", ["*", "h.momentum", "new.velocity"]],
            "new.velocity",
        ],
    },
    {"update": ["neg", ["*", "h.learning_rate", "d.ahead"]]},
)  # fmt: skip

_RMSPROP = Rule(
    (
        _GRADIENT,
        Row(
            "mean square",
            "s = {h.rho} · {old.mean_square} + {d.share} · {(g)}² = **{new.mean_square}**",
            role="square",
        ),
        Row(
            "mean",
            "m = {h.rho} · {(old.mean_grad)} + {d.share} · {(g)} = **{new.mean_grad}**",
            when="centered",
            role="memory",
        ),
        Row(
            "scale",
            "√(s + ε) = √({new.mean_square} + {h.epsilon}) = **{term.root}**",
            unless="centered",
            role="scale",
        ),
        Row(
            "scale",
            "√(s − m² + ε) = √({new.mean_square} − {(new.mean_grad)}² + {h.epsilon}) = "
            "**{term.root}**",
            when="centered",
            role="scale",
        ),
        Row(
            "step",
            "v = {h.momentum} · {(old.momentum)} + {h.learning_rate} · {(g)} / {term.root} = "
            "**{new.momentum}**",
            when="momentum",
            role="step",
        ),
        Row(
            "step",
            "v = {h.learning_rate} · {(g)} / {term.root} = **{new.momentum}**",
            unless="momentum",
            role="step",
        ),
        Row("update", "Δ{axis} = −v = **{update}**", role="update"),
        _MOVED,
    ),
    {"share": ["-", 1, "h.rho"]},
    {
        "term.root": [
            "sqrt",
            [
                "+",
                [
                    "if",
                    "h.centered",
                    ["-", "new.mean_square", ["*", "new.mean_grad", "new.mean_grad"]],
                    "new.mean_square",
                ],
                "h.epsilon",
            ],
        ],
        "update": ["neg", "new.momentum"],
    },
)

_ADAM_MOMENTS = (
    _GRADIENT,
    Row(
        "smoothed",
        "m = {h.beta1} · {(old.moment1)} + {d.share1} · {(g)} = **{new.moment1}**",
        role="memory",
    ),
    Row(
        "squared",
        "v = {h.beta2} · {old.moment2} + {d.share2} · {(g)}² = **{new.moment2}**",
        role="square",
    ),
    Row(
        "largest v",
        "max({old.moment2_max}, {new.moment2}) = **{new.moment2_max}**",
        "amsgrad",
        role="square",
    ),
)
_ADAM_SHARES: dict[str, Expression] = {
    "share1": ["-", 1, "h.beta1"],
    "share2": ["-", 1, "h.beta2"],
    "size": ["if", "h.amsgrad", "new.moment2_max", "new.moment2"],
}


def _adam_update(memory: str) -> Expression:
    """Return the update of Adam, of a smoothed gradient."""
    return ["neg", ["/", ["*", "h.learning_rate", memory], ["+", "term.root", "h.epsilon"]]]


_ADAM = Rule(
    (
        *_ADAM_MOMENTS,
        Row(
            "bias corrected",
            "m̂ = {new.moment1} / (1 − {h.beta1}^[{t}]) = **{d.corrected}**",
            role="memory",
        ),
        Row(
            "scale",
            "√v̂ = √({d.size} / (1 − {h.beta2}^[{t}])) = **{term.root}**",
            role="scale",
        ),
        Row(
            "update",
            "Δ{axis} = −{h.learning_rate} · {(d.corrected)} / ({term.root} + {h.epsilon}) = "
            "**{update}**",
            role="update",
        ),
        _MOVED,
    ),
    {**_ADAM_SHARES, "corrected": ["/", "new.moment1", ["-", 1, ["^", "h.beta1", "t"]]]},
    {
        "term.root": ["sqrt", ["/", "d.size", ["-", 1, ["^", "h.beta2", "t"]]]],
        "update": _adam_update("d.corrected"),
    },
)

_UNCORRECTED = Rule(
    (
        *_ADAM_MOMENTS,
        Row("scale", "√v = √{d.size} = **{term.root}**", role="scale"),
        Row(
            "update",
            "Δ{axis} = −{h.learning_rate} · {(new.moment1)} / ({term.root} + {h.epsilon}) = "
            "**{update}**",
            role="update",
        ),
        _MOVED,
    ),
    _ADAM_SHARES,
    {"term.root": ["sqrt", "d.size"], "update": _adam_update("new.moment1")},
)

#: Terms that wrappers add to a recording; they have separate rows.
WRAPPER_TERMS = ("slow", "fast", "lead", "synchronised", "average", "lag")

_LOOK_AHEAD = Rule(
    (
        Row(
            "slow weights",
            "φ = {(d.slow)} + {h.alpha} · {(term.lead)} = **{term.slow}**",
            where="term.synchronised",
        ),
        Row(
            "slow weights",
            "φ = **{term.slow}**, as before: not synchronised in this step",
            where="!term.synchronised",
        ),
        Row(
            "LookAhead",
            "{axis} = φ = **{d.synchronised}**: synchronised, as after every {h.k} steps",
            where="term.synchronised",
        ),
        Row(
            "LookAhead",
            "{axis} = **{d.synchronised}** stays (back to φ after every {h.k} steps)",
            where="!term.synchronised",
        ),
    ),
    {
        "slow": ["-", "term.fast", "term.lead"],
        "synchronised": ["if", "term.synchronised", "term.slow", "term.fast"],
    },
    {
        "term.slow": "new.slow",
        "term.lead": ["-", "term.fast", "old.slow"],
        "term.synchronised": ["if", ["%", "t", "h.k"], 0, 1],
    },
)
_EMA = Rule(
    (
        Row(
            "average",
            "of all {axis}, each step back counts {h.decay} times as much: **{term.average}**",
        ),
    ),
    computed={"term.average": "new.average"},
)
_MEAN = Rule(
    (Row("average", "mean of {axis} over the window = **{term.average}**"),),
    computed={"term.average": "new.average"},
)

#: What the numbers in a line are: the browser gives them the color of that.
ROLES: dict[str, str] = {
    **dict.fromkeys(["raw", "g", "d.scaled"], "gradient"),
    **dict.fromkeys(
        [
            "old.velocity", "new.velocity", "d.ahead", "old.moment1", "new.moment1", "d.corrected",
            "old.mean_grad", "new.mean_grad",
        ],
        "memory",
    ),
    **dict.fromkeys(
        [
            "old.moment2", "new.moment2", "old.moment2_max", "new.moment2_max", "d.size",
            "old.mean_square", "new.mean_square", "term.root",
        ],
        "scale",
    ),
    **dict.fromkeys(["update", "old.momentum", "new.momentum"], "update"),
}  # fmt: skip

RULES: dict[type[Optimizer], Rule] = {
    SGD: _SGD,
    Momentum: _MOMENTUM,
    RMSProp: _RMSPROP,
    Adam: _ADAM,
    AdamWithoutCorrection: _UNCORRECTED,
}


def rule_of(
    template: Optimizer, slots: Sequence[str], terms: Sequence[str], *, generic: bool = False
) -> Rule:
    """Return the rows of the class of a template.

    A class outside the table, such as a user's class or a subclass that changes the rule, has a row
    for every slot and term, as has every class with `generic`.
    """
    template, layers = layers_of(template)
    own = [name for name in terms if name not in WRAPPER_TERMS]
    rule = _rule_of(template, slots, own, {} if generic else RULES)
    for layer in layers:
        more = _LOOK_AHEAD if isinstance(layer, LookAhead) else _MEAN
        if isinstance(layer, Averaged) and isinstance(layer.average, ExponentialMovingAverage):
            more = _EMA
        rule = Rule(
            (*rule.rows, *more.rows),
            {**rule.derived, **more.derived},
            {**rule.computed, **more.computed},
        )
    return rule


def _rule_of(
    template: Optimizer,
    slots: Sequence[str],
    terms: Sequence[str],
    known_rules: Mapping[type[Optimizer], Rule],
) -> Rule:
    """Return the rows of an optimizer without its wrappers."""
    cls = type(template)
    for known, rule in known_rules.items():
        same = cls.update is known.update and cls.scalars is known.scalars
        if issubclass(cls, known) and same:
            rows = rule.rows
            break
    else:
        rule = Rule(())
        rows = (
            _GRADIENT,
            *(Row(name, f"{{old.{name}}} → **{{new.{name}}}**") for name in slots),
            *(
                Row(name, f"**{{term.{name}}}**")
                for name in terms
                if name not in ("update", "used_gradient")
            ),
            Row("update", "Δ{axis} = **{update}**", role="update"),
            _MOVED,
        )
    if "used_gradient" in terms:
        used = Row("clipped, decayed", "g = {raw} becomes **{g}**")
        rows = (rows[0], used, *rows[1:])
    on = template.settings
    shown = tuple(
        row
        for row in rows
        if (not row.when or _is_on(row.when, on)) and not (row.unless and _is_on(row.unless, on))
    )
    return Rule(shown, rule.derived, rule.computed)


def _is_on(name: str, settings: Mapping[str, Any]) -> bool:
    value = settings.get(name, False)
    return bool(value) if name != "rescale_grad" else value != 1.0


_OPERATORS: dict[str, Callable[..., float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.nan,
    "^": lambda a, b: a**b,
    "if": lambda condition, a, b: a if condition else b,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "neg": lambda a: -a,
    "%": lambda a, b: a % b,
}


def evaluate(expression: Expression, look_up: Callable[[str], float]) -> float:
    """Evaluate an expression.

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
    return _OPERATORS[operator](*(evaluate(argument, look_up) for argument in arguments))


def fill_rows(
    rule: Rule, values: Mapping[str, float], axis: str
) -> list[tuple[str, str, dict[str, float]]]:
    """Fill the rows of a rule with numbers.

    Parameters
    ----------
    rule : Rule
    values : mapping
        The number of every recorded name.
    axis : str
        The name of the coordinate.

    Returns
    -------
    list of (label, text, numbers)
        The numbers in the text, by their names.
    """

    def look_up(name: str) -> float:
        if name.startswith("d."):
            return evaluate(rule.derived[name[2:]], look_up)
        return values.get(name, math.nan)

    found = []
    for row in rule.rows:
        if row.where and bool(look_up(row.where.lstrip("!"))) == row.where.startswith("!"):
            continue
        numbers: dict[str, float] = {}

        def fill(match: re.Match[str], numbers: dict[str, float] = numbers) -> str:
            name = match[1]
            if name == "axis":
                return axis
            bare = name.strip("()")
            value = numbers[bare] = look_up(bare)
            text = format_number(value, DIGITS)
            return f"({text})" if name != bare and value < 0 else text

        text = re.sub(r"\{([^}]+)\}", fill, row.template)
        unmarked = text.replace("**", "").replace("^[", "^").replace("]", "")
        found.append((row.label.replace("{axis}", axis), unmarked, numbers))
    return found


def rule_as_lists(rule: Rule) -> dict[str, Any]:
    """Return a rule as plain lists, for the browser."""
    return {
        "rows": [[row.label, row.template, row.where, row.role] for row in rule.rows],
        "derived": dict(rule.derived),
        "computed": dict(rule.computed),
    }
