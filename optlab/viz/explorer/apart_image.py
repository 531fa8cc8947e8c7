"""The static image of one step taken apart: its arrows, and the lines of its formula with bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.matplotlib.image import width_of
from optlab.viz.backends.scene import (
    Arrow,
    Axis,
    Boxes,
    Contour,
    Fill,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Scene,
    Text,
)
from optlab.viz.explorer.model import Model
from optlab.viz.explorer.palette import LINE_COLORS, PALETTE, line_color
from optlab.viz.explorer.step_formulas import Piece, Row, pieces_of, readers, shown_rows
from optlab.viz.explorer.step_rules import ROLES
from optlab.viz.style import layout, theme
from optlab.viz.style.contours import log_levels
from optlab.viz.style.text import format_number

_TEXT, _NAME, _SMALL = 14.0, 16.0, 13.0
_MARGIN, _TOP = 24.0, 64.0
_REACH = 0.34  # of the map: the longest arrow in units of the gradient
_OUTGROWN = 6  # a divisor so many times as long as all that shares its scale
_GRID, _LEAST_LEVELS = 90, 4

Place = tuple[float, float]
"""A place in pixels from the upper left corner of the panel."""


def _write(
    x: float, y: float, text: str, size: float, ink: str, *, bold: bool = False,
    across: Literal["left", "center"] = "left", halo: bool = False,
) -> Text:  # fmt: skip
    return Text(x, y, text, ink, size, across, bold=bold, halo=halo)


def _box(x: float, y: float, width: float, height: float, color: str) -> Boxes:
    return Boxes([x], [y], [x + width], [y + height], [Fill(color, "")])


def _wrapped(text: str, size: float, width: float) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


class _Step:
    """The step that is shown: its lines, its numbers for each coordinate, its colors."""

    def __init__(self, model: Model) -> None:
        self.model, self.name = model, model.state.selected
        self.runs, self.rate = model.runs[self.name], model.rate_index(self.name)
        stopped = int(self.runs.stopped[self.rate])
        last = model.state.steps if stopped < 0 else stopped
        self.number = max(1, min(model.state.step, last))
        self.palette = PALETTE[theme.scheme()]
        self.own = model.styles[self.name].color
        rule = model.rule(self.name)
        coordinates = range(len(model.axes))
        values = [model.numbers(self.name, self.rate, self.number, c) for c in coordinates]
        self.read = readers(rule, values)
        self.rows = shown_rows(rule, self.read[0], self.read)
        self.scales, self.largest = _scales(self.rows, self.read)
        _, self.tips = model.step_notes(self.name, self.number)
        assert self.runs.point is not None
        self.path = self.runs.point[self.rate]

    def color(self, role: str) -> str:
        return line_color(role, self.own, self.palette)

    def vector(self, name: str) -> np.ndarray:
        found = np.array([read(name) for read in self.read])
        return np.append(found, 0.0) if len(found) == 1 else found


def apart_png(model: Model, width: int, height: int) -> bytes:
    """Draw the chosen step of the chosen optimizer as a PNG image.

    Parameters
    ----------
    model : Model
    width, height : int
        In pixels; the image is higher if the lines of the step need it.
    """
    return draw_png(apart_scene(model, width, height))


def apart_scene(model: Model, width: int, height: int) -> Scene:
    """Return the figure of the chosen step: its picture, and beside it its lines."""
    step = _Step(model)
    left = round(0.36 * width)
    whole = max(height, _lines_height(step, left, width))
    lines = Panel(
        Axis(0.0, width, shown=False), Axis(whole, 0.0, shown=False),
        _line_marks(step, left, width), frame="none",
    )  # fmt: skip
    place = layout.Panel(_MARGIN, _TOP, left - 2 * _MARGIN, height - _TOP - _MARGIN)
    picture = _picture(step, place.width, place.height)
    shown = [(layout.Panel(0.0, 0.0, width, whole), lines)]
    if picture is not None:
        shown.insert(0, (place, picture))
    places, panels = zip(*shown, strict=True)
    return Scene(layout.Page(width, whole, places, (), 0.0, ()), "", "", panels)


# The lines ---------------------------------------------------------------------------------------


def _names_width(left: int, width: int) -> float:
    return 0.27 * (width - left)


def _note_of(step: _Step, row: Row, said: bool) -> str:
    note = "".join(
        f"^{one.text}" if one.raised else one.text for one in pieces_of(row.note, step.read[0])
    )
    scale = "bars have their own scale" if step.scales.get(row.label, "") != row.bars else ""
    if row.bars == "update" and not said:
        scale = "bars in units of the map"
    return "; ".join(part for part in (note, scale) if part)


def _plan(step: _Step, left: int, width: int) -> list[tuple[Row, list[str], Row | None, float]]:
    """Return each line with its note, the position under it, and its height."""
    plan: list[tuple[Row, list[str], Row | None, float]] = []
    said = False
    for row in step.rows:
        if row.role == "position" and plan:
            before, note, _, tall = plan[-1]
            plan[-1] = (before, note, row, max(tall, 40 + _bars_height(before) + 20))
            continue
        note = _wrapped(_note_of(step, row, said), _SMALL, _names_width(left, width) - 24)
        said = said or row.bars == "update"
        tall = max(34 + 17 * len([one for one in note if one]), 36 + _bars_height(row))
        plan.append((row, note, None, tall))
    return plan


def _bars_height(row: Row) -> float:
    return 0.0 if not row.bars else 18.0 + 10.0 * len(_parts(row))


def _parts(row: Row) -> list[tuple[str, str]]:
    return [(name, role) for name, role in row.parts if role]


def _tip_lines(step: _Step, left: int, width: int) -> list[str]:
    text = " ".join(step.tips)
    return _wrapped(text, _SMALL, width - left - _MARGIN) if text else []


def _lines_height(step: _Step, left: int, width: int) -> int:
    lines = sum(tall for *_, tall in _plan(step, left, width))
    return round(_TOP + lines + 18 * len(_tip_lines(step, left, width)) + 24)


def _scales(
    rows: Sequence[Row], readers: Sequence[Callable[[str], float]]
) -> tuple[dict[str, str], dict[str, float]]:
    """Return the scale of each line's bars, and what the longest bar of each scale is.

    Bars in units of the gradient share one, unless a divisor has outgrown the others: they would be
    hairlines.
    """

    def longest(some: Iterable[Row]) -> float:
        found = 0.0
        for row in some:
            for read in readers:
                ends = [read(row.result), *np.cumsum([read(name) for name, _ in _parts(row)])]
                found = max([found, *(abs(float(end)) for end in ends if math.isfinite(end))])
        return found

    drawn = [row for row in rows if row.bars]
    shared = longest(row for row in drawn if row.bars == "alike" and row.role != "scale")

    def alone(row: Row) -> bool:
        divisor = row.bars == "alike" and row.role == "scale"
        return row.bars == "own" or (divisor and longest([row]) > _OUTGROWN * shared)

    scales = {row.label: row.label if alone(row) else row.bars for row in drawn}
    largest = {
        scale: longest(row for row in drawn if scales[row.label] == scale)
        for scale in set(scales.values())
    }
    return scales, largest


def _line_marks(step: _Step, left: int, width: int) -> list[Mark]:
    """Return every line with its numbers and bars, and what is to be said of the step."""
    palette, names = step.palette, _names_width(left, width)
    title = f"{step.name}, step {step.number}, on {step.model.title}"
    marks: list[Mark] = [_write(_MARGIN, 30, title, 20, palette["ink"], bold=True)]
    rule = Pen(palette["rule"], 1.0)
    across = (width - left - names - _MARGIN) / len(step.read)
    middles = [left + names + across * (c + 0.5) for c in range(len(step.read))]
    for axis, middle in zip(step.model.axes, middles, strict=True):
        text = f"along {axis}"
        marks.append(_write(middle, _TOP - 14, text, _TEXT, palette["quiet"], across="center"))
    y = _TOP
    for row, note, position, tall in _plan(step, left, width):
        color = step.color(row.role)
        symbol = row.symbol.replace("^[", "^").replace("]", "")
        after = left + 20 + width_of(row.label, _NAME, bold=True)
        marks += [
            Line([left, width - _MARGIN], [y, y], rule),
            _box(left, y + 9, 4, 16, color),
            _write(left + 12, y + 17, row.label, _NAME, color, bold=True),
            _write(after, y + 17, symbol, _NAME, color),
        ]
        for at, text in enumerate(note):
            marks.append(_write(left + 12, y + 36 + 17 * at, text, _SMALL, palette["quiet"]))
        for read, middle, axis in zip(step.read, middles, step.model.axes, strict=True):
            if row.bars:
                marks.append(Line([middle, middle], [y, y + tall], Pen(palette["frame"], 1.0)))
            pieces = pieces_of(row.template, read, axis, row)
            marks += _formula(step, row, pieces, middle, y + 17)
            if row.bars:
                most = step.largest[step.scales[row.label]]
                marks += _bars(step, row, read, most, middle, y + 30, across)
            if position is not None:
                pieces = pieces_of(position.template, read, axis, position)
                below = y + 42 + _bars_height(row)
                marks += _formula(step, position, pieces, middle, below)
        y += tall
    marks.append(Line([left, width - _MARGIN], [y, y], rule))
    for at, text in enumerate(_tip_lines(step, left, width)):
        marks.append(_write(left, y + 16 + 18 * at, text, _SMALL, palette["quiet"]))
    return marks


def _formula(step: _Step, row: Row, pieces: Sequence[Piece], middle: float, y: float) -> list[Mark]:
    """Return a formula around a middle, every number in the color of what it is."""
    plain = row.role == "position"
    ink = step.palette["quiet" if plain else "ink"]
    sizes = [_TEXT * (0.8 if one.raised else 1.0) for one in pieces]
    widths = [width_of(p.text, s, bold=p.bold) for p, s in zip(pieces, sizes, strict=True)]
    x = middle - sum(widths) / 2
    marks: list[Mark] = [_box(x - 3, y - 9, sum(widths) + 6, 18, theme.PAPER)]
    for piece, size, wide in zip(pieces, sizes, widths, strict=True):
        role = row.role if piece.bold and not plain else "" if plain else ROLES.get(piece.name, "")
        color = step.color(role) if role else ink
        lift = 4 if piece.raised else 0
        marks.append(_write(x, y - lift, piece.text, size, color, bold=piece.bold))
        x += wide
    return marks


def _bars(
    step: _Step, row: Row, read: Any, largest: float, middle: float, y: float, across: float
) -> list[Mark]:
    """Return the bar of a line below those of its parts, head to tail."""
    half = 0.46 * across
    marks: list[Mark] = []

    def bar(start: float, end: float, role: str, tall: float, top: float) -> None:
        if not (math.isfinite(start) and math.isfinite(end) and largest):
            return
        color, (_, strength) = step.color(role), LINE_COLORS.get(role, ("quiet", 1))
        at, wide = middle + half * min(start, end) / largest, half * abs(end - start) / largest
        outline = role == "scale"
        face = theme.paled(color, 0.84 if outline else 1 - strength)
        edge = Pen(color, 1.4) if outline else None
        ends = ([at], [top], [at + max(wide, 1.0)], [top + tall])
        marks.append(Boxes(*ends, [Fill(face, "")], edge))

    start = 0.0
    for name, role in _parts(row):
        end = start + read(name)
        bar(start, end, role, 8, y)
        start, y = end, y + 10
    bar(0.0, read(row.result), row.role, 14, y)
    return marks


# The picture -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """The part of the plane, or of the curve, that the picture shows, and its size in pixels."""

    x0: float
    x1: float
    y0: float
    y1: float
    width: float
    height: float

    def pixel(self, x: float, y: float) -> Place:
        across, up = (x - self.x0) / (self.x1 - self.x0), (y - self.y0) / (self.y1 - self.y0)
        return across * self.width, (1 - up) * self.height

    def point(self, place: Any) -> tuple[float, float]:
        across, down = float(place[0]) / self.width, float(place[1]) / self.height
        return (
            self.x0 + across * (self.x1 - self.x0),
            self.y1 - down * (self.y1 - self.y0),
        )

    def line(self, places: Sequence[Any], pen: Pen) -> Line:
        """Return a line between places in pixels."""
        x, y = zip(*[self.point(place) for place in places], strict=True)
        return Line(x, y, pen)


def _picture(step: _Step, width: float, height: float) -> Panel | None:
    """Return the arrows over the part of the surface around the step."""
    update, start = step.vector("update"), step.path[step.number - 1]
    end = step.path[step.number]
    flat = len(start) == 1
    moved = np.abs(end - start)
    size = max(float(np.hypot(*update)), float(np.sqrt((moved**2).sum())))
    if not math.isfinite(size) or not np.isfinite(start).all():
        return None
    unit = (size or 1e-9 * max(1.0, float(np.abs(start).max()))) / (0.24 * min(width, height))
    if flat:
        view, ground = _curve(step, unit, width, height)
        losses = step.runs.loss[step.rate]
        at, to = (
            view.pixel(float(step.path[n, 0]), float(losses[n]))
            for n in (step.number - 1, step.number)
        )
        slope = f"tangent: slope {format_number(-float(step.read[0]('d.raw')))}"
        drop = Pen(step.own, 1.6, (3, 3))
        marks = [
            *ground,
            view.line([(to[0], at[1]), to], drop),
            _write(*view.point((12, height - 14)), slope, _SMALL, step.palette["quiet"]),
        ]
    else:
        middle = [float(one) for one in start]
        across, up = unit * width / 2, unit * height / 2
        view = _View(middle[0] - across, middle[0] + across, middle[1] - up, middle[1] + up,
                     width, height)  # fmt: skip
        at, to = view.pixel(*middle), view.pixel(float(end[0]), float(end[1]))
        marks = [*_ground(step, view), *_before(step, view)]
    backdrop = Boxes([view.x0], [view.y0], [view.x1], [view.y1],
                     [Fill(step.palette["mapHigh"], "")])  # fmt: skip
    arrows, labels = _arrows(step, view, at, to, unit, flat)
    style = step.model.styles[step.name]
    ends = [
        Points([x], [y], marker)
        for (x, y), marker in (
            (view.point(at), Marker("circle", 13, theme.PAPER, step.own, 3)),
            (view.point(to), Marker(style.marker, 15, step.own, theme.PAPER, 1.5)),
        )
    ]
    return Panel(
        Axis(view.x0, view.x1, ticks=[]), Axis(view.y0, view.y1, ticks=[]),
        [backdrop, *marks, *arrows, *ends, *labels], frame="box",
    )  # fmt: skip


def _before(step: _Step, view: _View) -> list[Mark]:
    """Return the steps that lead to this one, as far as they are in the picture."""
    path = step.path[: step.number]
    lows, highs = [view.x0, view.y0], [view.x1, view.y1]
    inside = ((path > lows) & (path < highs)).all(axis=1)
    shown = path[max(0, int(np.flatnonzero(~inside)[-1])) if (~inside).any() else 0 :]
    x, y = np.clip(shown, lows, highs).T
    marker = Marker("circle", 7, step.own, theme.PAPER, 1, 0.6)
    return [Line(x, y, Pen(step.own, 2, opacity=0.6)), Points(x, y, marker)]


def _ground(step: _Step, view: _View) -> list[Mark]:
    """Return the surface around the step with its contour lines."""
    x, y = np.linspace(view.x0, view.x1, _GRID), np.linspace(view.y0, view.y1, _GRID)
    surface = step.model.surface
    assert surface is not None
    with np.errstate(all="ignore"):
        values = np.asarray(surface.values(*np.meshgrid(x, y)))
        heights, levels, _ = log_levels(values, surface.minimum_value)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return []
    seen = np.quantile(heights[np.isfinite(heights)], [0.1, 0.9])
    few = ((levels > seen[0]) & (levels < seen[1])).sum() < _LEAST_LEVELS
    if few and np.ptp(finite) > 1e-11 * np.abs(finite).max():
        # Where the surface hardly curves evenly spaced losses have evenly spaced lines.
        heights, levels = values, np.linspace(finite.min(), finite.max(), 12)[1:-1]
    colors = theme.surface_colors(len(levels) + 1)
    return [
        Contour(x, y, heights, levels, colors, Pen(step.palette["contour"], theme.CONTOUR_WIDTH))
    ]


def _curve(step: _Step, unit: float, width: float, height: float) -> tuple[_View, list[Mark]]:
    """Return the curve of one variable around the step, with the tangent."""
    surface, number = step.model.surface, step.number
    assert surface is not None
    start, end = float(step.path[number - 1, 0]), float(step.path[number, 0])
    x = (start + end) / 2 + unit * np.linspace(-width / 2, width / 2, 300)
    with np.errstate(all="ignore"):
        y = np.asarray(surface.values(x), dtype=float)
    losses = step.runs.loss[step.rate]
    seen = np.array([*y[np.isfinite(y)], *losses[number - 1 : number + 1]])
    low, high = float(seen.min()), float(seen.max())
    tall = high - low or 1.0
    view = _View(float(x[0]), float(x[-1]), low - 0.85 * tall, high + 0.25 * tall, width, height)
    slope = -float(step.read[0]("d.raw"))
    ends = np.array([-1.0, 1.0]) * 0.25 * (x[-1] - x[0])
    tangent = Pen(step.palette["quiet"], 2, (8, 6))
    return view, [
        Line(x, y, Pen(step.palette["contour"], 2.5)),
        Line(start + ends, losses[number - 1] + slope * ends, tangent),
    ]


def _arrows(
    step: _Step, view: _View, at: Place, to: Place, unit: float, flat: bool
) -> tuple[list[Mark], list[Mark]]:
    """Return the arrows from the start of the step, and their names where there is room."""
    width, height = view.width, view.height
    drawn = [row for row in step.rows if row.arrow and row.role != "wrapper"]
    chosen = drawn[:1]
    for role in ("gradient", "memory", "update"):
        chosen += [row for row in drawn if row.role == role and row not in chosen][-1:]
    alike = [row for row in chosen if row.bars == "alike"]
    names = [name for row in alike for name in (row.result, *(n for n, _ in _parts(row)[:1]))]
    lengths = [float(np.hypot(*step.vector(name))) for name in names]
    longest = max([one for one in lengths if math.isfinite(one)], default=0.0)
    arrows: list[tuple[Row, str, np.ndarray, np.ndarray]] = []
    for place_of, row in enumerate(chosen):
        if row.bars == "alike":
            scale = _REACH * min(width, height) / longest if longest else 0.0
        else:
            scale = 1 / unit
        base = np.array(at)
        if flat and row.role != "update":  # below the curve, one under the other
            base = np.array([at[0], height - 30 - 26 * (len(chosen) - 1 - place_of)])
        joint = base
        for name, role in _parts(row):
            tip = joint + scale * step.vector(name) * [1, -1]
            arrows.append((row, role, joint, tip))
            joint = tip
        arrows.append((row, "", base, base + scale * step.vector(row.result) * [1, -1]))
    jumps = [row for row in step.rows if row.role == "wrapper" and row.arrow]
    fast = arrows[-1][3] if arrows else np.array(at)
    arrows += [(row, "", fast, np.array([to[0], fast[1] if flat else to[1]])) for row in jumps]
    marks: list[tuple[float, Line | Arrow]] = []
    for row, role, start, end in arrows:
        if not (np.isfinite(start).all() and np.isfinite(end).all()):
            continue
        color = step.color(role or row.role)
        wide = 5.5 if row.role == "update" and not role else 2.2 if role else 3.0
        length = float(np.hypot(*(end - start)))
        if length <= 2:
            continue
        drawn_as: Line | Arrow
        if role in ("kept", "kept step", "kept mean"):
            drawn_as = view.line([start, end], Pen(color, wide, (2.5, 4.5)))
        else:
            drawn_as = Arrow(*view.point(start), *view.point(end), Pen(color, wide))
        marks.append((math.inf if role else length, drawn_as))
    boxes: list[tuple[float, float, float, float]] = []
    labels: list[Mark] = []
    shafts = np.concatenate([np.linspace(start, end, 12) for *_, start, end in arrows])
    shafts = shafts[np.isfinite(shafts).all(axis=1)]
    for row, role, _, end in arrows:
        if role or not np.isfinite(end).all():
            continue
        color = step.color(row.role)
        x, y, wide = _free_place(row.label, end, shafts, boxes, view)
        boxes.append((x, y, wide, 18.0))
        labels.append(
            _write(*view.point((x, y)), row.label, 15, color, bold=True, across="center", halo=True)
        )
    # Parts below all, and of the others the shorter on the longer, which would hide it.
    marks.sort(key=lambda mark: -mark[0])
    return [mark for _, mark in marks], labels


def _free_place(
    text: str, end: np.ndarray, shafts: np.ndarray, labels: list[tuple[float, float, float, float]],
    view: _View,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the middle of a name beside the end of its arrow, off arrows and other names."""
    width, height = view.width, view.height
    wide, best = width_of(text, 15.0, bold=True) + 6, (math.inf, 0.0, 0.0)
    for far in (12, 24, 38):
        for turn in np.arange(0, 2 * np.pi, np.pi / 6):
            x = float(end[0] + np.cos(turn) * (far + wide / 2))
            y = float(end[1] + np.sin(turn) * (far + 6))
            x = min(max(x, 4 + wide / 2), width - 4 - wide / 2)
            y = min(max(y, 12), height - 12)
            hit = (np.abs(shafts[:, 0] - x) < wide / 2) & (np.abs(shafts[:, 1] - y) < 11)
            over = sum(
                abs(x - a) < (wide + c) / 2 and abs(y - b) < (18 + d) / 2 for a, b, c, d in labels
            )
            best = min(best, (far + 9.0 * int(hit.sum()) + 300.0 * over, x, y))
    return best[1], best[2], wide
