"""Slides of notebooks: one HTML file each, with figures that are alive and no request to a host.

reveal.js and MathJax are read from Python packages (the extra ``slides``) and written into the
file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_REVEAL = ("sphinx_revealjs", "_static/revealjs/dist")
_MATHJAX = ("mathjax", "static/mathjax/es5/tex-svg-full.js")
_NEEDED = ("nbconvert", "nbclient", "nbformat", _REVEAL[0], _MATHJAX[0])
_HEADING = re.compile(r"^#{1,2} ", re.MULTILINE)
_SOLUTIONS = re.compile(r"<details>.*?</details>", re.DOTALL)
_HIDDEN = re.compile(r"^(try:|except |\s*(import|from|%pip) )")
_IN_THE_PAGE = "in-the-page:"
_LONG = 14
"""Lines of code that stand on the slide of their figure; longer code has a slide of its own."""
_TALL = ("application/vnd.plotly.v1+json", "data-ol=")
"""A kind of output, or a part of its page, that needs a slide for itself."""

TEMPLATE = """
{%- extends 'reveal/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}
<script>
  MathJax = {tex: {inlineMath: [['$', '$'], ['\\\\(', '\\\\)']], processEscapes: true}};
</script>
<script>{{ optlab_mathjax }}</script>
<style>{{ optlab_style }}</style>
{%- endblock -%}
{%- block footer_js -%}
<script>{{ optlab_reveal }}</script>
<script>
  Reveal.initialize({
    controls: true, progress: true, hash: true, slideNumber: 'c/t', transition: 'none',
    width: 1120, height: 720, margin: 0.04, center: false,
    // The arrow keys belong to a slider that has the focus.
    keyboardCondition: () => !document.activeElement?.matches('input, select, textarea, [role]'),
  });
</script>
{%- endblock -%}
"""

STYLE = """
:root { --jp-code-font-size: 15px !important; }
.reveal .slides { text-align: left; }
.reveal .slides section { overflow-y: auto; max-height: 720px; }
.reveal h1 { font-size: 44px; } .reveal h2 { font-size: 34px; }
.reveal h1, .reveal h2, .reveal h3 { text-transform: none; text-align: left; letter-spacing: 0; }
.reveal .jp-RenderedHTMLCommon { font-size: 22px; line-height: 1.45; }
.reveal .jp-InputPrompt, .reveal .jp-OutputPrompt { display: none; }
.reveal pre { width: 100%; box-shadow: none; font-size: 15px; line-height: 1.4; margin: 0; }
.reveal .jp-InputArea-editor { border: 0; background: #f6f8fa; }
.reveal .jp-OutputArea-output { overflow: visible; }
.reveal .jp-RenderedImage img { margin: 0; max-height: 520px; }
"""


class MissingPackages(ImportError):
    """What slides are made of is not installed; the message says how to get it."""


def save_slides(directory: str | Path, notebooks: Iterable[str | Path]) -> Iterator[Path]:
    """Run notebooks and write their slides into a folder, one HTML file each.

    A heading begins a slide, and so does code that is too long to stand beside its figure. Folded
    solutions are left out. A figure that is alive in a saved page is alive on a slide.

    Parameters
    ----------
    directory : str or Path
        The folder; it is made if it is not there. Files of the same names are replaced.
    notebooks : iterable of str or Path
        The notebooks. They are run in kernels of their own, and not changed.

    Yields
    ------
    Path
        Each file when it is written.

    Raises
    ------
    MissingPackages
        If the extra ``slides`` is not installed.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingPackages(
            f"slides need {', '.join(missing)}, from which reveal.js and MathJax are taken, or "
            "which run the notebooks; the extra `slides` installs them"
        )
    folder = Path(directory).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    for notebook in map(Path, notebooks):
        target = folder / f"{notebook.stem}.html"
        target.write_text(_page(_executed(notebook), notebook.stem), encoding="utf-8")
        yield target


def marked(notebook: Any) -> Any:
    """Say for each cell of a notebook where it stands among the slides, and return the notebook."""
    notebook.cells = list(_apart(notebook.cells))
    for cell in notebook.cells:
        where = "-"
        if cell.cell_type == "markdown":
            where = "slide" if _HEADING.match(cell.source) else "-"
        elif cell.outputs and not cell.source:
            where = "subslide"
        elif all(_HIDDEN.match(line) or not line for line in cell.source.splitlines()):
            where = "skip"
        elif cell.source.count("\n") >= _LONG:
            where = "subslide"
        cell.metadata["slideshow"] = {"slide_type": where}
    return notebook


def _apart(cells: Iterable[Any]) -> Iterator[Any]:
    """Leave folded solutions out, and cut code off its outputs where one of them is long."""
    for cell in cells:
        if cell.cell_type == "markdown":
            text = _SOLUTIONS.sub("", cell.source).strip()
            if text:
                cell.source = text
                yield cell
            continue
        outputs = cell.get("outputs", [])
        if not outputs or (cell.source.count("\n") < _LONG and not any(map(_tall, outputs))):
            yield cell
            continue
        shown = deepcopy(cell)
        cell.outputs = []
        yield cell
        shown.source, shown.id = "", f"{cell.id}-outputs"[-64:]
        shown.metadata["transient"] = {"remove_source": True}
        yield shown


def _tall(output: Any) -> bool:
    """Return whether an output is a figure that is alive, or one as tall."""
    data = output.get("data", {})
    kind, mark = _TALL
    return kind in data or mark in data.get("text/html", "")


def _executed(notebook: Path) -> Any:
    """Return the notebook with the outputs of a run."""
    import nbformat
    from nbclient import NotebookClient

    node = nbformat.read(notebook, as_version=4)
    here = {"metadata": {"path": str(notebook.resolve().parent)}}
    NotebookClient(node, timeout=600, store_widget_state=False, resources=here).execute()
    return node


def _page(notebook: Any, name: str) -> str:
    """Return the slides of a notebook that has been run."""
    from jinja2 import DictLoader
    from nbconvert.exporters import SlidesExporter

    exporter = SlidesExporter(
        extra_loaders=[DictLoader({"optlab.html.j2": TEMPLATE})],
        template_file="optlab.html.j2",
        reveal_url_prefix=_IN_THE_PAGE,
    )
    exporter.environment.globals.update(
        optlab_mathjax=_script(_shipped(*_MATHJAX).read_text(encoding="utf-8")),
        optlab_reveal=_script(_shipped(*_REVEAL, "reveal.js").read_text(encoding="utf-8")),
        optlab_style=_styles(),
    )
    page, _ = exporter.from_notebook_node(marked(notebook), {"metadata": {"name": name}})
    # The template links to reveal's own style sheets; they are in the page.
    return re.sub(rf"<link[^>]*{_IN_THE_PAGE}[^>]*>", "", page)


def _shipped(package: str, *path: str) -> Path:
    """Return a file of an installed package, which is not imported."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.joinpath(*path)


def _styles() -> str:
    """Return reveal's styles and its white theme, without the fonts that it imports."""
    files = [_shipped(*_REVEAL, name) for name in ("reveal.css", "theme/white.css")]
    styles = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r"@import url\([^)]*\);?", "", styles) + STYLE


def _script(text: str) -> str:
    """Return a script as it may stand in a page, without a link to its source map."""
    return re.sub(r"//# sourceMappingURL=\S+", "", text).replace("</script", "<\\/script")
