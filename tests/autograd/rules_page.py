"""Writes optlab/autograd/rules/README.md, the table of all derivative rules.

Run it from the root of the repository:

    python -m tests.autograd.rules_page

The column of checks counts the rows in tests/autograd/rows, so this module belongs to the tests.
"""

from __future__ import annotations

from pathlib import Path

from optlab.autograd.reference.entries import Entry, conventions, entries
from optlab.autograd.reference.notes import ELSEWHERE
from optlab.autograd.reference.text import home_of, short_text
from tests.autograd.rows import ROWS

COMMAND = "python -m tests.autograd.rules_page"
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "optlab" / "autograd" / "rules" / "README.md"

INTRODUCTION = f"""\
<!-- Written by `{COMMAND}`; a test fails when it is out of date. -->

# Every function, its rule and its checks

What a NumPy function is to a Tensor, in one row. In a rule, `g` is the incoming gradient, `y`
the output, `x` (or `a` and `b`) the inputs; the arguments of a rule are what the tape keeps for it.
A rule is plain NumPy, so it is differentiable again; `product`, `quotient`, `where_mask` and
`zeros_of` are arithmetic in which nothing times infinity is nothing ([guarded.py](guarded.py)).
`optlab rules tanh` shows one function with the source of its rules and of what they call.

*Checks* counts the cases in which the gradient check compares the derivatives of first and second
order with finite differences in float64; the same cases hold values and dtypes against NumPy, the
gradients of float32, and ensembles. To add a rule, see
[CONTRIBUTING.md](../../../CONTRIBUTING.md#add-a-derivative-rule).

On this page: [conventions](#where-there-is-no-derivative), [functions with a
rule](#functions-with-a-rule), [zero derivatives](#flat-almost-everywhere), [composed
functions](#written-with-other-functions), [operations of the engine](#operations-of-the-engine),
[random numbers](#random-numbers), [no derivative](#no-derivative-plain-arrays),
[refused](#refused).
"""


def page() -> str:
    """Return the text of the page."""
    every = [entry for entry in entries() if not _is_of_layers(entry)]
    of_numpy = [entry for entry in every if not entry.is_of_the_engine]
    ours = [entry for entry in every if entry.is_of_the_engine]
    parts = [INTRODUCTION, _conventions()]
    for title, kind, said in (
        ("Functions with a rule", "rule", "After the semicolon: arguments that are not arrays."),
        ("Flat almost everywhere", "zero", "Their derivative is 0, also where they jump."),
        ("Written with other functions", "composed", "They need no rule: what they call has one."),
    ):
        parts.append(f"## {title}\n\n{said}\n\n{_table(_of(of_numpy, kind))}")
    parts.append(
        "## Operations of the engine\n\nWhat a Tensor's own syntax runs, and what the rules and "
        f"functions above are made of.\n\n{_table(ours)}"
    )
    parts.append(_random(every))
    plain = _names(of_numpy, "plain")
    parts.append(
        f"## No derivative: plain arrays\n\nThey see the values, and what is computed from their "
        f"results needs no gradient.\n\n{plain}\n"
    )
    parts.append(
        "## Refused\n\nWriting into an array would lose the gradient (`t[index] = value` on a "
        f"Tensor is recorded):\n\n{_names(of_numpy, 'in place')}\n\nOnly for whole numbers and "
        f"truth values:\n\n{_names(of_numpy, 'whole numbers')}\n\nEvery other function of NumPy is "
        "refused by name, with what to write instead; "
        "[`optlab.autograd.Function`](../function.py) takes a backward of your own.\n"
    )
    return "\n".join(parts)


def _is_of_layers(entry: Entry) -> bool:
    """Return whether a row belongs to floor 3: it exists only once `optlab.nn` is imported."""
    return str(getattr(entry.function, "__module__", "")).startswith("optlab.nn")


def _of(every: list[Entry], kind: str) -> list[Entry]:
    return [entry for entry in every if entry.kind == kind]


def _conventions() -> str:
    rows = [[where.replace("``", "`"), what.replace("``", "`"), _link("elementwise.py")]
            for where, what in conventions()]  # fmt: skip
    for where, what, file, _ in ELSEWHERE:
        rows.append([where, what, _link(f"{file}.py")])
    return (
        "## Where there is no derivative\n\nAt a kink, a jump or a pole the rule chooses. The "
        "choices are tested, most of them in "
        "[test_conventions.py](../../../tests/autograd/test_conventions.py).\n\n"
        + _rows(["where", "convention of the rule", "said in"], rows)
    )


def _link(file: str) -> str:
    return f"[{file}]({file})"


def _table(every: list[Entry]) -> str:
    rows = [
        [
            f"`{entry.name}`",
            _code(entry.inputs),
            _rule(entry),
            str(len(ROWS.get(entry.function, ()))),
        ]
        for entry in every
    ]
    return _rows(["function", "inputs", "rule, or where it is written", "checks"], rows)


def _rule(entry: Entry) -> str:
    """Return the rules of a row, one per input; a longer rule as a link to its file."""
    if entry.operation is None:
        return _place(entry.written)
    said = {}
    for inputs, rule in entry.rules():
        text = "no derivative" if rule is None else _text(rule)
        said[text] = f"{said[text]}, {inputs}" if text in said else inputs
    if len(said) == 1:
        return next(iter(said))
    return "<br>".join(f"{inputs}: {text}" for text, inputs in said.items())


def _text(rule: object) -> str:
    text = short_text(rule)
    return _code(text) if text.startswith("lambda") else _place(rule)


def _place(function: object) -> str:
    home = home_of(function)
    path = home.removeprefix("rules/") if home.startswith("rules/") else f"../{home}"
    name = getattr(function, "__name__", "")
    return (
        f"[{name} in {home}]({path})" if name not in ("called", "written") else f"[{home}]({path})"
    )


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`" if text else ""


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _names(every: list[Entry], kind: str) -> str:
    return ", ".join(f"`{entry.name}`" for entry in _of(every, kind))


def _random(every: list[Entry]) -> str:
    rows = []
    for entry in _of(every, "random"):
        said = (entry.function.__doc__ or "").split("\n\n")[0].replace("\n", " ").split()
        name = entry.name.removeprefix("ol.numpy.")
        rows.append([f"`{name}`", " ".join(said), _place(entry.function)])
    return (
        "## Random numbers\n\nIn `optlab.numpy.random`, drawn from keys (`ol.seed`, "
        "`ol.random_scope`); their derivatives are those of the operations `scaled_noise`, "
        "`correlated_noise`, `triangular` and `dropout` above, at fixed noise.\n\n"
        + _rows(["function", "what it draws", "written in"], rows)
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
