"""What the explorer's page decides, run by node without a browser."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from optlab.viz.browser.joining import joined
from optlab.viz.explorer import formula_operations
from optlab.viz.style.geometry import Box, view_box
from tests.plan.javascript import NODE, needs_node

pytestmark = needs_node
STATIC = formula_operations.FILE.parent


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a line behind a module of the page, and returns its value."""

    def value(module, expression):
        file = tmp_path / f"{module}.mjs"
        said = f"console.log(JSON.stringify({expression}));\n"
        file.write_text(f"{joined(STATIC / f'{module}.js')}\n{said}", encoding="utf-8")
        done = subprocess.run([str(NODE), str(file)], capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    return value


@pytest.mark.parametrize(
    ("network", "tab", "shown"),
    [
        ("false", "beside", "beside"),
        ("true", "beside", "loss"),
        ("true", "plane", "loss"),
        ("true", "memory", "memory"),
        ("false", "unknown", "loss"),
    ],
)
def test_recorded_runs_have_no_tabs_of_a_surface(run, network, tab, shown):
    plot = "Object.create(Plot.prototype, { explorer: { value: "
    plot += f"{{ network: {network}, state: {{ tab: '{tab}' }} }} }} }})"
    assert run("plot", f"{plot}.what") == shown


def test_keys_choose_only_tabs_that_are_shown(run):
    press = """[true, false].map((network) => {
      const chosen = [];
      const explorer = Object.create(Explorer.prototype);
      Object.assign(explorer, { network, state: { step: 0, tab: "loss" } });
      explorer.set = ({ tab }) => chosen.push(tab);
      explorer.plot = Object.create(Plot.prototype, { explorer: { value: explorer } });
      const composedPath = () => [{ tagName: "DIV" }];
      for (const key of "01234567") explorer.onKey({ key, composedPath });
      return chosen;
    })"""
    assert run("explorer", press) == [
        ["loss", "memory", "length"],
        ["loss", "memory", "length", "angle", "plane", "beside"],
    ]


def test_the_next_change_takes_a_message_back(run):
    said = """[{}, { inFlight: 3 }, { asks: true }, { orphaned: true }].map((now) => {
      const explorer = Object.create(Explorer.prototype);
      const message = { textContent: "no", hidden: false, querySelector: () => now.asks };
      Object.assign(explorer, { message, menu: { say() {} }, inFlight: now.inFlight, model: now });
      explorer.unsay();
      return explorer.message.textContent.slice(0, 30);
    })"""
    assert run("explorer", said) == ["", "no", "no", "The kernel of this page is gon"]


OUTSIDE = np.linspace((100.0, 100.0), (0.0, 0.0), 9)
AWAY = np.array([(1.0, 1.0), (-1e6, 1e6), (np.nan, np.inf)])


@pytest.mark.parametrize(
    ("must", "paths"),
    [
        ([(1.0, 1.0)], []),
        ([(1.0, 1.0), (0.0, 0.5)], [np.linspace((1.0, 1.0), (0.2, 0.5), 7)]),
        ([(100.0, 100.0)], [OUTSIDE]),
        ([(100.0, 100.0), (0.0, 0.0)], [OUTSIDE, AWAY]),
        ([(1.0, 1.0)], [AWAY]),
        ([(-1.9, 0.1)], [np.linspace((-1.9, 0.1), (-3.5, 5.0), 20)]),
    ],
)
def test_the_map_shows_what_a_picture_shows(run, must, paths):
    wanted = view_box(must, paths, Box(-2.0, 2.0, -1.0, 3.0))
    lists = json.dumps([dict(zip("xy", path.T.tolist(), strict=True)) for path in paths])
    found = run("view_box", f"viewBox({json.dumps(must)}, {lists}, [[-2, 2], [-1, 3]])")
    assert found == [wanted.x_low, wanted.x_high, wanted.y_low, wanted.y_high]


def test_a_start_outside_of_the_domain_is_on_the_map_with_its_path(run):
    box = run(
        "ground",
        """(() => {
          const surface = { domain: [[-2, 2], [-1, 3]], minima: [[0, 0]] };
          const path = Float64Array.of(100, 100, 50, 50, 0, 0);
          const state = { start: [100, 100], text_size: 1 };
          const shown = [{ run: { n: 2, path, last: 2, terms: {} } }];
          const explorer = { state, shown, engine: { surface: () => surface } };
          const map = Object.create(MapGround.prototype);
          return Object.assign(map, { explorer, width: 500, height: 300 }).fittingBox();
        })()""",
    )
    assert box[0] < -2
    assert box[1] > 100
    assert box[2] < -1
    assert box[3] > 100
    assert (box[1] - box[0]) / (box[3] - box[2]) == pytest.approx(500 / 300)


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([99.9, 99.95, 100, 100.05], ["99.9", "99.95", "100", "100.05"]),
        ([-2, -1, 0, 1], ["−2", "−1", "0", "1"]),
        ([1 - 2e-6, 1 - 1e-6, 1], ["0.999998", "0.999999", "1"]),
        ([123450, 123451, 123452], ["1.2345e5", "1.23451e5", "1.23452e5"]),
        ([0.30000000000000004, 0.4], ["0.3", "0.4"]),
        ([7], ["7"]),
        ([], []),
    ],
)
def test_numbers_of_an_axis_differ(run, ticks, texts):
    assert run("numbers", f"tickTexts({ticks})") == texts
    assert run("numbers", f"tickTexts({ticks[::-1]})") == texts[::-1]


PLOT = """((path, loss, floor, known, evaluate = null) => {
  const run = { n: 2, path, loss, stopped: -1 }, state = { tab: "loss", start: [1, 2] };
  const engine = { evaluator: () => evaluate };
  const explorer = { shown: [{ run }], floor: { floor, known }, state, engine };
  const plot = Object.create(Plot.prototype, { explorer: { value: explorer } });
  plot.height = 300;
  plot.chooseScale(loss, 0);
  const many = plot.ticks().length > 2;
  return [plot.still(), plot.scale, plot.low, plot.high > plot.low, many, plot.shift];
})"""
BOWL = "([x, y]) => [(x - 1) ** 2 + 3 * (y - 2) ** 2, 2 * (x - 1), 6 * (y - 2)]"
SADDLE = "([x, y]) => [(x - 1) ** 2 - (y - 2) ** 2, 2 * (x - 1), -2 * (y - 2)]"


@pytest.mark.parametrize(
    ("loss", "known", "evaluate", "said"),
    [
        (0, "true", "null", "The start is a minimum: nothing moves."),
        (5, "true", "null", "The start is a minimum: nothing moves."),
        (0, "false", BOWL, "The start is a minimum: nothing moves."),
        (0, "false", SADDLE, "The start has no slope: nothing moves."),
        (0, "false", "null", "The start has no slope: nothing moves."),
    ],
)
def test_a_start_that_nothing_leaves_has_a_scale_and_says_so(run, loss, known, evaluate, said):
    given = f"[1, 2, 1, 2, 1, 2], [{loss}, {loss}, {loss}], {loss}, {known}, {evaluate}"
    assert run("plot", f"{PLOT}({given})") == [said, "linear", 0, True, True, 0]


def test_a_path_that_moves_says_nothing(run):
    found = run("plot", f"{PLOT}([1, 2, 1, 2, 1, 1], [2, 2, 1], 0, true)")
    assert found[:2] == ["", "log"]


@pytest.mark.parametrize(
    ("first", "step", "moved"),
    [(0, 0, []), (0, 1, ["a", "b"]), (5, 0, []), (5, 4, []), (5, 5, ["a", "b"])],
)
def test_a_recorded_run_has_a_place_once_it_has_moved(run, first, step, moved):
    map_ = f"""(() => {{
      const path = {{ steps: [{first}, 10], points: [[0, 0], [1, 1]] }};
      const every = ["a", "b", "c"].map((name) => ({{ entry: {{ name }} }}));
      const explorer = {{ inOrder: () => every }};
      const plane = {{ paths: {{ a: path, b: path }} }};
      return Object.assign(Object.create(PathMap.prototype), {{ explorer, plane }});
    }})()"""
    found = run("path_map", f"{map_}.movedAt({step}).map(({{ entry }}) => entry.name)")
    assert found == moved


def test_a_setting_that_a_page_has_not_is_said_in_its_readers_words(run):
    said = """(() => {
      const engine = new Engine({});
      const settings = { beta1: 0.9, beta2: 0.99, learning_rate: 0.1 };
      const part = { title: "Adam", settings, notches: { beta1: [0, 0.3, 0.9], beta2: [0.99] } };
      const run = () => {
        throw new RangeError("Adam was written for beta1 = [0,0.3,0.9], not 0.123");
      };
      engine.program = {
        surfaces: { f: { evaluate: () => [0, 0, 0] } }, run,
        optimizers: { Adam: { parts: [part], steps: 100 } },
      };
      engine.given = { problems: { f: { start: [0, 0], noise: 0 } }, rules: { Adam: {} } };
      const entry = { name: "Adam", kind: "Adam", settings: { beta1: 0.123, beta2: 0.5 } };
      return engine.whyNot({ problem: "f", steps: 10, seed: 0 }, { ...entry, around: {} });
    })()"""
    assert run("engine", said) == "this page has beta1 only at 0, 0.3, 0.9"
