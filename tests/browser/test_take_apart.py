"""Take apart: one step as lines with numbers, and as arrows of the same numbers."""

import numpy as np
import pytest
from playwright.sync_api import expect

import optlab as ol
from optlab.viz.backends.scene import Contour, Text
from optlab.viz.explorer.apart_image import apart_scene
from optlab.viz.explorer.state import optimizer_classes, usual_template
from tests.browser.test_explorer import STATE, Page, explorer, inked, ready

pytestmark = [pytest.mark.browser, pytest.mark.nightly, pytest.mark.slow]

O = ol.optimizer  # noqa: E741
RATES = {"Adadelta": 50.0, "LBFGS": 1.0, "Newton": 1.0, "SteepestDescent": 1.0,
         "ConjugateGradient": 1.0, "Lion": 0.02, "Rprop": 0.02}  # fmt: skip
LINES = """root => {
  const { explorer } = root;
  const { lines } = explorer.apart.lines();
  const one = ({ text, raised }) => (raised ? "^" : "") + text;
  const text = (pieces) => pieces.map(one).join("");
  return {
    labels: lines.map(({ label }) => label),
    cells: lines.map(({ cells }) => cells.map(text)),
    notes: lines.map(({ note }) => text(note)),
  };
}"""
# Each arrow's direction in the plane, by the name of its line.
ARROWS = """root => {
  const { explorer } = root, { apart, map, selected } = explorer;
  const from = map.place(selected.run, selected.run.path, apart.step - 1);
  const found = {};
  for (const { text, from: a, to, small, line } of apart.arrows(map, from)) {
    if (!small) found[line] = [to[0] - a[0], a[1] - to[1]];
  }
  const unit = (map.box[1] - map.box[0]) / map.width;
  const inside = map.inside(map.place(selected.run, selected.run.path, apart.step));
  return { found, unit, inside };
}"""
BARS = """root => Array.from(root.querySelectorAll("[data-line]"), (line) => [
  line.dataset.line,
  Array.from(line.querySelectorAll(".ol-bars"), (bars) => {
    const middle = bars.getBoundingClientRect().left + bars.getBoundingClientRect().width / 2;
    const bar = bars.lastElementChild.firstElementChild.getBoundingClientRect();
    return Math.round(bar.left + bar.width / 2 - middle);
  }),
])"""


@pytest.fixture
def opened(chromium, tmp_path):
    """Return a function that opens the page of an explorer in Take apart."""
    pages = []

    def show(made, **size):
        path = tmp_path / f"apart{len(pages)}.html"
        made.change(view="apart").to_html(path)
        pages.append(Page(chromium, path, **size))
        return pages[-1]

    yield show
    for page in pages:
        page.close()


def own(x, y):
    """No preset has this function."""
    return x**4 / 8 - x * y + 2 * y**2 + x


def templates():
    found = {
        name: usual_template(cls, {"learning_rate": RATES.get(name, 0.05)})
        for name, cls in optimizer_classes().items()
    }
    return {
        **found,
        "Nesterov": O.Momentum(0.02, use_nesterov=True),
        "RMSProp+": O.RMSProp(0.05, centered=True, momentum=0.5),
        "AMSGrad": O.Adam(0.1, beta2=0.5, amsgrad=True),
        "AdamW+": O.AdamW(0.1, weight_decay=0.5),
        "clipped": O.Adam(0.05, weight_decay=0.1, grad_clip=ol.nn.ClipGradByGlobalNorm(1.0)),
        "by value": O.SGD(0.05, grad_clip=ol.nn.ClipGradByValue(0.5)),
        "LookAhead": O.LookAhead(O.Momentum(0.02), alpha=0.5, k=3),
        "EMA": O.ExponentialMovingAverage.around(O.Adam(0.05), decay=0.8),
    }


def show(page, name, step):
    page.root.evaluate(
        "(root, [selected, step]) => root.explorer.set({ selected, step })", [name, step]
    )
    ready(page.root)


def test_page_and_python_write_the_same_lines_for_every_optimizer(opened):
    given = templates()
    made = ol.explore(own, given, steps=24, start=(-1.5, 1.25))
    page = opened(made)
    model = made.model
    for name in given:
        rate = model.rate_index(name)
        stopped = int(model.runs[name].stopped[rate])
        for step in (1, 2, 6, 24):
            if 0 <= stopped < step:
                continue
            show(page, name, step)
            found = page.root.evaluate(LINES)
            for c in (0, 1):
                rows = model.what_happened(name, step, c)
                assert [row[1] for row in rows] == [cell[c] for cell in found["cells"]], name
            notes, _ = model.step_notes(name, step)
            assert found["notes"] == notes, name
            assert found["labels"][0] == "−gradient"
            assert not any("not a number" in cell for cells in found["cells"] for cell in cells)


@pytest.mark.parametrize("name", ["SGD", "Nesterov", "AdamW+", "Rprop", "clipped", "LookAhead"])
def test_bars_and_arrows_agree(opened, name):
    made = ol.explore(own, {name: templates()[name]}, steps=24, start=(-1.5, 1.25))
    page = opened(made)
    for step in (2, 3, 7):
        show(page, name, step)
        arrows = page.root.evaluate(ARROWS)
        bars = dict(page.root.evaluate(BARS))
        gradient = made.model.runs[name].gradient[made.model.rate_index(name), step - 1]
        downhill = np.array(arrows["found"]["−gradient"])
        assert np.allclose(downhill / np.hypot(*downhill), -gradient / np.hypot(*gradient))
        update = made.model.runs[name].update[made.model.rate_index(name), step - 1]
        length = np.array(arrows["found"]["update"]) * arrows["unit"]
        assert np.allclose(length, update, rtol=1e-6), "true length"
        assert arrows["inside"]
        for label, arrow in arrows["found"].items():
            for pixels, part in zip(bars[label], arrow, strict=True):
                if abs(pixels) > 1:
                    assert np.sign(pixels) == np.sign(part), (label, step)


def test_a_divisor_that_has_outgrown_the_others_has_a_scale_of_its_own(opened):
    made = ol.explore().change(selected="Adam", view="apart")
    page = opened(made)
    for step, alone in ((5, False), (60, True)):
        show(page, "Adam", step)
        scale = page.root.locator('[data-line="scale"]')
        assert scale.get_by_text("own scale").count() == alone
        widths = page.root.evaluate(
            """root => Object.fromEntries(["−gradient", "scale"].map((label) => [label, Math.max(
              ...Array.from(root.querySelectorAll(`[data-line="${label}"] .ol-bars`), (bars) =>
                bars.lastElementChild.firstElementChild.offsetWidth / bars.offsetWidth))]))"""
        )
        assert min(widths.values()) > 0.15
        assert widths["scale"] > 0.49
        model = made.change(step=step).model
        lines = apart_scene(model, 900, 400).panels[-1].marks
        said = " ".join(mark.text for mark in lines if isinstance(mark, Text))
        assert said.count("bars have their own scale") == alone


def test_no_arrow_lies_under_a_longer_one_and_lines_to_names_are_quiet(opened):
    page = opened(ol.explore().change(selected="Adam"), width=702)
    for step in (5, 20, 60):
        show(page, "Adam", step)
        arrows, leaders, quiet = page.root.evaluate(
            """root => {
              const { map, apart, palette, selected } = root.explorer, { run } = selected;
              const [from, to] = [1, 0].map((k) => map.place(run, run.path, apart.step - k));
              const labels = map.labelsOver(map.groundLabels, map.top.getContext("2d"));
              const marks = apart.planeMarks(labels, map, from, to, 15);
              const whole = apart.arrows(map, from).filter(({ small }) => !small);
              const drawn = marks.filter(({ kind, pen }) => kind === "Arrow"
                && whole.some(({ thick, color }) => pen.width === thick && pen.color === color));
              const leaders = marks.filter(({ kind, pen }) => kind === "Line" && pen.width < 2);
              return [drawn.map(({ x0, y0, x1, y1 }) => Math.hypot(x1 - x0, y1 - y0)),
                leaders.map(({ pen }) => [pen.color, pen.width]), palette.quiet];
            }"""
        )
        assert len(arrows) == 3
        assert arrows == sorted(arrows, reverse=True)
        assert all(look == [quiet, 1] for look in leaders)


def test_contour_lines_cross_the_picture_of_every_step(opened):
    made = ol.explore().change(view="apart")
    page = opened(made)
    for name, step in (("Adam", 5), ("Adam", 60), ("Momentum", 5), ("Momentum", 300)):
        show(page, name, step)
        levels, ends = page.root.evaluate(
            """root => {
              const { levels, values } = root.explorer.map.field;
              const sorted = [...values].sort((a, b) => a - b);
              const share = (part) => sorted[Math.floor(part * (sorted.length - 1))];
              return [levels.map(({ loss }) => loss), [share(0.1), share(0.9)]];
            }"""
        )
        assert sum(ends[0] < level < ends[1] for level in levels) >= 4
        picture = apart_scene(made.change(selected=name, step=step).model, 900, 400).panels[0]
        [ground] = [mark for mark in picture.marks if isinstance(mark, Contour)]
        ends = np.quantile(ground.height, [0.1, 0.9])
        assert ((ground.levels > ends[0]) & (ground.levels < ends[1])).sum() >= 4


def test_parts_lead_head_to_tail_to_the_arrow(opened):
    page = opened(ol.explore(own, ["Adam"], steps=24).change(step=6))
    ends = page.root.evaluate(
        """root => {
          const { apart, map, selected } = root.explorer;
          const from = map.place(selected.run, selected.run.path, apart.step - 1);
          const own = apart.arrows(map, from).filter(({ line }) => line === "momentum");
          return own.map(({ from, to }) => [from, to]);
        }"""
    )
    (start, joint), (tail, head), (whole_start, whole_head) = np.array(ends)
    assert np.allclose(start, whole_start)
    assert np.allclose(joint, tail)
    assert np.allclose(head, whole_head)


def test_hovering_a_line_changes_its_arrow_and_fades_the_others(opened):
    page = opened(ol.explore(own, ["Momentum", "Adam"], steps=24).change(step=6))
    root = page.root
    plain = root.locator(".ol-map canvas").nth(2).screenshot()
    box = root.evaluate("root => root.explorer.map.box")
    root.locator('[data-line="momentum"]').hover()
    ready(root)
    assert root.evaluate("root => root.explorer.map.box") == box
    assert root.locator(".ol-map canvas").nth(2).screenshot() != plain
    faded = root.locator(".ol-apart-line.ol-faded")
    assert faded.count() == root.locator(".ol-apart-line").count() - 1
    root.locator('[data-line="update"]').focus()
    assert root.evaluate("root => root.explorer.apart.hovered") == "update"
    root.locator(".ol-claim").hover()
    root.locator(".ol-scrub").focus()
    assert faded.count() == 0


def test_a_click_on_a_row_chooses_the_optimizer(opened):
    page = opened(ol.explore(own, ["Momentum", "Adam"], steps=24).change(step=6))
    for name in ("Momentum", "Adam"):
        page.root.locator(".ol-row-name", has_text=name).click()
        ready(page.root)
        assert page.root.evaluate(STATE)["selected"] == name
        has_scale = page.root.locator('[data-line="scale"]').count() == 1
        assert has_scale == (name == "Adam")


def test_numbers_have_the_colors_of_their_arrows(opened):
    """A part has one color for all optimizers, and none of theirs."""
    parts = {}
    page = opened(ol.explore(own, ["Momentum", "Adam", "SGD", "AdamW"], steps=24).change(step=6))
    for name in ("Momentum", "Adam", "SGD", "AdamW"):
        show(page, name, 6)
        colors = page.root.evaluate(
            """root => Object.fromEntries(Array.from(root.querySelectorAll("[data-line]"),
              (line) => [line.dataset.line, getComputedStyle(line.querySelector("b")).color]))"""
        )
        assert len(set(colors.values())) >= min(len(colors), 4) - (name == "AdamW"), colors
        for part in colors.keys() & {"momentum", "scale", "weight decay"}:
            assert parts.setdefault(part, colors[part]) == colors[part]
            assert colors[part] != colors["update"]
        result = page.root.locator('[data-line="update"] .ol-formula b').first
        shown = result.evaluate("b => getComputedStyle(b).color")
        assert shown == colors["update"]


def test_a_function_of_one_variable_has_a_picture(opened):
    made = ol.explore(lambda x: x**4 / 4 - x**2 + 0.3 * x, ["SGD", "Adam"], start=(-1.9,), steps=40)
    page = opened(made.change(step=3, selected="Adam"))
    assert inked(page.root, ".ol-map canvas[tabindex]") > 20
    expect(page.root.locator(".ol-apart-head span")).to_have_count(2)
    box = page.root.evaluate("root => root.explorer.map.box")
    path = made.model.runs["Adam"].point[made.model.rate_index("Adam")]
    assert box[0] < min(path[2:4]) < max(path[2:4]) < box[1]
    rows = [row[1] for row in made.model.what_happened("Adam", 3)]
    assert [cell[0] for cell in page.root.evaluate(LINES)["cells"]] == rows
    show(page, "SGD", 2)
    assert "memory" not in page.root.locator(".ol-claim").inner_text()


def test_nothing_is_said_of_a_memory_where_there_is_none(opened):
    names = ["SGD", "Adagrad", "Rprop"]
    page = opened(ol.explore("rosenbrock", names, steps=60))
    for name in names:
        for step in range(1, 60, 7):
            show(page, name, step)
            said = page.root.locator(".ol-claim").inner_text()
            said += page.root.locator(".ol-apart").inner_text()
            assert "memory" not in said
            assert "momentum" not in said


def test_the_bottom_bar_stays_where_it_is(opened):
    page = opened(ol.explore().change(selected="Adam", step=5))
    tops = set()
    for step in (5, 6, 40, 80, 150, 300):
        show(page, "Adam", step)
        tops.add(page.root.locator(".ol-play").bounding_box()["y"])
    assert len(tops) == 1


@pytest.mark.parametrize("width", [1190, 938, 852, 713])
def test_the_bottom_bar_has_one_place_in_both_modes_and_for_every_optimizer(opened, width):
    names = ["SGD", "Adam", "NAdam", "Muon", "AdamW", "Lamb"]
    page = opened(ol.explore("rosenbrock", names, steps=60), width=width)
    tops = set()
    for name in names:
        for step in (1, 5, 60):
            show(page, name, step)
            tops.add(page.root.locator(".ol-play").bounding_box()["y"])
        lines = page.root.locator('[data-line="update"]')
        ends = page.root.locator(".ol-apart").bounding_box()
        if name in ("SGD", "Adam"):  # the usual ones need not scroll
            last = lines.bounding_box()
            assert last["y"] + last["height"] <= ends["y"] + ends["height"] + 1, name
    page.root.get_by_role("button", name="Look").click()
    ready(page.root)
    tops.add(page.root.locator(".ol-play").bounding_box()["y"])
    assert max(tops) - min(tops) <= 1


@pytest.mark.parametrize("width", [1390, 1304, 938])
def test_few_lines_fill_their_room_and_many_are_not_cut(opened, width):
    given = {"SGD": O.SGD(0.0005), "AdamW": O.AdamW(0.1, weight_decay=0.1)}
    page = opened(ol.explore("rosenbrock", given, steps=60), width=width)
    for name in given:
        show(page, name, 5)
        room, last = (
            page.root.locator(which).last.bounding_box()
            for which in (".ol-apart", ".ol-apart .ol-position, .ol-apart-tip")
        )
        assert last["y"] + last["height"] <= room["y"] + room["height"] + 1
    show(page, "SGD", 5)
    lines = page.root.locator(".ol-apart-line").last.bounding_box()
    assert abs(lines["y"] + lines["height"] - room["y"] - room["height"]) < 2


@pytest.mark.parametrize("size", [1.0, 1.6])
@pytest.mark.parametrize("width", [1190, 938, 852, 664, 414])
def test_text_is_whole_and_large_enough(opened, width, size):
    made = ol.explore().change(selected="Adam", step=5, text_size=size)
    page = opened(made, width=width)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    small, cut = page.root.evaluate(
        """root => {
          const apart = root.querySelector(".ol-apart"), outer = root.getBoundingClientRect();
          const texts = Array.from(apart.querySelectorAll("*")).filter((e) =>
            [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
          const small = texts.filter((e) => e.tagName !== "SUP"
            && parseFloat(getComputedStyle(e).fontSize) < 13);
          const cut = texts.filter((e) => {
            const box = e.getBoundingClientRect();
            return box.right > outer.right + 1 || box.left < outer.left - 1;
          });
          return [small.map((e) => e.textContent), cut.map((e) => e.textContent)];
        }"""
    )
    assert small == []
    assert cut == []
    overlaps = page.root.evaluate(
        """root => {
          const boxes = Array.from(root.querySelectorAll(
            ".ol-apart-name > b, .ol-apart-note, .ol-apart-cell > .ol-formula, .ol-apart-tip"),
            (e) => [e.textContent, e.getBoundingClientRect()]);
          const found = [];
          boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
            const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
            const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
            if (across > 1 && down > 1) found.push([a, b]);
          }));
          return found;
        }"""
    )
    assert overlaps == []
    if width > 640 * size + 40:  # beside each other, picture and lines end together
        ends = page.root.evaluate(
            """root => [".ol-map", ".ol-apart"].map(
              (name) => root.querySelector(name).getBoundingClientRect().bottom)"""
        )
        assert abs(ends[0] - ends[1]) < 2


def test_a_saddle_is_named_only_near_a_point_without_slope(opened):
    made = ol.explore(lambda x, y: x**2 - y**2 + 0.1 * y**4, ["SGD"], start=(1.5, 0.2), steps=20)
    page = opened(made)
    page.root.get_by_role("button", name="Look").click()
    ready(page.root)
    canvas = page.root.locator(".ol-map canvas[tabindex]")
    box = canvas.bounding_box()

    def said(x, y):
        at = page.root.evaluate(
            "(root, [x, y]) => [root.explorer.map.x(x), root.explorer.map.y(y)]", [x, y]
        )
        page.page.mouse.move(box["x"] + at[0], box["y"] + at[1])
        ready(page.root)
        return page.root.locator(".ol-hover").inner_text()

    assert "saddle here" in said(0.0, 0.0)
    assert "saddle here" not in said(0.8, 0.6)


def test_in_a_notebook(notebook):
    code = "import optlab as ol\nol.explore('beale', ['SGD', 'Adam', 'Lamb'], steps=40)"
    root = explorer(notebook, code)
    root.get_by_role("button", name="Take apart").click()
    ready(root)
    assert root.evaluate(STATE)["step"] == 1
    expect(root.locator('[data-line="update"]')).to_be_visible()
    root.locator(".ol-row-name", has_text="Lamb").click()
    ready(root)
    expect(root.locator('[data-line="ratio"]')).to_be_visible()
    assert notebook.complaints == []
