"""The formula of a class, read from its docstring."""

from __future__ import annotations

import inspect
from typing import Any


class Formula(str):
    """LaTeX that a notebook renders."""

    __slots__ = ()

    def _repr_latex_(self) -> str:
        lines = rf"\begin{{aligned}}{self}\end{{aligned}}" if "&" in self else str(self)
        return f"$\\displaystyle {lines}$"


#: The methods that a formula describes: of an optimizer, of a schedule.
_RULES = {"update", "get_lr"}


class FormulaOfDocstring:
    """A class attribute: the ``.. math::`` block of the docstring, or of that of a base class.

    A class that overrides the rule and has no such block has no formula.
    """

    def __get__(self, instance: Any, owner: Any) -> Formula:
        """Return the block without its indentation, empty if there is none."""
        for cls in owner.__mro__:
            found = math_block(cls.__dict__.get("__doc__"))
            if found:
                return found
            if not _RULES.isdisjoint(vars(cls)):
                break
        return Formula("")


def math_block(docstring: str | None) -> Formula:
    r"""Return the first ``.. math::`` block of a docstring.

    Examples
    --------
    >>> math_block("The decay.\n\n    .. math::\n        b \\gamma^e\n\n    More words.")
    'b \\gamma^e'
    >>> math_block(".. math:: b / t")
    'b / t'
    """
    lines = iter(inspect.cleandoc(docstring or "").splitlines())
    block: list[str] = []
    for line in lines:
        directive, found, rest = line.partition(".. math::")
        if found and not directive.strip():
            block.append(rest.strip())  # a formula of one line
            break
    for line in lines:
        if line and not line.startswith(" "):
            break
        block.append(line.strip())
    return Formula("\n".join(block).strip())
