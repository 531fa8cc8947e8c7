"""Widgets of an earlier run of the same cell are closed; others stay."""

from __future__ import annotations

import gc

import pytest

from optlab.viz.browser import cell_runs


class Widget:
    """A stand-in for a widget: it registers at creation and records its closing."""

    def __init__(self, log: list[str] | None = None) -> None:
        self.open, self.log = True, log
        cell_runs.close_earlier(self.let_go)

    def let_go(self) -> None:
        self.open = False
        if self.log is not None:
            self.log.append("closed")


@pytest.fixture
def run(monkeypatch):
    """Return a function that sets the running cell, and the message that requested the run."""
    kernelbase = pytest.importorskip("ipykernel.kernelbase")
    header: dict[str, dict[str, str]] = {}

    class Kernel:
        initialized = staticmethod(lambda: True)
        instance = staticmethod(lambda: Kernel)
        get_parent = staticmethod(lambda channel: header)

    def starts(cell: str, message: str) -> None:
        header.update(metadata={"cellId": cell}, header={"msg_id": message})

    monkeypatch.setattr(kernelbase, "Kernel", Kernel)
    monkeypatch.setattr(cell_runs, "_made", {})
    return starts


def test_a_cell_that_runs_again_closes_what_it_made(run):
    run("a", "1")
    first, second = Widget(), Widget()
    run("b", "2")
    other = Widget()
    run("a", "3")
    third = Widget()
    assert [w.open for w in (first, second, other, third)] == [False, False, True, True]


def test_a_widget_that_nobody_holds_is_not_kept(run):
    run("a", "1")
    log: list[str] = []
    Widget(log)
    gc.collect()
    run("a", "2")
    assert Widget().open
    assert not log


def test_without_a_kernel_nothing_is_remembered(run, monkeypatch):
    from ipykernel import kernelbase

    monkeypatch.setattr(kernelbase.Kernel, "initialized", staticmethod(lambda: False))
    Widget()
    assert not cell_runs._made
