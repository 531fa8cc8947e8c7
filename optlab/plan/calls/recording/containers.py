"""The lists and dicts that a captured call is given: they hold recorded arrays, not plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Container(NamedTuple):
    """A list or dict among the arguments.

    Attributes
    ----------
    made : list or dict
        Which the function got.
    before : list or dict
        What was in it.
    given : list or dict
        That of the caller.
    """

    made: Any
    before: Any
    given: Any

    @property
    def changed(self) -> bool:
        """Whether the function has put in something, or taken something out."""
        now, before = self.made, self.before
        if isinstance(now, dict):
            now, before = [*now, *now.values()], [*before, *before.values()]
        return len(now) != len(before) or any(x is not y for x, y in zip(now, before, strict=True))


def changed_container(containers: Sequence[Container]) -> str:
    """Return what kind of container has changed; empty if none has."""
    return next((f"a {type(one.made).__name__}" for one in containers if one.changed), "")


def give_back(containers: Sequence[Container]) -> None:
    """Change the caller's containers as the function has changed those that it got."""
    given = {id(one.made): one.given for one in containers}
    for one in containers:
        if not one.changed:
            continue
        if isinstance(one.made, dict):
            parts = {key: given.get(id(x), x) for key, x in one.made.items()}
            one.given.clear()
            one.given.update(parts)
        else:
            one.given[:] = [given.get(id(x), x) for x in one.made]
