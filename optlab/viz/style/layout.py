"""Page layout in pixels, shared by both backends so that figure and static image look alike."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, TypeVar

from optlab.viz.style import theme

WIDTH, HEIGHT = 1000, 480
"""The default size of a figure."""

LEFT, RIGHT = 50, 14
TITLE_LINE, HEADLINE_LINE, LEGEND_LINE = 26, 47, 70
"""Heights of the baselines of title and headline, and of the middle of the legend."""
HEADING_ROOM, LEGEND_ROW, NOTE_LINE, AXIS_ROOM = 34, 20, 16, 30
AXIS_GAP = 62
"""Gap between two panels, for the axis numbers of the right one."""
LINE_SAMPLE, SQUARE_SAMPLE = 54.0, 24.0
"""Pixels in the legend from the left end of a sample (a line or a square) to its name."""
ENTRY_GAP = 18
"""Gap between a name and the next sample."""
_LEAST = (480, 320)

Draw = TypeVar("Draw", bound=Callable[..., Any])
_FIGURE = """
width, height : int
    Size in pixels.

Returns
-------
plotly.graph_objects.Figure"""
_IMAGE = """
width, height : int
    Size in pixels, as for the interactive figure.
scale : float
    Image pixels per pixel: 2 for print and high-resolution screens.

Returns
-------
bytes
    The content of the file."""


def documented(draw: Draw) -> Draw:
    """Add to the docstring of a figure or an image its size, its scale and what is returned."""
    own, *rest = re.split(r"(\n\n(?:Raises|Examples)\n-)", cleandoc(draw.__doc__ or ""), maxsplit=1)
    if rest:  # python -OO leaves no docstring
        shared = _IMAGE if draw.__annotations__["return"] == "bytes" else _FIGURE
        if "\nwidth, height : int\n" in own:  # with more to say on the size
            shared = shared[shared.index("\n\nReturns") :]
        draw.__doc__ = "".join([own, shared, *rest])
    return draw


@dataclass(frozen=True)
class Panel:
    """A drawing area in pixels, from the upper left corner of the page."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Page:
    """Size of a figure and the positions of its parts.

    Attributes
    ----------
    width, height : int
        Pixels.
    panels : tuple of Panel
        From left to right.
    legend : tuple of (float, float)
        Left end and middle height of each entry of the legend.
    entry_width : float
        Pixels of an entry in columns; 0 if all entries follow one another in one row.
    note : tuple of str
        The note under the figure, wrapped to the page.
    sample : float
        Pixels of an entry before its name.
    """

    width: int
    height: int
    panels: tuple[Panel, ...]
    legend: tuple[tuple[float, float], ...]
    entry_width: float
    note: tuple[str, ...]
    sample: float = LINE_SAMPLE

    @property
    def top(self) -> float:
        """Upper edge of the panels."""
        return self.panels[0].top

    @property
    def bottom(self) -> float:
        """Space under the panels."""
        return self.height - self.panels[0].top - self.panels[0].height

    def legend_place(self, index: int) -> tuple[float, float]:
        """Left end and middle height of a legend entry."""
        return self.legend[index]

    def note_line(self, index: int) -> float:
        """Middle height of a line of the note."""
        return self.height - 8 - NOTE_LINE * (len(self.note) - index - 0.5)


def text_width(text: str, size: float) -> float:
    """Estimate the width in pixels of a line of text."""
    return 0.56 * size * len(text)


def page(
    width: int,
    height: int,
    *,
    names: Sequence[str],
    note: str,
    shares: Sequence[float],
    rooms: Sequence[float],
    headed: bool = False,
    least: float = 0.0,
    sample: float = LINE_SAMPLE,
) -> Page:
    """Lay out a figure.

    Parameters
    ----------
    width, height : int
        Pixels.
    names : sequence of str
        Entries of the legend.
    note : str
        Text under the figure.
    shares : sequence of float
        Relative widths of the panels.
    rooms : sequence of float
        Pixels kept free right of each panel, for labels at the ends of its curves and for the axis
        of the next panel.
    headed : bool
        Reserve space for the headline if there is no legend.
    least : float
        Least height of the panels in pixels: the figure grows if necessary. It also grows by rows
        of the legend and lines of the note beyond two, which would flatten the panels.
    sample : float
        Kind of the samples in the legend: `LINE_SAMPLE` or `SQUARE_SAMPLE`.

    Raises
    ------
    ValueError
        If the figure would be too small to read.

    Examples
    --------
    >>> left, right = page(1000, 480, names=["Adam"], note="", shares=[3, 2], rooms=[62, 0]).panels
    >>> round(left.width + right.width), left.height == right.height
    (874, True)
    """
    if width < _LEAST[0] or height < _LEAST[1]:
        raise ValueError(
            f"a figure of {width} x {height} pixels is too small to read; "
            f"the least is {_LEAST[0]} x {_LEAST[1]}"
        )
    usable = width - LEFT - RIGHT
    widths = [sample + ENTRY_GAP + text_width(name, theme.FONT_TEXT) for name in names]
    in_columns = sum(widths) > usable
    if in_columns:
        widths = [max(widths)] * len(names)
    legend, x, row = [], 0.0, 0
    for across in widths:
        if x and x + across > usable:
            x, row = 0.0, row + 1
        legend.append((LEFT + x, float(LEGEND_LINE + row * LEGEND_ROW)))
        x += across
    rows = row + 1 if names else 0
    letters = int(usable / (0.5 * theme.FONT_TEXT))
    lines = tuple(textwrap.wrap(note, letters))
    height += max(0, rows - 2) * LEGEND_ROW + max(0, len(lines) - 2) * NOTE_LINE
    last = LEGEND_LINE + (rows - 1) * LEGEND_ROW
    if not rows:
        last = HEADLINE_LINE if headed else TITLE_LINE
    top = last + LEGEND_ROW / 2 + HEADING_ROOM
    bottom = AXIS_ROOM + NOTE_LINE * len(lines) + 8
    height = max(height, math.ceil(top + bottom + least))
    room = usable - sum(rooms)
    panels, left = [], float(LEFT)
    for share, after in zip(shares, rooms, strict=True):
        across = room * share / sum(shares)
        panels.append(Panel(left, top, across, height - top - bottom))
        left += across + after
    entry_width = widths[0] if in_columns else 0.0
    return Page(width, height, tuple(panels), tuple(legend), entry_width, lines, sample)
