"""Traces as xarray and back, as pandas, and in parts."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give, random


def run(steps=12, **options):
    a = ol.Parameter(random(2, 3, dtype="float32"), name="a/1")
    b = ol.Parameter(random(2, seed=1), name="b")
    optimizer = ol.optimizer.Adam(0.1, parameters=[a, b], weight_decay=0.1)
    with ol.record(optimizer, **options) as trace:
        for step in range(steps):
            give(a, random(2, 3, seed=step))
            give(b, random(2, seed=step))
            optimizer.step()
            optimizer.clear_grad()
            if step % 4 == 3:
                trace.log("x/y", step)
                trace.mark(f"after {step}")
    return trace


OPTIONS = {
    "toy": {"probes": "toy"},
    "norms": {"probes": ["norms"], "every": 2},
    "light": {"probes": "light"},
    "memory": {"probes": ["values", "memory"]},
    "probes": {
        "probes": [
            ol.probes.Values(every=3), ol.probes.Norms(), ol.probes.Angle(every=2),
            ol.probes.PCA(), ol.probes.Histogram(bins=4),
        ],
    },
}  # fmt: skip


def content(trace):
    found = {"step": trace.step}
    for name in trace.names:
        values = trace[name]
        parts = values.items() if hasattr(values, "items") else [("", values)]
        found |= {f"{name}|{p}": np.asarray(x) for p, x in parts}
        found[f"steps of {name}"] = trace.steps(name)
    return found


def same(first, second):
    a, b = content(first), content(second)
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert np.array_equal(a[name], b[name], equal_nan=True), name


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_xarray_and_back(options):
    trace = run(**options)
    back = ol.trace.Trace.from_xarray(trace.to_xarray())
    same(trace, back)
    assert back.marks == trace.marks
    assert back.settings == trace.settings
    assert back.left_out == trace.left_out


def test_what_is_no_trace():
    xarray = pytest.importorskip("xarray")
    with pytest.raises(TypeError, match="from_xarray takes what"):
        ol.trace.Trace.from_xarray(3)
    with pytest.raises(ValueError, match="no attribute 'name'"):
        ol.trace.Trace.from_xarray(xarray.Dataset())


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_a_selection_of_everything_is_everything(options):
    trace = run(**options)
    same(trace, trace.sel())
    same(trace, trace.sel(step=slice(None, None)))


def test_selections():
    trace = run(probes="toy")
    some = trace.sel(step=slice(4, 8), parameter="b")
    assert some.step.tolist() == [4, 5, 6, 7, 8]
    assert list(some.parameters) == ["b"]
    assert np.array_equal(some.parameters["b"], trace.parameters["b"][3:9])
    assert np.array_equal(some["moment1"]["b"], trace["moment1"]["b"][3:8])
    assert some["x/y"].tolist() == [3, 7]
    assert some.marks == [(4, "after 3"), (8, "after 7")]
    assert trace.sel(step=[2, 11]).step.tolist() == [2, 11]
    assert trace.sel(step=5)["gradient"]["b"].tolist() == [trace["gradient"]["b"][4].tolist()]
    with pytest.raises(KeyError, match="step 40 was not recorded; the nearest is 12"):
        trace.sel(step=40)
    with pytest.raises(KeyError, match="there is no parameter 'c'; there is a/1, b"):
        trace.sel(parameter="c")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_a_quantity_selects_as_the_trace_does(options):
    trace = run(**options)
    of_the_whole_run = {name for record in trace.records.values() for name in record.results()}
    checked = 0
    for name in [name for name in trace.names if name not in of_the_whole_run]:
        own = trace.steps(name).tolist()
        for step in (None, own[0], own[-1], own[:2], slice(own[0], own[-1]), slice(own[-1], None)):
            for parameter in (None, "b", ["b", "a/1"]):
                of_parameters = isinstance(trace[name], dict)
                if parameter is not None and not of_parameters:
                    continue
                found = trace[name].sel(step=step, parameter=parameter)
                expected = trace.sel(step=step, parameter=parameter)[name]
                assert type(found) is type(expected)
                if of_parameters and parameter != "b":
                    assert found.keys() == expected.keys()
                    pairs = [(found[k], expected[k]) for k in found]
                else:
                    pairs = [(found, expected)]
                for one, other in pairs:
                    assert np.array_equal(one, other, equal_nan=True), (name, step, parameter)
                    checked += 1
    assert checked > 6


def test_what_a_quantity_cannot_select():
    trace = run(probes=[ol.probes.Norms(every=5)])
    norms = trace["norm of gradient"]
    with pytest.raises(KeyError, match="step 5 was not recorded; the nearest is 6"):
        norms.sel(step=5)
    with pytest.raises(KeyError, match="there is no parameter 'c'; there is a/1, b"):
        norms.sel(parameter="c")
    with pytest.raises(KeyError, match="there is no parameter 'b'; there is none"):
        trace["loss"].sel(parameter="b")
    assert norms.sel(parameter="b").sel(step=6)["b"].shape == (1,)
    with pytest.raises(TypeError, match=r"this array\nwas computed|was computed from one"):
        (norms.sel(parameter="b") * 2).view(type(trace["loss"])).sel(step=1)


def test_dataframes():
    trace = run(probes=[ol.probes.Norms(), ol.probes.Angle(every=2)])
    frame = trace.to_dataframe()
    assert frame.index.tolist() == list(range(1, 13))
    assert np.array_equal(frame["loss"], trace.loss)
    assert np.array_equal(frame["norm of moment1/b"], trace.norms["moment1"]["b"])
    angles = frame["angle/b"].dropna()
    assert angles.index.tolist() == [1, 3, 5, 7, 9, 11]
    assert np.array_equal(angles, trace["angle"]["b"])


def test_one_parameter_answers_to_its_name():
    w = ol.Parameter([3.0, 1.0], name="w")
    optimizer = ol.optimizer.Adam(0.1, parameters=[w])
    with ol.record(optimizer) as trace:
        optimizer.minimize((w * w).sum())
    moment = trace["moment1"]
    assert isinstance(moment, np.ndarray)
    assert np.array_equal(moment["w"], trace.slots["moment1"]["w"])
    assert type(moment["w"]) is type(moment[0:1]) is type(moment + 1) is np.ndarray
    assert list(moment.keys()) == ["w"]
    with pytest.raises(KeyError, match="there is no parameter 'v'; there is w"):
        moment["v"]
