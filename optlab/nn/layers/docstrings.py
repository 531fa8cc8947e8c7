"""Docstrings of layers whose arguments are documented elsewhere: by a function or a base class."""

from __future__ import annotations

import inspect
import re
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

Cls = TypeVar("Cls", bound=type)

_ORDER = (
    "", "Parameters", "Attributes", "Returns", "Raises", "See Also", "Notes", "References",
    "Examples",
)  # fmt: skip


class Entry(NamedTuple):
    """The type and the description of one argument, or of several that share them."""

    kind: str
    text: str


class _Docstring:
    """The docstring of a class, completed when it is first read, so that imports do not pay."""

    def __init__(self, cls: type, source: Any, common: dict[str, Entry]) -> None:
        self.cls, self.source, self.common = cls, source, common
        self.own, self.text = cls.__doc__, ""

    def __get__(self, instance: object, owner: type) -> str:
        if not self.text:
            found, own = _sections(self.source and self.source.__doc__), _sections(self.own)
            known = _entries(found.get("Parameters", "")) | self.common
            known |= _entries(own.pop("Parameters", ""))
            if not isinstance(self.source, type):
                found = {"See Also": _see(self.source)} if self.source else {}
            found |= own | {"Parameters": _parameters(self.cls, known)}
            self.text = "\n\n".join(
                f"{title}\n{'-' * len(title)}\n{found[title]}" if title else found[""]
                for title in _ORDER
                if found.get(title)
            )
        return self.text


def complete_docstring(cls: type, source: Any, common: dict[str, Entry] | None = None) -> None:
    """Let the docstring of a class list the arguments of its constructor, with their defaults.

    Its own Parameters section comes first, then `common`, then the section of `source`: a function,
    which the class then refers to, or a base class, whose other sections it inherits too.
    """
    if cls.__doc__:  # python -OO leaves none
        cls.__doc__ = _Docstring(cls, source, common or {})  # type: ignore[assignment]


def inherit_docstring(cls: Cls) -> Cls:
    """Complete the docstring of a class by that of its base class; a decorator."""
    complete_docstring(cls, cls.__base__)
    return cls


def _sections(doc: str | None) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title; the title of the first is empty."""
    parts = re.split(r"(?m)^([A-Z][A-Za-z ]+)\n-{3,}\n", inspect.cleandoc(doc or ""))
    titles = ["", *parts[1::2]]
    return {title: text.rstrip() for title, text in zip(titles, parts[::2], strict=True)}


def _entries(section: str) -> dict[str, Entry]:
    """Return the entries of a Parameters section by argument."""
    found: dict[str, Entry] = {}
    for item in re.split(r"\n(?=\S)", section):
        head, _, text = item.partition("\n")
        names, _, kind = head.partition(" : ")
        found |= dict.fromkeys(names.split(", "), Entry(kind.partition(", default ")[0], text))
    return found


def _parameters(cls: type, known: dict[str, Entry]) -> str:
    """Return a Parameters section; an argument that is not known is listed with its annotation."""
    rows = []
    for name, argument in inspect.signature(cls).parameters.items():
        entry = known.get(name) or Entry(str(argument.annotation), "")
        rows.append((_kind(entry, argument.default), entry.text, name))
    found: list[str] = []
    for (kind, text), group in groupby(rows, lambda row: row[:2]):
        names = [name for *_, name in group]
        for head in [", ".join(names)] if text else names:
            found += filter(None, [f"{head} : {kind}" if kind else head, text])
    return "\n".join(found)


def _kind(entry: Entry, default: Any) -> str:
    """Return the type of an argument, with its default in this class."""
    if default is None or default is inspect.Parameter.empty:
        return entry.kind
    kind = entry.kind.removesuffix(", optional")
    return f"{kind}, default {default!r}" if kind else f"default {default!r}"


def _see(function: Any) -> str:
    """Return the reference to the function of a layer."""
    if not getattr(function, "__module__", "").startswith("optlab.nn.functional"):
        return ""
    return f"optlab.nn.functional.{function.__name__} : the function: formula, shapes and errors."
