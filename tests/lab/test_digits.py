"""The handwritten digits: the split, the order of batches, and that networks learn them."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol

optimizer = ol.optimizer


@pytest.fixture(scope="module")
def data():
    return ol.problems.digits_mlp().data()


def test_the_split_has_the_promised_sizes(data):
    assert data.train_x.shape == (1437, 64)
    assert data.test_x.shape == (360, 64)
    assert data.train_y.shape == (1437,)
    assert data.test_y.shape == (360,)


def test_images_are_float32_between_0_and_1(data):
    for x in (data.train_x, data.test_x):
        assert x.dtype == np.float32
        assert (x.min(), x.max()) == (0.0, 1.0)


def test_the_split_is_stratified(data):
    both = np.bincount(data.train_y) + np.bincount(data.test_y)
    np.testing.assert_allclose(np.bincount(data.test_y) / both, 360 / 1797, atol=0.01)


def test_no_image_is_on_both_sides_and_none_is_lost(data):
    from sklearn.datasets import load_digits

    ours = np.concatenate([data.train_x, data.test_x])
    labels = np.concatenate([data.train_y, data.test_y])
    x, y = load_digits(return_X_y=True)
    ours = sorted((label, *row) for label, row in zip(labels, ours * 16, strict=True))
    assert ours == sorted((label, *row) for label, row in zip(y, x, strict=True))


def test_the_split_never_changes(data):
    again = ol.problems.digits_mlp(hidden=8).data()
    for one, other in zip(data, again, strict=True):
        assert np.array_equal(one, other)


def test_the_model_is_a_two_layer_network():
    run = ol.problems.digits_mlp(hidden=5).run(seed=0)
    assert [p.shape for p in run.parameters] == [(64, 5), (5,), (5, 10), (10,)]
    assert "64-5-10" in ol.problems.digits_mlp(hidden=5).title


def batches(steps, batch_size=32, seed=0):
    run = ol.problems.digits_mlp(batch_size=batch_size).run(seed=seed)
    return [run.batch(step) for step in steps]


def test_the_order_of_batches_depends_on_the_seed_alone():
    one = batches(range(100), seed=3)
    ol.seed(99)
    ol.rand([10])
    for (x, y), (u, v) in zip(one, batches(range(100), seed=3), strict=True):
        assert np.array_equal(x, u)
        assert np.array_equal(y, v)
    assert not np.array_equal(one[0][0], batches([0], seed=4)[0][0])


def test_a_batch_is_the_same_however_one_gets_there():
    straight, back = batches(range(60), seed=1), batches([59, 3, 50, 0], seed=1)
    for step, (x, _) in zip([59, 3, 50, 0], back, strict=True):
        assert np.array_equal(straight[step][0], x)


def test_an_epoch_sees_no_image_twice_and_the_next_is_shuffled_anew(data):
    n = 1437 // 32
    rows = {row.tobytes(): i for i, row in enumerate(data.train_x)}
    assert len(rows) == 1437  # all images differ, so that rows identify them
    order = [[rows[row.tobytes()] for row in x] for x, _ in batches(range(2 * n), seed=2)]
    first, second = [[i for batch in half for i in batch] for half in (order[:n], order[n:])]
    assert len(set(first)) == len(first) == n * 32
    assert len(set(second)) == len(second)
    assert first != second


def test_labels_go_with_their_images(data):
    rows = {row.tobytes(): y for row, y in zip(data.train_x, data.train_y, strict=True)}
    for x, y in batches(range(20), seed=5):
        assert [rows[row.tobytes()] for row in x] == y.tolist()
        assert len(x) == 32


def test_the_seed_fixes_the_initial_weights():
    def weights(seed):
        return np.concatenate(
            [p.numpy().ravel() for p in ol.problems.digits_mlp().run(seed=seed).parameters]
        )

    assert np.array_equal(weights(0), weights(0))
    assert not np.array_equal(weights(0), weights(1))


@pytest.mark.parametrize(("option", "value"), [("hidden", 0), ("batch_size", 0), ("hidden", -2)])
def test_sizes_are_at_least_one(option, value):
    with pytest.raises(ValueError, match=f"{option} must be at least 1; got {value}"):
        ol.problems.digits_mlp(**{option: value})


def test_a_batch_larger_than_the_data_is_all_of_it():
    (x, _), (u, _) = batches([0, 1], batch_size=5000)
    assert x.shape == u.shape == (1437, 64)


@pytest.fixture(scope="module")
def race():
    return ol.compare(
        "digits_mlp",
        {
            "SGD": optimizer.SGD(0.1),
            "Momentum": optimizer.Momentum(0.05, momentum=0.9),
            "RMSProp": optimizer.RMSProp(0.002),
            "Adam": optimizer.Adam(0.005),
        },
        steps=500,
    )


def test_the_best_of_four_reads_97_of_100_digits(race):
    assert max(race.accuracy.values()) >= 0.97
    assert min(race.accuracy.values()) >= 0.85
    assert not any(trace.stopped for trace in race.traces.values())


def test_the_table_of_a_network(race):
    table = race.table()
    assert list(table.columns) == [
        "learning rate", "final loss", "best loss", "steps to tolerance", "held-out accuracy",
    ]  # fmt: skip
    for name in race:
        assert table.loc[name, "held-out accuracy"] == race.accuracy[name]
        assert table.loc[name, "final loss"] == race.final_loss[name]
        assert table.loc[name, "best loss"] == race[name].loss.min()
        assert "held-out accuracy" in repr(race)


def test_steps_to_tolerance_is_when_the_running_mean_of_20_arrived(race):
    import pandas as pd

    for tolerance in (0.1, 0.5, 1.5):
        table = race.table(tolerance)
        for name, trace in race.traces.items():
            arrived = [
                step for step in range(20, 501) if trace.loss[step - 20 : step].mean() <= tolerance
            ]
            found = table.loc[name, "steps to tolerance"]
            assert found == arrived[0] if arrived else pd.isna(found)


def test_traces_of_a_network_hold_norms(race):
    trace = race["Adam"]
    assert len(trace) == 500
    assert trace.norms["gradient"]["0.weight"].shape == (500,)
    assert set(trace.norms["parameter"]) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert race.start is None


def test_all_start_from_the_same_weights_and_the_same_batch(race):
    assert len({trace.loss[0] for trace in race.traces.values()}) == 1
