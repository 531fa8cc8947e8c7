"""Every lecture has one claim, the parts that all have, and runs with all its folded solutions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import ROOT, outputs_of

FOLDER = ROOT / "notebooks" / "lectures"
LECTURES = sorted(FOLDER.glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
PARTS = [
    "Predict",
    "Play",
    "Formula",
    "In five lines",
    "The claim, on its own numbers",
    "Exercises",
]
#: A minute of prose, and of code, which is read more slowly.
WORDS, LINES = 200, 20


def cells_of(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def text_of(path: Path, kind: str) -> str:
    return "\n\n".join(cell["source"] for cell in cells_of(path) if cell["cell_type"] == kind)


def solutions_of(path: Path) -> list[str]:
    """Return the code of the folded solutions."""
    return re.findall(r"```python\n(.*?)```", text_of(path, "markdown"), re.DOTALL)


def test_there_are_twelve_and_six_appendices_and_their_page_lists_them():
    numbers = [path.name.partition("-")[0] for path in LECTURES]
    assert numbers == [*(f"{n:02}" for n in range(1, 13)), *(f"a{n}" for n in range(1, 7))]
    page = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert [link for link in links if not (ROOT / "notebooks" / link).exists()] == []
    assert {f"lectures/{path.name}" for path in LECTURES} <= set(links)


@EACH
def test_a_lecture_has_its_parts_in_order(path):
    prose, code = text_of(path, "markdown"), text_of(path, "code")
    number = path.name.partition("-")[0].lstrip("0").upper()
    assert prose.startswith(f"# {number} · ")
    assert prose.count("**Claim.**") == 1
    assert re.findall(r"^## (.*)", prose, re.MULTILINE) == PARTS
    assert code.count("ol.viz.claim(") == 1
    assert "assert " in code
    formula = prose.partition("## Formula")[2].partition("## In five")[0]
    assert "$$" in formula
    assert re.search(r"\b(19|20)\d\d\b", formula), "a formula has its source, with the year"


@EACH
def test_a_lecture_is_short(path):
    assert path.stat().st_size < 40_000
    prose = re.sub(r"<details>.*?</details>", "", text_of(path, "markdown"), flags=re.DOTALL)
    lines = [line for line in text_of(path, "code").splitlines() if line.strip()]
    assert len(prose.split()) / WORDS + len(lines) / LINES < 15


@EACH
def test_every_exercise_has_a_folded_solution(path):
    exercises = text_of(path, "markdown").partition("## Exercises")[2]
    parts = re.split(r"^\*\*\d\.\*\*", exercises, flags=re.MULTILINE)[1:]
    assert len(parts) == 3
    for part in parts:
        question = part.partition("<details>")[0]
        assert question.strip()
        assert "<details><summary>Solution</summary>\n\n" in part  # the empty line: it is Markdown
        assert part.count("<details>") == part.count("</details>")
        assert part.rstrip().endswith("</details>")


@pytest.mark.slow
@pytest.mark.nightly
@EACH
def test_a_lecture_runs_with_its_solutions(path, tmp_path, monkeypatch):
    outputs = outputs_of(path, tmp_path, monkeypatch, further=solutions_of(path))
    pages = [output.get("data", {}).get("text/html", "") for output in outputs]
    assert len([page for page in pages if 'data-ol="claim-' in page]) == 1
