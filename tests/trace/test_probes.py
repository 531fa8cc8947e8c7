"""Probes: each against a computation by hand, its schedule, and runs that they do not disturb."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from optlab.trace.probes.curvature import largest_eigenpairs, largest_eigenvalues
from tests.optimizer.helpers import EACH, give, random

F = ol.nn.functional


def rosenbrock(p):
    x, y = p["w"]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def surface(make, probes, steps=30, **options):
    """Return the trace of a run on a surface, and its path."""
    w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
    optimizer = make(parameters=[w])
    optimizer.set_lr(1e-3)
    path = [w.numpy()]
    with ol.record(optimizer, probes=probes, **options) as trace:
        for _ in range(steps):
            rosenbrock({"w": w}).backward()
            optimizer.step()
            optimizer.clear_grad()
            path.append(w.numpy())
    return trace, np.array(path)


def network(make, probes, steps=12, capture=False, **options):
    """Return the trace of a run of a network, and everything that the run computed."""
    ol.seed(0)
    model = ol.nn.Sequential(
        ol.nn.Linear(4, 8), ol.nn.BatchNorm1D(8), ol.nn.ReLU(), ol.nn.Dropout(0.2),
        ol.nn.Linear(8, 3),
    )  # fmt: skip
    optimizer = make(parameters=model.parameters())
    x, labels = ol.to_tensor(random(16, 4, dtype="float32")), np.arange(16) % 3
    if callable(probes):
        probes = probes(model, x, labels)
    losses = []

    def step():
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = ol.capture(step) if capture else step

    def go():
        for _ in range(steps):
            losses.append(run().item())

    trace = None
    if probes is None:
        go()
    else:
        with ol.record(optimizer, probes=probes, model=model, **options) as trace:
            go()
    state = {k: v.numpy() for k, v in model.state_dict().items()}
    return trace, losses, state, float(ol.rand([1]).item())


def every_probe(model, x, labels):
    def loss(w):
        return F.cross_entropy(ol.nn.functional_call(model, w, x), labels)

    return [
        ol.probes.Values(elements=20, every=3), ol.probes.Norms(geometric=2.0),
        ol.probes.Angle(), ol.probes.UpdateRatio(every=2), ol.probes.EffectiveRate(steps=[3, 4]),
        ol.probes.GradientNoise(), ol.probes.Histogram(of=["gradient", "parameter", "update"]),
        ol.probes.Projection(k=3), ol.probes.PCA(), ol.probes.Snapshots(every=5),
        ol.probes.Activations(), ol.probes.Metric("draws", lambda: ol.rand([2]).numpy()),
        ol.probes.Time(), ol.probes.Curvature(loss, samples=2, iterations=4, every=5),
    ]  # fmt: skip


PROBES = {
    "every probe": every_probe,
    "light": "light",
    "full": "full",
    "norms now and then": lambda *_: [ol.probes.Norms(every=5)],
    "curvature": lambda *given: every_probe(*given)[-1:],
    "activations": lambda *_: [ol.probes.Activations(every=4)],
    "a metric that draws": lambda *_: [ol.probes.Metric("m", lambda: ol.rand([2]).numpy())],
}


class TestDisturbNothing:
    @pytest.mark.parametrize("capture", [False, True])
    @pytest.mark.parametrize("probes", PROBES.values(), ids=list(PROBES))
    def test_every_probe(self, probes, capture):
        plain = network(EACH["Adam"], None, capture=capture)[1:]
        recorded = network(EACH["Adam"], probes, capture=capture)[1:]
        assert recorded[0] == plain[0]
        assert all(np.array_equal(recorded[1][k], plain[1][k]) for k in plain[1])
        assert recorded[2] == plain[2]  # the next draw

    @pytest.mark.parametrize("probes", ["light", "every probe"])
    @pytest.mark.parametrize("name", [*EACH, "LookAhead", "EMA"])
    def test_every_optimizer(self, name, probes):
        def make(parameters):
            optimizer = EACH.get(name, EACH["Momentum"])(parameters=parameters)
            if name == "LookAhead":
                return ol.optimizer.LookAhead(optimizer, k=3)
            if name == "EMA":
                return ol.optimizer.ExponentialMovingAverage.around(optimizer, decay=0.9)
            return optimizer

        plain = network(make, None)[1:]
        recorded = network(make, PROBES[probes])[1:]
        assert recorded[0] == plain[0]
        assert all(np.array_equal(recorded[1][k], plain[1][k]) for k in plain[1])

    def test_lbfgs(self):
        def run(probes):
            w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
            optimizer = ol.optimizer.LBFGS(
                0.5, parameters=[w], max_iter=4, line_search_fn="strong_wolfe"
            )

            def closure():
                optimizer.clear_grad()
                loss = rosenbrock({"w": w})
                loss.backward()
                return loss

            values = []

            def go():
                for _ in range(5):
                    values.append(optimizer.step(closure).item())
                    values.extend(w.numpy())

            if probes is None:
                go()
                return values, None
            with ol.record(optimizer, probes=probes) as trace:
                go()
            return values, trace

        plain, _ = run(None)
        for probes in ("toy", "light", [ol.probes.Curvature(rosenbrock), ol.probes.Norms(every=3)]):
            recorded, trace = run(probes)
            assert recorded == plain
            assert len(trace) == len(run("toy")[1]) > 5

    def test_nothing_listens_after_the_block(self):
        network(EACH["Adam"], every_probe)
        for event in vars(events).values():
            if isinstance(event, events.Event):
                assert event.listeners == ()


def test_light_has_the_loss_of_every_step_and_norms_of_every_tenth():
    trace, path = surface(EACH["Adam"], "light", steps=35)
    full, same = surface(EACH["Adam"], ["norms"], steps=35)
    assert np.array_equal(path, same)
    assert np.array_equal(trace.loss, full.loss)
    assert trace.step.tolist() == list(range(1, 36))
    assert trace.steps("norms").tolist() == [1, 11, 21, 31]
    assert trace["norm of gradient"].shape == (4,)
    assert set(trace.norms) == {"parameter", "gradient", "moment1", "moment2", "update"}
    for kind, norms in trace.norms.items():
        if kind == "update":  # of the change, not of the term
            np.testing.assert_allclose(norms["w"], full.norms[kind]["w"][::10], rtol=1e-9)
        else:
            assert np.array_equal(norms["w"], full.norms[kind]["w"][::10]), kind
    every, _ = surface(EACH["Adam"], [ol.probes.Norms(every=10)], steps=35)
    for kind, norms in every.norms.items():
        assert np.array_equal(norms["w"], full.norms[kind]["w"][::10]), kind


def test_norms_without_terms_know_missing_and_given_gradients():
    a, b = ol.Parameter([3.0, 4.0], name="a"), ol.Parameter([2.0], name="b")
    optimizer = ol.optimizer.SGD(0.5, parameters=[a, b])
    with ol.record(optimizer, probes=[ol.probes.Norms(terms=False)]) as trace:
        give(a, [3.0, 4.0])
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        optimizer.apply_gradients([(a, np.array([6.0, 8.0], "f4")), (b, np.array([1.0], "f4"))])
        give(b, [2.0])
        optimizer.step()
    np.testing.assert_array_equal(trace.norms["gradient"]["a"], [5.0, 10.0, np.nan])
    np.testing.assert_array_equal(trace.norms["gradient"]["b"], [np.nan, 1.0, 2.0])
    np.testing.assert_array_equal(trace.norms["update"]["a"], [2.5, 5.0, np.nan])
    np.testing.assert_array_equal(trace.norms["update"]["b"], [np.nan, 0.5, 1.0])


@pytest.mark.parametrize("wrapped", [False, True])
def test_steps_between_observed_ones_run_at_full_speed(wrapped):
    w = ol.Parameter(random(3), name="w")
    optimizer = EACH["Adam"](parameters=[w])
    if wrapped:
        optimizer = ol.optimizer.LookAhead(optimizer)
    for probes, expected in (("light", []), ([ol.probes.Norms(every=10)], [1, 11, 21])):
        heard = []
        with ol.record(optimizer, probes=probes) as trace:
            for step in range(25):
                heard.append(bool(events.step_taken.listeners))
                give(w, random(3, seed=step))
                optimizer.step()
                optimizer.clear_grad()
        assert [n + 1 for n, x in enumerate(heard) if x] == expected
        assert len(trace) == 25


def test_steps_that_were_skipped_as_not_finite_are_not_recorded():
    def run(probes):
        w = ol.Parameter([1.0], name="w")
        optimizer = ol.optimizer.SGD(0.1, parameters=[w], not_finite="skip")
        with ol.record(optimizer, probes=probes) as trace:
            for g in (1.0, np.inf, 2.0):
                give(w, [g])
                optimizer.step()
                optimizer.clear_grad()
        return trace

    assert len(run("light")) == len(run("toy")) == 2


class TestSchedules:
    @pytest.mark.parametrize(
        ("schedule", "expected"),
        [
            ({}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            ({"every": 4}, [1, 5, 9]),
            ({"steps": [2, 3, 9, 50]}, [2, 3, 9]),
            ({"geometric": 2}, [1, 2, 4, 8]),
            ({"geometric": 1.5}, [1, 2, 3, 4, 6, 8]),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("probe", [ol.probes.Norms, ol.probes.Values, ol.probes.Projection])
    def test_of_each_probe(self, probe, schedule, expected):
        trace, path = surface(EACH["SGD"], [probe(**schedule)], steps=10)
        name = {"Norms": "norms", "Values": "values", "Projection": "projection"}[probe.__name__]
        assert trace.steps(name).tolist() == expected
        assert trace.step.tolist() == list(range(1, 11))
        if name == "values":
            assert np.array_equal(trace.parameters["w"][1:], path[expected])
            assert np.array_equal(trace.parameters["w"][0], path[0])
            assert trace.gradients["w"].shape == (len(expected), 2)

    def test_the_recordings_own_is_the_default(self):
        trace, _ = surface(EACH["SGD"], [ol.probes.Norms(), ol.probes.Projection()], 10, every=3)
        for name in ("loss", "norms", "projection"):
            assert trace.steps(name).tolist() == [1, 4, 7, 10]

    @pytest.mark.parametrize(
        ("schedule", "message"),
        [
            ({"every": 0}, "every must be a whole number of at least 1; got 0"),
            ({"every": 2, "geometric": 2}, "one schedule; got every and geometric"),
            ({"steps": [0]}, "a step must be a whole number of at least 1; got 0"),
            ({"steps": 3}, "steps is a list of step numbers"),
            ({"geometric": 1}, "geometric is a ratio above 1"),
        ],
        ids=str,
    )
    def test_wrong_ones(self, schedule, message):
        with pytest.raises((TypeError, ValueError), match=message):
            ol.probes.Norms(**schedule)


class TestValues:
    def run(self, **options):
        a, b = ol.Parameter(random(3), name="a"), ol.Parameter(random(4, 5, seed=1), name="b")
        optimizer = ol.optimizer.Adam(0.1, parameters=[a, b])
        with ol.record(optimizer, **options) as trace:
            for step in range(4):
                give(a, random(3, seed=step))
                give(b, random(4, 5, seed=step))
                optimizer.step()
                optimizer.clear_grad()
        return trace

    def test_the_limit_counts_for_each_parameter(self):
        whole, some = self.run(), self.run(probes=[ol.probes.Values(elements=10)])
        assert list(some.parameters) == list(some.slots["moment1"]) == ["a"]
        assert np.array_equal(some.gradients["a"], whole.gradients["a"])
        assert some.left_out == [
            "Values: b, which has 20 elements (the limit is 10 for each parameter)."
        ]
        assert not whole.left_out

    def test_by_default_large_parameters_have_norms_and_small_ones_values(self):
        a, b = ol.Parameter(np.ones(3), name="a"), ol.Parameter(np.ones(1001), name="b")
        optimizer = ol.optimizer.SGD(0.1, parameters=[a, b])
        with ol.record(optimizer) as trace:
            give(a, np.ones(3))
            give(b, np.ones(1001))
            optimizer.step()
        assert list(trace.parameters) == ["a"]
        assert trace.norms["gradient"]["b"][0] == pytest.approx(np.sqrt(1001))
        assert "b, which has 1,001 elements" in trace.left_out[0]

    def test_chosen_parameters(self):
        whole, some = self.run(), self.run(probes=[ol.probes.Values(parameters="b")])
        assert list(some.parameters) == ["b"]
        assert np.array_equal(some.parameters["b"], whole.parameters["b"])

    def test_chosen_elements(self):
        whole, some = self.run(), self.run(probes=[ol.probes.Values(elements=[2, 0])])
        for name in "ab":
            flat = whole.gradients[name].reshape(4, -1)
            assert np.array_equal(some.gradients[name], flat[:, [2, 0]])

    def test_wrong_choices(self):
        with pytest.raises(ValueError, match="Values: the run has no parameter 'c'; it has a, b"):
            self.run(probes=[ol.probes.Values(parameters=["a", "c"])])
        with pytest.raises(ValueError, match="a has 3 elements, and so no element 7"):
            self.run(probes=[ol.probes.Values(elements=[7])])


class TestLimit:
    def test_a_probe_that_needs_more_ends_and_the_trace_says_so(self):
        probes = [ol.probes.Values(), ol.probes.Projection()]
        trace, path = surface(EACH["Adam"], probes, steps=100, limit=3000)
        assert len(trace.loss) == 100
        steps = trace.steps("values")
        assert steps.tolist() == list(range(1, len(steps) + 1))
        assert 0 < len(steps) < 100
        assert np.array_equal(trace.parameters["w"], path[: len(steps) + 1])
        assert trace["moment1"]["w"].shape == (len(steps), 2)
        [text] = [line for line in trace.left_out if line.startswith("Values")]
        assert text == f"Values: steps from {len(steps) + 1} on (the limit of 2.93 KiB is reached)."
        assert sum(cost["bytes"] for cost in trace.costs.values()) <= 3000

    def test_costs_tell_steps_seconds_and_bytes(self):
        trace, _ = surface(EACH["SGD"], [ol.probes.Values(), ol.probes.Angle(every=2)], steps=10)
        assert trace.costs["Values"]["steps"] == 10
        assert trace.costs["Angle"]["steps"] == 5
        assert trace.costs["Values"]["bytes"] == 10 * 3 * 16
        assert all(cost["seconds"] > 0 for cost in trace.costs.values())


class TestOfUpdates:
    def test_by_hand(self):
        probes = ["values", ol.probes.Angle(), ol.probes.UpdateRatio(), ol.probes.EffectiveRate()]
        trace, path = surface(EACH["Adam"], probes)
        u, g = trace["update"]["w"], trace["gradient"]["w"]
        norm = np.linalg.norm
        dots = (u * g).sum(axis=1)
        cosines = -dots / norm(u, axis=1) / norm(g, axis=1)
        np.testing.assert_allclose(
            trace["angle"]["w"], np.degrees(np.arccos(cosines)), rtol=1e-7, atol=1e-5
        )
        np.testing.assert_allclose(
            trace["update ratio"]["w"], norm(u, axis=1) / norm(path[:-1], axis=1), rtol=1e-9
        )
        np.testing.assert_allclose(
            trace["effective rate"]["w"], -dots / (g * g).sum(axis=1), rtol=1e-9
        )

    def test_a_rule_without_a_named_update(self):
        class Silent(ol.optimizer.Optimizer):
            def update(self, p, g, s, h, c):
                return p - g, {}

        trace, _ = surface(Silent, [ol.probes.Angle()], steps=2)
        assert "angle" not in trace.names
        assert trace.left_out == [
            "Angle: the rule has no term named 'update' that could be compared."
        ]

    def test_gradient_noise_is_unbiased(self):
        generator, sigma, mean = np.random.default_rng(0), 0.5, 0.2
        found = []
        for _ in range(200):
            w = ol.Parameter(np.zeros(5), name="w")
            optimizer = ol.optimizer.SGD(0.0, parameters=[w])
            with ol.record(optimizer, probes=[ol.probes.GradientNoise(decay=0.7)]) as trace:
                for _ in range(8):
                    give(w, mean + sigma * generator.standard_normal(5))
                    optimizer.step()
                    optimizer.clear_grad()
            found.append((trace["noise"][-1], trace["signal"][-1]))
        (noise, signal), errors = np.mean(found, 0), np.std(found, 0) / np.sqrt(len(found))
        assert abs(noise - 5 * sigma**2) < 4 * errors[0]
        assert abs(signal - 5 * mean**2) < 4 * errors[1]


def test_histograms_count_every_element():
    probe = ol.probes.Histogram(bins=10, of=["gradient", "moment1", "parameter"])
    trace, _ = surface(EACH["Adam"], ["values", probe], steps=9)
    edges = trace["histogram edges"]
    assert edges.shape == (11,)
    for what in ("gradient", "moment1"):
        counts = trace[f"histogram of {what}"]["w"]
        for row, values in zip(counts, trace[what]["w"], strict=True):
            inside = np.clip(np.abs(values), edges[0], edges[-1])
            assert np.array_equal(row, np.histogram(inside, edges)[0])


def test_histograms_of_what_is_not_there_name_what_is():
    with pytest.raises(KeyError, match="the step has no 'velocity'; it has parameter, gradient"):
        surface(EACH["Adam"], [ol.probes.Histogram(of="velocity")])


class TestSketches:
    def test_projections_keep_distances_and_seeds(self):
        def run(seed):
            return network(EACH["Adam"], [ol.probes.Projection(k=400, seed=seed), "values"])[0]

        trace = run(0)
        moved = np.concatenate(
            [(a - a[0]).reshape(len(a), -1) for a in trace.parameters.values()], axis=1
        )
        distances = np.linalg.norm(moved[2:] - moved[1], axis=1)
        found = np.linalg.norm(trace["projection"][1:] - trace["projection"][0], axis=1)
        np.testing.assert_allclose(found, distances, rtol=0.15)
        assert np.array_equal(run(0)["projection"], trace["projection"])
        assert not np.array_equal(run(1)["projection"], trace["projection"])

    @pytest.mark.parametrize("steps", [1, 3, 4, 7, 11])
    def test_pca_is_that_of_all_points(self, steps):
        trace = network(EACH["Adam"], [ol.probes.PCA(k=3, rank=11), "values"], steps=steps)[0]
        points = np.concatenate(
            [a[1:].reshape(steps, -1).astype(float) for a in trace.parameters.values()], axis=1
        )
        centered = points - points.mean(axis=0)
        u, s, _ = np.linalg.svd(centered, full_matrices=False)
        wanted = np.zeros((steps, 3))
        count = min(3, steps)
        wanted[:, :count] = (u * s)[:, :count]
        np.testing.assert_allclose(np.abs(trace["pca"]), np.abs(wanted), atol=1e-6)
        if steps > 1:
            share = (s**2 / (s**2).sum())[:3]
            np.testing.assert_allclose(trace["pca explained"][: len(share)], share, atol=1e-9)

    def test_pca_of_fewer_directions_keeps_the_largest(self):
        w = ol.Parameter(np.zeros(50), name="w")
        optimizer = ol.optimizer.SGD(1.0, parameters=[w])
        generator = np.random.default_rng(0)
        axes = np.linalg.qr(generator.standard_normal((50, 2)))[0].T
        with ol.record(optimizer, probes=[ol.probes.PCA(k=2), "values"]) as trace:
            for _ in range(60):
                give(w, generator.standard_normal(2) * [5, 2] @ axes
                     + 1e-3 * generator.standard_normal(50))  # fmt: skip
                optimizer.step()
                optimizer.clear_grad()
        points = trace.parameters["w"][1:]
        u, s, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
        np.testing.assert_allclose(np.abs(trace["pca"]), np.abs((u * s)[:, :2]), atol=1e-3 * s[0])


def test_snapshots_hold_parameters_and_state():
    trace, path = surface(EACH["Adam"], [ol.probes.Snapshots(every=4)], steps=10)
    assert trace.steps("snapshot").tolist() == [4, 8]
    assert np.array_equal(trace["snapshot"]["w"], path[[4, 8]])
    full, _ = surface(EACH["Adam"], "toy", steps=10)
    moments = [a for name, a in trace["state"].items() if "moment1" in name]
    assert np.array_equal(moments[0].reshape(2, 2), full["moment1"]["w"][[3, 7]])


def test_activations_by_hand():
    x = random(16, 4, dtype="float32")
    model = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.ReLU())
    optimizer = EACH["SGD"](parameters=model.parameters())
    outputs = []
    probe = ol.probes.Activations(statistics={"mean": np.mean, "rows": lambda a: a.mean(axis=1)})
    with ol.record(optimizer, probes=[probe], model=model) as trace:
        for _ in range(3):
            y = model(x)
            outputs.append(y.numpy())
            y.sum().backward()
            optimizer.step()
            optimizer.clear_grad()
    assert np.array_equal(trace["activation mean"]["1"], [y.mean() for y in outputs])
    assert trace["activation rows"]["0"].shape == (3, 16)
    model(x)
    with pytest.raises(TypeError, match="Activations needs the model"):
        surface(EACH["SGD"], [ol.probes.Activations()])
    with pytest.raises(ValueError, match="there is no statistic 'median'; there are mean"):
        ol.probes.Activations(statistics=["median"])


def test_phases_add_up():
    trace = network(EACH["Adam"], lambda *_: [ol.probes.Time()])[0]
    phases = [trace[f"time {name}"] for name in ("forward", "backward", "between", "update")]
    assert all((phase >= 0).all() for phase in phases)
    total = np.sum(phases, axis=0)[1:]
    assert (total <= np.diff(trace.seconds) * 1.5 + 1e-3).all()
    assert (np.array(phases[1]) > 0).all()


class TestCurvature:
    def test_a_loss_that_does_not_read_what_it_is_given(self):
        model = ol.nn.Linear(3, 1)
        x = ol.to_tensor(np.ones((4, 3), np.float32))
        optimizer = ol.optimizer.SGD(0.1, parameters=model.parameters())

        def train(loss):
            with ol.record(optimizer, probes=[ol.probes.Curvature(loss)]):
                (model(x) ** 2).mean().backward()
                optimizer.step()

        for wrong in (lambda w: (model(x) ** 2).mean(), lambda w: ol.to_tensor(1.0)):
            with pytest.raises(ValueError, match=r"not depend on the parameters.*functional_call"):
                train(wrong)

    def test_against_the_hessian(self):
        trace, path = surface(EACH["SGD"], [ol.probes.Curvature(rosenbrock, k=2, samples=4)])
        for found, total, point in zip(
            trace["sharpness"], trace["hessian trace"], path[1:], strict=True
        ):
            hessian = ol.hessian(lambda w: rosenbrock({"w": w}))(point)
            np.testing.assert_allclose(found, np.linalg.eigvalsh(hessian)[::-1], rtol=1e-4)
            assert np.isfinite(total)

    def test_of_a_network(self):
        def probes(model, x, labels):
            model.eval()

            def loss(w):
                return F.cross_entropy(ol.nn.functional_call(model, w, x), labels)

            probes.loss = loss
            return [
                ol.probes.Curvature(loss, k=3, samples=200, every=5),
                ol.probes.Snapshots(steps=[1, 6, 11]),
            ]

        trace = network(EACH["SGD"], probes)[0]
        for i in range(3):
            point = {k: a[i].astype(float) for k, a in trace["snapshot"].items()}
            flat = np.concatenate([a.ravel() for a in point.values()])

            def of_vector(v, point=point):
                parts, place = {}, 0
                for k, a in point.items():
                    parts[k] = np.reshape(v[place : place + a.size], a.shape)
                    place += a.size
                return probes.loss(parts)

            hessian = ol.hessian(of_vector)(flat)
            values = np.linalg.eigvalsh(hessian)
            np.testing.assert_allclose(trace["sharpness"][i], values[::-1][:3], rtol=1e-4)
            error = trace["hessian trace error"][i]
            assert abs(trace["hessian trace"][i] - values.sum()) < 4 * error

    @pytest.mark.parametrize("rule", ["SGD", "Adam"])
    def test_alignment_of_gradient_and_update(self, rule):
        probe = ol.probes.Curvature(rosenbrock, k=2, alignment=True)
        trace, path = surface(EACH[rule], [probe])
        for i, (before, after) in enumerate(itertools.pairwise(path)):
            values, vectors = np.linalg.eigh(ol.hessian(lambda w: rosenbrock({"w": w}))(after))
            gradient = ol.grad(lambda w: rosenbrock({"w": w}))(after)
            for name, v in (("gradient", np.asarray(gradient)), ("update", after - before)):
                cosines = (vectors.T @ v / np.linalg.norm(v))[::-1] ** 2
                np.testing.assert_allclose(trace[f"alignment of {name}"][i], cosines, atol=1e-4)
                assert trace[f"alignment of {name}"][i].sum() == pytest.approx(1, rel=1e-4)
                along = cosines @ values[::-1]
                assert trace[f"curvature along {name}"][i] == pytest.approx(along, rel=1e-3)

    def test_a_step_that_moves_nothing_has_no_direction(self):
        w = ol.Parameter(np.zeros(2), name="w")
        optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        probe = ol.probes.Curvature(lambda p: (p["w"] ** 2).sum(), alignment=True)
        with ol.record(optimizer, probes=[probe]) as trace:
            (w * w).sum().backward()
            optimizer.step()
        assert np.isnan(trace["alignment of update"]).all()
        assert np.isnan(trace["curvature along gradient"]).all()

    def test_eigenvectors_are_those_of_the_matrix(self):
        draws = np.random.default_rng(0)
        matrix = draws.standard_normal((30, 30))
        matrix = matrix + matrix.T
        values, vectors = largest_eigenpairs(lambda v: matrix @ v, 30, 4, 30, 1e-10, draws)
        np.testing.assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-10)
        np.testing.assert_allclose(vectors @ matrix, values[:, None] * vectors, atol=1e-7)

    @pytest.mark.parametrize("k", [1, 3])
    @pytest.mark.parametrize("spectrum", ["distinct", "equal", "negative", "zero"])
    def test_lanczos(self, spectrum, k):
        values = {
            "distinct": np.arange(1.0, 31.0), "equal": np.repeat([1.0, 2.0, 3.0], 10),
            "negative": -np.arange(1.0, 31.0), "zero": np.zeros(30),
        }[spectrum]  # fmt: skip
        q = np.linalg.qr(np.random.default_rng(1).standard_normal((30, 30)))[0]
        matrix = q @ np.diag(values) @ q.T
        found = largest_eigenvalues(lambda v: matrix @ v, 30, k, 30, 1e-8, np.random.default_rng(0))
        np.testing.assert_allclose(found, np.sort(values)[::-1][:k], rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("k", [1, 2, 3, 4])
    def test_equal_eigenvalues_are_all_there(self, k, dtype):
        """Each output of a linear layer with the squared error has the same Hessian."""
        layer = ol.nn.Linear(3, 2)
        layer.to(dtype=dtype)
        draws = np.random.default_rng(0)
        x, y = (ol.to_tensor(draws.standard_normal(s).astype(dtype)) for s in ((8, 3), (8, 2)))

        def loss(w):
            return ((ol.nn.functional_call(layer, w, x) - y) ** 2).mean()

        optimizer = EACH["SGD"](parameters=layer.parameters())
        with ol.record(optimizer, probes=[ol.probes.Curvature(loss, k=k)], model=layer) as trace:
            loss(dict(layer.named_parameters())).backward()
            optimizer.step()
        features = np.column_stack([np.asarray(x), np.ones(8)]).astype(np.float64)
        exact = np.repeat(np.linalg.eigvalsh(features.T @ features / 8)[::-1], 2)
        np.testing.assert_allclose(trace["sharpness"][0], exact[:k], rtol=1e-4)

    def test_a_loss_without_arguments_is_refused_before_the_run(self):
        with pytest.raises(TypeError, match=r"takes no argument.*functional_call"):
            ol.probes.Curvature(lambda: 0.0)


class TestOwn:
    def test_shapes_must_stay(self):
        class Growing(ol.probes.Probe):
            def observe(self, step):
                return {"x": np.zeros(step.number)}

        with pytest.raises(ValueError, match=r"Growing returned 'x' of shape \(2,\) at step 2"):
            surface(EACH["SGD"], [Growing()])

    def test_what_was_not_asked_for_is_not_there(self):
        class Greedy(ol.probes.Probe):
            needs_update = False

            def observe(self, step):
                return {"g": step.gradients["w"]}

        with pytest.raises(AttributeError, match="needs_update = True"):
            surface(EACH["SGD"], [Greedy()])

    def test_a_probe_sees_everything_of_a_step(self):
        seen = []

        class All(ol.probes.Probe):
            def observe(self, step):
                seen.append((step.number, step.loss, step.learning_rate, sorted(step.terms)))
                return {"w": step.parameters, "m": step.slots["moment1"], "g": step.gradients}

        trace, _ = surface(EACH["Adam"], ["values", All()], steps=5)
        assert seen == [
            (n, loss, 1e-3, ["root", "update"])
            for n, loss in zip(trace.step, trace.loss, strict=True)
        ]
        assert np.array_equal(trace["w"], trace.parameters["w"][1:])
        assert np.array_equal(trace["m"], trace["moment1"])
        assert np.array_equal(trace["g"], trace["gradient"])

    def test_two_of_one_label(self):
        with pytest.raises(ValueError, match="two probes are called 'Angle'"):
            surface(EACH["SGD"], [ol.probes.Angle(), ol.probes.Angle(every=2)])


class TestMarksAndLogs:
    def test_have_their_steps(self):
        w = ol.Parameter([1.0], name="w")
        optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        with ol.record(optimizer, every=2) as trace:
            for step in range(5):
                if step == 3:
                    trace.mark("here")
                trace.log("pair", [step, 2.0 * step])
                give(w, [1.0])
                optimizer.step()
        trace.mark("over")
        assert trace.marks == [(3, "here"), (5, "over")]
        assert trace.steps("pair").tolist() == [0, 1, 2, 3, 4]
        assert trace["pair"].tolist() == [[0, 0], [1, 2], [2, 4], [3, 6], [4, 8]]

    def test_wrong_ones(self):
        trace, _ = surface(EACH["SGD"], "toy", steps=2)
        with pytest.raises(TypeError, match="mark takes a text"):
            trace.mark(3)
        with pytest.raises(TypeError, match="log takes a name and a number"):
            trace.log(3, 3)
        with pytest.raises(ValueError, match="'loss' is recorded already"):
            trace.log("loss", 3)
        trace.log("x", 3)
        with pytest.raises(ValueError, match="one shape"):
            trace.log("x", [3])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ol.probes.Metric("m", lambda step: 0.0), r"without arguments; .* takes \(step\)"),
    ],
)
def test_functions_that_take_other_arguments_are_refused_at_once(make, said):
    with pytest.raises(TypeError, match=said):
        make()
