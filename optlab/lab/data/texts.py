"""Texts that need no download."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optlab.backend.random import Key


class Text(NamedTuple):
    """A text for training, and a held-out one."""

    train: str
    validation: str


def pydoc_topics(share: float = 0.9) -> Text:
    """Return the reference of the Python language, as ``help()`` shows it.

    It is the text of ``pydoc_data.topics``, which comes with Python: a third of a million
    characters. Repeated sections (``help("while")`` is a part of ``help("compound")``) are taken
    once, so that held-out text does not occur in training. Topics are in alphabetical order, and
    the last ones are held out.

    Parameters
    ----------
    share : float
        The share of the text for training, between 0 and 1.

    Raises
    ------
    ModuleNotFoundError
        If this Python was built without its documentation.
    ValueError
        If the share leaves nothing for one of the two.

    Notes
    -----
    The text differs between versions of Python, and so do results on it.
    Source: the Python Software Foundation, "The Python language reference".

    Examples
    --------
    >>> text = pydoc_topics()
    >>> len(text.train) > 8 * len(text.validation) > 100_000
    True
    """
    _check_share(share)
    try:
        from pydoc_data.topics import topics
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "this Python was built without pydoc_data.topics, the texts that help() shows; "
            "Python from python.org or your package manager's full package has them."
        ) from error
    seen: set[str] = set()
    sections = []
    for topic in sorted(topics):
        for section in topics[topic].split("\n\n"):
            words = " ".join(section.split())  # whatever its indentation
            if words not in seen:
                seen.add(words)
                sections.append(section.strip("\n"))
    return divided("\n\n".join(sections) + "\n", share, "\n\n")


def divided(whole: str, share: float, boundary: str) -> Text:
    """Return a text in two parts, cut behind the last boundary before a share of it.

    Raises
    ------
    ValueError
        If one of the parts would be empty.

    Examples
    --------
    >>> divided("a b c d", 0.6, " ")
    Text(train='a b ', validation='c d')
    """
    _check_share(share)
    cut = whole.rfind(boundary, 0, round(share * len(whole))) + len(boundary)
    if cut < len(boundary):  # a text without lines
        cut = round(share * len(whole))
    if not whole[:cut] or not whole[cut:]:
        raise ValueError(
            f"a text of {len(whole)} characters leaves nothing for one of the two parts with "
            f"share={share!r}."
        )
    return Text(whole[:cut], whole[cut:])


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise ValueError(
            f"share is the part of the text for training, above 0 and below 1; got {share!r}."
        )


def windows(
    symbols: np.ndarray, length: int, count: int, step: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` windows of a text at random positions, and the symbol after each symbol.

    Parameters
    ----------
    symbols : array of int
        The text.
    length : int
        The length of the windows.
    count : int
        The number of windows.
    step : int
        The number of the batch: the positions depend only on the seed and this number.
    seed : int

    Returns
    -------
    tuple of arrays, shape [count, length]
        The windows, and the same shifted by one symbol.

    Raises
    ------
    ValueError
        If the text is too short.

    Examples
    --------
    >>> import numpy as np
    >>> inputs, targets = windows(np.arange(100), length=4, count=2, step=0)
    >>> inputs.shape, bool((targets == inputs + 1).all())
    ((2, 4), True)
    """
    if len(symbols) <= length:
        raise ValueError(
            f"a text of {len(symbols)} symbols has no piece of {length} with one more."
        )
    starts = Key(seed).fold("windows", step).generator().integers(len(symbols) - length, size=count)
    places = starts[:, None] + np.arange(length)
    return symbols[places], symbols[places + 1]
