"""The pages that people read: their code runs, their links lead somewhere, names have a page."""

import doctest
import importlib
import inspect
import json
import linecache
import re
import tomllib
from pathlib import Path

import pytest

from docs import names, sources
from docs.course import STUB
from optlab import cli
from tests import public_api

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.md")), ROOT / "docs" / "index.md"]
WITH_CODE = [path for path in PAGES if "```python\n" in path.read_text(encoding="utf-8")]
WITH_RULES = [path for path in PAGES if "optlab rules " in path.read_text(encoding="utf-8")]
MARKDOWN = [
    *PAGES,
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
    *(ROOT / "gallery").glob("*.md"),
    ROOT / "notebooks" / "README.md",
    ROOT / "optlab" / "autograd" / "rules" / "README.md",
]


def name_of(path):
    """Return the path from the root, as a test's name."""
    return path.relative_to(ROOT).as_posix()


def without_wraps_and_places(text):
    """Return text on one line, without line numbers in files of optlab."""
    return re.sub(r"(\.py):\d+", r"\1", " ".join(text.split()))


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_stands_below_it(
    path, monkeypatch, tmp_path, capsys
):
    monkeypatch.chdir(tmp_path)
    shared = {"__name__": "page"}
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    for block, printed in blocks:  # in order: later blocks use results of earlier ones
        # Messages name the line of the user's file; here it is this block.
        lines = block.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, "train.py", (len(block), None, lines, "train.py"))
        exec(compile(block, "train.py", "exec"), shared)
        said = capsys.readouterr().out
        if printed:
            assert without_wraps_and_places(said) == without_wraps_and_places(printed)


@pytest.mark.parametrize("path", MARKDOWN, ids=name_of)
def test_blocks_of_code_open_with_their_language_and_close(path):
    fences = re.findall(r"^(?:```|:::)+.*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    code = [fence for fence in fences if fence.startswith("```")]
    assert all(fence != "```" for fence in code[::2])
    assert all(fence == "```" for fence in code[1::2])


def test_pages_show_what_their_code_prints():
    shown = [
        name_of(path)
        for path in WITH_CODE
        if re.search(r"```python\n[^`]*```\n\n```text\n", path.read_text(encoding="utf-8"))
    ]
    assert len(shown) >= 8


@pytest.mark.parametrize("path", WITH_RULES, ids=name_of)
def test_a_page_shows_what_the_command_says(path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    text = path.read_text(encoding="utf-8")
    shown = re.findall(r"optlab (rules .*?)\n```\n\n```text\n(.*?)```", text, re.DOTALL)
    for command, printed in shown:
        assert cli.main(command.split()) == 0
        said = capsys.readouterr().out
        assert without_wraps_and_places(said) == without_wraps_and_places(printed)


def anchors(path):
    """Return the anchors of the headings of a page, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", MARKDOWN, ids=name_of)
def test_the_files_and_headings_that_a_page_links_to_are_there(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_no_page_is_left_out_of_the_lists():
    for folder in ("how-to", "explanation", "reference", "development"):
        index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
        [listed] = re.findall(r"```\{toctree\}\n:hidden:\n\n(.*?)\n```", index, re.DOTALL)
        written = {path.stem for path in (ROOT / "docs" / folder).glob("*.md")} - {"index"}
        assert written <= set(listed.split()), folder


def test_every_script_of_the_gallery_and_every_notebook_has_a_page():
    gallery = ROOT / "gallery"
    drawn = {path.stem.replace("-", "_") for path in gallery.glob("*.png")}
    assert set(sources.titles()) == drawn & {path.stem for path in gallery.glob("*.py")}
    pages = dict(sources.notebooks())
    folders = ("notebooks", "notebooks/lectures")
    written = [path for folder in folders for path in (ROOT / folder).glob("*.ipynb")]
    assert len(pages) == len(written) > 0


def test_assignments_on_the_site_are_what_nbgrader_releases():
    """No solution and no hidden test is ever published."""
    nbformat = pytest.importorskip("nbformat")
    preprocessors = pytest.importorskip("nbgrader.preprocessors")
    clear = preprocessors.ClearSolutions(code_stub={"python": "\n".join(STUB)})
    hide = preprocessors.ClearHiddenTests()
    pages = {page.rpartition("/")[2]: json.loads(text) for page, text in sources.assignments()}
    files = sorted((ROOT / "notebooks" / "course").glob("*.ipynb"))
    assert list(pages) == [path.name for path in files] != []
    for path in files:
        node, resources = clear.preprocess(
            nbformat.read(path, as_version=4), {"language": "python"}
        )
        node, _ = hide.preprocess(node, resources)
        theirs = [cell.source.strip() for cell in node.cells if cell.cell_type == "code"]
        cells = [cell for cell in pages[path.name]["cells"] if cell["cell_type"] == "code"]
        assert ["".join(cell["source"]).strip() for cell in cells] == theirs
        assert any(STUB[1] in source for source in theirs)


#: The first code of a notebook that is opened by link installs optlab there, and nowhere else.
BY_LINK = """\
try:
    import optlab as ol
except ModuleNotFoundError:  # in Colab, say
    %pip install -q "optlab[{extras}]"
    import optlab as ol
"""


def test_the_first_code_of_a_notebook_installs_optlab_where_it_is_missing():
    for page, text in sources.notebooks():
        first, *others = [
            "".join(cell["source"])
            for cell in json.loads(text)["cells"]
            if cell["cell_type"] == "code"
        ]
        needs_a_store = re.search(r"^import zarr$", first, re.MULTILINE)
        expected = BY_LINK.format(extras="lab,store" if needs_a_store else "lab")
        assert f"{first}\n".startswith(expected), page
        assert "%pip" not in "".join(others), page


def test_binder_installs_what_notebooks_need():
    told = (ROOT / "binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in told if not line.startswith("#")] == [".[lab,store]"]
    [version] = re.findall(r"python-(3\.\d+)", (ROOT / "binder" / "runtime.txt").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_pages_link_to_colab_and_binder_where_the_repository_is_known():
    pages = dict(sources.notebooks("ada/optlab"))
    notebook = json.loads(pages["tutorials/lectures/03-momentum.ipynb"])
    title = "".join(notebook["cells"][0]["source"])
    place = "notebooks/lectures/03-momentum.ipynb"
    assert f"(https://mybinder.org/v2/gh/ada/optlab/HEAD?labpath={place})" in title
    assert f"(https://colab.research.google.com/github/ada/optlab/blob/HEAD/{place})" in title
    assert "mybinder" not in dict(sources.notebooks())["tutorials/lectures/03-momentum.ipynb"]


FIVE_QUESTIONS = {
    "plot my own function": "plot-my-own-function",
    "record my own optimizer": "record-my-optimizer",
    "compare on my data": "compare-on-my-data",
    "grade my class": "grade-my-class",
    "use a GPU": "use-a-gpu",
}


def test_the_five_questions_of_a_newcomer_are_one_click_from_the_readme_and_the_front_page():
    readme, front = (path.read_text(encoding="utf-8") for path in (PAGES[0], PAGES[-1]))
    for question, page in FIVE_QUESTIONS.items():
        assert re.search(rf"\[[^\]]*{question}[^\]]*\]\(docs/how-to/{page}\.md\)", readme), question
        assert f"[{question}](how-to/{page}.md)" in front, question


#: Modules that the reference shows under the shorter path of a program.
SHORTER = {
    "optlab.trace.memory": "optlab.memory",
    "optlab.lab.data": "optlab.data",
    "optlab.lab.models": "optlab.models",
    "optlab.lab.problems": "optlab.problems",
}


def test_every_public_name_is_in_the_reference():
    shown = {
        f"{place}.{attribute}" for place, found in names.by_module().items() for attribute in found
    }
    modules = {place: importlib.import_module(place) for place in public_api.MODULES}
    public = {
        f"{SHORTER.get(place, place)}.{name}"
        for place, module in modules.items()
        for name in public_api.names_of(module)
        if not inspect.ismodule(getattr(module, name))
    }
    assert public - shown == set()


def test_no_two_pages_of_the_reference_are_one_file():
    files = [name.file.lower() for name in names.pages()]
    assert len(set(files)) == len(files)


@pytest.mark.parametrize("module", ["check", "course", "links", "names", "reference"])
def test_the_examples_of_the_site_s_own_modules_run(module):
    assert doctest.testmod(importlib.import_module(f"docs.{module}")).failed == 0


def test_the_badges_say_what_the_project_says_of_itself():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classifiers = " ".join(project["classifiers"])
    pythons = re.findall(r"Python :: (3\.\d+)", classifiers)
    assert project["license"] == "Apache-2.0"
    said = {
        "license": "Apache 2.0",
        "python": ", ".join(pythons),
        "typed": "py.typed",
        "status": re.findall(r"Development Status :: \d - (\w+)", classifiers)[0].lower(),
    }
    assert (ROOT / "optlab" / "py.typed").is_file()
    assert "Typing :: Typed" in classifiers
    readme = PAGES[0].read_text(encoding="utf-8")
    shown = re.findall(r"!\[(\w+: [^\]]+)\]\(docs/badges/(\w+)\.svg\)", readme)
    assert {file: text.partition(": ")[2] for text, file in shown} == said
    for text, file in shown:
        drawing = (ROOT / "docs" / "badges" / f"{file}.svg").read_text(encoding="utf-8")
        assert f"<title>{text}</title>" in drawing
        assert f">{said[file]}</text>" in drawing
