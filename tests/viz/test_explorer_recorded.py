"""The explorer of recorded runs of real models."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import optlab as ol
from optlab.viz.explorer.live import given_to_page

PROBES = [ol.probes.Norms(), ol.probes.Snapshots(every=10)]


@pytest.fixture(scope="module")
def training():
    return ol.lab.recipe("moons").run(steps=60, probes=PROBES)


def test_digits_are_trained_and_shown():
    explorer = ol.explore("digits_mlp", ["SGD", "Adam"], steps=20)
    model = explorer.model
    assert model.axes == ["0", "2"]  # the layers that have parameters
    assert list(model.runs) == ["SGD", "Adam"]
    given = given_to_page(explorer.model, {})
    assert given["network"]
    assert given["axes"] == ["0", "2"]
    plane = given["plane"]
    assert list(plane["paths"]) == ["SGD", "Adam"]
    assert plane["paths"]["Adam"]["steps"][0] <= 1
    values = np.frombuffer(base64.b64decode(plane["values"]), "<f4")
    assert len(values) == plane["rows"] * plane["columns"]
    assert np.isfinite(values).all()
    x0, x1, y0, y1 = plane["box"]
    for path in plane["paths"].values():
        for x, y in path["points"]:
            assert x0 < x < x1
            assert y0 < y < y1
    assert explorer.to_png()[:4] == b"\x89PNG"
    assert "Handwritten digits" in explorer.summary()


def test_a_network_is_trained_by_any_template():
    O = ol.optimizer  # noqa: E741
    averaged = O.ExponentialMovingAverage.around(O.LookAhead(O.SGD(0.1)), 0.9)
    given = [O.SAM(O.SGD(0.1)), O.Momentum(O.lr.StepDecay(0.1, 3)), averaged]
    names = ["SAM SGD", "Momentum", "ExponentialMovingAverage LookAhead SGD"]
    network = ol.problems.digits_mlp
    explorer = ol.explore(network, given, steps=3)
    assert list(explorer.model.runs) == names
    race = ol.compare(network, given, steps=3)
    for name in names:
        found = explorer.model.runs[name].loss[0]
        np.testing.assert_array_equal(found[: len(race[name])], race[name].loss)
    with pytest.raises(TypeError, match="'Adam' is the class Adam; give an optimizer with its se"):
        ol.explore(network, {"Adam": O.Adam})


def test_a_training_of_a_recipe_has_its_loss_under_the_path(training):
    before = {n: p.numpy().copy() for n, p in training.model.named_parameters()}
    found = ol.explore(training).model.problem
    assert found.problem.title == "Two moons, 2-32-32-2"
    [path] = found.landscape.paths.values()
    np.testing.assert_array_equal(path.steps, training.trace.steps("snapshot"))
    for name, p in training.model.named_parameters():
        np.testing.assert_array_equal(p.numpy(), before[name])


def test_coordinates_are_the_norms_of_layers(training):
    model = ol.explore(training.trace).model
    [run] = model.runs.values()
    norms = training.trace.norms["gradient"]
    for k, layer in enumerate(model.axes):
        parts = [a for name, a in norms.items() if name.rpartition(".")[0] == layer]
        expected = np.sqrt(sum(np.square(a, dtype=np.float64) for a in parts))
        np.testing.assert_allclose(run.gradient[0, :, k], expected, rtol=1e-6)
    np.testing.assert_allclose(run.loss[0, :-1], training.trace.loss)


def test_a_trace_alone_has_the_path_without_a_loss(training):
    explorer = ol.explore({"mine": training.trace})
    plane = given_to_page(explorer.model, {})["plane"]
    assert "values" not in plane
    assert list(plane["paths"]) == ["mine"]
    figure = ol.viz.trajectory(training.trace)
    points = np.array(plane["paths"]["mine"]["points"])
    lines = [line for line in figure.data if line.x is not None]
    drawn = next(line for line in lines if len(line.x) == len(points))
    np.testing.assert_allclose(points[:, 0], drawn.x, rtol=1e-5)


def test_a_run_without_weights_has_no_map():
    light = ol.lab.recipe("moons").run(steps=10, probes=[ol.probes.Norms(every=3)])
    explorer = ol.explore(light)
    assert "plane" not in given_to_page(explorer.model, {})
    [run] = explorer.model.runs.values()
    assert np.isfinite(run.gradient).all()  # between recorded steps the last ones


def test_runs_that_cannot_be_shown_say_why():
    bare = ol.lab.recipe("moons").run(steps=5)
    with pytest.raises(ValueError, match="nothing was recorded of this training of 'moons'"):
        ol.explore(bare)
    with pytest.raises(ValueError, match="there is no optimizer 'Adm'"):
        ol.explore("digits_mlp", ["Adm"])


def test_extents_along_the_two_directions_differ_where_asked(training):
    model, x, y = training.model, training.data.train_x, training.data.train_y
    plane = ol.lab.landscape(
        model, lambda: ol.nn.functional.cross_entropy(model(x), y), size=3, extent=(2.0, 0.5)
    )
    assert plane.a.tolist() == [-2.0, 0.0, 2.0]
    assert plane.b.tolist() == [-0.5, 0.0, 0.5]
