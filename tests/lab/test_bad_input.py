"""Bad input to a race: messages name the problem and its place, and results so far are kept."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.lab.compare import RaceWarning

SGD, Adam = ol.optimizer.SGD, ol.optimizer.Adam


def race_of(problem, **options):
    return ol.compare(problem, {"d": SGD(0.1)}, steps=5, **options)


class TestStart:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("place", [0, 1])
    def test_not_finite(self, bad, place):
        start = [0.5, 0.5]
        start[place] = bad
        with pytest.raises(ValueError, match="the start on Beale must be finite") as caught:
            race_of("beale", start=start)
        assert str(bad) in str(caught.value)

    @pytest.mark.parametrize(
        "start",
        [(1.0,), (1.0, 2.0, 3.0), 1.0, [], [[1.0, 2.0]], "ab", ("a", "b"), (1.0, None),
         (True, False), (1j, 2.0)],
    )  # fmt: skip
    def test_not_two_numbers(self, start):
        with pytest.raises(ValueError, match="a start on Beale is two numbers"):
            race_of("beale", start=start)

    def test_of_ragged_lists(self):
        with pytest.raises(ValueError, match="a start on Beale is two numbers"):
            race_of("beale", start=[[1.0], [1.0, 2.0]])

    def test_where_the_function_is_not_finite(self):
        with pytest.raises(ValueError, match=r"the loss at the start \(at \(-1, 1\)\) is nan"):
            race_of(lambda x, y: np.log(x) + y, start=(-1.0, 1.0))

    def test_on_a_network(self):
        with pytest.raises(TypeError, match="leave start out, and use seed="):
            race_of("digits_mlp", start=(1.0, 1.0))


class TestOptimizers:
    @pytest.mark.parametrize("bad", [None, {}, [], [SGD], ["SGD"], "SGD", 0.1])
    def test_are_a_dict_or_a_list(self, bad):
        with pytest.raises(TypeError, match="compare takes a dict of names and optimizers"):
            ol.compare("beale", bad)

    def test_not_classes(self):
        with pytest.raises(TypeError, match="'a' is the class Adam; give an optimizer with its se"):
            ol.compare("beale", {"a": Adam})

    @pytest.mark.parametrize("bad", [0.1, "Adam", None])
    def test_not_other_things(self, bad):
        with pytest.raises(TypeError, match=f"'a' must be an optimizer; got {type(bad).__name__}"):
            ol.compare("beale", {"a": bad})

    def test_not_bound_ones(self):
        bound = SGD(0.1, parameters=[ol.Parameter([1.0])])
        with pytest.raises(ValueError, match="'a' already has parameters; give compare a template"):
            ol.compare("beale", {"a": bound})

    def test_a_negative_rate_is_refused_before_the_race(self):
        with pytest.raises(ValueError, match=r"learning_rate must be .*at least 0; got -0\.1"):
            ol.compare("beale", {"a": Adam(-0.1)})

    def test_a_parameter_twice(self):
        w = ol.Parameter([1.0], name="w")
        with pytest.raises(ValueError, match=r"'w'.*was given twice"):
            SGD(0.1).bind([w, w])


@pytest.mark.parametrize("steps", [0, -1, 2.5, "10", None, True])
def test_steps(steps):
    with pytest.raises(ValueError, match="steps must be a whole number of at least 1; got"):
        ol.compare("beale", {"d": SGD(0.1)}, steps=steps)


@pytest.mark.parametrize("seed", [1.5, "a", None])
def test_seed(seed):
    with pytest.raises((TypeError, ValueError), match="seed"):
        race_of("beale", seed=seed)


class TestFunctions:
    def test_that_give_several_numbers(self):
        with pytest.raises(TypeError, match="must give one number a point") as caught:
            race_of(lambda x, y: ol.numpy.stack([x, y, x * y]), start=(1.0, 2.0))
        assert "(1, 2)" in str(caught.value)
        assert "(3,)" in str(caught.value)

    @pytest.mark.parametrize(
        "f",
        [
            lambda x, y: None,
            lambda x, y: (x, y),
            lambda x, y: "high",
            lambda x, y: {"value": x},
        ],
    )
    def test_that_give_something_else(self, f):
        with pytest.raises(
            TypeError, match=r"must give one number a point.*missing return"
        ) as caught:
            race_of(f, start=(1.0, 2.0))
        assert "(1, 2)" in str(caught.value)

    def test_that_do_not_depend_on_the_point(self):
        with pytest.raises(TypeError, match="must give one number a point, computed from"):
            race_of(lambda x, y: 3.0)

    @pytest.mark.parametrize("f", [lambda x, y: math.exp(x) + y, lambda x, y: x + math.sqrt(y)])
    def test_that_use_math_are_told_of_numpy(self, f):
        with pytest.raises(TypeError, match=r"np\.|NumPy"):
            race_of(f, start=(1.0, 2.0))

    @pytest.mark.parametrize("f", [lambda x, y, z: x, lambda: 1.0])
    def test_of_another_number_of_arguments(self, f):
        with pytest.raises(TypeError, match=r"a surface is a function f\(x, y\)"):
            race_of(f)

    def test_that_raise_at_once_raise_their_own_error(self):
        def broken(x, y):
            raise ZeroDivisionError("my own mistake")

        with pytest.raises(ZeroDivisionError, match="my own mistake") as caught:
            race_of(broken)
        assert caught.value.__notes__ == ["broken raised this at (-2, 2)."]

    def test_nothing_listens_after_a_race_that_failed(self):
        from optlab.backend import events

        with pytest.raises(TypeError):
            race_of(lambda x, y: None)
        assert events.step_taken.listeners == events.backward_finished.listeners == ()


def breaks_beyond(x, y):
    """A bowl that raises for x < 0.5."""
    if x < 0.5:
        raise KeyError("off the map")
    return x * x + y * y


@pytest.fixture(scope="module")
def raced():
    optimizers = {"fast": SGD(0.1), "slow": SGD(1e-4), "other": Adam(0.001)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        race = ol.compare(breaks_beyond, optimizers, start=(1.0, 1.0), steps=20)
    return race, [w for w in caught if issubclass(w.category, RaceWarning)]


class TestAFunctionThatRaisesInTheMiddle:
    def test_warns_once_and_names_optimizer_step_point_and_error(self, raced):
        _, notes = raced
        assert len(notes) == 1
        text = str(notes[0].message)
        # 0.8 ** 4 < 0.5 < 0.8 ** 3: the fifth evaluation raises
        for part in ("fast", "step 5", "(0.4096, 0.4096)", "KeyError", "off the map"):
            assert part in text
        assert notes[0].filename == __file__
        assert issubclass(RaceWarning, UserWarning)

    def test_keeps_what_was_computed(self, raced):
        race, _ = raced
        trace = race["fast"]
        np.testing.assert_allclose(
            trace.parameters["point"][:, 0], [1, 0.8, 0.64, 0.512, 0.4096], rtol=1e-12
        )
        np.testing.assert_allclose(trace.loss, 2 * 0.8 ** (2 * np.arange(4)), rtol=1e-12)
        assert "off the map" in trace.stopped
        assert "off the map" in repr(race)

    def test_the_others_finish(self, raced):
        race, _ = raced
        for name in ("slow", "other"):
            assert race[name].stopped is None
            assert len(race[name]) == 20
            assert math.isfinite(race.final_loss[name])

    def test_the_table_tells(self, raced):
        table = raced[0].table()
        assert "off the map" in table.loc["fast", "stopped"]
        assert table.loc["fast", "best loss"] == pytest.approx(2 * 0.8**6)
        assert list(table["stopped"][1:]) == ["", ""]

    def test_after_the_last_step(self):
        with pytest.warns(RaceWarning, match="d stopped .*off the map"):
            race = ol.compare(breaks_beyond, {"d": SGD(0.1)}, start=(1.0, 1.0), steps=4)
        assert len(race["d"]) == 4
        assert math.isnan(race.final_loss["d"])

    def test_in_the_first_step_of_a_later_run(self):
        calls = []

        def tired(x, y):
            calls.append(x)
            if len(calls) > 8:
                raise RuntimeError("tired")
            return x * x + y * y

        with pytest.warns(RaceWarning, match="second stopped in step 1 .*tired"):
            race = ol.compare(tired, {"first": SGD(0.1), "second": SGD(0.1)}, steps=6)
        assert race["first"].stopped is None
        assert len(race["second"]) == 0
        assert math.isnan(race.table().loc["second", "best loss"])

    def test_that_gives_nothing_in_the_middle(self):
        with pytest.warns(RaceWarning, match="must give one number a point.*None"):
            race = ol.compare(
                lambda x, y: x * x + y * y if x > 0.5 else None,
                {"d": SGD(0.1)}, start=(1.0, 1.0), steps=10,
            )  # fmt: skip
        assert len(race["d"]) == 4


def test_a_network_that_raises_in_the_middle_is_kept():
    class Fuse(ol.nn.Layer):
        calls = 0

        def forward(self, x):
            Fuse.calls += 1
            if Fuse.calls > 5:
                raise RuntimeError("the fuse is blown")
            return x

    digits = ol.problems.digits_mlp()
    problem = ol.problems.Network(
        lambda: ol.nn.Sequential(ol.nn.Linear(64, 10), Fuse()), digits.data, name="f", title="Fuse"
    )
    with pytest.warns(RaceWarning, match="d stopped in step 5 .*the fuse is blown"):
        race = ol.compare(problem, {"d": SGD(0.1)}, steps=10)
    assert len(race["d"]) == 4
    assert "the fuse is blown" in race["d"].stopped
    assert "the fuse is blown" in race.table().loc["d", "stopped"]


class TestDivergence:
    def test_is_named_with_its_step(self):
        race = ol.compare("rosenbrock", {"wild": SGD(1.0), "tame": SGD(1e-4)}, steps=50)
        trace = race["wild"]
        assert len(trace) < 50
        assert f"diverged at step {len(trace)}" in trace.stopped
        assert np.all(np.isfinite(trace.loss))
        assert not math.isfinite(race.final_loss["wild"])
        assert race["tame"].stopped is None
        assert len(race["tame"]) == 50
        assert "diverged" in repr(race)

    def test_in_the_last_step(self):
        whole = ol.compare("rosenbrock", {"wild": SGD(1.0)}, steps=50)
        n = len(whole["wild"])
        race = ol.compare("rosenbrock", {"wild": SGD(1.0)}, steps=n)
        assert race["wild"].stopped == whole["wild"].stopped
        assert ol.compare("rosenbrock", {"wild": SGD(1.0)}, steps=n - 1)["wild"].stopped is None

    def test_makes_no_noise(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            race = ol.compare("rosenbrock", {"wild": SGD(1.0)}, steps=50)
            race.table()
            repr(race)

    def test_of_a_network(self):
        race = ol.compare("digits_mlp", {"wild": SGD(1e35), "tame": SGD(0.1)}, steps=30)
        assert "diverged at step" in race["wild"].stopped
        assert race["tame"].stopped is None
        table = race.table()
        assert 0 <= table.loc["wild", "held-out accuracy"] < 0.5
