"""Random keys: a draw is a function of a seed and a path."""

from __future__ import annotations

import contextvars
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optlab.backend import random
from optlab.backend.random import Key, next_key, scope, seed

PLACES = st.lists(st.one_of(st.integers(), st.text(max_size=5)), max_size=4).map(tuple)
laws = settings(deadline=None, max_examples=100, derandomize=True)


def draw(key: Key) -> list[float]:
    return key.generator().random(3).tolist()


@laws
@given(st.integers(), PLACES, PLACES)
def test_equal_keys_draw_equal_numbers_and_others_others(n: int, one: Any, two: Any) -> None:
    first, second = Key(n).fold(*one), Key(n).fold(*two)
    assert draw(first) == draw(Key(n).fold(*one))
    assert (draw(first) == draw(second)) is (first == second)


@laws
@given(st.integers(), PLACES, PLACES)
def test_folding_in_steps_is_folding_at_once(n: int, one: Any, two: Any) -> None:
    assert Key(n).fold(*one).fold(*two) == Key(n).fold(*one, *two)


@pytest.mark.parametrize("whole", [np.int64(3), np.int32(3), np.uint8(3)])
def test_whole_numbers_of_numpy_name_the_same_place(whole: Any) -> None:
    assert Key(7).fold(whole) == Key(7).fold(3)
    assert draw(Key(7).fold(whole)) == draw(Key(7).fold(3))
    assert draw(Key(whole)) == draw(Key(3))
    with scope("step", whole, seed=whole):
        numpys = draw(next_key())
    with scope("step", 3, seed=3):
        assert draw(next_key()) == numpys


def test_text_and_numbers_name_different_places() -> None:
    places: list[tuple[Any, ...]] = [
        (),
        (1,),
        ("1",),
        (1, 1),
        (11,),
        ("1, 1",),
        ("a", "b"),
        ("ab",),
    ]
    assert len({tuple(draw(Key(0, place))) for place in places}) == len(places)


def test_neighbouring_keys_are_not_correlated() -> None:
    drawn = np.array([Key(0, (i,)).generator().standard_normal(400) for i in range(40)])
    correlation = np.corrcoef(drawn) - np.eye(40)
    assert np.abs(correlation).max() < 0.25  # five standard deviations of 1/sqrt(400)


def test_draws_of_a_place_are_numbered() -> None:
    seed(5)
    assert [next_key() for _ in range(3)] == [Key(5, (i,)) for i in range(3)]
    with scope("layer", 2) as key:
        assert key == Key(5, ("layer", 2))
        assert [next_key() for _ in range(2)] == [Key(5, ("layer", 2, i)) for i in range(2)]
        with scope("inner"):
            assert next_key() == Key(5, ("layer", 2, "inner", 0))
        assert next_key() == Key(5, ("layer", 2, 2))
    assert next_key() == Key(5, (3,))


def test_a_scope_with_a_seed_of_its_own_ignores_the_seed_outside() -> None:
    for n in (1, 2):
        seed(n)
        with scope("data", seed=9):
            assert next_key() == Key(9, ("data", 0))


def test_a_scope_ends_after_an_error() -> None:
    seed(5)
    with pytest.raises(KeyError), scope("broken"):
        raise KeyError
    assert next_key() == Key(5, (0,))


def test_without_a_seed_numbers_differ_from_run_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "_root", None)
    one = next_key()
    monkeypatch.setattr(random, "_root", None)
    two = next_key()
    assert one.seed != two.seed
    assert next_key() == Key(two.seed, (1,))


# Generators of a key.


def test_a_generator_can_be_copied_pickled_and_split() -> None:
    one, two = Key(3).generator(), Key(3).generator()
    one.random(5)
    copy = pickle.loads(pickle.dumps(one))
    assert copy.random() == one.random()
    children = [child.random() for child in (*one.spawn(2), *one.spawn(1))]
    assert children == [child.random() for child in two.spawn(3)]
    assert len({*children, Key(3).generator().random()}) == 4


def test_the_numbers_of_a_key_stay_what_they_were() -> None:
    """Results published with a seed must remain reproducible."""
    drawn = Key(3, ("a", 1)).generator().random(2)
    np.testing.assert_array_equal(drawn, [0.9265678545982323, 0.8420332045465815])


# Threads.


def in_thread(f: Any, inherit: bool = False) -> Any:
    """Run `f` in another thread and return its result."""
    run = contextvars.copy_context().run if inherit else lambda g: g()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, f).result()


@pytest.mark.parametrize("inside", [False, True])
def test_another_thread_never_changes_what_a_place_draws(inside: bool) -> None:
    def run(others: int) -> list[Key]:
        seed(5)
        with scope("place") if inside else nullcontext():
            keys = [next_key()]
            found = [in_thread(next_key, inherit=True) for _ in range(others)]
            assert len({*found, *keys}) == others + 1
            return [*keys, next_key()]

    assert run(0) == run(3)


def test_a_thread_that_inherits_a_scope_draws_below_it() -> None:
    seed(5)
    with scope("place"):
        assert in_thread(next_key, inherit=True) == Key(5, ("place", "thread", 0, 0))
        assert in_thread(lambda: (next_key(), next_key())[1], inherit=True) == Key(
            5, ("place", "thread", 1, 1)
        )

        def job() -> Key:
            with scope("job", 7):
                return next_key()

        assert in_thread(job, inherit=True) == Key(5, ("place", "job", 7, 0))
        assert in_thread(job) == Key(5, ("job", 7, 0))
    assert in_thread(next_key) == Key(5, ("thread", 0, 0))


def test_the_thread_that_calls_seed_owns_the_numbering() -> None:
    def job() -> Key:
        seed(6)
        return next_key()

    assert in_thread(job) == Key(6, (0,))
    assert next_key() == Key(6, ("thread", 0, 0))
    seed(6)
    assert next_key() == Key(6, (0,))


def test_many_threads_at_once_never_share_a_key() -> None:
    seed(5)
    together = threading.Barrier(8)

    def job(i: int) -> list[Key]:
        together.wait()
        with scope("job", i):
            named = [next_key() for _ in range(200)]
        return named + [next_key() for _ in range(200)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(job, range(8)))
    assert len({key for keys in found for key in keys}) == 8 * 400
    for i, keys in enumerate(found):
        assert keys[:200] == [Key(5, ("job", i, n)) for n in range(200)]
