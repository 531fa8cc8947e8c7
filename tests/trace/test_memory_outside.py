"""Arrays that a user creates in NumPy outside all operations: verify=True finds them."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol


def stepping(kept: list, size: int):
    w = ol.to_tensor(np.ones((256, 256)), requires_grad=True)

    def step():
        y = np.sum(np.exp(w))
        kept.append(np.zeros(size))
        y.backward()

    step()
    return step


def test_numpy_s_own_arrays_are_told_of_where_the_allocators_are_asked():
    trace = ol.memory.report(stepping([], 10**6), verify=True)
    for said in (str(trace), trace._repr_html_()):
        assert "7.63 MiB (at " in said
        assert "are of arrays that optlab did not make: NumPy" in said
        assert "7.63 MiB of them are alive at the end." in said
        assert "Checked against" not in said


def test_the_figure_says_it_too():
    viz = pytest.importorskip("optlab.viz")
    pytest.importorskip("plotly")
    trace = ol.memory.report(stepping([], 10**6), verify=True)
    said = " ".join(note.text for note in viz.memory(trace).layout.annotations)
    assert "arrays that optlab did not make" in said.replace("<br>", " ")


def test_what_is_little_and_what_was_not_asked_is_not_told():
    assert "did not make" not in str(ol.memory.report(stepping([], 1000), verify=True))
    assert "did not make" not in str(ol.memory.report(stepping([], 10**6)))
    assert "Checked against" in str(ol.memory.report(stepping([], 1000), verify=True))


def test_the_documents_say_it_first():
    for function in (ol.memory.report, ol.memory.ledger):
        first = " ".join(function.__doc__.split("Parameters")[0].split())
        assert "outside of Tensors" in first
        assert "verify=True" in first
