"""Tests of the pause of Python's garbage collection."""

import gc

import pytest

import optlab as ol
from optlab.backend.garbage import collection_paused


@pytest.fixture
def collecting():
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_a_pause_ends_with_the_outermost_block(collecting):
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_pause_ends_after_an_error(collecting):
    with pytest.raises(ZeroDivisionError), collection_paused():
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_a_choice_of_the_user_stays(collecting):
    gc.disable()
    with collection_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_pictures_and_first_names_are_made_without_a_collection(collecting, monkeypatch):
    ol.explore  # noqa: B018 - imported before
    found = []
    explorer = ol.explore()
    made = type(explorer).picture
    monkeypatch.setattr(
        type(explorer), "picture", lambda self: (found.append(gc.isenabled()), made(self))[1]
    )
    explorer._repr_mimebundle_()
    assert found == [False]
    assert gc.isenabled()
    monkeypatch.delitem(vars(ol), "explore")
    monkeypatch.setattr("importlib.import_module", lambda place: found.append(gc.isenabled()))
    with pytest.raises(AttributeError):  # None has no `explore`
        ol.explore  # noqa: B018
    assert found == [False, False]
    assert gc.isenabled()
