"""The pages of the reference: one for every package, one for every class and function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs import names

ROOT = Path(__file__).resolve().parents[1]

#: A package with as many names is shown in groups.
_LONG = 45


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path of every page of the reference, and its text."""
    for place, found in names.by_module().items():
        yield f"reference/api/{place}.rst", _package_page(place, found)
    for name in names.pages():
        yield f"reference/api/{name.file}.rst", _name_page(name)
    entries = "\n".join(f"   {place}" for place in names.by_module())
    index = f"""{_heading("Every public name")}
By package, each with its formula, its source and an example that runs as a test.

.. toctree::
   :maxdepth: 1

{entries}
"""
    yield "reference/api/index.rst", index


def short(path: str) -> str:
    """Return a path as a program writes it, with ``ol`` for optlab.

    Examples
    --------
    >>> short("optlab.nn.Linear")
    'ol.nn.Linear'
    """
    return "ol" + path.removeprefix("optlab") if path.startswith("optlab") else path


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def _package_page(place: str, found: dict[str, names.Name]) -> str:
    text = [_heading(names.MODULES[place])]
    about = _first_paragraph(names.module(place))
    if about and place != "optlab":
        text += [about, ""]
    for group, members in _groups(place, found).items():
        if group:
            text.append(_heading(group[:1].upper() + group[1:], "-"))
        text += [".. list-table::", "   :widths: 34 66", "   :class: names", ""]
        for attribute, name in members.items():
            shown = short(f"{place}.{attribute}")
            link = f":doc:`{shown} <{name.file}>`" if name.own else f"``{shown}``"
            said = _first_paragraph(name.thing) if name.own else _about_value(name.thing)
            text += [f"   * - {link}", f"     - {said}"]
        text.append("")
    own = sorted({name.file for name in found.values() if name.own and name.place == place})
    if own:
        text += [".. toctree::", "   :hidden:", "", *(f"   {file}" for file in own), ""]
    return "\n".join(text)


def _name_page(name: names.Name) -> str:
    text = [":html_theme.sidebar_secondary.remove: true", "", _heading(short(name.path))]
    text += [f".. currentmodule:: {name.place}", ""]
    if inspect.isclass(name.thing):
        text += [f".. autoclass:: {name.path}", "   :show-inheritance:"]
        members = names.members(name.thing)
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


@cache
def _used_in_gallery() -> set[str]:
    """Return the names that scripts of the gallery use."""
    scripts = (path.read_text(encoding="utf-8") for path in (ROOT / "gallery").glob("*.py"))
    return {f"optlab{name}" for text in scripts for name in re.findall(r"\bol((?:\.\w+)+)", text)}


def _first_paragraph(thing: object) -> str:
    text = (getattr(thing, "__doc__", None) or "").strip()
    return " ".join(re.split(r"\n\s*\n", text)[0].split())


def _about_value(thing: object) -> str:
    """Say in words what a name is that has no page: a surface, an event, a name of NumPy's."""
    kind = type(thing)
    if kind.__name__ == "Surface":
        formula = f" :math:`{thing.formula}`" if thing.formula else ""  # type: ignore[attr-defined]
        return f"{thing.title}:{formula}. {thing.shows}".replace(":.", ".")  # type: ignore[attr-defined]
    if kind.__name__ == "Event":
        return f"When {thing.name}."  # type: ignore[attr-defined]
    if isinstance(thing, type) or kind.__module__ == "numpy" or hasattr(thing, "__wrapped__"):
        return f"NumPy's ``{getattr(thing, '__name__', thing)}``."
    return f"``{thing!r}``" if len(repr(thing)) < 120 else f"A ``{kind.__name__}``."


# Groups of a long package ----------------------------------------------------------------------

#: Groups of the names of `ol` itself, by the room that defines them.
_ROOMS = {
    "transforms": "derivatives",
    "tensor": "tensors",
    "random": "random numbers",
    "checkpoint": "memory",
    "remat": "memory",
    "backend": "devices, seeds, threads",
    "lab": "experiments",
    "trace": "experiments",
    "explorer": "experiments",
}


def _groups(place: str, found: dict[str, names.Name]) -> dict[str, dict[str, names.Name]]:
    """Return the names of a package in groups: those of a long one by the file they are from."""
    if len(found) < _LONG:
        return {"": found}
    made: dict[str, dict[str, names.Name]] = {}
    for attribute, name in found.items():
        made.setdefault(_group(place, name), {})[attribute] = name
    few = [group for group, members in made.items() if len(members) < 3]
    rest = {attribute: name for group in few for attribute, name in made.pop(group).items()}
    made = dict(sorted(made.items(), key=lambda item: (item[0].startswith("Paddle"), item[0])))
    return {**made, "others": dict(sorted(rest.items()))} if rest else made


def _group(place: str, name: names.Name) -> str:
    parts = str(getattr(name.thing, "__module__", "") or "").split(".")
    if place == "optlab":
        if "paddle_names" in parts:
            return f"Paddle's names: {parts[-1]}"
        return next((_ROOMS[part] for part in parts if part in _ROOMS), "others")
    depth = len(place.split("."))
    inside = parts[depth:] if parts[:depth] == place.split(".") else parts[-1:]
    inside = [part for part in inside if part != "layers"] or parts[-1:]
    return inside[0].replace("_", " ")
