"""Panels of the views that several figures share: a map, curves over the steps, accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from optlab.viz.backends.scene import (
    HIDDEN,
    Axis,
    Bars,
    Contour,
    Fill,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Rule,
    Text,
    end_marker,
    pen_of,
)
from optlab.viz.style import theme
from optlab.viz.style.labels import escaped
from optlab.viz.style.text import format_point
from optlab.viz.views import map_view
from optlab.viz.views.curve_view import AccuracyView, CurvesView
from optlab.viz.views.map_view import MapView, PathView


def map_panel(view: MapView) -> Panel:
    """Return a map, back to front: surface, paths, ends, minima, start."""
    box = view.box
    colors = theme.surface_colors(len(view.levels) + 1)
    pen = Pen(theme.CONTOUR, theme.CONTOUR_WIDTH)
    marks: list[Mark] = [Contour(view.x, view.y, view.height, view.levels, colors, pen)]
    marks += [
        Text(label.x, label.y, label.text, theme.QUIET, theme.FONT_SMALL - 1, angle=label.angle)
        for label in view.contour_labels
    ]
    for path in view.paths:  # below all lines: where paths coincide, gaps of one show the other
        halo = Pen(theme.PAPER, theme.HALO_WIDTH, opacity=0.75)
        marks.append(Line(path.x, path.y, halo, group=path.name))
    for path in view.paths:
        marks += _path(path)
    for path in view.paths:  # above all lines: no end is hidden by the path of another run
        marks += _ends(path)
    minimum = Marker("star", theme.MINIMUM_SIZE, theme.INK, theme.PAPER, 1)
    marks += [_place(mark, minimum, "minimum") for mark in view.minima]
    named = Marker("x", 11, theme.INK, theme.PAPER, 1)
    marks += [_place(mark, named, mark.text) for mark in view.places]
    marks.append(
        _place(view.start, Marker("circle", theme.START_SIZE, theme.PAPER, theme.INK, 2), "start")
    )
    return Panel(
        Axis(box.x_low, box.x_high, name="x", count=8),
        Axis(box.y_low, box.y_high, name="y", count=7),
        marks, "Paths" if view.paths else "Surface", view.note, frame="box", equal=True,
    )  # fmt: skip


def _place(mark: map_view.Mark, marker: Marker, kind: str) -> Points:
    return Points(
        [mark.x], [mark.y], marker, f"{kind}<br>{format_point((mark.x, mark.y))}",
        clip=False, text=mark.text, side=mark.position, ink=theme.INK,
    )  # fmt: skip


def _pale(path: PathView) -> Pen:
    return Pen(path.style.color, theme.FAINT_WIDTH, opacity=0.4)


def _path(path: PathView) -> list[Mark]:
    dot = Marker("circle", path.dot, path.style.color)
    hover = (
        f"<b>{escaped(path.name)}</b> after %{{customdata[0]:d}} steps<br>"
        "x %{x:.4g}, y %{y:.4g}<br>loss %{customdata[1]:.4g}"
    )
    pale = [] if path.pale is None else [Line(*path.pale, _pale(path), group=path.name)]
    return [
        *pale,
        Line(path.x, path.y, pen_of(path.style, path.width), group=path.name),
        Points(
            path.step_x, path.step_y, dot, hover, data=(path.step, path.step_loss),
            seen=path.dotted, group=path.name,
        ),
    ]  # fmt: skip


def _ends(path: PathView) -> list[Mark]:
    found: list[Mark] = []
    for mark, hollow in ((path.end, False), (path.leaves, True)):
        if mark is not None:
            said = escaped(mark.text).replace("\n", "<br>")
            hover = said if hollow else f"{said} ends at %{{x:.4g}}, %{{y:.4g}}"
            marker = end_marker(path.style, hollow=hollow, size=path.end_size)
            found.append(
                Points(
                    [mark.x], [mark.y], marker, hover, group=path.name, clip=False,
                    text=mark.text, side=mark.position, ink=path.style.color,
                )
            )  # fmt: skip
    return found


def curves_panel(view: CurvesView) -> Panel:
    """Return curves over the steps, with labels at their ends and stops."""
    box = view.box
    marks: list[Mark] = [Rule("x", n, Pen(theme.FAINT, 1), below=True) for n in view.lines]
    for one in view.series:
        pen = pen_of(one.style, one.width)
        hover = f"<b>{escaped(one.name)}</b> after %{{x:d}} steps<br>{one.label} %{{y:.4g}}"
        if one.faint:
            pen = Pen(one.style.color, theme.FAINT_WIDTH, opacity=theme.FAINT_OPACITY)
            hover = ""
        marks.append(Line(one.x, one.y, pen, hover, group=one.name))
    for end in view.ends:
        marker = end_marker(end.style, size=end.size)
        marks.append(Points([end.x], [end.y], marker, group=end.name, clip=False))
        marks.append(
            Text(
                end.x, end.text_y, end.text, end.style.color, across="left",
                shift=(end.size / 2 + 2, 0), group=end.name,
            )
        )  # fmt: skip
    for name, style, mark in view.stops:
        marks.append(
            Points(
                [mark.x], [mark.y], end_marker(style, hollow=True), escaped(mark.text), group=name,
                clip=False, text=mark.text, side=mark.position, ink=style.color,
            )
        )  # fmt: skip
    return Panel(
        Axis(box.x_low, box.x_high, name="step"),
        Axis(box.y_low, box.y_high, view.scale, grid=True, zero=view.scale == "linear"),
        marks, view.title, view.note,
    )  # fmt: skip


def accuracies_panel(view: AccuracyView) -> Panel:
    """Return bars of held-out accuracies from zero, each with its value."""
    marks: list[Mark] = []
    for row, (name, style, value, text) in enumerate(view.rows):
        if value is not None:
            marks.append(Line([0, value], [row, row], Pen(style.color, 4), group=name))
            marks.append(Points([value], [row], end_marker(style), group=name, clip=False))
        marks.append(
            Text(
                value or 0.0, row, text, style.color, across="left",
                shift=(theme.END_SIZE / 2 + 2, 0), group=name,
            )
        )  # fmt: skip
    shares = [(float(part), f"{part:.0%}") for part in np.arange(5) / 4]
    names = [(float(row), name) for row, (name, *_) in enumerate(view.rows)]
    return Panel(
        Axis(0.0, 1.14, ticks=shares, grid=True),
        Axis(len(names) - 0.4, -0.6, ticks=names, loud=True),
        marks, "Held-out accuracy", "on unseen examples", frame="left",
    )  # fmt: skip


def list_panel(
    rows: Sequence[tuple[str, str, float, Fill]],
    room: float,
    longest: float,
    heading: str,
    note: str,
) -> Panel:
    """Return a list of shares: in each row a text, under it a bar, and what is said of it.

    Parameters
    ----------
    rows : sequence of (text, what is said, share, fill)
    room : float
        Rows that the panel has room for.
    longest : float
        Length of the longest bar, relative to the panel.
    """
    most = max((share for _, _, share, _ in rows), default=1.0)
    marks: list[Mark] = []
    for row, (text, said, share, fill) in enumerate(rows):
        length = max(0.01, longest * share / most)
        edge = Pen(theme.FRAME, 0.6)
        marks += [
            Bars([length], [row + 0.73], 0.3, [fill], edge if not fill.pattern else None),
            Text(0.0, row + 0.27, text, theme.INK, across="left", halo=False),
            Text(1.0, row + 0.73, said, theme.QUIET, across="right", halo=False),
        ]
    return Panel(HIDDEN, Axis(room, 0.0, shown=False), marks, heading, note, frame="none")


def peak_marks(
    peak: tuple[float, float],
    text: str,
    shift: tuple[float, float],
    across: Literal["left", "center", "right"],
    *,
    bold: bool = False,
) -> list[Mark]:
    """Return the mark of the peak of a memory timeline, and its label."""
    down = Marker("triangle-down", theme.END_SIZE, theme.INK, theme.PAPER, 1.2)
    # Its label may cross the line between two phases.
    label = Text(*peak, text, theme.INK, across=across, shift=shift, bold=bold, ground=float(bold))
    return [Points([peak[0]], [peak[1]], down, clip=False), label]
