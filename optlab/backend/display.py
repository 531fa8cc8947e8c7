"""The display registry: how a result finds its renderer without importing it.

A result knows only its own kind, such as ``"comparison"``, and looks up the renderer here. A
package declares the kinds that it renders in its metadata, under the entry point group
``optlab.renderers``::

    [project.entry-points."optlab.renderers"]
    comparison = "optlab.viz.renderers:comparison"

So experiments do not depend on pictures and run where nothing can draw, and other packages can
render their own results, as plotting backends do for pandas.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from optlab.backend.extras import missing, needed_for

GROUP = "optlab.renderers"
"""The entry point group in which packages declare what they render."""


class Renderer(Protocol):
    """Renders one kind of result: an object or a module with these functions."""

    def figure(self, result: Any, /, **options: Any) -> Any:
        """Return an interactive figure of `result`."""

    def save(self, result: Any, path: Path, /) -> None:
        """Write a static image of a result to a file, in the format of the file's extension."""

    def mimebundle(self, result: Any, /) -> dict[str, Any]:
        """Return `result` in the forms that a notebook can display, by MIME type."""


_renderers: dict[str, Renderer] = {}


def register(name: str, renderer: Renderer) -> None:
    """Register the renderer of results of kind `name` in this process.

    It takes precedence over what installed packages declare under the same name.

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


def renderer(name: str) -> Renderer:
    """Return the renderer of results of kind `name`.

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
    # Imported here, as it costs as much as the rest of the backend and few runs draw.
    from importlib.metadata import entry_points

    declared = entry_points(group=GROUP)
    for entry in declared.select(name=name):
        with needed_for(f"A picture of a {name.replace('_', ' ')}"):
            found: Renderer = entry.load()
        register(name, found)
        return found
    kinds = sorted({*_renderers, *(entry.name for entry in declared)})
    raise ModuleNotFoundError(
        f"nothing installed draws {name!r}; "
        + (
            f"what can be drawn: {', '.join(kinds)}."
            if kinds
            else f"no renderer is installed. {missing('A picture', 'optlab')}"
        )
    )


class SavedBySave:
    """A picture that is written by `save`, which it says where matplotlib's `savefig` is tried."""

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            if name == "savefig":
                raise AttributeError(
                    f"{type(self).__name__} has no savefig, as it is no figure of matplotlib; "
                    'write .save("picture.png").',
                    name=name,
                    obj=self,
                )
            return super().__getattribute__(name)


class Rendered(SavedBySave):
    """A result that the renderer of its kind draws."""

    #: The kind in the registry.
    drawn_as: ClassVar[str]

    def figure(self, **options: Any) -> Any:
        """Draw the result as a plotly figure.

        Raises
        ------
        ModuleNotFoundError
            If no renderer is installed (it comes with the extra ``lab``).
        """
        return renderer(self.drawn_as).figure(self, **options)

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file: ``.png``, or ``.html`` with the live figure.

        Raises
        ------
        ValueError
            If the name ends in something else.
        """
        target = Path(path)
        renderer(self.drawn_as).save(self, target)
        return target

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        try:
            return dict(renderer(self.drawn_as).mimebundle(self))
        except ModuleNotFoundError:
            html = getattr(self, "_repr_html_", None)
            return {"text/plain": str(self)} | ({"text/html": html()} if html else {})
