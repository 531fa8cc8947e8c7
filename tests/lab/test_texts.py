"""Texts, vocabularies, and n-grams as a baseline."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import optlab as ol
from optlab.lab.data import BytePairs, Characters, KneserNey, best_order, windows


@pytest.fixture(scope="module")
def text():
    return ol.data.pydoc_topics()


def sections(part):
    return [" ".join(section.split()) for section in part.split("\n\n")]


def test_no_section_of_the_text_comes_twice_and_none_held_out_is_in_training(text):
    train, validation = sections(text.train), sections(text.validation)
    assert len(train) == len(set(train))
    assert not set(train) & set(validation)


def test_the_split_is_where_it_was_asked_for(text):
    whole = text.train + text.validation
    assert len(text.train) / len(whole) == pytest.approx(0.9, abs=0.01)
    half = ol.data.pydoc_topics(0.5)
    assert half.train + half.validation == whole
    assert len(half.train) / len(whole) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("share", [0, 1, -1, 2.0])
def test_a_split_without_one_side_is_refused(share):
    with pytest.raises(ValueError, match="share"):
        ol.data.pydoc_topics(share)


def test_what_is_encoded_comes_back(text):
    whole = text.train + text.validation
    for vocabulary in (Characters(whole), BytePairs(text.train[:20000], 200, alphabet=whole)):
        assert vocabulary.decode(vocabulary.encode(text.validation)) == text.validation


def test_pairs_are_joined_by_how_often_they_are_seen():
    pairs = BytePairs("aab aab aab ab", size=5)
    # a and b are adjacent four times; then " a" and "ab" three.
    assert pairs.symbols == [" ", "a", "b", "ab", "aab"]
    assert pairs.encode("aab").tolist() == [4]
    assert pairs.encode("abab").tolist() == [3, 3]


def test_with_pairs_skipped_a_text_is_read_in_other_ways_and_stays_the_same(text):
    pairs = BytePairs(text.train[:20000], 200)
    part = text.train[:5000]
    one, other = (pairs.encode(part, skip=0.2, seed=seed) for seed in (0, 1))
    assert pairs.decode(one) == pairs.decode(other) == part
    assert len(one) > len(pairs.encode(part))
    assert not np.array_equal(one, other)
    assert np.array_equal(one, pairs.encode(part, skip=0.2, seed=0))
    for skip in (-0.1, 1):
        with pytest.raises(ValueError, match="skip is a probability"):
            pairs.encode(part, skip=skip)


def test_pairs_run_out():
    assert len(BytePairs("ab", size=100)) == 3


def test_an_unknown_symbol_is_named():
    with pytest.raises(ValueError, match="'z' is none of the 2 symbols"):
        Characters("ab").encode("az")


def test_windows_depend_on_seed_and_step_alone():
    data = np.arange(50)
    x, y = windows(data, 5, 4, step=7, seed=1)
    ol.rand([3])
    again, _ = windows(data, 5, 4, step=7, seed=1)
    assert np.array_equal(x, again)
    assert np.array_equal(y, x + 1)
    assert not np.array_equal(x, windows(data, 5, 4, step=8, seed=1)[0])
    assert not np.array_equal(x, windows(data, 5, 4, step=7, seed=2)[0])


def test_windows_reach_both_ends_of_the_text():
    x, y = windows(np.arange(7), 5, 200, step=0)
    assert (x.min(), y.max()) == (0, 6)


def test_windows_longer_than_the_text_are_refused():
    with pytest.raises(ValueError, match="5 symbols"):
        windows(np.arange(5), 5, 1, step=0)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_of_n_grams_add_up_to_one_after_every_context(order):
    symbols = np.random.default_rng(0).integers(0, 3, 40)
    model = KneserNey(symbols, order, vocabulary=4)  # the fourth symbol never occurs
    for context in itertools.product(range(4), repeat=order - 1):
        found = [model.probabilities(np.array([*context, last]))[-1] for last in range(4)]
        assert sum(found) == pytest.approx(1)
        assert min(found) > 0


def test_n_grams_of_order_2_by_hand():
    model = KneserNey(np.array([0, 1, 0, 1, 0, 1, 0, 2]), 2, vocabulary=3)
    # Pairs: ab 3, ba 3, ac 1. n1 = 1, n2 = 0, so each discount is 1/2.
    # Symbols by their predecessors: a after one (b), b after one (a), c after one (a): n1 = 3.
    shorter = (1 - 0.5) / 3 + 0.5 * 3 / 3 * (1 / 3)
    expected = (3 - 0.5) / 4 + 0.5 * 2 / 4 * shorter
    assert model.probabilities(np.array([0, 1]))[1] == pytest.approx(expected)


def test_a_longer_memory_sees_more():
    # The last three symbols determine the next.
    symbols = np.array([0, 0, 0, 1, 0, 1, 1, 1] * 60)
    bits = [KneserNey(symbols[:400], order, 2).bits(symbols[400:]) for order in (1, 2, 3, 4)]
    assert bits[0] == pytest.approx(1, abs=0.01)
    assert bits == sorted(bits, reverse=True)
    assert bits[3] < 0.1
    assert best_order(symbols, 2, range(1, 5)) == 4


def test_n_grams_too_long_for_64_bits_are_refused():
    with pytest.raises(ValueError, match="from 1 to 9"):
        KneserNey(np.zeros(100, int), 10, vocabulary=100)
    with pytest.raises(ValueError, match="no n-gram of order 3"):
        KneserNey(np.zeros(2, int), 3, vocabulary=2)


def test_digits_of_another_size_are_the_same_digits():
    small, large = ol.data.digits(), ol.data.digits(16)
    assert large.train_x.shape == (1437, 1, 16, 16)
    assert large.train_x.dtype == np.float32
    assert np.array_equal(small.test_y, large.test_y)
    np.testing.assert_array_equal(ol.data.digits(8).test_x.reshape(-1, 64), small.test_x)
    # Linear between the centers of pixels: pairs of the new ones are centered at each old one.
    pairs = large.test_x.reshape(-1, 8, 2, 8, 2).mean((2, 4))[:, 1:-1, 1:-1]
    inner = small.test_x.reshape(-1, 8, 8)[:, 1:-1, 1:-1]
    assert np.corrcoef(pairs.ravel(), inner.ravel())[0, 1] > 0.95
    with pytest.raises(ValueError, match="size"):
        ol.data.digits(0)
