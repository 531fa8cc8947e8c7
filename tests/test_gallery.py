"""Every entry of the gallery runs, and every notebook does."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from optlab._doctor import find_browser

ROOT = Path(__file__).parent.parent
LEARNS = ROOT / "gallery" / "small_gpt.py"  # for minutes: it has tests of its own
ENTRIES = sorted(set((ROOT / "gallery").glob("*.py")) - {LEARNS})
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def _marked(entry: Path) -> Any:
    """Mark the entries that open a browser."""
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


def test_the_small_gpt_starts_to_learn(tmp_path: Path) -> None:
    entry = runpy.run_path(str(LEARNS))
    result = entry["learn"](steps=20, look=10)
    assert result.steps == [10, 20]
    assert result.gpt[1] < result.gpt[0] < 8
    assert min(result.ngrams) == result.ngrams[result.order - 1]
    assert is_in_the_gallery(entry["draw"](result, tmp_path))


@pytest.mark.slow
def test_the_small_gpt_beats_counting() -> None:
    result = runpy.run_path(str(LEARNS))["learn"]()
    assert result.gpt[-1] < min(result.ngrams)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # this clone, not another
    node = nbformat.read(notebook, as_version=4)
    NotebookClient(node, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in node.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) >= 3
