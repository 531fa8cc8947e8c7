"""Text for messages and labels: lists of things, one line of any text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def comma_list(items: Iterable[Any], most: int | None = None) -> str:
    """Return items separated by commas: all, or the first `most` and how many more there are.

    Examples
    --------
    >>> comma_list([1, 2, 3]), comma_list(["a", "b", "c", "d"], most=2)
    ('1, 2, 3', 'a, b and 2 more')
    """
    words = [str(item) for item in items]
    if most is None or len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[:most])} and {len(words) - most} more"


def and_list(items: Iterable[Any], word: str = "and") -> str:
    """Return items as a sentence has them, with `word` before the last.

    Examples
    --------
    >>> and_list(["Adam"]), and_list(["Adam", "SGD", "Lion"])
    ('Adam', 'Adam, SGD and Lion')
    """
    *words, last = [str(item) for item in items]
    return f"{', '.join(words)} {word} {last}" if words else last


def or_list(options: Iterable[Any]) -> str:
    """Return the options of an argument as they are written in code.

    Examples
    --------
    >>> or_list(("min", "max"))
    "'min' or 'max'"
    """
    return and_list(map(repr, options), "or")


def one_line(text: str, most: int = 60) -> str:
    r"""Return any text as one line of printable characters, cut after `most`.

    Line breaks, control characters, direction marks and lone surrogates (which no file, browser or
    font can take) become spaces.

    Examples
    --------
    >>> one_line("two\nlines"), one_line("a rather long name", most=9), one_line(" ")
    ('two lines', 'a rather…', '(no name)')
    """
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: 10 * most])
    words = " ".join(printable.split())
    if len(words) > most or len(text) > 10 * most:
        words = words[: most - 1].rstrip() + "…"
    return words or "(no name)"


def encodable(text: str) -> str:
    r"""Return a text that UTF-8 can encode: lone surrogates become question marks.

    Examples
    --------
    >>> encodable("a\ud800b")
    'a?b'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def unique_lines(names: Iterable[str], most: int = 60) -> dict[str, str]:
    r"""Return `one_line` of each name, numbered where two would be equal.

    Examples
    --------
    >>> unique_lines(["a", "b\n", "b", "b "])
    {'a': 'a', 'b\n': 'b', 'b': 'b (2)', 'b ': 'b (3)'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        line, number = one_line(name, most), 1
        while line in taken:
            number += 1
            line = f"{one_line(name, most - len(f' ({number})'))} ({number})"
        taken.add(line)
        found[name] = line
    return found
