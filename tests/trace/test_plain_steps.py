"""Steps of which loss, rate and time alone are recorded have what others have."""

import numpy as np
import pytest

import optlab as ol
from optlab.trace.columns import Column
from optlab.trace.recordings.parts import _side_by_side

#: Observed so late that all steps before it are plain.
NEVER = [ol.probes.Norms(terms=False, steps=[10**6])]


def network(seed=0, **settings):
    """Return an optimizer, and a step that returns its loss."""
    ol.seed(seed)
    model = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.ReLU(), ol.nn.Linear(8, 3))
    rng = np.random.default_rng(0)
    x = ol.to_tensor(rng.standard_normal((12, 4)).astype(np.float32))
    y = ol.to_tensor(np.arange(12) % 3)
    settings = {"learning_rate": 0.01} | settings
    optimizer = ol.optimizer.Adam(parameters=model.parameters(), **settings)

    def step(x, y):
        loss = ol.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return optimizer, step, x, y


def steps_of(captured, **settings):
    """Return an optimizer, and a function that takes a step and returns the loss as a float."""
    optimizer, step, x, y = network(**settings)
    run = ol.capture(step) if captured else step
    return optimizer, lambda: run(x, y).item()


@pytest.mark.parametrize("captured", [False, True])
def test_losses_rates_and_marks_of_plain_steps(captured):
    optimizer, step = steps_of(captured)
    expected = [step() for _ in range(160)]  # until captured steps are bound to their arrays
    with ol.record(optimizer, probes=NEVER) as trace:
        expected = [step() for _ in range(7)]
        trace.mark("seventh")
        assert len(trace) == 7
        expected += [step() for _ in range(5)]
        optimizer.set_lr(0.002)
        trace.log("lowered", 1.0)
        expected += [step() for _ in range(600)]  # more than wait for the columns
    assert trace.loss.tolist() == expected
    assert trace.step.tolist() == list(range(1, 613))
    assert trace.learning_rate[[11, 12]].tolist() == [0.01, 0.002]
    assert trace.marks == [(7, "seventh")]
    assert trace.steps("lowered").tolist() == [12]
    assert (np.diff(trace.seconds, prepend=0.0) >= 0).all()


@pytest.mark.parametrize("captured", [False, True])
def test_light_recordings_have_the_norms_of_the_arrays(captured):
    optimizer, step = steps_of(captured)
    for _ in range(160):
        step()
    norms, changes = [], []
    with ol.record(optimizer, probes="light") as trace:
        for number in range(1, 36):
            before = [p.numpy().copy() for p in optimizer.parameters]
            step()
            if number % 10 == 1:
                after = [p.numpy() for p in optimizer.parameters]
                norms.append([np.linalg.norm(a.astype(float)) for a in after])
                pairs = zip(after, before, strict=True)
                changes.append([np.linalg.norm((a - b).astype(float)) for a, b in pairs])
    assert trace.steps("norms").tolist() == [1, 11, 21, 31]
    for k, name in enumerate(trace.norms["parameter"]):
        np.testing.assert_allclose(trace.norms["parameter"][name], [row[k] for row in norms])
        np.testing.assert_allclose(trace.norms["update"][name], [row[k] for row in changes])


def test_captured_and_eager_light_recordings_have_the_same_bits():
    traces = []
    for captured in (False, True):
        optimizer, step = steps_of(captured)
        for _ in range(160):
            step()
        with ol.record(optimizer, probes="light") as trace:
            for _ in range(25):
                step()
        traces.append(trace)
    assert np.array_equal(traces[0].loss, traces[1].loss)
    assert ol.trace.first_difference(*traces) is None


def test_several_backward_passes_and_none_between_plain_steps():
    w = ol.Parameter([2.0], name="w")
    optimizer = ol.optimizer.SGD(0.0, parameters=[w])
    with ol.record(optimizer, probes=NEVER) as trace:
        for passes in (1, 2, 0, 1, 1):
            for _ in range(passes):
                (w * w).sum().backward()
            optimizer.step()
    assert trace.loss[[0, 1, 3, 4]].tolist() == [4.0, 8.0, 4.0, 4.0]
    assert np.isnan(trace.loss[2])


def test_losses_of_others_are_not_those_of_plain_steps():
    w, other = ol.Parameter([2.0], name="w"), ol.Parameter([5.0], name="other")
    optimizer = ol.optimizer.SGD(0.0, parameters=[w])
    with ol.record(optimizer, probes=NEVER) as trace:
        for _ in range(4):
            (other * 7.0).sum().backward()
            (w * w).sum().backward()
            optimizer.step()
    assert trace.loss.tolist() == [4.0] * 4


def test_schedules_and_skipped_steps_of_plain_recordings():
    w = ol.Parameter([2.0], name="w")
    schedule = ol.optimizer.lr.ExponentialDecay(0.5, 0.5)
    optimizer = ol.optimizer.SGD(schedule, parameters=[w], not_finite="skip")
    with ol.record(optimizer, probes=NEVER) as trace:
        for factor in (1.0, 1.0, np.nan, 1.0):
            optimizer.clear_grad()
            (w * factor).sum().backward()
            optimizer.step()
            schedule.step()
    assert trace.step.tolist() == [1, 2, 3]
    assert trace.learning_rate.tolist() == [0.5, 0.25, 0.0625]


@pytest.mark.parametrize("every", [1, 3])
def test_plain_steps_reach_the_store_at_each_flush(every, tmp_path):
    pytest.importorskip("zarr")
    optimizer, step = steps_of(False)
    path = tmp_path / "run.zarr"
    with ol.record(optimizer, probes=NEVER, every=every, to=path, flush=10) as trace:
        losses = [step() for _ in range(25)]
        opened = ol.load_trace(path)
        assert opened.loss.tolist() == losses[:20:every]
        assert trace.loss.tolist() == losses[::every]
    assert ol.load_trace(path).loss.tolist() == losses[::every]
    assert ol.load_trace(path).step.tolist() == list(range(1, 26, every))


def test_an_error_names_the_step_behind_plain_ones():
    optimizer, step = steps_of(False)

    def run():
        with ol.record(optimizer, probes=NEVER) as trace:
            traces.append(trace)
            for _ in range(5):
                step()
            raise ZeroDivisionError("done")

    traces = []
    with pytest.raises(ZeroDivisionError):
        run()
    assert traces[0].stopped == "ZeroDivisionError in step 6: done"


def test_rows_of_one_shape_and_dtype_are_joined_as_numpy_would():
    for rows in (
        [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        [np.array([1], np.float32), np.array([2], np.float64)],
        [np.zeros((2, 2)), np.ones((2, 2))],
        [1.0, 2.0],
    ):
        column = Column()
        column.append_all(list(rows))
        assert column.array().dtype == np.array(rows).dtype
        assert np.array_equal(column.array(), np.array(rows))


def test_gradients_that_lie_side_by_side_are_one_array():
    whole = np.arange(6.0)
    assert _side_by_side([whole[:2], whole[2:].reshape(2, 2)]) is whole
    assert _side_by_side([whole[2:], whole[:2]]) is None  # in another order
    assert _side_by_side([whole[:2], whole[3:]]) is None  # with a gap
    assert _side_by_side([whole[:2], whole[2:5]]) is None  # not all of it
    assert _side_by_side([whole[:2], np.arange(4.0)]) is None
    assert _side_by_side([whole[::2], whole[1::2]]) is None
