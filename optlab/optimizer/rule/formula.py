"""The formula of a class, read from where it is written down: the docstring."""

from __future__ import annotations

import inspect
from typing import Any


class Formula(str):
    """LaTeX that a notebook shows as mathematics."""

    __slots__ = ()

    def _repr_latex_(self) -> str:
        lines = rf"\begin{{aligned}}{self}\end{{aligned}}" if "&" in self else str(self)
        return f"$\\displaystyle {lines}$"


#: What makes the mathematics of an optimizer, or of a schedule.
_RULES = {"update", "get_lr"}


class FormulaOfDocstring:
    """An attribute of a class: the ``.. math::`` block of its docstring, or of its base's.

    A class with a rule of its own and no such block has none: its base's is not its formula.
    """

    def __get__(self, instance: Any, owner: Any) -> Formula:
        """Give the block without its indentation; empty where no class has one."""
        for cls in owner.__mro__:
            found = math_block(cls.__dict__.get("__doc__"))
            if found:
                return found
            if not _RULES.isdisjoint(vars(cls)):
                break
        return Formula("")


def math_block(docstring: str | None) -> Formula:
    r"""Give the first ``.. math::`` block of a docstring.

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
            block.append(rest.strip())  # mathematics of one line may stand there
            break
    for line in lines:
        if line and not line.startswith(" "):
            break
        block.append(line.strip())
    return Formula("\n".join(block).strip())
