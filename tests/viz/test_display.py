"""The display registry: the renderer of a result, and errors where there is none."""

import importlib.metadata
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import pytest

from optlab.backend import display

DRAWS = SimpleNamespace(figure=lambda result: "a figure", mimebundle=lambda result: {})


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Undo all registrations of a test after it."""
    monkeypatch.setattr(display, "_renderers", {})


@pytest.fixture
def declared(monkeypatch):
    """Return a function that lets packages declare entry points."""

    def declare(**values):
        points = EntryPoints(
            EntryPoint(name, value, display.GROUP) for name, value in values.items()
        )
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)

    return declare


def test_what_was_registered_is_found_before_what_is_declared(declared):
    declared(comparison="nowhere:nothing")
    display.register("comparison", DRAWS)
    assert display.renderer("comparison") is DRAWS


def test_what_a_package_declares_is_loaded_once(declared):
    declared(comparison="optlab.viz.renderers:comparison")
    found = display.renderer("comparison")
    declared()
    assert display.renderer("comparison") is found


def test_a_missing_library_names_the_extra(declared):
    declared(comparison="no_such_library_for_pictures:draw")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'optlab\[lab\]'"):
        display.renderer("comparison")


def test_a_fault_of_ours_is_not_called_a_missing_library(declared):
    declared(comparison="optlab.viz.no_such_room:draw")
    with pytest.raises(ModuleNotFoundError, match=r"optlab\.viz\.no_such_room"):
        display.renderer("comparison")


def test_an_unknown_kind_lists_the_known_ones(declared):
    declared(comparison="nowhere:nothing")
    with pytest.raises(ModuleNotFoundError, match="what can be drawn: comparison"):
        display.renderer("sweep")


def test_where_nothing_is_installed_the_way_out_is_said(declared):
    declared()
    with pytest.raises(ModuleNotFoundError, match="no renderer is installed"):
        display.renderer("comparison")


def test_what_cannot_draw_is_refused():
    with pytest.raises(TypeError, match=r"needs a function mimebundle\(result\)"):
        display.register("comparison", SimpleNamespace(figure=print))
