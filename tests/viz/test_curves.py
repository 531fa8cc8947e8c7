"""Functions of one variable: page and static picture show the same heights and minima."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab.viz import explorer
from optlab.viz.browser.joining import joined
from optlab.viz.explorer.curve import curve_box, curve_view
from optlab.viz.explorer.image import _curve
from optlab.viz.explorer.live import given_to_page
from tests.plan.javascript import NODE, needs_node

HILL = "x**4 - 3*x**2 + x"
FORMULAS = (
    HILL, "x**2", "x**2 + 1000", "abs(x - 1)", "x**3", "sin(10*x) + x**2/9", "sqrt(x)", "3 + 0*x",
    "log(x)**2", "exp(x)", "max(abs(x) - 1, 0)", "abs(x*x - 2)", "1/x**2 + x**2",
)  # fmt: skip
_READ = """
const [texts, start, path] = process.argv.slice(2).map((text) => JSON.parse(text));
console.log(JSON.stringify(texts.map((text) => {
  const { surface } = { surface: formulaSurface(compiledFormula(text)) };
  const { domain, view } = surface;
  const loss = compiledFormula(text).evaluate([start])[0];
  const given = { x: path.map(([x]) => x), loss: path.map(([, y]) => y), count: path.length };
  return { view, box: curveBoxOf(view, domain[0], start, loss, [given]) };
})));
"""


def test_a_window_is_fit_to_the_minima_the_hill_between_them_and_the_paths():
    model = ol.explore(lambda x: x**4 - 3 * x**2 + x, ["SGD", "Adam"]).model
    box, view = model.box, curve_view(model.problem)
    low, high = view.low, view.high
    assert (round(low, 4), round(high, 4)) == (-3.5139, 0.0841)
    assert high - low > 0.45 * box.height, "the hill is seen"
    paths = np.concatenate(model.visited())
    assert box.holds(paths[:, 0], paths[:, 1]).all()
    roots = np.roots([4, 0, -6, 1]).real
    wanted = sorted(x for x in roots if 12 * x**2 > 6)
    assert [x for x, _ in view.marked] == pytest.approx(wanted, abs=1e-6)


def test_the_static_picture_and_the_page_mark_the_same_minima():
    model = ol.explore(lambda x: x**4 - 3 * x**2 + x, ["SGD"], steps=20).model
    sent = given_to_page(model, {})["problems"]["own"]["view"]["marked"]
    stars = [
        mark
        for mark in _curve(model).marks
        if getattr(getattr(mark, "marker", None), "name", "") == "star"
    ]
    assert np.array_equal(np.stack([stars[0].x, stars[0].y], axis=1), sent)
    assert len(stars) == 1


@pytest.mark.parametrize(
    ("formula", "count"),
    [("x**3", 0), ("3 + 0*x", 0), ("abs(x - 1)", 1), ("sin(40*x)", 9), ("abs(x*x - 2)", 2)],
)
def test_so_many_minima_are_marked(formula, count):
    assert len(curve_view(ol.problems.Surface(formula)).marked) == count


def test_known_minima_are_those_that_are_marked():
    assert [x for x, _ in curve_view(ol.problems.ripples).marked] == [
        x for (x,) in ol.problems.ripples.minima
    ]


@needs_node
def test_a_typed_formula_is_seen_as_python_sees_it(tmp_path):
    file = tmp_path / "curve.mjs"
    file.write_text(f"{joined(Path(explorer.__file__).parent / 'static' / 'formula.js')}\n{_READ}")
    start, path = 1.5, [[1.5, 0.75], [-1.0, 7.0], [9.0, 1e9]]
    given = [json.dumps(one) for one in (FORMULAS, start, path)]
    command = [str(NODE), str(file), *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    for formula, found in zip(FORMULAS, json.loads(done.stdout), strict=True):
        surface = ol.problems.Surface(formula)
        view, box = curve_view(surface), curve_box(surface, [start], [np.array(path)])
        assert len(found["view"]["marked"]) == len(view.marked), formula
        np.testing.assert_allclose(
            np.reshape(found["view"]["marked"], (-1, 2)),
            np.reshape(view.marked, (-1, 2)), rtol=1e-6, atol=1e-6, err_msg=formula,
        )  # fmt: skip
        wanted = [box.x_low, box.x_high, box.y_low, box.y_high]
        np.testing.assert_allclose(found["box"], wanted, rtol=1e-9, atol=1e-9, err_msg=formula)
