"""Formulas typed into a page: its parser has the values, slopes and messages of Python's."""

from __future__ import annotations

import json
import random
import subprocess
import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.lab.problems.formula import FUNCTIONS, Formula, FormulaError
from optlab.plan import capture_value_and_grad
from optlab.viz.browser.joining import joined
from optlab.viz.explorer import formula_operations
from tests.lab.test_functions import REFUSED
from tests.plan.javascript import NODE, needs_node

POINTS = [(-1.75, 0.6), (0.3, -1.25), (2.0, 2.5), (0.7, 0.2), (1.0, 1.0), (0.0, -0.5)]

_READ = """
const texts = JSON.parse(process.argv[2]), points = JSON.parse(process.argv[3]);
console.log(JSON.stringify(texts.map((text) => {
  try {
    const { dimension, evaluate } = compiledFormula(text);
    return { dimension, values: points.map((point) => evaluate(point).map(String)) };
  } catch (error) {
    if (!(error instanceof FormulaError)) throw error;
    return { said: error.message, start: error.start, end: error.end, instead: error.instead };
  }
})));
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Return a function that reads texts by the page's parser."""
    file = tmp_path_factory.mktemp("formula") / "formula.mjs"
    source = joined(formula_operations.FILE.with_name("formula.js"))
    file.write_text(f"{source}\n{_READ}", encoding="utf-8")

    def each(texts):
        given = [str(NODE), str(file), json.dumps(texts), json.dumps(POINTS)]
        done = subprocess.run(given, capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    return each


def python(text):
    """Read a text by Python: its captured value and slopes at the points, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            formula = Formula(text)
    except FormulaError as error:
        return {"said": str(error), "start": error.start, "end": error.end,
                "instead": error.instead}  # fmt: skip
    count = formula.dimension
    with np.errstate(all="ignore"):
        plan = capture_value_and_grad(formula, *[np.float64(0.5)] * count)
        values = [plan.replay(*map(np.float64, point[:count])) for point in POINTS]
    return {"dimension": count, "values": np.array(values, float)}


def numbers(found):
    return np.array([[float(x.replace("Infinity", "inf")) for x in row] for row in found["values"]])


def test_the_written_operations_are_those_of_the_engine():
    assert formula_operations.FILE.read_text(encoding="utf-8") == formula_operations.javascript()


EXACT = (
    "(1-x)**2 + 100*(y-x**2)**2", "x**4 - 16*x**2 + 5*x + y**4", "x*x*x*y - x/y/(1 + x*x)",
    "-x**2 - -y**3", "2/x + x/2 - 3", "x**-3 + y**-1 + x**1 + y**0", "x**5*y**7 - x**64/1e9",
    "np.sum((p - 1)**2)", "mean(p**2)*prod(p)", "p[0]**3 - 3*p[0]*p[1]**2", "x*(y*(x*(y + x)))",
    "x**(2 + 1) - y**(6/3)", "(x + y)*(x - y) + x*y + x*x*y", "sqrt(x*x + y*y + 1)", "x**2.0",
    "where(x < y, x*x, 3*y)", "where(x + 1 >= y**2, x/y, y)", "abs(x) + fabs(y*x)", "sign(x)*y + x",
    "maximum(x, y)*minimum(x, 2*y)", "max(x, 1) + min(y, x)", "square(x - y) + 0.1*x",
    "1e-3*x - .5*y",
    "x - (y - (x - (y - 2)))", "x # the rest is a remark", "(x +\n y)**2", "0x10*x + 1_000*y",
    "+x*+y", "pi*x + e*y + np.pi", "numpy.square(x)*math.pi",
)  # fmt: skip
ROUNDED = (
    *(f"{n}({a})" for n in FUNCTIONS for a in ("x, y",) if n in
      ("hypot", "arctan2", "atan2")),
    *(f"{n}(0.3*x)*y + {n}(y/4)" for n in FUNCTIONS
      if n not in ("hypot", "arctan2", "atan2", "max", "min", "maximum", "minimum", "where")),
    "x**2.5 + x**y", "2**x - y**0.3", "x**-0.5", "exp(-(x**2 + y**2))*cos(3*x)", "x**70",
)  # fmt: skip


@needs_node
def test_arithmetic_and_whole_powers_have_the_engine_s_bits(read):
    for text, found in zip(EXACT, read(EXACT), strict=True):
        wanted = python(text)
        assert found["dimension"] == wanted["dimension"], text
        assert np.array_equal(numbers(found), wanted["values"], equal_nan=True), text


@needs_node
def test_other_functions_agree_to_their_last_digits(read):
    for text, found in zip(ROUNDED, read(ROUNDED), strict=True):
        wanted = python(text)
        np.testing.assert_allclose(numbers(found), wanted["values"], rtol=2e-14, err_msg=text)


def made(rng, depth):
    """Return a random formula of sums, products, quotients and whole powers."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["x", "y", "x", "y", "2", "0.5", "3", "1.25", "7"])
    one, two = made(rng, depth - 1), made(rng, depth - 1)
    kind = rng.randrange(9)
    if kind < 5:
        spaces = rng.choice(["", " "])
        return f"({one}{spaces}{'+-*/*'[kind]}{spaces}{two})"
    if kind == 5:
        return f"-{one}"
    if kind == 6:
        return f"({one})**{rng.choice([2, 3, 4, 5, -1, -2, 9])}"
    if kind == 7:
        return f"where({one} {rng.choice(['<', '<=', '>', '>='])} {two}, {two}, {one})"
    return f"{rng.choice(['sqrt', 'abs', 'square'])}({one})"


@needs_node
def test_random_formulas_have_the_engine_s_bits(read):
    rng = random.Random(7)
    texts = [made(rng, 5) for _ in range(250)]
    known = 0
    for text, found in zip(texts, read(texts), strict=True):
        wanted = python(text)
        assert ("said" in found) == ("said" in wanted), text
        if "said" in wanted:
            assert found == wanted
            continue
        known += 1
        assert found["dimension"] == wanted["dimension"]
        assert np.array_equal(numbers(found), wanted["values"], equal_nan=True), text
    assert known > 150


MORE_REFUSED = (
    "", "   ", "(1-x)^2 + y^2", "x***2", "x**2 + * y", "x y", "sin(x", "f(p) = p[0]", "p[1.0]",
    "p[True]", "p + 1", "sum(p) + x", "sum(p, 1)", "cosh", "sqr(x)", "expp(x) + 1", "tahn(x)",
    "foo + 1", "bar(x)", "y3 + 1", "x == y", "x < 1", "not x", "x and y", "x or y", "x % 2",
    "[x]", "(x, y)", "{1}", "'x'", "x.real", "1j*x", "where(x > 0 > y, 1, 2)",
    "where(x == 1, 2, 3)",
    "hypot(x)", "where(x < 1, 2)", "sin()", "np.foo(x)", "x if y else 1", "1/0*x", "exp(1000)*x",
    "log(-1) + x", "(-8)**(1/3) + x", "3", "pi", "sum(3)", "x ** ", "x + 1e400", "2 x", "x(2)",
    "x + é", "~x", "x | y", "x @ y", "x; y", "x, y", "x[0]", "*x", "print(x)", "x := 2", "01 + x",
)  # fmt: skip


@needs_node
def test_messages_and_places_are_python_s(read):
    texts = [text for text, _ in REFUSED if "__import__" not in text] + list(MORE_REFUSED)
    different = []
    for text, found in zip(texts, read(texts), strict=True):
        wanted = python(text)
        assert "said" in wanted, text
        assert "said" in found, text
        # How deep parentheses may be is Python's own; a comprehension is no expression of ours.
        if found != wanted and not text.startswith(("((((", "----", "[x for")):
            different.append((text, found, wanted))
    assert not different, "\n".join(map(str, different))


def test_an_empty_problem_says_what_to_type():
    for text in ("", "  "):
        with pytest.raises(ValueError, match=r'a formula such as "x\*\*2 \+ 3\*y\*\*2", or a name'):
            ol.explore(text)


def test_a_hat_is_written_out_and_all_functions_are_listed():
    with pytest.raises(FormulaError, match=r"\^ is no power.*here \(1-x\)\*\*2 \+ y") as caught:
        Formula("(1-x)^2 + y")
    assert (caught.value.start, caught.value.instead) == (5, "(1-x)**2 + y")
    with pytest.raises(FormulaError) as caught:
        Formula("x // 2")
    assert all(f" {name}," in str(caught.value) for name in FUNCTIONS)


_STARTS = """
const texts = JSON.parse(process.argv[2]);
console.log(JSON.stringify(texts.map((text) => formulaSurface(compiledFormula(text)).start)));
"""


@needs_node
def test_the_start_is_python_s_also_where_the_usual_one_is_not_defined(tmp_path):
    texts = ["x**2 + y", "x - log(x) + y**2", "sqrt(x*y - 3) + x**2", "log(x + y - 4) + y", "1/x",
             "log(x)*x"]  # fmt: skip
    file = tmp_path / "starts.mjs"
    file.write_text(joined(formula_operations.FILE.with_name("formula.js")) + _STARTS)
    given = [str(NODE), str(file), json.dumps(texts)]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    wanted = [list(ol.problems.find(text).nearest_defined()) for text in texts]
    assert json.loads(done.stdout) == wanted


def test_the_numbers_of_the_references_are_theirs():
    """What a line search pays: a step for each point that it moves to, of all its gradients."""
    methods = {"Newton": ol.lab.Newton(), "SGD": ol.optimizer.SGD(0.01)}
    made = ol.explore("(x - 1)**4 + (x - y)**2", methods, steps=80)
    race = ol.compare("(x - 1)**4 + (x - y)**2", {"N": ol.lab.Newton()}, steps=80)
    runs = made.model.runs["Newton"]
    steps, gradients = runs.paid()[runs.rates.index(1.0)]
    assert (steps, gradients) == (len(race["N"].loss), race.evaluations["N"][-1])
    assert made.model.runs["SGD"].paid()[0] == [80, 80]


def test_methods_that_search_are_added_as_they_are_used():
    from optlab.viz.explorer.state import optimizer_classes, usual_template

    for name in ("LBFGS", "SteepestDescent", "ConjugateGradient", "Newton"):
        template = usual_template(optimizer_classes()[name])
        assert template.settings["line_search_fn"] == "strong_wolfe"
