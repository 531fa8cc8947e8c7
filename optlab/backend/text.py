"""Lists of things as text, for messages."""

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
