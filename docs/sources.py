"""Write what Sphinx reads: the pages of this folder, and those made from the repository."""

from __future__ import annotations

import io
import json
import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docs import reference
from docs.course import released
from docs.links import DOCUMENTS, by_link, page_of, relinked

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = HERE / "_build"

THUMBNAIL = (640, 448)
#: Pages made from documents that list other pages.
PARTS = {
    "tutorials/index.md": """
```{toctree}
:hidden:
:glob:
:caption: Lectures

lectures/[0-9]*
```

```{toctree}
:hidden:
:glob:
:caption: Appendices

lectures/a*
```

```{toctree}
:hidden:
:glob:
:caption: Tours

[0-9]*
```
""",
    "course/index.md": """
```{toctree}
:hidden:
:glob:
:caption: Assignments

[0-9]*
```
""",
}
#: What sphinx-gallery writes beside the sources.
_WRITTEN_BY_GALLERY = ("gallery/", "reference/used/", "sg_execution_times.rst")


def write(target: Path, repository: str | None = None) -> None:
    """Write all sources under `target`; what has not changed keeps its time, and is not read again.

    Parameters
    ----------
    target : Path
        What lies there and is no longer written is removed.
    repository : str, optional
        ``OWNER/NAME`` on GitHub, from which notebooks open in Colab and Binder.
    """
    files = dict(_files(repository))
    for path in target.rglob("*"):
        place = path.relative_to(target).as_posix()
        if path.is_file() and place not in files and not place.startswith(_WRITTEN_BY_GALLERY):
            path.unlink()
    for name, content in files.items():
        _write(target / name, content)
    _write(BUILD / "static" / "mathjax.js", _mathjax())
    _write(BUILD / "static" / "plotly.js", _plotly())
    startup = BUILD / "ipython" / "profile_default" / "startup" / "site.py"
    _write(startup, (HERE / "kernel.py").read_bytes())
    _write(BUILD / "extra" / "explorer-alone.html", _explorer_page())


def _write(path: Path, content: str | bytes) -> None:
    data = content.encode("utf-8") if isinstance(content, str) else content
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _files(repository: str | None) -> Iterator[tuple[str, str | bytes]]:
    """Yield the path of every source, and what is in it."""
    for path in sorted(HERE.rglob("*.md")):
        page = path.relative_to(HERE).as_posix()
        if not page.startswith("_"):
            text = relinked(path.read_text(encoding="utf-8"), f"docs/{page}", page)
            yield page, text + PARTS.get(page, "")
    for document, page in DOCUMENTS.items():
        # The site has a front page and an index of the gallery of its own.
        if page not in ("index.md", "gallery/index.rst") and document.endswith(".md"):
            text = (ROOT / document).read_text(encoding="utf-8")
            yield page, relinked(text, document, page) + PARTS.get(page, "")
    for path in sorted((ROOT / "gallery").glob("*.png")):
        yield f"pictures/{path.name}", path.read_bytes()
        yield f"pictures/small/{path.name}", _thumbnail(path)
    yield from notebooks(repository)
    yield from assignments()
    yield from _gallery()
    yield from reference.pages()
    yield "reference/command-line-help.md", _command_line()
    yield "explorer.md", _explorer()


def notebooks(repository: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield the page of every notebook that runs, and what Sphinx reads of it."""
    for folder in ("notebooks", "notebooks/lectures"):
        for path in sorted((ROOT / folder).glob("*.ipynb")):
            file = path.relative_to(ROOT).as_posix()
            notebook = json.loads(path.read_text(encoding="utf-8"))
            if repository:
                title = notebook["cells"][0]
                title["source"] = [*title["source"], f"\n\n{by_link(file, repository)}"]
            yield _notebook(file, notebook)


def assignments() -> Iterator[tuple[str, str]]:
    """Yield the page of every assignment, and what students get of it."""
    for path in sorted((ROOT / "notebooks" / "course").glob("*.ipynb")):
        notebook = released(json.loads(path.read_text(encoding="utf-8")))
        yield _notebook(path.relative_to(ROOT).as_posix(), notebook)


def _notebook(file: str, notebook: dict[str, Any]) -> tuple[str, str]:
    """Return the page of a notebook, and the notebook with links of the site; code stays."""
    page = page_of(file)
    assert page is not None
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = relinked("".join(cell["source"]), file, page)
            cell["source"] = text.splitlines(keepends=True)
    return page, json.dumps(notebook, indent=1)


def _mathjax() -> bytes:
    """Return MathJax as one file without fonts, from the package django-static-mathjax."""
    import mathjax

    folder = Path(mathjax.__file__).parent / "static" / "mathjax" / "es5"
    return (folder / "tex-svg-full.js").read_bytes()


def _plotly() -> str:
    """Return plotly's own script, from the package plotly."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _command_line() -> str:
    """Return what the command says of itself."""
    from optlab import cli

    parser = cli._parser()
    parsers: dict[str, ArgumentParser] = {"optlab": parser}
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            parsers |= {f"optlab {name}": sub for name, sub in action.choices.items()}
    return "\n\n".join(
        f"```text\n$ {name} --help\n{sub.format_help().strip()}\n```"
        for name, sub in parsers.items()
    )


# The explorer ----------------------------------------------------------------------------------


@cache
def _explorer_page() -> str:
    """Return the page that ``optlab page`` writes, at the step of the picture."""
    from optlab.viz.explorer import explore

    return str(explore().change(step=60).to_html(library=True))


def _explorer() -> str:
    """Return the page with the whole explorer, without sidebars."""
    [live] = re.findall(r"<div data-ol=.*</div>(?=\s*</body>)", _explorer_page(), re.DOTALL)
    return f"""# The explorer

```{{raw}} html
<div class="site-explorer">
{live}
</div>
```

This is the whole explorer, alive without a kernel: all presets, all optimizers that work element by
element, a field for a formula of your own. <a href="explorer-alone.html">Here it is as one file</a>
to take along, which needs no network; [](how-to/export-a-page.md) writes one that opens on your own
function.
"""


# The gallery -----------------------------------------------------------------------------------


@cache
def titles() -> dict[str, str]:
    """Return the titles of the scripts that have a picture, as the gallery lists them."""
    found: dict[str, str] = {}
    heading = ""
    for line in (ROOT / "gallery" / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ").strip()
        for script in re.findall(r"\]\((\w+)\.py\)", line):
            if not (ROOT / "gallery" / f"{script.replace('_', '-')}.png").is_file():
                continue
            first = _docstring(script)[0].partition("\n\n")[0]
            title = heading if heading not in found.values() else " ".join(first.split())
            found.setdefault(script, title.rstrip("."))
    return found


def _docstring(script: str) -> tuple[str, str]:
    """Return the docstring of a script of the gallery, and the rest of the script."""
    text = (ROOT / "gallery" / f"{script}.py").read_text(encoding="utf-8")
    match = re.match(r'"""(.*?)"""\n', text, re.DOTALL)
    if match is None:
        raise ValueError(f"gallery/{script}.py begins with no docstring.")
    return match[1].strip(), text[match.end() :]


def _thumbnail(path: Path) -> bytes:
    """Return a picture in the size of the gallery's cards, on white paper."""
    from PIL import Image, ImageOps

    with Image.open(path) as image:  # smoothed only in full colors, which most files do without
        colors = Image.alpha_composite(
            Image.new("RGBA", image.size, "white"), image.convert("RGBA")
        ).convert("RGB")
    width, height = colors.size
    tallest = round(width * THUMBNAIL[1] / THUMBNAIL[0])  # of a tall picture, its upper part
    colors = colors.crop((0, 0, width, min(height, tallest)))
    made = io.BytesIO()
    ImageOps.pad(colors, THUMBNAIL, Image.Resampling.LANCZOS, "white").save(made, "png")
    return made.getvalue()


def _gallery() -> Iterator[tuple[str, str]]:
    """Yield the scripts as sphinx-gallery reads them: a title, the picture, then the script.

    The pictures stand beside the scripts; the tests hold that the scripts make them.
    """
    for script, title in titles().items():
        said, code = _docstring(script)
        first, _, rest = said.partition("\n\n")
        picture = f"/pictures/{script.replace('_', '-')}.png"
        yield (
            f"_gallery/{script}.py",
            f'''r"""
{title}
{"=" * len(title)}

{first}

.. image:: {picture}
   :alt: {title}

{rest}
"""
# sphinx_gallery_thumbnail_path = "pictures/small/{Path(picture).name}"
{code}''',
        )
    header = "Gallery\n=======\n\nEvery picture is made by the script on its page.\n"
    yield "_gallery/GALLERY_HEADER.rst", header
