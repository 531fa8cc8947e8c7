"""The sentence over a race, and the mean of noisy losses: pages have those of figures."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from optlab.viz import explorer
from optlab.viz.browser.joining import joined
from optlab.viz.style.text import race_headline
from optlab.viz.views.curve_view import moving_mean
from tests.plan.javascript import NODE, needs_node

STATIC = Path(explorer.__file__).parent / "static"
RECORDED = Path(__file__).with_name("recorded_canvas.js").read_text(encoding="utf-8")
LONG = {f"a rather long name {i}": 1.0 for i in range(9)}
RACES = {
    "one": ({"SGD": 0.314}, 0.0),
    "a winner": ({"SGD": 0.314, "Adam": 12.3456}, 0.0),
    "no known minimum": ({"SGD": -3.5, "Adam": 2.0}, None),
    "above a minimum": ({"SGD": -6.7499, "Adam": -3.0}, -6.75),
    "at a minimum": ({"SGD": -6.75, "Adam": -3.0}, -6.75),
    "below a minimum that is none": ({"SGD": -7.0, "Adam": -3.0}, -6.75),
    "a tie": ({"SGD": 0.5, "Momentum": 0.5, "Adam": 0.5, "Lion": 0.7}, 0.0),
    "a tie of many": (LONG, 0.0),
    "one stopped": ({"SGD": math.inf, "Adam": 1e-9}, 0.0),
    "none finished": ({"SGD": math.inf, "Adam": math.nan}, 0.0),
}


def race(finals, minimum, steps):
    return SimpleNamespace(
        problem=SimpleNamespace(kind="surface", minimum_value=minimum, title="f(x, y)"),
        traces={name: SimpleNamespace(name=name, stopped=None) for name in finals},
        steps=steps, accuracy={}, final_loss=finals,
    )  # fmt: skip


def told(file, call):
    script = f"{RECORDED}\n{joined(STATIC / file)}\nconsole.log({call});"
    done = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


@needs_node
@pytest.mark.parametrize("steps", [1, 200])
@pytest.mark.parametrize("name", RACES)
def test_a_page_says_of_a_race_what_a_figure_says(name, steps):
    finals, minimum = RACES[name]
    given = [[one, loss if math.isfinite(loss) else None] for one, loss in finals.items()]
    call = f"raceSaid({json.dumps(given)}, {steps}, {json.dumps(minimum)})"
    assert told("headline.js", call) == race_headline(race(finals, minimum, steps))


@needs_node
@pytest.mark.parametrize("window", [3, 5, 25])
def test_a_page_takes_the_mean_that_a_figure_takes(window):
    values = np.random.default_rng(0).random(60)
    call = f"JSON.stringify(Array.from(meanOf({values.tolist()}, {window})))"
    found = json.loads(told("plot.js", call))
    np.testing.assert_allclose(found, moving_mean(values, window), rtol=1e-12)


@needs_node
def test_a_mean_ends_where_a_run_does():
    found = json.loads(told("plot.js", "JSON.stringify(Array.from(meanOf([1, 3, NaN, 5], 3)))"))
    assert found == [2, 2, None, 5]
