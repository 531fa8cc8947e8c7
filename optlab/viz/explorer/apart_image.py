"""The static image of one step taken apart: its arrows, and the lines of its formula with bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.textpath import text_to_path

from optlab.backend.text import encodable
from optlab.viz.backends.matplotlib.image import (
    PIXEL,
    as_png,
    blank_figure,
    font,
    halo,
    marker_pen,
)
from optlab.viz.explorer.model import Model
from optlab.viz.explorer.palette import LINE_COLORS, PALETTE, line_color
from optlab.viz.explorer.step_formulas import Piece, Row, pieces_of, readers, shown_rows
from optlab.viz.explorer.step_rules import ROLES
from optlab.viz.style import theme
from optlab.viz.style.contours import log_levels
from optlab.viz.style.text import format_number

_TEXT, _NAME, _SMALL = 14.0, 16.0, 13.0
_MARGIN, _TOP = 24.0, 64.0
_REACH = 0.34  # of the map: the longest arrow in units of the gradient
_GRID = 90


class _Canvas:
    """A figure in pixels from its upper left corner."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.figure: Figure = blank_figure(width, height)
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1), zorder=5)
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.axis("off")
        self.axes.patch.set_alpha(0)

    def write(
        self, x: float, y: float, text: str, size: float, color: str, *, bold: bool = False,
        align: str = "left", clear: bool = False,
    ) -> None:  # fmt: skip
        self.axes.text(
            x, y, encodable(text), color=color, ha=align, va="center_baseline", parse_math=False,
            fontproperties=font(size, "bold" if bold else "normal"),
            path_effects=halo(3) if clear else None,
        )  # fmt: skip

    def line(self, x: Sequence[float], y: Sequence[float], color: str, width: float = 1.0) -> None:
        self.axes.plot(x, y, color=color, linewidth=width * PIXEL, solid_capstyle="butt")

    def box(self, x: float, y: float, width: float, height: float, **options: Any) -> None:
        self.axes.add_patch(Rectangle((x, y), width, height, **options))


@cache
def _width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in pixels, spaces at its ends included."""
    kind = font(size, "bold" if bold else "normal")
    wide, without = (
        text_to_path.get_text_width_height_descent(encodable(one), kind, ismath=False)[0]
        for one in (f"|{text}|", "||")
    )
    return float(wide - without) / PIXEL


def _wrapped(text: str, size: float, width: float) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _width_of(longer, size) > width:
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
    step = _Step(model)
    left = round(0.36 * width)
    canvas = _Canvas(width, max(height, _lines_height(step, left, width)))
    title = f"{step.name}, step {step.number}, on {model.title}"
    canvas.write(_MARGIN, 30, title, 20, step.palette["ink"], bold=True)
    _draw_lines(canvas, step, left)
    _draw_picture(canvas, step, (_MARGIN, _TOP, left - 2 * _MARGIN, height - _TOP - _MARGIN))
    return as_png(canvas.figure, 1.0)


# The lines ---------------------------------------------------------------------------------------


def _names_width(left: int, width: int) -> float:
    return 0.27 * (width - left)


def _note_of(step: _Step, row: Row, said: bool) -> str:
    note = "".join(
        f"^{one.text}" if one.raised else one.text for one in pieces_of(row.note, step.read[0])
    )
    scale = {"own": "bars have their own scale"}.get(row.bars, "")
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


def _largest(step: _Step) -> dict[str, float]:
    """Return the ends of each scale of bars."""
    found: dict[str, float] = {}
    for row in step.rows:
        scale = row.label if row.bars == "own" else row.bars
        for read in step.read:
            ends = [read(row.result)] if row.bars else []
            ends += list(np.cumsum([read(name) for name, _ in _parts(row)])) if row.bars else []
            for end in filter(math.isfinite, ends):
                found[scale] = max(found.get(scale, 0.0), abs(float(end)))
    return found


def _draw_lines(canvas: _Canvas, step: _Step, left: int) -> None:
    """Write every line with its numbers and bars, and what is to be said of the step."""
    palette, names = step.palette, _names_width(left, canvas.width)
    across = (canvas.width - left - names - _MARGIN) / len(step.read)
    middles = [left + names + across * (c + 0.5) for c in range(len(step.read))]
    for axis, middle in zip(step.model.axes, middles, strict=True):
        canvas.write(middle, _TOP - 14, f"along {axis}", _TEXT, palette["quiet"], align="center")
    largest, y = _largest(step), _TOP
    for row, note, position, tall in _plan(step, left, canvas.width):
        canvas.line([left, canvas.width - _MARGIN], [y, y], palette["rule"])
        color = step.color(row.role)
        canvas.box(left, y + 9, 4, 16, facecolor=color, linewidth=0)
        canvas.write(left + 12, y + 17, row.label, _NAME, color, bold=True)
        symbol = row.symbol.replace("^[", "^").replace("]", "")
        after = left + 20 + _width_of(row.label, _NAME, bold=True)
        canvas.write(after, y + 17, symbol, _NAME, color)
        for at, text in enumerate(note):
            canvas.write(left + 12, y + 36 + 17 * at, text, _SMALL, palette["quiet"])
        for read, middle, axis in zip(step.read, middles, step.model.axes, strict=True):
            if row.bars:
                canvas.line([middle, middle], [y, y + tall], palette["frame"])
            _write_pieces(
                canvas, step, row, pieces_of(row.template, read, axis, row), middle, y + 17
            )
            if row.bars:
                scale = row.label if row.bars == "own" else row.bars
                _draw_bars(canvas, step, row, read, largest.get(scale, 0.0), middle, y + 30, across)
            if position is not None:
                pieces = pieces_of(position.template, read, axis, position)
                below = y + 42 + _bars_height(row)
                _write_pieces(canvas, step, position, pieces, middle, below)
        y += tall
    canvas.line([left, canvas.width - _MARGIN], [y, y], palette["rule"])
    for at, text in enumerate(_tip_lines(step, left, canvas.width)):
        canvas.write(left, y + 16 + 18 * at, text, _SMALL, palette["quiet"])


def _write_pieces(
    canvas: _Canvas, step: _Step, row: Row, pieces: Sequence[Piece], middle: float, y: float
) -> None:
    """Write a formula around a middle, every number in the color of what it is."""
    plain = row.role == "position"
    ink = step.palette["quiet" if plain else "ink"]
    sizes = [_TEXT * (0.8 if one.raised else 1.0) for one in pieces]
    widths = [_width_of(p.text, s, bold=p.bold) for p, s in zip(pieces, sizes, strict=True)]
    x = middle - sum(widths) / 2
    canvas.box(x - 3, y - 9, sum(widths) + 6, 18, facecolor=theme.PAPER, linewidth=0, zorder=2)
    for piece, size, wide in zip(pieces, sizes, widths, strict=True):
        role = row.role if piece.bold and not plain else "" if plain else ROLES.get(piece.name, "")
        color = step.color(role) if role else ink
        lift = 4 if piece.raised else 0
        canvas.write(x, y - lift, piece.text, size, color, bold=piece.bold)
        x += wide


def _draw_bars(
    canvas: _Canvas, step: _Step, row: Row, read: Any, largest: float, middle: float, y: float,
    across: float,
) -> None:  # fmt: skip
    """Draw the bar of a line below those of its parts, head to tail."""
    half = 0.46 * across

    def bar(start: float, end: float, role: str, tall: float, top: float) -> None:
        if not (math.isfinite(start) and math.isfinite(end) and largest):
            return
        color, (_, strength) = step.color(role), LINE_COLORS.get(role, ("quiet", 1))
        at, wide = middle + half * min(start, end) / largest, half * abs(end - start) / largest
        outline = role == "scale"
        face = theme.paled(color, 0.84 if outline else 1 - strength)
        edge = color if outline else "none"
        line = 1.4 * PIXEL if outline else 0.0
        canvas.box(
            at, top, max(wide, 1.0), tall, facecolor=face, edgecolor=edge, linewidth=line, zorder=3
        )

    start = 0.0
    for name, role in _parts(row):
        end = start + read(name)
        bar(start, end, role, 8, y)
        start, y = end, y + 10
    bar(0.0, read(row.result), row.role, 14, y)


# The picture -------------------------------------------------------------------------------------


def _draw_picture(canvas: _Canvas, step: _Step, place: tuple[float, float, float, float]) -> None:
    """Draw the arrows over the part of the surface around the step."""
    left, top, width, height = place
    update, start = step.vector("update"), step.path[step.number - 1]
    end = step.path[step.number]
    flat = len(start) == 1
    moved = np.abs(end - start)
    size = max(float(np.hypot(*update)), float(np.sqrt((moved**2).sum())))
    if not math.isfinite(size) or not np.isfinite(start).all():
        return
    unit = (size or 1e-9 * max(1.0, float(np.abs(start).max()))) / (0.24 * min(width, height))
    box = canvas.figure.add_axes(
        (left / canvas.width, 1 - (top + height) / canvas.height, width / canvas.width,
         height / canvas.height), zorder=1,
    )  # fmt: skip
    box.set(xticks=[], yticks=[], facecolor=step.palette["mapHigh"])
    for spine in box.spines.values():
        spine.set(color=theme.RULE, linewidth=PIXEL)
    middle = (left + width / 2, top + height * (0.4 if flat else 0.5))
    if flat:
        at, to = _draw_curve(canvas, step, box, place, unit)
    else:
        _draw_ground(step, box, start, unit, width, height)
        at = middle

        def pixel(point: np.ndarray) -> tuple[float, float]:
            shift = (point - start) / unit
            return middle[0] + float(shift[0]), middle[1] - float(shift[1])

        to = pixel(end)
        before = np.array([pixel(one) for one in step.path[: step.number]])
        inside = (np.abs(before - middle) < [width / 2, height / 2]).all(axis=1)
        shown = before[max(0, int(np.flatnonzero(~inside)[-1])) if (~inside).any() else 0 :]
        canvas.axes.plot(
            *np.clip(shown, [left, top], [left + width, top + height]).T, color=step.own, alpha=0.6,
            linewidth=2 * PIXEL, zorder=2, **marker_pen("circle", 7, step.own, theme.PAPER, 1),
        )  # fmt: skip
    _draw_arrows(canvas, step, at, to, unit, place, flat)
    style = step.model.styles[step.name]
    for (x, y), pen in (
        (at, marker_pen("circle", 13, theme.PAPER, step.own, 3)),
        (to, marker_pen(style.marker, 15, step.own, theme.PAPER, 1.5)),
    ):
        canvas.axes.plot([x], [y], linestyle="none", zorder=20, **pen)


def _draw_ground(
    step: _Step, box: Axes, start: np.ndarray, unit: float, width: float, height: float
) -> None:
    """Draw the surface around the step with its contour lines."""
    x = start[0] + unit * np.linspace(-width / 2, width / 2, _GRID)
    y = start[1] + unit * np.linspace(-height / 2, height / 2, _GRID)
    surface = step.model.surface
    assert surface is not None
    with np.errstate(all="ignore"):
        values = np.asarray(surface.values(*np.meshgrid(x, y)))
        heights, levels, _ = log_levels(values, surface.minimum_value)
    if np.isfinite(heights).any():
        ramp = [step.palette["mapLow"], step.palette["mapHigh"]]
        shades = LinearSegmentedColormap.from_list("map", ramp)(np.linspace(0, 1, len(levels) + 1))
        box.contourf(x, y, heights, levels=levels, colors=shades, extend="both")
        box.contour(x, y, heights, levels=levels, colors=step.palette["contour"],
                    linestyles="solid", linewidths=theme.CONTOUR_WIDTH * PIXEL)  # fmt: skip


def _draw_curve(
    canvas: _Canvas, step: _Step, box: Axes, place: tuple[float, float, float, float], unit: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Draw the curve of one variable with the tangent; return where the step starts and ends."""
    left, top, width, height = place
    surface, number = step.model.surface, step.number
    assert surface is not None
    start, end = float(step.path[number - 1, 0]), float(step.path[number, 0])
    middle = (start + end) / 2
    x = middle + unit * np.linspace(-width / 2, width / 2, 300)
    with np.errstate(all="ignore"):
        y = np.asarray(surface.values(x), dtype=float)
    losses = step.runs.loss[step.rate]
    seen = np.array([*y[np.isfinite(y)], *losses[number - 1 : number + 1]])
    low, high = float(seen.min()), float(seen.max())
    tall = high - low or 1.0
    box.set(xlim=(x[0], x[-1]), ylim=(low - 0.85 * tall, high + 0.25 * tall))
    box.plot(x, y, color=step.palette["contour"], linewidth=2.5 * PIXEL)
    slope = -float(step.read[0]("d.raw"))
    ends = np.array([-1.0, 1.0]) * 0.25 * (x[-1] - x[0])
    box.plot(start + ends, losses[number - 1] + slope * ends, color=step.palette["quiet"],
             linewidth=2 * PIXEL, linestyle=(0, (4, 3)))  # fmt: skip

    def pixel(at: float, loss: float) -> tuple[float, float]:
        down = (high + 0.25 * tall - loss) / (2.1 * tall)
        return left + (at - x[0]) / (x[-1] - x[0]) * width, top + down * height

    at, to = pixel(start, losses[number - 1]), pixel(end, losses[number])
    canvas.axes.plot([to[0], to[0]], [at[1], to[1]], color=step.own, linewidth=1.6 * PIXEL,
                     linestyle=(0, (2, 2)))  # fmt: skip
    canvas.write(left + 12, top + height - 14, f"tangent: slope {format_number(slope)}", _SMALL,
                 step.palette["quiet"])  # fmt: skip
    return at, to


def _draw_arrows(
    canvas: _Canvas, step: _Step, at: tuple[float, float], to: tuple[float, float], unit: float,
    place: tuple[float, float, float, float], flat: bool,
) -> None:  # fmt: skip
    """Draw the arrows from the start of the step, and their names where there is room."""
    _left, top, width, height = place
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
            base = np.array([at[0], top + height - 30 - 26 * (len(chosen) - 1 - place_of)])
        joint = base
        for name, role in _parts(row):
            tip = joint + scale * step.vector(name) * [1, -1]
            arrows.append((row, role, joint, tip))
            joint = tip
        arrows.append((row, "", base, base + scale * step.vector(row.result) * [1, -1]))
    jumps = [row for row in step.rows if row.role == "wrapper" and row.arrow]
    fast = arrows[-1][3] if arrows else np.array(at)
    arrows += [(row, "", fast, np.array([to[0], fast[1] if flat else to[1]])) for row in jumps]
    for row, role, start, end in arrows:
        if not (np.isfinite(start).all() and np.isfinite(end).all()):
            continue
        color = step.color(role or row.role)
        wide = 5.5 if row.role == "update" and not role else 2.2 if role else 3.0
        dotted = role in ("kept", "kept step", "kept mean")
        if np.hypot(*(end - start)) > 2:
            head = f"-|>,head_width={1.4 + wide / 2},head_length={3 + wide / 1.5}"
            canvas.axes.add_patch(
                FancyArrowPatch(
                    tuple(start), tuple(end), color=color, linewidth=wide * PIXEL, shrinkA=0,
                    shrinkB=0, arrowstyle="-" if dotted else head, zorder=6 + wide,
                    linestyle=(0, (1, 2)) if dotted else "solid",
                )
            )  # fmt: skip
    labels: list[tuple[float, float, float, float]] = []
    shafts = np.concatenate([np.linspace(start, end, 12) for *_, start, end in arrows])
    shafts = shafts[np.isfinite(shafts).all(axis=1)]
    for row, role, _, end in arrows:
        if role or not np.isfinite(end).all():
            continue
        color = step.color(row.role)
        x, y, wide = _free_place(row.label, end, shafts, labels, place)
        labels.append((x, y, wide, 18.0))
        canvas.write(x, y, row.label, 15, color, bold=True, align="center", clear=True)


def _free_place(
    text: str, end: np.ndarray, shafts: np.ndarray, labels: list[tuple[float, float, float, float]],
    place: tuple[float, float, float, float],
) -> tuple[float, float, float]:  # fmt: skip
    """Return the middle of a name beside the end of its arrow, off arrows and other names."""
    left, top, width, height = place
    wide, best = _width_of(text, 15.0, bold=True) + 6, (math.inf, 0.0, 0.0)
    for far in (12, 24, 38):
        for turn in np.arange(0, 2 * np.pi, np.pi / 6):
            x = float(end[0] + np.cos(turn) * (far + wide / 2))
            y = float(end[1] + np.sin(turn) * (far + 6))
            x = min(max(x, left + 4 + wide / 2), left + width - 4 - wide / 2)
            y = min(max(y, top + 12), top + height - 12)
            hit = (np.abs(shafts[:, 0] - x) < wide / 2) & (np.abs(shafts[:, 1] - y) < 11)
            over = sum(
                abs(x - a) < (wide + c) / 2 and abs(y - b) < (18 + d) / 2 for a, b, c, d in labels
            )
            best = min(best, (far + 9.0 * int(hit.sum()) + 300.0 * over, x, y))
    return best[1], best[2], wide
