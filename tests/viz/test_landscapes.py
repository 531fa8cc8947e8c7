"""Figures of real models: planes, surfaces, connections, boundaries, curvature, paths."""

import io
import json

import numpy as np
import pytest
from PIL import Image

import optlab as ol

F = ol.nn.functional


@pytest.fixture(scope="module")
def training():
    probes = [ol.probes.Snapshots(every=10)]
    return ol.lab.recipe("moons").run(steps=80, probes=probes)


@pytest.fixture(scope="module")
def found(training):
    x, y = training.data.train_x, training.data.train_y
    return ol.lab.landscape(
        training.model, lambda: F.cross_entropy(training.model(x), y), "pca", size=9,
        runs={"Adam": training.trace},
    )  # fmt: skip


def of_kind(figure, kind):
    return [trace for trace in figure.data if trace.type == kind]


def same(drawn, values):
    """Return whether a figure has these values, in float32."""
    return len(drawn) == len(values) and np.allclose(drawn, values, rtol=1e-5, atol=1e-7)


def size_of(png):
    return Image.open(io.BytesIO(png)).size


def test_a_map_has_the_losses_and_the_path(found):
    figure = ol.viz.landscape(found)
    (surface,) = of_kind(figure, "contour")
    np.testing.assert_allclose(surface.x, found.a, rtol=1e-6)  # float32 on the way
    assert np.shape(surface.z) == (9, 9)
    path = found.paths["Adam"]
    lines = [
        t for t in of_kind(figure, "scatter") if t.legendgroup == "Adam" and t.x[0] is not None
    ]
    assert any(same(line.x, path.a) and same(line.y, path.b) for line in lines)
    assert any(same(line.y, path.loss) for line in lines)
    texts = " ".join(a.text for a in figure.layout.annotations)
    assert f"{path.explained:.0%} of its movement" in texts
    assert "variance" in texts
    assert "MLP" in figure.layout.title.text


def test_a_map_without_runs_shows_the_losses_along_its_axes(training):
    x = training.data.train_x
    around = ol.lab.landscape(training.model, lambda: (training.model(x) ** 2).mean(), size=7)
    lines = [t for t in of_kind(ol.viz.landscape(around), "scatter") if t.mode == "lines"]
    assert any(same(line.y, around.loss[3]) for line in lines)
    assert any(same(line.y, around.loss[:, 3]) for line in lines)


def test_a_surface_has_three_dimensions(found):
    figure = ol.viz.landscape(found, kind="surface")
    (surface,) = of_kind(figure, "surface")
    np.testing.assert_array_equal(surface.customdata, found.loss)
    (path,) = of_kind(figure, "scatter3d")
    np.testing.assert_array_equal(path.x, found.paths["Adam"].a)
    with pytest.raises(ValueError, match="surface"):
        ol.viz.landscape(found, kind="hills")


@pytest.mark.parametrize("style", ["light", "dark"])
def test_static_images_have_the_size_and_the_paper_of_the_page(found, style):
    with ol.viz.use_style(style):
        for kind in ("map", "surface"):
            png = ol.viz.landscape_png(found, kind=kind, width=700, height=420)
            assert size_of(png) == (700, 420)
            corner = Image.open(io.BytesIO(png)).convert("RGB").getpixel((2, 2))
            assert (sum(corner) < 150) == (style == "dark")


def test_a_notebook_stores_figure_and_image(found):
    bundle = found._repr_mimebundle_()
    assert {"image/png", "text/plain", "application/vnd.plotly.v1+json"} <= set(bundle)
    assert "Landscape 9 x 9" in bundle["text/plain"]
    json.dumps(bundle)


@pytest.mark.parametrize("size", [2, 3])
def test_tiny_and_flat_landscapes_are_drawn(training, size):
    with pytest.warns(UserWarning, match="does loss"):
        flat = ol.lab.landscape(training.model, lambda: 1.0, size=size)
    assert size_of(ol.viz.landscape_png(flat)) == (900, 500)
    ol.viz.landscape(flat, kind="surface")


def test_losses_that_are_not_finite_are_told(training):
    calls = []

    def loss():
        calls.append(1)
        return float("inf") if len(calls) % 5 == 0 else float(len(calls))

    found = ol.lab.landscape(training.model, loss, size=5)
    texts = " ".join(a.text for a in ol.viz.landscape(found).layout.annotations)
    assert "of 25 points are not finite" in texts
    assert size_of(ol.viz.landscape_png(found)) == (900, 500)


def test_three_sets_of_weights_are_marked(training):
    own = {name: p.numpy() for name, p in training.model.named_parameters()}
    draws = np.random.default_rng(0)
    sets = [{n: w + 0.1 * draws.standard_normal(w.shape) for n, w in own.items()} for _ in range(3)]
    x, y = training.data.train_x, training.data.train_y
    plane = ol.lab.landscape(
        training.model, lambda: F.cross_entropy(training.model(x), y), sets, size=5
    )
    said = json.dumps(ol.viz.landscape(plane).to_plotly_json(), default=str)
    assert all(f"w{k}" in said for k in range(3))


def test_a_connection_shows_line_and_curve(training):
    own = {name: p.numpy() for name, p in training.model.named_parameters()}
    other = {name: -w for name, w in own.items()}
    x, y = training.data.train_x, training.data.train_y
    way = ol.lab.connect(
        training.model, lambda: F.cross_entropy(training.model(x), y), own, other, size=9, steps=5
    )
    lines = [t for t in of_kind(ol.viz.connection(way), "scatter") if t.mode == "lines"]
    assert any(same(line.y, way.line) for line in lines)
    assert any(same(line.y, way.curve) for line in lines)
    assert size_of(ol.viz.connection_png(way)) == (640, 380)
    assert "image/png" in way._repr_mimebundle_()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_boundary_is_where_two_classes_are_even(classes):
    data = ol.data.spirals(120, classes=classes)
    ol.seed(0)
    model = ol.models.MLP([2, 16, classes], "tanh")
    model.eval()
    figure = ol.viz.decision_boundary(model, data)
    assert not model.training
    (ground,) = of_kind(figure, "heatmap")
    at = np.stack(np.meshgrid(ground.x, ground.y), axis=-1).astype("float32")
    scores = model(at.reshape(-1, 2)).numpy().reshape(*at.shape[:2], classes)
    np.testing.assert_array_equal(np.asarray(ground.z, int) // 5, scores.argmax(axis=2))
    for line in of_kind(figure, "scatter"):
        if line.mode == "lines" and line.x is not None and len(line.x) > 3:
            points = np.stack([line.x, line.y], axis=1).astype("float32")
            two = np.sort(model(points).numpy(), axis=1)[:, -2:]
            assert np.median(np.abs(two[:, 1] - two[:, 0])) < 0.02
    drawn = sum(len(t.x) for t in of_kind(figure, "scatter") if t.mode == "markers")
    assert drawn == 120
    right = float(np.mean(model(data.train_x).numpy().argmax(1) == data.train_y))
    assert f"{right:.1%} of 90 points" in " ".join(a.text for a in figure.layout.annotations)


def test_a_boundary_needs_points_of_a_plane():
    with pytest.raises(ValueError, match="points of a plane"):
        ol.viz.decision_boundary(lambda x: x, (np.ones((4, 3)), np.ones(4)))
    with pytest.raises(ValueError, match="at most 6 classes"):
        ol.viz.decision_boundary(
            lambda x: np.ones((len(x), 9)),
            (np.random.rand(4, 2), np.zeros(4)),  # noqa: NPY002
        )


def curved(rate=0.1, momentum=None):
    w = ol.Parameter(np.array([1.0, 1.0]), name="w")
    make = ol.optimizer.SGD if momentum is None else ol.optimizer.Momentum
    more = {} if momentum is None else {"momentum": momentum}
    optimizer = make(rate, parameters=[w], **more)

    def loss(p):
        return (p["w"] ** 2 * np.array([1.0, 3.0])).sum()

    with ol.record(optimizer, probes=[ol.probes.Curvature(loss, k=2)]) as trace:
        for _ in range(4):
            optimizer.clear_grad()
            loss({"w": w}).backward()
            optimizer.step()
    return trace


@pytest.mark.parametrize(("momentum", "limit"), [(None, 20.0), (0.5, 30.0)])
def test_the_limit_of_the_rate_stands_beside_the_sharpness(momentum, limit):
    figure = ol.viz.curvature(curved(momentum=momentum))
    lines = [list(t.y) for t in of_kind(figure, "scatter") if t.mode == "lines"]
    assert any(np.allclose(y, limit) for y in lines)
    assert any(np.allclose(y, 6.0) for y in lines)
    assert any(np.allclose(y, 2.0) for y in lines)


def test_what_was_not_recorded_is_named(training):
    with pytest.raises(ValueError, match=r"ol\.probes\.Curvature"):
        ol.viz.curvature(training.trace)
    with pytest.raises(ValueError, match=r"ol\.probes\.Snapshots"):
        ol.viz.trajectory(curved_without_weights())
    with pytest.raises(TypeError, match="trajectory"):
        ol.viz.trajectory(3)


def curved_without_weights():
    w = ol.Parameter(np.ones(3), name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    with ol.record(optimizer, probes=[ol.probes.Norms()]) as trace:
        (w * w).sum().backward()
        optimizer.step()
    return trace


def test_a_path_is_drawn_in_its_principal_components(training):
    figure = ol.viz.trajectory(training.trace)
    flat = np.concatenate(
        [np.asarray(x).reshape(8, -1) for x in training.trace["snapshot"].values()], axis=1
    ).astype(float)
    flat -= flat.mean(axis=0)
    u, s, _ = np.linalg.svd(flat, full_matrices=False)
    path = next(
        t for t in of_kind(figure, "scatter") if t.mode == "lines" and t.x is not None
        and len(t.x) == 8
    )  # fmt: skip
    np.testing.assert_allclose(np.abs(path.x), np.abs(u[:, 0] * s[0]), atol=1e-6)
    np.testing.assert_allclose(np.abs(path.y), np.abs(u[:, 1] * s[1]), atol=1e-6)
    share = s**2 / np.sum(s**2)
    said = " ".join(a.text for a in figure.layout.annotations)
    assert f"{share[0]:.1%} and {share[1]:.1%}" in said


def test_runs_of_one_model_share_a_plane(training):
    other = ol.lab.recipe("moons").run(steps=40, seed=1, probes=[ol.probes.Snapshots(every=10)])
    figure = ol.viz.trajectory({"first": training.trace, "second": other.trace})
    names = {t.name for t in figure.data if t.name}
    assert {"first", "second"} <= names
    wide = ol.lab.recipe("spirals").run(steps=20, probes=[ol.probes.Snapshots(every=10)])
    with pytest.raises(ValueError, match="one model"):
        ol.viz.trajectory({"a": training.trace, "b": wide.trace})


def test_alignment_has_a_panel_of_its_own():
    w = ol.Parameter(np.array([1.0, 1.0]), name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])

    def loss(p):
        return (p["w"] ** 2 * np.array([1.0, 3.0])).sum()

    with ol.record(optimizer, probes=[ol.probes.Curvature(loss, alignment=True)]) as trace:
        for _ in range(4):
            optimizer.clear_grad()
            loss({"w": w}).backward()
            optimizer.step()
    figure = ol.viz.curvature(trace)
    drawn = [line for line in figure.data if "gradient:" in (line.hovertemplate or "")]
    [line] = drawn
    assert line.xaxis == "x3"
    np.testing.assert_allclose(line.y, trace["alignment of gradient"][:, 0], rtol=1e-6)
    assert ol.viz.curvature_png(trace)[:4] == b"\x89PNG"


def test_paths_in_space_are_three_principal_components(training):
    figure = ol.viz.trajectory(training.trace, kind="space")
    [path] = figure.data
    points = np.stack([path.x, path.y, path.z], axis=1)
    flat = np.concatenate(
        [a.reshape(len(a), -1) for a in training.trace["snapshot"].values()], axis=1
    ).astype(np.float64)
    _, values, axes = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    expected = (flat - flat.mean(axis=0)) @ axes[:3].T
    np.testing.assert_allclose(np.abs(points), np.abs(expected), atol=1e-4 * values[0])
    assert ol.viz.trajectory_png(training.trace, kind="space")[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match='kind is "plane" or "space"'):
        ol.viz.trajectory(training.trace, kind="map")


@pytest.mark.parametrize("classes", [2, 3])
def test_a_boundary_in_space_has_the_softmax_as_its_height(classes):
    draws = np.random.default_rng(0)
    x = draws.standard_normal((30, 2)).astype(np.float32)
    y = np.arange(30) % classes
    weights = draws.standard_normal((2, classes))

    def model(points):
        return points @ weights

    figure = ol.viz.decision_boundary(model, (x, y), kind="surface")
    surface = figure.data[0]
    grid = np.stack(np.meshgrid(surface.x, surface.y), axis=-1)
    scores = np.exp(grid.astype(np.float32) @ weights)
    shares = scores / scores.sum(axis=-1, keepdims=True)
    expected = shares[:, :, 1] if classes == 2 else shares.max(axis=-1)
    np.testing.assert_allclose(surface.z, expected, rtol=1e-4)
    assert ol.viz.decision_boundary_png(model, (x, y), kind="surface")[:4] == b"\x89PNG"


def test_a_training_is_drawn_with_what_it_states(training):
    figure = ol.viz.training(training)
    written = " ".join(note.text for note in figure.layout.annotations)
    assert "stated 0.98" in written
    assert f"{training.step:,} of {training.steps:,} steps" in written
    scores = [line for line in figure.data if line.xaxis == "x2" and line.x is not None]
    assert any(list(line.y) == pytest.approx(list(training.scores.values())) for line in scores)


def test_a_live_picture_follows_a_training(monkeypatch):
    shown, updated = [], []

    class Handle:
        def update(self, content, raw):
            updated.append(content["image/png"])

    def display(content, raw, display_id):
        shown.append(content["text/plain"])
        return Handle()

    monkeypatch.setattr("optlab.viz.landscapes.training.notebook_display", lambda: display)
    seen = []

    def picture(training):
        seen.append(training.step)
        return ol.viz.training_png(training) if len(seen) == 1 else b"%d" % training.step

    view = ol.viz.live(picture)
    ol.lab.recipe("moons").run(steps=300, callback=view)
    assert seen == [100, 200, 300]
    assert len(shown) == 1  # one output, which changes
    assert updated == [b"200", b"300"]
    assert view.count == 3
    with pytest.raises(TypeError, match="live takes a function"):
        ol.viz.live(3)
