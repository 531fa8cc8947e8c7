"""The static picture of a claim figure, drawn by matplotlib at its first position."""

from __future__ import annotations

import textwrap
from typing import Literal

import numpy as np

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.matplotlib.image import width_of
from optlab.viz.backends.scene import (
    HIDDEN,
    Axis,
    Boxes,
    Fill,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Region,
    Rule,
    Scene,
    Text,
)
from optlab.viz.claims.view import DENSE, MAP_HEIGHT, MAP_WIDTH, ClaimView, Map
from optlab.viz.style import layout, theme
from optlab.viz.style.layout import text_width

WIDTH = 760
_MAP = 300
_GROUND = {"light": "#f5f8fb", "dark": "#181e26"}
_BAND = {"light": "#5d86b3", "dark": "#5b7fa8"}
_LINE = {"light": "#8ea3ba", "dark": "#55657a"}


def claim_png(view: ClaimView, scale: float = 1.0) -> bytes:
    """Return the picture of a claim as a PNG image.

    Parameters
    ----------
    view : ClaimView
    scale : float
        Image pixels per pixel.
    """
    return draw_png(claim_scene(view), scale)


def claim_scene(view: ClaimView) -> Scene:
    """Return the figure of a claim at its first position: map, chart, slider, and all texts."""
    lines = _wrapped(view.sentence, WIDTH - 30)
    notes = textwrap.wrap(view.note, 105)
    top = 28 + 28 * len(lines)
    height = top + 330 + 20 * len(notes)
    one = view.maps[view.at]
    texts: list[Mark] = []
    for row, pieces in enumerate(lines):
        texts += _sentence(view, pieces, 20, 28 + 28 * row)
    texts += [
        _text(20, top + 16, one.title, 14, theme.QUIET),
        _text(410, top + 16, view.measured, 14, theme.QUIET),
        _text(20, top + 262, view.question, 16, theme.INK, bold=True),
        _text(20, top + 284, view.setting, 14, theme.QUIET),
        *(_text(20, top + 318 + 20 * row, text, 14, theme.QUIET) for row, text in enumerate(notes)),
        *(
            Text(410 + 310 * view.places[i], top + 284, view.labels[i], theme.QUIET, 13, halo=False)
            for i in view.majors
        ),
    ]
    shown = [
        (layout.Panel(20, top + 32, _MAP, _MAP * MAP_HEIGHT / MAP_WIDTH), _map(view, one)),
        (layout.Panel(410, top + 32, 310, 210), _chart(view)),
        (layout.Panel(410, top + 250, 310, 24), _slider(view)),
        (
            layout.Panel(0, 0, WIDTH, height),
            _panel(Axis(0, WIDTH, shown=False), Axis(height, 0, shown=False), texts),
        ),
    ]
    places, panels = zip(*shown, strict=True)
    return Scene(layout.Page(WIDTH, height, places, (), 0.0, ()), "", "", panels)


def _panel(x: Axis, y: Axis, marks: list[Mark]) -> Panel:
    return Panel(x, y, marks, frame="none")


def _wrapped(
    pieces: list[tuple[str, int | None]], room: float
) -> list[list[tuple[str, int | None]]]:
    """Break a sentence into lines, at spaces."""
    lines: list[list[tuple[str, int | None]]] = [[]]
    used = 0.0
    for text, who in pieces:
        for word in text.replace(" ", "\0 ").split("\0"):
            wide = text_width(word, 21)
            if used + wide > room and lines[-1]:
                lines.append([])
                used, word = 0.0, word.lstrip()
            lines[-1].append((word, who))
            used += wide
    return lines


def _color(view: ClaimView, who: int) -> str:
    return str(view.styles[who][theme.scheme()])


def _text(x: float, y: float, text: str, size: float, ink: str, *, bold: bool = False) -> Text:
    return Text(x, y, text, ink, size, "left", bold=bold, halo=False)


def _sentence(
    view: ClaimView, pieces: list[tuple[str, int | None]], x: float, y: float
) -> list[Mark]:
    """Return pieces behind each other, each as wide as it is drawn."""
    joined: list[tuple[str, int | None]] = []
    for text, who in pieces:
        if joined and joined[-1][1] == who:
            joined[-1] = (joined[-1][0] + text, who)
        else:
            joined.append((text, who))
    marks: list[Mark] = []
    for text, who in joined:
        color = theme.INK if who is None else _color(view, who)
        marks.append(_text(x, y, text, 21, color, bold=True))
        x += width_of(text, 21, bold=True)
    return marks


def _map(view: ClaimView, one: Map) -> Panel:
    page = theme.scheme()
    ground = Fill(_GROUND[page], "")
    marks: list[Mark] = [Boxes([0], [0], [MAP_WIDTH], [MAP_HEIGHT], [ground])]
    gap = np.full((1, 2), np.nan)
    for outlines in one.regions:
        if outlines:
            around = np.concatenate([part for line in outlines for part in (line, gap)])
            edge = Pen(_LINE[page], 0.7)
            marks.append(
                Region(around[:, 0], around[:, 1], Fill(_BAND[page], ""), edge, opacity=0.08)
            )
    for number, (points, dots) in enumerate(zip(one.paths, one.dots, strict=True)):
        color, thin = _color(view, number), len(points) > DENSE
        x, y = points.T
        if not thin:
            marks.append(Line(x, y, Pen(_GROUND[page], 5, opacity=0.8)))
        marks.append(Line(x, y, Pen(color, 1 if thin else 2.2, _dash(view, number))))
        marks.append(Points(dots[:, 0], dots[:, 1], Marker("circle", 4.4, color)))
    star = Marker("star", 15, theme.INK, theme.PAPER, 1)
    marks += [Points([x], [y], star) for x, y in one.minima]
    x, y = one.start
    marks += [
        Points([x], [y], Marker("circle", 12, theme.PAPER, theme.INK, 2.4)),
        Text(x, y, "start", theme.INK, 14, up="bottom", shift=(0, 10)),
    ]
    return _panel(Axis(0, MAP_WIDTH, shown=False), Axis(MAP_HEIGHT, 0, shown=False), marks)


def _dash(view: ClaimView, who: int) -> tuple[float, ...]:
    return tuple(view.styles[who]["dash"])


def _chart(view: ClaimView) -> Panel:
    low, high = view.low, view.high
    if view.logarithmic:
        low, high = float(np.log10(low)), float(np.log10(high))
    marks: list[Mark] = []
    for value, text in view.ticks:
        if view.low <= value <= view.high:
            marks.append(Rule("y", value, Pen(theme.RULE, 1), below=True))
            marks.append(
                Text(0.0, value, text, theme.QUIET, 13, "right", shift=(-10, 0), halo=False)
            )
    at = view.places[view.at]
    marks.append(Rule("x", at, Pen(theme.INK, 1.4)))
    order = sorted(range(len(view.names)), key=lambda i: -np.nan_to_num(view.values[i, view.at]))
    labels: list[Mark] = []
    for rank, i in enumerate(order):
        color, value = _color(view, i), float(view.values[i, view.at])
        marks.append(Line(view.places, view.values[i], Pen(color, 2.6, _dash(view, i))))
        if not np.isfinite(value):
            continue
        marker = Marker(view.styles[i]["marker"], 14, color, theme.PAPER, 1.5)
        marks.append(Points([at], [value], marker, clip=False))
        above = rank == 0 and len(order) > 1
        shift = ((-12, 26) if above else (12, -26)) if at > 0.3 else (12, 26 - 52 * rank)
        said = f"{view.names[i]}\n{view.value_text(i, view.at)}"
        across: Literal["left", "right"] = "right" if shift[0] < 0 else "left"
        labels.append(Text(at, value, said, color, 15, across, shift=shift, bold=True))
    scale: Literal["linear", "log"] = "log" if view.logarithmic else "linear"
    return _panel(HIDDEN, Axis(low, high, scale, shown=False), marks + labels)


def _slider(view: ClaimView) -> Panel:
    at = view.places[view.at]
    marks: list[Mark] = []
    for high, color in ((1.0, theme.FRAME), (at, theme.INK)):
        marks.append(Line([0.0, high], [0.0, 0.0], Pen(color, 6), clip=False))
        round_ends = Marker("circle", 6, color)
        marks.append(Points([0.0, high], [0.0, 0.0], round_ends, clip=False))
    knob = Marker("circle", 22, theme.PAPER, theme.INK, 4)
    marks.append(Points([at], [0.0], knob, clip=False))
    return _panel(HIDDEN, Axis(-1.0, 1.0, shown=False), marks)
