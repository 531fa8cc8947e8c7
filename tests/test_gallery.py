"""Every entry of the gallery runs, and every notebook does."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import optlab as ol
from optlab._doctor import find_browser
from optlab.lab.recipes.catalogue import RECIPES
from tests.notebooks import outputs_of

ROOT = Path(__file__).parent.parent
LEARNS = ROOT / "gallery" / "small_gpt.py"  # takes minutes: it has its own tests
RANKS = ROOT / "gallery" / "ranking.py"  # likewise
FITS = ROOT / "gallery" / "does_not_fit.py"  # starts processes
COMPRESSES = ROOT / "gallery" / "dgc_digits.py"  # takes minutes; run by tests/parallel
STUDIES = ROOT / "gallery" / "recompute_study.py"  # a minute; a small network gives the same plot
REACHES = ROOT / "gallery" / "recipes.py"  # a quarter of an hour, and a table alone
CURVES = ROOT / "gallery" / "sharp_and_flat.py"  # short forms of both are below
COMPARES = ROOT / "gallery" / "fair_comparison.py"
LONG = {LEARNS, RANKS, FITS, STUDIES, COMPRESSES, REACHES, CURVES, COMPARES}
ENTRIES = sorted(set((ROOT / "gallery").glob("*.py")) - LONG)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def _marked(entry: Path) -> Any:
    """Return the entry as a parameter, marked if it opens a browser."""
    marks = [pytest.mark.browser] if "playwright" in entry.read_text() else []
    return pytest.param(entry, marks=marks, id=entry.stem)


@pytest.mark.parametrize("entry", [_marked(entry) for entry in ENTRIES])
def test_entry_makes_its_picture(
    entry: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if request.node.get_closest_marker("browser") and find_browser() is None:
        reason = "no Chromium or Chrome on this computer"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    picture = runpy.run_path(str(entry))["main"](tmp_path)
    assert is_in_the_gallery(picture)


def is_in_the_gallery(picture: Path) -> bool:
    if not picture.read_bytes().startswith(b"\x89PNG"):
        return False
    gallery = ROOT / "gallery"
    return (gallery / picture.name).is_file() and picture.name in (
        gallery / "README.md"
    ).read_text()


@pytest.mark.nightly
def test_the_small_gpt_starts_to_learn(tmp_path: Path) -> None:
    entry = runpy.run_path(str(LEARNS))
    result = entry["learn"](steps=20, look=10)
    assert result.steps == [10, 20]
    assert result.gpt[1] < result.gpt[0] < 8
    assert min(result.ngrams) == result.ngrams[result.order - 1]
    assert is_in_the_gallery(entry["draw"](result, tmp_path))


@pytest.mark.nightly
@pytest.mark.slow
def test_an_eighth_of_the_way_the_small_gpt_beats_counting_three_characters() -> None:
    """The whole training, past n-grams of every order, takes minutes and is left to the script."""
    result = runpy.run_path(str(LEARNS))["learn"](steps=600, look=600)
    assert result.gpt[-1] < result.ngrams[2]
    assert result.ngrams[8] == min(result.ngrams) < 1.8


@pytest.fixture(scope="module")
def ranking() -> dict[str, Any]:
    return runpy.run_path(str(RANKS))


def ranked_rates() -> dict[str, float]:
    """Return the rates of the table in the gallery."""
    lines = RANKS.with_suffix(".md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line[:1] == "|"]
    return {name: float(rate) for _, _, name, rate, *_ in cells[2:]}


def test_the_ranking_names_every_optimizer(ranking: dict[str, Any]) -> None:
    rules = {
        name
        for name, value in vars(ol.optimizer).items()
        if isinstance(value, type) and issubclass(value, ol.optimizer.Optimizer)
        and value is not ol.optimizer.Optimizer and not ranking["is_elsewhere"](value)
    }  # fmt: skip
    assert rules <= set(ranked_rates()), "run python gallery/ranking.py"
    assert set(ranking["contestants"]()) == set(ranked_rates())


def test_every_optimizer_trains_the_network(ranking: dict[str, Any]) -> None:
    small = {name: rate for name, rate in ranked_rates().items() if "all digits" not in name}
    rows = ranking["race"](small, steps=100, seeds=[0], rounds=1)
    accuracies = {row.name: row.mean_accuracy for row in rows}
    assert len(rows) == len(small)
    assert not {name: value for name, value in accuracies.items() if value < 0.7}  # chance is 0.1
    assert list(accuracies.values()) == sorted(accuracies.values(), reverse=True)
    slots = {row.name: row.slots for row in rows}
    assert (slots["SGD"], slots["Momentum"], slots["Adam"], slots["AMSGrad"]) == (0, 4, 8, 12)


def test_the_ranking_is_drawn_and_written(ranking: dict[str, Any], tmp_path: Path) -> None:
    names = ["SGD", "Lion", "LBFGS"]
    chosen = ranking["choose"](names, rates=[0.01, 0.1], steps=10, widen=1)
    rows = ranking["race"]({n: found.rate for n, found in chosen.items()}, 10, [0, 1], rounds=1)
    assert is_in_the_gallery(ranking["write"](rows, chosen, tmp_path))
    lines = (tmp_path / "ranking.md").read_text(encoding="utf-8").splitlines()
    table = [line.split(" | ") for line in lines if line.startswith("| ")]
    assert sorted(cells[1] for cells in table[2:]) == sorted(names)
    assert {len(cells) for cells in table} == {len(ranking["HEADS"])}
    assert all(row.evaluations == 10 for row in rows)
    assert min(next(row.updates for row in rows if row.name == "LBFGS")) < 10


def test_the_table_of_recipes_names_all_of_them_and_what_they_state(tmp_path: Path) -> None:
    entry = runpy.run_path(str(REACHES))
    page = entry["main"](tmp_path, ["moons"], steps=20, seeds=[0, 1]).read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| `")]
    assert "`moons`" in row
    assert ", missed | 2 |" in row  # after 20 steps
    whole = REACHES.with_suffix(".md").read_text(encoding="utf-8")
    for recipe in RECIPES.values():
        [line] = [line for line in whole.splitlines() if line.startswith(f"| `{recipe.name}` |")]
        assert f" {recipe.target:g} |" in line
        assert "missed" not in line
    assert "recipes.md" in (ROOT / "gallery" / "README.md").read_text(encoding="utf-8")


def test_sharp_and_flat_places_are_drawn(tmp_path: Path) -> None:
    entry = runpy.run_path(str(CURVES))
    assert is_in_the_gallery(entry["main"](tmp_path, steps=45))


def test_rules_are_compared_fairly(tmp_path: Path) -> None:
    entry = runpy.run_path(str(COMPARES))
    assert is_in_the_gallery(entry["main"](tmp_path, budgets=(10, 20), trials=2))


@pytest.mark.nightly
def test_recomputation_of_small_blocks_is_studied(tmp_path: Path) -> None:
    entry = runpy.run_path(str(STUDIES))
    found = entry["study"](width=16, batch=64, repeats=1)
    assert all(row.equal for row in found.rows if row.smallest is None)
    assert found["4 segments"].peak < found["2 segments"].peak < found["plain"].peak
    assert is_in_the_gallery(entry["draw"](found, tmp_path))


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # for its processes: this clone
    return runpy.run_path(str(FITS))


@pytest.mark.nightly
@pytest.mark.slow
def test_200_layers_exceed_the_budget_and_learn_within_it(
    deep: dict[str, Any], tmp_path: Path
) -> None:
    budget = deep["BUDGET"]
    assert len(deep["Training"]().layers) == 200
    assert deep["peak"]() > 3 * budget
    assert deep["peak"]("sqrt") < budget / 2
    result = deep["learn"](steps=8)
    assert len(result.losses) == 8
    assert result.losses[-1] < 0.5 * result.losses[0]
    assert result.losses[:3] == result.plain_losses  # bitwise
    assert result.plain.max() > budget > result.recomputed.max()
    if sys.platform == "linux":
        assert 10 < result.refused < 190  # in the middle of forward
    assert is_in_the_gallery(deep["draw"](result, tmp_path))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is that of Linux")
def test_the_limit_is_the_budget_and_no_more(deep: dict[str, Any]) -> None:
    """The plain step is refused for lack of memory, not because of how the limit is set."""
    roomy = deep["in_a_process"](None, 1, 6 * deep["BUDGET"])
    assert roomy["layer"] is None
    assert roomy["losses"] == deep["in_a_process"]("sqrt", 1)["losses"]
    scarce = deep["in_a_process"]("sqrt", 1, 2 * 2**20)  # too little for any method
    assert scarce["losses"] == []


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = outputs_of(notebook, tmp_path, monkeypatch)
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) >= 3
