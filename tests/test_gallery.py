"""Every entry of the gallery runs, and every notebook does."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from optlab._doctor import find_browser

ROOT = Path(__file__).parent.parent
ENTRIES = sorted((ROOT / "gallery").glob("*.py"))
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
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (entry.parent / picture.name).is_file()
    assert picture.name in (entry.parent / "README.md").read_text()


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
