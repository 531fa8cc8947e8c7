"""Landscapes: planes, lines and curves through the weights of a model."""

import signal
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import optlab as ol

F = ol.nn.functional


def network(dtype="float64"):
    ol.seed(0)
    return ol.nn.Sequential(
        ol.nn.Linear(5, 7), ol.nn.Tanh(), ol.nn.LayerNorm(7), ol.nn.Linear(7, 3)
    ).to(dtype=dtype)


def data(count=24):
    draws = np.random.default_rng(1)
    return draws.standard_normal((count, 5)), draws.integers(0, 3, count)


def loss_of(model, x, y):
    return lambda: F.cross_entropy(model(x), y)


def by_hand(weights, x, y):
    """Compute the loss of `network` in NumPy."""
    h = np.tanh(x @ weights["0.weight"] + weights["0.bias"])
    h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
    z = (h * weights["2.weight"] + weights["2.bias"]) @ weights["3.weight"] + weights["3.bias"]
    z = z - z.max(1, keepdims=True)
    return np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y])


def trained(model, x, y, steps=30, every=3, rate=0.05):
    optimizer = ol.optimizer.Adam(rate, parameters=model.parameters())
    probes = [ol.probes.Snapshots(every=every, state=False)]
    with ol.record(optimizer, probes=probes, model=model) as trace:
        for _ in range(steps):
            loss_of(model, x, y)().backward()
            optimizer.step()
            optimizer.clear_grad()
    return trace


def weights_of(model):
    return {name: p.numpy() for name, p in model.named_parameters()}


# The plane ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("plane", ["random", "pca", "directions", "weights"])
def test_each_loss_is_that_of_its_point(plane):
    model, (x, y) = network(), data()
    trace = trained(model, x, y)
    own = weights_of(model)
    draws = np.random.default_rng(2)
    given = {
        "directions": [
            {name: draws.standard_normal(w.shape) for name, w in own.items()},
            {"0.bias": np.ones(7)},
        ],
        "weights": [own, *({n: w + draws.standard_normal(w.shape) for n, w in own.items()}
                           for _ in range(2))],
    }.get(plane, plane)  # fmt: skip
    found = ol.lab.landscape(model, loss_of(model, x, y), given, size=(5, 4), runs=trace)
    assert found.loss.shape == (5, 4)
    assert found.plane == plane
    for i, b in enumerate(found.b):
        for j, a in enumerate(found.a):
            at = {
                name: w
                + sum(c * d.get(name, 0) for c, d in zip((a, b), found.directions, strict=False))
                for name, w in found.origin.items()
            }
            assert found.loss[i, j] == pytest.approx(by_hand(at, x, y), rel=1e-12)
            assert found.project(at) == pytest.approx((a, b, 0), abs=1e-7)
    assert all(np.array_equal(w, own[name]) for name, w in weights_of(model).items())
    assert found.evaluated.all()


def test_filters_are_scaled_as_the_authors_scale_them():
    """Li et al. 2018: each filter of a direction has the norm of that of the weight."""
    ol.seed(3)
    model = ol.nn.Sequential(
        ol.nn.Conv2D(2, 4, 3), ol.nn.Conv2DTranspose(4, 3, 2), ol.nn.Flatten(),
        ol.nn.Linear(3 * 9 * 9, 5), ol.nn.BatchNorm1D(5),
    )  # fmt: skip
    x = np.random.default_rng(0).standard_normal((4, 2, 10, 10)).astype("float32")
    found = ol.lab.landscape(model, lambda: np.mean(model(x) ** 2), size=2)
    own = weights_of(model)
    for direction in found.directions:
        for name, kept in {"0.weight": 0, "1.weight": 1, "3.weight": 1}.items():
            w, d = np.moveaxis(own[name], kept, 0), np.moveaxis(direction[name], kept, 0)
            for k in range(len(w)):
                assert np.linalg.norm(d[k]) == pytest.approx(np.linalg.norm(w[k]), rel=1e-6)
        assert all(not direction[name].any() for name, w in own.items() if w.ndim == 1)
    layered = ol.lab.landscape(model, lambda: np.mean(model(x) ** 2), size=2, normalise="layer")
    assert np.linalg.norm(layered.directions[0]["3.weight"]) == pytest.approx(
        np.linalg.norm(own["3.weight"]), rel=1e-6
    )


def test_directions_follow_from_the_seed():
    model, (x, y) = network(), data()
    one, same, other = (
        ol.lab.landscape(model, loss_of(model, x, y), size=3, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.loss, same.loss)
    assert not np.array_equal(one.loss, other.loss)


def test_principal_directions_are_those_of_scikit_learn():
    decomposition = pytest.importorskip("sklearn.decomposition")
    model, (x, y) = network(), data()
    trace = trained(model, x, y)
    found = ol.lab.landscape(model, loss_of(model, x, y), "pca", size=3, runs=trace)
    flat = np.concatenate(
        [trace["snapshot"][name].reshape(10, -1) for name in weights_of(model)], axis=1
    )
    theirs = decomposition.PCA(2).fit(flat)
    np.testing.assert_allclose(found.explained, theirs.explained_variance_ratio_, rtol=1e-9)
    ours = np.stack(
        [np.concatenate([d[name].ravel() for name in found.origin]) for d in found.directions]
    )
    np.testing.assert_allclose(np.abs(ours @ theirs.components_.T), np.eye(2), atol=1e-7)
    np.testing.assert_allclose(ours @ ours.T, np.eye(2), atol=1e-12)


def test_a_trace_of_principal_components_is_a_run():
    model, (x, y) = network(), data()
    optimizer = ol.optimizer.Adam(0.05, parameters=model.parameters())
    every = ol.probes.Snapshots(steps=range(1, 11))
    with (
        ol.record(optimizer, probes=[every], model=model) as both,
        ol.record(optimizer, probes=[ol.probes.PCA(k=2, rank=10)], model=model) as alone,
    ):
        for _ in range(10):
            optimizer.clear_grad()
            loss_of(model, x, y)().backward()
            optimizer.step()
    loss = loss_of(model, x, y)
    whole = ol.lab.landscape(model, loss, "pca", size=3, runs=both)
    found = ol.lab.landscape(model, loss, "pca", size=3, runs=alone)
    for k in range(2):
        ours, theirs = (
            np.concatenate([one.directions[k][name].ravel() for name in whole.origin])
            for one in (found, whole)
        )
        assert abs(ours @ theirs) == pytest.approx(1.0)
    assert found.explained.sum() == pytest.approx(1.0)  # of the two directions that are kept
    # Parameters in another order are seen.
    turned = ol.nn.Sequential(*reversed(list(model)))
    with pytest.raises(ValueError, match=r"in another order \(the sizes differ\)"):
        ol.lab.landscape(turned, lambda: 1.0, "pca", size=3, runs=alone)


def test_a_run_in_a_plane_has_no_residual():
    model, (x, y) = network(), data()
    own = weights_of(model)
    draws = np.random.default_rng(4)
    u, v = ({n: draws.standard_normal(w.shape) for n, w in own.items()} for _ in range(2))
    run = [{n: w + np.cos(t) * u[n] + t * v[n] for n, w in own.items()} for t in range(6)]
    found = ol.lab.landscape(model, loss_of(model, x, y), [u, v], size=3, runs=run)
    path = found.paths["run"]
    np.testing.assert_allclose(path.a, np.cos(np.arange(6)), atol=1e-12)
    np.testing.assert_allclose(path.b, np.arange(6), atol=1e-12)
    np.testing.assert_allclose(path.residual, 0, atol=1e-11)
    assert path.explained == pytest.approx(1)
    np.testing.assert_allclose(path.loss, path.plane_loss, rtol=1e-9)
    np.testing.assert_allclose(path.loss, [by_hand(point, x, y) for point in run], rtol=1e-12)


def test_what_the_plane_hides_of_a_run_is_told():
    model, (x, y) = network(), data()
    trace = trained(model, x, y)
    found = ol.lab.landscape(model, loss_of(model, x, y), size=3, runs={"Adam": trace})
    path = found.paths["Adam"]
    own = weights_of(model)
    moved = np.sqrt(sum(np.sum((trace["snapshot"][n][0] - w) ** 2) for n, w in own.items()))
    assert path.steps.tolist() == list(range(3, 31, 3))
    assert path.residual[-1] == pytest.approx(0, abs=1e-9)
    assert 0.5 * moved < path.residual[0] < moved
    assert path.explained < 0.5
    assert path.loss[-1] == pytest.approx(by_hand(own, x, y), rel=1e-9)


def test_several_runs_are_drawn_on_one_plane():
    model, (x, y) = network(), data()
    start = weights_of(model)
    runs = {}
    for rate in (0.01, 0.1):
        model.set_state_dict(start)
        runs[f"rate {rate}"] = trained(model, x, y, rate=rate)
    found = ol.lab.landscape(model, loss_of(model, x, y), "pca", size=5, runs=runs)
    assert list(found.paths) == list(runs)
    for path in found.paths.values():
        assert found.a[0] < path.a.min()
        assert path.a.max() < found.a[-1]
        assert found.b[0] < path.b.min()
        assert path.b.max() < found.b[-1]


def test_a_recording_of_all_values_is_a_run_too():
    model, (x, y) = network(), data()
    optimizer = ol.optimizer.SGD(0.1, parameters=model.parameters())
    with ol.record(optimizer, probes="toy") as trace:
        for _ in range(4):
            loss_of(model, x, y)().backward()
            optimizer.step()
            optimizer.clear_grad()
    found = ol.lab.landscape(model, loss_of(model, x, y), "pca", size=2, runs=trace)
    (path,) = found.paths.values()
    assert path.steps.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(path.loss[:-1], trace.loss, rtol=1e-9)


# How points are evaluated -------------------------------------------------------------------------


def test_an_ensemble_gives_the_numbers_of_single_points(monkeypatch):
    from optlab.lab.landscapes import evaluation

    model, (x, y) = network(), data()
    together = ol.lab.landscape(model, loss_of(model, x, y), size=6)
    monkeypatch.setattr(evaluation, "_MOST_MEMBERS", 1)
    alone = ol.lab.landscape(model, loss_of(model, x, y), size=6)
    assert "ensemble" in together.execution
    assert "one point" in alone.execution
    np.testing.assert_allclose(together.loss, alone.loss, rtol=1e-12)


def test_losses_that_are_no_numbers_are_compared_in_silence():
    model, (x, y) = network(), data()
    loss = loss_of(model, x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = ol.lab.landscape(model, lambda: loss() * np.nan, size=4)
    assert np.isnan(found.loss).all()


def test_random_numbers_are_the_same_at_every_point():
    model = ol.nn.Sequential(ol.nn.Linear(5, 9), ol.nn.Dropout(0.5), ol.nn.Linear(9, 3))
    x, y = data()
    x = x.astype("float32")
    plane = [{"0.weight": np.full((5, 9), 1e-30)}, {"2.bias": np.full(3, 1e-30)}]
    ol.seed(0)
    expected = ol.rand([2]).tolist()
    ol.seed(0)
    with pytest.warns(UserWarning, match="does loss"):
        found = ol.lab.landscape(model, loss_of(model, x, y), plane, size=3)
    assert np.ptp(found.loss) == 0
    assert ol.rand([2]).tolist() == expected


def test_statistics_and_modes_of_layers_are_put_back():
    model = ol.nn.Sequential(ol.nn.Linear(5, 4), ol.nn.BatchNorm1D(4), ol.nn.Linear(4, 3))
    (x, y), state = data(), None
    model(x)
    state = {name: value.numpy() for name, value in model.state_dict().items()}

    def loss():
        model.train()
        return F.cross_entropy(model(x), y)

    model.eval()
    ol.lab.landscape(model, loss, size=3)
    assert not model[1].training
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name])


@pytest.mark.parametrize("at", [0, 1, 2, 5, 11])
def test_an_error_leaves_the_weights_as_they_were(at):
    model, (x, y) = network(), data()
    own, arrays, calls = weights_of(model), [p.data for p in model.parameters()], []

    def loss():
        calls.append(1)
        if len(calls) > at:
            model[0].weight.set_value(np.zeros((5, 7)))
            raise ZeroDivisionError("in the middle")
        return F.cross_entropy(model(x), y)

    with pytest.raises(ZeroDivisionError):
        ol.lab.landscape(model, loss, size=20, refine=0.01)
    assert all(p.data is array for p, array in zip(model.parameters(), arrays, strict=False))
    assert all(np.array_equal(w, own[name]) for name, w in weights_of(model).items())


def test_an_interrupted_one_goes_on():
    model, (x, y) = network(), data()
    calls = []

    def loss():
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return float(F.cross_entropy(model(x), y).item())  # no ensemble: one point after another

    found = ol.lab.landscape(model, loss, size=8)
    assert found.interrupted
    assert 0 < np.isfinite(found.loss).sum() < 64
    assert "resume" in repr(found)
    done = found.loss[found.evaluated]
    found.resume()
    assert not found.interrupted
    assert np.isfinite(found.loss).all()
    assert len(calls) < 64 + 10
    np.testing.assert_array_equal(np.isin(done, found.loss), True)
    whole = ol.lab.landscape(model, loss_of(model, x, y), size=8)
    np.testing.assert_allclose(found.loss, whole.loss, rtol=1e-12)


def test_a_file_carries_it_over_to_another_call(tmp_path):
    model, (x, y) = network(), data()
    file, calls = tmp_path / "plane.npz", []

    def loss():
        calls.append(1)
        return F.cross_entropy(model(x), y)

    first = ol.lab.landscape(model, loss, size=6, to=file)
    before = len(calls)
    again = ol.lab.landscape(model, loss, size=6, to=file)
    assert len(calls) == before
    assert again.evaluations == 0
    np.testing.assert_array_equal(first.loss, again.loss)
    with pytest.raises(ValueError, match="another landscape"):
        ol.lab.landscape(model, loss, size=7, to=file)


def test_a_refined_grid_is_near_the_whole_one_with_fewer_evaluations():
    model, (x, y) = network(), data()
    trained(model, x, y)
    whole = ol.lab.landscape(model, loss_of(model, x, y), size=33)
    found = ol.lab.landscape(model, loss_of(model, x, y), size=33, refine=0.01)
    assert found.evaluations == found.evaluated.sum() < 0.6 * whole.evaluations
    assert np.abs(found.loss - whole.loss).max() < 0.02 * np.ptp(whole.loss)
    np.testing.assert_allclose(found.loss[found.evaluated], whole.loss[found.evaluated], rtol=1e-9)


def test_an_executor_evaluates_copies():
    model, (x, y) = network(), data()
    own = weights_of(model)
    with ThreadPoolExecutor(2) as executor:
        found = ol.lab.landscape(model, loss_of(model, x, y), size=8, executor=executor)
    np.testing.assert_allclose(
        found.loss, ol.lab.landscape(model, loss_of(model, x, y), size=8).loss, rtol=1e-12
    )
    assert "tasks" in found.execution
    assert all(np.array_equal(w, own[name]) for name, w in weights_of(model).items())


def test_tables():
    model, (x, y) = network(), data()
    found = ol.lab.landscape(model, loss_of(model, x, y), size=(3, 4))
    table = found.table()
    row = table.iloc[5]
    assert row.loss == found.loss[1, 1]
    assert row.a == found.a[1]
    assert row.b == found.b[1]
    assert found.to_xarray().sel(a=found.a[2], b=found.b[0]).item() == found.loss[0, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": 3}, "takes a Layer"),
        ({"loss": 3}, "without arguments"),
        ({"loss": lambda: None}, "one number"),
        ({"loss": lambda: np.ones(4)}, "mean over the examples"),
        ({"plane": "pca"}, "runs=trace"),
        ({"plane": "middle"}, "'middle'"),
        ({"plane": [{}, {}]}, "names no parameter"),
        ({"plane": [{"0.wieght": np.ones((5, 7))}] * 2}, "Did you mean '0.weight'"),
        ({"plane": [{"0.bias": np.ones(3)}] * 2}, r"\(3,\)"),
        ({"plane": [{"0.bias": np.zeros(7)}] * 2}, "is zero"),
        ({"plane": [{"0.bias": np.ones(7)}] * 3}, "the same"),
        ({"size": 1}, "at least 2"),
        ({"extent": 0}, "above 0"),
        ({"normalise": "filters"}, "'filters'"),
        ({"refine": -1}, "above 0"),
        ({"runs": 5}, "takes a trace"),
    ],
)
def test_errors_say_what_to_give(changes, message):
    model, (x, y) = network(), data()
    given = {"model": model, "loss": loss_of(model, x, y), "size": 3} | changes
    with pytest.raises((TypeError, ValueError), match=message):
        ol.lab.landscape(given.pop("model"), given.pop("loss"), **given)


def test_a_loss_of_something_else_is_noticed():
    model, other, (x, y) = network(), network(), data()
    with pytest.warns(UserWarning, match="does loss\\(\\) evaluate this model"):
        ol.lab.landscape(model, loss_of(other, x, y), size=3)


def test_a_trace_of_another_model_is_refused():
    model, (x, y) = network(), data()
    trace = trained(ol.nn.Linear(5, 3), x.astype("float32"), y)
    with pytest.raises(ValueError, match="does not have the weights of this"):
        ol.lab.landscape(model, loss_of(model, x, y), size=3, runs=trace)


@pytest.mark.peers
def test_a_plane_of_lenet_is_that_of_a_loop_in_pytorch():
    torch = pytest.importorskip("torch")
    ol.seed(0)
    model = ol.nn.Sequential(
        ol.nn.Conv2D(1, 6, 5, padding=2), ol.nn.ReLU(), ol.nn.MaxPool2D(2),
        ol.nn.Conv2D(6, 16, 5), ol.nn.ReLU(), ol.nn.MaxPool2D(2), ol.nn.Flatten(),
        ol.nn.Linear(400, 10),
    )  # fmt: skip
    draws = np.random.default_rng(0)
    x = draws.standard_normal((8, 1, 28, 28)).astype("float32")
    y = draws.integers(0, 10, 8)
    found = ol.lab.landscape(model, loss_of(model, x, y), size=21)
    images, labels = torch.tensor(x), torch.tensor(y)
    f = torch.nn.functional
    for i, b in enumerate(found.b):
        for j, a in enumerate(found.a):
            w = {n: torch.tensor(v) for n, v in found.weights(a, b).items()}
            h = f.max_pool2d(f.relu(f.conv2d(images, w["0.weight"], w["0.bias"], padding=2)), 2)
            h = f.max_pool2d(f.relu(f.conv2d(h, w["3.weight"], w["3.bias"])), 2).flatten(1)
            theirs = f.cross_entropy(h @ w["7.weight"] + w["7.bias"], labels).item()
            assert found.loss[i, j] == pytest.approx(theirs, rel=1e-5)


# Connections --------------------------------------------------------------------------------------


def test_the_line_is_the_loss_between_two_sets_of_weights():
    model, (x, y) = network(), data()
    first = weights_of(model)
    trained(model, x, y)
    last = weights_of(model)
    way = ol.lab.connect(model, loss_of(model, x, y), first, last, size=5, curve=False)
    for t, value in zip(way.t, way.line, strict=False):
        at = {name: (1 - t) * w + t * last[name] for name, w in first.items()}
        assert value == pytest.approx(by_hand(at, x, y), rel=1e-12)
        assert by_hand(way.weights(t), x, y) == pytest.approx(value, rel=1e-12)
    assert way.curve is None
    assert np.isnan(way.curve_barrier)


def test_the_curve_avoids_the_barrier_of_the_line():
    model, (x, y) = network(), data(60)
    solutions = []
    for seed in (1, 2):
        ol.seed(seed)
        fresh = ol.nn.Sequential(
            ol.nn.Linear(5, 7), ol.nn.Tanh(), ol.nn.LayerNorm(7), ol.nn.Linear(7, 3)
        ).to(dtype="float64")
        trained(fresh, x, y, steps=150, every=150)
        solutions.append(weights_of(fresh))
    own = weights_of(model)
    way = ol.lab.connect(model, loss_of(model, x, y), *solutions, size=21, steps=200)
    assert way.line_barrier > 0.1
    assert way.curve_barrier < 0.6 * way.line_barrier
    for t, value in zip(way.t, way.curve, strict=False):
        assert value == pytest.approx(by_hand(way.weights(t), x, y), rel=1e-9)
    for end, at in zip(solutions, (0.0, 1.0), strict=False):
        assert all(np.allclose(w, way.weights(at)[name]) for name, w in end.items())
    assert all(np.array_equal(w, own[name]) for name, w in weights_of(model).items())


def test_a_connection_over_an_executor_is_the_connection():
    model, (x, y) = network(), data()
    first = weights_of(model)
    trained(model, x, y)
    given = (model, loss_of(model, x, y), first, weights_of(model))
    wanted = ol.lab.connect(*given, size=9, steps=5)
    with ThreadPoolExecutor(2) as executor:
        found = ol.lab.connect(*given, size=9, steps=5, executor=executor)
    np.testing.assert_allclose(found.line, wanted.line, rtol=1e-12)
    np.testing.assert_allclose(found.curve, wanted.curve, rtol=1e-12)
    np.testing.assert_array_equal(found.training_loss, wanted.training_loss)
    assert "ThreadPoolExecutor" in found.execution


@pytest.mark.parametrize("at", [4, 18, 27])
def test_an_interrupted_connection_goes_on_to_the_bit(at):
    model, (x, y) = network(), data()
    first = weights_of(model)
    trained(model, x, y)
    calls, own = [], weights_of(model)

    def loss():  # on random rows: no ensemble, and the draws go on where they were
        calls.append(1)
        rows = ol.randint(0, len(x), [8]).numpy()
        found = F.cross_entropy(model(x[rows]), y[rows])
        if len(calls) == at:
            raise KeyboardInterrupt
        return found

    found = ol.lab.connect(model, loss, first, own, size=7, steps=20)
    assert found.interrupted
    assert "resume" in repr(found)
    assert found.resume() is found
    assert not found.interrupted
    calls[:] = [1] * 100
    wanted = ol.lab.connect(model, loss, first, own, size=7, steps=20)
    for name in ("line", "curve", "training_loss"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    for name, w in wanted.bend.items():
        np.testing.assert_array_equal(found.bend[name], w)
    assert all(np.array_equal(w, own[name]) for name, w in weights_of(model).items())


def test_a_step_that_ctrl_c_meets_is_counted():
    model, (x, y) = network(), data()
    first = weights_of(model)
    trained(model, x, y)
    taken = []

    class Interrupted(ol.optimizer.Momentum):
        def step(self, *args):
            super().step(*args)
            taken.append(1)
            if len(taken) == 3:
                signal.raise_signal(signal.SIGINT)

    given = (model, loss_of(model, x, y), first, weights_of(model))
    found = ol.lab.connect(*given, size=7, steps=8, optimizer=Interrupted(0.05))
    assert found.interrupted
    assert len(taken) == 3
    found.resume()
    assert len(taken) == 8
    wanted = ol.lab.connect(*given, size=7, steps=8, optimizer=ol.optimizer.Momentum(0.05))
    np.testing.assert_array_equal(found.training_loss, wanted.training_loss)
    np.testing.assert_array_equal(found.curve, wanted.curve)


def test_a_connection_needs_two_different_ends():
    model, (x, y) = network(), data()
    own = weights_of(model)
    with pytest.raises(ValueError, match="the same weights"):
        ol.lab.connect(model, loss_of(model, x, y), own, own)
    with pytest.raises(ValueError, match="no parameter"):
        ol.lab.connect(model, loss_of(model, x, y), own, {"w": 1.0})


def test_a_training_and_layers_are_taken_as_they_are():
    training = ol.lab.recipe("moons").run(steps=20, probes=[ol.probes.Snapshots(every=5)])
    x, y = training.data.train_x, training.data.train_y
    loss = loss_of(training.model, x, y)
    found = ol.lab.landscape(training.model, loss, "pca", size=3, runs=training)
    assert len(found.paths) == 1
    other = ol.lab.recipe("moons").run(steps=5, seed=1).model
    way = ol.lab.connect(training.model, loss, training.model, other, size=3, curve=False)
    assert way.line[0] == pytest.approx(float(loss().item()), rel=1e-5)


class Twins(ol.nn.Layer):
    """Two matrices of one shape: their order decides which is which."""

    def __init__(self):
        super().__init__()
        self.a = self.create_parameter([2, 2])
        self.b = self.create_parameter([2, 2])

    def forward(self):
        return (self.a**2).sum() + 9 * ((self.b - 1) ** 2).sum()


def test_weights_of_one_shape_are_not_mistaken_for_each_other():
    model = Twins()
    optimizer = ol.optimizer.SGD(0.01, parameters=[model.b, model.a])
    with ol.record(optimizer, probes=[ol.probes.Snapshots(every=1)]) as trace:
        for _ in range(3):
            model().backward()
            optimizer.step()
            optimizer.clear_grad()
    with pytest.raises(ValueError, match="model=model"):
        ol.lab.landscape(model, model, size=3, runs=trace)


def test_each_name_has_one_run():
    model, (x, y) = network(), data()
    trace = trained(model, x, y)
    with pytest.raises(TypeError, match="2 runs"):
        ol.lab.landscape(model, loss_of(model, x, y), size=3, runs={"a": [trace, trace]})
    with pytest.raises(TypeError, match="0 runs"):
        ol.lab.landscape(model, loss_of(model, x, y), size=3, runs={"a": None})
    with pytest.raises(ValueError, match="a run that moves"):
        ol.lab.landscape(model, loss_of(model, x, y), "pca", size=3, runs=[])
