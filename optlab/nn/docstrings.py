"""Docstrings of functions and layers whose arguments are documented by a function or a class."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

Cls = TypeVar("Cls", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

_ORDER = (
    "", "Parameters", "Attributes", "Returns", "Raises", "See Also", "Notes", "References",
    "Examples",
)  # fmt: skip

#: Words of 2-D functions, and those of their 1-D and 3-D forms.
_WORDS = {
    "NCHW": ("NCL", "NCDHW"), "NHWC": ("NLC", "NDHWC"), "KH, KW": ("K", "KD, KH, KW"),
    "H, W": ("L", "D, H, W"), "H', W'": ("L'", "D', H', W'"), "H' and W'": ("L'", "D', H' and W'"),
    "KH": ("K", "KH"), "H": ("L", "H"), "n, m": ("n", "k, n, m"), "h, w": ("l", "d, h, w"),
    "2d": ("1d", "3d"), "2D": ("1D", "3D"),
    "top, bottom, left": ("left", "front, back, top, bottom, left"),
    "int or list of int": ("int", "int or list of int"),
    "list of (int or None)": ("None", "list of (int or None)"),
    "row by row ": ("", "row by row "), "image": ("sequence", "volume"),
    "images": ("sequences", "volumes"),
}  # fmt: skip
# Whole words only (the H of "Huber" is no length), but for the dimensions in a name, as in conv2d.
# The border on the left stands after the first letter: `re` then skips to that letter (4x faster).
_WORD = re.compile(
    "|".join(
        f"2(?<=[a-z]2){word[1]}"
        if word[0] == "2"
        else rf"{word[0]}(?<!\w.){re.escape(word[1:])}" + r"\b" * word[-1].isalpha()
        for word in _WORDS
    )
)


class Entry(NamedTuple):
    """The type and the description of one argument, or of several that share them."""

    kind: str
    text: str


def documented_like(source: Any, dims: int = 2) -> Callable[[Function], Function]:
    """Complete the docstring of a function or a class by that of a similar one; a decorator.

    A function lists the arguments that both have, and takes the sections Returns and Raises that it
    lacks. For 1 or 3 spatial dimensions shapes of 2-D images are rewritten.

    Raises
    ------
    TypeError
        If an argument of a function is documented in neither docstring.
    """

    def complete(function: Function) -> Function:
        if isinstance(function, type):
            complete_docstring(function, source, dims=dims)
        elif function.__doc__:  # python -OO leaves none
            found, entries = _shared(source, dims)
            own = _sections(function.__doc__)
            known = entries | _entries(own.pop("Parameters", ""))
            names = [
                name
                for name in function.__annotations__
                if name in known or name not in ("name", "return")
            ]
            if unknown := [name for name in names if name not in known]:
                raise TypeError(
                    f"The docstring of {function.__name__} has no entry for {', '.join(unknown)}; "
                    f"nor has that of {source.__name__}."
                )
            rows = [(*known[name], name) for name in names]
            function.__doc__ = _docstring(found | own, rows)
        return function

    return complete


@cache
def _shared(source: Any, dims: int) -> tuple[dict[str, str], dict[str, Entry]]:
    """Return the Returns and Raises sections of a function, and the entries of its Parameters."""
    found = _sections(source.__doc__)
    found = {title: found.get(title, "") for title in ("Parameters", "Returns", "Raises")}
    found = _for_dims(found, dims)
    return found, _entries(found.pop("Parameters"))


def _for_dims(sections: dict[str, str], dims: int) -> dict[str, str]:
    """Return sections about images, rewritten for 1 or 3 spatial dimensions."""
    if dims == 2:
        return sections
    return {
        title: _WORD.sub(lambda word: _WORDS[word[0]][dims // 2], text)
        for title, text in sections.items()
    }


class _Docstring:
    """The docstring of a class, completed when it is first read, so that imports do not pay."""

    def __init__(self, cls: type, source: Any, common: dict[str, Entry], dims: int) -> None:
        self.cls, self.source, self.common, self.dims = cls, source, common, dims
        self.own, self.text = cls.__doc__, ""

    def __get__(self, instance: object, owner: type) -> str:
        if not self.text:
            found = _for_dims(_sections(self.source and self.source.__doc__), self.dims)
            own = _sections(self.own)
            known = _entries(found.get("Parameters", "")) | self.common
            known |= _entries(own.pop("Parameters", ""))
            if not isinstance(self.source, type):
                found = {"See Also": _see(self.source)} if self.source else {}
            self.text = _docstring(found | own, _constructor_rows(self.cls, known))
        return self.text


def complete_docstring(
    cls: type, source: Any, common: dict[str, Entry] | None = None, dims: int = 2
) -> None:
    """Let the docstring of a class list the arguments of its constructor, with their defaults.

    Its own Parameters section comes first, then `common`, then the section of `source`: a function,
    which the class then refers to, or a base class, whose other sections it inherits too, rewritten
    for its number of spatial dimensions.
    """
    if cls.__doc__:  # python -OO leaves none
        cls.__doc__ = _Docstring(cls, source, common or {}, dims)  # type: ignore[assignment]


def documented_with(common: str, rest: Iterable[str] = ()) -> Callable[[Cls], Cls]:
    r"""Complete the docstring of a class by arguments that classes of its kind share; a decorator.

    Its Parameters section then has the entries of the class in their order, and those of `common`
    that it lacks where the constructor takes these arguments.

    Parameters
    ----------
    common : str
        The entries of a Parameters section.
    rest : iterable of str
        The names of what the constructor takes as ``**options``.

    Examples
    --------
    >>> @documented_with("size : int\n    How many.")
    ... class Row:
    ...     '''Some numbers in a row.'''
    ...     def __init__(self, size): ...
    >>> [line.strip() for line in Row.__doc__.split("\n") if line.strip()]
    ['Some numbers in a row.', 'Parameters', '----------', 'size : int', 'How many.']
    """
    shared = _entries(common)

    def complete(cls: Cls) -> Cls:
        if cls.__doc__:  # python -OO leaves none
            sections = _sections(cls.__doc__)
            own = _entries(sections.pop("Parameters", ""))
            taken: list[str] = []
            for one in inspect.signature(cls).parameters.values():
                taken += rest if one.kind is one.VAR_KEYWORD else [one.name]
            names = [name for name in own if name]
            for i, name in enumerate(taken):
                if name in shared and name not in own:
                    later = (k for k, other in enumerate(names) if other in taken[i + 1 :])
                    names.insert(next(later, len(names)), name)
            known = shared | own
            cls.__doc__ = _docstring(sections, [(*known[name], name) for name in names])
        return cls

    return complete


def inherit_docstring(cls: Cls) -> Cls:
    """Complete the docstring of a class by that of its base class; a decorator."""
    return documented_like(cls.__base__)(cls)


def _sections(doc: str | None) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title; the title of the first is empty."""
    margin = re.search(r"\n( *)---", doc := doc or "")  # `cleandoc` takes ten times as long
    doc = doc.replace("\n" + margin[1], "\n") if margin else inspect.cleandoc(doc)
    parts = re.split(r"\n([A-Z][A-Za-z ]+)\n-{3,}\n", doc)
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


def _docstring(sections: dict[str, str], rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a docstring of sections and of the type, the description and the name of arguments."""
    found: list[str] = []
    for (kind, text), group in groupby(rows, lambda row: row[:2]):
        names = [name for *_, name in group]
        for head in [", ".join(names)] if text else names:
            found += filter(None, [f"{head} : {kind}" if kind else head, text])
    sections["Parameters"] = "\n".join(found)
    return "\n\n".join(
        f"{title}\n{'-' * len(title)}\n{sections[title]}" if title else sections[""]
        for title in _ORDER
        if sections.get(title)
    )


def _constructor_rows(cls: type, known: dict[str, Entry]) -> Iterable[tuple[str, str, str]]:
    """Yield the rows of the constructor; an argument that is not known has its annotation."""
    for name, argument in inspect.signature(cls).parameters.items():
        entry = known.get(name) or Entry(str(argument.annotation), "")
        yield _kind(entry, argument.default), entry.text, name


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
