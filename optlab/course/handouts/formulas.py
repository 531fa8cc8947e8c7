r"""Formulas of the library drawn by matplotlib's mathtext: aligned lines and cases.

mathtext knows no environments. A formula is cut into lines at ``\\``, a line at its alignment, and
cases are set beside a brace of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from matplotlib.patches import PathPatch
from matplotlib.path import Path

#: What the formulas of the library use and mathtext calls by another name.
_NAMES = {
    r"\lVert": r"\Vert", r"\rVert": r"\Vert", r"\bmod": r"\;\mathrm{mod}\;",
    r"\frac": r"\dfrac", r"\tfrac": r"\frac", r"\le": r"\leq", r"\ge": r"\geq",
}  # fmt: skip
_CASES = re.compile(r"\\begin\{cases\}(.*?)\\end\{cases\}", re.DOTALL)
_BREAK = re.compile(r"\\\\")
FONTSET = "stix"
LINE_GAP, CASE_GAP, BRACE = 0.75, 0.35, 0.55
"""Between lines, between cases, and the width of a brace: in font sizes."""


@dataclass(frozen=True)
class Box:
    """A part of a line, with its size in points around the baseline."""

    width: float
    height: float
    depth: float
    text: str = ""
    cases: tuple[tuple[Box, Box], ...] = ()


@dataclass(frozen=True)
class Formula:
    """A formula that knows its size in points."""

    lines: tuple[tuple[tuple[Box, ...], tuple[Box, ...]], ...]
    size: float

    @property
    def aligned_at(self) -> float:
        """The width of what stands before the alignment."""
        return max(sum(box.width for box in before) for before, _ in self.lines)

    @property
    def width(self) -> float:
        """The width of the widest line."""
        after = max(sum(box.width for box in after) for _, after in self.lines)
        return self.aligned_at + after

    @property
    def height(self) -> float:
        """The height of all lines."""
        gaps = LINE_GAP * self.size * (len(self.lines) - 1)
        return sum(_height(line) + _depth(line) for line in self.lines) + gaps

    def draw(self, figure: Figure, left: float, top: float) -> None:
        """Draw it; its upper left corner is given in points from that of the figure."""
        for before, after in self.lines:
            baseline = top + _height((before, after))
            x = left + self.aligned_at - sum(box.width for box in before)
            for box in (*before, *after):
                _draw(figure, box, x, baseline, self.size)
                x += box.width
            top = baseline + _depth((before, after)) + LINE_GAP * self.size


def formula(latex: str, size: float) -> Formula:
    r"""Cut a formula of the library into boxes.

    Parameters
    ----------
    latex : str
        As in a ``.. math::`` block: lines end with ``\\``, ``&`` aligns them.
    size : float
        The size of the font in points.

    Raises
    ------
    ValueError
        If mathtext cannot set a part of it.

    Examples
    --------
    >>> set_ = formula(r"v &\leftarrow \mu v + g \\ p &\leftarrow p - \eta v", 12)
    >>> len(set_.lines), set_.width < 100 < 2 * set_.width
    (2, True)
    """
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[1])
        return f"\0{len(kept) - 1}\0"

    lines = []
    for line in _BREAK.split(_CASES.sub(keep, latex.strip())):
        before, aligned, after = line.partition("&")
        if not aligned:
            before, after = "", line
        after = after.replace("&&", r" \qquad ").replace("&", "")
        lines.append((_boxes(before, kept, size), _boxes(after, kept, size)))
    return Formula(tuple(lines), size)


def _boxes(text: str, kept: list[str], size: float) -> tuple[Box, ...]:
    found = []
    for i, part in enumerate(text.split("\0")):
        if i % 2:
            found.append(_cases(kept[int(part)], size))
        elif part.strip():
            found.append(_measured(part, size))
    return tuple(found)


def _cases(text: str, size: float) -> Box:
    rows = []
    for row in _BREAK.split(text):
        value, _, condition = row.partition("&")
        condition = condition.replace(r"\text{otherwise}", r"\mathrm{otherwise}")
        rows.append((_measured(value, size), _measured(condition, size)))
    height = sum(_height((row, ())) + _depth((row, ())) for row in rows)
    height += CASE_GAP * size * (len(rows) - 1)
    width = max(value.width for value, _ in rows) + max(condition.width for _, condition in rows)
    axis = 0.25 * size  # of the formula: the middle of a minus sign
    return Box(
        width + (BRACE + 1.7) * size, height / 2 + axis, height / 2 - axis, cases=tuple(rows)
    )


@cache
def _parser() -> Any:
    return MathTextParser("path")


def _measured(text: str, size: float) -> Box:
    shown = " ".join(text.split())
    shown = re.sub(r"\\[A-Za-z]+", lambda name: _NAMES.get(name[0], name[0]), shown)
    properties = FontProperties(size=size, math_fontfamily=FONTSET)
    try:
        width, height, depth, *_ = _parser().parse(f"${shown}$", 72, properties)
    except ValueError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ValueError(f"matplotlib cannot set {text.strip()!r} ({reason})") from None
    return Box(float(width) + 0.12 * size, float(height - depth), float(depth), f"${shown}$")


def _height(line: tuple[tuple[Box, ...], tuple[Box, ...]]) -> float:
    return max(box.height for part in line for box in part)


def _depth(line: tuple[tuple[Box, ...], tuple[Box, ...]]) -> float:
    return max(box.depth for part in line for box in part)


def _draw(figure: Figure, box: Box, x: float, baseline: float, size: float) -> None:
    if box.text:
        wide, high = (72 * inches for inches in figure.get_size_inches())
        figure.text(
            x / wide, 1 - baseline / high, box.text, fontsize=size, math_fontfamily=FONTSET,
            va="baseline", ha="left",
        )  # fmt: skip
        return
    top = baseline - box.height
    _draw_brace(figure, x + 0.25 * size, top, baseline + box.depth, size)
    x += (BRACE + 0.5) * size
    across = x + max(value.width for value, _ in box.cases) + 1.2 * size
    for value, condition in box.cases:
        row = ((value, condition), ())
        top += _height(row)
        _draw(figure, value, x, top, size)
        _draw(figure, condition, across, top, size)
        top += _depth(row) + CASE_GAP * size


def _draw_brace(figure: Figure, x: float, top: float, bottom: float, size: float) -> None:
    """Draw a left curly brace."""
    wide, high = (72 * inches for inches in figure.get_size_inches())
    middle, w, r = (top + bottom) / 2, BRACE * size, 0.45 * size
    points = [
        (x + w, top), (x + w / 2, top), (x + w / 2, top + r),
        (x + w / 2, middle - r), (x + w / 2, middle), (x, middle),
        (x + w / 2, middle), (x + w / 2, middle + r),
        (x + w / 2, bottom - r), (x + w / 2, bottom), (x + w, bottom),
    ]  # fmt: skip
    curve, line = Path.CURVE3, Path.LINETO
    codes = [Path.MOVETO, curve, curve, line, curve, curve, curve, curve, line, curve, curve]
    path = Path([(px / wide, 1 - py / high) for px, py in points], codes)
    figure.add_artist(
        PathPatch(path, fill=False, lw=0.07 * size, color="black", transform=figure.transFigure)
    )
