"""Data sets, samplers, and collation of examples into batches."""

from __future__ import annotations

import collections
import json

import numpy as np
import pytest

import optlab as ol
from optlab.io import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    RandomSampler,
    SequenceSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from optlab.io.collate import default_collate


class TestDatasets:
    def test_what_a_subclass_must_define(self):
        with pytest.raises(NotImplementedError, match=r"Dataset has no __getitem__ method"):
            ol.io.Dataset()[0]
        with pytest.raises(NotImplementedError, match=r"Dataset has no __len__ method"):
            len(ol.io.Dataset())
        with pytest.raises(NotImplementedError, match=r"has no __iter__ method"):
            iter(ol.io.IterableDataset())
        with pytest.raises(TypeError, match="is not known before"):
            len(ol.io.IterableDataset())
        with pytest.raises(TypeError, match="have no numbers"):
            ol.io.IterableDataset()[0]

    def test_tensors(self):
        data = TensorDataset([np.arange(6.0).reshape(3, 2), ol.to_tensor([5, 6, 7]), [0.0, 1, 2]])
        x, y, z = data[-1]
        assert (len(data), x.tolist(), y.item(), z.item()) == (3, [4.0, 5.0], 7, 2.0)
        assert (x.dtype, z.dtype) == (np.float64, np.float32)

    @pytest.mark.parametrize(
        ("wrong", "error", "said"),
        [
            (np.ones((2, 2)), TypeError, r"TensorDataset\(\[x, y\]\)"),
            ([], TypeError, r"TensorDataset\(\[x, y\]\)"),
            ([np.ones(2), np.ones(3)], ValueError, r"their shapes are \(2,\), \(3,\)"),
            ([np.array(1.0)], ValueError, "first axes"),
        ],
    )
    def test_tensors_that_do_not_fit(self, wrong, error, said):
        with pytest.raises(error, match=said):
            TensorDataset(wrong)

    def test_a_parameter_gives_values_without_gradient(self):
        data = TensorDataset([ol.Parameter([1.0, 2.0])])
        assert not data[0][0].requires_grad

    def test_subset_and_concat(self):
        part = Subset("abcdef", np.array([4, 0]))
        assert (len(part), part[0], part[-1]) == (2, "e", "a")
        both = ConcatDataset(["ab", "", "cde"])
        assert "".join(both[i] for i in range(5)) == "abcde"
        assert both[-5] == "a"
        for i in (5, -6):
            with pytest.raises(IndexError, match=f"has 5 examples; there is no number {i}"):
                both[i]
        with pytest.raises(ValueError, match="at least one"):
            ConcatDataset([])
        with pytest.raises(TypeError, match="examples have numbers"):
            ConcatDataset([ol.io.IterableDataset()])


class TestRandomSplit:
    def test_parts_are_disjoint_and_fixed_by_the_seed(self):
        ol.seed(0)
        one = [list(part) for part in random_split(range(10), [7, 3])]
        ol.seed(0)
        other = [list(part) for part in random_split(range(10), [7, 3])]
        assert one == other
        assert [len(part) for part in one] == [7, 3]
        assert sorted(one[0] + one[1]) == list(range(10))
        assert one[0] != sorted(one[0])

    def test_shares_and_a_generator_of_ones_own(self):
        parts = random_split(range(10), [0.5, 0.25, 0.25], np.random.default_rng(0))
        assert [len(part) for part in parts] == [6, 2, 2]
        assert [len(part) for part in random_split(range(100), [0.71, 0.29])] == [71, 29]
        again = random_split(range(10), [0.5, 0.25, 0.25], np.random.default_rng(0))
        assert [part.indices for part in parts] == [part.indices for part in again]

    @pytest.mark.parametrize("lengths", [[5, 4], [11], [-1, 11], [0.5, 0.2], [5.5, 4.5], []])
    def test_lengths_that_do_not_add_up(self, lengths):
        with pytest.raises(ValueError, match="random_split parts 10 examples"):
            random_split(range(10), lengths)


class TestSamplers:
    def test_in_order_and_at_random(self):
        assert list(SequenceSampler("abc")) == [0, 1, 2]
        ol.seed(0)
        first, second = list(RandomSampler(range(50))), list(RandomSampler(range(50)))
        assert sorted(first) == sorted(second) == list(range(50))
        assert first != second
        ol.seed(0)
        assert list(RandomSampler(range(50))) == first

    def test_some_and_with_replacement(self):
        some = RandomSampler(range(50), num_samples=5)
        assert len(some) == len(set(some)) == 5
        many = list(RandomSampler(range(3), replacement=True, num_samples=100))
        assert len(many) == 100
        assert set(many) == {0, 1, 2}
        with pytest.raises(ValueError, match="at most 3"):
            RandomSampler(range(3), num_samples=4)
        with pytest.raises(ValueError, match="at least 1"):
            RandomSampler(range(3), num_samples=0)
        with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
            list(RandomSampler(range(3), generator=3))

    def test_weighted(self):
        ol.seed(0)
        drawn = list(WeightedRandomSampler([1.0, 0.0, 3.0], 4000))
        counts = np.bincount(drawn, minlength=3) / 4000
        np.testing.assert_allclose(counts, [0.25, 0.0, 0.75], atol=0.03)
        ol.seed(0)
        assert list(WeightedRandomSampler(ol.to_tensor([1.0, 0.0, 3.0]), 4000)) == drawn
        some = WeightedRandomSampler(np.array([2, 0, 1e308, 1e308]), 3, replacement=False)
        assert sorted(some) == [0, 2, 3]
        rows = WeightedRandomSampler([[1.0, 0.0], [0.0, 1.0]], 3)
        assert (list(rows), len(rows)) == ([0, 0, 0, 1, 1, 1], 6)
        loader = DataLoader(np.arange(3.0), batch_sampler=BatchSampler(sampler=rows, batch_size=4))
        assert [batch.tolist() for batch in loader] == [[0, 0, 0, 1], [1, 1]]

    def test_weighted_with_a_generator_of_ones_own_goes_on(self):
        def fresh(seed):
            return WeightedRandomSampler(np.ones(9), 20, generator=np.random.default_rng(seed))

        sampler, later = fresh(0), fresh(1)
        list(sampler)
        later.set_state_dict(json.loads(json.dumps(sampler.state_dict())))
        assert list(later) == list(sampler)
        with pytest.raises(ValueError, match="not of a WeightedRandomSampler with a generator"):
            later.set_state_dict({})

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([1.0, -1.0], 2), "at least 0"),
            (([1.0, np.nan], 2), "at least 0"),
            (([0.0, 0.0], 2), "all 0"),
            (([[1.0, 1.0], [0.0, 0.0]], 2), "all 0"),
            (([1.0, 0.0, 2.0], 3, False), "at most 2 indices"),
            (([], 1), "one row of numbers, or several"),
            ((np.ones((1, 1, 2)), 1), "one row of numbers, or several"),
            (([1.0], 0), "num_samples must be a whole number of at least 1"),
            (([1.0], 1, 2), "True or False"),
        ],
    )
    def test_weights_that_cannot_be_drawn_by(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            WeightedRandomSampler(*arguments)

    def test_batches(self):
        batches = BatchSampler(range(5), batch_size=2)
        assert (list(batches), len(batches)) == ([[0, 1], [2, 3], [4]], 3)
        batches = BatchSampler(range(5), batch_size=2, drop_last=True)
        assert (list(batches), len(batches)) == ([[0, 1], [2, 3]], 2)
        assert list(BatchSampler(sampler=[4, 2], batch_size=1)) == [[4], [2]]
        assert list(BatchSampler([], batch_size=3)) == []

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"dataset": "ab", "sampler": [0]},
            {"sampler": [0], "shuffle": True},
            {"dataset": "ab", "batch_size": 0},
            {"dataset": "ab", "batch_size": 2.0},
            {"dataset": "ab", "batch_size": True},
        ],
    )
    def test_batches_that_cannot_be(self, options):
        with pytest.raises(ValueError, match=r"data set or a sampler|own order|whole number"):
            BatchSampler(**options)


class TestCollate:
    @pytest.mark.parametrize(
        ("examples", "dtype", "values"),
        [
            ([1, 2], "int64", [1, 2]),
            ([1.5, 2.0], "float32", [1.5, 2.0]),
            ([1.5, 2], "float32", [1.5, 2.0]),
            ([2, 1.5], "float32", [2.0, 1.5]),
            ([True, 0.5], "float32", [1.0, 0.5]),
            ([True, False], "bool", [True, False]),
            ([True, 2], "int64", [1, 2]),
            ([2**70, 0.5], "float32", [2.0**70, 0.5]),
            ([np.float64(1), np.float64(2)], "float64", [1, 2]),
            ([np.ones(2, "f2"), np.zeros(2, "f2")], "float16", [[1, 1], [0, 0]]),
            ([ol.ones([1]), ol.zeros([1])], "float32", [[1], [0]]),
        ],
    )
    def test_numbers_and_arrays(self, examples, dtype, values):
        batch = default_collate(examples)
        assert batch.dtype == dtype
        assert batch.tolist() == values

    def test_nested(self):
        Pair = collections.namedtuple("Pair", "a b")
        batch = default_collate([{"p": Pair(1, ["x", 2.0])}, {"p": Pair(3, ["y", 4.0])}])
        assert batch["p"][0].tolist() == [1, 3]
        assert batch["p"][1][0] == ["x", "y"]
        assert batch["p"][1][1].tolist() == [2.0, 4.0]

    @pytest.mark.parametrize(
        ("examples", "error", "said"),
        [
            ([np.ones(2), np.ones(3)], ValueError, r"shape.*\(2,\), \(3,\)\. Cut or fill"),
            ([{"a": [1, (np.ones(n),)]} for n in (1, 2)], ValueError, r"\['a'\]\[1\]\[0\]"),
            ([{"a": 1}, {"b": 1}], ValueError, "different keys"),
            ([[1], [1, 2]], ValueError, "different numbers of parts: 1, 2"),
            ([object(), object()], TypeError, "has a object, of which no batch"),
            ([None, None], TypeError, "NoneType"),
            ([], ValueError, "without examples.*batch_sampler give an empty list"),
            ([{"y": 1}, {"y": np.ones(2)}], TypeError, r"kinds .*: int, ndarray at \['y'\]"),
            ([np.float32(1), 2.0], TypeError, "float, float32.*np.float32"),
            ([1, [1, 2]], TypeError, "int, list"),
            ([{"y": 1}, 2], TypeError, "dict, int"),
            (["a", 1], TypeError, "int, str"),
            ([(1, 2**70), (2, 3)], ValueError, r"about 2\*\*70 at \[1\] does not fit into int64"),
            ([np.array([None]), np.array([1])], TypeError, "dtype object"),
        ],
    )  # fmt: skip
    def test_what_makes_no_batch(self, examples, error, said):
        with pytest.raises(error, match=said):
            default_collate(examples)
