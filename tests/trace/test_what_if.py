"""Forks, influences, hypergradients and first differences: by hand, by finite differences."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH, WithNorms, give, random

F = ol.nn.functional


def rosenbrock(p):
    x, y = p["w"]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def recorded(optimizer, w, steps=20, loss=rosenbrock, **options):
    with ol.record(optimizer, **options) as trace:
        for _ in range(steps):
            loss({"w": w}).backward()
            optimizer.step()
            optimizer.clear_grad()
    return trace


def make(name, p, **common):
    optimizer = EACH.get(name, EACH["Adam"])(parameters=[p], **common)
    optimizer.set_lr(1e-3)
    if name == "LookAhead":
        return ol.optimizer.LookAhead(optimizer, k=3)
    return optimizer


def same_run(a, b, but=("seconds",)):
    assert list(a) == list(b)
    for name in a:
        if name not in but:
            assert np.array_equal(np.asarray(a[name]), np.asarray(b[name]), equal_nan=True), name


def test_a_loss_that_is_no_function_is_named():
    with pytest.raises(TypeError, match=r"loss is a function of the parameters.*got 'rosenbrock'"):
        ol.hypergradient(ol.optimizer.SGD(0.1), "rosenbrock", np.zeros(2), steps=1)


class TestFork:
    @pytest.mark.parametrize("step", [0, 1, 7, 20])
    @pytest.mark.parametrize("name", [*EACH, "LookAhead"])
    def test_with_nothing_changed_it_is_the_run_to_the_bit(self, name, step):
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        trace = recorded(make(name, w), w)
        live = w.numpy()
        fork = trace.fork(step, loss=rosenbrock)
        same_run(fork, trace)
        assert np.array_equal(w.numpy(), live)
        assert ol.trace.first_difference(fork, trace) is None

    def test_a_recording_that_was_given_its_loss_needs_no_more(self):
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        optimizer = make("Momentum", w)
        with ol.record(optimizer, loss=rosenbrock) as trace:
            for _ in range(12):
                rosenbrock({"w": w}).backward()
                optimizer.step()
                optimizer.clear_grad()
        assert ol.trace.first_difference(trace.fork(step=7), trace) is None
        other = trace.fork(step=7, learning_rate=1e-4)
        assert (len(other), other.learning_rate[7]) == (12, 1e-4)
        assert ol.trace.first_difference(other.fork(9), other) is None
        bowl = trace.fork(step=7, loss=lambda p: (p["w"] ** 2).sum())
        again = bowl.fork(step=9)  # of the fork's loss, not of the first run's
        assert ol.trace.first_difference(again, bowl) is None
        for copied in (copy.copy(trace), copy.deepcopy(trace)):
            assert ol.trace.first_difference(copied.fork(step=7), trace) is None

    def test_a_pickled_trace_says_which_loss_it_has_lost(self):
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        optimizer = make("Momentum", w)
        with ol.record(optimizer, loss=rosenbrock) as trace:
            rosenbrock({"w": w}).backward()
            optimizer.step()
        for there in (trace, copy.deepcopy(trace), pickle.loads(pickle.dumps(trace))):
            pickled = pickle.loads(pickle.dumps(there))
            with pytest.raises(TypeError, match=r"pickled, and its loss, 'rosenbrock', did not.*"):
                pickled.fork(step=0)
            assert ol.trace.first_difference(pickled.fork(0, loss=rosenbrock), trace) is None

    def test_without_a_loss_it_says_both_ways_to_give_one(self):
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        trace = recorded(make("SGD", w), w)
        with pytest.raises(
            TypeError, match=r"fork\(\.\.\., loss=f\), or .*record\(optimizer, loss"
        ):
            trace.fork(3)
        for who, call in (
            ("fork", lambda loss: trace.fork(3, loss=loss)),
            ("record", lambda loss: ol.record(make("SGD", w), loss=loss)),
        ):
            with pytest.raises(TypeError, match=f"{who} calls the loss with a dict"):
                call(lambda: (w**2).sum())

    @pytest.mark.parametrize("problem", ["rosenbrock", "noisy", "network"])
    def test_of_a_comparison(self, problem):
        found = {
            "rosenbrock": "rosenbrock",
            "noisy": ol.problems.noisy("rosenbrock", 0.1),
            "network": ol.problems.digits_mlp(hidden=8),
        }[problem]
        optimizers = {
            "Adam": ol.optimizer.Adam(ol.optimizer.lr.StepDecay(0.01, step_size=8)),
            "LookAhead": ol.optimizer.LookAhead(ol.optimizer.SGD(1e-3), k=3),
        }
        race = ol.compare(found, optimizers, steps=25, seed=3)
        for trace in race.traces.values():
            fork = trace.fork(14)
            assert ol.trace.first_difference(fork, trace) is None
            assert len(fork) == 25
            other = trace.fork(14, learning_rate=1e-4)
            difference = ol.trace.first_difference(other, trace)
            assert (difference.step, difference.term) == (15, "learning_rate")
            assert np.array_equal(other.loss[:15], trace.loss[:15])

    def test_other_settings_are_those_of_a_run_that_had_them(self):
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        trace = recorded(ol.optimizer.Adam(1e-3, parameters=[w]), w)
        fork = trace.fork(12, loss=rosenbrock, learning_rate=0.5, beta1=0.5, steps=30)
        v = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        one = ol.optimizer.Adam(1e-3, parameters=[v])
        with ol.record(one) as first:
            for _ in range(12):
                one.clear_grad()
                rosenbrock({"w": v}).backward()
                one.step()
        two = ol.optimizer.Adam(0.5, beta1=0.5, parameters=[v])
        two.set_state_dict(one.state_dict())
        two.set_lr(0.5)
        two.clear_grad()
        second = recorded(two, v, 18)
        assert len(fork) == 30
        values = np.concatenate([first.parameters["w"], second.parameters["w"][1:]])
        assert np.array_equal(fork.parameters["w"], values)
        for slot in ("moment1", "moment2"):
            both = np.concatenate([first[slot]["w"], second[slot]["w"]])
            assert np.array_equal(fork[slot]["w"], both)
        assert fork.learning_rate.tolist() == [1e-3] * 12 + [0.5] * 18
        assert fork.name == "Adam, from step 12: learning_rate=0.5, beta1=0.5"
        assert fork.settings["beta1"] == 0.5

    def test_of_a_network_with_batches_from_a_snapshot(self):
        ol.seed(0)
        model = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.Tanh(), ol.nn.Linear(8, 3))
        x, labels = random(60, 4, dtype="float32"), np.arange(60) % 3
        optimizer = ol.optimizer.Adam(
            0.01, parameters=model.parameters(), grad_clip=ol.nn.ClipGradByGlobalNorm(0.1)
        )

        def loss(w, t):
            batch = slice(10 * (t % 6), 10 * (t % 6) + 10)
            return F.cross_entropy(ol.nn.functional_call(model, w, x[batch]), labels[batch])

        probes = [ol.probes.Snapshots(every=5), ol.probes.Norms()]
        with ol.record(optimizer, probes=probes) as trace:
            for t in range(18):
                optimizer.clear_grad()
                loss({}, t).backward()
                optimizer.step()
        fork = trace.fork(12, loss=loss)
        assert np.array_equal(fork.loss, trace.loss)
        for kind, norms in trace.norms.items():
            for name, array in norms.items():
                assert np.array_equal(fork.norms[kind][name], array), (kind, name)
        other = trace.fork(12, loss=loss, learning_rate=0.5)
        assert np.array_equal(other.loss[:13], trace.loss[:13])
        assert (other.loss[13:] != trace.loss[13:]).all()
        with pytest.raises(ValueError, match="the first snapshot is of step 5"):
            trace.fork(3, loss=loss)

    def test_of_a_trace_that_was_loaded(self, tmp_path):
        pytest.importorskip("zarr")
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        optimizer = make("Adam", w)
        trace = recorded(optimizer, w)
        loaded = ol.load_trace(trace.save(tmp_path / "run.zarr"))
        with pytest.raises(TypeError, match=r"give it as optimizer=\.\.\., with its parameters\.$"):
            loaded.fork(7, loss=rosenbrock)
        fresh = make("Adam", ol.Parameter(np.array([5.0, 5.0]), name="w"))
        same_run(loaded.fork(7, loss=rosenbrock, optimizer=fresh), trace)
        changed = loaded.fork(7, loss=rosenbrock, optimizer=fresh, learning_rate=0.5)
        same_run(changed, trace.fork(7, loss=rosenbrock, learning_rate=0.5))
        assert not np.array_equal(changed.loss, trace.loss)

    def test_groups_and_settings_of_parameters_stay(self):
        a = ol.Parameter(np.array([1.0, -2.0]), name="w", learning_rate=0.5)
        b = ol.Parameter(np.array([3.0]), name="b", regularizer=ol.regularizer.L2Decay(0.1))
        optimizer = ol.optimizer.Momentum(
            0.01,
            parameters=[
                {"params": [a], "learning_rate": 0.5, "momentum": 0.3},
                {"params": [b], "weight_decay": 0.2},
            ],
            grad_clip=ol.nn.ClipGradByNorm(1.0),
        )

        def loss(p):
            return (p["w"] ** 2).sum() + (p["b"] ** 4).sum()

        with ol.record(optimizer) as trace:
            for _ in range(10):
                optimizer.clear_grad()
                loss({"w": a, "b": b}).backward()
                optimizer.step()
        assert ol.trace.first_difference(trace.fork(4, loss=loss), trace) is None

    def test_what_it_needs(self):
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        optimizer = ol.optimizer.SGD(1e-3, parameters=[w])
        trace = recorded(optimizer, w)
        with pytest.raises(TypeError, match="fork needs the loss of the run"):
            trace.fork(3)
        with pytest.raises(ValueError, match="between 0 and 20, the steps of the run; got 21"):
            trace.fork(21, loss=rosenbrock)
        with pytest.raises(TypeError, match="SGD has no setting 'beta1' that a fork can change"):
            trace.fork(3, loss=rosenbrock, beta1=0.5)
        with pytest.raises(TypeError, match=r"no setting 'lr' .*; it has learning_rate, "):
            trace.fork(3, lr=0.5)  # the loss is missing, too: the wrong name comes first
        with pytest.raises(ValueError, match="needs the values of the parameters, or snapshots"):
            recorded(optimizer, w, probes="light").fork(3, loss=rosenbrock)
        with pytest.raises(ValueError, match="record with every=1"):
            recorded(optimizer, w, every=2).fork(3, loss=rosenbrock)

    def test_values_that_were_written_between_steps_are_noticed(self):
        w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
        optimizer = ol.optimizer.SGD(1e-3, parameters=[w])
        with ol.record(optimizer) as trace:
            for _ in range(4):
                optimizer.clear_grad()
                rosenbrock({"w": w}).backward()
                optimizer.step()
                w.set_value([0.5, 0.5])
        with pytest.raises(RuntimeError, match="do not lead to the recorded values of w at step 3"):
            trace.fork(3, loss=rosenbrock)


def replayed_update(name, start, gradients, rate):
    """Return the last update of a run of these gradients, by steps in place."""
    w = ol.Parameter(start.copy(), name="w")
    optimizer = make(name, w)
    optimizer.set_lr(rate)
    for g in gradients:
        before = w.numpy()
        w.grad = g.copy()
        optimizer.step()
    return w.numpy() - before


ELEMENTWISE = [
    n for n, f in EACH.items() if f(parameters=[ol.Parameter([1.0])]).kind == "elementwise"
]
COUPLED = [n for n in EACH if n not in ELEMENTWISE]


class TestInfluence:
    def run(self, name, steps=6, shape=(2, 2)):
        w = ol.Parameter(random(*shape), name="w")
        optimizer = make(name, w)
        optimizer.set_lr(0.05)
        with ol.record(optimizer) as trace:
            for step in range(steps):
                give(w, 0.3 + random(*shape, seed=step) ** 2)
                optimizer.step()
                optimizer.clear_grad()
        return trace

    @pytest.mark.parametrize("step", [1, 2, 6])
    @pytest.mark.parametrize("name", [*ELEMENTWISE, "LookAhead"])
    def test_against_finite_differences(self, name, step):
        trace = self.run(name)
        found = trace.influence(step)["w"]
        assert found.shape == (step, 2, 2)
        start, gradients = trace.parameters["w"][0], trace.gradients["w"][:step]
        wanted, h = np.zeros_like(found), 1e-6
        for j in range(step):
            up, down = gradients.copy(), gradients.copy()
            up[j] += h
            down[j] -= h
            wanted[j] = (
                replayed_update(name, start, up, 0.05) - replayed_update(name, start, down, 0.05)
            ) / (2 * h)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)

    def test_of_a_trace_that_was_loaded(self, tmp_path):
        pytest.importorskip("zarr")
        trace = self.run("Adam")
        loaded = ol.load_trace(trace.save(tmp_path / "run.zarr"))
        with pytest.raises(TypeError, match="or a template of its settings"):
            loaded.influence(4)
        template = EACH["Adam"](parameters=None)
        found = loaded.influence(4, optimizer=template)["w"]
        assert np.array_equal(found, trace.influence(4)["w"])

    def test_a_rule_that_evaluates_the_loss_itself_is_refused(self):
        w = ol.Parameter(np.array([-1.0, 2.0]), name="w")
        optimizer = ol.optimizer.LBFGS(parameters=[w])

        def closure():
            optimizer.clear_grad()
            loss = rosenbrock({"w": w})
            loss.backward()
            return loss

        with ol.record(optimizer) as trace:
            optimizer.step(closure)
        with pytest.raises(TypeError, match="LBFGS evaluates the loss itself"):
            trace.influence(1)

    @pytest.mark.parametrize("name", COUPLED)
    def test_along_a_direction(self, name):
        trace, step = self.run(name), 4
        with pytest.raises(TypeError, match="Give a direction"):
            trace.influence(step)
        direction = random(2, 2, seed=9)
        found = trace.influence(step, direction)["w"]
        start, gradients = trace.parameters["w"][0], trace.gradients["w"][:step]
        h = 1e-6
        for j in range(step):
            for i in np.ndindex(2, 2):
                up, down = gradients.copy(), gradients.copy()
                up[j][i] += h
                down[j][i] -= h
                wanted = np.sum(direction * (
                    replayed_update(name, start, up, 0.05)
                    - replayed_update(name, start, down, 0.05)
                )) / (2 * h)  # fmt: skip
                assert found[j][i] == pytest.approx(wanted, rel=1e-5, abs=1e-6), (j, i)

    def test_the_kernel_of_momentum(self):
        trace = self.run("Momentum")
        wanted = -0.05 * 0.8 ** np.arange(5, -1, -1.0)
        np.testing.assert_allclose(trace.influence(6)["w"][:, 0, 0], wanted, rtol=1e-12)

    def test_several_parameters_and_steps_without_gradient(self):
        a, b = ol.Parameter(random(2), name="a"), ol.Parameter(random(3), name="b")
        optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[a, b])
        with ol.record(optimizer) as trace:
            for step in range(3):
                give(a, random(2, seed=step))
                if step != 1:
                    give(b, random(3, seed=step))
                optimizer.step()
                optimizer.clear_grad(set_to_zero=False)
        found = trace.influence(3)
        np.testing.assert_allclose(found["a"][:, 0], [-0.025, -0.05, -0.1])
        np.testing.assert_allclose(found["b"][:, 0], [-0.05, 0.0, -0.1])

    def test_a_clip_by_norm_couples(self):
        w = ol.Parameter(random(2), name="w")
        optimizer = ol.optimizer.SGD(0.1, parameters=[w], grad_clip=ol.nn.ClipGradByGlobalNorm(0.1))
        with ol.record(optimizer) as trace:
            give(w, [1.0, 2.0])
            optimizer.step()
        with pytest.raises(TypeError, match="ClipGradByGlobalNorm takes a norm"):
            trace.influence(1)
        assert trace.influence(1, [1.0, 0.0])["w"].shape == (1, 2)

    def test_what_it_needs(self):
        trace = self.run("Adam")
        with pytest.raises(ValueError, match="between 1 and 6, the steps of the run; got 7"):
            trace.influence(7)
        w = ol.Parameter(random(2), name="w")
        light = recorded(make("Adam", w), w, probes="light")
        with pytest.raises(ValueError, match="needs the gradients of every step up to 3"):
            light.influence(3)
        with pytest.raises(ValueError, match="has shape"):
            trace.influence(3, np.zeros(7))


class TestHypergradient:
    @pytest.mark.parametrize(
        "name", ["SGD", "Momentum", "Nesterov", "Adam", "RMSProp", "Adagrad", "NAdam", "Lamb"]
    )
    def test_through_fifty_steps(self, name):
        scales = np.array([1.0, 3.0, 0.3])

        def loss(w, t):
            return np.sum(scales * (w - 1) ** 2) + 0.1 * np.sum(np.cos(w + t))

        start = np.array([0.5, -0.7, 2.0])
        template = EACH[name]()
        rate = 0.01
        optimizer = type(template)(**{**template.settings, "learning_rate": rate})
        found = ol.hypergradient(optimizer, loss, start, 50)

        def final(**changed):
            one = type(template)(**{**optimizer.settings, **changed})
            w, state = start, one.functional_init(start)
            for t in range(50):
                g = ol.grad(lambda w, t=t: loss(w, t))(w)
                w, state = one.functional_step(w, g, state)
            return loss(w, 50)

        assert found.loss == pytest.approx(final(), rel=1e-12)
        assert set(found.total) >= {"learning_rate"}
        for hyper, total in found.total.items():
            value = optimizer.settings[hyper]
            h = 1e-6 * max(abs(value), 1e-3)
            wanted = (final(**{hyper: value + h}) - final(**{hyper: value - h})) / (2 * h)
            assert total == pytest.approx(wanted, rel=1e-5, abs=1e-6 * abs(found.loss)), hyper
            assert found.per_step[hyper].shape == (50,)

    def test_schedules_and_another_final_loss(self):
        schedule = ol.optimizer.lr.ExponentialDecay(0.1, gamma=0.5)
        found = ol.hypergradient(
            ol.optimizer.SGD(schedule), lambda p: np.sum(p["w"] ** 2), {"w": np.array([1.0])}, 2,
            final=lambda p: np.sum(p["w"]),
        )  # fmt: skip
        # w2 = (1 - 2 r1)(1 - 2 r2) with the rates 0.1 and 0.05
        np.testing.assert_allclose(found.per_step["learning_rate"], [-1.8, -1.6])
        assert found.loss == pytest.approx(0.72)
        assert schedule() == 0.1

    def test_wrong_arguments(self):
        sgd, loss = ol.optimizer.SGD(0.1), lambda w: np.sum(w**2)
        with pytest.raises(TypeError, match="takes an optimizer; got int"):
            ol.hypergradient(3, loss, np.ones(2), 3)
        with pytest.raises(ValueError, match="steps must be a whole number"):
            ol.hypergradient(sgd, loss, np.ones(2), 0)
        with pytest.raises(ValueError, match=r"no hyper-parameter 'beta1'.*it has learning_rate"):
            ol.hypergradient(sgd, loss, np.ones(2), 3, hyperparameters=["beta1"])


class TestFirstDifference:
    def run(self, steps=12, change=None, at=6, **options):
        a, b = ol.Parameter(random(2, 2), name="a"), ol.Parameter(random(3), name="b")
        optimizer = ol.optimizer.Adam(0.01, parameters=[a, b])
        with ol.record(optimizer, **options) as trace:
            for step in range(1, steps + 1):
                optimizer.clear_grad()
                loss = (a**2).sum() + (b**4).sum()
                loss.backward()
                if step == at and change == "gradient":
                    g = b.grad.numpy().copy()
                    g[1] += 1e-3
                    b.grad = g
                if step == at and change == "rate":
                    optimizer.set_lr(0.02)
                optimizer.step()
                if step == at and change == "parameter":
                    with ol.no_grad():
                        a.set_value(a.numpy() + 1e-3)
        return trace

    @pytest.mark.parametrize(
        ("change", "options", "expected"),
        [
            ("gradient", {}, (6, "gradient", "b", (1,))),
            ("rate", {}, (6, "learning_rate", "", ())),
            ("parameter", {}, (7, "loss", "", ())),
            ("gradient", {"every": 4}, (9, "loss", "", ())),
            ("gradient", {"probes": ["norms"]}, (6, "norm of gradient", "b", ())),
            ("gradient", {"probes": [ol.probes.Values(every=5)]}, (6, "gradient", "b", (1,))),
        ],
        ids=str,
    )
    def test_where(self, change, options, expected):
        found = ol.trace.first_difference(self.run(**options), self.run(change=change, **options))
        assert found[:4] == expected
        assert f"step {expected[0]}: {expected[1]}" in str(found)

    def test_how_much(self):
        first, second = self.run(), self.run(change="gradient")
        found = ol.trace.first_difference(first, second)
        assert found.size == pytest.approx(1e-3)
        assert (found.a, found.b) == (first.gradients["b"][5, 1], second.gradients["b"][5, 1])
        largest = max(np.abs(first.gradients["b"][5]).max(), np.abs(second.gradients["b"][5]).max())
        assert found.relative == pytest.approx(found.size / largest)
        later = ol.trace.first_difference(first, second, rtol=found.relative * 1.01)
        assert later is None or later.step > 6 or later.term != "gradient"
        assert ol.trace.first_difference(first, second, atol=10.0, rtol=1.0) is None

    def test_starts_and_lengths(self):
        short, long = self.run(5), self.run(9)
        assert ol.trace.first_difference(short, long) is None
        a, b = ol.Parameter([1.0], name="w"), ol.Parameter([2.0], name="w")
        one, two = (recorded(ol.optimizer.SGD(0.1, parameters=[p]), p, 2,
                             lambda q: (q["w"] ** 2).sum()) for p in (a, b))  # fmt: skip
        found = ol.trace.first_difference(one, two)
        assert (found.step, found.term, found.a, found.b) == (0, "parameter", 1.0, 2.0)
        assert "first difference at the start" in str(found)

    def test_nan_equals_nan_and_nothing_else(self):
        def run(values):
            trace = ol.trace.Trace("x")
            for value in values:
                trace.log("x", value)
            return trace

        assert ol.trace.first_difference(run([np.nan]), run([np.nan])) is None
        found = ol.trace.first_difference(run([np.nan]), run([1.0]))
        assert found.size == np.inf

    def test_wrong_arguments(self):
        with pytest.raises(ValueError, match="at least 0"):
            ol.trace.first_difference(self.run(2), self.run(2), rtol=-1)
        p = ol.Parameter(random(7), name="a")
        other = ol.optimizer.SGD(0.1, parameters=[p])
        with ol.record(other) as trace:
            other.minimize((p**2).sum())
        with pytest.raises(ValueError, match=r"a has shape \(2, 2\) in Adam and \(7,\) in SGD"):
            ol.trace.first_difference(self.run(2), trace)
        with pytest.raises(ValueError, match="nothing in common"):
            ol.trace.first_difference(ol.trace.Trace("x"), ol.trace.Trace("y"))


def test_a_rule_of_ones_own_forks():
    w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
    trace = recorded(WithNorms(1e-3, parameters=[w]), w)
    assert ol.trace.first_difference(trace.fork(5, loss=rosenbrock), trace) is None


def test_influence_is_that_on_the_last_step_unless_another_is_given():
    w = ol.Parameter([3.0], name="w")
    optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[w])
    with ol.record(optimizer) as trace:
        for _ in range(4):
            (w * w).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
    assert trace.influence()["w"].tolist() == trace.influence(step=4)["w"].tolist()
    assert ol.viz.influence(trace) == ol.viz.influence(trace, 4)
    for ask in (ol.trace.Trace("empty").influence, lambda: ol.viz.influence(ol.trace.Trace("e"))):
        with pytest.raises(ValueError, match="no step yet"):
            ask()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ol.record(), r"^record\(optimizer, probes, .*\) needs optimizer\.$"),
        (lambda: ol.load_trace(), r"^load_trace\(path\) needs path\.$"),
        (lambda: ol.trace.Trace("t").mark(), r"^Trace\.mark\(text\) needs text\.$"),
        (lambda: ol.trace.Trace("t").fork(), r"^Trace.fork\(.*\) needs step\.$"),
        (lambda: ol.probes.Metric(), r"^Metric\(name, f\) needs name and f\.$"),
        (lambda: ol.trace.first_difference(1), r"^first_difference\(.*\) needs b\.$"),
    ],
)
def test_what_is_missing_is_named(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_a_fork_of_a_run_whose_values_are_recorded_in_part_begins_with_a_snapshot():
    small, large = ol.Parameter([1.0, 2.0], name="b"), ol.Parameter(np.ones(30), name="w")
    optimizer = ol.optimizer.Adam(0.1, parameters=[small, large])

    def loss(p):
        return ((p["b"] - 3) ** 2).sum() + (p["w"] ** 2).sum()

    probes = [ol.probes.Values(elements=10), ol.probes.Snapshots(every=4)]
    with ol.record(optimizer, probes=probes) as trace:
        for _ in range(12):
            loss({"b": small, "w": large}).backward()
            optimizer.step()
            optimizer.clear_grad()
    same = trace.fork(step=6, loss=loss)
    assert list(same.parameters) == ["b"]
    assert same.parameters["b"].tobytes() == trace.parameters["b"].tobytes()
    assert same.loss.tolist() == trace.loss.tolist()
    faster = trace.fork(step=6, loss=loss, learning_rate=0.5)
    assert np.array_equal(faster.parameters["b"][:7], trace.parameters["b"][:7])
    assert not np.array_equal(faster.parameters["b"][7:], trace.parameters["b"][7:])
    with ol.record(optimizer, probes=probes[:1]) as trace:
        loss({"b": small, "w": large}).backward()
        optimizer.step()
    with pytest.raises(ValueError, match="those of w were not recorded"):
        trace.fork(step=1, loss=loss)
