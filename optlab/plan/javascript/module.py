"""ES modules: surfaces, update rules, tables of numbers of the steps, and the run of them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optlab.plan.javascript.elementwise import ElementLoop, loop_source, write_numbers
from optlab.plan.javascript.operations import FLOAT, Atom, helpers_in, literal, number_text
from optlab.plan.javascript.rule import Form, Part, Rule, Table, Variant
from optlab.plan.javascript.unrolled import assigned, function_source, unrolled, variables
from optlab.plan.javascript.writer import Lines
from optlab.plan.plan import Place, Plan, write_javascript_with
from optlab.plan.tracer import CaptureError

_HEAD = """\
// Written by optlab from captured plans. All numbers are float64. Sums, products, quotients,
// square roots, comparisons and whole powers have the engine's bits; exp, log, sin and their kin
// are within 2 units in the last place of its values.
"""


def javascript_of(plan: Plan, name: str = "plan", inputs: Sequence[str] = ()) -> str:
    """Return a plan as an ES module that exports one function; see `Plan.to_javascript`."""
    function = function_source(plan, name, inputs)
    return "\n".join([_HEAD, *(f"{one}\n" for one in helpers_in(function)), function])


write_javascript_with(javascript_of)


def javascript_module(surfaces: Plan | Mapping[str, Plan], rules: Mapping[str, Rule]) -> str:
    """Write an ES module that runs optimizers on surfaces, for pages with no Python behind them.

    Parameters
    ----------
    surfaces : Plan, or mapping of str to Plan
        Of `capture_value_and_grad`: of a function of numbers, or of one vector.
    rules : mapping of str to Rule
        From `optlab.optimizer.capture_rule`.

    Returns
    -------
    str
        The source. It exports ``run(name, {start, steps, settings, noise, sigma, surface})``, which
        returns ``{path, loss, gradient, slots, fast, finalLoss, stopped}``, and ``optimizers`` and
        ``surfaces``, what there is.

    Raises
    ------
    TypeError
        If a surface is no plan, or a rule was not captured.
    CaptureError
        If an operation cannot be written in JavaScript.
    ValueError
        If a rule was captured for another number of elements than a surface has.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> from optlab.plan import capture_value_and_grad, javascript_module
    >>> bowl = capture_value_and_grad(lambda x, y: x * x + 3 * y * y, np.float64(1), np.float64(1))
    >>> rule = ol.optimizer.capture_rule(ol.optimizer.SGD(0.1), steps=100)
    >>> source = javascript_module(bowl, {"SGD": rule})
    >>> "export function run(name, options)" in source
    True
    >>> print(source[source.index("function sgd") :].partition("const")[0].rstrip())
    function sgd(p, g, s, h, table, t) {
      for (let i = 0; i < p.length; i++) {
    """
    surfaces = _checked_surfaces(surfaces)
    _check_rules(rules)
    taken: set[str] = set()
    functions, entries, dimensions = [], [], {}
    for title, plan in surfaces.items():
        name = _identifier(title, taken)
        dimensions[title], source, evaluate = _surface(plan, title, name)
        functions.append(source)
        entries.append(
            f"  {_key(title)}: {{ dimension: {dimensions[title]}, evaluate: {evaluate} }},"
        )
    optimizers = []
    for title, rule in rules.items():
        for surface, dimension in dimensions.items():
            if rule.dimension != dimension and _is_fixed(rule):
                raise ValueError(
                    f"{title} was captured for {rule.dimension} numbers, and the surface {surface} "
                    f"has {dimension}: write capture_rule(..., dimension={dimension})."
                )
        written, source = _optimizer(title, rule, _identifier(title, taken))
        functions.append(written)
        optimizers.append(source)
    body = "\n".join(functions)
    tables = [
        "export const surfaces = {", *entries, "};", "", "export const optimizers = {",
        *optimizers, "};",
    ]  # fmt: skip
    runtime = Path(__file__).with_name("run.js").read_text(encoding="utf-8")
    helpers = [f"{one}\n" for one in helpers_in(body)]
    return "\n".join([_HEAD, *helpers, body, *tables, "", runtime])


def _checked_surfaces(surfaces: Any) -> dict[str, Plan]:
    """Return the surfaces by their titles."""
    if isinstance(surfaces, Plan):
        return {"surface": surfaces}
    how = (
        "Capture it first: ol.plan.capture_value_and_grad(f, np.float64(1), np.float64(1)), for "
        "f(x, y) in NumPy functions; the plan of a problem is ol.problems.rosenbrock.plan."
    )
    if not isinstance(surfaces, Mapping):
        raise TypeError(
            "javascript_module takes the plan of a surface, or a dict of titles and plans; got "
            f"{_kind(surfaces)}. {how}"
        )
    for title, plan in surfaces.items():
        if not isinstance(title, str) or not isinstance(plan, Plan):
            raise TypeError(
                f"the surface {title!r} must be a plan with a text for its title; got "
                f"{_kind(plan)}. {how}"
            )
    return dict(surfaces)


def _check_rules(rules: Any) -> None:
    how = "Write {'Adam': ol.optimizer.capture_rule(ol.optimizer.Adam(0.1), steps=500)}."
    if not isinstance(rules, Mapping):
        raise TypeError(
            f"the rules of javascript_module are a dict of titles and rules; got {_kind(rules)}. "
            f"{how}"
        )
    for title, rule in rules.items():
        if not isinstance(title, str) or not isinstance(rule, Rule):
            raise TypeError(
                f"the rule {title!r} must be what capture_rule returns, with a text for its title; "
                f"got {_kind(rule)}. {how}"
            )


def _kind(given: Any) -> str:
    """Return what was given, for messages."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"{type(given).__name__} {given!r}" if isinstance(given, str) else type(given).__name__


def _surface(plan: Plan, title: str, name: str) -> tuple[int, str, str]:
    """Return the number of coordinates of a surface, its function, and how that is called."""
    shapes = [shape for shape, _ in plan.signature]
    scalars = all(shape == () for shape in shapes)
    vector = len(shapes) == 1 and len(shapes[0]) == 1
    if plan.single or len(plan.outputs) != 1 + plan.inputs or not (scalars or vector):
        raise CaptureError(
            f"a surface is captured by capture_value_and_grad from a function of numbers, f(x, y), "
            f"or of one vector, f(p); {title} takes arrays of shapes {shapes} and gives "
            f"{len(plan.outputs)} results."
        )
    if scalars:
        inputs = ["x", "y", "z"][: len(shapes)] if len(shapes) < 4 else []
        source = function_source(plan, name, inputs, f"{title}: the value and its slopes.")
        given = ", ".join(f"p[{i}]" for i in range(len(shapes)))
        return len(shapes), source, f"(p) => {name}({given})"
    source = function_source(plan, name, ["p"], f"{title}: the value, and the list of its slopes.")
    return shapes[0][0], source, f"(p) => {name}(p).flat()"


def _is_fixed(rule: Rule) -> bool:
    """Return whether a rule is written out for its number of elements."""
    forms = [form for part in rule.parts for one in part.variants for form in one.forms]
    return any(isinstance(form.plan, Plan) for form in forms)


def _optimizer(title: str, rule: Rule, name: str) -> tuple[str, str]:
    """Return the functions of an optimizer, and its entry in the table of them."""
    functions: list[str] = []
    parts = []
    for number, part in enumerate(rule.parts):
        own = f"{name}_then{number if number > 1 else ''}_{part.title}" if number else name
        does = f"{part.title}, after each step" if number else f"a step of {part.title}"
        labels: dict[str, str] = {}
        variants = []
        for variant in part.variants:
            chosen = []
            for i, form in enumerate(variant.forms):
                body = _body(form)
                if body not in labels:
                    labels[body] = f"{own}_{len(labels)}" if labels else own
                    head = f"// {title}: {does}{_steps_of(i, variant.form_of_step)}."
                    functions.append(
                        f"{head}\nfunction {labels[body]}(p, g, s, h, table, t) {{\n{body}}}\n"
                    )
                chosen.append(labels[body])
            variants.append(_variant(variant, chosen))
        parts.append(_part(part, variants))
    fixed = rule.dimension if _is_fixed(rule) else 0
    head = f"  {_key(title)}: {{ dimension: {fixed}, steps: {rule.steps}, parts: ["
    return "\n".join(functions), "\n".join([head, *parts, "  ] },"])


def _part(part: Part, variants: list[str]) -> str:
    """Return the entry of a part in the table of optimizers."""
    settings = {k: x for k, x in part.settings.items() if _is_plain(x)}
    notches = {k: x for k, x in part.notches.items() if k in settings}
    lines = [
        f"title: {_json(part.title)},", f"settings: {_json(settings)},",
        f"notches: {_json(notches)},",
        f"rates: {_json({k: _packed(x) for k, x in part.rates.items()})},",
        f"evaluated: {_json(part.evaluated)},", "variants: [",
    ]  # fmt: skip
    return "\n".join(["  {", *(f"    {line}" for line in lines), *variants, "    ],", "  },"])


def _steps_of(form: int, steps: list[int]) -> str:
    """Return at which steps a form is taken, if not at all of them."""
    taken = [t + 1 for t, one in enumerate(steps) if one == form]
    if len(taken) == len(steps):
        return ""
    more = ", ..." if len(taken) > 3 else ""
    return f" (steps {', '.join(map(str, taken[:3]))}{more})"


def _variant(variant: Variant, forms: list[str]) -> str:
    steps = variant.form_of_step
    form = "null" if len(forms) == 1 else _json("".join(np.base_repr(i, 36) for i in steps))
    if len(forms) > 36:
        raise CaptureError(
            f"the rule has {len(forms)} forms, such as one for each batch of ASGD; a module takes "
            "36 of them."
        )
    tables = ", ".join(f"{name}: {_table(table)}" for name, table in variant.tables.items())
    settings = {k: x for k, x in variant.settings.items() if _is_plain(x)}
    return (
        f"      {{ settings: {_json(settings)}, slots: {_json(variant.slots)},\n"
        f"        forms: [{', '.join(forms)}], formOfStep: {form},\n"
        f"        tables: {{ {tables} }} }},"
    )


def _table(table: Table) -> str:
    rows = ", ".join(
        f"[{_json(list(values))}, {_json(_packed(row))}]" for values, row in table.rows.items()
    )
    return f"{{ settings: {_json(list(table.settings))}, rows: [{rows}] }}"


def _body(form: Form) -> str:
    """Return the body of the function of a form."""
    lines, values = Lines(), {}
    for place, text in form.scalars.inputs.items():
        values[place] = Atom(text, FLOAT)
    write_numbers(lines, form.scalars.instructions, values, "c")
    results = {
        name: values[x] if isinstance(x, Place) else literal(x)
        for name, x in form.scalars.results.items()
    }
    numbers = [results.get(name, Atom(name, FLOAT)) for name in form.numbers]
    arrays = {name: name if name in "pg" else f"s.{name}" for name in form.arrays}
    if isinstance(form.plan, ElementLoop):
        given = dict(zip(form.plan.numbers, numbers, strict=True))
        names = dict(zip(form.plan.arrays, arrays.values(), strict=True))
        body = loop_source(form.plan, given, names)
    else:
        shapes = [shape for shape, _ in form.plan.signature]
        inputs: list[Any] = [
            variables(name, shape) for name, shape in zip(arrays.values(), shapes, strict=False)
        ]
        for one in numbers:
            inputs.append(np.empty((), object))
            inputs[-1][()] = one
        inner, outputs = unrolled(form.plan, inputs)
        named = dict(zip((arrays[name] for name in form.outputs), outputs, strict=True))
        body = _after_reading(inner, assigned(named))
    return "".join(f"  {line}\n" for line in [*lines.read_by(body), *body])


def _after_reading(lines: Lines, written: list[str]) -> list[str]:
    """Return lines that write elements, behind all that read them."""
    found = lines.read_by(written)
    final = []
    for number, line in enumerate(written):
        target, _, source = line.rstrip(";").partition(" = ")
        if target == source:
            continue
        if "[" in source:  # the old value of another element
            found.append(f"const old{number} = {source};")
            source = f"old{number}"
        final.append(f"{target} = {source};")
    return [*found, *final]


def _identifier(title: str, taken: set[str]) -> str:
    """Return a title as the name of a function that is not taken."""
    words = re.findall(r"[A-Za-z0-9]+", title)
    name = "".join(w if i and not w.isupper() else w.lower() for i, w in enumerate(words))
    name = name[:1].lower() + name[1:] or "f"
    name = f"f{name}" if name[0].isdigit() or name in _RESERVED else name
    found, count = name, 2
    while found in taken:
        found, count = f"{name}_{count}", count + 1
    taken.add(found)
    return found


#: Names that a function of a module must not have: of the language, and of the module's own.
_RESERVED = {
    "break", "case", "catch", "class", "const", "continue", "default", "delete", "do", "else",
    "eval", "export", "extends", "false", "finally", "for", "function", "if", "import", "in",
    "instanceof", "let", "new", "null", "return", "static", "super", "switch", "this", "throw",
    "true", "try", "typeof", "var", "void", "while", "with", "yield", "await", "enum", "run",
    "ends", "begun", "surfaces", "optimizers", "prepared", "decoded", "same", "maximum", "minimum",
    "fmax", "fmin", "clip", "sign", "copysign", "rint", "remainder", "heaviside", "hypot",
    "logaddexp", "logaddexp2", "product", "power", "tanh", "arguments", "p", "g", "s", "h", "t",
    "table",
}  # fmt: skip


def _is_plain(value: Any) -> bool:
    """Return whether a setting is a number, a text or a list of such."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _key(title: str) -> str:
    return title if re.fullmatch(r"[A-Za-z_]\w*", title) else _json(title)


def _json(value: Any) -> str:
    """Return plain data as JavaScript: JSON, with floats as short as JavaScript writes them."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(k)}: {_json(x)}" for k, x in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_json, value))}]"
    if type(value) is float:
        return number_text(value)
    return json.dumps(value).replace("</", "<\\/")


def _packed(numbers: Any) -> str:
    """Return numbers of steps in base64, short where each follows from the two before it.

    Powers do, as those of a bias correction: the quotient of two neighbors times the latter is off
    by some units in the last place, and only these are written, in the fewest bytes that hold all.
    `numbersOf` of run.js makes the same numbers of it, to the bit.

    Examples
    --------
    >>> len(_packed([0.9**t for t in range(1, 401)])), len(_packed(np.sin(np.arange(400))))
    (556, 4268)
    """
    row = np.ascontiguousarray(numbers, "<f8")
    with np.errstate(all="ignore"):
        follows = row[1:-1] * (row[1:-1] / row[:-2])
    if len(row) > 2 and np.isfinite(row).all() and np.isfinite(follows).all():
        off = row[2:].view("<i8") - follows.view("<i8")
        for width in (1, 2, 4):
            if np.array_equal(off, off.astype(f"<i{width}")):
                head = bytes([width]) + row[:2].tobytes()
                return base64.b64encode(head + off.astype(f"<i{width}").tobytes()).decode()
    return base64.b64encode(bytes([8]) + row.tobytes()).decode()
