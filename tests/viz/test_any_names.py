"""Names, titles, formulas and messages that are anything at all."""

from __future__ import annotations

import gc
import html
import json
import weakref

import numpy as np
import pytest

import optlab as ol
from optlab.viz.explorer.state import MOST_OPTIMIZERS, State

NAMES = {
    "long": "x" * 100_000,
    "words": "word " * 20_000,
    "surrogates": "a\ud800b\udc80",
    "lines": "a\nb\r\nc\t\x00\x07d\u2028e",
    "tags": "<b>bold</b>&amp;<script>alert(1)</script><img src=x onerror=alert(1)>",
    "formula": "$\\frac{ $5",
    "placeholders": "%s {0} %(x)d %{x}",
    "blank": "",
    "hidden": "_hidden",
    "right to left": "\u202eabc",
    "no glyphs": "🦀" * 300,
    "quotes": "\"'`",
}
names = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


def texts_of(figure):
    """All text of a plotly figure, as JSON that a page can be sent."""
    page = figure.to_json()
    page.encode("utf-8")
    return page


@pytest.mark.filterwarnings("error::UserWarning")
@names
def test_figures_of_runs_with_any_names(name):
    # Two that differ after a hundred thousand letters only.
    race = ol.compare(
        "rosenbrock",
        {name: ol.optimizer.SGD(0.001), name + "y" * 1000: ol.optimizer.Adam(0.1)},
        steps=10,
    )
    assert race[name].name == name
    for draw in (ol.viz.race, ol.viz.surface_map, ol.viz.loss_curves):
        page = texts_of(draw(race))
        assert len(page) < 400_000
        assert "<script>" not in page
        assert "<img" not in page
        legend = [trace.name for trace in draw(race).data if trace.showlegend is not False]
        legend = [one for one in legend if one]
        assert len(set(legend)) == 2
        assert all(len(html.unescape(one)) <= 50 for one in legend)
    assert ol.viz.race_png(race).startswith(b"\x89PNG")
    for text in (ol.viz.summary(race), repr(race)):
        assert len(text.encode("utf-8")) < 2000


@pytest.mark.filterwarnings("error::UserWarning")
@names
def test_problems_with_any_names(name):
    def loss(x, y):
        return x**2 + 3 * y**2

    loss.__name__ = name
    race = ol.compare(loss, {"SGD": ol.optimizer.SGD(0.1)}, steps=5)
    assert len(texts_of(ol.viz.race(race))) < 400_000
    assert ol.viz.race_png(race).startswith(b"\x89PNG")
    page = ol.explore(loss, ["SGD"], steps=5).to_html()
    page.encode("utf-8")
    assert "<script>alert" not in page


@names
def test_runs_of_wrappers_with_any_names(name):
    slow = ol.optimizer.LookAhead(ol.optimizer.SGD(2e-4))
    trace = ol.compare("rosenbrock", {name: slow}, steps=20)[name]
    texts_of(ol.viz.lookahead(trace))
    assert ol.viz.lookahead_png(trace).startswith(b"\x89PNG")


@pytest.mark.filterwarnings("error:Glyph")
@names
def test_explorers_with_any_names(name):
    explorer = ol.explore(
        "rosenbrock", {name: ol.optimizer.SGD(0.001), name + "y" * 999: ol.optimizer.Adam(0.1)},
        steps=10,
    )  # fmt: skip
    sent = json.dumps(explorer.state, ensure_ascii=False)
    assert len(sent.encode("utf-8")) < 50_000
    again = State.from_json(explorer.to_json())
    assert again == explorer.now
    explorer.change(rate={name: 0.01}, selected=name)
    assert explorer.now.optimizers[0].rate == 0.01
    assert explorer.what_happened(name, step=3) == explorer.what_happened(step=3)
    assert explorer.to_png().startswith(b"\x89PNG")
    page = explorer.to_html()
    page.encode("utf-8")
    assert "<script>alert" not in page
    explorer.summary().encode("utf-8")
    explorer.close()


@pytest.mark.filterwarnings("error:Glyph")
@names
def test_graphs_memory_and_layers_with_any_names(name):
    w = ol.Parameter(np.ones((2, 2)), name=name)
    graph = ol.viz.graph((w * w).sum())
    bundle = graph._repr_mimebundle_()
    bundle = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
    bundle.pop("text/plain").encode("utf-8", "replace")  # no page reads tags in it
    pages = [texts_of(graph.figure()), json.dumps(bundle, default=str)]
    report = ol.memory.report(lambda: (w * w).sum().backward())
    pages += [texts_of(ol.viz.memory(report)), report._repr_html_()]
    assert ol.viz.memory_png(report).startswith(b"\x89PNG")
    layer = ol.nn.Layer()
    layer.add_sublayer(name or "blank", ol.nn.Linear(2, 2))
    pages += [layer._repr_html_(), ol.optimizer.SGD(0.1, parameters=[w])._repr_html_()]
    for page in pages:
        page.encode("utf-8")
        assert "<script>alert" not in page


def test_a_formula_of_ones_own_is_escaped():
    class Mine(ol.optimizer.SGD):
        r"""A rule with a comparison.

        .. math:: p < q & <img src=x onerror="alert(1)">
        """

        def update(self, p, g, s, h, c):
            return p - c.rate * g, {}, {}

    for subject in (Mine(0.1), Mine(0.1, parameters=[ol.Parameter([1.0])])):
        page = subject._repr_html_()
        assert "<img" not in page
        assert "p &lt; q &amp; &lt;img src=x" in page
    average = ol.optimizer.ExponentialMovingAverage(0.9)
    assert "\\theta" in average._repr_html_() or "$" in average._repr_html_()


class TestExplorers:
    def test_those_that_are_dropped_are_collected(self):
        kept = []
        for _ in range(3):
            explorer = ol.explore("beale", ["SGD"], steps=10)
            explorer.change(step=5)
            kept += [
                weakref.ref(explorer),
                weakref.ref(explorer.model),
                weakref.ref(explorer.layout),
            ]
        del explorer
        gc.collect()
        assert [reference() for reference in kept] == [None] * 9

    def test_other_widgets_as_well(self):
        w = ol.to_tensor(np.ones(1000), requires_grad=True)

        def step():
            np.sum(np.exp(np.sin(w))).backward()

        study = ol.lab.memory_study(step, [], ["1 MiB"], repeats=1)
        widget = weakref.ref(ol.viz.recompute_explorer(study))
        gc.collect()
        assert widget() is None

    def test_those_on_a_page_are_not(self):
        import ipywidgets

        shown = ol.explore("beale", ["SGD"], steps=10)
        shown._repr_mimebundle_()
        boxed = ol.explore("beale", ["SGD"], steps=10)
        box = ipywidgets.VBox([boxed])
        kept = [weakref.ref(shown), weakref.ref(boxed)]
        del shown, boxed
        gc.collect()
        assert all(reference() is not None for reference in kept)
        box.close()
        for reference in kept:
            reference().close()
        del box, reference
        gc.collect()
        assert [reference() for reference in kept] == [None, None]

    def test_a_message_reaches_one_that_is_alive(self):
        explorer = ol.explore("beale", ["SGD"], steps=10)
        assert explorer.model_id
        explorer.comm.handle_msg(
            {"content": {"data": {"method": "custom", "content": {
                "state": explorer.now.to_dict(), "action": "steps", "value": 7,
            }}}, "buffers": []}
        )  # fmt: skip
        assert explorer.now.steps == 7

    @pytest.mark.parametrize("message", [None, 3, "text", [1], b"bytes"])
    def test_messages_that_are_no_dicts_are_ignored(self, message):
        explorer = ol.explore("beale", ["SGD"], steps=10)
        before = explorer.get_state()
        explorer._on_message(explorer, message, [])
        assert explorer.get_state() == before

    @pytest.mark.parametrize("message", [{}, {"state": 3}, {"state": {"optimizers": 3}}])
    def test_dicts_that_make_no_sense_are_answered(self, message):
        explorer = ol.explore("beale", ["SGD"], steps=10)
        before = explorer.now
        explorer._on_message(explorer, {"action": "steps", **message}, [])
        assert explorer.answer["error"]
        assert explorer.now == before

    def test_too_many_optimizers_are_refused_at_once(self, monkeypatch):
        def never(*_):
            raise AssertionError("a template was made")

        explorer = ol.explore("beale", ["SGD"], steps=10)
        before = explorer.now
        entry = {"kind": "SGD", "settings": {}, "rate": None, "around": {}}
        many = [{"name": f"SGD {i}", **entry} for i in range(5000)]
        state = {**before.to_dict(), "optimizers": many}
        monkeypatch.setattr("optlab.viz.explorer.model.run_ladder", never)
        said = f"up to {MOST_OPTIMIZERS} optimizers at once; got 5,000"
        with pytest.raises(ValueError, match=said):
            explorer.change(state=state)
        with pytest.raises(ValueError, match=said):
            explorer.change(state=json.dumps(state))
        with pytest.raises(ValueError, match=said):
            ol.explore("beale", {f"{i}": ol.optimizer.SGD(0.1) for i in range(5000)})
        explorer._on_message(explorer, {"state": state, "action": "steps", "value": 5}, [])
        assert said in explorer.answer["error"]
        assert explorer.now == before


def test_letters_that_the_font_of_the_theme_lacks_are_no_boxes():
    from matplotlib.font_manager import get_font

    from optlab.viz.backends.matplotlib.image import font

    for text in ("loss", "λ₂ ≤ 2/η", "∇f", "β₁\nβ₂"):
        letters = get_font(font(12, "bold", text=text).get_file()).get_charmap()
        assert {ord(letter) for letter in text if letter != "\n"} <= set(letters)
