"""The display registry: how a result finds the one who can draw it, without knowing pictures.

A result knows only its own kind, such as ``"comparison"``, and asks here. Whoever can draw that
kind declares so in the metadata of its package, under the entry point group ``optlab.renderers``::

    [project.entry-points."optlab.renderers"]
    comparison = "optlab.viz.renderers:comparison"

So the experiments stay below the pictures, run where nothing can draw, and another package can draw
results of its own, as plotting backends do for pandas.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "optlab.renderers"
"""The entry point group in which packages declare what they can draw."""


class Renderer(Protocol):
    """What can draw one kind of result: an object or a module with these functions."""

    def figure(self, result: Any, /, **options: Any) -> Any:
        """Return an interactive figure of `result`."""

    def save(self, result: Any, path: Path, /) -> None:
        """Write a picture of a result to a file, in the format that its name ends in."""

    def mimebundle(self, result: Any, /) -> dict[str, Any]:
        """Return `result` in the forms that a notebook can show, by MIME type."""


_renderers: dict[str, Renderer] = {}


def register(name: str, renderer: Renderer) -> None:
    """Let `renderer` draw results of kind `name` in this process.

    It goes before what installed packages declare under the same name.

    Parameters
    ----------
    name : str
        The kind of result, such as ``"comparison"``.
    renderer : Renderer
        An object or module with ``figure(result, **options)`` and ``mimebundle(result)``.

    Raises
    ------
    TypeError
        If `renderer` lacks one of the two.

    Examples
    --------
    >>> class InWords:
    ...     def figure(self, result):
    ...         return f"a picture of {result}"
    ...     def mimebundle(self, result):
    ...         return {"text/plain": str(result)}
    >>> register("sentence", InWords())
    >>> renderer("sentence").figure("a race")
    'a picture of a race'
    """
    for needed in ("figure", "mimebundle"):
        if not callable(getattr(renderer, needed, None)):
            raise TypeError(
                f"a renderer needs a function {needed}(result); {renderer!r} has none, "
                f"so it cannot draw {name!r}"
            )
    _renderers[name] = renderer


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Add the extra that pictures need to the error for a library that is not installed."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "optlab":
            raise  # a defect of optlab, which no installation would mend
        raise ModuleNotFoundError(
            f"pictures need the extra lab: pip install 'optlab[lab]' ({missing})",
            name=missing.name,
        ) from missing


def renderer(name: str) -> Renderer:
    """Find who draws results of kind `name`.

    Parameters
    ----------
    name : str
        The kind of result, such as ``"comparison"``.

    Returns
    -------
    Renderer
        What `register` was given, else what an installed package declares.

    Raises
    ------
    ModuleNotFoundError
        If nothing installed draws this kind, or what it draws with is not installed.

    Examples
    --------
    >>> renderer("horoscope")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: nothing installed draws 'horoscope'; ...
    """
    known = _renderers.get(name)
    if known is not None:
        return known
    # Importing it costs as much as the rest of floor 0; a run that draws nothing never pays.
    from importlib.metadata import entry_points

    declared = entry_points(group=GROUP)
    for entry in declared.select(name=name):
        with naming_the_extra():
            found: Renderer = entry.load()
        register(name, found)
        return found
    kinds = sorted({*_renderers, *(entry.name for entry in declared)})
    raise ModuleNotFoundError(
        f"nothing installed draws {name!r}; "
        + (f"what can be drawn: {', '.join(kinds)}" if kinds else "no renderer is installed")
        + ". Pictures need the extra lab: pip install 'optlab[lab]'"
    )
