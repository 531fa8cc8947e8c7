"""The views of a graph: table, stages, figure, image, page; and that they agree."""

import base64
import json
import re
from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

import optlab as ol
from optlab.viz.backends.scene import Line, Region, Text, mark_as_json
from optlab.viz.graphs import labels, layering
from optlab.viz.graphs.export import stored
from optlab.viz.graphs.marks import layers, marks_at
from optlab.viz.graphs.palette import PALETTE
from optlab.viz.graphs.view import NODE_HEIGHT
from tests.pages import stored_in


def mlp():
    ol.seed(0)
    net = ol.nn.Sequential(ol.nn.Linear(8, 6), ol.nn.Tanh(), ol.nn.Linear(6, 3))
    net.parameters()
    data = np.linspace(-1, 1, 80, dtype="float32").reshape(10, 8)
    return net, ol.nn.functional.cross_entropy(net(data), np.arange(10) % 3)


def recurrent(steps):
    random = np.random.default_rng(0)
    w = ol.Parameter(random.normal(size=(4, 4)) * 0.3, name="W")
    h = np.ones((2, 4))
    for _ in range(steps):
        h = np.tanh(h @ w + random.normal(size=(2, 4)))
    return np.mean(h * h)


def titles(picture):
    return [node.title for node in picture.view.nodes]


def at(picture, title):
    return next(node for node in picture.view.nodes if node.title == title)


# Text.


def test_a_scalar_expression_shows_values_names_and_gradients():
    a = ol.to_tensor(2.0, requires_grad=True)
    b = ol.to_tensor(-3.0, requires_grad=True)
    d = a * b
    loss = d + a
    picture = ol.viz.graph(loss)
    assert titles(picture) == ["a", "b", "multiply", "add"]
    assert [node.line for node in picture.view.nodes] == ["= 2", "= −3", "d = −6", "loss = −4"]
    assert [piece.short for piece in at(picture, "a").pieces] == ["g = 1 so far", "g = −2"]
    assert [rule.code for rule in at(picture, "multiply").rules] == [
        "lambda g, b: g * b",
        "lambda g, a: g * a",
    ]
    assert picture.view.title == "How loss was computed"


def test_stages_go_from_the_loss_to_the_leaves():
    _, loss = mlp()
    picture = ol.viz.graph(loss)
    assert picture.stages == [
        "Before backward: the values",
        "Back through picked",
        "Back through log_softmax",
        "Back through linear",
        "Back through tanh",
        "Back through linear",
        "The leaves: backward() adds these to their grad",
    ]
    weight = at(picture, "0.weight")
    assert [weight.state(stage) for stage in range(7)] == ["waiting"] * 5 + ["arrived", "current"]
    tanh = at(picture, "tanh")
    states = ["waiting"] * 3 + ["arrived", "current", "passed", "passed"]
    assert [tanh.state(stage) for stage in range(7)] == states


def test_a_gradient_that_is_not_complete_says_so():
    x = ol.to_tensor([3.0, 4.0], requires_grad=True)
    h = x * 1.0
    picture = ol.viz.graph(np.sum(h * h))
    shared = at(picture, "multiply")
    assert [piece.complete for piece in shared.pieces] == [True]
    other = at(ol.viz.graph(np.sum(h) + np.sum(np.sin(h))), "multiply")
    assert [piece.complete for piece in other.pieces] == [False, True]
    assert other.pieces[0].short.endswith("so far")
    assert "part" in [other.state(stage) for stage in range(8)]


def test_the_gradients_shown_are_those_of_backward():
    net, loss = mlp()
    picture = ol.viz.graph(loss)
    loss.backward()
    for parameter in net.parameters():
        shown = at(picture, parameter.structural_name).pieces[-1].full
        assert shown == labels.value(parameter.grad.numpy())


def test_looking_changes_nothing():
    net, loss = mlp()
    calls = []
    loss.register_hook(calls.append)
    picture = ol.viz.graph(loss)
    assert calls == []
    assert all(parameter.grad is None for parameter in net.parameters())
    assert ("hook", "1 hook is registered; not run here, so not in these gradients") in at(
        picture, "picked"
    ).facts
    before = picture.view.to_dict()
    loss.backward()
    assert picture.view.to_dict() == before


def test_after_backward_the_graph_is_drawn_and_says_why_nothing_moves():
    _, loss = mlp()
    loss.backward()
    picture = ol.viz.graph(loss)
    assert len(picture.stages) == 1
    assert "before loss.backward()" in picture.view.problem
    assert "retain_graph=True" in repr(picture)
    assert "freed" in repr(picture)
    assert "sliders" not in picture.figure().layout.to_plotly_json()


def test_overwritten_values_are_said_not_raised():
    w = ol.Parameter([1.0, 2.0], name="w")
    loss = np.sum(w * w)
    w.set_value([0.0, 0.0])
    assert "has written over it" in ol.viz.graph(loss).view.problem


def test_numbers_that_are_not_finite_are_said():
    x = ol.to_tensor([0.0, 1.0], requires_grad=True)
    with np.errstate(all="ignore"):
        y = np.sum(np.log(x))
    picture = ol.viz.graph(y)
    assert picture.view.nodes[-1].line == "y = minus infinite"
    assert at(picture, "x").pieces[-1].full == "[infinite, 1]"


def test_what_needs_no_gradient_is_refused_in_words_for_a_student():
    with pytest.raises(ValueError, match="requires_grad=True"):
        ol.viz.graph(ol.to_tensor(1.0))
    with pytest.raises(TypeError, match="got ndarray"):
        ol.viz.graph(np.ones(3))
    x = ol.to_tensor(1.0, requires_grad=True)
    with pytest.raises(ValueError, match="at least 2"):
        ol.viz.graph(x, max_nodes=1)


def test_a_leaf_alone():
    x = ol.to_tensor([1.0], requires_grad=True)
    picture = ol.viz.graph(x)
    assert len(picture.stages) == 2
    assert at(picture, "x").pieces[0].full == "[1]"
    assert picture.figure(1).layout.width > 0


def test_the_table_lists_every_node_with_its_bytes():
    _, loss = mlp()
    table = repr(ol.viz.graph(loss))
    assert re.search(r"0\.weight +parameter +\(8, 6\), float32 +192 B$", table, re.M)
    assert re.search(r"tanh +operation +3 +\(10, 6\), float32 +240 B +240 B$", table, re.M)
    assert len(table.splitlines()) == 2 + 10


def test_names_may_be_given():
    x = ol.to_tensor(1.0, requires_grad=True)
    assert titles(ol.viz.graph(np.sin(x), names={"angle": x}))[0] == "angle"


def test_members_of_lists_are_named():
    ws = [ol.to_tensor(1.0, requires_grad=True), ol.to_tensor(2.0, requires_grad=True)]
    assert titles(ol.viz.graph(ws[0] * ws[1]))[:2] == ["ws[0]", "ws[1]"]


# Large graphs.


def test_a_large_graph_is_folded_and_its_leaves_still_get_everything():
    loss = recurrent(300)
    picture = ol.viz.graph(loss, max_nodes=30)
    [rest] = [node for node in picture.view.nodes if node.kind == "rest"]
    assert len(picture.view.nodes) <= 30
    assert re.fullmatch(r"[\d,]+ earlier operations", rest.title)
    assert rest.turn == picture.view.last - 1
    node = loss.node
    while node.edges:
        leaf = node = next(edge for edge in reversed(node.edges) if edge is not None)
    loss.backward()
    assert at(picture, "W").pieces[-1].full == labels.value(leaf.grad)
    drawn = {edge.source for edge in picture.view.edges} | {
        edge.target for edge in picture.view.edges
    }
    assert drawn == set(range(len(picture.view.nodes)))


def test_of_a_folded_graph_every_leaf_is_listed_with_its_gradient_and_the_way_to_see_all():
    leaves = [ol.Parameter([float(i)], name=f"leaf{i}") for i in range(12)]
    total = leaves[0] * 1.0
    for leaf in leaves[1:]:
        total = total + leaf * leaf
    total = np.sum(total)
    picture = ol.viz.graph(total, max_nodes=8)
    assert [title for title, _ in picture.view.leaves] == [f"leaf{i}" for i in range(12)]
    assert "12 leaves" in picture.view.headline
    wanted = int(re.search(r"earlier operations? .* max_nodes=(\d+)", picture.view.headline)[1])
    total.backward(retain_graph=True)
    for leaf, (_, gradient) in zip(leaves, picture.view.leaves, strict=True):
        assert gradient == labels.gradient(leaf.grad.numpy())
    whole = ol.viz.graph(total, max_nodes=wanted).view
    assert "max_nodes" not in whole.headline
    assert all(node.kind != "rest" for node in whole.nodes)
    from optlab.viz.graphs.figure import panel_text

    assert "and 4 more" in panel_text(picture.view, picture.view.last)


def test_constants_beside_tensors_are_small_dotted_nodes():
    x = ol.to_tensor([3.0, 4.0], dtype="float64", requires_grad=True)
    target = np.array([1.0, 2.0])
    view = ol.viz.graph(np.sum((x - target) ** 2 * 0.02)).view
    shown = {node.title: node for node in view.nodes if node.kind == "data"}
    assert set(shown) == {"constant", "0.02"}
    assert shown["constant"].line == "not kept"
    reads = {view.nodes[e.source].title: view.nodes[e.target].title for e in view.edges}
    assert (reads["constant"], reads["0.02"]) == ("subtract", "multiply")
    assert "1 leaf" in view.headline
    assert [title for title, _ in view.leaves] == ["x"]
    assert view.nodes[-1].title == "sum"


def test_two_hundred_nodes_make_a_figure_of_bearable_weight():
    figure = ol.viz.graph(recurrent(60)).figure()
    assert len(figure.to_json()) < 6_000_000


# Layout.


@pytest.mark.parametrize("loss", [lambda: mlp()[1], lambda: recurrent(20)], ids=["mlp", "rnn"])
def test_nodes_do_not_overlap_and_edges_go_down(loss):
    view = ol.viz.graph(loss()).view
    rows = {}
    for node in view.nodes:
        rows.setdefault(node.y, []).append(node)
    for row in rows.values():
        row.sort(key=lambda node: node.x)
        for left, right in pairwise(row):
            assert left.x + left.width / 2 + layering.GAP_X <= right.x - right.width / 2 + 0.3
    for edge in view.edges:
        heights = [y for _, y in edge.points]
        assert heights == sorted(heights)
        assert edge.points[0][1] == view.nodes[edge.source].y + NODE_HEIGHT / 2
        assert edge.points[-1][1] == view.nodes[edge.target].y - NODE_HEIGHT / 2
    assert min(node.x - node.width / 2 for node in view.nodes) >= -0.1
    assert max(node.x + node.width / 2 for node in view.nodes) <= view.width + 0.1


def test_edges_pass_beside_the_nodes():
    view = ol.viz.graph(recurrent(12)).view
    for edge in view.edges:
        for (x, y), (u, v) in pairwise(edge.points):
            for node in view.nodes:
                beside = abs(node.x - x) >= node.width / 2 or abs(node.x - u) >= node.width / 2
                assert beside or v <= node.y - NODE_HEIGHT / 2 or y >= node.y + NODE_HEIGHT / 2


def test_a_crossing_that_can_be_avoided_is_avoided():
    placed = layering.place([60] * 6, 40, [(0, 3), (1, 2), (2, 4), (3, 4), (4, 5)])
    assert (placed.x[0] - placed.x[1]) * (placed.x[3] - placed.x[2]) > 0


def test_a_chain_is_straight():
    placed = layering.place([60, 90, 70, 60], 40, [(0, 1), (1, 2), (2, 3)])
    assert len(set(placed.x.tolist())) == 1


def test_a_crowd_of_inputs_is_spread_over_layers():
    edges = [(i, 40) for i in range(40)]
    assert layering.place([100] * 41, 40, edges, most_width=800).width < 2000


# Drawing.


def test_the_figure_steps_by_a_slider_and_sends_nothing_to_a_cloud():
    _, loss = mlp()
    picture = ol.viz.graph(loss)
    figure = picture.figure(3)
    [slider] = figure.layout.sliders
    assert slider.active == 3
    assert len(slider.steps) == len(picture.stages)
    assert not figure.frames
    assert "sendChartToCloud" in figure.layout.modebar.remove
    changed, places = slider.steps[3].args
    for name in ("x", "y", "text"):  # the figure opens in the state of that step
        for place, value in zip(places, changed[name], strict=True):
            shown = figure.data[place][name]
            assert (None if shown is None else list(shown)) == value
    written = changed["text"][-1][0]
    assert "lambda g, weight: g @ weight.T" in written
    assert "gradient that arrives" in written


def places_of(mark):
    """Return the corners of a mark, or its point, as pairs."""
    pairs = np.stack([np.atleast_1d(mark.x), np.atleast_1d(mark.y)], axis=1)
    return [tuple(pair) for pair in pairs.tolist()]


def color_of(mark):
    """Return the color of a text or a line, or what a region is filled with."""
    if isinstance(mark, Text):
        return mark.ink
    return mark.pen.color if isinstance(mark, Line) else mark.fill.color


@pytest.mark.parametrize("stage", [0, 2, 4, 6])
def test_the_figure_and_the_page_draw_the_marks_of_the_image(stage):
    picture = ol.viz.graph(mlp()[1])
    marks = marks_at(picture.view, stage)
    assert {type(mark) for mark in marks} == {Line, Region, Text}

    drawing = stored(picture.view, 0)["options"]["drawing"]
    shown = []
    for versions in drawing["things"]:
        shown += [one["marks"] for one in versions if one["since"] <= stage][-1]
    for mark in shown:
        if mark["kind"] != "Text":
            mark |= {name: drawing["places"][mark[name]] for name in ("x", "y")}
    assert shown == [mark_as_json(mark) for mark in marks]

    found = {"lines": {}, "text": {}}
    for trace in picture.figure(stage).data:
        if trace.mode in found:
            color = trace.fillcolor or trace.line.color or trace.textfont.color
            places = list(zip(trace.x, trace.y, strict=True))
            found[trace.mode].setdefault(color, []).append(places)
    for mark in marks:
        mode = "text" if isinstance(mark, Text) else "lines"
        lists, wanted = found[mode][color_of(mark)], places_of(mark)
        assert any(
            wanted == places[at : at + len(wanted)] for places in lists for at in range(len(places))
        )


def test_what_a_gradient_has_reached_looks_so():
    view = ol.viz.graph(mlp()[1]).view
    looks = PALETTE["light"]
    tanh = view.nodes.index(at(ol.viz.graph(mlp()[1]), "tanh"))
    drawn = [layers(view)[2][tanh].at(stage)[0] for stage in range(7)]
    assert [box.edge.color for box in drawn] == [
        *[looks["frame"]] * 3, looks["gradient"], looks["gradient"], *[looks["gradient-soft"]] * 2,
    ]  # fmt: skip
    assert [box.fill.color == looks["gradient-tint"] for box in drawn] == [
        stage == 4 for stage in range(7)
    ]
    h = ol.to_tensor([3.0, 4.0], requires_grad=True) * 1.0
    shared = ol.viz.graph(np.sum(h) + np.sum(np.sin(h))).view
    place = next(i for i, node in enumerate(shared.nodes) if len(node.pieces) > 1)
    stage = shared.nodes[place].pieces[0].stage
    assert layers(shared)[2][place].at(stage)[-1].pen.dash
    assert not any(isinstance(mark, Line) for mark in layers(shared)[2][place].at(shared.last))


def test_a_figure_shows_code_as_text():
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    figure = ol.viz.graph(np.sum(np.maximum(x, 1.5))).figure(2)
    assert "<lambda" not in figure.to_json()


def test_the_output_is_a_page_with_a_picture_and_the_table():
    _, loss = mlp()
    picture = ol.viz.graph(loss)
    data = picture._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"}
    [encoded] = re.findall(r'src="data:image/png;base64,([^"]+)"', data["text/html"])
    image = Image.open(BytesIO(base64.b64decode(encoded)))
    assert image.width >= 600
    assert len(np.unique(np.asarray(image.convert("L")))) > 20
    assert len(encoded) < 120_000
    assert data["text/plain"] == repr(picture)


def test_python_steps_the_widget_and_hears_the_browser():
    _, loss = mlp()
    picture = ol.viz.graph(loss)
    picture._repr_mimebundle_()
    picture.stage = 2
    assert picture._widget.stage == 2
    picture._widget.stage = 4
    assert picture.stage == 4
    with pytest.raises(ValueError, match=r"0 .before backward. to 6"):
        picture.stage = 7


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.html", "a.json"])
def test_it_is_saved_in_the_form_that_its_name_asks_for(tmp_path, name):
    _, loss = mlp()
    content = ol.viz.graph(loss).save(tmp_path / name).read_bytes()
    assert len(content) < 300_000
    if name == "a.png":
        assert content.startswith(b"\x89PNG")
    elif name == "a.svg":
        assert b"<svg" in content
    else:
        text = content.decode()
        if name == "a.html":
            text = json.dumps(stored_in(text))
        assert "lambda g, y: g * (1 - y * y)" in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert name == "a.html" or json.loads(text)["stages"]


def test_another_ending_is_refused(tmp_path):
    _, loss = mlp()
    with pytest.raises(ValueError, match=r"\.html, \.png, \.svg, \.json"):
        ol.viz.graph(loss).save(tmp_path / "a.pdf")


def test_a_page_does_not_run_what_a_name_says(tmp_path):
    x = ol.Parameter(1.0, name="</script><script>alert(1)</script>")
    text = ol.viz.graph(np.sin(x)).save(tmp_path / "a.html").read_text()
    assert "<script>alert" not in text


def test_a_picture_holds_nothing_of_the_run():
    import gc
    import weakref

    x = ol.to_tensor(np.ones(10), requires_grad=True)
    loss = np.sum(np.sin(x))
    seen = weakref.ref(loss.node)
    picture = ol.viz.graph(loss, names={})
    del loss
    gc.collect()
    assert seen() is None
    assert picture.stages


def test_a_rule_that_raises_leaves_a_graph_that_is_drawn():
    from optlab.autograd.operation import TABLE, rule
    from optlab.autograd.tensor.tensor import apply

    def strange(x):
        return x * 1.0

    def broken(g):
        raise ZeroDivisionError("no slope here")

    try:
        x = ol.to_tensor([1.0], requires_grad=True)
        picture = ol.viz.graph(np.sum(apply(rule(strange, broken), (x,))))
    finally:
        del TABLE[strange]
    assert (
        picture.view.problem
        == "The backward pass cannot be shown. ZeroDivisionError: no slope here"
    )
    assert len(picture.stages) == 1
    assert titles(picture) == ["x", "strange", "sum"]
    assert not any(node.pieces for node in picture.view.nodes)
