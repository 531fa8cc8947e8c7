"""Recording changes no bit of a run, and every array of the trace is exact."""

from __future__ import annotations

import contextlib
import gc
import weakref

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from tests.optimizer.helpers import EACH, WithNorms, give, random

every_rule = pytest.mark.parametrize("make", [*EACH.values(), WithNorms], ids=[*EACH, "WithNorms"])
recordings = pytest.mark.parametrize(
    "options", [{}, {"every": 3}, {"probes": "light"}, {"probes": ["values", "norms"]}], ids=str
)


def maybe(recorded, optimizer, **options):
    return ol.record(optimizer, **options) if recorded else contextlib.nullcontext()


def surface_run(make, recorded, **options):
    p = ol.Parameter(np.array([-1.2, 1.0]))
    optimizer = make(parameters=[p])
    optimizer.set_lr(1e-3)
    found = []
    with maybe(recorded, optimizer, **options):
        for _ in range(40):
            x, y = p
            loss = (1 - x) ** 2 + 100 * (y - x**2) ** 2
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            found += [loss.item(), *p.numpy()]
    return found


def network_run(make, recorded, **options):
    ol.seed(0)
    model = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.Tanh(), ol.nn.Linear(8, 3))
    optimizer = make(
        parameters=model.parameters(),
        weight_decay=1e-3,
        grad_clip=ol.nn.ClipGradByGlobalNorm(0.5),
    )
    x, labels = random(16, 4, dtype="float32"), np.arange(16) % 3
    found = []
    with maybe(recorded, optimizer, **options):
        for _ in range(15):
            loss = ol.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            found.append(loss.item())
    return found + [float(v) for p in model.parameters() for v in p.numpy().ravel()]


def skipping_run(make, recorded, **options):
    ps = [ol.Parameter(random(2, seed=i)) for i in range(3)]
    optimizer = make(parameters=ps)
    with maybe(recorded, optimizer, **options):
        for step in range(8):
            for i, p in enumerate(ps):
                if (step + i) % 3 and step != 4:
                    give(p, random(2, seed=10 * step + i))
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
    return [float(v) for p in ps for v in p.numpy()]


@every_rule
@recordings
@pytest.mark.parametrize("run", [surface_run, network_run, skipping_run])
def test_recorded_and_unrecorded_runs_are_equal_to_the_bit(run, make, options):
    assert run(make, True, **options) == run(make, False)


def hand_run(make, steps):
    """Return the content of a trace, collected from the public interface alone."""
    p = ol.Parameter(random(2, 2), name="w")
    optimizer = make(parameters=[p])
    kept = {"start": p.numpy(), "parameter": [], "gradient": [], "loss": []}
    for step in range(steps):
        loss = (p * p * random(2, 2, seed=step)).sum()
        loss.backward()
        kept["loss"].append(loss.item())
        kept["gradient"].append(p.grad.numpy().copy())
        optimizer.step()
        kept["parameter"].append(p.numpy())
        optimizer.clear_grad()
    return kept


def recorded_run(make, steps, **options):
    p = ol.Parameter(random(2, 2), name="w")
    optimizer = make(parameters=[p])
    with ol.record(optimizer, **options) as trace:
        for step in range(steps):
            (p * p * random(2, 2, seed=step)).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
    return trace


@every_rule
def test_values_gradients_and_losses_are_those_of_a_run_by_hand(make):
    kept, trace = hand_run(make, 7), recorded_run(make, 7)
    assert len(trace) == 7
    assert trace.step.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert np.array_equal(trace.parameters["w"], [kept["start"], *kept["parameter"]])
    assert np.array_equal(trace.gradients["w"], kept["gradient"])
    assert trace.loss.tolist() == kept["loss"]
    assert trace.learning_rate.tolist() == [make().get_lr()] * 7
    assert np.all(np.diff(trace.seconds) >= 0)
    assert trace.seconds[0] >= 0


@every_rule
def test_update_is_new_minus_old_up_to_rounding(make):
    trace = recorded_run(make, 7)
    np.testing.assert_allclose(
        trace.terms["update"]["w"], np.diff(trace.parameters["w"], axis=0), rtol=1e-9, atol=1e-14
    )


def test_slots_of_momentum_and_adam_follow_their_formulas():
    trace = recorded_run(EACH["Momentum"], 5)
    v = np.zeros((2, 2))
    for g, slot in zip(trace.gradients["w"], trace.slots["velocity"]["w"], strict=True):
        v = 0.8 * v + g
        np.testing.assert_allclose(slot, v, rtol=1e-12)
    trace = recorded_run(EACH["Adam"], 5)
    m, s = np.zeros((2, 2)), np.zeros((2, 2))
    for i, g in enumerate(trace.gradients["w"]):
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
        np.testing.assert_allclose(trace.slots["moment1"]["w"][i], m, rtol=1e-12)
        np.testing.assert_allclose(trace.slots["moment2"]["w"][i], s, rtol=1e-12)
        np.testing.assert_allclose(
            trace.terms["root"]["w"][i], np.sqrt(s / (1 - 0.999 ** (i + 1))), rtol=1e-12
        )
    assert set(trace.slots) == {"moment1", "moment2"}


def test_gradients_are_raw_and_what_clip_and_decay_made_of_them_is_a_term():
    p = ol.Parameter(np.array([10.0, -10.0]), name="w")
    optimizer = ol.optimizer.SGD(
        0.1, parameters=[p], weight_decay=0.5, grad_clip=ol.nn.ClipGradByValue(1.0)
    )
    with ol.record(optimizer) as trace:
        give(p, [3.0, 0.25])
        optimizer.step()
    assert trace.gradients["w"].tolist() == [[3.0, 0.25]]
    assert trace.terms["used_gradient"]["w"].tolist() == [[1.0 + 5.0, 0.25 - 5.0]]


def test_a_recording_of_one_optimizer_leaves_others_to_their_short_ways(monkeypatch):
    from optlab.optimizer.step import step as steps

    general, of_sizes = steps.apply_rule, []

    def counted(optimizer, p, *rest):
        of_sizes.append(p.size)
        return general(optimizer, p, *rest)

    monkeypatch.setattr(steps, "apply_rule", counted)
    large = ol.Parameter(np.zeros(1 << 14), name="large")
    other = ol.optimizer.Adam(0.1, parameters=[large])
    w = ol.Parameter([1.0, 2.0], name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])

    def steps_of_both():
        for _ in range(3):
            give(large, np.ones(1 << 14))
            other.step()
            (w * w).sum().backward()
            optimizer.step()
            optimizer.clear_grad()

    with ol.record(optimizer, probes="toy") as trace:
        steps_of_both()
    assert of_sizes == [2] * 3  # the other one's are fused
    assert len(trace) == 3
    with ol.record(other, probes=["norms"]) as trace:  # whose terms are computed
        steps_of_both()
    assert of_sizes.count(1 << 14) == 3
    assert trace.norms["update"]["large"].shape == (3,)


def test_without_clip_and_decay_there_is_no_used_gradient():
    assert "used_gradient" not in recorded_run(EACH["SGD"], 2).terms


def test_loss_of_several_backwards_is_their_sum_and_of_none_nan():
    p, other = ol.Parameter([2.0]), ol.Parameter([5.0])
    optimizer = ol.optimizer.SGD(0.0, parameters=[p])
    with ol.record(optimizer) as trace:
        (3 * p).sum().backward()
        (p * p).sum().backward()
        (other * 7).sum().backward()  # not a loss of this optimizer
        optimizer.step()
        optimizer.step()
        (p * ol.ones([2])).backward()  # a non-scalar, which starts from ones: the loss is the sum
        optimizer.step()
    np.testing.assert_array_equal(trace.loss, [10.0, np.nan, 4.0])


def test_the_gradient_of_several_backwards_is_their_sum():
    p = ol.Parameter([2.0], name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[p])
    with ol.record(optimizer) as trace:
        (3 * p).sum().backward()
        (p * p).sum().backward()
        optimizer.step()
    assert trace.gradients["w"].tolist() == [[7.0]]


def test_minimize_is_recorded_as_a_step():
    p = ol.Parameter([2.0], name="w")
    optimizer = ol.optimizer.SGD(0.5, parameters=[p])
    with ol.record(optimizer) as trace:
        optimizer.minimize((p * p).sum())
    assert trace.loss.tolist() == [4.0]
    assert trace.parameters["w"].tolist() == [[2.0], [0.0]]


def test_rates_that_change_are_recorded():
    p = ol.Parameter([2.0])
    optimizer = ol.optimizer.SGD(0.5, parameters=[p])
    with ol.record(optimizer) as trace:
        for rate in (0.5, 0.25, 0.125):
            optimizer.set_lr(rate)
            give(p, [1.0])
            optimizer.step()
    assert trace.learning_rate.tolist() == [0.5, 0.25, 0.125]


def test_the_rate_is_that_of_the_first_group_whoever_steps():
    p, q = ol.Parameter([2.0], learning_rate=0.1), ol.Parameter([2.0])
    optimizer = ol.optimizer.SGD(
        1.0,
        parameters=[
            {"params": [p], "learning_rate": 0.5}, {"params": [q], "learning_rate": 0.25},
        ],
    )  # fmt: skip
    with ol.record(optimizer) as trace:
        for who in ([p, q], [q], [p], []):
            for parameter in who:
                give(parameter, [1.0])
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
    assert trace.learning_rate.tolist() == [0.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("every", [1, 2, 3, 7, 100])
def test_every_k_th_step(every):
    full, some = recorded_run(EACH["Adam"], 10), recorded_run(EACH["Adam"], 10, every=every)
    chosen = list(range(0, 10, every))
    assert some.step.tolist() == [1 + i for i in chosen]
    assert np.array_equal(some.loss, full.loss[chosen])
    assert np.array_equal(some.gradients["w"], full.gradients["w"][chosen])
    for name in ("moment1", "moment2"):
        assert np.array_equal(some.slots[name]["w"], full.slots[name]["w"][chosen])
    assert np.array_equal(some.terms["update"]["w"], full.terms["update"]["w"][chosen])
    assert np.array_equal(some.parameters["w"], full.parameters["w"][[0, *(1 + i for i in chosen)]])


def test_runs_longer_than_any_buffer():
    full = recorded_run(EACH["SGD"], 1300)
    assert full.step.tolist() == list(range(1, 1301))
    assert full.parameters["w"].shape == (1301, 2, 2)
    np.testing.assert_allclose(
        np.diff(full.parameters["w"], axis=0), -0.1 * full.gradients["w"], rtol=1e-6, atol=1e-12
    )


def test_arrays_of_a_trace_do_not_change_when_the_run_goes_on():
    p, q = ol.Parameter(random(2), name="p"), ol.Parameter(random(3, seed=1), name="q")
    optimizer = ol.optimizer.Adam(0.1, parameters=[p, q])

    def steps(count):
        for step in range(count):
            give(p, random(2, seed=step))
            if step != 1:
                give(q, random(3, seed=step))
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)

    with ol.record(optimizer) as trace:
        steps(3)
        early = trace.parameters["q"], trace.gradients["q"], trace.slots["moment1"]["q"]
        copies = [a.copy() for a in early]
        steps(4)
    steps(2)
    p.set_value([9.0, 9.0])
    late = trace.parameters["q"], trace.gradients["q"], trace.slots["moment1"]["q"]
    for then, copy, now in zip(early, copies, late, strict=True):
        assert np.array_equal(then, copy, equal_nan=True)
        assert np.array_equal(now[: len(copy)], copy, equal_nan=True)
        assert len(now) == len(copy) + 4


@pytest.mark.parametrize("how", ["grad", "backward"])
def test_a_gradient_computed_by_hand_in_one_array_is_kept_as_it_was(how):
    p, buffer = ol.Parameter(np.zeros(2), name="w"), np.zeros(2)
    optimizer = ol.optimizer.SGD(0.1, parameters=[p])
    with ol.record(optimizer) as trace:
        for step in range(3):
            buffer[...] = step + 1
            if how == "grad":
                p.grad = buffer
            else:
                (p + 1.0).backward(buffer)
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
    assert trace.gradients["w"].tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


def test_two_optimizers_are_recorded_apart():
    p, q = ol.Parameter([1.0], name="p"), ol.Parameter([1.0], name="q")
    one, other = ol.optimizer.SGD(0.5, parameters=[p]), ol.optimizer.SGD(0.25, parameters=[q])
    with ol.record(one) as first, ol.record(other) as second:
        one.minimize((2 * p).sum())
        other.minimize((3 * q).sum())
        other.minimize((3 * q).sum())
    assert (len(first), len(second)) == (1, 2)
    assert first.loss.tolist() == [2.0]
    assert second.loss[0] == 3.0
    assert list(first.parameters) == ["p"]


def test_a_trace_that_nobody_holds_is_gone_at_once():
    gc.disable()
    try:
        race = ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=3)
        trace = weakref.ref(race["Adam"])
        assert len(trace()) == 3
        del race
        assert trace() is None
    finally:
        gc.enable()


class TestNothingListens:
    def check(self):
        for event in (events.step_taken, events.backward_finished, events.operation_recorded):
            assert event.listeners == ()

    def test_after_the_block(self):
        recorded_run(EACH["SGD"], 2)
        self.check()

    def test_after_an_exception_whose_text_is_kept(self):
        p = ol.Parameter([1.0], name="w")
        optimizer = ol.optimizer.SGD(0.1, parameters=[p])
        kept = []

        def run():
            with ol.record(optimizer) as trace:
                kept.append(trace)
                for _ in range(3):
                    optimizer.minimize((p * p).sum())
                raise RuntimeError("the kettle boils")

        with pytest.raises(RuntimeError, match="the kettle boils"):
            run()
        self.check()
        trace = kept[0]
        assert trace.stopped == "RuntimeError in step 4: the kettle boils"
        assert len(trace) == 3
        assert trace.parameters["w"].shape == (4, 1)
        assert "the kettle boils" in repr(trace)

    def test_steps_after_the_block_are_not_recorded(self):
        p = ol.Parameter([1.0])
        optimizer = ol.optimizer.SGD(0.1, parameters=[p])
        with ol.record(optimizer) as trace:
            optimizer.minimize((p * p).sum())
        optimizer.minimize((p * p).sum())
        assert len(trace) == 1
        assert trace.stopped is None


class TestBadInput:
    def test_a_template_has_nothing_to_record(self):
        with pytest.raises(TypeError, match=r"record takes an optimizer that has parameters.*Adam"):
            ol.record(ol.optimizer.Adam(0.1))

    @pytest.mark.parametrize("wrong", [None, "Adam", ol.optimizer.Adam, ol.Parameter([1.0])])
    def test_what_is_no_optimizer(self, wrong):
        with pytest.raises(TypeError, match="record takes an optimizer that has parameters"):
            ol.record(wrong)

    @pytest.mark.parametrize("every", [0, -1, 1.5, "2", None])
    def test_every(self, every):
        optimizer = ol.optimizer.SGD(0.1, parameters=[ol.Parameter([1.0])])
        with pytest.raises((ValueError, TypeError), match="every must be"):
            ol.record(optimizer, every=every)

    @pytest.mark.parametrize("probes", ["heavy", [], ["norms", "bytes"], "values", ["light"], 5])
    def test_probes(self, probes):
        optimizer = ol.optimizer.SGD(0.1, parameters=[ol.Parameter([1.0])])
        with pytest.raises(
            (ValueError, TypeError), match="probes must be 'toy', 'light', 'full' or a list"
        ):
            ol.record(optimizer, probes=probes)
