"""Lines of JavaScript, one operation each; what is computed twice or never read is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from optlab.plan.javascript.operations import Atom, expression, folded
from optlab.plan.plan import Instruction

_NAME = re.compile(r"[A-Za-z_$][\w$]*")


class Lines:
    """Assignments of formulas to variables.

    Examples
    --------
    >>> lines = Lines()
    >>> lines.assign("v1", Atom("x * x", "float"))
    Atom(text='v1', kind='float', value=None)
    >>> lines.assign("v2", Atom("x * x", "float")).text  # the same again
    'v1'
    >>> lines.read_by(["v1"])
    ['const v1 = x * x;']
    """

    def __init__(self) -> None:
        self._formulas: dict[str, str] = {}
        self._known: dict[str, Atom] = {}

    def __len__(self) -> int:
        return len(self._formulas)

    def assign(self, name: str, formula: Atom) -> Atom:
        """Assign a formula to a variable; return the variable, or an earlier one of that value."""
        known = self._known.get(formula.text)
        if known is None:
            self._formulas[name] = formula.text
            known = self._known[formula.text] = Atom(name, formula.kind)
        return known._replace(kind=formula.kind)

    def write(
        self, name: str, step: Instruction, operands: list[Atom], keywords: dict[str, Any]
    ) -> Atom:
        """Write an elementwise instruction on single numbers."""
        constant = folded(step, operands)
        if constant is not None:
            return constant
        formula = expression(step, operands, keywords)
        if any(formula.text == x.text for x in operands):
            return formula
        for one, factor in zip(operands, operands[::-1], strict=True):
            product = formula.text == f"{operands[0].text} * {operands[-1].text}"
            if product and factor.text == "1" and one.kind == formula.kind:
                return one  # to the bit, infinities and NaN included
        return self.assign(name, formula)

    def read_by(self, texts: Sequence[str]) -> list[str]:
        """Return the assignments whose variables these texts read, and those that these read."""
        wanted = {name for text in texts for name in _NAME.findall(text)}
        kept = []
        for name, formula in reversed(self._formulas.items()):
            if name in wanted:
                kept.append(f"const {name} = {formula};")
                wanted.update(_NAME.findall(formula))
        return kept[::-1]
