"""Write what Sphinx reads: the pages of this folder, and those that are made from the repository.

Pages here link to files of the repository, so that the links work where the repository is read; in
the site such a link leads to the page that was made from the file.
"""

from __future__ import annotations

import contextlib
import io
import json
import posixpath
import re
import shutil
from pathlib import Path
from textwrap import indent

from docs import names

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = HERE / "_build"

#: Documents of the repository, and their pages.
DOCUMENTS = {
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "development/changelog.md",
    "benchmarks/README.md": "reference/benchmarks.md",
    "optlab/autograd/rules/README.md": "reference/rules.md",
    "gallery/ranking.md": "explanation/ranking.md",
    "README.md": "index.md",
    "gallery/README.md": "gallery/index.md",
}
#: Read in the repository, but no pages of their own: the front page and the gallery stand for them.
_NO_COPY = {"README.md", "gallery/README.md"}


def write(target: Path) -> None:
    """Write all sources under `target`; what has not changed keeps its time, and is not read again.

    Parameters
    ----------
    target : Path
        Emptied of what is no longer written.
    """
    files = dict(_files())
    for path in sorted(target.rglob("*"), reverse=True):
        made_by_gallery = {"gallery", "reference/used"} & {
            path.relative_to(target).as_posix(),
            path.relative_to(target).parts[0],
            "/".join(path.relative_to(target).parts[:2]),
        }
        if path.is_file() and not made_by_gallery and path.relative_to(target).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        _write(target / name, content)
    _write(BUILD / "static" / "mathjax.js", _mathjax())
    _write(BUILD / "extra" / "explorer-alone.html", _explorer_page())


def _write(path: Path, content: str | bytes) -> None:
    data = content.encode("utf-8") if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _files():
    """Yield the path of every source, and what is in it."""
    for path in sorted(HERE.rglob("*")):
        place = path.relative_to(HERE)
        if place.parts[0].startswith("_") or path.suffix not in (".md", ".png", ".svg"):
            continue
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            yield place.as_posix(), relinked(text, f"docs/{place.as_posix()}", place.as_posix())
        else:
            yield place.as_posix(), path.read_bytes()
    for document, page in DOCUMENTS.items():
        if document not in _NO_COPY:
            text = (ROOT / document).read_text(encoding="utf-8")
            yield page, relinked(text, document, page)
    for path in pictures():
        yield f"pictures/{path.name}", path.read_bytes()
    for path in notebooks():
        yield f"tutorials/{path.name}", _notebook(path)
    yield from _gallery()
    yield from _reference()
    yield "reference/command-line-help.md", _command_line()
    yield "explorer.md", _explorer()


def pictures() -> list[Path]:
    """Return the pictures of the gallery."""
    return sorted((ROOT / "gallery").glob("*.png"))


def notebooks() -> list[Path]:
    """Return the notebooks, in their order."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


# Links.


def relinked(text: str, source: str, page: str) -> str:
    """Return Markdown whose links to files of the repository lead to pages of the site.

    Parameters
    ----------
    text : str
    source : str
        The file that it stands in, from the root of the repository.
    page : str
        The page that it becomes, from the root of the site.
    """

    def linked(match: re.Match[str]) -> str:
        label, target = match[1], match[2]
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        found = page_of(path)
        if found is None:
            # A file without a page: its path, to be read in a clone.
            return f"`{path}`" if re.fullmatch(r"[`\w./-]+", label) else f"{label} (`{path}`)"
        there = posixpath.relpath(found, posixpath.dirname(page) or ".")
        return f"[{label}]({there}{'#' + anchor if anchor else ''})"

    picture = r"\[(!\[[^\]]*\]\([^)\s]+\))\]\(([^)\s]+)\)"
    text = re.sub(picture, lambda m: f"[{_pictured(m[1], source, page)}]({_there(m, source, page)})", text)
    text = re.sub(r"(?<!\[)!\[[^\]]*\]\([^)\s]+\)", lambda m: _pictured(m[0], source, page), text)
    parts = re.split(r"(```.*?```|\[!\[.*?\)\]\(.*?\)|!\[[^\]]*\]\([^)\s]+\))", text, flags=re.DOTALL)
    links = r"\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)"
    return "".join(
        part if i % 2 else re.sub(links, linked, part) for i, part in enumerate(parts)
    )


def _there(match: re.Match[str], source: str, page: str) -> str:
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
    found = page_of(path)
    return posixpath.relpath(found or path, posixpath.dirname(page) or ".")


def _pictured(image: str, source: str, page: str) -> str:
    """Return an image whose file is that of the site."""

    def moved(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        if path.startswith("gallery/"):
            path = "pictures/" + posixpath.basename(path)
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        return f"![{match[1]}]({posixpath.relpath(path, posixpath.dirname(page) or '.')})"

    return re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", moved, image)


def page_of(path: str) -> str | None:
    """Return the page of a file of the repository, from the root of the site."""
    if path in DOCUMENTS:
        return "gallery/index.rst" if path == "gallery/README.md" else DOCUMENTS[path]
    folder, _, file = path.rpartition("/")
    if folder == "gallery" and file.endswith(".py"):
        return f"gallery/{file.removesuffix('.py')}.rst"
    if path == "gallery":
        return "gallery/index.rst"
    if folder == "notebooks" and file.endswith(".ipynb"):
        return f"tutorials/{file}"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return None


# Pages made from other files.


def _notebook(path: Path) -> str:
    """Return a notebook with links of the site; its code is left alone."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = relinked(
                "".join(cell["source"]), f"notebooks/{path.name}", f"tutorials/{path.name}"
            )
            cell["source"] = text.splitlines(keepends=True)
    return json.dumps(notebook, indent=1)


def _mathjax() -> bytes:
    import mathjax

    return (
        Path(mathjax.__file__).parent / "static" / "mathjax" / "es5" / "tex-svg-full.js"
    ).read_bytes()


def _command_line() -> str:
    """Return what the command says of itself."""
    from optlab import cli

    parser = cli._parser()
    [commands] = [a for a in parser._actions if hasattr(a, "choices") and a.choices]
    texts = [("optlab", parser)] + [(f"optlab {name}", p) for name, p in commands.choices.items()]
    return "---\norphan: true\n---\n\n" + "\n\n".join(
        f"```text\n$ {name} --help\n{sub.format_help().strip()}\n```" for name, sub in texts
    )


def _explorer_page() -> str:
    from optlab.viz.explorer import explore

    out = explore().change(step=60).to_html(library=True)
    assert isinstance(out, str)
    return out


def _explorer() -> str:
    """Return the page with the explorer, whole, without sidebars."""
    page = _explorer_page()
    [live] = re.findall(r'<div data-ol=.*</div>\s*(?=</body>)', page, re.DOTALL)
    return (
        "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n# The explorer\n\n"
        f"```{{raw}} html\n<div class=\"site-explorer\">\n{live}</div>\n```\n\n"
        "This is the whole explorer, without a kernel: all presets, all optimizers that work element by\n"
        "element, a field for a formula of your own. "
        "<a href=\"explorer-alone.html\" download>Take it along as one file</a> that needs no network,\n"
        "or write one that opens on your own function: [](how-to/export-a-page.md).\n"
    )


# The gallery.


def _titles() -> dict[str, str]:
    """Return the headings of the gallery's README by script, in their order."""
    found: dict[str, str] = {}
    heading = ""
    for line in (ROOT / "gallery" / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:].strip()
        for script in re.findall(r"\]\((\w+)\.py\)", line):
            if script not in found:
                found[script] = "" if heading in found.values() else heading
    return found


def _gallery():
    """Yield the scripts as sphinx-gallery reads them: a title, the picture, then the script."""
    titles = _titles()
    for position, script in enumerate(titles):
        path = ROOT / "gallery" / f"{script}.py"
        text = path.read_text(encoding="utf-8")
        match = re.match(r'"""(.*?)"""\n', text, re.DOTALL)
        assert match, f"{path} begins with no docstring"
        first, _, rest = match[1].strip().partition("\n\n")
        title = titles[script] or first.rstrip(".")
        picture = f"{script.replace('_', '-')}.png"
        body = f"{first}\n\n{rest}".strip()
        docstring = (
            f"{title}\n{'=' * len(title)}\n\n{body.split(chr(10) * 2)[0]}\n\n"
            f".. image:: /pictures/{picture}\n   :alt: {title}\n   :class: gallery-picture\n\n"
            + "\n\n".join(body.split("\n\n")[1:])
        )
        settings = (
            f"# sphinx_gallery_thumbnail_path = 'pictures/{picture}'\n"
            f"# sphinx_gallery_order = {position}\n"
        )
        yield f"_gallery/{script}.py", f'r"""\n{docstring.strip()}\n"""\n{settings}{text[match.end():]}'
    header = (
        "Gallery\n=======\n\nEvery picture is made by the script on its page; the tests run them.\n"
    )
    yield "_gallery/GALLERY_HEADER.rst", header


# The reference.


def _reference():
    """Yield a page for every public name, and one with a table for every package."""
    entries = []
    for place, found in names.by_module().items():
        yield f"reference/api/{place}.rst", _package_page(place, found)
        entries.append(place)
    for name in names.pages():
        yield f"reference/api/{name.file}.rst", _name_page(name)
    lines = "\n".join(f"   {entry}" for entry in entries)
    yield (
        "reference/api/index.rst",
        "Every public name\n=================\n\n"
        "By package, each with its formula, its source and an example that runs as a test.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{lines}\n",
    )


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def short(path: str) -> str:
    """Return a path as a program writes it, with `ol` for optlab."""
    return "ol" + path.removeprefix("optlab") if path.startswith("optlab") else path


def _first_paragraph(thing: object) -> str:
    text = (getattr(thing, "__doc__", None) or "").strip()
    return " ".join(text.split("\n\n")[0].split())


def groups(place: str, found: dict[str, names.Name]) -> dict[str, dict[str, names.Name]]:
    """Return the names of a package in groups: long packages by the file that defines them."""
    if len(found) < 45:
        return {"": found}
    made: dict[str, dict[str, names.Name]] = {}
    for attribute, name in found.items():
        made.setdefault(_group(place, name), {})[attribute] = name
    few = [group for group, members in made.items() if len(members) < 3]
    rest = {attribute: name for group in few for attribute, name in made.pop(group).items()}
    ordered = {group: made[group] for group in sorted(made)}
    if rest:
        ordered["others"] = dict(sorted(rest.items()))
    return ordered


def _group(place: str, name: names.Name) -> str:
    parts = str(getattr(name.thing, "__module__", "") or "").split(".")
    if place == "optlab":
        if "paddle_names" in parts:
            return f"Paddle's names: {parts[-1]}"
        known = {"autograd": parts[2] if len(parts) > 2 else "autograd", "backend": "program"}
        words = {
            "transforms": "derivatives", "tensor": "tensors", "random": "random numbers",
            "checkpoint": "memory", "remat": "memory", "lab": "experiments",
        }  # fmt: skip
        key = known.get(parts[1], parts[1]) if len(parts) > 1 else "others"
        return words.get(key, key)
    depth = len(place.split("."))
    inside = parts[depth:] if parts[:depth] == place.split(".") else parts[-1:]
    inside = [part for part in inside if part not in ("layers",)] or parts[-1:]
    return inside[0].replace("_", " ")


def _package_page(place: str, found: dict[str, names.Name]) -> str:
    title = names.MODULES[place]
    here = names.module(place)
    text = [_heading(title), ""]
    about = _first_paragraph(here)
    if about and place != "optlab":
        text += [about, ""]
    hidden = sorted({name.file for name in found.values() if name.own and name.place == place})
    for group, members in groups(place, found).items():
        if group:
            text += [_heading(group[:1].upper() + group[1:], "-"), ""]
        text += [".. list-table::", "   :widths: 34 66", "   :class: names", ""]
        for attribute, name in members.items():
            shown = f"{place}.{attribute}"
            if name.own:
                link = f":doc:`{short(shown)} <{name.file}>`"
                said = _first_sentence(name.thing)
            else:
                link, said = f"``{short(shown)}``", _about_value(name.thing)
            text += [f"   * - {link}", f"     - {said}"]
        text.append("")
    if hidden:
        text += [".. toctree::", "   :hidden:", ""] + [f"   {file}" for file in hidden] + [""]
    return "\n".join(text)


def _first_sentence(thing: object) -> str:
    text = _first_paragraph(thing)
    # Roles and references of a summary are shown as its page shows them.
    return text if len(text) < 160 else text[:157].rsplit(" ", 1)[0] + " ..."


def _about_value(thing: object) -> str:
    title = getattr(thing, "title", None)
    if isinstance(title, str) and hasattr(thing, "minima"):
        return f"A surface: {title}."
    summary = getattr(thing, "about", None)
    if isinstance(summary, str):
        return " ".join(summary.split())
    place = str(getattr(thing, "__module__", "") or "")
    if isinstance(thing, type) or place.startswith("numpy") or type(thing).__module__ == "numpy":
        return f"NumPy's ``{getattr(thing, '__name__', thing)}``."
    if type(thing).__name__ == "Event":
        return f"An event: ``{getattr(thing, 'name', '')}``."
    return f"``{thing!r}``" if len(repr(thing)) < 120 else f"A ``{type(thing).__name__}``."


def _name_page(name: names.Name) -> str:
    import inspect

    place, _, attribute = name.path.rpartition(".")
    title = short(name.path)
    text = [f":html_theme.sidebar_secondary.remove: true\n", _heading(title), f".. currentmodule:: {place}", ""]
    if inspect.isclass(name.thing):
        members = names.members(name.thing)
        text += [f".. autoclass:: {name.path}", "   :show-inheritance:"]
        if members:
            text.append("   :members: " + ", ".join(members))
    else:
        text.append(f".. autofunction:: {name.path}")
    text.append("")
    if name.also:
        places = ", ".join(f"``{short(path)}``" for path in name.also)
        text += [f"The same as {places}.", ""]
    if name.path in _used_in_gallery():
        text += [".. rubric:: In the gallery", "", f".. minigallery:: {name.path}", ""]
    return "\n".join(text)


def _used_in_gallery() -> set[str]:
    """Return the names that gallery scripts use, as sphinx-gallery finds them."""
    used = set()
    for path in sorted((ROOT / "gallery").glob("*.py")):
        for name in re.findall(r"\bol((?:\.\w+)+)", path.read_text(encoding="utf-8")):
            used.add("optlab" + name)
    return used
