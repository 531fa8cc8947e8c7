"""The explorer's mode "look" in a browser: layout, examples, plots, rates, what is said of runs."""

from itertools import pairwise

import pytest

import optlab as ol
from optlab.viz.explorer.image import as_comparison
from optlab.viz.style.text import race_headline

pytestmark = [pytest.mark.browser, pytest.mark.nightly, pytest.mark.slow]

READY = """async (root) => {
  const end = performance.now() + 30000;
  const wait = () => !root.explorer || !root.explorer.laidOut || root.explorer.due.size
    || root.explorer.inFlight;
  while (wait()) {
    if (performance.now() > end) throw new Error("never drawn");
    await new Promise((done) => setTimeout(done, 15));
  }
}"""


@pytest.fixture
def opened(chromium, tmp_path):
    """Return a function that opens the page of an explorer and gives the page and its root."""
    pages, complaints = [], []

    def show(made, width=938, height=700):
        path = tmp_path / f"explorer{len(pages)}.html"
        made.to_html(path)
        page = chromium.new_page(viewport={"width": width, "height": height})
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        root = page.locator(".optlab-explorer")
        root.wait_for()
        root.evaluate(READY)
        pages.append(page)
        return page, root

    yield show
    for page in pages:
        page.close()
    assert complaints == []


def box(root, selector):
    found = root.locator(selector).first.bounding_box()
    assert found, selector
    return found


def bold(x, y):
    """Its lowest value is -4."""
    return x**2 + 3 * y**2 - 4


# Examples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1192, 938, 854])
def test_every_example_is_seen_at_once_and_chosen_by_a_click(opened, width):
    _, root = opened(ol.explore(), width)
    buttons = root.locator(".ol-example")
    assert buttons.count() == 10
    tops = {round(one.bounding_box()["y"]) for one in buttons.all()}
    assert len(tops) == 1, "one row"
    root.get_by_role("radio", name="saddle", exact=True).click()
    root.evaluate(READY)
    assert root.evaluate("root => root.explorer.state.preset") == "saddle escape"
    assert "At a saddle" in root.locator(".ol-claim").inner_text()
    assert root.locator('.ol-example[aria-checked="true"]').inner_text() == "saddle"


def test_examples_by_keys(opened):
    page, root = opened(ol.explore())
    root.locator(".ol-scrub").focus()
    for key, wanted in (("n", "oscillation"), ("n", "conditioning"), ("N", "oscillation")):
        page.keyboard.press(key if key == "n" else "Shift+N")
        root.evaluate(READY)
        assert root.evaluate("root => root.explorer.state.preset") == wanted
    root.locator('.ol-example[aria-checked="true"]').focus()
    page.keyboard.press("ArrowRight")
    root.evaluate(READY)
    assert root.evaluate("root => root.explorer.state.preset") == "conditioning"


def test_over_a_function_of_one_s_own_stands_who_is_lowest(opened):
    made = ol.explore(bold, ["SGD", "Momentum"], steps=200)
    _, root = opened(made)
    claim = root.locator(".ol-claim")
    assert claim.inner_text() == race_headline(as_comparison(made.model))
    assert "ol-muted" not in claim.get_attribute("class")
    root.evaluate("({ explorer }) => explorer.setRate('Momentum', 0.0001)")
    root.evaluate(READY)
    assert claim.inner_text().startswith("After 200 steps SGD is lowest, at loss ")
    root.evaluate("({ explorer }) => explorer.examples.choose('noise')")
    root.evaluate(READY)
    root.evaluate("({ explorer }) => explorer.set({ steps: 300, preset: '' })")
    root.evaluate(READY)
    assert claim.inner_text().startswith("After 300 steps ")


def test_of_a_path_of_chance_nobody_is_called_lowest(opened):
    made = ol.explore(
        lambda x: x**3 * 4 / 3 - x**2 * 3 / 2, {"SGD": ol.optimizer.SGD(1.0)}, start=0.3
    )
    _, root = opened(made)
    assert "After" not in root.locator(".ol-claim").inner_text()


def test_the_bar_stays_where_it_is_whatever_the_claim_says(opened):
    _, root = opened(ol.explore())
    places = set()
    for name in root.evaluate("root => root.explorer.examples.names"):
        root.evaluate("(root, name) => root.explorer.examples.choose(name)", name)
        root.evaluate(READY)
        places.add(round(box(root, ".ol-bar")["y"]))
        claim, room = box(root, ".ol-claim"), box(root, ".ol-claim-box")
        assert claim["height"] <= room["height"] + 1, name
    assert len(places) == 1


# Layout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1192, 938, 854, 715])
def test_sliders_keep_the_columns_of_the_pictures_and_have_one_notch(opened, width):
    _, root = opened(ol.explore("valley", ["SGD", "Momentum", "Adam"]), width)
    plot = box(root, ".ol-plot")
    for row in root.locator(".ol-row-right").all():
        assert row.bounding_box()["x"] == pytest.approx(plot["x"], abs=1)
    bar = root.locator(".ol-bar-right").bounding_box()
    assert bar["x"] == pytest.approx(plot["x"], abs=1)
    notches = root.evaluate(
        """root => [...root.explorer.controls.made.values()].flatMap(({ rate, other }) =>
             [rate, other].filter((one) => one && one.shown)
               .map(({ element, shown }) => element.offsetWidth / shown.values.length))"""
    )
    assert len(notches) == 5
    assert max(notches) - min(notches) < 0.5
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")


def test_three_rows_fit_a_small_laptop(opened):
    _, root = opened(ol.explore("valley", ["SGD", "Momentum", "Adam"]), 854)
    assert root.bounding_box()["height"] <= 610
    for canvas in root.locator(".ol-notch-canvas").all():
        assert canvas.bounding_box()["height"] >= 38


def test_on_a_phone_play_and_scrubber_are_below_the_map(opened):
    _, root = opened(ol.explore(), 390, 844)
    drawn, bar = box(root, ".ol-map"), box(root, ".ol-bar")
    assert 0 <= bar["y"] - drawn["y"] - drawn["height"] < 16
    assert bar["y"] + bar["height"] < 640
    assert box(root, ".ol-plot")["y"] > bar["y"]
    chosen = root.get_by_label("example", exact=True)
    chosen.select_option("noise")
    root.evaluate(READY)
    assert "With noise" in root.locator(".ol-claim").inner_text()


@pytest.mark.parametrize("width", [938, 852, 713, 414])
def test_what_is_said_above_the_sliders_and_in_the_head_is_whole(opened, width):
    asked = []

    def counted(x, y):  # a branch: it cannot be captured
        asked.append(x)
        return 4 * x**2 + y**2 if x > 1 else x**2 + y**2 + 3

    made = ol.explore(counted, ["SGD", "Momentum", "Adam"], start=(2, 1.5), steps=30)
    _, root = opened(made, width)
    caption = root.locator(".ol-caption")
    assert "computed by the kernel" in caption.inner_text()
    assert "so Python must run it" in caption.get_attribute("title")
    assert caption.evaluate("one => one.scrollWidth <= one.clientWidth")
    for name in root.locator(".ol-example").evaluate_all("all => all.map(one => one.dataset.name)"):
        root.evaluate("(root, name) => root.explorer.examples.choose(name)", name)
        root.evaluate(READY)
        claim, room = box(root, ".ol-claim"), box(root, ".ol-claim-box")
        assert claim["height"] <= room["height"] + 1, name


@pytest.mark.parametrize("size", [1.25, 1.6])
def test_large_text_keeps_every_slider_on_a_line_with_its_name(opened, size):
    _, root = opened(ol.explore().change(text_size=size), 938)
    for name in ("left", "right"):
        for row in root.locator(f".ol-row-{name}").all():
            label = row.locator(".ol-label").bounding_box()
            notches = row.locator(".ol-notches").bounding_box()
            value = row.locator(".ol-value").bounding_box()
            assert label["x"] + label["width"] <= notches["x"] + 1
            assert notches["x"] + notches["width"] <= value["x"] + 1
            assert notches["y"] - 1 <= label["y"] + label["height"] / 2 <= notches["y"] + 70 * size
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")


# Plots ----------------------------------------------------------------------------------------


def test_one_setting_is_a_row_of_bars_that_can_be_clicked(opened):
    page, root = opened(ol.explore().change(preset="oscillation", tab="plane"))
    shown = root.evaluate("root => root.explorer.plot.plane.shown")
    assert shown["second"] == ""
    assert len(shown["finals"]) == 1
    assert 0 < shown["best"] < len(shown["rates"]) - 1
    area = box(root, ".ol-plot-area")
    page.mouse.click(area["x"] + shown["left"] + 2.5 * shown["w"], area["y"] + shown["bottom"] - 20)
    root.evaluate(READY)
    rate = root.evaluate("root => root.explorer.selected.rate")
    assert rate == shown["rates"][2]


def test_the_best_of_all_runs_is_inside_the_plane(opened):
    flat = ol.explore(lambda x, y: (x**2 + 2 * y**2) / 200, ["Momentum"], steps=60)
    _, root = opened(flat.change(tab="plane"))
    shown = root.evaluate("root => root.explorer.plot.plane.shown")
    assert len(shown["finals"]) > 5
    assert 0 < shown["best"] % len(shown["rates"]) < len(shown["rates"]) - 1
    assert shown["rates"][-1] > 1
    assert root.evaluate(
        "root => { const { rates } = root.explorer.allRuns(root.explorer.selected.entry);"
        " return rates.every((rate, i) => !i || rate > rates[i - 1]); }"
    )


def test_losses_below_zero_are_drawn_above_the_lowest_that_was_seen(opened):
    _, root = opened(ol.explore(bold, ["SGD", "Adam"]))
    assert root.evaluate("root => root.explorer.plot.scale") == "log"
    assert "loss above the lowest seen, −4" in root.locator(".ol-about").inner_text()
    heights = root.evaluate("root => root.explorer.plot.curves[0].heights")
    assert all(height is not None for height in heights[:10])
    assert heights[0] < heights[5] < heights[10], "the loss falls"


@pytest.mark.parametrize(("steps", "step"), [(300, 100), (400, 100), (60, 20), (450, 200)])
def test_ticks_of_the_steps_are_even(opened, steps, step):
    _, root = opened(ol.explore("booth", ["SGD"], steps=steps))
    ticks = root.evaluate("root => root.explorer.plot.stepTicks()")
    assert {b - a for a, b in pairwise(ticks)} == {step}


def test_contours_are_round_numbers(opened):
    _, root = opened(ol.explore("rosenbrock"))
    for problem in ("rosenbrock", "himmelblau", "six_hump_camel", "styblinski_tang"):
        root.evaluate("(root, name) => root.explorer.chooseScene(`p:${name}`)", problem)
        root.evaluate(READY)
        base = root.evaluate("root => root.explorer.map.field.base")
        levels = root.evaluate("root => root.explorer.map.field.levels.map((one) => one.loss)")
        assert 4 <= len(levels) <= 24, problem
        assert levels == sorted(levels)
        for level in levels:
            above = level - base if base else level
            unit = 10.0 ** (len(f"{abs(above):.0f}") - 1) / 2 if above >= 1 else 0
            assert not unit or abs(level / unit - round(level / unit)) < 1e-9, (problem, level)


def test_before_the_first_step_routes_are_named_where_one_tells_them_apart(opened):
    _, root = opened(ol.explore().change(step=0))
    found = root.evaluate(
        """({ explorer: { map } }) => map.names.map(([one, places]) => {
          const [other] = map.names.filter(([each]) => each !== one);
          const near = (x, y) => map.sparse([other[0]]).map(([a, b]) => Math.hypot(a - x, b - y));
          return [one.entry.name, Math.min(...places.flatMap(([x, y]) => near(x, y)))];
        })"""
    )
    assert {name for name, _ in found} == {"Momentum", "Adam"}
    assert min(apart for _, apart in found) > 20
    root.evaluate("({ explorer }) => explorer.go(1)")
    root.evaluate(READY)
    assert root.evaluate("({ explorer: { map, plot } }) => [map.names.length, plot.atStart]") == [
        0, False,
    ]  # fmt: skip


def test_labels_stand_apart_from_each_other(opened):
    made = ol.explore("beale", ["SGD", "Momentum", "RMSProp", "Adam"]).change(step=60)
    _, root = opened(made)
    found = root.evaluate(
        """root => {
          const { plot } = root.explorer, boxes = [];
          const pen = plot.top.getContext("2d"), write = pen.fillText;
          pen.fillText = function (text, x, y) {
            boxes.push([text, x, y, pen.measureText(text).width]);
            return write.call(pen, text, x, y);
          };
          plot.drawTop();
          delete pen.fillText;
          return boxes;
        }"""
    )
    assert len(found) == 4
    for i, (one, x, y, wide) in enumerate(found):
        for other, x2, y2, wide2 in found[:i]:
            apart = abs(y - y2) > 14 or x > x2 + wide2 or x2 > x + wide
            assert apart, (one, other)


def test_labels_beside_the_cursor_have_the_order_of_their_curves(opened):
    _, root = opened(ol.explore().change(preset="stability limit", step=6))
    labels = """root => { root.explorer.plot.drawTop(); return root.explorer.plot.labels.map(
      (one) => ({ name: one.one.entry.name, py: one.py, wanted: one.wanted, from: one.from,
                  to: one.from + one.wide })); }"""
    found = root.evaluate(labels)
    assert [one["name"] for one in sorted(found, key=lambda one: one["py"])] == [
        "above", "at the limit", "below",
    ]  # fmt: skip
    values = root.locator(".ol-row-left .ol-value").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().left)"
    )
    assert max(values) - min(values) < 0.5, "the values of rates stand in a column"
    root.locator('.ol-example[data-name="momentum"]').click()  # one row has a second slider
    root.evaluate(READY)
    notches = root.evaluate("({ explorer }) => [...explorer.controls.made.values()].map("
                            "(one) => parseFloat(one.rate.element.style.width) / one.rates.length)")  # fmt: skip  # noqa: E501
    assert abs(notches[0] - notches[1]) < 0.01
    root.locator('.ol-example[data-name="stability limit"]').click()
    root.evaluate(READY)
    root.get_by_role("tab", name="memory").click()
    root.evaluate(READY)
    assert root.evaluate("({ explorer }) => explorer.plot.curves.length") == 0
    # In the middle of a plot neither side of the cursor has room for a long name at its full size.
    root.locator('.ol-example[data-name="bias correction"]').click()
    for step in (0, 15, 30, 45, 60):
        root.evaluate("({ explorer }, step) => explorer.go(step)", step)
        root.evaluate(READY)
        found = root.evaluate(labels)
        cursor = root.evaluate("({ explorer }) => explorer.plot.x(explorer.state.step)")
        width = root.evaluate("({ explorer }) => explorer.plot.width")
        assert len(found) == 2
        for one in found:
            assert one["to"] <= cursor - 6 or one["from"] >= cursor + 6, (step, one)
            assert one["from"] >= 0, (step, one)
            assert one["to"] <= width, (step, one)
        [first, second] = sorted(found, key=lambda one: one["wanted"])
        if (first["from"] > cursor) == (second["from"] > cursor):
            assert first["py"] + 14 < second["py"], step


def test_the_number_at_a_curve_is_one_of_its_axis(opened):
    _, root = opened(ol.explore().change(preset="saddle escape", step=60))
    assert "loss above the minimum −6.75" in root.locator(".ol-about").inner_text()
    found = root.evaluate(
        """({ explorer: { plot, shown } }) => plot.labels.map(({ one, text }) =>
             [text, `${one.entry.name} ${(one.run.loss[60] + 6.75).toPrecision(3)}`])"""
    )
    assert len(found) == 2
    for text, wanted in found:
        assert text == wanted
    root.get_by_role("tab", name="step length").click()
    root.evaluate(READY)
    assert root.evaluate("({ explorer }) => explorer.plot.shift") == 0


def test_a_race_of_networks_has_its_step_and_speeds_in_sight(opened):
    race = ol.compare("digits_mlp", {"Adam": ol.optimizer.Adam(0.003)}, steps=8)
    for width in (938, 390):
        _, root = opened(ol.explore(race), width=width)
        inside = box(root, ".ol-controls")
        for selector in (".ol-step", ".ol-speed", ".ol-scrub", ".ol-value"):
            found = box(root, selector)
            assert found["width"] > 10, (width, selector)
            assert found["x"] >= inside["x"], (width, selector)
            assert found["x"] + found["width"] <= inside["x"] + inside["width"], (width, selector)


def test_tabs_stay_on_one_line_and_in_place(opened):
    for width in (691, 914):
        _, root = opened(ol.explore(), width=width)
        places = []
        for name in ("loss", "memory", "angle", "all runs", "more"):
            root.get_by_role("tab", name=name, exact=True).click()
            root.evaluate(READY)
            places.append(
                root.locator(".ol-tab").evaluate_all(
                    "all => all.map((one) => [one.offsetLeft, one.offsetTop])"
                )
            )
            over = root.evaluate("""root => {
              const plot = root.querySelector(".ol-plot").getBoundingClientRect();
              const area = root.querySelector(".ol-plot-area").getBoundingClientRect();
              return Math.max(0, area.bottom - plot.bottom);
            }""")
            assert over <= 1, (width, name)
        assert all(one == places[0] for one in places), width
        assert len({top for _, top in places[0]}) == 1, width


# Rates and runs -------------------------------------------------------------------------------


def test_another_function_gets_rates_of_its_own_which_python_agrees_with(opened):
    _, root = opened(ol.explore())
    root.get_by_label("what is shown").select_option("p:booth")
    root.evaluate(READY)
    found = root.evaluate(
        "root => Object.fromEntries(root.explorer.shown.map((one) => [one.entry.name, one.rate]))"
    )
    model = ol.explore("booth", ["Momentum", "Adam"]).model
    assert found == {name: model.shown_rate(name) for name in ("Momentum", "Adam")}
    ladders = root.evaluate(
        "root => root.explorer.shown.map((one) => [one.rate, root.explorer.ladder(one.entry)])"
    )
    for rate, rates in ladders:
        assert rates[0] < rate < rates[-1]


def test_a_best_rate_beyond_the_ladder_is_python_s(opened):
    made = ol.explore(lambda x, y: (x**2 + y**2) / 1000, ["SGD", "Momentum"], steps=50)
    _, root = opened(made)
    found = root.evaluate("root => root.explorer.shown.map((one) => one.rate)")
    assert found == [made.model.shown_rate(name) for name in ("SGD", "Momentum")]
    assert min(found) > 1


def test_a_chaotic_path_is_no_best_rate_in_the_page_and_python_agrees(opened):
    import numpy as np

    made = ol.explore(lambda x: np.sin(3 * x) + x**2 / 4, ["SGD", "Momentum", "Adam"])
    _, root = opened(made)
    found = root.evaluate("root => root.explorer.shown.map((one) => one.rate)")
    assert found == [made.model.shown_rate(name) for name in ("SGD", "Momentum", "Adam")]
    assert root.evaluate("root => root.explorer.shown.every((one) => one.sensitive < 0)")
    # The ring of the slider marks no path of chance either: not rate 1, if it ends lowest.
    ringed = root.evaluate(
        """({ explorer }) => {
          const { rate } = explorer.controls.made.get("SGD"), { shown } = rate;
          const at = shown.values.indexOf(1), finals = [...shown.finals];
          finals[at] = Math.min(...finals.filter((loss) => loss !== null)) - 1;
          rate.draw({ ...shown, finals, index: at, open: false });
          const said = rate.element.getAttribute("aria-valuetext");
          rate.draw({ ...shown, finals, index: at, open: false, steady: () => true });
          return [shown.steady(at), said, rate.element.getAttribute("aria-valuetext")];
        }"""
    )
    chance, said, otherwise = ringed
    assert not chance
    assert otherwise == f"{said}, the lowest of these"


def test_a_notch_under_the_pointer_says_how_it_ends(opened):
    page, root = opened(ol.explore())
    value, notches = root.locator(".ol-value").first, box(root, ".ol-notches")
    before, wide = value.inner_text(), box(root, ".ol-row-left")["width"]
    page.mouse.move(notches["x"] + 0.98 * notches["width"], notches["y"] + 10)
    root.evaluate(READY)
    assert value.inner_text().split("\n")[1] == "diverges"
    assert box(root, ".ol-row-left")["width"] == wide, "nothing moves"
    assert box(root, ".ol-notches") == notches
    last = root.evaluate(
        """({ explorer: { map } }) => { const [{ x, y }] = map.ghostMarks(), k = x.length - 1;
             return [k - 1, k].map((i) => map.inside([map.x(x[i]), map.y(y[i])])); }"""
    )
    assert last == [True, False]
    page.mouse.move(notches["x"], notches["y"] - 300)
    root.evaluate(READY)
    assert value.inner_text() == before


def test_without_a_lowest_point_no_rate_is_called_the_best(opened):
    _, root = opened(ol.explore("sqrt(x) + y"))
    assert "no lowest point in view" in root.locator(".ol-caption").inner_text()
    said = root.locator(".ol-notches").first.get_attribute("aria-valuetext")
    assert "best" not in said


def test_a_run_that_explodes_is_said_in_its_row(opened):
    made = ol.explore("rosenbrock", {"SGD": ol.optimizer.SGD(1.0), "Adam": ol.optimizer.Adam(0.1)})
    _, root = opened(made)
    losses = root.locator(".ol-row .ol-row-loss").all_inner_texts()
    stop = int(made.model.runs["SGD"].stopped[made.model.rate_index("SGD")])
    assert f"diverges at step {stop}" in losses[0]
    first = root.locator(".ol-row .ol-row-loss").first
    assert first.get_attribute("title") == losses[0]  # a narrow row cuts it
    assert "diverges" not in losses[1]
    root.evaluate("root => root.explorer.go(50)")
    root.evaluate(READY)
    assert f"diverged at step {stop}" in root.locator(".ol-row .ol-row-loss").first.inner_text()


def test_a_path_that_depends_on_the_last_bit_is_marked_and_python_agrees(opened):
    def chaos(x):
        return x**3 * 4 / 3 - x**2 * 3 / 2

    made = ol.explore(chaos, {"SGD": ol.optimizer.SGD(1.0)}, start=0.3)
    _, root = opened(made.change(step=60))
    assert root.evaluate("root => root.explorer.shown[0].sensitive") == made.model.sensitive("SGD")
    assert "≈" in root.locator(".ol-row-loss").first.inner_text()
    assert "sensitive to the last bit" in root.locator(".ol-caption").inner_text()
    assert "sensitive to the last bit" in root.locator(".ol-row-loss").first.get_attribute("title")
    made = ol.explore("booth", {"SGD": ol.optimizer.SGD(0.05)})
    _, root = opened(made.change(step=60))
    assert root.evaluate("root => root.explorer.shown[0].sensitive") == -1
    assert "≈" not in root.locator(".ol-row-loss").first.inner_text()


def test_styles_of_the_page_are_python_s(opened):
    made = ol.explore("valley", {
        "AMSGrad": ol.optimizer.Adam(0.1, amsgrad=True),
        "LookAhead": ol.optimizer.LookAhead(ol.optimizer.Momentum(0.01)),
        "SGD": ol.optimizer.SGD(0.01),
        "again": ol.optimizer.SGD(0.02),
    })  # fmt: skip
    _, root = opened(made)
    found = root.evaluate(
        "root => Object.fromEntries(root.explorer.shown.map((one) =>"
        " [one.entry.name, [one.style.light, one.style.marker]]))"
    )
    assert found == {n: [s.color, s.marker] for n, s in made.model.styles.items()}


def test_the_noise_of_one_variable_is_python_s(opened):
    surface = ol.problems.noisy("double_well", 0.3)
    made = ol.explore(surface, {"SGD": ol.optimizer.SGD(0.02)}, steps=400, seed=4)
    _, root = opened(made)
    found = root.evaluate("root => Array.from(root.explorer.shown[0].run.path)")
    runs = made.model.runs["SGD"]
    assert found == runs.point[made.model.rate_index("SGD")].ravel().tolist()


def test_reddis_example_is_alive(opened):
    _, root = opened(ol.explore())
    root.evaluate("root => root.explorer.examples.choose('Adam diverges')")
    root.evaluate(READY)
    model = ol.explore().change(preset="Adam diverges").model
    for i, name in enumerate(("Adam", "AMSGrad")):
        path = root.evaluate("(root, i) => Array.from(root.explorer.shown[i].run.path)", i)
        expected = model.runs[name].point[model.rate_index(name)].ravel()
        assert path == pytest.approx(expected.tolist(), abs=1e-9)
