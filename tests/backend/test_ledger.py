"""The ledger on floor 0: arrays, their owners and their release; and the pool of a device."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from optlab.backend.memory.high_water import HighWater, bytes_of
from optlab.backend.memory.ledger import Ledger


@pytest.fixture
def ledger():
    one = Ledger(verify=True)
    one.open()
    yield one
    one.close()


def test_a_view_is_its_owner(ledger):
    x = np.zeros((100, 100))
    entry = ledger.hold(x[3:5, ::2], "temporary", "slice", "forward")
    assert entry is ledger.hold(x, "temporary")
    assert entry.nbytes == ledger.alive == 80_000


def test_memory_of_others_is_not_counted(ledger):
    shared = np.frombuffer(bytearray(800))
    assert ledger.hold(shared, "data") is None
    assert ledger.hold(np.float64(3.0), "data") is None
    assert ledger.alive == 0


def test_what_was_there_is_told_from_what_is_new():
    old = np.zeros(1000)
    ledger = Ledger()
    ledger.open()
    new = np.zeros(1000)
    assert ledger.hold(old, "data").was_there
    assert not ledger.hold(new, "data").was_there
    ledger.close()


def test_an_end_is_seen_at_the_next_event(ledger):
    x = np.zeros(1000)
    entry = ledger.hold(x, "temporary")
    ledger.event("one", "forward")
    assert entry.died is None
    del x
    ledger.event("two", "forward")
    assert entry.died == 2
    assert ledger.alive == 0


def test_memory_that_is_used_again_is_another_array(ledger):
    for _ in range(20):
        x = np.zeros(1000)
        ledger.hold(x, "temporary")
        ledger.event("made", "forward")
        del x
    ledger.event("last", "forward")
    assert len(ledger.entries) == 20
    assert ledger.alive == 0


def test_what_is_saved_twice_is_saved_until_both_let_go(ledger):
    class Keeper:
        pass

    x, one, other = np.zeros(1000), Keeper(), Keeper()
    entry = ledger.hold(x, "temporary")
    ledger.keeps(one, [entry])
    ledger.keeps(other, [entry, None])
    assert entry.present_role == "saved"
    ledger.frees(one)
    assert entry.present_role == "saved"
    del other
    ledger.event("gone", "")
    assert entry.present_role == "temporary"


def test_the_highest_point_between_two_events_is_measured(ledger):
    with ledger.paused():
        ledger.event("before", "")
    x = np.zeros(100_000)
    del x
    with ledger.paused():
        ledger.event("after", "")
    assert ledger.rows[-1].rise == pytest.approx(800_000, rel=0.01)


class _Hook:
    """The parts of CuPy's memory hook that the ledger uses."""

    set_now = None

    def __enter__(self):
        type(self).set_now = _Hook.set_now = self

    def __exit__(self, *_):
        _Hook.set_now = None


@pytest.fixture
def device(monkeypatch):
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(MemoryHook=_Hook, is_available=lambda: True),
        get_default_memory_pool=lambda: SimpleNamespace(used_bytes=lambda: 512),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return cupy


def test_the_pool_of_a_device_is_counted(device):
    high_water = HighWater()
    high_water.start()
    hook = _Hook.set_now
    hook.malloc_postprocess(device_id=0, size=5000, mem_size=5120, mem_ptr=1, pmem_id=1)
    hook.malloc_postprocess(device_id=0, size=900_000, mem_size=900_096, mem_ptr=2, pmem_id=2)
    hook.free_postprocess(device_id=0, mem_size=900_096, mem_ptr=2, pmem_id=2)
    grown, highest = high_water.reading()
    assert 5120 <= grown < 10_000
    assert highest >= 905_216
    array = SimpleNamespace(data=SimpleNamespace(mem=SimpleNamespace(ptr=1, size=5120)))
    assert bytes_of(array) == 5120
    assert not high_water.was_there(array)
    array.data.mem.ptr = 77
    assert high_water.was_there(array)
    high_water.mark()
    assert high_water.reading()[0] < 5120
    high_water.stop()
    assert _Hook.set_now is None
