"""The static picture of a claim figure, drawn by matplotlib at its first position."""

from __future__ import annotations

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.matplotlib.image import width_of
from optlab.viz.backends.scene import (
    HIDDEN,
    Axis,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Scene,
    Text,
)
from optlab.viz.claims.labels import CHART_HEIGHT
from optlab.viz.claims.marks import (
    CHART_X,
    MAP_X,
    MAP_Y,
    Colors,
    chart_axis,
    chart_marks,
    here_marks,
    label_marks,
    map_marks,
    palettes,
    run_color,
    stops,
)
from optlab.viz.claims.view import MAP_HEIGHT, MAP_WIDTH, ClaimView
from optlab.viz.style import layout, theme

WIDTH = 760
_LEFT, _MIDDLE = 20, 410  # ends of the map and of the chart
_MAP, _CHART = 300, 310  # widths
Pieces = list[tuple[str, int | None]]


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
    lines = _wrapped(view.sentence, 21, bold=True)
    notes = _wrapped([(view.note, None)], 14) if view.note else []
    top = 28 + 28 * len(lines)
    height = top + 330 + 20 * len(notes)
    colors = palettes(view)[theme.scheme()]
    texts: list[Mark] = []
    for row, pieces in enumerate(lines):
        texts += _sentence(colors, pieces, _LEFT, 28 + 28 * row)
    texts += [
        _text(_LEFT, top + 12, view.maps[view.at].title, 14, theme.QUIET),
        _text(_MIDDLE, top + 12, view.measured, 14, theme.QUIET),
        _text(_LEFT, top + 262, view.question, 16, theme.INK, bold=True),
        _text(_LEFT, top + 284, view.setting, 14, theme.QUIET),
        *(
            _text(_LEFT, top + 318 + 20 * row, "".join(text for text, _ in pieces), 14, theme.QUIET)
            for row, pieces in enumerate(notes)
        ),
        *(
            Text(
                _MIDDLE + _CHART * view.places[i],
                top + 284,
                view.labels[i],
                theme.QUIET,
                13,
                halo=False,
            )
            for i in stops(view, _CHART)
        ),
    ]
    shown = [
        (
            layout.Panel(_LEFT, top + 32, _MAP, _MAP * MAP_HEIGHT / MAP_WIDTH),
            _panel(MAP_X, MAP_Y, map_marks(view, view.at, colors)),
        ),
        (layout.Panel(_MIDDLE, top + 32, _CHART, CHART_HEIGHT), _chart(view, colors)),
        (layout.Panel(_MIDDLE, top + 250, _CHART, 24), _slider(view)),
        (
            layout.Panel(0, 0, WIDTH, height),
            _panel(Axis(0, WIDTH, shown=False), Axis(height, 0, shown=False), texts),
        ),
    ]
    places, panels = zip(*shown, strict=True)
    return Scene(layout.Page(WIDTH, height, places, (), 0.0, ()), "", "", panels)


def _panel(x: Axis, y: Axis, marks: list[Mark]) -> Panel:
    return Panel(x, y, marks, frame="none")


def _wrapped(pieces: Pieces, size: float, *, bold: bool = False) -> list[Pieces]:
    """Break a text into as few lines as there may be, at spaces, none much shorter than others."""
    room = WIDTH - 2 * _LEFT
    found = _broken(pieces, size, room, bold=bold)
    while room > 100:
        room -= 10
        narrower = _broken(pieces, size, room, bold=bold)
        if len(narrower) > len(found):
            break
        found = narrower
    return found


def _broken(pieces: Pieces, size: float, room: float, *, bold: bool) -> list[Pieces]:
    lines: list[Pieces] = [[]]
    used = 0.0
    for text, who in pieces:
        for word in text.replace(" ", "\0 ").split("\0"):
            wide = width_of(word, size, bold=bold)
            if used + wide > room and lines[-1]:
                lines.append([])
                word = word.lstrip()
                used, wide = 0.0, width_of(word, size, bold=bold)
            lines[-1].append((word, who))
            used += wide
    return lines


def _text(x: float, y: float, text: str, size: float, ink: str, *, bold: bool = False) -> Text:
    return Text(x, y, text, ink, size, "left", bold=bold, halo=False)


def _sentence(colors: Colors, pieces: Pieces, x: float, y: float) -> list[Mark]:
    """Return pieces behind each other, each as wide as it is drawn."""
    joined: Pieces = []
    for text, who in pieces:
        if joined and joined[-1][1] == who:
            joined[-1] = (joined[-1][0] + text, who)
        else:
            joined.append((text, who))
    marks: list[Mark] = []
    for text, who in joined:
        color = colors["ink" if who is None else run_color(who)]
        marks.append(_text(x, y, text, 21, color, bold=True))
        x += width_of(text, 21, bold=True)
    return marks


def _chart(view: ClaimView, colors: Colors) -> Panel:
    marks = [
        *chart_marks(view, colors),
        *here_marks(view, view.at, colors),
        *label_marks(view, view.at, colors, _CHART),
    ]
    return _panel(CHART_X, chart_axis(view), marks)


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
