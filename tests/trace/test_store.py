"""Traces in files: saved and loaded alike, appended to, killed, resumed, and without a disk."""

from __future__ import annotations

import json
import os
import random as python_random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import optlab as ol
from tests.optimizer.helpers import EACH, give, random

pytest.importorskip("zarr", reason="needs the extra `store`")


def same(a, b):
    """Whether two arrays are equal to the bit, with their dtypes and shapes."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def content(trace):
    """Return everything that a trace tells, by names."""
    found = {name: trace[name] for name in ("step", "loss", "learning_rate", "seconds")}
    for kind in ("parameters", "gradients", "memory"):
        found |= {f"{kind}/{name}": a for name, a in getattr(trace, kind).items()}
    for group in ("slots", "terms", "norms"):
        for kind, arrays in getattr(trace, group).items():
            found |= {f"{group}/{kind}/{name}": a for name, a in arrays.items()}
    for name in trace.names:
        found[f"steps of {name}"] = trace.steps(name)
        values = trace[name]
        parts = values.items() if hasattr(values, "items") else [("", values)]
        found |= {f"names/{name}/{parameter}": np.asarray(a) for parameter, a in parts}
    return found


def assert_equal(a, b):
    first, second = content(a), content(b)
    assert list(first) == list(second)
    for name, array in first.items():
        assert same(array, second[name]), name
    for name in ("name", "settings", "stopped", "marks", "left_out", "steps_taken"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.costs == b.costs
    assert repr(a) == repr(b)


PROBES = {
    "default": None,
    "toy": "toy",
    "light": "light",
    "full": "full",
    "sparse": [ol.probes.Values(every=3), ol.probes.Norms(geometric=2), ol.probes.PCA(every=2)],
    "snapshots": [ol.probes.Snapshots(every=4), ol.probes.Metric("m", lambda: 3)],
    "memory": ["norms", "memory"],
}

#: What may happen to a run: a step of some parameters, of none, a mark, a log, a change of rate.
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.sampled_from(["ab", "a", "b", ""])),
        st.tuples(st.just("mark"), st.text(max_size=5)),
        st.tuples(st.just("log"), st.sampled_from(["x/y", "z"])),
        st.tuples(st.just("rate"), st.sampled_from([0.0, 0.5, 1e-3])),
    ),
    max_size=14,
)
VALUES = st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf, 1e-45, -2.5])


def run(events, probes, rule="Adam", value=1.0, dtype="float32", **options):
    a = ol.Parameter(np.asarray(random(2, 3), dtype), name="a/1")
    b = ol.Parameter(np.asarray(random(2, seed=1), "float64"), name="b")
    optimizer = EACH[rule](parameters=[a, b], weight_decay=0.1)
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        ol.record(optimizer, probes=probes, **options) as trace,
    ):
        warnings.simplefilter("ignore")
        for what, how in events:
            if what == "step":
                for p, name in ((a, "a"), (b, "b")):
                    if name in how:
                        give(p, np.full(p.shape, value))
                optimizer.step()
                optimizer.clear_grad(set_to_zero=False)
            elif what == "mark":
                trace.mark(how)
            elif what == "log":
                trace.log(how, [value, 1.0])
            else:
                optimizer.set_lr(how)
    return trace


class TestSaveAndLoad:
    @settings(
        max_examples=12,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(
        events=EVENTS,
        probes=st.sampled_from(list(PROBES)),
        rule=st.sampled_from(["Adam", "SGD", "RMSProp", "Lamb"]),
        value=VALUES,
        dtype=st.sampled_from(["float32", "float64", "float16"]),
        every=st.integers(1, 3),
    )
    def test_is_the_identity(self, tmp_path, events, probes, rule, value, dtype, every):
        trace = run(events, PROBES[probes], rule, value, dtype, every=every)
        assert_equal(trace, ol.load_trace(trace.save(tmp_path / "run.zarr")))

    @settings(
        max_examples=6,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(
        events=EVENTS,
        probes=st.sampled_from(list(PROBES)),
        value=VALUES,
        every=st.integers(1, 3),
        flush=st.integers(1, 5),
    )
    def test_a_run_that_is_written_as_it_goes(self, tmp_path, events, probes, value, every, flush):
        path = tmp_path / f"{time.monotonic_ns()}.zarr"
        trace = run(events, PROBES[probes], value=value, every=every, to=path, flush=flush)
        assert_equal(trace, ol.load_trace(path))
        whole = run(events, PROBES[probes], value=value, every=every)
        first, second = content(trace), content(whole)
        assert list(first) == list(second)
        for name, array in first.items():
            if name not in ("seconds", "names/seconds/") and "time " not in name:
                assert same(array, second[name]), name

    def test_a_loaded_trace_saves_again(self, tmp_path):
        trace = run([("step", "ab")] * 5, "full")
        once = ol.load_trace(trace.save(tmp_path / "once.zarr"))
        assert_equal(trace, ol.load_trace(once.save(tmp_path / "twice.zarr")))

    def test_a_trace_replaces_a_trace_and_nothing_else(self, tmp_path):
        path = tmp_path / "run.zarr"
        run([("step", "ab")] * 5, "toy").save(path)
        trace = run([("step", "ab")] * 2, "toy")
        assert_equal(trace, ol.load_trace(trace.save(path)))
        assert [p.name for p in tmp_path.iterdir()] == ["run.zarr"]
        other = tmp_path / "thesis"
        other.mkdir()
        with pytest.raises(FileExistsError, match="exists and is no trace"):
            trace.save(other)
        (other / "a.txt").write_text("b")
        with pytest.raises(FileExistsError, match="exists and is no trace"):
            run([], "toy", to=other)

    def test_settings_keep_their_types(self, tmp_path):
        given = {
            "class": "X",
            "betas": (0.9, [float("inf")]),
            "n": None,
            "d": {"tuple": [1]},
            "b": True,
        }
        trace = ol.trace.Trace("x", given)
        assert ol.load_trace(trace.save(tmp_path / "x.zarr")).settings == given

    def test_what_is_no_trace(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no trace at"):
            ol.load_trace(tmp_path / "nothing")
        with pytest.raises(ValueError, match="holds no trace"):
            ol.load_trace(tmp_path)
        path = ol.trace.Trace("x").save(tmp_path / "x.zarr")
        file = path / "zarr.json"
        text = json.loads(file.read_text())
        text["attributes"]["version"] = 99
        file.write_text(json.dumps(text))
        with pytest.raises(ValueError, match="has version 99 of the format"):
            ol.load_trace(path)

    def test_arrays_are_read_when_they_are_asked_for(self, tmp_path):
        trace = run([("step", "ab")] * 5, "toy")
        path = trace.save(tmp_path / "x.zarr")
        for folder in ("gradient", "slot moment1"):
            for file in (path / "columns" / folder).rglob("c/**/*"):
                if file.is_file():
                    file.unlink()
        loaded = ol.load_trace(path)
        assert same(loaded.parameters["b"], trace.parameters["b"])
        assert not same(loaded.gradients["b"], trace.gradients["b"])


class TestAsItGoes:
    def test_memory_holds_the_rows_since_the_last_flush_alone(self, tmp_path):
        w = ol.Parameter(random(1000), name="w")
        optimizer = EACH["Adam"](parameters=[w])
        most = 0
        with ol.record(optimizer, "toy", to=tmp_path / "x.zarr", flush=10, limit="1 MB") as trace:
            for step in range(200):
                give(w, random(1000, seed=step))
                optimizer.step()
                optimizer.clear_grad()
                held = sum(
                    len(c.rows) + sum(map(len, c.blocks))
                    for k, c in trace.columns.items()
                    if k[0] == "gradient"
                )
                most = max(most, held)
        assert most <= 10
        assert trace.gradients["w"].shape == (200, 1000)
        assert not trace.left_out

    def test_what_lies_in_the_file_is_not_read_at_the_end(self, tmp_path):
        w = ol.Parameter(np.ones(50), name="w")
        optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        probes = [ol.probes.Snapshots(every=2), ol.probes.Norms(every=2)]
        with ol.record(optimizer, probes=probes, to=tmp_path / "run.zarr", flush=4) as trace:
            for _ in range(9):  # the last flush has no new snapshot
                (w * w).sum().backward()
                optimizer.step()
        columns = [*trace.columns.values(), *trace.records["Snapshots"].columns.values()]
        assert all(column._read is None for column in columns)
        assert trace["snapshot"]["w"].shape == (4, 50)

    def test_a_small_limit_flushes_earlier_and_leaves_nothing_out(self, tmp_path):
        events = [("step", "ab")] * 40
        trace = run(events, "toy", to=tmp_path / "x.zarr", flush=1000, limit=4000)
        assert not trace.left_out
        assert len(trace.gradients["b"]) == 40

    def test_it_can_be_read_while_it_runs(self, tmp_path):
        path = tmp_path / "x.zarr"
        w = ol.Parameter(random(3), name="w")
        optimizer = EACH["Adam"](parameters=[w])
        with ol.record(optimizer, "toy", to=path, flush=4) as trace:
            for step in range(11):
                give(w, random(3, seed=step))
                optimizer.step()
                optimizer.clear_grad()
                if step >= 3:
                    seen = ol.load_trace(path)
                    assert len(seen) == (step + 1) // 4 * 4
                    assert same(seen.parameters["w"], trace.parameters["w"][: len(seen) + 1])
        assert len(ol.load_trace(path)) == 11

    def test_a_path_that_cannot_be_written_is_said_once(self, tmp_path):
        (tmp_path / "file").write_text("no folder")
        with pytest.warns(ol.trace.TraceWarning, match="the trace cannot be written") as told:
            trace = TestAsItGoes.long_run(tmp_path / "file" / "x.zarr")
        assert len(told) == 1
        assert len(trace.gradients["w"]) == 30
        assert "the file" in trace.left_out[0]

    def test_a_full_disk_is_said_once_and_what_was_written_stays(self, tmp_path, monkeypatch):
        from zarr.storage import LocalStore

        path, real, count = tmp_path / "x.zarr", LocalStore.set, []

        async def full(self, *given):
            count.append(1)
            if len(count) > 90:
                raise OSError(28, "No space left on device")
            return await real(self, *given)

        monkeypatch.setattr(LocalStore, "set", full)
        with pytest.warns(ol.trace.TraceWarning, match="No space left on device") as told:
            trace = TestAsItGoes.long_run(path)
        assert len(told) == 1
        assert len(trace) == len(trace.gradients["w"]) == 30
        seen = ol.load_trace(path)
        assert 0 < len(seen) < 30
        assert same(seen.gradients["w"], trace.gradients["w"][: len(seen)])

    @staticmethod
    def long_run(path):
        w = ol.Parameter(random(3), name="w")
        optimizer = EACH["Adam"](parameters=[w])
        with ol.record(optimizer, "toy", to=path, flush=3) as trace:
            for step in range(30):
                give(w, random(3, seed=step))
                optimizer.step()
                optimizer.clear_grad()
        return trace

    @pytest.mark.parametrize("flush", [0, 1.5, None])
    def test_wrong_flush(self, flush):
        optimizer = EACH["SGD"](parameters=[ol.Parameter([1.0])])
        with pytest.raises(ValueError, match="flush must be a whole number of at least 1"):
            ol.record(optimizer, flush=flush)


def piece(path, steps, state=None, **options):
    """Take steps in a process of its own, so to say: from a state, into a store."""
    weights, of_optimizer, before = state or (random(4), None, 0)
    w = ol.Parameter(weights, name="w")
    optimizer = EACH["Adam"](parameters=[w])
    if of_optimizer is not None:
        optimizer.set_state_dict(of_optimizer)
    with ol.record(optimizer, to=path, **options) as trace:
        for step in range(before, before + steps):
            trace.log("number", step)
            give(w, random(4, seed=step))
            optimizer.step()
            optimizer.clear_grad()
    return trace, (w.numpy(), optimizer.state_dict(), before + steps)


class TestResume:
    PROBES = [
        lambda: "toy",
        lambda: [
            ol.probes.Values(every=3),
            ol.probes.Norms(geometric=2),
            ol.probes.Projection(every=2),
        ],
    ]

    @pytest.mark.parametrize("probes", PROBES)
    @pytest.mark.parametrize("checkpoint", [10, 7, 4])
    def test_a_resumed_run_goes_on_in_its_trace(self, tmp_path, probes, checkpoint):
        """It was killed after step 10, and comes from the checkpoint of an earlier step."""
        whole, _ = piece(None, 25, probes=probes())
        path = tmp_path / "x.zarr"
        _, state = piece(tmp_path / "other.zarr", checkpoint, probes=probes())
        piece(path, 10, probes=probes(), flush=4)
        resumed, _ = piece(path, 25 - checkpoint, state, probes=probes(), flush=4)
        for trace in (resumed, ol.load_trace(path)):
            first, second = content(trace), content(whole)
            assert list(first) == list(second)
            for name, array in first.items():
                if "seconds" in name:
                    assert (np.diff(array) >= 0).all()
                else:
                    assert same(array, second[name]), name

    def test_another_run_is_not_written_into_it(self, tmp_path):
        path = tmp_path / "x.zarr"
        piece(path, 10)
        with pytest.raises(FileExistsError, match="holds a trace of 10 steps, and this optimizer"):
            piece(path, 10)
        assert len(ol.load_trace(path)) == 10

    def test_steps_that_were_lost_are_told(self, tmp_path):
        path = tmp_path / "x.zarr"
        piece(path, 5)
        _, state = piece(None, 8)
        trace, _ = piece(path, 3, state)
        assert trace.step.tolist() == [1, 2, 3, 4, 5, 9, 10, 11]
        assert trace.left_out == [
            "steps 6 to 8, which were not written before the run was interrupted."
        ]

    def test_a_probe_that_begins_anew_says_so(self, tmp_path):
        path = tmp_path / "x.zarr"
        _, state = piece(path, 5, probes=[ol.probes.PCA()])
        trace, _ = piece(path, 3, state, probes=[ol.probes.PCA()])
        assert trace.left_out == ["PCA: steps up to 5; the run was resumed."]
        assert trace.steps("pca").tolist() == [6, 7, 8]
        assert trace["pca"].shape == (3, 2)


_ENDLESS = """
import sys
import numpy as np
import optlab as ol

w = ol.Parameter(np.arange(1.0, 41.0), name="w")
optimizer = ol.optimizer.Adam(0.01, parameters=[w])
probes = [ol.probes.Values(), ol.probes.Norms(every=3), ol.probes.PCA(every=4)]
with ol.record(optimizer, probes, to=sys.argv[1], flush=3) as trace:
    print("go", flush=True)
    while True:
        (w * w).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
"""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_run_that_is_killed_at_any_moment_leaves_every_flush(tmp_path):
    w = ol.Parameter(np.arange(1.0, 41.0), name="w")
    optimizer = ol.optimizer.Adam(0.01, parameters=[w])
    with ol.record(optimizer, "toy") as whole:
        for _ in range(3000):
            (w * w).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
    generator = python_random.Random(0)
    environment = {**os.environ, "PYTHONPATH": str(Path(ol.__file__).parents[1])}
    lengths = []
    for attempt in range(int(os.environ.get("OPTLAB_KILLS", "8"))):
        path = tmp_path / f"{attempt}.zarr"
        child = subprocess.Popen(
            [sys.executable, "-c", _ENDLESS, str(path)],
            stdout=subprocess.PIPE, env=environment, text=True,
        )  # fmt: skip
        assert child.stdout.readline() == "go\n"
        deadline = time.monotonic() + 60
        while (
            not (path / "zarr.json").exists()
            or b"optlab.trace" not in (path / "zarr.json").read_bytes()
        ):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(generator.uniform(0.0, 0.6))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        trace = ol.load_trace(path)
        n = len(trace)
        lengths.append(n)
        assert n >= 3
        assert n % 3 == 0
        for name, arrays in {"g": trace.gradients, "p": trace.parameters, **trace.slots}.items():
            wanted = {"g": whole.gradients, "p": whole.parameters, **whole.slots}[name]["w"]
            assert same(arrays["w"], wanted[: len(arrays["w"])]), name
        assert len(trace.parameters["w"]) == n + 1
        assert trace.steps("norms").tolist() == list(range(1, n + 1, 3))
        assert trace["pca"].shape == (len(trace.steps("pca")), 2)
        assert np.isfinite(trace["pca"]).all()
    assert len(set(lengths)) > 1
