"""What a check says: passed or not, a score, the mistake by name, and the first difference."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

#: Of what is right and what is not yet: they are read on light and on dark pages.
_COLORS = {True: "#2e9e5b", False: "#d9534f"}


@dataclass(frozen=True)
class Difference:
    """The first number that is another than expected.

    Attributes
    ----------
    scenario, call : str
        In which part of the check, after which call: ``"step 3"``.
    parameter : int or None
        Which array of the list; None where a call gave no result.
    index : tuple of int
        Which element of it.
    expected, found : float or None
        The two numbers.
    term : str
        The part of the formula, where the mistake is known: ``"the second moment"``.
    """

    scenario: str
    call: str
    parameter: int | None = None
    index: tuple[int, ...] = ()
    expected: float | None = None
    found: float | None = None
    term: str = ""

    def __str__(self) -> str:
        place = f"{self.call} ({self.scenario})"
        if self.parameter is None:
            return place
        element = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        text = f"{place}, array {self.parameter}{element}: "
        text += f"expected {self.expected:.6g}, got {self.found:.6g}"
        return text + (f"; it is {self.term} that differs" if self.term else "")


@dataclass(frozen=True)
class Report:
    """The result of a check, printed as text and displayed as a table in a notebook.

    Attributes
    ----------
    name : str
        The check.
    passed : bool
        Whether all is right.
    score : float
        The share of the parts that are right, from 0 to 1.
    mistake : str or None
        The name of the mistake, where it is known; None where all is right.
    message : str
        What was expected, and why.
    first_difference : Difference or None
        The first number that is another, unless the check is hidden.
    parts : dict of str to bool
        The parts of the check, and whether they are right.

    Examples
    --------
    >>> report = Report("sgd", False, 0.3, "wrong_sign", "It goes up.", None, {"one step": False})
    >>> print(report)
    sgd: not yet (score 0.30), wrong_sign
      It goes up.
      [ ] one step
    """

    name: str
    passed: bool
    score: float
    mistake: str | None
    message: str
    first_difference: Difference | None = None
    parts: dict[str, bool] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """Return the report of plain data."""
        first = data.get("first_difference")
        difference = Difference(**{**first, "index": tuple(first["index"])}) if first else None
        return cls(**{**data, "first_difference": difference})

    @property
    def summary(self) -> str:
        """The result in one line."""
        if self.passed:
            return f"{self.name}: all right (score 1.00)"
        named = f", {self.mistake}" if self.mistake else ""
        return f"{self.name}: not yet (score {self.score:.2f}){named}"

    def __str__(self) -> str:
        lines = [self.summary, f"  {self.message}"]
        if self.first_difference is not None:
            lines.append(f"  First difference: {self.first_difference}")
        lines += [f"  [{'x' if right else ' '}] {part}" for part, right in self.parts.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from html import escape

        side = "text-align:left;border:0;padding:1px 8px 1px 0"
        rows = "".join(
            f"<tr style='background:none'><td style='{side};color:{_COLORS[right]}'>"
            f"{'✓' if right else '✗'}</td><td style='{side}'>{escape(part)}</td></tr>"
            for part, right in self.parts.items()
        )
        first = ""
        if self.first_difference is not None:
            first = f"<p>First difference: {escape(str(self.first_difference))}</p>"
        parts = ""
        if rows:  # what is all right is folded
            right = sum(self.parts.values())
            parts = (
                f"<details{'' if self.passed else ' open'}><summary>{right} of {len(self.parts)} "
                f"parts are right</summary><table style='border:0'>{rows}</table></details>"
            )
        return (
            f"<div style='border-left:4px solid {_COLORS[self.passed]};padding:2px 0 2px 12px;"
            f"margin:4px 0;max-width:48em'><strong>{escape(self.summary)}</strong>"
            f"<p style='margin:4px 0'>{escape(self.message)}</p>{first}{parts}</div>"
        )
