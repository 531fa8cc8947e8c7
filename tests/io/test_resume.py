"""A loader's state: the rest of an epoch in another process, to the bit."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import optlab as ol
from optlab.io import BatchSampler, DataLoader, RandomSampler, Sampler

KINDS = [
    pytest.param({}, id="here"),
    pytest.param({"num_workers": 2}, id="workers"),
    pytest.param({"num_workers": 2, "persistent_workers": True}, id="persistent"),
    pytest.param({"num_workers": 2, "worker_type": "thread"}, id="threads"),
]


class Augmented(ol.io.Dataset):
    """Examples with noise from optlab's random numbers."""

    def __len__(self):
        return 11

    def __getitem__(self, index):
        return index + ol.rand([2]) * 0.5


class Stream(ol.io.IterableDataset):
    """The same as a stream."""

    def __iter__(self):
        for index in range(11):
            yield index + ol.rand([2]) * 0.5


def listed(batches):
    return [batch.numpy().tolist() for batch in batches]


def first(loader, count):
    """Take some batches, and leave the loop."""
    found = []
    for batch in loader:
        found.append(batch)
        if len(found) == count:
            break
    return listed(found)


def loader_of(data, **options):
    if not isinstance(data, Stream):
        options = {"shuffle": True, **options}
    return DataLoader(data, batch_size=3, **options)


@pytest.mark.parametrize("data", [Augmented(), Stream()], ids=["examples", "stream"])
@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("done", [0, 1, 3, 4])
def test_the_rest_of_an_epoch_and_those_that_follow(data, options, done):
    ol.seed(5)
    whole = loader_of(data)
    expected = [listed(whole) for _ in range(3)]
    ol.seed(5)
    loader = loader_of(data)
    assert listed(loader) == expected[0]
    batches = iter(loader)
    assert listed(next(batches) for _ in range(done)) == expected[1][:done]
    state = json.loads(json.dumps(loader.state_dict()))
    random = ol.get_rng_state()
    for restored in (True, False):  # the loader's state is enough for the loader
        ol.seed(77)
        later = loader_of(data, **options)
        later.set_state_dict(state)
        if restored:
            ol.set_rng_state(random)
        assert listed(later) == expected[1][done:]
        assert listed(later) == expected[2]
    assert listed(batches) == expected[1][done:]  # the loop that was looked at goes on


@pytest.mark.parametrize("options", KINDS)
def test_a_loader_may_be_set_back_while_its_workers_live(options):
    for data in (Augmented(), Stream()):
        ol.seed(1)
        loader = loader_of(data, **options)
        begun = first(loader, 2)
        state = loader.state_dict()
        rest = []
        for _ in range(2):
            loader.set_state_dict(state)
            assert loader.state_dict() == state
            rest.append(listed(loader))
        assert rest[0] == rest[1]
        ol.seed(1)
        assert begun + rest[0] == listed(loader_of(data))


def test_a_state_of_a_resumed_epoch():
    ol.seed(2)
    expected = listed(loader_of(Augmented()))
    ol.seed(2)
    loader = loader_of(Augmented())
    for done in range(3):
        assert first(loader, 1) == expected[done : done + 1]
        state = loader.state_dict()
        assert (state["epoch"], state["batches"]) == (0, done + 1)
        loader = loader_of(Augmented())
        loader.set_state_dict(state)
        batches = iter(loader)  # begun, but no batch yet
        assert loader.state_dict()["batches"] == done + 1
        batches.close()
        loader = loader_of(Augmented())
        loader.set_state_dict(state)
    assert listed(loader) == expected[3:]


def test_loaders_before_and_between_epochs():
    ol.seed(3)
    loader = loader_of(Augmented())
    unused = loader.state_dict()
    expected = [listed(loader) for _ in range(2)]
    ol.seed(3)
    loader = loader_of(Augmented())
    loader.set_state_dict(unused)
    assert listed(loader) == expected[0]
    later = loader_of(Augmented())
    later.set_state_dict(loader.state_dict())
    assert listed(later) == expected[1]


def test_two_loaders_resume_in_any_order():
    def fresh():
        return loader_of(Augmented()), DataLoader(Augmented(), batch_size=4, shuffle=True)

    ol.seed(4)
    train, test = fresh()
    first(train, 2)
    first(test, 1)
    states = train.state_dict(), test.state_dict()
    random = ol.get_rng_state()
    expected = listed(train), listed(test)  # each begins an epoch
    new = listed(loader_of(Augmented()))
    ol.set_rng_state(random)
    train, test = fresh()
    test.set_state_dict(states[1])
    train.set_state_dict(states[0])
    listed(test), listed(train)
    assert (listed(train), listed(test)) == expected
    assert listed(loader_of(Augmented())) == new  # a third one gets the third number


def test_in_another_process(tmp_path):
    script = """
import sys
import numpy as np
import optlab as ol
data = ol.io.TensorDataset([np.arange(20.0)])
loader = ol.io.DataLoader(data, batch_size=3, shuffle=True, num_workers=int(sys.argv[3]))
if sys.argv[1] == "whole":
    ol.seed(9)
    for _ in range(2):
        print(*[(x.tolist(), ol.rand([1]).item()) for x, in loader], sep="\\n")
elif sys.argv[1] == "save":
    ol.seed(9)
    for number, (x,) in enumerate(loader):
        print((x.tolist(), ol.rand([1]).item()))
        if number == 4:
            ol.save({"loader": loader.state_dict(), "random": ol.get_rng_state()}, sys.argv[2])
            break
else:
    state = ol.load(sys.argv[2])
    loader.set_state_dict(state["loader"])
    ol.set_rng_state(state["random"])
    for _ in range(2):
        print(*[(x.tolist(), ol.rand([1]).item()) for x, in loader], sep="\\n")
"""
    path = str(tmp_path / "state")

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout

    whole = run("whole", path, "0")
    assert run("save", path, "2") + run("continue", path, "1") == whole


class TestSamplers:
    def test_a_generator_of_ones_own(self):
        def fresh(seed):
            sampler = RandomSampler(range(10), generator=np.random.default_rng(seed))
            batches = BatchSampler(sampler=sampler, batch_size=2)
            return DataLoader(np.arange(10), batch_sampler=batches)

        loader = fresh(0)
        listed(loader)
        begun = first(loader, 2)
        state = json.loads(json.dumps(loader.state_dict()))
        later = fresh(1)
        later.set_state_dict(state)
        rest = listed(later)
        assert sorted(x for batch in begun + rest for x in batch) == list(range(10))
        again = fresh(0)
        listed(again)
        assert listed(again) == begun + rest
        assert listed(again) == listed(later)

    def test_one_of_ones_own_with_a_state(self):
        class Counting(Sampler):
            def __init__(self):
                super().__init__(range(6))
                self.start = 0

            def __iter__(self):
                self.start += 1
                return iter([(self.start + i) % 6 for i in range(6)])

            def state_dict(self):
                return {"start": self.start}

            def set_state_dict(self, state_dict):
                self.start = state_dict["start"]

        def fresh():
            return DataLoader(
                np.arange(6), batch_sampler=BatchSampler(sampler=Counting(), batch_size=2)
            )

        loader = fresh()
        listed(loader)
        begun = first(loader, 1)
        later = fresh()
        later.set_state_dict(loader.state_dict())
        assert begun + listed(later) == [[2, 3], [4, 5], [0, 1]]
        assert listed(later) == [[3, 4], [5, 0], [1, 2]]

    def test_another_order_is_never_silent(self):
        class Forgetful(Sampler):
            def __init__(self):
                super().__init__(range(6))
                self.draw = np.random.default_rng(0)

            def __iter__(self):
                return iter(self.draw.permutation(6).tolist())

        def fresh():
            return DataLoader(np.arange(6), batch_sampler=BatchSampler(sampler=Forgetful()))

        loader = fresh()
        listed(loader)
        first(loader, 2)
        later = fresh()
        later.set_state_dict(loader.state_dict())
        with pytest.raises(ValueError, match=r"the first 2 batches .* needs state_dict\(\)"):
            listed(later)

    def test_lists_of_batches(self):
        loader = DataLoader(np.arange(6), batch_sampler=[[0, 1], [2], [3, 4, 5]])
        first(loader, 1)
        later = DataLoader(np.arange(6), batch_sampler=[[0, 1], [2], [3, 4, 5]])
        later.set_state_dict(loader.state_dict())
        assert listed(later) == [[2], [3, 4, 5]]
        short = DataLoader(np.arange(6), batch_sampler=[])
        short.set_state_dict(loader.state_dict())
        with pytest.raises(ValueError, match="ends after 0"):
            listed(short)


def test_a_shorter_stream():
    class Short(ol.io.IterableDataset):
        def __init__(self, length):
            self.length = length

        def __iter__(self):
            return iter(range(self.length))

    loader = DataLoader(Short(9), batch_size=2)
    first(loader, 4)
    later = DataLoader(Short(3), batch_size=2)
    later.set_state_dict(loader.state_dict())
    with pytest.raises(
        ValueError, match="behind batch 4 of its epoch, but this epoch ends after 2"
    ):
        listed(later)


class TestWrongStates:
    def test_each_says_what_is_wrong_and_changes_nothing(self):
        ol.seed(0)
        loader = loader_of(Augmented())
        begun = first(loader, 1)
        good = loader.state_dict()
        for wrong, said in [
            ([1], "is a dict; got list"),
            ({}, "no state of a loader"),
            ({**good, "more": 1}, "no state of a loader"),
            ({**good, "examples": 12}, "with examples=12, but this one has examples=11"),
            ({**good, "batch_size": 4}, "batch_size=4, but this one has batch_size=3"),
            ({**good, "batches": -1}, "altered"),
            ({**good, "batches": 1.0}, "altered"),
            ({**good, "seed": "x"}, "altered"),
            ({**good, "loader": None}, "altered"),
            ({**good, "path": 3}, "altered"),
            ({**good, "sampler": None}, "no state_dict"),
            ({**good, "sampler": {}}, "one key 'sampler'"),
            ({**good, "sampler": {"sampler": {"generator": {}}}}, "is empty"),
        ]:
            with pytest.raises((TypeError, ValueError), match=said):
                loader.set_state_dict(wrong)
            assert loader.state_dict() == good
        loader.set_state_dict(good)
        rest = listed(loader)
        ol.seed(0)
        assert begun + rest == listed(loader_of(Augmented()))

    def test_of_a_generator(self):
        sampler = RandomSampler(range(4), generator=np.random.default_rng(0))
        before = sampler.state_dict()
        for wrong in ({}, {"generator": 3}, {"generator": {"bit_generator": "MT19937"}}):
            with pytest.raises(ValueError, match="not of a RandomSampler with a generator"):
                sampler.set_state_dict(wrong)
        assert sampler.state_dict() == before
