"""Runs of other libraries: torch.optim through its hooks, arrays handed over step by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import random

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="needs PyTorch (the extra `peers`)")

RULES = {
    "SGD": lambda ps: torch.optim.SGD(ps, 0.1),
    "Momentum": lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9),
    "Adam": lambda ps: torch.optim.Adam(ps, 0.01),
    "AdamW": lambda ps: torch.optim.AdamW(ps, 0.01, weight_decay=0.1),
    "RMSprop": lambda ps: torch.optim.RMSprop(ps, 0.01, momentum=0.5),
}


def torch_run(make, probes=None, steps=12, **options):
    """Return the trace of a run in PyTorch, and what PyTorch itself held."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = make(model.parameters())
    x = torch.tensor(random(8, 3, dtype="float32"))
    kept = {"loss": [], "gradient": [], "parameter": [], "state": []}
    copy = lambda t: t.detach().numpy().copy()  # noqa: E731
    kept["start"] = {n: copy(p) for n, p in model.named_parameters()}

    def go():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            kept["loss"].append(float(loss))
            kept["gradient"].append({n: copy(p.grad) for n, p in model.named_parameters()})
            optimizer.step()
            kept["parameter"].append({n: copy(p) for n, p in model.named_parameters()})
            held = {}
            for n, p in model.named_parameters():
                state = optimizer.state[p].items()
                held[n] = {k: copy(s) for k, s in state if torch.is_tensor(s) and s.ndim}
            kept["state"].append(held)

    if probes is None:
        go()
        return None, kept
    with ol.record(optimizer, probes=probes, model=model, **options) as trace:
        go()
    return trace, kept


def run_example(library):
    """Run the example of a library in the documentation; return its names."""
    page = Path(__file__).parents[2] / "docs/how-to/record-my-optimizer.md"
    section = page.read_text(encoding="utf-8").split(f"### {library}\n")[1]
    found = {}
    exec(section.split("```py\n")[1].split("```")[0], found)
    return found


@needs_torch
@pytest.mark.peers
class TestTorch:
    @pytest.mark.parametrize("name", list(RULES))
    def test_every_number_is_what_pytorch_holds(self, name):
        trace, kept = torch_run(RULES[name], "toy")
        assert trace.loss.tolist() == kept["loss"]
        assert trace.learning_rate.tolist() == [0.1 if name in ("SGD", "Momentum") else 0.01] * 12
        for n, start in kept["start"].items():
            values = [start, *(one[n] for one in kept["parameter"])]
            assert np.array_equal(trace.parameters[n], values)
            assert np.array_equal(trace.gradients[n], [one[n] for one in kept["gradient"]])
            assert np.array_equal(trace.terms["update"][n], np.diff(values, axis=0))
            for slot in kept["state"][0][n]:
                assert np.array_equal(
                    trace.slots[slot][n], [one[n][slot] for one in kept["state"]]
                ), slot
        assert set(trace.slots) == set(kept["state"][0]["0.weight"])

    @pytest.mark.parametrize("name", list(RULES))
    def test_the_run_is_not_disturbed(self, name):
        backward = torch.Tensor.backward
        _, plain = torch_run(RULES[name])
        probes = [
            ol.probes.Values(every=3), ol.probes.Norms(terms=False, every=2), ol.probes.Angle(),
            ol.probes.Projection(), ol.probes.PCA(), ol.probes.Histogram(), ol.probes.Snapshots(4),
        ]  # fmt: skip
        trace, recorded = torch_run(RULES[name], probes)
        assert recorded["loss"] == plain["loss"]
        for n, array in plain["parameter"][-1].items():
            assert np.array_equal(array, recorded["parameter"][-1][n])
        assert torch.Tensor.backward is backward
        assert trace.steps("norms").tolist() == [1, 3, 5, 7, 9, 11]
        assert trace.steps("values").tolist() == [1, 4, 7, 10]

    def test_it_is_saved_like_any_other(self, tmp_path):
        pytest.importorskip("zarr")
        trace, _ = torch_run(RULES["Adam"], "toy", to=tmp_path / "x.zarr", flush=5)
        loaded = ol.load_trace(tmp_path / "x.zarr")
        assert ol.trace.first_difference(trace, loaded) is None
        assert loaded.settings["class"] == "Adam"

    def test_two_engines_make_the_same_run(self):
        trace, kept = torch_run(RULES["Adam"], "toy", steps=3)
        ps = [ol.Parameter(a, name=n) for n, a in kept["start"].items()]
        optimizer = ol.optimizer.Adam(0.01, parameters=ps)
        with ol.record(optimizer) as ours:
            for one in kept["gradient"]:
                for p, g in zip(ps, one.values(), strict=True):
                    p.grad = g
                optimizer.step()
        for n, a in ours.parameters.items():
            np.testing.assert_allclose(a, trace.parameters[n], rtol=1e-5, atol=1e-7)

    def test_what_looks_into_the_engine_is_refused(self):
        with pytest.raises(TypeError, match="a run of PyTorch is recorded without them"):
            torch_run(RULES["SGD"], [ol.probes.Time()])


class TestAppend:
    def test_arrays_a_step(self):
        trace = ol.trace.Trace("mine")
        w, m = random(2, 2), np.zeros((2, 2))
        kept = [w]
        for step in range(5):
            g = random(2, 2, seed=step)
            m = 0.9 * m + g
            new = w - 0.1 * m
            trace.append(
                loss=step, learning_rate=0.1, parameters={"w": new}, gradients={"w": g},
                slots={"velocity": {"w": m}}, before={"w": w} if not step else None,
            )  # fmt: skip
            w = new
            kept.append(w)
        assert np.array_equal(trace.parameters["w"], kept)
        assert trace.loss.tolist() == [0, 1, 2, 3, 4]
        assert np.array_equal(trace["velocity"]["w"][-1], m)
        assert np.array_equal(trace["update"]["w"], np.diff(kept, axis=0))

    @pytest.mark.peers
    def test_a_run_of_optax(self):
        jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
        x, y = random(32, 4).astype("f"), random(32, seed=1).astype("f")

        def loss_of(p):
            return ((x @ p["w"] + p["b"] - y) ** 2).mean()

        start = {"w": np.zeros(4, "f"), "b": np.zeros((), "f")}
        parameters = {name: jax.numpy.asarray(a) for name, a in start.items()}
        rule = optax.adam(0.1)
        state = rule.init(parameters)
        trace, kept = ol.trace.Trace("optax.adam"), []
        for step in range(20):
            loss, gradients = jax.value_and_grad(loss_of)(parameters)
            updates, state = rule.update(gradients, state, parameters)
            parameters = optax.apply_updates(parameters, updates)
            trace.append(
                loss=loss, learning_rate=0.1, parameters=parameters, gradients=gradients,
                slots={"mu": state[0].mu, "nu": state[0].nu}, terms={"update": updates},
                before=start if step == 0 else None,
            )  # fmt: skip
            kept.append((loss, parameters, state[0].mu))
        assert trace.loss.tolist() == [float(loss) for loss, _, _ in kept]
        for name in start:
            after = np.array([p[name] for _, p, _ in kept])
            assert np.array_equal(trace.parameters[name][1:], after)
            assert np.array_equal(trace["mu"][name], np.array([m[name] for _, _, m in kept]))
        own = {name: ol.Parameter(a, name=name) for name, a in start.items()}
        optimizer = ol.optimizer.Adam(0.1, parameters=list(own.values()))
        with ol.record(optimizer) as ours:
            for _ in range(20):
                loss_of(own).backward()
                optimizer.step()
                optimizer.clear_grad()
        for name in start:
            np.testing.assert_allclose(
                trace.parameters[name], ours.parameters[name], rtol=1e-4, atol=1e-5
            )

    @pytest.mark.peers
    def test_the_example_of_optax(self):
        pytest.importorskip("jax")
        pytest.importorskip("optax")
        trace = run_example("Optax")["trace"]
        assert len(trace) == 20
        assert {*trace.slots, *trace.terms} == {"mu", "nu", "update"}
        assert trace.parameters["w"].shape == (21, 4)
        assert trace.loss[-1] < 0.3 * trace.loss[0]
        w, update = trace.parameters["w"], trace["update"]["w"]
        np.testing.assert_allclose(w[:-1] + update, w[1:], rtol=1e-5, atol=1e-6)

    @pytest.mark.peers
    def test_the_example_of_keras(self, monkeypatch):
        pytest.importorskip("jax")
        monkeypatch.setenv("KERAS_BACKEND", "jax")
        pytest.importorskip("keras")
        found = run_example("Keras")
        trace, layer = found["recorded"].trace, found["model"].layers[0]
        assert len(trace) == 3 * 64 // 16
        assert trace.loss[-1] < 0.5 * trace.loss[0]
        np.testing.assert_allclose(trace.learning_rate, 0.1)
        for v in layer.trainable_variables:
            assert np.array_equal(trace.parameters[v.path][-1], np.asarray(v.value))
        assert list(trace.terms) == ["update"]

    def test_with_probes(self):
        trace = ol.trace.Trace("mine")
        for step in range(20):
            start = {"w": np.zeros(3)} if not step else None
            probes = ["norms", ol.probes.Angle()] if not step else None
            trace.append(parameters={"w": np.full(3, -1.0 - step)}, gradients={"w": np.ones(3)},
                         before=start, probes=probes)  # fmt: skip
        assert not trace.parameters
        np.testing.assert_allclose(trace.norms["update"]["w"], np.sqrt(3))
        np.testing.assert_allclose(trace["angle"]["w"], 0, atol=1e-5)

    def test_wrong_calls(self):
        trace = ol.trace.Trace("mine")
        with pytest.raises(TypeError, match="append begins with before="):
            trace.append(parameters={"w": np.ones(2)})
        trace.append(parameters={"w": np.ones(2)}, before={"w": np.zeros(2)})
        with pytest.raises(TypeError, match="for the first call of append alone"):
            trace.append(parameters={"w": np.ones(2)}, before={"w": np.zeros(2)})
        with pytest.raises(ValueError, match="there is no parameter 'v'; there is w"):
            trace.append(parameters={"v": np.ones(2)})
        with pytest.raises(ValueError, match=r"w has shape \(3,\); its parameter has \(2,\)"):
            trace.append(parameters={"w": np.ones(3)})
        assert len(trace) == 1


def test_a_step_that_was_refused_changes_nothing():
    trace = ol.trace.Trace("elsewhere")
    w = np.array([2.0, 3.0])
    for gradients in ({"w": np.ones(3)}, {"v": np.ones(2)}):
        with pytest.raises(ValueError, match=r"shape|names|parameter"):
            trace.append(
                parameters={"w": w - 1}, gradients=gradients,
                before={"w": w} if not len(trace) else None,
            )  # fmt: skip
    trace.append(loss=1.0, parameters={"w": w - 1}, gradients={"w": np.ones(2)}, before={"w": w})
    assert trace.terms["update"]["w"].tolist() == [[-1.0, -1.0]]
    assert len(trace) == 1


def test_texts_are_marked_not_logged():
    trace = ol.trace.Trace("elsewhere")
    for value in ("warm-up", None, object()):
        with pytest.raises(TypeError, match="mark"):
            trace.log("phase", value)
