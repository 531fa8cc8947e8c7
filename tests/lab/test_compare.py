"""Races: traces, tables, and bitwise equality where it is guaranteed."""

from __future__ import annotations

import inspect
import math
import pickle
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest

import optlab as ol
from optlab.lab.compare import RaceWarning

Adam, SGD, Momentum, RMSProp = (
    ol.optimizer.Adam, ol.optimizer.SGD, ol.optimizer.Momentum, ol.optimizer.RMSProp,
)  # fmt: skip


def four():
    return {
        "SGD": SGD(0.001),
        "Momentum": Momentum(0.0005),
        "RMSProp": RMSProp(0.01),
        "Adam": Adam(0.1),
    }


def same(one, other):
    """Return whether two traces are bitwise equal."""
    return (
        np.array_equal(one.loss, other.loss)
        and one.stopped == other.stopped
        and all(np.array_equal(a, other.parameters[n]) for n, a in one.parameters.items())
        and all(np.array_equal(a, other.gradients[n]) for n, a in one.gradients.items())
        and all(
            np.array_equal(a, other.norms[kind][n])
            for kind, arrays in one.norms.items()
            for n, a in arrays.items()
        )
    )


def test_the_signature_is_the_documented_one():
    shown = inspect.signature(ol.compare).parameters
    assert list(shown)[:5] == ["problem", "optimizers", "start", "steps", "seed"]
    for name in list(shown)[5:]:
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert [shown[n].default for n in ("start", "steps", "seed")] == [None, 500, 0]


@pytest.fixture(scope="module")
def race():
    return ol.compare("rosenbrock", four(), start=(-1.2, 1.0), steps=300)


class TestOnASurface:
    def test_gives_named_traces_in_order(self, race):
        assert list(race) == list(race.traces) == ["SGD", "Momentum", "RMSProp", "Adam"]
        assert len(race) == 4
        assert race["Adam"] is race.traces["Adam"]
        assert race["Adam"].name == "Adam"
        assert race["Adam"].settings["class"] == "Adam"
        assert race.start == (-1.2, 1.0)
        assert (race.steps, race.seed) == (300, 0)

    def test_an_unknown_run_is_named_beside_those_there_are(self, race):
        with pytest.raises(KeyError, match="no run named 'Adm'; there are SGD, Momentum"):
            race["Adm"]

    def test_traces_say_what_happened(self, race):
        def f(x, y):
            return (1 - x) ** 2 + 100 * (y - x**2) ** 2

        for name, trace in race.traces.items():
            points = trace.parameters["point"]
            assert points.shape == (301, 2)
            assert points[0].tolist() == [-1.2, 1.0]
            np.testing.assert_allclose(trace.loss, [f(*p) for p in points[:-1]], rtol=1e-12)
            assert race.final_loss[name] == pytest.approx(f(*points[-1]), rel=1e-12)
            assert trace.stopped is None

    def test_descent_against_a_loop_in_plain_numpy(self, race):
        x, y = -1.2, 1.0
        for point in race["SGD"].parameters["point"]:
            np.testing.assert_allclose(point, (x, y), rtol=1e-10)
            slope = y - x * x
            x, y = x - 0.001 * (-2 * (1 - x) - 400 * x * slope), y - 0.001 * 200 * slope

    def test_table(self, race):
        table = race.table()
        assert list(table.columns) == [
            "learning rate", "final loss", "best loss", "steps to tolerance",
            "distance to the minimum",
        ]  # fmt: skip
        assert list(table.index) == list(race)
        assert table.index.name == "optimizer"
        for name, trace in race.traces.items():
            row = table.loc[name]
            losses = np.append(trace.loss, race.final_loss[name])
            assert row["learning rate"] == four()[name].get_lr()
            assert row["final loss"] == race.final_loss[name]
            assert row["best loss"] == losses.min()
            assert row["distance to the minimum"] == pytest.approx(
                math.dist(trace.parameters["point"][-1], (1, 1))
            )

    @pytest.mark.parametrize("tolerance", [4.0, 0.5, 1e-9, 100.0])
    def test_steps_to_tolerance(self, race, tolerance):
        import pandas as pd

        table = race.table(tolerance)
        for name, trace in race.traces.items():
            reached = [i for i, v in enumerate([*trace.loss, race.final_loss[name]])
                       if v <= tolerance]  # fmt: skip
            found = table.loc[name, "steps to tolerance"]
            assert (found is pd.NA) == (not reached)
            if reached:
                assert found == reached[0]
        assert table["steps to tolerance"].dtype == "Int64"

    def test_tolerance_counts_from_the_minimum(self):
        race = ol.compare(
            ol.problems.Surface(lambda x, y: x * x + y * y - 7, minima=[(0.0, 0.0)]),
            {"d": SGD(0.25)},
            start=(1.0, 0.0),
            steps=20,
        )
        assert race.table(0.01).loc["d", "steps to tolerance"] == 4  # 4 ** -4 < 0.01 < 4 ** -3

    def test_repr_names_everything(self, race):
        text = repr(race)
        for part in ("Rosenbrock", "(-1.2, 1)", "300 steps", "seed 0", *race):
            assert part in text


def test_stopped_is_a_column_when_a_run_stopped():
    race = ol.compare("rosenbrock", {"wild": SGD(1.0), "tame": SGD(1e-4)}, steps=50)
    table = race.table()
    assert list(table.columns)[-1] == "stopped"
    assert table.loc["wild", "stopped"] == race["wild"].stopped
    assert table.loc["tame", "stopped"] == ""


def test_a_function_without_known_minima_has_no_distance():
    race = ol.compare(lambda x, y: x * x + y * y, {"d": SGD(0.1)}, steps=3)
    assert list(race.table().columns) == [
        "learning rate", "final loss", "best loss", "steps to tolerance",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "start", [(0.5, -1), [0.5, -1.0], np.array([0.5, -1.0]), np.array([0.5, -1], "float32"),
              ol.to_tensor([0.5, -1.0])], ids=lambda s: type(s).__name__
)  # fmt: skip
def test_start_in_every_form(start):
    race = ol.compare("beale", {"d": SGD(0.01)}, start=start, steps=5)
    assert race.start == (0.5, -1.0)
    assert race["d"].parameters["point"][0].tolist() == [0.5, -1.0]
    assert same(race["d"], ol.compare("beale", {"d": SGD(0.01)}, start=(0.5, -1.0), steps=5)["d"])


def branch(x, y):
    return x * x + y * y if x > 0.2 else 3 * x * x + (y - 1) ** 2


class Counter:
    """A function that counts its calls but does not depend on the count."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, y):
        self.calls += 1
        return (x - 1) ** 2 + 2 * y**2


FUNCTIONS = {
    "rosenbrock": lambda x, y: (1 - x) ** 2 + 100 * (y - x**2) ** 2,
    "exponentials": lambda x, y: np.exp(-x * x) * np.sin(3 * y) + 0.1 * (x**2 + y**2),
    "powers": lambda x, y: x**4 - 3 * x**3 + abs(y) ** 1.5 + 2.0**y,
    "kinks": lambda x, y: np.maximum(x, y) + np.abs(x - 0.3) + np.where(x > 0, x, -2 * x),
    "division": lambda x, y: (x + y) ** 2 / (1 + x * x) + np.log1p(y * y) + np.hypot(x, y),
    "x alone": lambda x, y: np.tanh(x) + x * x,
    "stacked": lambda x, y: ol.numpy.stack([x, 2 * y]) @ ol.numpy.stack([x, y]),
    "clipped": lambda x, y: np.clip(x * y, -0.5, 2.0) + x * x + y * y,
    "remainder": lambda x, y: (x % 1.5) ** 2 + y * y,
    "one element": lambda x, y: np.reshape(x * x + y * y, (1,)),
    "branch": branch,
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_captured_and_uncaptured_runs_are_equal_to_the_bit(f):
    races = [
        ol.compare(
            ol.problems.Surface(f, repeatable=repeatable, start=(-0.8, 0.7)), four(), steps=60
        )
        for repeatable in (False, True)
    ]
    for name in four():
        assert races[0][name].stopped is None
        assert same(races[0][name], races[1][name])
        assert races[0].final_loss[name] == races[1].final_loss[name]


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_the_final_loss_is_what_the_next_step_would_have_seen(f):
    surface = ol.problems.Surface(f, start=(-0.8, 0.7))
    short = ol.compare(surface, {"d": SGD(0.001)}, steps=20)
    long = ol.compare(surface, {"d": SGD(0.001)}, steps=21)
    assert short.final_loss["d"] == long["d"].loss[20]


def test_a_function_with_a_branch_takes_the_branch_of_each_point():
    race = ol.compare(branch, {"d": SGD(0.1)}, start=(1.0, 1.0), steps=30)
    points = race["d"].parameters["point"]
    assert points[0, 0] > 0.2 > points[-1, 0]
    np.testing.assert_allclose(race["d"].loss, [branch(*p) for p in points[:-1]], rtol=1e-12)


def test_a_function_with_a_counter_is_called_at_every_step():
    f = Counter()
    ol.compare(f, {"d": SGD(0.1), "e": SGD(0.2)}, steps=25)
    assert f.calls >= 2 * 25


def test_a_function_that_uses_methods_of_tensors():
    race = ol.compare(lambda x, y: (x * x).exp() + y * y, {"d": SGD(0.01)}, start=(1, 1), steps=5)
    assert race["d"].stopped is None
    assert math.isfinite(race.final_loss["d"])


def test_a_function_with_noise_is_fixed_by_the_seed():
    def noisy(x, y):
        return x * x + y * y + 0.1 * (ol.randn([]) * x).sum()

    one, again, other = (ol.compare(noisy, four(), steps=20, seed=s) for s in (3, 3, 4))
    for name in four():
        assert same(one[name], again[name])
        assert not same(one[name], other[name])


def test_a_race_leaves_the_random_stream_alone():
    ol.seed(5)
    expected = ol.rand([3]).tolist()
    ol.seed(5)
    ol.compare(lambda x, y: x * x + y * y * (1 + ol.rand([])), four(), steps=5)
    assert ol.rand([3]).tolist() == expected


@pytest.mark.parametrize("problem", ["rosenbrock", "digits_mlp"])
def test_one_seed_gives_the_same_numbers_to_the_bit(problem):
    one, again = (ol.compare(problem, four(), steps=30, seed=7) for _ in range(2))
    for name in four():
        assert same(one[name], again[name])
    assert one.final_loss == again.final_loss
    assert one.accuracy == again.accuracy


@pytest.mark.parametrize("problem", ["himmelblau", "digits_mlp"])
def test_another_optimizer_in_the_race_changes_nothing_for_the_others(problem):
    alone = ol.compare(problem, {"Adam": Adam(0.01)}, steps=20)
    crowd = ol.compare(
        problem, {"first": Momentum(0.001), "Adam": Adam(0.01), "wild": SGD(1e6)}, steps=20
    )
    assert same(alone["Adam"], crowd["Adam"])
    assert alone.final_loss["Adam"] == crowd.final_loss["Adam"]


def test_templates_stay_templates_and_can_race_again():
    templates = {"a": Adam(0.1), "b": Adam(0.1)}
    templates["c"] = templates["a"]
    first, second = (ol.compare("beale", templates, steps=10) for _ in range(2))
    assert all(t.is_template for t in templates.values())
    assert same(first["a"], second["a"])
    assert same(first["a"], first["b"])
    assert same(first["a"], first["c"])


def test_every_option_of_an_optimizer_races():
    race = ol.compare(
        "beale",
        {
            "clipped": Adam(0.1, grad_clip=ol.nn.ClipGradByNorm(1.0)),
            "decayed": SGD(0.001, weight_decay=0.1),
            "amsgrad": Adam(0.1, amsgrad=True),
        },
        steps=10,
    )
    assert "used_gradient" in race["clipped"].terms
    assert "moment2_max" in race["amsgrad"].slots
    assert not any(trace.stopped for trace in race.traces.values())


def test_the_race_is_shown_in_words_where_nothing_draws(monkeypatch):
    from optlab.backend import display

    def nothing(name):
        raise ModuleNotFoundError("no plotly")

    monkeypatch.setattr(display, "renderer", nothing)
    race = ol.compare("beale", {"d": SGD(0.001)}, steps=2)
    assert race._repr_mimebundle_() == {"text/plain": repr(race)}


class TestSaving:
    @pytest.mark.parametrize("name", ["race.png", "race.html"])
    def test_writes_a_picture(self, tmp_path, name):
        race = ol.compare("beale", {"Adam": ol.optimizer.Adam(0.05)}, steps=10)
        written = race.save(tmp_path / name)
        assert written.stat().st_size > 10_000

    def test_says_what_it_can_write(self, tmp_path):
        race = ol.compare("beale", {"Adam": ol.optimizer.Adam(0.05)}, steps=3)
        with pytest.raises(ValueError, match=r"\.png or \.html"):
            race.save(tmp_path / "race.jpg")


def test_an_interrupted_race_is_kept():
    calls = []

    def tired(x, y):
        calls.append(1)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return x * x + y * y

    optimizers = {name: ol.optimizer.SGD(0.1) for name in "abc"}
    race = ol.compare(tired, optimizers, steps=15)
    assert list(race) == ["a", "b"]
    assert race["a"].stopped is None
    assert race["b"].stopped.startswith("interrupted in step")


def test_a_race_that_cannot_be_mapped_still_has_a_picture():
    def fails_later(x, y):
        fails_later.calls += 1
        if fails_later.calls > 20:
            raise RuntimeError("tired")
        return x * x + y * y

    fails_later.calls = 0
    with pytest.warns(ol.lab.RaceWarning):
        race = ol.compare(fails_later, {"SGD": ol.optimizer.SGD(0.1)}, steps=40)
    assert race["SGD"].error.args == ("tired",)
    assert "image/png" in race._repr_mimebundle_()
    curve = ol.compare(lambda x: x**2, {"SGD": ol.optimizer.SGD(0.1)}, steps=5)
    assert "image/png" in curve._repr_mimebundle_()


def test_steps_to_tolerance_need_a_known_minimum():
    race = ol.compare(lambda x, y: x**2 + y**2 - 10, {"SGD": ol.optimizer.SGD(0.1)}, steps=50)
    assert race.table()["steps to tolerance"].isna().all()
    assert race.table(tolerance=-9.0)["steps to tolerance"].item() > 0


def test_a_network_trains_inside_no_grad_too():
    with ol.no_grad():
        race = ol.compare("digits_mlp", {"SGD": ol.optimizer.SGD(0.1)}, steps=3)
    assert race["SGD"].stopped is None


@pytest.mark.parametrize("problem", ["rosenbrock", ol.problems.digits_mlp])
def test_a_comparison_over_threads_is_the_comparison(problem):
    problem = problem if isinstance(problem, str) else problem()
    entries = {"SGD": SGD(0.001), "Adam": Adam(0.1)}
    wanted = ol.compare(problem, entries, steps=5)
    with ThreadPoolExecutor(2) as executor:
        found = ol.compare(problem, entries, steps=5, executor=executor)
    assert repr(found) == repr(wanted)
    for name, trace in wanted.traces.items():
        assert same(found[name], trace)
        assert found[name].problem is found.problem


def test_a_run_that_raises_in_a_thread_is_named_by_a_warning_of_the_comparison():
    def f(x, y):
        if x > 1.5:
            return x * x + y * y
        raise ArithmeticError("too near")

    entries = {"still": SGD(0.0001), "moves": SGD(0.2)}
    with (
        ThreadPoolExecutor(2) as executor,
        pytest.warns(RaceWarning, match="moves stopped") as given,
    ):
        found = ol.compare(f, entries, start=(2.0, 0.0), steps=3, executor=executor)
    assert len(given) == 1
    assert found["still"].stopped is None


@pytest.mark.parametrize("kind", ["a bowl", "a lambda"])
def test_a_comparison_sends_any_function_to_processes(kind):
    pytest.importorskip("cloudpickle")
    problem = ol.problems.quadratic(10.0) if kind == "a bowl" else lambda x, y: x * x + 3 * y * y
    entries = {"Adam": Adam(0.1)}
    found = ol.compare(problem, entries, steps=5, executor=Pickles())
    assert same(found["Adam"], ol.compare(problem, entries, steps=5)["Adam"])
    assert found["Adam"].problem is found.problem


class Pickles(Executor):
    """Runs tasks here on copies, made as another process gets them."""

    def submit(self, function, *arguments):
        future = Future()
        try:
            function, arguments = pickle.loads(pickle.dumps((function, arguments)))
            future.set_result(pickle.loads(pickle.dumps(function(*arguments))))
        except Exception as error:  # noqa: BLE001 - a worker hands any error on
            future.set_exception(error)
        return future


def test_a_comparison_is_a_frame_of_its_traces():
    race = ol.compare("booth", {"a": SGD(0.01), "b": Adam(0.1)}, steps=3)
    frame = race.to_dataframe()
    assert frame.index.names == ["optimizer", "step"]
    np.testing.assert_array_equal(frame.loc["b"]["loss"], race["b"].loss)
    assert len(frame) == 6


def test_what_cannot_be_sent_is_named():
    handle = threading.Lock()
    with pytest.raises(TypeError, match="executor= sends problem and optimizer to other processes"):
        ol.compare(lambda x, y: (handle, x * x + y * y)[1], {"A": SGD(0.1)}, executor=Pickles())
