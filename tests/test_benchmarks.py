"""The machinery of ``python -m benchmarks``; no timing is asserted here."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import browser, memory, recompute, recompute_models
from benchmarks.__main__ import main
from benchmarks.processes import ROOT, FreshInterpreter
from benchmarks.report import as_json, as_text
from benchmarks.row import Peer, Row, all_rows, at_least, at_most, rows_of, select, unbounded
from benchmarks.rows import operations
from benchmarks.runner import Comparison, Contestant, Result, Settings, Spread, compare, measure

FAKE_ROWS = """
import os
import time
from benchmarks.row import Peer, Row, at_least, at_most, unbounded

def nothing():
    return lambda: None

def sleeper():
    print("a library that prints")
    return lambda: time.sleep(1e-4)

def broken():
    raise RuntimeError("this factory is broken")

def leaves():
    return lambda: os._exit(3)

ROWS = [
    Row("quick", "nothing beside a short sleep", "call", nothing,
        [Peer("sleep", sleeper, "numpy", at_least(1.0), threads=(1, 2)),
         Peer("nothing", nothing, "numpy", at_most(1e9), in_our_environment=True)]),
    Row("lonely", "a peer that nobody has", "call", nothing,
        [Peer("nobody", nothing, "no-such-distribution", at_least(1.0))]),
    Row("broken", "a factory that raises", "call", broken,
        [Peer("sleep", sleeper, "numpy", at_least(1.0))]),
    Row("leaves", "a peer whose process ends", "call", nothing,
        [Peer("leaves", leaves, "numpy", at_least(1.0))]),
    Row("fresh", "two fresh interpreters", "import", lambda: "import json; print('noise')",
        [Peer("nothing", lambda: "pass", "numpy", at_most(1e9))], kind="process"),
    Row("table", "two cases on each side", "case", lambda: {"one": nothing(), "two": sleeper()},
        [Peer("sleep", lambda: {"one": sleeper(), "two": sleeper()}, "numpy", unbounded()),
         Peer("broken", lambda: {}, "numpy", at_least(1.0))], kind="table"),
]
"""


@pytest.fixture
def fake_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Row]:
    """Rows of no-ops and short sleeps, in a module that workers can import too."""
    (tmp_path / "fake_rows.py").write_text(FAKE_ROWS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "fake_rows", raising=False)
    return {row.name: row for row in rows_of("fake_rows")}


@pytest.fixture
def quickly(tmp_path: Path) -> Settings:
    """Settings with turns of a millisecond."""
    return Settings(repeats=3, turn_seconds=1e-3, rest_seconds=0.0, search_path=(str(tmp_path),))


def test_sides_take_turns_and_the_best_number_of_threads_counts(
    fake_rows: dict[str, Row], quickly: Settings
) -> None:
    result = measure(fake_rows["quick"], quickly)
    assert result.ours.problem is None
    assert len(result.ours.turns) == 3
    assert result.ours.units_per_turn > 1
    sleep, nothing = result.comparisons
    assert [candidate.threads for candidate in sleep.candidates] == [1, 2]
    assert all(len(candidate.turns) == 3 for candidate in sleep.candidates)
    assert sleep.best is not None
    assert sleep.best.seconds.median == min(each.seconds.median for each in sleep.candidates)
    assert sleep.ratio is not None
    assert nothing.ratio is not None
    assert "times as fast" in as_text(result)


def test_threads_are_the_same_on_both_sides_when_given(
    fake_rows: dict[str, Row], quickly: Settings
) -> None:
    settings = Settings(**{**vars(quickly), "threads": 1})
    result = measure(fake_rows["quick"], settings)
    sides = [result.ours, *(each for found in result.comparisons for each in found.candidates)]
    assert [side.threads for side in sides] == [1, 1, 1]


@pytest.mark.parametrize("python", [sys.executable, "/no/such/python"])
def test_a_missing_peer_is_reported_and_ours_is_measured(
    fake_rows: dict[str, Row], quickly: Settings, python: str
) -> None:
    settings = Settings(**{**vars(quickly), "peer_python": python})
    result = measure(fake_rows["lonely"], settings)
    assert len(result.ours.turns) == 3
    comparison = result.comparisons[0]
    assert comparison.candidates[0].missing
    assert (comparison.ratio, comparison.met, comparison.clear) == (None, None, None)
    assert "no-such-distribution is not installed" in as_text(result)


def test_a_side_that_fails_leaves_the_other_measured(
    fake_rows: dict[str, Row], quickly: Settings
) -> None:
    broken = measure(fake_rows["broken"], quickly)
    assert "this factory is broken" in (broken.ours.problem or "")
    assert len(broken.comparisons[0].candidates[0].turns) == 3
    leaves = measure(fake_rows["leaves"], quickly)
    assert "status 3" in (leaves.comparisons[0].candidates[0].problem or "")
    assert len(leaves.ours.turns) == 3
    assert "not measured" in as_text(leaves)


def test_a_process_row_starts_a_fresh_interpreter_each_turn(
    fake_rows: dict[str, Row], quickly: Settings
) -> None:
    result = measure(fake_rows["fresh"], quickly)
    assert result.ours.problem is None
    assert len(result.ours.turns) == 3
    assert result.comparisons[0].met is True


def test_a_table_measures_every_case_and_compares_geometric_means(
    fake_rows: dict[str, Row], quickly: Settings
) -> None:
    result = measure(fake_rows["table"], quickly)
    assert list(result.ours.cases) == ["one", "two"]
    assert [len(turns) for turns in result.ours.cases.values()] == [3, 3]
    for mean, one, two in zip(result.ours.turns, *result.ours.cases.values(), strict=True):
        assert mean == pytest.approx((one * two) ** 0.5)
    sleep, broken = result.comparisons
    assert sleep.ratio is not None
    assert set(sleep.cases) == {"one", "two"}
    assert (sleep.met, sleep.clear) == (None, None)
    assert "returned no callable" in (broken.candidates[0].problem or "")
    shown = as_text(result)
    assert "no target" in shown
    assert "geometric mean of 2" in shown
    assert shown.count("one") >= 1
    assert "beside sleep" in shown
    written = as_json([result], quickly)["rows"][0]
    assert written["ours"]["cases"]["one"]["turns"] == result.ours.cases["one"]
    assert set(written["peers"][0]["cases"]["two"]) == {"median", "lower", "upper"}


def test_the_ratio_of_a_table_is_the_geometric_mean_of_the_ratios_of_its_cases() -> None:
    peer = Peer("peer", lambda: "", "numpy", at_least(5.0))
    ours, theirs = Contestant(None, None), Contestant(peer, None)
    for _ in range(2):
        ours.take({"add": 1.0, "exp": 10.0})
        theirs.take({"add": 9.0, "exp": 40.0})
    found = compare(ours, peer, [theirs])
    assert found.cases == {"add": Spread(9.0, 9.0, 9.0), "exp": Spread(4.0, 4.0, 4.0)}
    assert found.ratio is not None
    assert found.ratio.median == pytest.approx(6.0)
    assert found.met is True


def test_ratio_and_verdict_are_taken_by_paired_turns() -> None:
    def beside(target: Peer, ours: list[float], peer: list[float]) -> Comparison:
        return compare(
            Contestant(None, None, turns=ours), target, [Contestant(target, 1, turns=peer)]
        )

    faster = Peer("peer", lambda: "", "numpy", at_least(1.5))
    clearly = beside(faster, [1.0, 2.0, 4.0], [2.0, 4.0, 8.0])
    assert clearly.ratio == Spread(2.0, 2.0, 2.0)
    assert (clearly.met, clearly.clear) == (True, True)
    narrowly = beside(faster, [1.0, 1.0, 1.0], [1.0, 1.6, 1.7])
    assert (narrowly.met, narrowly.clear) == (True, False)
    ceiling = beside(Peer("peer", lambda: "", "numpy", at_most(1.5)), [2.0], [1.0])
    assert (ceiling.met, ceiling.clear) == (False, True)
    told = beside(Peer("peer", lambda: "", "numpy", unbounded()), [2.0], [1.0])
    assert told.ratio == Spread(0.5, 0.5, 0.5)
    assert (told.met, told.clear) == (None, None)


def test_json_has_the_documented_keys(fake_rows: dict[str, Row], quickly: Settings) -> None:
    results: list[Result] = [measure(fake_rows[name], quickly) for name in ("quick", "lonely")]
    written = json.loads(json.dumps(as_json(results, quickly)))
    assert set(written) == {"format", "machine", "settings", "rows"}
    assert set(written["machine"]) == {
        "cpu", "cores", "system", "python", "numpy", "optlab", "revision", "peers", "date",
    }  # fmt: skip
    assert written["machine"]["peers"]["no-such-distribution"] is None
    assert set(written["settings"]) == {"repeats", "turn_seconds", "threads"}
    side = {"threads", "seconds", "turns", "units_per_turn", "problem", "cases"}
    for row in written["rows"]:
        assert set(row) == {"name", "title", "unit", "kind", "ours", "peers"}
        assert set(row["ours"]) == side
        assert set(row["ours"]["seconds"]) == {"median", "lower", "upper"}
        for peer in row["peers"]:
            assert set(peer) == {
                "name", "version", "missing", "candidates", "best_threads",
                "ratio", "cases", "target", "met", "clear",
            }  # fmt: skip
            assert set(peer["target"]) == {"sense", "bound"}
            assert all(set(candidate) == side for candidate in peer["candidates"])
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    for key in {*side, *written, *written["machine"], *written["rows"][0]["peers"][0]}:
        assert f"`{key}`" in documented or f"`{key}[]`" in documented, key


def test_command_line_lists_and_refuses_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(row.name in listed for row in all_rows())
    assert main(["no_such_row"]) == 2
    assert "no_such_row" in capsys.readouterr().err


def test_command_line_measures_prints_and_writes(
    fake_rows: dict[str, Row],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("benchmarks.__main__.all_rows", lambda: list(fake_rows.values()))
    target = tmp_path / "deep" / "numbers.json"
    assert main(["fresh", "--repeats", "2", "--json", str(target)]) == 0
    assert "two fresh interpreters" in capsys.readouterr().out
    assert [row["name"] for row in json.loads(target.read_text())["rows"]] == ["fresh"]
    assert main(["broken", "--repeats", "1", "--json", str(target)]) == 1


def test_another_checkout_stands_in_for_the_peers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "optlab"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('the other checkout')\n")
    target = tmp_path / "numbers.json"
    beside = ["--before", str(tmp_path), "--json", str(target)]
    assert main(["import", "--repeats", "1", *beside]) == 0
    said = capsys.readouterr().out
    assert "before" in said
    assert "the other checkout" in said
    assert main(["import", "--before", str(tmp_path / "none")]) == 2
    assert "no checkout" in capsys.readouterr().err


def test_rows_are_selected_by_name_or_file_and_names_are_unique() -> None:
    rows = all_rows()
    assert len({row.name for row in rows}) == len(rows)
    assert [row.name for row in select(rows, ["import"])] == ["import"]
    assert [row.name for row in select(rows, ["import_time"])] == ["import"]
    assert select(rows, []) == [row for row in rows if row.default]


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.name)
def test_declaration_is_complete(row: Row) -> None:
    assert all([row.name, row.title, row.unit, row.module, row.peers])
    for peer in row.peers:
        assert peer.name not in {"", "ours"}
        assert peer.needs
        assert callable(peer.build)
        assert peer.target.bound is None or peer.target.bound > 0
    assert len({peer.name for peer in row.peers}) == len(row.peers)


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.name)
def test_our_side_of_every_row_runs_once(row: Row) -> None:
    work = row.ours()
    if isinstance(work, str):
        FreshInterpreter(sys.executable, work, None).turn()
    elif isinstance(work, dict):
        for unit in work.values():
            unit()
    else:
        work()


def gradients(build: Any, size: int) -> dict[str, list[np.ndarray]]:
    """Return the results of the units of one side, as arrays."""
    return {
        name: [np.asarray(getattr(g, "data", g)) for g in unit()]
        for name, unit in build(size, True).items()
    }


@pytest.mark.parametrize("size", [1, 10])
def test_an_operation_s_unit_gives_the_gradient_of_every_input_each_time(size: int) -> None:
    units = operations.ours(size, True)
    assert len(units) == 20
    for name, unit in units.items():
        first, second = unit(), unit()
        assert len(first) == 1 + operations.OPERATIONS[name][1], name
        for one, two in zip(first, second, strict=True):
            assert one.dtype == np.float32, name
            np.testing.assert_array_equal(one.data, two.data)  # cleared: nothing has accumulated
    x, u, _ = operations.numbers("multiply", size)
    by_x, by_u = units["multiply"]()
    np.testing.assert_array_equal(by_x.data, u)
    np.testing.assert_array_equal(by_u.data, x)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("needs", "build"), [("torch", operations.pytorch), ("autograd", operations.hips_autograd)]
)
@pytest.mark.parametrize("size", [1, 10])
def test_the_peers_units_give_the_same_gradients(needs: str, build: Any, size: int) -> None:
    pytest.importorskip(needs)
    theirs = gradients(build, size)
    for name, ours in gradients(operations.ours, size).items():
        for mine, other in zip(ours, theirs[name], strict=True):
            assert mine.shape == other.shape, name
            np.testing.assert_allclose(mine, other, rtol=1e-5, err_msg=name)
    for forward in build(size, False).values():
        forward()


def numbers_of_a_browser() -> dict[str, Any]:
    """Return numbers as from a browser, all within their targets but one."""
    smooth = {"milliseconds": [16.7] * 98 + [33.3] * 2, "drawn": 50}
    rough = {"milliseconds": [16.7] * 98 + [50.0] * 2, "drawn": 50}
    return {
        "first_paint": [1.0, 1.201, 9.0],
        "frames": {"playing": smooth, "scrubbing": rough},
        "moves": {"start": [15.0] * 10, "slider": [15.0] * 10},
        "bytes": {"view": 700_000, "code": 90_000, "notebook": 70_000},
    }


def test_a_browser_s_figures_stand_beside_their_targets() -> None:
    assert browser.percentile(range(1, 101), 99) == 99
    assert browser.percentile([3.0], 95) == 3.0
    found = browser.figures(numbers_of_a_browser())
    assert [one.name for one in found if not one.met] == ["scrubbing, 99th percentile of a frame"]
    shown = browser.as_table({"numbers": numbers_of_a_browser(), "load": [0.1, 1.0]})
    assert "1.20 s" in shown
    assert shown.count("not met") == 1
    assert "playing 50 of 100" in shown


def test_command_line_measures_the_browser_only_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "numbers.json"
    result = {"numbers": numbers_of_a_browser(), "load": None}
    monkeypatch.setattr(browser, "measure", lambda: result)
    assert main(["browser", "--json", str(target)]) == 0
    assert "first paint" in capsys.readouterr().out
    written = json.loads(target.read_text())
    assert written["browser"] == result
    assert written["rows"] == []

    def nothing_there() -> None:
        raise RuntimeError("no browser")

    monkeypatch.setattr(browser, "measure", nothing_there)
    assert main(["browser", "--json", str(target)]) == 1
    assert "no browser" in capsys.readouterr().err
    assert main(["browser", "--list"]) == 0
    assert browser.TITLE in capsys.readouterr().out


def test_command_line_measures_memory_only_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "numbers.json"
    monkeypatch.setattr(memory, "CASES", {"MLP, batch 64": memory.CASES["MLP, batch 64"]})
    asked = []

    def answer(python: str, function: str) -> Any:
        asked.append((python, function))
        return {name: getattr(memory, function)(name) for name in memory.CASES}

    monkeypatch.setattr(memory, "_run_in_process", answer)
    monkeypatch.setattr(memory, "installed_version", lambda python, distribution: None)
    assert main(["memory", "--json", str(target)]) == 0
    assert asked == [(sys.executable, "our_bytes")]
    assert "kept 302 kB + gradients 941 kB" in capsys.readouterr().out
    written = json.loads(target.read_text())
    assert written["memory"]["ours"]["MLP, batch 64"]["saved"] == 302080
    assert written["rows"] == []
    assert main(["--list"]) == 0
    assert memory.TITLE in capsys.readouterr().out

    def broken(python: str, function: str) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setattr(memory, "_run_in_process", broken)
    assert main(["memory", "--json", str(target)]) == 1
    assert "no memory" in capsys.readouterr().err


@pytest.fixture
def small_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WIDTH", 64), ("INSIDE", 256), ("BATCH", 256), ("BLOCKS", 8)):
        monkeypatch.setattr(recompute_models, name, value)
    kept = {name: recompute_models.CASES[name] for name in ("16 residual blocks",)}
    monkeypatch.setattr(recompute, "CASES", kept)
    monkeypatch.setattr(recompute, "ROUNDS", 2)


def test_command_line_measures_recomputation_only_by_name(
    small_chains: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "numbers.json"
    answers = {"peaks_of_pytorch": lambda: {"16 residual blocks": {"plain": 1, "segments": 10**9}}}

    def answer(python: str, function: str) -> Any:
        return (answers.get(function) or getattr(recompute, function))()

    monkeypatch.setattr(recompute, "_run_in_process", answer)
    monkeypatch.setattr(recompute, "installed_version", lambda python, distribution: "2.13.0")
    assert main(["recompute", "--json", str(target)]) == 0
    said = capsys.readouterr().out
    assert "8 residual blocks of 64, 256 inside, batch 256" in said
    assert said.count("MISSED") - said.count("1.45: MISSED") == 1  # plain beside PyTorch's one byte
    written = json.loads(target.read_text())["recompute"]
    assert set(written["blocks"]) == set(recompute.LIMITS)
    assert all(found["equal"] for found in written["blocks"].values())
    assert all(len(found["seconds"]) == 2 for found in written["blocks"].values())
    peaks = written["ours"]["16 residual blocks"]
    assert peaks["each part"] < peaks["segments"] < peaks["plain"]
    assert main(["recompute", "--list"]) == 0
    assert recompute.TITLE in capsys.readouterr().out

    def broken(python: str, function: str) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setattr(recompute, "_run_in_process", broken)
    assert main(["recompute", "--json", str(target)]) == 1
    assert "recompute: not measured: no memory" in capsys.readouterr().err


def test_ways_of_recomputing_that_differ_in_one_number_are_not_equal() -> None:
    same = [1.0, np.ones(3), np.zeros(1)]
    assert recompute._equal(same, [1.0, np.ones(3), np.zeros(1)])
    assert not recompute._equal(same, [1.0, np.array([1, 1, 1 + 1e-15]), np.zeros(1)])


@pytest.mark.peers
def test_the_peak_of_pytorch_s_allocator_is_known_where_it_can_be_counted() -> None:
    torch = pytest.importorskip("torch")

    def work() -> None:
        first, second = torch.empty(1 << 18), torch.empty(1 << 19)
        del first
        third = torch.empty(1 << 18)  # reuses the memory of the first
        del second, third

    assert recompute.peak_of_allocator(work) == 3 << 20


@pytest.mark.peers
@pytest.mark.parametrize("name", recompute_models.CASES)
def test_both_sides_of_a_chain_have_the_same_parts(name: str) -> None:
    pytest.importorskip("torch")
    case = recompute_models.CASES[name]
    ours, theirs = case.ours()[0], case.pytorch()[0]
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        sizes = [sorted(math.prod(p.shape) for p in part.parameters()) for part in (mine, other)]
        assert sizes[0] == sizes[1]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.nightly
def test_a_browser_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from optlab._doctor import find_browser

    if find_browser() is None and os.environ.get("CI") != "true":
        pytest.skip("no Chromium or Chrome on this computer")
    for name, value in (("FIRST_PAINTS", 1), ("MOVES", 2), ("SECONDS", 0.3)):
        monkeypatch.setattr(browser, name, value)
    result = browser.measure()
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    for key in {*result, *result["numbers"], *result["figures"][0]}:
        assert f"`{key}`" in documented or f"`{key}[]`" in documented, key
    counts = {name: len(times) for name, times in result["numbers"]["moves"].items()}
    assert counts == {"start": 2, "slider": 2}
    assert all(seen["drawn"] for seen in result["numbers"]["frames"].values())
    assert all(one["value"] > 0 for one in result["figures"])


def test_a_warm_up_ends_when_kernels_are_compiled(monkeypatch):
    from benchmarks.worker import warm_up
    from optlab.plan import numba_cache

    compiling = [True] * 40
    calls = []
    monkeypatch.setattr(numba_cache, "is_compiling", lambda: bool(compiling and compiling.pop()))
    warm_up(lambda: calls.append(len(compiling)), seconds=0.01)
    assert 0 in calls
    assert calls.count(40) == 1
    compiling[:] = [True] * 10**6
    warm_up(lambda: None, seconds=0.01, most=0.05)
    assert compiling
