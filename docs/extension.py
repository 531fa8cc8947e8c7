"""What the site adds to Sphinx: names in texts are links, pages of the reference have neighbors."""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes

from docs import names, reference, sources

_NAME = re.compile(r"ol((?:\.\w+)+)(?:\(.*\))?", re.DOTALL)


def gallery_order(file: str) -> int:
    """Return the place of a script in the gallery's README, which orders the gallery."""
    return list(sources.titles()).index(Path(file).stem)


@cache
def _pages() -> dict[str, names.Name]:
    """Return every public path, aliases too, and the name whose page it has."""
    return {path: name for name in names.pages() for path in (name.path, *name.also)}


def link_names(app: Any, doctree: Any, docname: str) -> None:
    """Turn ``ol.compare(...)`` in a text into a link to its page of the reference."""
    for literal in list(doctree.findall(nodes.literal)):
        match = _NAME.fullmatch(literal.astext())
        if match is None or isinstance(literal.parent, nodes.reference | nodes.title):
            continue
        path = "optlab" + match[1]
        name, anchor = _pages().get(path), path
        if name is None:  # a method: its class has the page
            name = _pages().get(path.rpartition(".")[0])
            if name is None or path.rpartition(".")[2] not in names.members_of(name.thing):
                continue
            anchor = f"{name.path}.{path.rpartition('.')[2]}"
        else:
            anchor = name.path
        target = f"reference/api/{name.file}"
        if target == docname:
            continue
        uri = app.builder.get_relative_uri(docname, target) + f"#{anchor}"
        reference = nodes.reference("", "", internal=True, refuri=uri, classes=["name"])
        literal.replace_self(reference)
        reference += literal


def name_bases(app: Any, name: str, obj: Any, options: Any, bases: list[Any]) -> None:
    """Show the bases of a class by their public names."""
    shown = []
    for base in bases:
        known = next((n for n in names.pages() if n.thing is base), None)
        if known is not None:
            shown.append(f":py:class:`{reference.short(known.path)} <{known.path}>`")
        elif base.__module__ == "builtins" and base is not object:
            shown.append(f":py:class:`{base.__name__}`")
    bases[:] = shown or [":py:class:`object`"]


def defining_module(app: Any, place: str, attribute: str) -> str | None:
    """Return the module whose file has the source; ``__module__`` of classes is their package."""
    thing: Any = names.module(place)
    for part in attribute.split("."):
        thing = (
            inspect.getattr_static(thing, part, None)
            if inspect.isclass(thing)
            else getattr(thing, part, None)
        )
    thing = getattr(thing, "__func__", None) or getattr(thing, "fget", None) or thing
    definition = vars(thing).get("__wrapped__") if inspect.isclass(thing) else None
    definition = definition.names["__module__"] if definition is not None else None
    return definition or getattr(thing, "__module__", None)


def add_neighbors(app: Any, pagename: str, templatename: str, context: Any, doctree: Any) -> None:
    """Give a page of the reference the names of its package, for the sidebar."""
    if not pagename.startswith("reference/api/"):
        return
    page = pagename.removeprefix("reference/api/")
    groups = names.by_module()
    place = page if page in groups else None
    if place is None:
        found = [n for n in names.pages() if n.file == page]
        place = found[0].place if found else None
    context["package"] = place and reference.short(place)
    context["package_page"] = place and f"reference/api/{place}"
    context["neighbors"] = [
        (name.path.rpartition(".")[2], f"reference/api/{name.file}", name.file == page)
        for name in groups.get(place or "", {}).values()
        if name.own and name.place == place
    ]


def lead_back(app: Any, pagename: str, templatename: str, context: Any, doctree: Any) -> None:
    """Mend the links from source code to the reference.

    viewcode takes all names of a file to be documented under one package; where one is documented
    under another, the link leads to the top of its page.
    """
    if pagename.startswith("_modules/"):
        context["body"] = re.sub(
            r'(href="[^"]*reference/api/([\w.]+?)(?:-class)?\.html)#([\w.]+)"',
            lambda m: m[0] if f"{m[3]}.".startswith(f"{m[2]}.") else f'{m[1]}"',
            context["body"],
        )


def setup(app: Any) -> dict[str, bool]:
    """Connect everything."""
    app.connect("doctree-resolved", link_names)
    app.connect("autodoc-process-bases", name_bases)
    app.connect("html-page-context", add_neighbors)
    app.connect("html-page-context", lead_back)
    app.connect("viewcode-follow-imported", defining_module)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
