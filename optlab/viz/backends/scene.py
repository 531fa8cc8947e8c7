"""Marks: the content of a figure, as plain data that every backend draws with one function.

A figure is a `Scene`: a page with texts, a legend, and panels of marks. `backends.plotly.draw`
makes the interactive figure of it, and `backends.matplotlib.draw` the static image: they cannot
differ. `drawMarks` of `browser/static/canvas.js` draws the same marks on a canvas in a page, where
`browser/static/marks.js` makes them: `mark_as_json` returns them in its form, and the classes here
say what each field means.

Coordinates are those of the data, on a log axis too; sizes are in pixels. Texts are plain: a
backend escapes what it would read as markup. `hover` and `tips` alone are in plotly's notation,
since they are of no use to a static image, and a canvas has its own. Colors are those of the page
in use: a scene is drawn where it is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from optlab.viz.style import theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.layout import Page
from optlab.viz.style.text import format_number
from optlab.viz.style.theme import Area as Fill
from optlab.viz.style.theme import Style

_LEAST_TICKS = 4

Places = Sequence[float] | Floats


@dataclass(frozen=True)
class Pen:
    """How a line is drawn; the dash is in pixels of stroke and gap, alternating."""

    color: str
    width: float = theme.LINE_WIDTH
    dash: tuple[float, ...] = ()
    opacity: float = 1.0


@dataclass(frozen=True)
class Marker:
    """How a point is drawn; `name` is one that all backends know, `face` may be "none"."""

    name: str
    size: float
    face: str
    edge: str = ""
    edge_width: float = 0.0
    opacity: float = 1.0


def pen_of(style: Style, width: float = theme.LINE_WIDTH) -> Pen:
    """Return the pen of an optimizer."""
    return Pen(style.color, width, style.dash)


def end_marker(style: Style, *, hollow: bool = False, size: float = theme.END_SIZE) -> Marker:
    """Return the end marker of a run; hollow if it left the panel or stopped early."""
    if hollow:
        return Marker(style.marker, size, theme.PAPER, style.color, 2.0)
    return Marker(style.marker, size, style.color, theme.PAPER, 1.2)


def star(size: float) -> Marker:
    """Return the marker of the best of a map, in its colors: a star of paper."""
    return Marker("star", size, theme.PAPER, theme.INK, 1.5)


@dataclass(frozen=True)
class Line:
    """A polyline, with NaN between pieces.

    Attributes
    ----------
    hover : str
        Text at the mouse, with ``%{x}``, ``%{y}`` and ``%{text}`` (of `tips`) filled in; "" for
        none.
    group : str
        The legend entry that hides it.
    clip : bool
        Whether it ends at the border of the panel.
    stepped : bool
        Whether it goes first up, then across.
    """

    x: Places
    y: Places
    pen: Pen
    hover: str = ""
    tips: Sequence[str] = ()
    group: str = ""
    clip: bool = True
    stepped: bool = False


@dataclass(frozen=True)
class Points:
    """Points of one kind of marker, each with a text if `texts` are given.

    Attributes
    ----------
    marker : Marker or None
        None for points that are seen at the mouse alone.
    hover, tips, group, clip
        As for a `Line`.
    data : arrays
        Columns of numbers that `hover` reads as ``%{customdata[0]}``.
    seen : array of bool
        Which of them are drawn; the others are at the mouse alone.
    faces : sequence of str
        A color for each.
    text : str
        Written beside them, on `side`, as in plotly's ``textposition``; None: not written.
    """

    x: Places
    y: Places
    marker: Marker | None
    hover: str = ""
    tips: Sequence[str] = ()
    data: tuple[Floats, ...] = ()
    seen: NDArray[np.bool_] | None = None
    faces: Sequence[str] = ()
    group: str = ""
    clip: bool = True
    text: str = ""
    side: str | None = None
    ink: str = ""


@dataclass(frozen=True)
class Text:
    """A text at a point.

    Attributes
    ----------
    across, up : str
        Where the point is: "left" and "top" put it at the upper left corner of the text.
    shift : tuple of float
        Pixels to the right and up.
    angle : float
        Degrees, counterclockwise.
    halo : bool
        Whether lines below it are covered along its letters.
    ground : float
        Opacity of a box of paper behind it.
    group : str
        The legend entry that hides it.
    """

    x: float
    y: float
    text: str
    ink: str
    size: float = theme.FONT_TEXT
    across: Literal["left", "center", "right"] = "center"
    up: Literal["top", "middle", "bottom"] = "middle"
    shift: tuple[float, float] = (0.0, 0.0)
    bold: bool = False
    angle: float = 0.0
    halo: bool = True
    ground: float = 0.0
    group: str = ""
    opacity: float = 1.0


@dataclass(frozen=True)
class Rule:
    """A line across the whole panel, at a place along "x" or "y"; below the grid if quiet."""

    along: Literal["x", "y"]
    at: float
    pen: Pen
    below: bool = False


@dataclass(frozen=True)
class Area:
    """The space between two curves; areas of one panel lie on one another."""

    x: Floats
    low: Floats
    high: Floats
    fill: Fill
    group: str = ""
    edge: Pen | None = None


@dataclass(frozen=True)
class Band:
    """The space between two curves, so pale that bands of one panel are seen through others."""

    x: Floats
    low: Floats
    high: Floats
    color: str
    opacity: float = 0.16
    group: str = ""


@dataclass(frozen=True)
class Bars:
    """Bars to the right from zero, around their places along y."""

    lengths: Sequence[float]
    places: Sequence[float]
    thickness: float
    fills: Sequence[Fill]
    edge: Pen | None = None


@dataclass(frozen=True)
class Boxes:
    """Rectangles between two opposite corners each.

    Attributes
    ----------
    fills : sequence of Area
        One for each, or one for all.
    """

    x0: Places
    y0: Places
    x1: Places
    y1: Places
    fills: Sequence[Fill]
    edge: Pen | None = None
    opacity: float = 1.0


@dataclass(frozen=True)
class Region:
    """What closed outlines hold, with NaN between them: an outline within another is a hole."""

    x: Places
    y: Places
    fill: Fill
    edge: Pen | None = None
    opacity: float = 1.0


@dataclass(frozen=True)
class Arrow:
    """A straight arrow between two points; the wider its pen, the larger its head.

    Attributes
    ----------
    halo : bool
        Whether what is below is covered along it.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    pen: Pen
    halo: bool = True

    @property
    def head(self) -> tuple[float, float]:
        """Length of its head and half its width, in pixels."""
        more = max(0.0, self.pen.width - 2.2)
        return 10 + 1.6 * more, 4 + 1.2 * more


@dataclass(frozen=True)
class Contour:
    """A surface as bands of color between evenly spaced levels, with lines between them.

    Without colors, of any levels the lines alone.
    """

    x: Floats
    y: Floats
    height: Floats
    levels: Floats
    colors: Sequence[str]
    pen: Pen


@dataclass(frozen=True)
class HeatMap:
    """Cells around a grid of places; NaN is not drawn.

    Attributes
    ----------
    values : array (len(y), len(x))
    low, high : float
        The values of the first color and of the last.
    colors : sequence of str
        Evenly spaced from low to high.
    smooth : bool
        Whether colors between them are mixed.
    blended : bool
        Whether cells run into each other, as those of a surface do.
    """

    x: Places
    y: Places
    values: Any
    low: float
    high: float
    colors: Sequence[str]
    smooth: bool = False
    hover: str = ""
    tips: Any = ()
    blended: bool = False
    opacity: float = 1.0


Mark = Line | Points | Text | Rule | Area | Band | Bars | Boxes | Region | Arrow | Contour | HeatMap

_ELSEWHERE = ("hover", "tips", "data", "group")  # fields of plotly alone


def mark_as_json(mark: Mark, digits: int | None = None) -> dict[str, Any]:
    """Return a mark as data of JSON, as the canvas of a page reads it.

    The kind is the name of the class; what is not finite is None, whole numbers have no fraction,
    grids are flat, row by row, and numbers are rounded to these significant digits, by default not
    at all.

    Examples
    --------
    >>> mark_as_json(Rule("x", 2.0, Pen("#000000", 1.0)))["pen"]
    {'color': '#000000', 'width': 1, 'dash': [], 'opacity': 1}
    >>> mark_as_json(Line([0, math.nan], [1, 2], Pen("#000000")))["x"]
    [0, None]
    """
    named = {one.name: getattr(mark, one.name) for one in fields(mark)}
    found = {name: _plain(value, digits) for name, value in named.items() if name not in _ELSEWHERE}
    return {"kind": type(mark).__name__, **found}


def panel_as_json(panel: Panel, digits: int | None = None) -> dict[str, Any]:
    """Return axes and marks of a panel as data of JSON.

    Examples
    --------
    >>> panel_as_json(Panel(HIDDEN, HIDDEN, []))["marks"]
    []
    """
    axes = {"x": _plain(panel.x, digits), "y": _plain(panel.y, digits)}
    return axes | {"marks": [mark_as_json(mark, digits) for mark in panel.marks]}


def _plain(value: Any, digits: int | None) -> Any:
    if type(value) is float:
        return _number(value, digits)  # most of all
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one, digits) for one in value]
    if isinstance(value, np.ndarray):
        return [_number(one, digits) for one in value.ravel().tolist()]
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name), digits) for one in fields(value)}
    return _number(float(value), digits)


def _number(value: float, digits: int | None) -> float | None:
    if not math.isfinite(value):
        return None
    if digits is not None:
        value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value


@dataclass(frozen=True)
class Axis:
    """An axis of a panel.

    Attributes
    ----------
    low, high : float
        Its ends, the high one first if it points down; powers of ten on a log axis.
    name : str
        Written at its first number, where the eye starts to read.
    count : int
        About how many numbers it gets.
    ticks : sequence of (place, text)
        Instead of chosen numbers.
    whole : bool
        Whether only whole numbers are written.
    suffix : str
        Written behind each number.
    grid, zero, shown, numbers : bool
        Whether it has grid lines, a line at zero, anything at all, and numbers.
    right : bool
        Whether an axis along y is at the right of its panel.
    loud : bool
        Whether its texts are as large as other texts.
    """

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    name: str = ""
    count: int = 6
    ticks: Sequence[tuple[float, str]] | None = None
    whole: bool = False
    suffix: str = ""
    grid: bool = False
    zero: bool = False
    shown: bool = True
    numbers: bool = True
    right: bool = False
    loud: bool = False

    @property
    def numbered(self) -> Sequence[tuple[float, str]] | None:
        """Its places and texts of numbers; None where a backend chooses them.

        On a log axis of less than one and a half decades whole decades are too few.
        """
        if self.ticks is None and self.scale == "log" and self.high - self.low < 1.5:
            places, texts = decades(self.low, self.high)
            return [(10.0**place, text) for place, text in zip(places, texts, strict=True)]
        return self.ticks


def decades(low: float, high: float) -> tuple[list[float], list[str]]:
    """Return powers of ten that get a number, and their values as text: four or more, round ones.

    Examples
    --------
    >>> decades(-1.2, 1.4)[1], decades(-12, 3)[1]
    (['0.1', '0.3', '1', '3', '10'], ['1e-12', '1e-9', '1e-6', '1e-3', '1e0', '1e3'])
    """
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first >= 3:
        places = [float(e) for e in range(first, last + 1, max(1, math.ceil((last - first) / 6)))]
        return places, [f"1e{place:.0f}" for place in places]
    values: list[float] = []
    for digits in ((1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        values = [d * 10.0**e for e in range(first - 1, last + 1) for d in digits]
        values = [x for x in values if low - 1e-9 <= math.log10(x) <= high + 1e-9]
        if len(values) >= _LEAST_TICKS:
            break
    else:
        evenly = MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10], min_n_ticks=_LEAST_TICKS)
        inside = [float(x) for x in evenly.tick_values(10**low, 10**high)]
        values = [x for x in inside if x > 0 and low - 1e-9 <= math.log10(x) <= high + 1e-9]
    return [math.log10(x) for x in values], [format_number(x, 4) for x in values]


HIDDEN = Axis(0.0, 1.0, shown=False)


@dataclass(frozen=True)
class Panel:
    """Axes with marks, the first at the bottom.

    Attributes
    ----------
    heading, note : str
        Written above it.
    frame : str
        "box", or "open" for lines at the left and below, or "below", or "left".
    equal : bool
        Whether both axes have one scale.
    """

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    heading: str = ""
    note: str = ""
    frame: Literal["box", "open", "below", "left", "none"] = "open"
    equal: bool = False


@dataclass(frozen=True)
class Scene:
    """A figure: the page, its texts, its legend, and a panel for each place of the page.

    Attributes
    ----------
    legend : mapping
        For each group its name and its sample: a line with marker, a square, or a line.
    hover : str
        "closest" for the nearest point at the mouse, "x" for those above and below it as well.
    """

    page: Page
    title: str
    headline: str
    panels: Sequence[Panel]
    legend: Mapping[str, tuple[str, Style | Fill | Pen]] = field(default_factory=dict)
    hover: str = "closest"


def entries(styles: Mapping[str, Style]) -> dict[str, tuple[str, Style | Fill | Pen]]:
    """Return the legend of optimizers."""
    return {name: (name, style) for name, style in styles.items()}
