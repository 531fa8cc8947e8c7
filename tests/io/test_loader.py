"""DataLoader: batches, and an order that the seed fixes for any number of workers."""

from __future__ import annotations

import copy
import random
import sys
import threading

import numpy as np
import pytest

import optlab as ol
from optlab.io import DataLoader, TensorDataset

ROWS = TensorDataset([np.arange(10), np.arange(10) * 1.5])
KINDS = [
    pytest.param({"num_workers": 0}, id="here"),
    pytest.param({"num_workers": 1}, id="one"),
    pytest.param({"num_workers": 3}, id="three"),
    pytest.param({"num_workers": 2, "worker_type": "thread"}, id="threads"),
    pytest.param({"num_workers": 2, "persistent_workers": True}, id="persistent"),
    pytest.param({"num_workers": 2, "worker_type": "spawn"}, id="fresh", marks=pytest.mark.slow),
]
if sys.platform == "win32":  # where every process is a fresh one
    KINDS = [kind for kind in KINDS if kind.id in ("here", "threads", "fresh")]


class Drawing(ol.io.Dataset):
    """A data set that draws at random while it reads."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index):
        return {"i": index, "drawn": ol.rand([2]), "text": f"number {index}"}


class DrawingGlobally(ol.io.Dataset):
    """A data set that draws from the generators of Python and NumPy."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index):
        return random.random(), np.random.random()  # noqa: NPY002


class GlobalStream(ol.io.IterableDataset):
    """The same as an iterable data set."""

    def __iter__(self):
        for i in range(10):
            yield DrawingGlobally()[i]


class Stream(ol.io.IterableDataset):
    """An iterable data set that draws."""

    def __init__(self, count=7):
        self.count = count

    def __iter__(self):
        for i in range(self.count):
            yield i, ol.rand([1])


def comparable(batch):
    """Return a batch in a comparable form."""
    if isinstance(batch, ol.Tensor):
        return batch.tolist()
    if isinstance(batch, dict):
        return {key: comparable(part) for key, part in batch.items()}
    return [comparable(part) for part in batch] if isinstance(batch, list) else batch


def epochs(loader, count=2):
    return [[comparable(batch) for batch in loader()] for _ in range(count)]


class TestBatches:
    def test_in_order(self):
        loader = DataLoader(ROWS, batch_size=4)
        batches = list(loader)
        assert len(batches) == len(loader) == 3
        assert [x.tolist() for x, _ in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        assert all(isinstance(part, ol.Tensor) for batch in batches for part in batch)
        assert not batches[0][1].requires_grad

    def test_drop_last(self):
        loader = DataLoader(ROWS, batch_size=4, drop_last=True)
        assert [x.tolist() for x, _ in loader()] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert len(loader) == 2
        streamed = DataLoader(Stream(), batch_size=3, drop_last=True)
        assert [x.tolist() for x, _ in streamed] == [[0, 1, 2], [3, 4, 5]]

    def test_many_rows_at_once_give_what_one_by_one_gives(self):
        class OneByOne(TensorDataset):
            def __getitem__(self, index):
                return super().__getitem__(index)

        arrays = [np.asfortranarray(np.random.default_rng(0).normal(size=(10, 3))), np.arange(10)]
        part = [3, 1, 4, 1, 5]
        for data in (TensorDataset, OneByOne):
            loader = DataLoader(ol.io.Subset(data(arrays), part), batch_size=2)
            batches = list(loader)
            assert np.array_equal(np.concatenate([x.numpy() for x, _ in batches]), arrays[0][part])
            assert all(type(batch) is list for batch in batches)
            assert all(x.data.flags.c_contiguous for x, _ in batches)

    def test_single_examples(self):
        loader = DataLoader(Drawing(), batch_size=None, shuffle=True)
        examples = list(loader)
        assert len(loader) == 10
        assert sorted(example["i"] for example in examples) == list(range(10))
        assert examples[0]["drawn"].shape == (2,)
        assert [i for i, _ in DataLoader(Stream(3), batch_size=None)] == [0, 1, 2]

    def test_a_collate_function_of_ones_own(self):
        def collate(examples):
            return np.stack([x.data for x, _ in examples]), len(examples), "text"

        for workers in (0, 2):
            loader = DataLoader(
                ROWS, batch_size=5, collate_fn=collate, num_workers=workers, worker_type="thread"
            )
            x, count, text = next(iter(loader))
            assert isinstance(x, ol.Tensor)
            assert (x.tolist(), count, text) == ([0, 1, 2, 3, 4], 5, "text")

    def test_a_batch_sampler(self):
        loader = DataLoader(ROWS, batch_sampler=[[3, 1], [0]])
        assert [x.tolist() for x, _ in loader] == [[3, 1], [0]]
        assert len(loader) == 2

    def test_any_sequence_is_a_data_set(self):
        assert [b.tolist() for b in DataLoader([5.0, 6.0, 7.0], batch_size=2)] == [[5, 6], [7]]
        assert list(DataLoader(["a", "b"], batch_size=2)) == [["a", "b"]]
        assert list(DataLoader([], batch_size=2)) == []

    def test_as_the_documents_use_it(self):
        class Random(ol.io.Dataset):
            def __len__(self):
                return 64

            def __getitem__(self, index):
                image = np.random.random([784]).astype("float32")  # noqa: NPY002
                return image, np.random.randint(0, 9, (1,)).astype("int64")  # noqa: NPY002

        loader = DataLoader(Random(), batch_size=16, shuffle=True, drop_last=True, num_workers=2)
        for _ in range(2):
            batches = list(enumerate(loader()))
            assert len(batches) == 4
            for _, (image, label) in batches:
                assert (image.shape, label.shape) == ((16, 784), (16, 1))
                assert (image.dtype, label.dtype) == (np.float32, np.int64)
        # Workers do not repeat each other's draws from NumPy's global generator.
        rows = np.concatenate([image.numpy() for _, (image, _) in batches])
        assert len(np.unique(rows[:, 0])) == 64


class Computing(ol.io.Dataset):
    """A data set that multiplies matrices while it reads."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index):
        return ol.ones([2, 2]) @ ol.ones([2, 2])


class TestSurroundings:
    @pytest.mark.parametrize("options", KINDS)
    def test_auto_cast_does_not_cast_what_a_data_set_computes(self, options):
        with ol.amp.auto_cast():
            dtypes = [x.dtype for x in DataLoader(Computing(), batch_size=2, **options)]
            assert (ol.ones([2, 2]) @ ol.ones([2, 2])).dtype == "float16"
        assert dtypes == ["float32"] * 2

    def test_a_batch_without_examples(self):
        for data in (ROWS, Computing()):
            with pytest.raises(ValueError, match="without examples"):
                list(DataLoader(data, batch_sampler=[[0], []]))
        loader = DataLoader(Computing(), batch_sampler=[[]], collate_fn=len)
        assert list(loader) == [0]


class TestOrder:
    @pytest.mark.parametrize("options", KINDS)
    @pytest.mark.parametrize("data", [Drawing, Stream])
    def test_it_is_the_same_for_any_workers(self, data, options):
        shuffle = data is Drawing
        ol.seed(3)
        expected = epochs(DataLoader(data(), batch_size=4, shuffle=shuffle))
        ol.seed(3)
        assert epochs(DataLoader(data(), batch_size=4, shuffle=shuffle, **options)) == expected
        if shuffle:
            assert expected[0] != expected[1]
            numbers = [i for batch in expected[0] for i in batch["i"]]
            assert sorted(numbers) == list(range(10))
            assert numbers != sorted(numbers)

    def test_what_else_is_drawn_changes_nothing(self):
        ol.seed(0)
        loader = DataLoader(ROWS, shuffle=True, batch_size=3)
        expected = epochs(loader, 3)
        ol.seed(0)
        loader = DataLoader(ROWS, shuffle=True, batch_size=3)
        ol.rand([2])
        got = epochs(loader, 1)
        ol.rand([2])
        assert got + epochs(loader) == expected

    def test_the_loader_changes_no_other_draws(self):
        ol.seed(0)
        expected = ol.rand([3]).tolist()
        ol.seed(0)
        epochs(DataLoader(Drawing(), shuffle=True, batch_size=3))
        assert ol.rand([3]).tolist() == expected

    @pytest.mark.parametrize("data", [DrawingGlobally, GlobalStream])
    @pytest.mark.parametrize("options", [kind for kind in KINDS if kind.id != "threads"])
    def test_the_global_generators_give_the_same_for_any_workers(self, data, options):
        ol.seed(3)
        expected = epochs(DataLoader(data(), batch_size=4))
        ol.seed(3)
        assert epochs(DataLoader(data(), batch_size=4, **options)) == expected
        drawn = [x for batch in expected[0] + expected[1] for part in batch for x in part]
        assert len(set(drawn)) == 40

    @pytest.mark.parametrize("options", KINDS)
    def test_the_global_generators_are_left_as_they_were(self, options):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        for _ in DataLoader(Drawing(), batch_size=4, **options):
            pass
        drawn = random.random(), np.random.random()  # noqa: NPY002
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        assert drawn == (random.random(), np.random.random())  # noqa: NPY002

    def test_an_epoch_that_is_left_early_counts(self):
        ol.seed(0)
        loader = DataLoader(ROWS, shuffle=True)
        first, second = epochs(loader)
        ol.seed(0)  # the same loader from its start
        next(iter(loader))
        assert epochs(loader, 1) == [second]
        assert first != second

    def test_two_loaders_have_orders_of_their_own(self):
        ol.seed(0)
        one, other = (DataLoader(ROWS, shuffle=True, batch_size=10) for _ in range(2))
        assert epochs(one, 1) != epochs(other, 1)

    def test_a_scope_fixes_it_too(self):
        loader = DataLoader(ROWS, shuffle=True, batch_size=10)
        with ol.random_scope("run", 1, seed=5):
            expected = epochs(loader)
        with ol.random_scope("run", 1, seed=5):
            assert epochs(loader) == expected
        with ol.random_scope("run", 2, seed=5):
            assert epochs(loader) != expected

    def test_a_sampler_that_draws_at_every_step(self):
        class Drawn(ol.io.Sampler):
            def __iter__(self):
                for _ in range(20):
                    yield ol.randint(0, 10, [1]).item()

            def __len__(self):
                return 20

        ol.seed(1)
        sampler = ol.io.BatchSampler(sampler=Drawn(), batch_size=5)
        (batches,) = epochs(DataLoader(ROWS, batch_sampler=sampler), 1)
        assert len({x for x_y in batches for x in x_y[0]}) > 3

    def test_two_epochs_at_once(self):
        for options in ({}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}):
            loader = DataLoader(ROWS, batch_size=4, **options)
            for (a, _), (b, _) in zip(loader, loader, strict=True):
                assert a.tolist() == b.tolist()


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
            ({"num_workers": -1}, "num_workers must be a whole number of at least 0"),
            ({"prefetch_factor": 0}, "prefetch_factor"),
            ({"timeout": -1}, "timeout must be a number of seconds"),
            ({"worker_type": "green"}, "worker_type must be"),
            ({"batch_sampler": [[0]], "shuffle": True}, "leave batch_size, shuffle and"),
            ({"batch_sampler": [[0]], "batch_size": 3}, "leave batch_size, shuffle and"),
            ({"batch_size": None, "drop_last": True}, "no last batch to drop"),
        ],
    )
    def test_values_that_cannot_be(self, options, said):
        with pytest.raises(ValueError, match=said):
            DataLoader(ROWS, **options)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"collate_fn": 3}, "collate_fn must be a function"),
            ({"feed_list": []}, r"does not do feed_list=\[\]: it belongs to static graphs"),
            ({"places": "gpu"}, "does not do places='gpu'"),
            ({"return_list": False}, "return_list=False"),
            ({"use_shared_memory": "yes"}, "through pipes"),
            ({"reader_buffer_size": 4}, "prefetch_factor"),
            ({"bath_size": 3}, "no argument 'bath_size'; did you mean batch_size?"),
            ({"xyz": 3}, r"no argument 'xyz'\."),
        ],
    )
    def test_arguments_that_are_refused_by_name(self, options, said):
        with pytest.raises(TypeError, match=said):
            DataLoader(ROWS, **options)

    def test_arguments_of_paddle_that_say_what_is_so(self):
        DataLoader(ROWS, feed_list=None, places=None, return_list=True, use_shared_memory=False)
        DataLoader(ROWS, use_shared_memory=True, use_buffer_reader=True, reader_buffer_size=2)

    def test_streams_have_no_order_of_ours(self):
        for options in ({"shuffle": True}, {"batch_sampler": [[0]]}):
            with pytest.raises(ValueError, match="come in its own order"):
                DataLoader(Stream(), **options)
        with pytest.raises(TypeError, match="is not known before"):
            len(DataLoader(Stream()))

    def test_what_is_no_data_set(self):
        with pytest.raises(TypeError, match="takes a data set with __getitem__"):
            DataLoader(iter([1, 2]))

    def test_an_error_in_the_data_set_says_which_example(self):
        class Bad(ol.io.Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, index):
                return 1 / (index - 7)

        with pytest.raises(ZeroDivisionError) as caught:
            list(DataLoader(Bad(), batch_size=4))
        assert caught.value.__notes__ == [
            "DataLoader was reading example 7 of the data set (batch 1)."
        ]
        with pytest.raises(IndexError) as caught:
            list(DataLoader(ROWS, batch_sampler=[[0, 99]]))
        assert "example 99" in caught.value.__notes__[0]

    def test_copies_and_repr(self):
        loader = DataLoader(ROWS, batch_size=4, num_workers=2, persistent_workers=True)
        list(loader)
        twin = copy.deepcopy(loader)
        assert len(list(twin)) == 3
        assert twin._pool is not loader._pool
        assert repr(loader) == "DataLoader(TensorDataset, 3 batches, batch_size=4, num_workers=2)"

    def test_a_loader_is_used_from_another_thread(self):
        loader = DataLoader(ROWS, batch_size=5, num_workers=1)
        found = []
        thread = threading.Thread(target=lambda: found.extend(x.tolist() for x, _ in loader))
        thread.start()
        thread.join(120)
        assert found == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
